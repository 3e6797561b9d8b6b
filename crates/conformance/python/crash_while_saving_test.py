"""Servers and clients that are killed while they save: the latest checkpoint is always one that real TensorFlow can read.

SAVE_KILLS sets how many times; `cargo xtask soak` asks for many.
"""
import glob
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import tensorflow as tf

import serving
from saving_client import SIZE

KILLS = int(os.environ.get("SAVE_KILLS", "6"))
CLIENT = "client"
# Without shards one task writes for all: that of the session, which is the worker.
VICTIMS = [("worker", 0), ("ps", 0), ("ps", 1), CLIENT]


class Clients:
    """Clients that save one after another, each in a process of its own."""

    def __enter__(self):
        self.parent = subprocess.Popen([sys.executable, "saving_client.py"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True, cwd=os.path.dirname(os.path.abspath(__file__)))
        return self

    def __exit__(self, *_):
        self.parent.stdin.close()
        self.parent.wait()
        self.parent.stdout.close()

    def start(self, **how):
        """Starts a client; returns its process id."""
        self.parent.stdin.write(json.dumps(how) + "\n")
        self.parent.stdin.flush()
        return self.next_word("process")

    def next_word(self, *words):
        """The number behind the next word, which must be one of these."""
        word, number = self.parent.stdout.readline().split()
        if word not in words:
            raise AssertionError(f"{word} {number} instead of {words}")
        return int(number)

    def saves_until_over(self):
        """The last step that was saved before the client ended, and its exit code."""
        saved = None
        for line in self.parent.stdout:
            word, number = line.split()
            if word == "over":
                return saved, int(number)
            if word == "saved":
                saved = int(number)
        raise AssertionError("the clients are gone")


class CrashWhileSavingTest(unittest.TestCase):

    def check(self, folder, latest):
        """The latest checkpoint is complete, and all its values are of the same step."""
        prefix = tf.train.latest_checkpoint(folder)
        self.assertIsNotNone(prefix)
        reader = tf.train.load_checkpoint(prefix)
        step = int(reader.get_tensor("step"))
        self.assertGreaterEqual(step, latest)
        for name in ("a", "b"):
            np.testing.assert_array_equal(reader.get_tensor(name), np.full([SIZE], step, np.float32))
        return step

    def test_the_latest_checkpoint_can_be_read(self):
        rng, found = random.Random(3), 0
        ways = list(itertools.product(VICTIMS, (False, True), (False, True)))
        rng.shuffle(ways)
        with tempfile.TemporaryDirectory() as folder, Clients() as clients:
            for victim, sharded, same_name in itertools.islice(itertools.cycle(ways), KILLS):
                with self.subTest(victim=victim, sharded=sharded, same_name=same_name):
                    with serving.tasks("flowgrid", {"ps": 2, "worker": 1}) as tasks:
                        process = clients.start(target=tasks.target("worker", 0), folder=folder, step=found,
                                                sharded=sharded, same_name=same_name)
                        saved = self.kill_while_saving(clients, process, tasks, victim, rng)
                    found = self.check(folder, saved)
                for left in glob.glob(os.path.join(folder, "*temp*")):
                    (shutil.rmtree if os.path.isdir(left) else os.remove)(left)

    def kill_while_saving(self, clients, process, tasks, victim, rng):
        """Lets a client save twice; the victim is killed during one of the next saves. Returns the last step that was
        saved."""
        for _ in range(2):
            clients.next_word("saving")
            begin = time.monotonic()
            saved = clients.next_word("saved")
            seconds = time.monotonic() - begin
        clients.next_word("saving")

        def kill():
            os.kill(process if victim == CLIENT else tasks.running[victim].pid, signal.SIGKILL)

        killer = threading.Timer(rng.uniform(0, 1.2 * seconds), kill)
        killer.start()
        later, status = clients.saves_until_over()
        killer.join()
        self.assertEqual(status, signal.SIGKILL if victim == CLIENT else 0)
        return saved if later is None else later


if __name__ == "__main__":
    unittest.main()
