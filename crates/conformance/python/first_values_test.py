"""A variable whose initial value repeats one number takes no memory until it is changed, and other tasks can read it."""
import unittest

import numpy as np
import tensorflow as tf

import memory
import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

ROWS, COLUMNS = 256, 1 << 18  # 256 MB
MOST = 64  # MB of a ps without any of them


class FirstValuesTest(unittest.TestCase):

    def check(self, initializer, resource):
        with tf.Graph().as_default(), serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets:
            with tf1.device("/job:ps"):
                variable = tf1.get_variable("v", [ROWS, COLUMNS], initializer=initializer, use_resource=resource)
                update = tf1.scatter_add(variable, [3], tf.ones([1, COLUMNS]))
            with tf1.device("/job:worker"):
                rows = tf.reduce_sum(tf.cast(variable, tf.float64), 1)
            with tf1.Session(targets["worker"][0]) as session:
                session.run(variable.initializer)
                first = np.full(ROWS, 1.5 * COLUMNS)
                np.testing.assert_array_equal(session.run(rows), first)
                self.assertLess(memory.peak(targets.processes[0]), MOST)
                session.run(update)
                first[3] = 2.5 * COLUMNS
                np.testing.assert_array_equal(session.run(rows), first)

    def test_a_constant(self):
        self.check(tf1.constant_initializer(1.5), False)

    def test_a_constant_of_a_resource(self):
        self.check(tf1.constant_initializer(1.5), True)

    def test_filled_where_it_lives(self):
        self.check(lambda shape, dtype, partition_info=None: tf.fill(shape, 1.5), True)


if __name__ == "__main__":
    unittest.main()
