"""The calls of a training step, as docs/parameter-update.md states them, counted by a proxy in front of each task."""
import collections
import contextlib
import subprocess
import threading
import unittest
from concurrent import futures

import grpc
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

NO_LIMIT = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)]
STEPS = 10
# The header with ended steps that Flowgrid's tasks send to each other.
ENDED, TAKES_ENDED = "flowgrid-ended-steps", "flowgrid-takes-ended-steps"


class Door(grpc.GenericRpcHandler):
    """A proxy in front of a task: counts the calls by name and forwards them with these headers. Without headers
    Flowgrid's tasks treat each other as TensorFlow's."""

    def __init__(self, headers=()):
        self.headers = headers
        self.counts, self.changed = collections.Counter(), threading.Condition()
        self.server = grpc.server(futures.ThreadPoolExecutor(32), handlers=[self], options=NO_LIMIT)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.channel = None

    def open(self, address):
        self.channel = grpc.insecure_channel(address, NO_LIMIT)
        self.server.start()

    def service(self, details):
        call = self.channel.unary_unary(details.method)

        def kept(metadata):
            return [(key, value) for key, value in metadata if key in self.headers]

        def forward(request, context):
            name, headers = details.method.rsplit("/", 1)[1], kept(context.invocation_metadata())
            with self.changed:
                self.counts[name] += 1
                self.counts["ended"] += sum(len(value.split(",")) for key, value in headers if key == ENDED)
                self.counts["ended"] += name == "CleanupGraph"
                self.changed.notify_all()
            try:
                answer, made = call.with_call(request, metadata=headers)
                context.send_initial_metadata(kept(made.initial_metadata()))
                return answer
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
        return grpc.unary_unary_rpc_method_handler(forward)

    def close(self):
        self.server.stop(None).wait()
        self.channel.close()


@contextlib.contextmanager
def doors(size, headers=()):
    """A cluster in which every call passes through the proxy of its task, {(job, task): Door}."""
    ports, running = iter(serving.free_ports(sum(size.values()))), []
    found = {(job, task): Door(headers) for job, count in size.items() for task in range(count)}
    real = {task: f"127.0.0.1:{next(ports)}" for task in found}
    with contextlib.ExitStack() as stack:
        for own, door in found.items():
            # A task listens at its own address in the cluster, and calls the others through their proxies.
            where = {job: [real[job, task] if (job, task) == own else found[job, task].address for task in range(count)]
                     for job, count in size.items()}
            running.append(stack.enter_context(subprocess.Popen(
                serving.command("flowgrid", where, *own), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)))
            stack.callback(running[-1].kill)
            door.open(real[own])
            stack.callback(door.close)
        for process in running:
            serving.wait_ready(process)
        yield found


def layers(worker):
    """The model of the page: 100 x 10 weights on the first ps and 10 x 1 on the second."""
    with tf1.device(tf1.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{worker}")):
        with tf1.variable_scope("model", reuse=tf1.AUTO_REUSE, use_resource=True):
            hidden = tf.tanh(tf.matmul(tf.ones([32, 100]), tf1.get_variable("hidden", [100, 10])))
            return tf.reduce_mean(tf.square(tf.matmul(hidden, tf1.get_variable("output", [10, 1]))))


def descend(loss):
    """A step of gradient descent, and its loss. Python's optimizer would create its learning rate on the master."""
    variables, updates = tf1.trainable_variables(), []
    for variable, gradient in zip(variables, tf1.gradients(loss, variables, colocate_gradients_with_ops=True)):
        with tf1.device(variable.device):
            rate = tf.constant(0.1)
            updates.append(tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=gradient))
    with tf1.device("/job:worker/task:0"):
        return tf.group(*updates), loss


class CallsTest(unittest.TestCase):

    def count(self, size, build, expected):
        """Trains, and compares the calls that each task gets in a step with the page."""
        with doors(size) as found, tf.Graph().as_default():
            train = build()
            with tf1.Session("grpc://" + found["worker", 0].address) as session:
                session.run(tf1.global_variables_initializer())
                session.run(train)  # registers its graphs
                self.settle(found)
                before = {task: collections.Counter(door.counts) for task, door in found.items()}
                for _ in range(STEPS):
                    session.run(train)
                self.settle(found)
            for task, door in found.items():
                made = {call: (door.counts - before[task])[call] / STEPS
                        for call in ("RunStep", "RunGraph", "RecvTensor", "CleanupGraph", "RegisterGraph")}
                self.assertEqual({call: count for call, count in made.items() if count}, expected[task], task)

    def settle(self, found):
        """A client gets its answer before all tasks have cleaned up."""
        for task, door in found.items():
            with door.changed:
                self.assertTrue(door.changed.wait_for(
                    lambda: door.counts["ended"] == door.counts["RunGraph"], 30), (task, door.counts))

    def test_between_graph(self):
        self.count({"ps": 2, "worker": 1}, lambda: descend(layers(0)), {
            ("worker", 0): {"RunStep": 1, "RecvTensor": 2},  # for the gradients
            ("ps", 0): {"RunGraph": 1, "RecvTensor": 2, "CleanupGraph": 1},  # for weights and update
            ("ps", 1): {"RunGraph": 1, "RecvTensor": 2, "CleanupGraph": 1},
        })

    def test_in_graph(self):
        def build():
            losses = [layers(worker) for worker in range(3)]
            with tf1.device("/job:worker/task:0"):
                return descend(losses[0] + losses[1] + losses[2])
        self.count({"ps": 2, "worker": 3}, build, {
            ("worker", 0): {"RunStep": 1, "RecvTensor": 4},  # two sums, and a scalar for each of the others
            ("worker", 1): {"RunGraph": 1, "RecvTensor": 3, "CleanupGraph": 1},  # two gradients and a scalar
            ("worker", 2): {"RunGraph": 1, "RecvTensor": 3, "CleanupGraph": 1},
            ("ps", 0): {"RunGraph": 1, "RecvTensor": 4, "CleanupGraph": 1},  # weights for three, and the update
            ("ps", 1): {"RunGraph": 1, "RecvTensor": 4, "CleanupGraph": 1},
        })

    def test_a_fetch_comes_with_the_run_and_its_end_with_the_next(self):
        with doors({"worker": 2}, (ENDED, TAKES_ENDED)) as found, tf.Graph().as_default():
            with tf1.device("/job:worker/task:0"):
                x = tf1.get_variable("x", [], initializer=tf1.ones_initializer())
            with tf1.device("/job:worker/task:1"):
                fetched = x + 2
            with tf1.Session("grpc://" + found["worker", 0].address) as session:
                session.run(x.initializer)
                for _ in range(STEPS):
                    self.assertEqual(session.run(fetched), 3)
                self.settle(found)  # each ended step is reported once
            first, second = found["worker", 0].counts, found["worker", 1].counts
            self.assertEqual((first["RecvTensor"], second["RecvTensor"], second["RunGraph"]), (STEPS, 0, STEPS))
            self.assertEqual(second["ended"], STEPS)


if __name__ == "__main__":
    unittest.main()
