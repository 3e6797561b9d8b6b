"""Descriptions of datasets: equal ones have equal fingerprints, and what needs TensorFlow's graph of a dataset says so."""
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1


class DatasetDescriptionTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(serving.cluster("flowgrid", {"worker": 1}))["worker"][0]

    def run_op(self, build):
        with tf.Graph().as_default(), tf1.Session(self.target) as session:
            return session.run(build())

    def fingerprint(self, size):
        dataset = tf1.data.Dataset.from_tensor_slices(list(range(size)))
        return tf.raw_ops.DatasetFingerprint(input_dataset=dataset._variant_tensor)

    def test_equal_datasets_have_equal_fingerprints(self):
        one, same, other = self.run_op(lambda: [self.fingerprint(size) for size in (2, 2, 3)])
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)

    def test_there_is_no_graph_of_a_dataset(self):
        for op in (tf.raw_ops.DatasetToGraph, tf.raw_ops.DatasetToGraphV2):
            with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "does not support serialization"):
                self.run_op(lambda: op(input_dataset=tf1.data.Dataset.range(3)._variant_tensor))

    def test_there_is_no_dataset_of_a_graph(self):
        with self.assertRaisesRegex(tf.errors.UnimplementedError, "cannot be created from a serialized graph"):
            self.run_op(lambda: tf.raw_ops.DatasetFromGraph(graph_def="").op)


if __name__ == "__main__":
    unittest.main()
