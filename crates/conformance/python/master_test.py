"""The master over several tasks: missing tasks when a session starts, partial runs, callables, containers, filters,
and placement."""
import concurrent.futures
import contextlib
import socket
import tempfile
import threading
import unittest

import grpc
import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
errors = tf.errors

OURS, THEIRS = "flowgrid", "tensorflow"
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@contextlib.contextmanager
def greeter(greeting):
    """A server that sends this to every client, or listens and sends nothing; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    held.append(listener.accept()[0])
                    held[-1].sendall(greeting)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield "127.0.0.1:%d" % listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in held:
                connection.close()


@contextlib.contextmanager
def empty_grpc_server():
    """A gRPC server without methods; yields its address."""
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


class MissingTasksTest(unittest.TestCase):
    """A worker whose ps are missing, or are other servers."""

    def setUp(self):
        self.enterContext(tf.Graph().as_default())
        self.refused = "127.0.0.1:%d" % serving.free_ports(1)[0]

    def worker(self, *ps):
        spec = {"worker": ["127.0.0.1:%d" % serving.free_ports(1)[0]], "ps": list(ps)}
        self.enterContext(serving.process(serving.command(OURS, spec, "worker", 0)))
        return "grpc://" + spec["worker"][0]

    def failure(self, target, kind, **config):
        config = tf1.ConfigProto(operation_timeout_in_ms=2000, **config)
        with self.assertRaises(kind) as caught, tf1.Session(target, config=config) as session:
            session.run(tf.constant(1))
        return caught.exception.message

    def test_every_missing_task_is_named_with_its_address_and_the_reason(self):
        rubbish = self.enterContext(greeter(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"))
        silent = self.enterContext(greeter(b""))
        nowhere = "no-such-host.invalid:2222"
        target = self.worker(self.refused, nowhere, rubbish, silent)
        message = self.failure(target, errors.DeadlineExceededError)
        self.assertIn("CreateSession: 4 of 5 tasks did not answer within 2s:\n", message)
        for task, (address, why) in enumerate([
                (self.refused, "connection refused"), (nowhere, "its name does not resolve"),
                (rubbish, "(it speaks another protocol|connection closed)"), (silent, "no answer yet")]):
            self.assertRegex(message, f"Task /job:ps/replica:0/task:{task} at {address} does not answer: {why}")

    def test_a_filter_leaves_out_a_task_that_is_not_there(self):
        target = self.worker(self.refused)
        config = tf1.ConfigProto(operation_timeout_in_ms=10000, device_filters=["/job:worker"])
        with tf1.Session(target, config=config) as session:
            self.assertEqual([device.name for device in session.list_devices()],
                             ["/job:worker/replica:0/task:0/device:CPU:0"])
            self.assertEqual(session.run(tf.constant(5)), 5)
        message = self.failure(target, errors.DeadlineExceededError, device_filters=["/job:ps"])
        self.assertIn(f"Task /job:ps/replica:0/task:0 at {self.refused} does not answer: connection refused", message)

    def test_an_address_of_another_task_or_of_no_task(self):
        other = self.enterContext(serving.server(OURS))["worker"][0].removeprefix("grpc://")
        message = self.failure(self.worker(other), errors.InvalidArgumentError)
        self.assertIn(f"The address {other} of /job:ps/replica:0/task:0 belongs to another task, which answers as "
                      "/job:worker/replica:0/task:0", message)
        empty = self.enterContext(empty_grpc_server())
        message = self.failure(self.worker(empty), errors.UnimplementedError)
        self.assertIn(f"The address {empty} of /job:ps/replica:0/task:0 is not that of a TensorFlow server: ", message)


class TwoTasksTest(unittest.TestCase):
    """A ps and a worker of ours."""

    @classmethod
    def setUpClass(cls):
        cls.log = cls.enterClassContext(tempfile.TemporaryFile("w+"))
        cls.targets = cls.enterClassContext(serving.cluster(OURS, {"ps": 1, "worker": 1}, log=cls.log))
        cls.target = cls.targets["worker"][0]

    def setUp(self):
        self.enterContext(tf.Graph().as_default())

    def session(self, **config):
        return self.enterContext(tf1.Session(self.target, config=tf1.ConfigProto(**config)))

    def test_partial_run_that_fails_halfway(self):
        with tf1.device(PS):
            x, y = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [None])
            doubled, bad = x * 2, tf.reshape(y, [3], name="reshaped")
        with tf1.device(WORKER):
            last = bad + 1
        session = self.session()
        handle = session.partial_run_setup([doubled, last], [x, y])
        self.assertEqual(session.partial_run(handle, doubled, {x: 2}), 4)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "From /job:ps/replica:0/task:0:\n(.|\n)*reshaped"):
            session.partial_run(handle, last, {y: [1, 2]})
        with self.assertRaisesRegex(errors.InvalidArgumentError, "Must run PartialRunSetup"):
            session.partial_run(handle, last, {y: [1, 2]})
        self.assertEqual(session.run(doubled, {x: 3}), 6)

    def abandoned(self, name, end, **config):
        """The size of a queue of the ps after a step that waited for it was cancelled and an element was added."""
        with tf1.device(PS):
            x = tf1.placeholder(tf.float32, [])
            doubled = x * 2
            queue = tf1.FIFOQueue(10, tf.float32, shared_name=name)
            taken = queue.dequeue()
            put, size = queue.enqueue(7.0), queue.size()
        with tf1.device(WORKER):
            last = taken + doubled
        session, other = self.session(**config), self.session()
        handle = session.partial_run_setup([doubled, last], [x])
        self.assertEqual(session.partial_run(handle, doubled, {x: 2}), 4)
        end(session, handle, last)
        other.run(put)
        return other.run(size)

    def test_partial_run_of_a_session_that_closes(self):
        self.assertEqual(self.abandoned("closed", lambda session, *_: session.close()), 1)

    def test_partial_run_that_times_out(self):
        def time_out(session, handle, last):
            with self.assertRaises(errors.DeadlineExceededError):
                session.partial_run(handle, last)
        self.assertEqual(self.abandoned("timed_out", time_out, operation_timeout_in_ms=1500), 1)

    def test_callables(self):
        x = tf1.placeholder(tf.float32, [None])
        with tf1.device(PS):
            scale = tf1.get_variable("scale", [], initializer=tf1.constant_initializer(3.0))
        with tf1.device(WORKER):
            y, total = x * scale, tf.reduce_sum(x)
        with tf1.device(PS):
            add = tf1.assign_add(scale, 1.0).op
        session = self.session()
        session.run(scale.initializer)
        call, grow = session.make_callable([y, total], [x]), session.make_callable(add)
        for step in range(3):
            scaled, summed = call(np.array([1, 2], np.float32))
            np.testing.assert_array_equal(scaled, [3 + step, 2 * (3 + step)])
            self.assertEqual(summed, 3)
            self.assertIsNone(grow())

    def test_reset_clears_one_container_on_all_tasks(self):
        made = {}
        for container in ("", "experiment"):
            for device in (PS, WORKER):
                with tf1.container(container), tf1.device(device):
                    name = f"v_{container}_{device[5:7]}"
                    made[container, device] = tf1.Variable(1.0, name=name, use_resource=False)
        with tf1.Session(self.target) as session:
            session.run(tf1.global_variables_initializer())
        tf1.Session.reset(self.target, ["experiment"])
        session = self.session()
        for (container, device), variable in made.items():
            with self.subTest(container=container, device=device):
                self.assertEqual(session.run(tf1.is_variable_initialized(variable)), container == "")

    def test_placement_is_logged_at_the_master_and_told_once(self):
        with tf1.device(PS):
            a = tf1.placeholder(tf.float32, [], name="fed")
            b = tf.multiply(a, 2.0, name="on_the_ps")
        with tf1.device(WORKER):
            c = tf.add(b, 1.0, name="on_the_worker")
        ps, worker = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"
        session = self.session(log_device_placement=True)

        def told(fetch):
            metadata = tf1.RunMetadata()
            session.run(fetch, {a: 1}, run_metadata=metadata)
            return {node.name: node.device for graph in metadata.partition_graphs for node in graph.node}

        first = told(c)
        self.assertEqual((first["on_the_ps"], first["on_the_worker"]), (ps, worker))
        self.assertEqual(told(c), {})
        self.assertEqual(told(b)["on_the_ps"], ps)
        self.log.seek(0)
        log = self.log.read()
        self.assertEqual(log.count(f"on_the_ps: (Mul): {ps}\n"), 1)
        self.assertEqual(log.count(f"on_the_worker: (AddV2): {worker}\n"), 1)


class PlacementTest(unittest.TestCase):

    def test_placement_is_printed_as_tensorflow_prints_it(self):
        expected = "on_the_worker: (Const): /job:worker/replica:0/task:0/device:CPU:0\n"
        for kind in (OURS, THEIRS):
            with self.subTest(kind=kind), serving.cluster(kind, {"worker": 1}) as targets, tf.Graph().as_default():
                one = tf.constant(1.0, name="on_the_worker")
                with tf1.Session(targets["worker"][0], config=tf1.ConfigProto(log_device_placement=True)) as session:
                    session.run(one)
                server, = targets.processes
                server.terminate()
                self.assertIn(expected, server.stdout.readlines())


class MixedTest(unittest.TestCase):

    def test_partial_runs_and_callables_over_two_tasks_of_either_kind(self):
        for ps, worker in ((OURS, OURS), (THEIRS, OURS), (OURS, THEIRS)):
            kinds = {("ps", 0): ps, ("worker", 0): worker}
            with self.subTest(kinds=kinds), serving.cluster(kinds, {"ps": 1, "worker": 1}) as targets:
                with tf.Graph().as_default(), tf1.Session(targets["worker"][0]) as session:
                    with tf1.device(PS):
                        x = tf1.placeholder(tf.float32, [])
                        doubled = x * 2
                    with tf1.device(WORKER):
                        y = tf1.placeholder(tf.float32, [])
                        last = doubled + y
                    call = session.make_callable(last, [x, y])
                    for step in range(3):
                        handle = session.partial_run_setup([doubled, last], [x, y])
                        self.assertEqual(session.partial_run(handle, doubled, {x: step}), 2 * step)
                        self.assertEqual(session.partial_run(handle, last, {y: 5}), 2 * step + 5)
                        self.assertEqual(call(step, 7), 2 * step + 7)


if __name__ == "__main__":
    unittest.main()
