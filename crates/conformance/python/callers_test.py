"""Clients that disappear during a step, and clients that send compressed messages."""
import subprocess
import sys
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

CLIENT = """
import sys
import tensorflow as tf
from callers_test import Graph
graph = Graph()
with tf.compat.v1.Session(sys.argv[1], graph=graph.graph) as session:
    session.run(graph.take_locked)
"""


class Graph:
    """Queues and a mutex on the ps."""

    def __init__(self):
        self.graph = tf.Graph()
        with self.graph.as_default(), tf1.device("/job:ps/task:0"):
            values = tf1.FIFOQueue(10, [tf.int32], [[]], shared_name="values")
            begun = tf1.FIFOQueue(10, [tf.int32], [[]], shared_name="begun")
            mutex = tf.raw_ops.MutexV2(shared_name="mutex")
            self.put, self.take, self.wait_begun = values.enqueue(7), values.dequeue(), begun.dequeue()
            # Takes the mutex, prints a line, and then waits for a value.
            lock = tf.raw_ops.MutexLock(mutex=mutex)
            with tf1.control_dependencies([lock]):
                say = begun.enqueue(1)
            with tf1.control_dependencies([say]):
                taken = values.dequeue()
            with tf1.control_dependencies([taken]):
                self.take_locked = tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)
            # The mutex is free when that step has ended on the ps, with or without an error.
            self.wait_unlocked = tf.raw_ops.ConsumeMutexLock(mutex_lock=tf.raw_ops.MutexLock(mutex=mutex))


class VanishedClientTest(unittest.TestCase):

    def test_a_killed_client_leaves_no_step_behind(self):
        """Its Dequeue on the ps, which it runs through a worker's master, takes no value that arrives after its death."""
        with serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets:
            client = subprocess.Popen([sys.executable, "-c", CLIENT, targets["worker"][0]])
            try:
                graph = Graph()
                config = tf1.ConfigProto(operation_timeout_in_ms=60_000)
                with tf1.Session(targets["worker"][0], graph=graph.graph, config=config) as session:
                    session.run(graph.wait_begun)
                    client.kill()
                    client.wait()
                    session.run(graph.wait_unlocked)
                    session.run(graph.put)
                    self.assertEqual(session.run(graph.take), 7)
            finally:
                client.kill()
                client.wait()


class CompressionTest(unittest.TestCase):

    def test_requests_may_be_compressed(self):
        values = np.arange(100_000, dtype=np.float32)
        with serving.server("flowgrid") as targets:
            for algorithm in ("gzip", "deflate"):
                config = tf1.ConfigProto()
                config.rpc_options.compression_algorithm = algorithm
                config.rpc_options.compression_level = 2
                with self.subTest(algorithm=algorithm), tf.Graph().as_default():
                    x = tf1.placeholder(tf.float32, [None])
                    y = x + 1
                    with tf1.Session(targets["worker"][0], config=config) as session:
                        np.testing.assert_array_equal(session.run(y, {x: values}), values + 1)
                        options = config_pb2.CallableOptions(feed=[x.name], fetch=[y.name])
                        call = session._make_callable_from_options(options)
                        np.testing.assert_array_equal(call(values)[0], values + 1)


if __name__ == "__main__":
    unittest.main()
