"""Tasks that are killed, stopped and restarted while others train: survivors learn of it soon, and go on.

FAULT_ROUNDS sets how many faults each kind of training is put through; `cargo xtask soak` asks for many.
"""
import os
import random
import signal
import threading
import time
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "3"))
PATIENCE = 6.0  # seconds a survivor's call may last after a fault


class Trainer(threading.Thread):
    """A client that trains on one master, and opens a new session whenever a step fails."""

    def __init__(self, cluster, master, build, chief):
        super().__init__()
        self.cluster, self.master, self.chief = cluster, master, chief
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.step, self.train = build()
            self.init = tf1.global_variables_initializer()
            self.missing = tf1.report_uninitialized_variables()
        self.lock = threading.Condition()
        self.done = 0         # steps that succeeded
        self.since = None     # when the present call began
        self.calls = []       # (begin, end, error) of the calls since the last look
        self.stopping = False

    def run(self):
        while not self.stopping:
            try:
                # Only those tasks that take part in its steps: a worker is not stopped by another one.
                config = tf1.ConfigProto(operation_timeout_in_ms=8_000)
                config.device_filters.extend(["/job:ps"] + (
                    ["/job:worker"] if self.master is None else [f"/job:worker/task:{self.master}"]))
                with tf1.Session(self.cluster.target("worker", self.master or 0), graph=self.graph, config=config) as session:
                    self.train_on(session)
            except tf.errors.OpError:
                time.sleep(0.05)  # what failed is in self.calls already; the task may not be back yet

    def call(self, session, fetch):
        begin, error = time.monotonic(), None
        with self.lock:
            self.since = begin
        try:
            return session.run(fetch)
        except tf.errors.OpError as caught:
            error = caught
            raise
        finally:
            with self.lock:
                self.since = None
                self.calls.append((begin, time.monotonic(), error))
                self.lock.notify_all()

    def train_on(self, session):
        while not self.stopping:
            if self.call(session, self.missing).size:
                if not self.chief:
                    time.sleep(0.02)  # as TensorFlow's own workers do: the chief will initialise
                    continue
                self.call(session, self.init)
            while not self.stopping:
                self.call(session, self.train)
                with self.lock:
                    self.done += 1
                    self.lock.notify_all()

    def progress(self, steps, seconds):
        """Waits for so many more steps; whether they came."""
        with self.lock:
            goal = self.done + steps
            return self.lock.wait_for(lambda: self.done >= goal, seconds)

    def failure(self, seconds):
        """Waits for the next failed call; gives it, or none."""
        with self.lock:
            self.lock.wait_for(lambda: any(call[2] for call in self.calls), seconds)
            return next((call for call in self.calls if call[2]), None)

    def forget(self):
        with self.lock:
            self.calls.clear()

    def stop(self):
        self.stopping = True
        self.join()


def layer(device, rows, cols):
    with tf1.device(device):
        return tf1.get_variable(f"w{rows}", [rows, cols], initializer=tf1.ones_initializer())


def between(worker):
    """A replica: parameters on both ps, the rest on one worker."""
    def build():
        with tf1.device("/job:ps/task:0"):
            step = tf1.train.get_or_create_global_step()
        first, second = layer("/job:ps/task:0", 16, 8), layer("/job:ps/task:1", 8, 1)
        with tf1.device(f"/job:worker/task:{worker}"):
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.matmul(tf.ones([4, 16]), first), second) - 1))
            return step, tf1.train.GradientDescentOptimizer(1e-5).minimize(loss, step)
    return build


def towers():
    """One graph with a tower on every worker."""
    with tf1.device("/job:ps/task:0"):
        step = tf1.train.get_or_create_global_step()
    first, second = layer("/job:ps/task:0", 16, 8), layer("/job:ps/task:1", 8, 1)
    losses = []
    for worker in range(2):
        with tf1.device(f"/job:worker/task:{worker}"):
            losses.append(tf.reduce_mean(tf.square(tf.matmul(tf.matmul(tf.ones([4, 16]), first), second) - 1)))
    optimizer = tf1.train.GradientDescentOptimizer(1e-5)
    return step, optimizer.minimize(tf.add_n(losses), step, colocate_gradients_with_ops=True)


class FaultsTest(unittest.TestCase):

    def rounds(self, make_trainers, touches):
        """Harms a random task, again and again; `touches(trainer, task)` says whom that concerns."""
        with serving.tasks("flowgrid", {"ps": 2, "worker": 2}) as cluster:
            self.rounds_on(cluster, make_trainers(cluster), touches)

    def rounds_on(self, cluster, trainers, touches):
        rng, tasks = random.Random(7), list(cluster.running)
        worst = 0.0
        try:
            for trainer in trainers:
                trainer.start()
            for number in range(ROUNDS):
                for trainer in trainers:
                    self.assertTrue(trainer.progress(5, 60), f"round {number}: no steps before the fault")
                task, fault = rng.choice(tasks), rng.choice(["kill", "stop", "stop and kill"])
                name = f"/job:{task[0]}/replica:0/task:{task[1]}"
                for trainer in trainers:
                    trainer.forget()
                when = time.monotonic()
                cluster.running[task].send_signal(signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
                for trainer in trainers:
                    if ("worker", trainer.master or 0) == task:
                        continue  # no survivor: a client belongs to its master, and TensorFlow's waits for it
                    if not touches(trainer, task):
                        self.assertTrue(trainer.progress(5, 60), f"round {number}: {fault} of {name} stopped others")
                        continue
                    failed = trainer.failure(60)
                    self.assertIsNotNone(failed, f"round {number}: {fault} of {name} went unnoticed")
                    begin, end, error = failed
                    worst = max(worst, end - max(begin, when))
                    self.assertLess(end - max(begin, when), PATIENCE, f"round {number}: {fault} of {name}")
                    self.assertIsInstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError),
                                          f"round {number}: {fault} of {name}")
                    self.assertIn(name, str(error), f"round {number}: {fault}")
                if fault == "stop":
                    cluster.running[task].send_signal(signal.SIGCONT)
                else:
                    cluster.restart(*task)
                for trainer in trainers:
                    self.assertTrue(trainer.progress(5, 60), f"round {number}: no steps after {fault} of {name}")
        finally:
            for process in cluster.running.values():
                process.send_signal(signal.SIGCONT)
            for trainer in trainers:
                trainer.stop()
        print(f"{ROUNDS} faults, longest call of a survivor after one: {worst:.2f} s")

    def test_between_graph_training_survives(self):
        def trainers(cluster):
            return [Trainer(cluster, worker, between(worker), worker == 0) for worker in range(2)]
        self.rounds(trainers, lambda trainer, task: task[0] == "ps" or task[1] == trainer.master)

    def test_in_graph_training_survives(self):
        self.rounds(lambda cluster: [Trainer(cluster, None, towers, True)], lambda trainer, task: True)


if __name__ == "__main__":
    unittest.main()
