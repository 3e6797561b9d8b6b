"""A ps with a journal is killed again and again: no update that a client heard of is lost, and nothing is done twice."""
import os
import tempfile
import threading
import time
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

KILLS = int(os.environ.get("JOURNAL_KILLS", "5"))


def build(worker):
    """Counters of both kinds, a matrix of which rows change, and a slot that an optimizer keeps."""
    with tf1.device("/job:ps/task:0"):
        step = tf1.get_variable("step", [], tf.int64, tf1.zeros_initializer(), use_resource=False)
        rows = tf1.get_variable("rows", [50, 4], tf.float32, tf1.zeros_initializer(), use_resource=True)
        weights = tf1.get_variable("weights", [8], tf.float32, tf1.ones_initializer(), use_resource=True)
        with tf.control_dependencies([tf1.scatter_add(rows, [worker], tf.ones([1, 4]))]):
            advance = tf1.assign_add(step, 1, use_locking=True)
        with tf1.device(f"/job:worker/task:{worker}"):
            loss = tf.reduce_sum(tf.square(weights))
        train = tf1.train.MomentumOptimizer(1e-6, 0.5).minimize(loss)
    return step, rows, advance, tf.group(train)


class Client(threading.Thread):
    """Counts what it was told of."""

    def __init__(self, target, worker):
        super().__init__()
        self.target, self.worker = target, worker
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.step, self.rows, self.advance, self.train = build(worker)
            self.missing = tf1.report_uninitialized_variables()
        self.counted, self.failed, self.latest = 0, 0, 0
        self.went_back, self.forgot, self.stopping = [], [], False

    def run(self):
        while not self.stopping:
            try:
                config = tf1.ConfigProto(operation_timeout_in_ms=8000)
                with tf1.Session(self.target, graph=self.graph, config=config) as session:
                    missing = session.run(self.missing)
                    if missing.size:
                        self.forgot.append(missing.tolist())
                        return
                    while not self.stopping:
                        value, _ = session.run([self.advance, self.train])
                        self.counted += 1
                        if value <= self.latest:
                            self.went_back.append((self.latest, value))
                        self.latest = value
            except (tf.errors.UnavailableError, tf.errors.AbortedError):
                self.failed += 1
                time.sleep(0.02)  # the ps is being started


class JournalTest(unittest.TestCase):

    def test_a_killed_ps_knows_what_it_knew(self):
        size = {"ps": 1, "worker": 2}
        with tempfile.TemporaryDirectory() as folder, serving.tasks(
                "flowgrid", size, flags={"ps": ["--journal", folder]}) as cluster:
            self.kill_again_and_again(cluster)

    def kill_again_and_again(self, cluster):
        clients = [Client(cluster.target("worker", worker), worker) for worker in range(2)]
        with tf1.Session(clients[0].target, graph=clients[0].graph) as session:
            with clients[0].graph.as_default():
                session.run(tf1.global_variables_initializer())
        for client in clients:
            client.start()
        for kill in range(KILLS):
            goal = [client.counted + 20 for client in clients]
            deadline = time.monotonic() + 60
            while any(client.counted < want for client, want in zip(clients, goal)):
                self.assertLess(time.monotonic(), deadline, f"no steps after kill {kill}")
                self.assertEqual([client.forgot for client in clients], [[], []])
                time.sleep(0.005)
            cluster.restart("ps", 0)
        goal = [client.counted + 20 for client in clients]
        deadline = time.monotonic() + 60
        while any(client.counted < want for client, want in zip(clients, goal)):
            self.assertLess(time.monotonic(), deadline, "no steps after the last kill")
            time.sleep(0.005)
        for client in clients:
            client.stopping = True
        for client in clients:
            client.join()
        with tf1.Session(clients[0].target, graph=clients[0].graph) as session:
            step, rows = session.run([clients[0].step, clients[0].rows])
        for client in clients:
            self.assertEqual(client.went_back, [])
            # A step that was cut off may have been done or not; a step that was answered was done, once.
            done = rows[client.worker, 0]
            self.assertGreaterEqual(done, client.counted)
            self.assertLessEqual(done, client.counted + client.failed)
        np.testing.assert_array_equal(rows[2:], np.zeros([48, 4]))
        self.assertGreaterEqual(step, sum(client.counted for client in clients))
        self.assertLessEqual(step, sum(client.counted + client.failed for client in clients))
        print(f"{KILLS} kills, {step} steps, {[client.failed for client in clients]} calls failed")


if __name__ == "__main__":
    unittest.main()
