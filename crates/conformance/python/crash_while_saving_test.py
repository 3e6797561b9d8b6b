"""Servers that are killed while they save: the latest checkpoint is always one that real TensorFlow can read.

SAVE_KILLS sets how many times; `cargo xtask soak` asks for many.
"""
import os
import random
import tempfile
import threading
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

KILLS = int(os.environ.get("SAVE_KILLS", "6"))
SIZE = 1 << 20  # floats in a variable


class CrashWhileSavingTest(unittest.TestCase):

    def check(self, folder, latest):
        """Every value of the latest checkpoint is there, whole, and of one and the same step."""
        prefix = tf.train.latest_checkpoint(folder)
        self.assertIsNotNone(prefix)
        reader = tf.train.load_checkpoint(prefix)
        step = reader.get_tensor("step")
        self.assertGreaterEqual(step, latest)
        for name in ("a", "b"):
            np.testing.assert_array_equal(reader.get_tensor(name), np.full([SIZE], step, np.float32))
        return step

    def test_the_latest_checkpoint_can_be_read(self):
        rng, found = random.Random(3), 0
        with tempfile.TemporaryDirectory() as folder:
            for kill in range(KILLS):
                with serving.tasks("flowgrid", {"ps": 2, "worker": 1}) as tasks:
                    saves = self.save_until_killed(folder, tasks, rng, sharded=bool(kill % 2), base=found)
                self.assertGreater(saves, 0)
                found = self.check(folder, found + saves)

    def save_until_killed(self, folder, tasks, rng, sharded, base):
        """Saves again and again; when a few saves are done, a server dies in the middle of one."""
        with tf.Graph().as_default():
            variables = []
            for task, name in enumerate(["a", "b"]):
                with tf1.device(f"/job:ps/task:{task}"):
                    variables.append(tf1.get_variable(name, [SIZE], initializer=tf1.zeros_initializer()))
            with tf1.device("/job:ps/task:0"):
                step = tf1.get_variable("step", [], tf.int64, initializer=tf1.zeros_initializer())
            goal = tf1.placeholder(tf.int64, [])
            update = tf.group(step.assign(goal), *[
                variable.assign(tf.fill([SIZE], tf.cast(goal, tf.float32))) for variable in variables])
            saver = tf1.train.Saver(sharded=sharded, max_to_keep=2)
            saves, killer = 0, None
            config = tf1.ConfigProto(operation_timeout_in_ms=20_000)
            try:
                with tf1.Session(tasks.target("worker", 0), config=config) as session:
                    while True:
                        session.run(update, {goal: base + saves + 1})
                        if saves == 2:
                            victim = tasks.running["ps", rng.randrange(2)]
                            killer = threading.Timer(rng.uniform(0, 0.03), victim.kill)
                            killer.start()
                        saver.save(session, os.path.join(folder, "model"), global_step=base + saves + 1)
                        saves += 1
            except (tf.errors.OpError, ValueError):
                return saves
            finally:
                if killer:
                    killer.join()


if __name__ == "__main__":
    unittest.main()
