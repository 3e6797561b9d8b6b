"""Saving a pipeline while a stage waits for the next element of its input: no element is lost."""
import os
import tempfile
import unittest

import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
COUNT = 24
# A stage that reads ahead finds its input in this pause.
PAUSE_MICROS = 3000


def pairs():
    """A batch has its first element, and waits for the second, most of the time."""
    return tf.data.Dataset.range(COUNT).apply(testing.sleep(PAUSE_MICROS)).batch(2)


def slowly(x):
    """Takes longer than an element of the input, so that it is called on another thread."""
    matrix = tf.fill([400, 400], tf.cast(tf.reshape(x, [-1])[0], tf.float32))
    return x + tf.cast(tf.matmul(matrix, matrix)[0, 0] * 0, tf.int64)


def pairs_filtered():
    options = tf.data.Options()
    options.experimental_optimization.filter_parallelization = True
    return pairs().filter(lambda x: tf.reduce_all(slowly(x) >= 0)).with_options(options)


PIPELINES = {
    "parallel map": lambda: pairs().map(slowly, num_parallel_calls=4).prefetch(2),
    "map and batch": lambda: pairs().apply(
        tf.data.experimental.map_and_batch(slowly, 2, num_parallel_calls=4)).prefetch(2),
    "parallel batch": lambda: pairs().batch(2, num_parallel_calls=2).prefetch(2),
    "parallel interleave": lambda: pairs().interleave(
        lambda x: tf.data.Dataset.from_tensors(slowly(x)), cycle_length=2, num_parallel_calls=2).prefetch(2),
    "parallel filter": lambda: pairs_filtered().prefetch(2),
    "padded batch": lambda: pairs().map(slowly, num_parallel_calls=2).padded_batch(2, [2]).prefetch(2),
}


class IteratorSettleTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(serving.server("flowgrid"))["worker"][0]

    def test_elements_that_are_on_their_way_are_saved(self):
        # Three times: which element is on its way at a save differs.
        for name, make in [*PIPELINES.items()] * 3:
            with self.subTest(pipeline=name), tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
                iterator = tf1.data.make_initializable_iterator(make())
                element = iterator.get_next()
                saver = tf1.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
                seen = []
                with tf1.Session(self.target) as session:
                    session.run(iterator.initializer)
                    # Each save finds another moment of the pipeline.
                    while len(seen) < COUNT:
                        try:
                            seen += session.run(element).ravel().tolist()
                        except tf.errors.OutOfRangeError:
                            break
                        path = saver.save(session, os.path.join(folder, "state"), write_meta_graph=False)
                        session.run(iterator.initializer)
                        saver.restore(session, path)
                self.assertEqual(sorted(seen), list(range(COUNT)))


if __name__ == "__main__":
    unittest.main()
