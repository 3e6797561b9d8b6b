"""Malformed graphs, wrong values and false sizes: the right error, and a server that continues."""
import os
import unittest

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2, tensor_pb2, types_pb2

import serving

tf1 = tf.compat.v1
errors = tf.errors


def varint(number):
    out = b""
    while number > 0x7f:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    """A length-delimited field: there is no Python module for the master's messages."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def constant(name, value=1.0):
    node = node_def_pb2.NodeDef(name=name, op="Const")
    node.attr["dtype"].type = types_pb2.DT_FLOAT
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.float32))
    return node


def binary(name, a, b, op="AddV2"):
    node = node_def_pb2.NodeDef(name=name, op=op, input=[a, b])
    node.attr["T"].type = types_pb2.DT_FLOAT
    return node


class BadInputTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(serving.server("flowgrid"))["worker"][0]
        cls.channel = grpc.insecure_channel(cls.target.removeprefix("grpc://"))
        cls.addClassCleanup(cls.channel.close)

    def tearDown(self):
        """After each bad request, the next step succeeds."""
        with tf.Graph().as_default(), tf1.Session(self.target) as session:
            self.assertEqual(session.run(tf.constant(2) * 3), 6)

    def call(self, method, request):
        return self.channel.unary_unary(f"/tensorflow.MasterService/{method}")(request, timeout=30)

    def create(self, *nodes):
        graph = graph_pb2.GraphDef(node=nodes)
        graph.versions.producer = 2474
        return self.call("CreateSession", field(1, graph.SerializeToString()))

    def refused(self, code, text, *nodes):
        with self.assertRaises(grpc.RpcError) as raised:
            self.create(*nodes)
        self.assertEqual(raised.exception.code(), code)
        self.assertIn(text, raised.exception.details())

    def test_cycle(self):
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "cycle", binary("a", "b", "b"), binary("b", "a", "a"))

    def test_missing_input(self):
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "Unknown input node 'missing'", constant("a"),
                     binary("b", "a", "missing"))

    def test_duplicate_name(self):
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "'a' is not unique", constant("a"), constant("a"))

    def test_unknown_op(self):
        self.refused(grpc.StatusCode.NOT_FOUND, "Op type not registered 'Frobnicate'",
                     node_def_pb2.NodeDef(name="a", op="Frobnicate"))

    def test_wrong_attribute_kind(self):
        node = constant("a")
        node.attr["dtype"].CopyFrom(attr_value_pb2.AttrValue(i=1))
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "'dtype'", node)

    def test_missing_attribute(self):
        node = constant("a")
        del node.attr["dtype"]
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "missing attr 'dtype'", node)

    def test_output_that_is_not_there(self):
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "invalid output 7", constant("a"), binary("b", "a:7", "a"))

    def test_device_that_does_not_exist(self):
        node = constant("a")
        node.device = "/job:worker/task:7"
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "/job:worker/replica:0/task:0/device:CPU:0", node)

    def test_garbage_bytes(self):
        rng = np.random.RandomState(1)
        for size in (1, 10, 100, 1000):
            with self.assertRaises(grpc.RpcError):
                self.call("CreateSession", b"\x0a\xff\xff\xff\x0f" + rng.bytes(size))

    def run_graph(self, build, feed=None):
        with tf.Graph().as_default(), tf1.Session(self.target) as session:
            return session.run(build(), feed)

    def fails(self, error, text, build):
        with self.assertRaisesRegex(error, text):
            self.run_graph(build)

    def test_placeholder_not_fed(self):
        self.fails(errors.InvalidArgumentError, "You must feed a value for placeholder tensor 'x'",
                   lambda: tf1.placeholder(tf.float32, [2], name="x") + 1)

    def test_shapes_that_do_not_fit(self):
        def build():
            x = tf1.placeholder_with_default(tf.ones([2, 3]), None)
            y = tf1.placeholder_with_default(tf.ones([4, 5]), None)
            return tf.matmul(x, y)
        self.fails(errors.InvalidArgumentError, "Matrix size-incompatible", build)

    def test_broadcast_that_does_not_fit(self):
        def build():
            x = tf1.placeholder_with_default(tf.ones([2, 3]), None)
            return x + tf1.placeholder_with_default(tf.ones([4]), None)
        self.fails(errors.InvalidArgumentError, "Incompatible shapes", build)

    def test_huge_fill(self):
        for dims in ([10 ** 12], [10 ** 6, 10 ** 6], [2 ** 31, 2 ** 31, 2 ** 31]):
            with self.subTest(dims=dims), self.assertRaises((errors.ResourceExhaustedError, errors.InvalidArgumentError)):
                self.run_graph(lambda: tf.fill(tf1.placeholder_with_default(tf.constant(dims, tf.int64), [None]), 1.0))

    def test_negative_fill(self):
        self.fails(errors.InvalidArgumentError, "",
                   lambda: tf.fill(tf1.placeholder_with_default(tf.constant([-1]), [None]), 1.0))

    def test_constant_whose_count_lies(self):
        node = constant("a")
        node.attr["value"].tensor.CopyFrom(tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, tensor_content=b"abc"))
        node.attr["value"].tensor.tensor_shape.dim.add(size=1 << 40)
        handle = self.create(node)
        session = handle[2:2 + handle[1]]
        answer = self.call("RunStep", field(1, session) + field(3, b"a:0") + b"\x38\x01")
        self.assertIn(b"tensor_content", answer)

    def test_memory_does_not_grow(self):
        pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
        own = [pid for pid in pids if self.is_server(pid)]
        self.assertTrue(own)
        before = self.resident(own[0])
        for _ in range(20):
            self.test_huge_fill()
        self.assertLess(self.resident(own[0]) - before, 64 << 20)

    def is_server(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return self.target.removeprefix("grpc://").encode() in file.read() and os.getppid() != int(pid)
        except OSError:
            return False

    @staticmethod
    def resident(pid):
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    unittest.main()
