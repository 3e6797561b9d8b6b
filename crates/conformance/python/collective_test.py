"""Collective ops in groups of Flowgrid's and TensorFlow's workers, and on the devices of one worker."""
import contextlib
import os
import subprocess
import tempfile
import time
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import collective_ops

import serving
import threads

tf1 = tf.compat.v1

TF_SERVER = """
import sys
import tensorflow as tf
from tensorflow.core.protobuf import tensorflow_server_pb2
server_def = tensorflow_server_pb2.ServerDef.FromString(open(sys.argv[1], "rb").read())
server = tf.compat.v1.train.Server(server_def)
print("ready", flush=True)
server.join()
"""

FLOWGRID, TENSORFLOW = "flowgrid", "tensorflow"


def device(task, cpu=0):
    return f"/job:worker/replica:0/task:{task}/device:CPU:{cpu}"


class Group:
    """Running workers, of which the first one leads the groups."""

    def __init__(self, hosts, processes):
        self.hosts, self.processes = hosts, processes

    def kill(self, task):
        self.processes[task].kill()
        self.processes[task].wait()

    def session(self, task, graph):
        config = tf1.ConfigProto(device_filters=[f"/job:worker/task:{task}"])
        config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
        return tf1.Session(f"grpc://{self.hosts[task]}", graph=graph, config=config)


@contextlib.contextmanager
def group(*kinds, cpus=1):
    hosts = [f"127.0.0.1:{port}" for port in serving.free_ports(len(kinds))]
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        try:
            for task, kind in enumerate(kinds):
                server = tf.train.ServerDef(job_name="worker", task_index=task, protocol="grpc")
                job = server.cluster.job.add(name="worker")
                job.tasks.update(enumerate(hosts))
                server.default_session_config.device_count["CPU"] = cpus
                server.default_session_config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
                path = os.path.join(folder, f"{task}.pb")
                with open(path, "wb") as file:
                    file.write(server.SerializeToString())
                if kind == TENSORFLOW:
                    command = [serving.sys.executable, "-c", TF_SERVER, path]
                else:
                    command = [os.environ["FLOWGRID_BIN"], "server", "--server-def", path]
                processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True))
            for process in processes:
                serving.wait_ready(process)
            yield Group(hosts, processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()
                process.stdout.close()


def together(group, build, steps=1, seconds=60, members=None):
    """Every member builds its graph and runs it; gives what each one fetches, or its error."""
    members = members or range(len(group.hosts))
    results = {}

    def run(rank, task):
        with tf.Graph().as_default() as graph, tf.device(device(task)):
            fetches = build(rank)
            with group.session(task, graph) as session:
                try:
                    for _ in range(steps):
                        results[task] = session.run(fetches)
                except tf.errors.OpError as error:
                    results[task] = error

    threads.together(*[lambda rank=rank, task=task: run(rank, task) for rank, task in enumerate(members)],
                     seconds=seconds)
    return [results[task] for task in members]


def value(rank, shape, dtype=np.float32):
    return np.random.RandomState(rank + 1).uniform(-2, 2, shape).astype(dtype)


def whole(rank, shape, dtype=np.float32):
    """Small whole numbers: their sums and products are exact in any order."""
    return np.random.RandomState(rank + 1).randint(-3, 4, shape).astype(dtype)


def operations(rank, size):
    """One operation of each kind."""
    keys = iter(range(100, 200))
    group = {"group_size": size, "group_key": 1}

    def reduce(tensor, merge, final, version=1):
        function = collective_ops.all_reduce if version == 1 else collective_ops.all_reduce_v2
        return function(tensor, instance_key=next(keys), merge_op=merge, final_op=final, **group)

    def broadcast(tensor, source):
        key = next(keys)
        if rank == source:
            return collective_ops.broadcast_send(tensor, tensor.shape, tf.float32, instance_key=key, **group)
        return collective_ops.broadcast_recv([4, 3], tf.float32, instance_key=key, **group)

    def broadcast_v2(tensor, source):
        key = next(keys)
        if rank == source:
            return collective_ops.broadcast_send_v2(tensor, instance_key=key, **group)
        return collective_ops.broadcast_recv_v2(tf.constant([5]), tf.bool, instance_key=key, **group)

    return {
        "random sum": reduce(tf.constant(value(rank, [1001])), "Add", "Id"),
        "random mean": reduce(tf.constant(value(rank, [34])), "Add", "Div", 2),
        "sum": reduce(tf.constant(whole(rank, [7, 5])), "Add", "Id", 2),
        "product": reduce(tf.constant(whole(rank, [33], np.float64)), "Mul", "Id"),
        "min": reduce(tf.constant(whole(rank, [40], np.int32)), "Min", "Id"),
        "max": reduce(tf.constant(whole(rank, [], np.int64)), "Max", "Id", 2),
        "half": reduce(tf.constant(whole(rank, [64], np.float16)), "Add", "Id"),
        "empty": reduce(tf.constant(whole(rank, [0, 3])), "Add", "Id"),
        "gather": collective_ops.all_gather(tf.constant(whole(rank, [2, 3])), instance_key=next(keys), **group),
        "gather v2": collective_ops.all_gather_v2(tf.constant(whole(rank, [1], np.int32)), instance_key=next(keys),
                                                  **group),
        "from first": broadcast(tf.constant(whole(rank, [4, 3])), 0),
        "from last": broadcast(tf.constant(whole(rank, [4, 3])), size - 1),
        "bool": broadcast_v2(tf.constant(whole(rank, [5]) > 0), 1),
    }


def expected(size):
    def all_of(shape, dtype=np.float32):
        return [whole(rank, shape, dtype) for rank in range(size)]

    return {
        "sum": np.sum(all_of([7, 5]), 0),
        "product": np.prod(all_of([33], np.float64), 0),
        "min": np.min(all_of([40], np.int32), 0),
        "max": np.max(all_of([], np.int64), 0),
        "half": np.sum(all_of([64], np.float16), 0),
        "empty": np.zeros([0, 3], np.float32),
        "gather": np.concatenate(all_of([2, 3])),
        "gather v2": np.concatenate(all_of([1], np.int32)),
        "from first": whole(0, [4, 3]),
        "from last": whole(size - 1, [4, 3]),
        "bool": whole(1, [5]) > 0,
    }


class CollectiveTest(unittest.TestCase):

    def check(self, results):
        size = len(results)
        for found in results:
            if isinstance(found, Exception):
                raise found
            for name, numbers in expected(size).items():
                np.testing.assert_array_equal(found[name], numbers, name)
                self.assertEqual(found[name].dtype, numbers.dtype, name)
            for name in ["random sum", "random mean"]:
                self.assertEqual(found[name].tobytes(), results[0][name].tobytes(), f"{name}: all have the same bits")
            total = np.sum([value(rank, [1001], np.float64) for rank in range(size)], 0)
            np.testing.assert_allclose(found["random sum"], total, rtol=1e-5, atol=1e-5)

    def test_groups_of_both_kinds_led_by_either(self):
        for kinds in [(TENSORFLOW, FLOWGRID), (FLOWGRID, TENSORFLOW, FLOWGRID)]:
            with self.subTest(kinds), group(*kinds) as workers:
                self.check(together(workers, lambda rank: operations(rank, len(kinds)), steps=3))

    def test_devices_of_one_worker_and_of_two(self):
        def build(rank):
            fetches = []
            for cpu in range(2):
                with tf.device(device(rank, cpu)):
                    fetches.append(operations(2 * rank + cpu, size))
            return fetches

        for workers in [1, 2]:
            size = 2 * workers
            with self.subTest(workers), group(*[FLOWGRID] * workers, cpus=2) as running:
                results = together(running, build, steps=2)
                for found in results:
                    if isinstance(found, Exception):
                        raise found
                self.check(sum(results, []))

    def test_slices_for_every_member_and_communicators(self):
        def member(rank, size):
            slices = tf.constant(whole(rank, [size, 4]))
            communicator = collective_ops.initialize_communicator(group_key=9, rank=size - 1 - rank, group_size=size)
            none = tf.zeros([0], tf.int32)
            largest = tf.raw_ops.CollectiveReduceV3(input=slices, communicator=communicator, group_assignment=none,
                                                    reduction="Max")
            with tf.control_dependencies([largest]):  # operations of a communicator are counted
                backwards = tf.raw_ops.CollectiveAllToAllV3(input=slices, communicator=communicator,
                                                            group_assignment=none)
            return {"slices": collective_ops.all_to_all_v2(slices, size, 1, 5), "largest": largest,
                    "backwards": backwards}

        def build(rank):
            fetches = []
            for cpu in range(2):
                with tf.device(device(rank, cpu)):
                    fetches.append(member(2 * rank + cpu, size))
            return fetches

        # The ranks that programs give are known within a task only.
        for workers in [1, 2]:
            size = 2 * workers
            with self.subTest(workers), group(*[FLOWGRID] * workers, cpus=2) as running:
                results = together(running, build)
                for found in results:
                    if isinstance(found, Exception):
                        raise found
                for rank, found in enumerate(sum(results, [])):
                    column = np.stack([whole(other, [size, 4])[rank] for other in range(size)])
                    np.testing.assert_array_equal(found["slices"], column)
                    largest = np.max([whole(other, [size, 4]) for other in range(size)], 0)
                    np.testing.assert_array_equal(found["largest"], largest)
                    if workers == 1:
                        np.testing.assert_array_equal(found["backwards"], column[::-1])

    def test_a_member_that_dies_fails_the_others_with_its_name_and_they_go_on_without_it(self):
        def sum_of(size, key, steps_apart=0):
            def build(rank):
                ones = tf.ones([1000])
                return collective_ops.all_reduce(ones, size, key, 5, "Add", "Id")
            return build

        with group(FLOWGRID, FLOWGRID, FLOWGRID) as workers:
            for found in together(workers, sum_of(3, 1)):
                np.testing.assert_array_equal(found, np.full(1000, 3, np.float32))
            workers.kill(1)
            begin = time.monotonic()
            for found in together(workers, sum_of(3, 1), members=[0, 2]):
                self.assertIsInstance(found, tf.errors.OpError)
                self.assertIn("/job:worker/replica:0/task:1", str(found))
            self.assertLess(time.monotonic() - begin, 6)
            for found in together(workers, sum_of(2, 2), steps=3, members=[0, 2]):
                np.testing.assert_array_equal(found, np.full(1000, 2, np.float32))

    def test_waiting_and_disagreement_are_errors(self):
        def lonely(rank):
            return collective_ops.all_reduce(tf.ones([3]), 2, 1, 5, "Add", "Id", timeout=0.5)

        def communicator(rank):
            return collective_ops.initialize_communicator(group_key=4, rank=0, group_size=2, timeout_seconds=0.5).op

        def shapes(rank):
            return collective_ops.all_reduce(tf.ones([3 + rank]), 2, 2, 6, "Add", "Id")

        def sizes(rank):
            return collective_ops.all_reduce(tf.ones([3]), 2 + rank, 3, 7, "Add", "Id")

        with group(FLOWGRID, FLOWGRID) as workers:
            (alone,) = together(workers, lonely, members=[1])
            self.assertIsInstance(alone, tf.errors.DeadlineExceededError)
            self.assertIn("Collective has timed out waiting for other workers", str(alone))
            (alone,) = together(workers, communicator, members=[1])
            self.assertIsInstance(alone, tf.errors.DeadlineExceededError)
            found = together(workers, shapes)
            self.assertTrue(all(isinstance(error, tf.errors.OpError) for error in found), found)
            self.assertTrue(all("Shape mismatch in the collective instance 6" in str(error) for error in found), found)
            found = together(workers, sizes)
            self.assertTrue(all(isinstance(error, tf.errors.InternalError) for error in found), found)
            self.assertTrue(all("but that group has size" in str(error) for error in found), found)


if __name__ == "__main__":
    unittest.main()
