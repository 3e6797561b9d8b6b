"""Tasks that are killed, stopped and restarted while others train: survivors detect it soon, and continue.

FAULT_ROUNDS sets how many faults each kind of training is put through; `cargo xtask soak` asks for many.
"""
import contextlib
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
PATIENCE = 6.0  # seconds that a survivor's call may take after a fault
LIMIT = 5.5     # the time limit of clients: only the client itself detects that its master is stopped


class Call:
    """A call of a client: what it was, when it began and ended, and how it failed."""

    def __init__(self, kind):
        self.kind, self.begin, self.end, self.error = kind, time.monotonic(), None, None


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
        self.calls = []       # those that ended since the last look
        self.stopping = False

    def own(self, task):
        """True if the task is its master: then no process can report the failure."""
        return task == ("worker", self.master or 0)

    def run(self):
        # Only those tasks that take part in its steps: a worker is not stopped by another one.
        config = tf1.ConfigProto(operation_timeout_in_ms=int(LIMIT * 1000))
        config.device_filters.extend(["/job:ps"] + (
            ["/job:worker"] if self.master is None else [f"/job:worker/task:{self.master}"]))
        while not self.stopping:
            session = tf1.Session(self.cluster.target("worker", self.master or 0), graph=self.graph, config=config)
            try:
                self.train_on(session)
            except tf.errors.OpError:
                time.sleep(0.05)  # the failure is in self.calls already; the task may not be back yet
            finally:
                with contextlib.suppress(tf.errors.OpError):  # with its master, the session is gone
                    self.call("close", session.close)

    def call(self, kind, function, *args):
        call = Call(kind)
        try:
            return function(*args)
        except tf.errors.OpError as error:
            call.error = error
            raise
        finally:
            with self.lock:
                call.end = time.monotonic()
                self.calls.append(call)
                self.lock.notify_all()

    def train_on(self, session):
        kind = "open"  # the client asks for the session when it first needs it
        while not self.stopping:
            missing, kind = self.call(kind, session.run, self.missing).size, "step"
            if missing and not self.chief:
                time.sleep(0.02)  # as TensorFlow's own workers do: the chief will initialise
                continue
            if missing:
                self.call("step", session.run, self.init)
            while not self.stopping:
                self.call("step", session.run, self.train)
                with self.lock:
                    self.done += 1
                    self.lock.notify_all()

    def progress(self, steps, seconds):
        """Waits for `steps` more steps; returns whether they were made."""
        with self.lock:
            goal = self.done + steps
            return self.lock.wait_for(lambda: self.done >= goal, seconds)

    def failures(self, count, seconds):
        """Waits for `count` failed calls; returns whether they were made."""
        with self.lock:
            failed = lambda: [call for call in self.calls if call.error and call.kind != "close"]
            return self.lock.wait_for(lambda: len(failed()) >= count, seconds)

    def take(self):
        """The calls that ended since they were last taken."""
        with self.lock:
            calls, self.calls = self.calls, []
            return calls

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
        """Kills, stops or restarts random tasks repeatedly; `touches(trainer, task)` says which trainers are affected."""
        self.worst = {"open": 0.0, "step": 0.0, "close": 0.0}
        with serving.tasks("flowgrid", {"ps": 2, "worker": 2}) as cluster:
            trainers, tasks, rng = make_trainers(cluster), list(cluster.running), random.Random(7)
            try:
                for trainer in trainers:
                    trainer.start()
                for number in range(ROUNDS):
                    task, fault = rng.choice(tasks), rng.choice(["kill", "stop", "stop and kill"])
                    try:
                        self.one_round(cluster, trainers, touches, task, fault, long=number % 3 == 1)
                    except AssertionError as error:
                        raise AssertionError(f"round {number}, {fault} of {task}: {error}") from error
            finally:
                for process in cluster.running.values():
                    process.send_signal(signal.SIGCONT)
                for trainer in trainers:
                    trainer.stop()
        longest = ", ".join(f"{kind} {seconds:.2f} s" for kind, seconds in self.worst.items())
        print(f"{ROUNDS} faults; the longest calls of survivors after one: {longest}")

    def one_round(self, cluster, trainers, touches, task, fault, long):
        """One fault, which lasts until all affected trainers have had an error; a long one until they have had two, in a
        step and in the attempt to open a new session."""
        for trainer in trainers:
            self.assertTrue(trainer.progress(5, 60), "no steps before the fault")
        for trainer in trainers:
            trainer.take()
        when = time.monotonic()
        cluster.running[task].send_signal(signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
        for trainer in trainers:
            if touches(trainer, task):
                self.assertTrue(trainer.failures(1, PATIENCE), "went unnoticed")
                self.assertTrue(not long or trainer.failures(2, 2 * PATIENCE), "a session began without the task")
            else:
                self.assertTrue(trainer.progress(5, PATIENCE), "stopped one whom it does not concern")
        if fault == "stop":
            cluster.running[task].send_signal(signal.SIGCONT)
        else:
            cluster.restart(*task)
        for trainer in trainers:
            self.assertTrue(trainer.progress(5, 60), "no steps after it was over")
        for trainer in trainers:
            for call in trainer.take():
                name = f"/job:{task[0]}/replica:0/task:{task[1]}"
                self.check(call, when, name, trainer.own(task), touches(trainer, task))

    def check(self, call, when, name, own, touched):
        """A call that ended after the fault: it was short, and an error names the task."""
        lasted = call.end - max(call.begin, when)
        self.assertLess(lasted, PATIENCE, f"{call.kind}: {call.error}")
        if not own:
            self.worst[call.kind] = max(self.worst[call.kind], lasted)
        if call.error is None or own:
            return  # the error for a lost master is from the client library
        self.assertTrue(touched, f"it does not concern this one: {call.error}")
        expected = (tf.errors.UnavailableError, tf.errors.AbortedError)
        # A session starts when all tasks answer, as in TensorFlow, and waits for them within the client's limit.
        late = (tf.errors.DeadlineExceededError,) if call.kind == "open" else ()
        self.assertIsInstance(call.error, expected + late, call.kind)
        self.assertIn(name, str(call.error))

    def test_between_graph_training_survives(self):
        def trainers(cluster):
            return [Trainer(cluster, worker, between(worker), worker == 0) for worker in range(2)]
        self.rounds(trainers, lambda trainer, task: task[0] == "ps" or task[1] == trainer.master)

    def test_in_graph_training_survives(self):
        self.rounds(lambda cluster: [Trainer(cluster, None, towers, True)], lambda trainer, task: True)


if __name__ == "__main__":
    unittest.main()
