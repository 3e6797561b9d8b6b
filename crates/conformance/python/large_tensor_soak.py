"""A tensor that is larger than TensorFlow's largest message is sent from one of our tasks to another.

It takes 8 GB of memory, so only `cargo xtask soak` runs it.
"""
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

ELEMENTS = 550_000_000  # of four bytes: 2.2 GB, where a message ends at 2.147


class LargeTensorTest(unittest.TestCase):

    def test_2_2_gb_arrive_unchanged(self):
        with serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets, tf.Graph().as_default():
            count = tf1.placeholder(tf.int32, [])
            with tf1.device("/job:ps/task:0"):
                there = tf.range(count)
            with tf1.device("/job:worker/task:0"):
                same = tf.reduce_all(tf.equal(there, tf.range(count)))
                last = there[-1]
            with tf1.Session(targets["worker"][0]) as session:
                self.assertEqual(session.run([same, last], {count: ELEMENTS}), [True, ELEMENTS - 1])


if __name__ == "__main__":
    unittest.main()
