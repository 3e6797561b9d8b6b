"""A network that is cut between two machines: connections are neither refused nor closed, but packets do not arrive.

The machines are network namespaces that the test makes for itself, joined by a cable. It is cut by sending to a hardware
address that no machine has.
"""
import contextlib
import os
import subprocess
import sys
import threading
import time
import unittest

import tensorflow as tf

import serving
from callers_test import Graph

tf1 = tf.compat.v1
tf1.disable_eager_execution()

NEAR, FAR = "10.77.0.1", "10.77.0.2"
UNUSED_ADDRESS = "02:00:00:00:00:99"
PS = "/job:ps/replica:0/task:0"
PATIENCE = 6.0  # seconds a call may last after the cut
LIMIT = 60_000  # milliseconds until the time limit of the client itself


class NetworkCutTest(unittest.TestCase):

    def test_a_cut_is_noticed_and_named_and_healed(self):
        # As root of a user namespace of its own, so that every user may run it.
        own = ["unshare", "--user", "--map-root-user", "--net"]
        if subprocess.run([*own, "true"], capture_output=True).returncode:
            own = ["unshare", "--net"]  # where users may not create any, but this one is root
        program = "import network_cut_test; network_cut_test.scenario()"
        ended = subprocess.run([*own, sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, timeout=300, env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"})
        self.assertEqual(ended.returncode, 0, ended.stdout + "\n(it needs iproute2 and the right to make network "
                                                             "namespaces: `unshare --user --map-root-user --net true`)")


class Machines:
    """This namespace and another one, `far`, connected by a virtual cable."""

    def __init__(self, holder):
        self.far = ["nsenter", "--target", str(holder.pid), "--net"]
        ip("link", "add", "name", "near0", "type", "veth", "peer", "name", "far0", "netns", str(holder.pid))
        for where, device, address in [([], "near0", NEAR), (self.far, "far0", FAR)]:
            ip("link", "set", "lo", "up", where=where)
            ip("address", "add", f"{address}/24", "dev", device, where=where)
            ip("link", "set", device, "up", where=where)

    def ends(self):
        return [([], "near0", FAR), (self.far, "far0", NEAR)]

    def cut(self):
        for where, device, other in self.ends():
            ip("neighbour", "replace", other, "lladdr", UNUSED_ADDRESS, "dev", device, "nud", "permanent", where=where)

    def heal(self):
        for where, device, other in self.ends():
            ip("neighbour", "delete", other, "dev", device, where=where)


def ip(*words, where=()):
    subprocess.run([*where, "ip", *words], check=True)


@contextlib.contextmanager
def machines():
    """Two machines that exist while the context is active."""
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        serving.wait_ready(holder)
        yield Machines(holder)
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


def scenario():
    """Two workers here, their ps on the other machine."""
    check = unittest.TestCase()
    with machines() as both, contextlib.ExitStack() as running:
        spec = {"ps": [f"{FAR}:2222"], "worker": [f"{NEAR}:2222", f"{NEAR}:2223"]}
        for job, task, where in [("ps", 0, both.far), ("worker", 0, []), ("worker", 1, [])]:
            running.enter_context(serving.process([*where, *serving.command("flowgrid", spec, job, task)]))
        graph = Graph()
        with graph.graph.as_default():
            with tf1.device("/job:ps"):
                counter = tf1.get_variable("counter", [], initializer=tf1.zeros_initializer())
                count = counter.assign_add(1.0)
            with tf1.device("/job:worker/task:1"):
                elsewhere = tf1.placeholder_with_default(20.0, []) + 1.0
        session = connect(graph, spec)
        session.run(counter.initializer)
        check.assertEqual(session.run(count), 1.0)
        waiting = Waiting(session, graph.take_locked)
        session.run(graph.wait_begun)

        both.cut()
        cut = time.monotonic()
        check.assertEqual(session.run(elsewhere), 21.0)  # a step without the ps is not affected
        named(check, waiting.error(), time.monotonic() - cut)
        begin = time.monotonic()
        named(check, failure(session, count), time.monotonic() - begin)
        check.assertEqual(session.run(elsewhere), 21.0)
        late = failure(connect(graph, spec, 3_000), count)  # a session that starts now waits until its limit
        check.assertIsInstance(late, tf.errors.DeadlineExceededError)
        check.assertIn(PS, str(late))

        both.heal()
        session.close()
        session = connect(graph, spec)
        check.assertEqual(session.run(count), 2.0)  # the ps was alive all the time, and no step was applied twice
        session.run(graph.wait_unlocked)            # the lost step has released its lock on the ps,
        session.run(graph.put)
        check.assertEqual(session.run(graph.take), 7)  # and takes no values any more
        session.close()


def connect(graph, spec, limit=LIMIT):
    config = tf1.ConfigProto(operation_timeout_in_ms=limit)
    return tf1.Session(f"grpc://{spec['worker'][0]}", graph=graph.graph, config=config)


class Waiting(threading.Thread):
    """A step that does not end on its own."""

    def __init__(self, session, fetch):
        super().__init__(daemon=True)
        self.session, self.fetch, self.failed = session, fetch, None
        self.start()

    def run(self):
        self.failed = failure(self.session, self.fetch)

    def error(self):
        self.join(LIMIT / 1000)
        return self.failed


def failure(session, fetch):
    """The error of a step, or None."""
    try:
        session.run(fetch)
    except tf.errors.OpError as error:
        return error


def named(check, error, lasted):
    check.assertIsInstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError))
    check.assertIn(PS, str(error))
    check.assertLess(lasted, PATIENCE)


if __name__ == "__main__":
    unittest.main()
