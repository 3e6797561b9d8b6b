"""Saving and restoring with Python's default Saver: the task that writes or reads the checkpoint never holds a whole
tensor of another task. Each task may take 64 MB above its own variables."""
import contextlib
import glob
import os
import signal
import tempfile
import threading
import time
import unittest

import numpy as np
import tensorflow as tf

import memory
import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

OURS, THEIRS = "flowgrid", "tensorflow"
SIZE = {"ps": 2, "worker": 1}
TASKS = [("ps", 0), ("ps", 1), ("worker", 0)]
ELEMENTS = 16 << 20  # int32: 64 MB in each of four variables
OWN = {("ps", 0): 128, ("ps", 1): 128, ("worker", 0): 0}
MOST = 64  # MB in addition to its own variables


def expected(number):
    return np.arange(number * ELEMENTS, (number + 1) * ELEMENTS, dtype=np.int32)


def build(use_resource, saver_device=None):
    """Four variables on two ps, a Saver, and a check of all values."""
    checks = []
    for number in range(4):
        with tf1.device(f"/job:ps/task:{number % 2}"):
            values = tf.range(number * ELEMENTS, (number + 1) * ELEMENTS)
            variable = tf1.get_variable(f"v{number}", initializer=lambda values=values: values, dtype=tf.int32,
                                        use_resource=use_resource)
            checks.append(tf.reduce_all(tf.equal(variable, values)))
    with tf1.device(saver_device):
        return tf1.train.Saver(), checks


class Base(unittest.TestCase):

    def check_peaks(self, targets, kinds):
        for task, process in zip(TASKS, targets.processes):
            kind = kinds if isinstance(kinds, str) else kinds[task]
            if kind == OURS:
                self.assertLessEqual(memory.peak(process), OWN[task] + MOST, f"peak of {task}")

    def check_values(self, prefix):
        """Real TensorFlow reads the saved values."""
        reader = tf.train.load_checkpoint(prefix)
        self.assertEqual(sorted(reader.get_variable_to_shape_map()), ["v0", "v1", "v2", "v3"])
        for number in range(4):
            np.testing.assert_array_equal(reader.get_tensor(f"v{number}"), expected(number))


class MemoryTest(Base):

    def save(self, folder, kinds, use_resource, saver_device=None):
        with serving.cluster(kinds, SIZE) as targets, tf.Graph().as_default():
            saver, _ = build(use_resource, saver_device)
            with tf1.Session(targets["worker"][0]) as session:
                memory.initialize(session, targets.processes)
                prefix = saver.save(session, os.path.join(folder, "model"), write_meta_graph=False)
            self.check_peaks(targets, kinds)
        self.check_values(prefix)
        return prefix

    def restore(self, prefix, kinds, use_resource, saver_device=None):
        with serving.cluster(kinds, SIZE) as targets, tf.Graph().as_default():
            saver, checks = build(use_resource, saver_device)
            with tf1.Session(targets["worker"][0]) as session:
                saver.restore(session, prefix)
                self.check_peaks(targets, kinds)
                self.assertEqual(session.run(checks), [True] * 4)

    def both_ways(self, kinds, use_resource=False, saver_device=None):
        with tempfile.TemporaryDirectory() as folder:
            prefix = self.save(folder, kinds, use_resource, saver_device)
            self.restore(prefix, kinds, use_resource, saver_device)

    def test_reference_variables(self):
        self.both_ways(OURS)

    def test_resource_variables(self):
        self.both_ways(OURS, use_resource=True)

    def test_one_ps_saves_for_both(self):
        self.both_ways(OURS, saver_device="/job:ps/task:1")

    def test_the_variables_are_with_tensorflow(self):
        self.both_ways({("ps", 0): THEIRS, ("ps", 1): THEIRS, ("worker", 0): OURS})

    def test_tensorflow_is_the_master(self):
        self.both_ways({("ps", 0): OURS, ("ps", 1): OURS, ("worker", 0): THEIRS}, saver_device="/job:ps/task:0")


class TroubleTest(Base):
    """Failures while a tensor is streamed into a checkpoint."""

    @contextlib.contextmanager
    def second_save(self, **options):
        """A ps is stopped, and a second save waits for its variables, the first of the other ps being written; yields
        the tasks, the thread that saves, and where its error will be."""
        flags = ["--peer-timeout", "120"]
        with tempfile.TemporaryDirectory() as folder, serving.cluster(OURS, SIZE, flags) as targets:
            with tf.Graph().as_default():
                saver, _ = build(use_resource=False)
                with tf1.Session(targets["worker"][0]) as session:
                    session.run(tf1.global_variables_initializer())
                    first = saver.save(session, os.path.join(folder, "model"), global_step=1)
                    names, found = saver.as_saver_def(), []

                    def save():
                        try:
                            session.run(names.save_tensor_name,
                                        {names.filename_tensor_name: os.path.join(folder, "model-2")},
                                        options=tf1.RunOptions(**options))
                        except tf.errors.OpError as error:
                            found.append(error)

                    os.kill(targets.processes[1].pid, signal.SIGSTOP)
                    thread = threading.Thread(target=save)
                    thread.start()
                    self.wait_until_begun(folder, thread)
                    yield targets, thread, found
                    self.wait_until_gone(folder)
                    os.kill(targets.processes[1].pid, signal.SIGKILL)
            self.assertEqual(tf.train.latest_checkpoint(folder), first)
            self.check_values(first)

    def wait_until_begun(self, folder, thread):
        """Until the first variable, of the ps that still runs, is in the new checkpoint's temporary file."""
        while thread.is_alive():
            files = glob.glob(os.path.join(folder, "model-2*tempstate*"))
            if files and os.path.getsize(files[0]) > ELEMENTS * 2:
                return
            thread.join(0.01)
        self.fail("the save is over")

    def wait_until_gone(self, folder):
        """A client may reach its time limit before the task that writes."""
        for _ in range(3000):
            if not glob.glob(os.path.join(folder, "model-2*")):
                return
            time.sleep(0.01)
        self.fail(f"left behind: {os.listdir(folder)}")

    def test_the_sender_dies(self):
        with self.second_save() as (targets, thread, found):
            targets.processes[1].kill()
            thread.join()
            self.assertIsInstance(found[0], (tf.errors.UnavailableError, tf.errors.AbortedError))
            self.assertIn("/job:ps/replica:0/task:1", found[0].message)

    def test_the_deadline_passes(self):
        with self.second_save(timeout_in_ms=5000) as (_, thread, found):
            thread.join()
            self.assertIsInstance(found[0], tf.errors.DeadlineExceededError)


class DeadTest(unittest.TestCase):

    def test_a_save_in_the_branch_not_taken(self):
        with tempfile.TemporaryDirectory() as folder, serving.cluster(OURS, SIZE) as targets, tf.Graph().as_default():
            with tf1.device("/job:ps/task:1"):
                variable = tf1.get_variable("v", [1 << 20], initializer=tf1.ones_initializer())
            prefix = os.path.join(folder, "model")

            def save():
                with tf1.device("/job:ps/task:1"):
                    value = variable + 1.0
                with tf1.device("/job:worker/task:0"):
                    saved = tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["v"], shape_and_slices=[""], tensors=[value])
                with tf1.control_dependencies([saved]):
                    return tf.constant(1)

            wanted = tf1.placeholder(tf.bool, [])
            result = tf1.cond(wanted, save, lambda: tf.constant(0))
            with tf1.Session(targets["worker"][0]) as session:
                session.run(variable.initializer)
                self.assertEqual(session.run(result, {wanted: False}), 0)
                self.assertEqual(os.listdir(folder), [])
                self.assertEqual(session.run(result, {wanted: True}), 1)
            np.testing.assert_array_equal(tf.train.load_checkpoint(prefix).get_tensor("v"), np.full([1 << 20], 2.0))


class TraceTest(unittest.TestCase):

    def test_what_was_pulled_is_in_the_trace(self):
        with tempfile.TemporaryDirectory() as folder, serving.cluster(OURS, SIZE) as targets, tf.Graph().as_default():
            with tf1.device("/job:ps/task:1"):
                tf1.get_variable("v", [1 << 20], initializer=tf1.ones_initializer())
            saver = tf1.train.Saver()
            with tf1.Session(targets["worker"][0]) as session:
                session.run(tf1.global_variables_initializer())
                names = saver.as_saver_def()
                options, metadata = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), tf1.RunMetadata()
                session.run(names.save_tensor_name, {names.filename_tensor_name: os.path.join(folder, "model")},
                            options, metadata)
            devices = {device.device: device for device in metadata.step_stats.dev_stats}
            worker = devices["/job:worker/replica:0/task:0/device:CPU:0"].node_stats
            labels = " ".join(f"{node.node_name} = {node.timeline_label}" for node in worker)
            self.assertIn("save/SaveV2 = SaveV2(", labels)
            self.assertRegex(labels, r"v/\S+ = _Recv\(")


if __name__ == "__main__":
    unittest.main()
