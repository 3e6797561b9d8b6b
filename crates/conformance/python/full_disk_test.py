"""A ps whose journal fills its disk: the error names the reason and is not retried, and no update is lost.

The disk is a file system in memory that the test mounts for itself, in a namespace of its own.
"""
import contextlib
import subprocess
import tempfile
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

PS = "/job:ps/replica:0/task:0"


class Disk:
    """A folder with space for two megabytes."""

    def __init__(self, folder, holder):
        self.folder = folder
        self.inside = ["nsenter", "--target", str(holder.pid), "--user", "--mount", "--preserve-credentials"]

    def grow(self):
        subprocess.run([*self.inside, "mount", "-o", "remount,size=64m", self.folder], check=True)


@contextlib.contextmanager
def disk():
    with tempfile.TemporaryDirectory() as folder:
        mount = f"mount -t tmpfs -o size=2m none {folder} && echo ready && exec cat"
        holder = subprocess.Popen(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            serving.wait_ready(holder)  # this fails where users may not create namespaces
            yield Disk(folder, holder)
        finally:
            holder.kill()
            holder.wait()
            holder.stdin.close()
            holder.stdout.close()


class FullDiskTest(unittest.TestCase):

    def test_a_full_disk_ends_training_and_loses_nothing(self):
        self.train_until_it_is_full(10_000, 5)  # 40 KB in each record of the log

    def test_a_disk_that_is_too_small_for_a_large_variable(self):
        self.train_until_it_is_full(200_000, 0)  # 800 KB in each slot

    def train_until_it_is_full(self, numbers, least):
        with disk() as small, tf.Graph().as_default():
            spec = {job: [f"127.0.0.1:{port}"] for job, port in zip(("ps", "worker"), serving.free_ports(2))}
            ps = [*small.inside, *serving.command("flowgrid", spec, "ps", 0, ["--journal", small.folder])]
            worker, target = serving.command("flowgrid", spec, "worker", 0), f"grpc://{spec['worker'][0]}"
            with tf1.device("/job:ps"):
                counter = tf1.get_variable("counter", [numbers], initializer=tf1.zeros_initializer())
                train = counter.assign_add(tf.ones([numbers]))
            counted = 0
            with serving.process(ps), serving.process(worker):
                # With the code of a lost task the session would be recovered again and again.
                with self.assertRaises(tf.errors.ResourceExhaustedError) as failed:
                    with tf1.train.MonitoredTrainingSession(target) as session:
                        while counted < 10_000:
                            session.run(train.op)
                            counted += 1
                self.assertIn(PS, str(failed.exception))
                self.assertIn("No space left on device", str(failed.exception))
                self.assertGreater(counted, least)
            small.grow()
            with serving.process(ps), serving.process(worker), tf1.Session(target) as session:
                found = session.run(counter)
                self.assertTrue((found == counted).all(), (found, counted))
                self.assertTrue((session.run(train) == counted + 1).all())


if __name__ == "__main__":
    unittest.main()
