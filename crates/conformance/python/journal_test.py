"""A ps with a journal is killed again and again: no update that was answered is lost, and none is applied twice."""
import contextlib
import os
import tempfile
import threading
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

KILLS = int(os.environ.get("JOURNAL_KILLS", "5"))


@contextlib.contextmanager
def journaled(size, *flags):
    """A cluster whose ps has a journal and these flags."""
    with tempfile.TemporaryDirectory() as folder, serving.tasks(
            "flowgrid", size, flags={"ps": ["--journal", folder, *flags]}) as cluster:
        yield cluster


def build(worker):
    """Counters of both kinds, a matrix whose rows change, a large matrix that changes as a whole, and a slot of an
    optimizer."""
    with tf1.device("/job:ps/task:0"):
        step = tf1.get_variable("step", [], tf.int64, tf1.zeros_initializer(), use_resource=False)
        rows = tf1.get_variable("rows", [50, 4], tf.float32, tf1.zeros_initializer(), use_resource=True)
        weights = tf1.get_variable("weights", [8], tf.float32, tf1.ones_initializer(), use_resource=True)
        large = tf1.get_variable("large", [300, 200], tf.float32, tf1.zeros_initializer(), use_resource=False)
        changes = [tf1.scatter_add(rows, [worker], tf.ones([1, 4])),
                   tf1.assign_add(large, tf.ones([300, 200]), use_locking=True).op]
        with tf.control_dependencies(changes):
            advance = tf1.assign_add(step, 1, use_locking=True)
        with tf1.device(f"/job:worker/task:{worker}"):
            loss = tf.reduce_sum(tf.square(weights))
        train = tf1.train.MomentumOptimizer(1e-6, 0.5).minimize(loss)
    return step, rows, large, advance, tf.group(train)


class Client(threading.Thread):
    """Counts the steps that were answered, and checks the result of a step that failed."""

    def __init__(self, target, worker):
        super().__init__()
        self.target, self.worker = target, worker
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.step, self.rows, self.large, self.advance, self.train = build(worker)
            self.missing = tf1.report_uninitialized_variables()
        self.counted, self.unknown, self.latest = 0, 0, 0
        self.failures, self.wrong, self.stopping = [], [], False
        self.changed = threading.Condition()  # notified when it has counted, or found an error

    def run(self):
        self.work()
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, count, seconds):
        """True if it has counted this many steps, or found an error, within the time limit."""
        with self.changed:
            return self.changed.wait_for(lambda: self.counted >= count or self.wrong, seconds)

    def work(self):
        while not self.stopping and not self.wrong:
            try:
                config = tf1.ConfigProto(operation_timeout_in_ms=8000)
                with tf1.Session(self.target, graph=self.graph, config=config) as session:
                    self.ask(session)
                    while not self.stopping and not self.wrong:
                        self.advance_once(session)
            except tf.errors.OpError as error:
                self.failures.append(error)
            except Exception as error:
                self.wrong.append(error)

    def ask(self, session):
        """Checks the interrupted step: it was applied or not, and nothing else is lost."""
        missing, rows, large, step = session.run([self.missing, self.rows, self.large, self.step])
        done = rows[self.worker]
        if missing.size or (done != done[0]).any() or not 0 <= done[0] - self.counted <= self.unknown:
            self.wrong.append(("forgot", missing, done, self.counted, self.unknown))
        if large.min() < self.counted:
            self.wrong.append(("forgot a part", large.min(), self.counted))
        if step < self.latest:
            self.wrong.append(("went back", self.latest, step))
        self.counted, self.unknown = int(done[0]), 0

    def advance_once(self, session):
        self.unknown = 1
        value, _ = session.run([self.advance, self.train])
        with self.changed:
            self.counted, self.unknown = self.counted + 1, 0
            self.changed.notify_all()
        if value <= self.latest:
            self.wrong.append(("went back", self.latest, value))
        self.latest = value


class JournalTest(unittest.TestCase):

    def test_a_killed_ps_knows_what_it_knew(self):
        with journaled({"ps": 1, "worker": 2}) as cluster:
            self.kill_again_and_again(cluster)

    def wait_for_steps(self, clients, steps):
        goal = [client.counted + steps for client in clients]
        in_time = [client.wait_for(want, 60) for client, want in zip(clients, goal)]
        self.assertEqual([client.wrong for client in clients], [[], []])
        self.assertTrue(all(in_time), "no steps")

    def kill_again_and_again(self, cluster):
        clients = [Client(cluster.target("worker", worker), worker) for worker in range(2)]
        with tf1.Session(clients[0].target, graph=clients[0].graph) as session:
            with clients[0].graph.as_default():
                session.run(tf1.global_variables_initializer())
        for client in clients:
            client.start()
        try:
            for _ in range(KILLS):
                self.wait_for_steps(clients, 20)
                cluster.restart("ps", 0)
            self.wait_for_steps(clients, 20)
        finally:
            for client in clients:
                client.stopping = True
            for client in clients:
                client.join()
        with tf1.Session(clients[0].target, graph=clients[0].graph) as session:
            step, rows, large = session.run([clients[0].step, clients[0].rows, clients[0].large])
        for client in clients:
            self.assertEqual(client.wrong, [])
            np.testing.assert_array_equal(rows[client.worker], np.full([4], client.counted))
            # One call fails for each kill: the new session waits for the ps.
            self.assertLessEqual(len(client.failures), KILLS, client.failures)
        np.testing.assert_array_equal(rows[2:], np.zeros([48, 4]))
        # An interrupted step may have changed its row and not the counter.
        counted, failed = sum(client.counted for client in clients), sum(len(client.failures) for client in clients)
        self.assertLessEqual(step, counted)
        self.assertGreaterEqual(step, counted - failed)
        np.testing.assert_array_equal(large, np.full([300, 200], large[0, 0]))
        # An interrupted step may have changed the large matrix and not its row.
        self.assertLessEqual(abs(large[0, 0] - counted), failed)


class PatientChief(tf1.train.ChiefSessionCreator):
    """A chief that keeps the variables if all have values; otherwise it restores or initializes them, as usual.

    docs/journal.md shows it."""

    def create_session(self):
        self._scaffold.finalize()
        session = tf1.Session(self._master, config=self._config)
        if session.run(self._scaffold.ready_op).size:
            session.close()
            return super().create_session()
        session.run(self._scaffold.local_init_op)
        return session


class MonitoredTest(unittest.TestCase):
    """Python's monitored sessions after a ps with a journal was killed."""

    @contextlib.contextmanager
    def killed_at_step_12(self, monitored):
        """A session that has run 12 steps, and whose ps was killed after that; yields it and the counter."""
        with tempfile.TemporaryDirectory() as folder, journaled({"ps": 1, "worker": 1}) as cluster, \
                tf.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")):
                step = tf1.train.get_or_create_global_step()
            advance = tf1.assign_add(step, 1)
            with monitored(cluster.target("worker", 0), folder) as session:
                for _ in range(12):
                    session.run(advance)
                cluster.restart("ps", 0)
                yield session, advance

    def chief(self, target, folder):
        return tf1.train.MonitoredTrainingSession(target, is_chief=True, checkpoint_dir=folder, save_checkpoint_steps=5,
                                                  save_summaries_steps=None, log_step_count_steps=None)

    def test_a_chief_restores_its_checkpoint(self):
        with self.killed_at_step_12(self.chief) as (session, advance):
            self.assertEqual(session.run(advance), 11)

    def test_a_chief_without_checkpoints_begins_anew(self):
        with self.killed_at_step_12(lambda target, _: self.chief(target, None)) as (session, advance):
            self.assertEqual(session.run(advance), 1)

    def test_a_patient_chief_goes_on(self):
        def patient(target, folder):
            hooks = [tf1.train.CheckpointSaverHook(folder, save_steps=5)]
            return tf1.train.MonitoredSession(PatientChief(master=target, checkpoint_dir=folder), hooks)

        with self.killed_at_step_12(patient) as (session, advance):
            self.assertEqual(session.run(advance), 13)

    def test_another_worker_goes_on(self):
        def worker(target, _):
            with tf1.Session(target) as session:
                session.run(tf1.global_variables_initializer())
            return tf1.train.MonitoredTrainingSession(target, is_chief=False, max_wait_secs=60)

        with self.killed_at_step_12(worker) as (session, advance):
            self.assertEqual(session.run(advance), 13)


class Replica(threading.Thread):
    """A worker of a synchronous job, whose every step subtracts 0.5 from `w`; the first is a patient chief."""

    def __init__(self, target, worker, changed):
        super().__init__(daemon=True)
        self.worker, self.graph = worker, tf.Graph()
        self.steps, self.began, self.error = [], [], None
        self.changed = changed  # notified when one of these changes
        setter = tf1.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{worker}")
        with self.graph.as_default(), tf1.device(setter):
            self.step = tf1.train.get_or_create_global_step()
            self.w = tf1.get_variable("w", initializer=10.0, use_resource=True)
            optimizer = tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(0.5), 2)
            self.train = optimizer.minimize(self.w, global_step=self.step)
            self.synchronous = optimizer.make_session_run_hook(worker == 0)
        creator = PatientChief if worker == 0 else tf1.train.WorkerSessionCreator
        with self.graph.as_default():
            self.creator = creator(master=target)

    def run(self):
        try:
            with self.graph.as_default():
                self.work()
        except Exception as error:
            with self.changed:
                self.error = error
                self.changed.notify_all()

    def note(self, notes, step):
        with self.changed:
            notes.append(int(step))
            self.changed.notify_all()

    def work(self):
        replica = self

        class Beginnings(tf1.train.SessionRunHook):
            """Records the step at which each session starts."""

            def after_create_session(self, session, coord):
                replica.note(replica.began, session.run(replica.step))

        hooks = [self.synchronous, Beginnings(), tf1.train.StopAtStepHook(last_step=SYNCHRONOUS_STEPS)]
        with tf1.train.MonitoredSession(self.creator, hooks, stop_grace_period_secs=1) as session:
            while not session.should_stop():
                self.note(self.steps, session.run([self.train, self.step])[1])


SYNCHRONOUS_STEPS = 80


class SynchronousTest(unittest.TestCase):
    """A synchronous job, whose accumulators and tokens are lost with the ps while its variables are not."""

    def setUp(self):
        # TensorFlow's queue runner threads end with the error that their session was lost.
        self.addCleanup(setattr, threading, "excepthook", threading.excepthook)
        threading.excepthook = lambda args: None

    def test_chief_and_worker_go_on(self):
        for policy in ("tf", "exact"):
            with self.subTest(policy=policy), journaled({"ps": 1, "worker": 2}, "--sync-policy", policy) as cluster:
                self.kill_once(cluster)

    def wait_for(self, changed, replicas, condition):
        def ended():
            return condition() or any(replica.error for replica in replicas)
        with changed:
            in_time = changed.wait_for(ended, 60)
            self.assertEqual([replica.error for replica in replicas], [None, None])
            self.assertTrue(in_time, [replica.steps[-5:] for replica in replicas])

    def kill_once(self, cluster):
        changed = threading.Condition()
        replicas = chief, worker = [Replica(cluster.target("worker", task), task, changed) for task in range(2)]
        # A worker that finds no variables checks again 30 s later.
        chief.start()
        self.wait_for(changed, replicas, lambda: chief.began)
        worker.start()
        self.wait_for(changed, replicas, lambda: len(worker.steps) > 5 and chief.steps[-1] > 20)
        cluster.restart("ps", 0)
        for replica in replicas:
            replica.join(30)
            self.assertFalse(replica.is_alive(), replica.steps[-5:])
            self.assertIsNone(replica.error)
            # Each opened one new session, and the step never decreased.
            self.assertEqual(len(replica.began), 2, replica.began)
            self.assertGreaterEqual(replica.began[1], 20)
            self.assertEqual(replica.steps, sorted(replica.steps))
        with tf1.Session(cluster.target("worker", 0), graph=chief.graph) as session:
            w, step = session.run([chief.w, chief.step])
        self.assertGreaterEqual(step, SYNCHRONOUS_STEPS)
        # Each update is in w once. The chief's thread applies and then counts; it was interrupted twice, by the kill and
        # by its own end.
        self.assertIn((10 - w) / 0.5 - step, (0, 1, 2))


if __name__ == "__main__":
    unittest.main()
