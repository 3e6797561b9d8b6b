"""Synchronous training: SyncReplicasOptimizer on our servers, with workers in Python and in Rust."""
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import threading
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_resource_variable_ops

import serving
from threads import together

tf1 = tf.compat.v1
tf1.disable_eager_execution()

# TensorFlow's queue runner threads end with the error that their session was closed.
threading.excepthook = lambda args: None

OURS, THEIRS = "flowgrid", "tensorflow"
TWO = {"ps": 1, "worker": 2}
EXAMPLES = pathlib.Path(__file__).parents[2] / "flowgrid" / "examples"
STEPS = 6


def twin():
    """08_sync_worker.py as a module."""
    spec = importlib.util.spec_from_file_location("sync_worker", EXAMPLES / "08_sync_worker.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example(step, worker=None):
    """Inputs and labels of a step: all, or the half of one worker."""
    rng = np.random.RandomState(100 + step)
    x = rng.rand(8, 4).astype(np.float32)
    y = (x.sum(1, keepdims=True) * 2 - 1).astype(np.float32)
    part = slice(None) if worker is None else slice(4 * worker, 4 * worker + 4)
    return x[part], y[part]


def model(resource):
    x, y = tf1.placeholder(tf.float32, [None, 4]), tf1.placeholder(tf.float32, [None, 1])
    with tf1.variable_scope("model", use_resource=resource):
        w = tf1.get_variable("w", [4, 1], initializer=tf1.constant_initializer(0.1))
        b = tf1.get_variable("b", [1], initializer=tf1.zeros_initializer())
    return x, y, w, tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))


def alone(resource):
    """The weights that one worker with all examples learns, in TensorFlow itself."""
    with tf.Graph().as_default(), tf1.Session() as session:
        x, y, w, loss = model(resource)
        train = tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        session.run(tf1.global_variables_initializer())
        for step in range(STEPS):
            a, b = example(step)
            session.run(train, {x: a, y: b})
        return session.run(w)


class Worker:
    """A worker of a synchronous job: `build` returns placeholders, weights and loss."""

    def __init__(self, targets, worker, build, optimizer, tokens=-1):
        self.worker, self.graph, self.process = worker, tf.Graph(), targets.processes[1 + worker]
        setter = tf1.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{worker}")
        with self.graph.as_default(), tf1.device(setter):
            self.step = tf1.train.get_or_create_global_step()
            self.fed, self.w, loss = build()
            optimizer = optimizer()
            self.train_op = optimizer.minimize(loss, global_step=self.step)
            hook = optimizer.make_session_run_hook(worker == 0, num_tokens=tokens)
            with tf1.device("/job:ps/task:0"):
                self.counters = {fate: self.counter(fate) for fate in ("accepted", "stale", "dropped")}
            # The limit applies to closing sessions whose server was killed.
            self.session = tf1.train.MonitoredTrainingSession(
                targets["worker"][worker], is_chief=worker == 0, hooks=[hook], stop_grace_period_secs=0,
                config=tf1.ConfigProto(operation_timeout_in_ms=0 if worker == 0 else 10000))

    @staticmethod
    def counter(fate):
        handle = gen_resource_variable_ops.var_handle_op(dtype=tf.int64, shape=[],
                                                         shared_name=f"model/w:0/grad_accum/{fate}")
        return gen_resource_variable_ops.read_variable_op(handle, tf.int64)

    def feed(self, *values, seconds=None):
        """One step with these values."""
        options = tf1.RunOptions(timeout_in_ms=int(seconds * 1000)) if seconds else None
        self.session.run(self.train_op, dict(zip(self.fed, values)), options=options)

    def read(self, fetch):
        """A value, without counting as a training step."""
        return self.session.run_step_fn(lambda step_context: step_context.session.run(fetch))

    def count(self):
        return {fate: int(self.read(counter)) for fate, counter in self.counters.items()}

    def close(self):
        with contextlib.suppress(tf.errors.OpError):
            self.session.close()


class Replica(Worker):
    """One of two workers that learn from their halves of the examples."""

    def __init__(self, targets, worker, resource=True, tokens=-1):
        def build():
            x, y, w, loss = model(resource)
            return (x, y), w, loss
        super().__init__(targets, worker, build, lambda: tf1.train.SyncReplicasOptimizer(
            tf1.train.MomentumOptimizer(0.1, 0.9), 2), tokens)

    def train(self, step, seconds=None):
        self.feed(*example(step, self.worker), seconds=seconds)


def descent(aggregate, total=None):
    return lambda: tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(1.0), aggregate, total)


def averaging():
    """Gradient descent of two workers, with moving averages of the trained variables."""
    averages = tf1.train.ExponentialMovingAverage(0.5)
    return tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(1.0), 2, variable_averages=averages)


def line():
    """A loss whose gradient equals the feed."""
    x = tf1.placeholder(tf.float32, [])
    with tf1.variable_scope("model", use_resource=True):
        w = tf1.get_variable("w", initializer=10.0)
    return (x,), w, w * x


def rows():
    """A loss of rows of a table, whose gradient has the rows and values of the feed."""
    ids, scale = tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.float32, [])
    with tf1.variable_scope("model", use_resource=True):
        table = tf1.get_variable("w", [4, 1], initializer=tf1.zeros_initializer())
    return (ids, scale), table, scale * tf.reduce_sum(tf.nn.embedding_lookup(table, ids))


# The rows that each of two workers trains with their gradients, and what a step subtracts: the mean over the workers that
# have the row. Rows are in order: TensorFlow's accumulator, which gets them unsorted, would not match others.
ROWS, SUBTRACTED = (([1, 3], 1), ([0, 1], 2)), [[2], [1.5], [0], [1]]


@contextlib.contextmanager
def job(kinds=OURS, policy="tf", workers=2, **options):
    """The workers of a synchronous job on a cluster for two."""
    with serving.cluster(kinds, TWO, ["--sync-policy", policy]) as targets:
        replicas = [Replica(targets, worker, **options) for worker in range(workers)]
        yield replicas
        for replica in reversed(replicas):
            replica.close()


def train_all(replicas, step):
    together(*[lambda replica=replica: replica.train(step) for replica in replicas])


class SyncTest(unittest.TestCase):

    def test_two_workers_are_as_one(self):
        mixes = {"ours": OURS,
                 "our ps": {("ps", 0): OURS, ("worker", 0): THEIRS, ("worker", 1): OURS},
                 "their ps": {("ps", 0): THEIRS, ("worker", 0): OURS, ("worker", 1): THEIRS}}
        for resource in (False, True):
            expected = alone(resource)
            for name, kinds in mixes.items():
                # Without initial tokens, and in lockstep, each worker contributes one gradient to each step.
                with self.subTest(mix=name, resource=resource), job(kinds, resource=resource, tokens=0) as replicas:
                    for step in range(STEPS):
                        train_all(replicas, step)
                    np.testing.assert_allclose(replicas[0].read(replicas[0].w), expected, atol=1e-6)
                    self.assertEqual(replicas[1].read(replicas[1].step), STEPS)
                    if name in ("ours", "our ps"):
                        self.assertEqual(replicas[0].count(), {"accepted": 2 * STEPS, "stale": 0, "dropped": 0})

    def test_exact_workers_need_no_lockstep(self):
        with job(policy="exact") as replicas:
            together(*[lambda replica=replica: [replica.train(step) for step in range(STEPS)] for replica in replicas])
            np.testing.assert_allclose(replicas[0].read(replicas[0].w), alone(True), atol=1e-6)

    def test_a_lone_worker_makes_no_exact_step(self):
        with job(policy="exact", workers=1) as [chief]:
            for step in range(2):
                with self.assertRaises(tf.errors.DeadlineExceededError):
                    chief.train(step, seconds=1)
            self.assertEqual(chief.read(chief.step), 0)
            self.assertEqual(chief.count(), {"accepted": 1, "stale": 0, "dropped": 1})

    def test_a_lone_worker_makes_a_step_of_tensorflow(self):
        for kind in (THEIRS, OURS):
            with self.subTest(kind=kind), job(kind, workers=1) as [chief]:
                for step in range(3):
                    chief.train(step, seconds=60)
                self.assertEqual(chief.read(chief.step), 1)

    def test_a_killed_worker_is_not_waited_for_when_members_shrink(self):
        with job(policy="shrink") as replicas:
            train_all(replicas, 0)
            replicas[1].process.kill()
            for step in range(1, 4):
                replicas[0].train(step, seconds=6)
            self.assertEqual(replicas[0].read(replicas[0].step), 4)

    def test_a_killed_worker_stops_the_others_in_tensorflow(self):
        for kind in (THEIRS, OURS):
            with self.subTest(kind=kind), job(kind, tokens=0) as replicas:
                train_all(replicas, 0)
                replicas[1].process.kill()
                with self.assertRaises(tf.errors.DeadlineExceededError):
                    replicas[0].train(1, seconds=4)
                self.assertEqual(replicas[0].read(replicas[0].step), 1)

    def test_the_gradient_of_a_backup_worker_comes_too_late(self):
        with serving.cluster(OURS, {"ps": 1, "worker": 3}) as targets:
            workers = [Worker(targets, worker, line, descent(2, 3), tokens=0) for worker in range(3)]
            expected = 10
            for step, mean in enumerate((2, 3, 4)):
                late = (step + 2) % 3
                first, second = [worker for worker in workers if worker.worker != late]
                together(lambda: first.feed(mean - 1), lambda: second.feed(mean + 1))
                workers[late].feed(100)
                expected -= mean
                self.assertEqual(workers[late].read([workers[late].w, workers[late].step]), [expected, step + 1])
            self.assertEqual(workers[0].count(), {"accepted": 6, "stale": 3, "dropped": 0})
            for worker in reversed(workers):
                worker.close()

    def test_a_worker_gives_several_gradients_for_a_step(self):
        for kind in (THEIRS, OURS):
            with self.subTest(kind=kind), serving.cluster(kind, {"ps": 1, "worker": 1}) as targets:
                # With one initial token, the second gradient of each step waits until the step is applied.
                chief = Worker(targets, 0, line, descent(2, 1), tokens=1)
                expected = 10
                for step, mean in enumerate((2, 3, 4)):
                    chief.feed(mean - 1, seconds=60)
                    chief.feed(mean + 1, seconds=60)
                    expected -= mean
                    self.assertEqual(chief.read([chief.w, chief.step]), [expected, step + 1])
                if kind == OURS:
                    self.assertEqual(chief.count(), {"accepted": 6, "stale": 0, "dropped": 0})
                chief.close()

    def test_averages_follow_each_step(self):
        for kinds in (THEIRS, OURS, {("ps", 0): OURS, ("worker", 0): THEIRS, ("worker", 1): OURS}):
            with self.subTest(kinds=kinds), serving.cluster(kinds, TWO) as targets:
                workers = [Worker(targets, worker, line, averaging, tokens=0) for worker in range(2)]
                chief, other = workers
                # Only the trained variable has an average.
                [average] = [variable for variable in chief.graph.get_collection("variables")
                             if variable.op.name.endswith("/ExponentialMovingAverage")]
                expected, before, after = 10, 10, 10
                for mean in (2, 4, 6):
                    together(lambda: chief.feed(mean - 1), lambda: other.feed(mean + 1))
                    expected -= mean
                    before, after = after, (after + expected) / 2
                    self.assertEqual(other.read(other.w), expected)
                    # The chief updates it after it has added the tokens, before it applies another step.
                    self.assertIn(chief.read(average), (before, after))
                self.assertEqual((before, after), (6.5, 2.25))
                for worker in reversed(workers):
                    worker.close()

    def test_rows_are_averaged_over_those_who_have_them(self):
        for kinds in (OURS, {("ps", 0): OURS, ("worker", 0): THEIRS, ("worker", 1): OURS}):
            with self.subTest(kinds=kinds), serving.cluster(kinds, TWO) as targets:
                workers = [Worker(targets, worker, rows, descent(2), tokens=0) for worker in range(2)]
                for step in (1, 2):
                    together(*[lambda worker=worker: worker.feed(*ROWS[worker.worker]) for worker in workers])
                    np.testing.assert_array_equal(workers[0].read(workers[0].w), np.multiply(SUBTRACTED, -step))
                for worker in reversed(workers):
                    worker.close()

    def test_rows_of_a_worker_in_rust_and_one_in_python(self):
        program = pathlib.Path(os.environ["FLOWGRID_BIN"]).parent / "examples" / "sync_peer"
        for rust in (0, 1):
            with self.subTest(rust=rust), serving.cluster(OURS, TWO, ["--sync-policy", "exact"]) as targets:
                arguments = [targets["worker"][rust], rust, 2, ROWS[rust][1], *ROWS[rust][0]]
                # Other workers start when the chief has initialized the table.
                python = rust and Worker(targets, 0, rows, descent(2))
                with subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.PIPE, text=True) as other:
                    self.assertEqual(other.stdout.readline(), "ready\n")
                    python = python or Worker(targets, 1, rows, descent(2))
                    for _ in range(2):
                        python.feed(*ROWS[1 - rust])
                    text, _ = other.communicate(timeout=60)
                self.assertEqual(other.returncode, 0, text)
                expected = np.multiply(SUBTRACTED, -2)
                np.testing.assert_array_equal(python.read(python.w), expected)
                np.testing.assert_array_equal(np.array(json.loads(text)).reshape(4, 1), expected)
                python.close()

    def test_a_worker_in_rust_and_one_in_python(self):
        program = pathlib.Path(os.environ["FLOWGRID_BIN"]).parent / "examples" / "08_sync_worker"
        python = twin()
        for rust in (0, 1):
            with self.subTest(rust=rust), serving.cluster(OURS, TWO, ["--sync-policy", "exact"]) as targets:
                with subprocess.Popen([program, targets["worker"][rust], str(rust)], stdout=subprocess.PIPE,
                                      text=True) as other:
                    found = python.work(targets["worker"][1 - rust], 1 - rust)
                    text, _ = other.communicate(timeout=60)
                self.assertEqual(other.returncode, 0, text)
                np.testing.assert_allclose(found, joined(python), atol=1e-6)
                theirs = [float(number) for number in re.findall(r"-?\d+\.\d+", text)]
                np.testing.assert_allclose(theirs, joined(python), atol=1e-6)


def joined(python):
    """What one worker learns from the examples of both, in TensorFlow itself."""
    with tf.Graph().as_default(), tf1.Session() as session:
        x, y = tf1.placeholder(tf.float32, [None, 1]), tf1.placeholder(tf.float32, [None, 1])
        w, b = tf1.get_variable("w", initializer=tf.zeros([1, 1])), tf1.get_variable("b", initializer=tf.zeros([1]))
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y)))
        session.run(tf1.global_variables_initializer())
        for step in range(python.STEPS):
            parts = [python.examples(step, worker) for worker in range(python.WORKERS)]
            session.run(train, {x: sum((xs for xs, _ in parts), []), y: sum((ys for _, ys in parts), [])})
        w, b = session.run([w, b])
        return float(w[0, 0]), float(b[0])


if __name__ == "__main__":
    unittest.main()
