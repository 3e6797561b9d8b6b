"""A worker in Rust and one in Python train the same variables on two ps tasks, with the same state of their optimizer."""
import json
import os
import pathlib
import subprocess
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

OPTIMIZERS = {"Adam": lambda: tf1.train.AdamOptimizer(0.1), "Momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9)}
RUST_STEPS, PYTHON_STEPS = 2, 3


def model(optimizer):
    """The training op, and all variables."""
    step = tf1.train.get_or_create_global_step()
    with tf1.variable_scope("model", use_resource=True):
        # The first by name is created last, and is on the other ps.
        w = tf1.get_variable("w", initializer=tf.constant([[1.], [-2.]]))
        b = tf1.get_variable("b", initializer=tf.constant([0.]))
    x, y = tf.constant([[1, 2], [3, -1], [0.5, 0.25]]), tf.constant([[1.], [2.], [3.]])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    train = OPTIMIZERS[optimizer]().minimize(loss, global_step=step)
    return train, {variable.op.name: variable for variable in tf1.global_variables()}


def alone(optimizer, steps):
    """All variables after a number of steps of one worker, in TensorFlow itself."""
    with tf.Graph().as_default(), tf1.Session() as session:
        train, variables = model(optimizer)
        session.run(tf1.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
        return session.run(variables)


def train_in_rust(target, task, optimizer):
    """The weights after the steps of a worker in Rust."""
    program = pathlib.Path(os.environ["FLOWGRID_BIN"]).parent / "examples" / "slots_peer"
    arguments = [program, target, str(task), optimizer, str(RUST_STEPS)]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    return {"model/w": np.array(json.loads(done.stdout)).reshape(2, 1)}


def train_in_python(target, task, optimizer):
    """All variables after the steps of a worker in Python."""
    setter = tf1.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{task}")
    with tf.Graph().as_default(), tf1.device(setter):
        train, variables = model(optimizer)
        with tf1.train.MonitoredTrainingSession(target, is_chief=task == 0, max_wait_secs=30) as session:
            for _ in range(PYTHON_STEPS):
                session.run(train)
            return session.run(variables)


class SlotsTest(unittest.TestCase):

    def check(self, optimizer, rust):
        """The chief trains first; the other worker continues after it."""
        steps = 0
        with serving.cluster("flowgrid", {"ps": 2, "worker": 2}) as targets:
            for task, target in enumerate(targets["worker"]):
                steps += RUST_STEPS if task == rust else PYTHON_STEPS
                train = train_in_rust if task == rust else train_in_python
                expected, found = alone(optimizer, steps), train(target, task, optimizer)
                self.assertEqual(found.keys(), expected.keys() if task != rust else {"model/w"})
                for name, value in found.items():
                    np.testing.assert_allclose(value, expected[name], atol=1e-6, err_msg=name)

    def test_the_chief_is_in_rust(self):
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer=optimizer):
                self.check(optimizer, rust=0)

    def test_the_chief_is_in_python(self):
        for optimizer in OPTIMIZERS:
            with self.subTest(optimizer=optimizer):
                self.check(optimizer, rust=1)


if __name__ == "__main__":
    unittest.main()
