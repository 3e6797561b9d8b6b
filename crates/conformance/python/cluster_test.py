"""Clusters of ps and worker tasks: ours, TensorFlow's, and mixed, with an unmodified client."""
import os
import re
import subprocess
import tempfile
import threading
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.python.client import timeline

import serving
from threads import together

tf1 = tf.compat.v1
tf1.disable_eager_execution()

OURS, THEIRS = "flowgrid", "tensorflow"


def example(step, count=8):
    """Inputs and labels of a step, the same for all workers."""
    rng = np.random.RandomState(100 + step)
    x = rng.rand(count, 4).astype(np.float32)
    return x, (x.sum(1, keepdims=True) * 2 - 1).astype(np.float32)


def model(x, y, resource):
    """A small network whose layers are on different ps tasks."""
    with tf1.variable_scope("model", use_resource=resource, reuse=tf1.AUTO_REUSE):
        hidden = x
        for layer, units in enumerate([5, 3, 1]):
            w = tf1.get_variable(f"w{layer}", [hidden.shape[1], units],
                                 initializer=tf1.glorot_uniform_initializer(seed=layer))
            b = tf1.get_variable(f"b{layer}", [units], initializer=tf1.zeros_initializer())
            hidden = tf.matmul(hidden, w) + b
            hidden = tf.tanh(hidden) if units > 1 else hidden
    return tf.reduce_mean(tf.square(hidden - y))


def in_graph(targets, workers, resource, steps=10):
    """One client, one graph, a tower on every worker; returns the losses."""
    with tf.Graph().as_default():
        x, y = tf1.placeholder(tf.float32, [None, 4]), tf1.placeholder(tf.float32, [None, 1])
        losses = []
        for tower, (part_x, part_y) in enumerate(zip(tf.split(x, workers), tf.split(y, workers))):
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=len(targets["ps"]),
                                                            worker_device=f"/job:worker/task:{tower}")):
                losses.append(model(part_x, part_y, resource))
        loss = tf.add_n(losses) / workers
        train = tf1.train.MomentumOptimizer(0.05, 0.9).minimize(loss, colocate_gradients_with_ops=True)
        with tf1.Session(targets["worker"][0]) as session:
            session.run(tf1.global_variables_initializer())
            found = []
            for step in range(steps):
                a, b = example(step, 4 * workers)
                found.append(session.run([loss, train], {x: a, y: b})[0])
            return found


def between_graph(targets, resource, steps=100):
    """A client for every worker. They take turns, so that the losses are deterministic. Returns the losses."""
    turn, found, errors = threading.Condition(), [], []

    def client(task, count):
        with tf.Graph().as_default():
            setter = tf1.train.replica_device_setter(ps_tasks=len(targets["ps"]),
                                                     worker_device=f"/job:worker/task:{task}")
            with tf1.device(setter):
                x, y = tf1.placeholder(tf.float32, [None, 4]), tf1.placeholder(tf.float32, [None, 1])
                step = tf1.train.get_or_create_global_step()
                loss = model(x, y, resource)
                train = tf1.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
                ready = tf1.report_uninitialized_variables()
            with tf1.Session(targets["worker"][task]) as session:
                if task == 0:
                    session.run(tf1.global_variables_initializer())
                for number in range(task, steps, count):
                    with turn:
                        if not turn.wait_for(lambda: len(found) == number or errors, timeout=60):
                            raise TimeoutError(f"worker {task} never got step {number}")
                        if errors:
                            return
                        assert not session.run(ready).size
                        a, b = example(number)
                        found.append(session.run([loss, train], {x: a, y: b})[0])
                        assert session.run(step) == len(found)
                        turn.notify_all()

    def guarded(task, count):
        try:
            client(task, count)
        except Exception as error:
            with turn:
                errors.append(error)
                turn.notify_all()
            raise

    count = len(targets["worker"])
    together(*[lambda task=task: guarded(task, count) for task in range(count)])
    return found


class ClusterTest(unittest.TestCase):

    def test_in_graph_replication_over_three_workers(self):
        size = {"ps": 2, "worker": 3}
        for resource in (False, True):
            with self.subTest(resource=resource):
                with serving.cluster(THEIRS, size) as targets:
                    expected = in_graph(targets, 3, resource)
                with serving.cluster(OURS, size) as targets:
                    np.testing.assert_allclose(in_graph(targets, 3, resource), expected, rtol=1e-5)

    def test_mixed_clusters_train_alike(self):
        """A client's master is the worker it trains on."""
        mixes = {
            "TensorFlow alone": {("ps", 0): THEIRS, ("worker", 0): THEIRS, ("worker", 1): THEIRS},
            "ours alone": {("ps", 0): OURS, ("worker", 0): OURS, ("worker", 1): OURS},
            "our ps, TensorFlow's workers and masters": {("ps", 0): OURS, ("worker", 0): THEIRS, ("worker", 1): THEIRS},
            "TensorFlow's ps, our workers and masters": {("ps", 0): THEIRS, ("worker", 0): OURS, ("worker", 1): OURS},
            "two of each": {("ps", 0): THEIRS, ("ps", 1): OURS, ("worker", 0): OURS, ("worker", 1): THEIRS},
        }
        expected = {}
        for name, kinds in mixes.items():
            size = {job: sum(task[0] == job for task in kinds) for job in ("ps", "worker")}
            with serving.cluster(kinds, size) as targets:
                for resource in (False, True):
                    with self.subTest(mix=name, resource=resource):
                        losses = between_graph(targets, resource)
                        print(f"{name}, {len(losses)} steps: loss {losses[0]:.6f}, then {losses[-1]:.6f}")
                        np.testing.assert_allclose(losses, expected.setdefault(resource, losses), rtol=1e-5)
                        self.assertLess(losses[-1], 0.5 * losses[0])

    def test_values_of_every_kind_cross(self):
        values = [np.arange(6, dtype=np.float64).reshape(2, 3), np.array([True, False]), np.array(7, np.int8),
                  np.array([b"a", b"", b"xyz" * 1000]), np.zeros([0, 3], np.float32),
                  np.array([1 + 2j], np.complex64), np.random.RandomState(0).rand(1 << 18).astype(np.float32)]
        for kinds in ({("ps", 0): OURS, ("worker", 0): OURS}, {("ps", 0): THEIRS, ("worker", 0): OURS},
                      {("ps", 0): OURS, ("worker", 0): THEIRS}):
            with self.subTest(kinds=kinds), serving.cluster(kinds, {"ps": 1, "worker": 1}) as targets:
                with tf.Graph().as_default(), tf1.Session(targets["worker"][0]) as session:
                    fetches, feeds = [], {}
                    for value in values:
                        fed = tf1.placeholder(tf.as_dtype(value.dtype if value.dtype.kind != "S" else tf.string))
                        feeds[fed] = value
                        with tf1.device("/job:ps/task:0"):
                            there = tf.identity(fed)
                        with tf1.device("/job:worker/task:0"):
                            fetches.append((there, tf.identity(there)))
                    for found, value in zip(session.run(fetches, feeds), values):
                        expected = value.astype(object) if value.dtype.kind == "S" else value
                        for fetched in found:  # from the other task, and from the master's own
                            np.testing.assert_array_equal(fetched, expected)

    def test_a_branch_and_a_loop_over_two_tasks(self):
        def on(device, value):
            with tf1.device(device):
                return value()

        def check(target):
            with tf.Graph().as_default():
                x = tf1.placeholder(tf.float32, [])
                branch = tf.cond(x > 0, lambda: on("/job:ps/task:0", lambda: x * 2),
                                 lambda: on("/job:worker/task:0", lambda: x - 1))
                loop = tf.while_loop(lambda i, s: i < 5,
                                     lambda i, s: (i + 1, on("/job:ps/task:0", lambda: s * 2 + x)), [0, x])[1]
                slope = tf.gradients(loop, x)[0]
                with tf1.Session(target) as session:
                    self.assertEqual(session.run(branch, {x: 3}), 6)
                    self.assertEqual(session.run(branch, {x: -3}), -4)
                    self.assertEqual(session.run(loop, {x: 1}), 63)
                    self.assertEqual(session.run(slope, {x: 1}), 63)

        for kinds in (OURS, {("ps", 0): THEIRS, ("worker", 0): OURS}, {("ps", 0): OURS, ("worker", 0): THEIRS}):
            with serving.cluster(kinds, {"ps": 1, "worker": 1}) as targets:
                for version in (1, 2):
                    with self.subTest(kinds=kinds, control_flow=version):
                        (tf1.enable_control_flow_v2 if version == 2 else tf1.disable_control_flow_v2)()
                        check(targets["worker"][0])

    def test_a_traced_step_tells_what_travelled(self):
        def received(targets):
            """The bytes that each device received from each other one, from the rows of a traced step."""
            with tf.Graph().as_default(), tf1.Session(targets["worker"][0]) as session:
                with tf1.device("/job:ps/task:0"):
                    v = tf1.get_variable("v", [1000], initializer=tf1.ones_initializer())
                with tf1.device("/job:worker/task:0"):
                    twice = v * 2
                with tf1.device("/job:ps/task:0"):
                    add = tf1.assign_add(v, twice)
                session.run(v.initializer)
                metadata = tf1.RunMetadata()
                session.run(add.op, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
            timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
            rows = []
            for device in metadata.step_stats.dev_stats:
                for node in device.node_stats:
                    if node.node_name == "RecvTensor":
                        label = re.fullmatch(r"\[(\d+)B\] \[[0-9.]+[MG]b/s\] (\S+) from (\S+) to (\S+)", node.timeline_label)
                        self.assertIsNotNone(label, node.timeline_label)
                        self.assertEqual(label[4], device.device)
                        size = node.output[0].tensor_description.allocation_description.requested_bytes
                        self.assertEqual(size, int(label[1]))
                        self.assertGreater(node.all_start_micros, 0)
                        rows.append((device.device, label[3], size))
            return sorted(rows)

        # A TensorFlow master does not wait until tasks record transfers, so it may report fewer rows.
        ps, worker = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"
        for kinds in ({("ps", 0): THEIRS, ("worker", 0): OURS}, OURS):
            with self.subTest(kinds=kinds), serving.cluster(kinds, {"ps": 1, "worker": 1}) as targets:
                self.assertEqual(received(targets), [(ps, worker, 4000), (worker, ps, 4000)])

    def test_a_server_that_tensorflow_describes(self):
        config = tf1.ConfigProto(allow_soft_placement=True)
        spec = tf.train.ClusterSpec({"ps": ["127.0.0.1:0"], "worker": {3: "127.0.0.1:0"}})
        described = tf.train.ServerDef(cluster=spec.as_cluster_def(), job_name="worker", task_index=3, protocol="grpc",
                                       default_session_config=config)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in ("server.pb", described.SerializeToString()), ("server.pbtxt", str(described).encode()):
                path = os.path.join(folder, name)
                with open(path, "wb") as file:
                    file.write(content)
                command = [os.environ["FLOWGRID_BIN"], "server", "--server-def", path]
                with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
                    try:
                        task, _, _, target = serving.wait_ready(process).split()
                        self.assertEqual(task, "/job:worker/replica:0/task:3")
                        filters = tf1.ConfigProto(device_filters=["/job:worker"])
                        with tf.Graph().as_default(), tf1.Session(target, config=filters) as session:
                            with tf1.device("/job:worker/task:3/device:GPU:0"):  # soft placement finds the CPU
                                self.assertEqual(session.run(tf.constant(2) * 3), 6)
                    finally:
                        process.kill()

    def test_errors_name_task_and_node(self):
        with serving.cluster(OURS, {"ps": 1, "worker": 1}) as targets:
            with tf.Graph().as_default(), tf1.Session(targets["worker"][0]) as session:
                with tf1.device("/job:ps/task:0"):
                    a = tf1.placeholder(tf.float32)
                    product = tf1.matmul(a, a, name="product")
                with tf1.device("/job:worker/task:0"):
                    result = product + 1
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "/job:ps/replica:0/task:0") as caught:
                    session.run(result, {a: [[1, 2]]})
                self.assertIn("product", str(caught.exception))
                np.testing.assert_array_equal(session.run(result, {a: [[2]]}), [[5]])
                with tf1.device("/job:ps/task:9"):
                    missing = tf.constant(1.0)
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "/job:ps/replica:0/task:0"):
                    session.run(missing)


if __name__ == "__main__":
    unittest.main()
