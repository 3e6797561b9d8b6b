"""Runs one Python block of the documentation on a cluster, and checks what it did.

usage: docs_block.py PAGE:NUMBER TARGETS

It is a program of its own: the blocks choose the behaviour of TensorFlow 1.x for the whole process.
"""
import json
import sys
import tempfile
import unittest

import tensorflow.compat.v1 as tf

from docs_pages import blocks

tf.disable_v2_behavior()


def run(text, name, targets):
    """Runs a block in a graph of its own; gives its names. Addresses of the page become those of a cluster that runs."""
    text = text.replace("grpc://127.0.0.1:2222", targets["worker"][0])
    names = {}
    with tf.Graph().as_default() as graph:
        exec(compile(text, name, "exec"), names)
    return graph, names


def check_readme(test, graph, names, targets):
    """It runs the session itself."""
    test.assertEqual(names["x"].graph, graph)


def check_chief(test, graph, names, targets):
    """A second chief finds the variables as the first left them, in a folder without checkpoints."""
    for steps in (10, 11):
        with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
            with tf.device("/job:ps/task:0"):
                step = tf.train.create_global_step()
                add = tf.assign_add(step, 1)
            names["train"](targets["worker"][0], folder, add)
            with tf.Session(targets["worker"][0]) as session:
                # The last step is 10. The second chief begins there, and ends after one step of its own.
                test.assertEqual(session.run(step), steps)


def check_counter(name):
    """The counter is read of a task that runs."""
    def check(test, graph, names, targets):
        with tf.Session(targets["worker"][0], graph=graph) as session:
            test.assertGreaterEqual(session.run(names[name]), 0)
    return check


def check_stale(test, graph, names, targets):
    """An accumulator is there once a gradient was applied to it."""
    with graph.as_default(), tf.device("/job:ps/task:0"):
        accumulator = tf.ConditionalAccumulator(tf.float32, shape=[], shared_name="w:0/grad_accum")
        ahead = accumulator.set_global_step(3)
        late = accumulator.apply_grad(1.0, local_step=2)
        with tf.Session(targets["worker"][0], graph=graph) as session:
            session.run(ahead)
            session.run(late)
            test.assertEqual(session.run(names["stale"]), 1)


def check_placement(test, graph, names, targets):
    """Every node that ran has a device."""
    config = tf.ConfigProto(log_device_placement=True)
    with tf.Graph().as_default(), tf.Session(targets["worker"][0], config=config) as session:
        with tf.device("/job:ps/task:0"):
            total = tf.add(tf.placeholder_with_default(2.0, []), 1.0, name="total")
        placement = names["placement"](session, total)
        test.assertEqual(placement["total"], "/job:ps/replica:0/task:0/device:CPU:0")


def check_squares(test, graph, names, targets):
    """The pipeline ran on the server."""
    test.assertEqual(names["squares"].tolist(), [0, 1, 4, 9])


# What is done with each block once it ran: every Python block needs an entry.
CHECKS = {
    "README.md:0": check_readme,
    "docs/input-pipelines.md:0": check_squares,
    "docs/journal.md:0": check_chief,
    "docs/reports.md:0": check_counter("sent"),
    "docs/server.md:0": check_placement,
    "docs/synchronous.md:0": check_stale,
}


if __name__ == "__main__":
    name, targets = sys.argv[1], json.loads(sys.argv[2])
    graph, names = run(blocks("python")[name], name, targets)
    CHECKS[name](unittest.TestCase(), graph, names, targets)
