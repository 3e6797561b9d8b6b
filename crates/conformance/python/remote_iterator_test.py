"""Iterators that other devices and tasks read, through functions that run where the iterator is."""
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1


class RemoteIteratorTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.targets = cls.enterClassContext(serving.cluster("flowgrid", {"worker": 2}, ["--cpu-devices", "3"]))["worker"]

    def read_from(self, target_device, iterator_device, node_device=None):
        with tf.Graph().as_default():
            with tf.device(iterator_device):
                iterator = tf1.data.make_initializable_iterator(tf1.data.Dataset.range(3))
                handle = iterator.string_handle()

            @tf.function(autograph=False)
            def body(text):
                with tf.device(node_device):
                    found = tf1.data.Iterator.from_string_handle(text, tf.int64, ())
                    return found.get_next()

            concrete = body.get_concrete_function(tf.TensorSpec([], tf.string))
            with tf.device("/job:worker/task:0/device:CPU:0"):
                concrete.add_to_graph()
                text = tf1.placeholder(tf.string, [])
                remote = tf.raw_ops.RemoteCall(target=target_device, args=[text], Tout=[tf.int64], f=concrete)[0]
            with tf1.Session(self.targets[0]) as session:
                session.run(iterator.initializer)
                where = session.run(handle)
                return [session.run(remote, {text: where}) for _ in range(3)]

    def test_a_device_of_the_same_task(self):
        device = "/job:worker/replica:0/task:0/device:CPU:1"
        self.assertEqual(self.read_from(device, device), [0, 1, 2])

    def test_a_device_of_another_task(self):
        device = "/job:worker/replica:0/task:1/device:CPU:2"
        self.assertEqual(self.read_from(device, device), [0, 1, 2])

    def test_a_short_name_means_a_device_of_the_same_task(self):
        self.assertEqual(self.read_from("/cpu:2", "/job:worker/task:0/device:CPU:2"), [0, 1, 2])

    def test_the_target_counts_and_not_what_the_nodes_of_the_function_name(self):
        for device in "/job:worker/replica:0/task:0/device:CPU:1", "/job:worker/replica:0/task:1/device:CPU:2":
            self.assertEqual(self.read_from(device, device, "/job:worker/task:0/device:CPU:0"), [0, 1, 2])

    def test_the_wrong_device_is_an_error(self):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Attempted create an iterator on device"):
            self.read_from("/job:worker/replica:0/task:1/device:CPU:0", "/job:worker/task:0/device:CPU:1")

    def test_a_task_that_is_not_there_is_an_error(self):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "No worker known as"):
            self.read_from("/job:worker/replica:0/task:9/device:CPU:0", "/job:worker/task:0/device:CPU:1")


if __name__ == "__main__":
    unittest.main()
