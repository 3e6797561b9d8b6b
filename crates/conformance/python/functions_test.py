"""Functions that call themselves, nest deep, or double with every level: results or errors, and a server that continues."""
import unittest

import grpc
import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2, tensor_pb2, types_pb2

import serving
from bad_input_test import constant, field

tf1 = tf.compat.v1
FLOAT, BOOL, RESOURCE_EXHAUSTED = types_pb2.DT_FLOAT, types_pb2.DT_BOOL, grpc.StatusCode.RESOURCE_EXHAUSTED


def node(name, op, *inputs, device="", **types):
    made = node_def_pb2.NodeDef(name=name, op=op, input=inputs, device=device)
    for key, value in types.items():
        made.attr[key].type = value
    return made


def call(name, function, *inputs, device=""):
    made = node(name, "StatefulPartitionedCall", *inputs, device=device)
    made.attr["Tin"].list.type.extend([FLOAT] * len(inputs))
    made.attr["Tout"].list.type.append(FLOAT)
    made.attr["f"].func.name = function
    return made


def condition(name, then_branch, else_branch, pred, *inputs, lower=False):
    made = node(name, "If", pred, *inputs, Tcond=BOOL)
    made.attr["Tin"].list.type.extend([FLOAT] * len(inputs))
    made.attr["Tout"].list.type.append(FLOAT)
    made.attr["then_branch"].func.name = then_branch
    made.attr["else_branch"].func.name = else_branch
    made.attr["_lower_using_switch_merge"].b = lower
    return made


def function(name, result, *nodes, args=("x",)):
    made = function_pb2.FunctionDef(node_def=nodes, ret={"y": result})
    made.signature.name = name
    for arg in args:
        made.signature.input_arg.add(name=arg, type=FLOAT)
    made.signature.output_arg.add(name="y", type=FLOAT)
    return made


def chain(count, twice=False, device=""):
    """f0 calls f1, and so on; the last one negates its argument on a device."""
    for i in range(count):
        other = [call("b", f"f{i + 1}", "x")] if twice else []
        yield function(f"f{i}", "s:z:0", call("a", f"f{i + 1}", "x"), *other,
                       node("s", "AddV2", "a:output:0", "b:output:0" if twice else "x", T=FLOAT))
    yield function(f"f{count}", "s:y:0", node("s", "Neg", "x", T=FLOAT, device=device))


def nested_conditions(count, lower=False, device=""):
    for i in range(count):
        yield function(f"f{i}", "c:output:0", constant("zero", 0.0), node("p", "Less", "zero:output:0", "x", T=FLOAT),
                       condition("c", f"f{i + 1}", "same", "p:z:0", "x", lower=lower))
    yield function(f"f{count}", "s:y:0", node("s", "Neg", "x", T=FLOAT, device=device))
    yield function("same", "x")


FACTORIAL = [
    function("f", "c:output:0", constant("one", 1.0), node("p", "Less", "one:output:0", "x", T=FLOAT),
             condition("c", "more", "end", "p:z:0", "x")),
    function("more", "m:z:0", constant("one", 1.0), node("less", "Sub", "x", "one:output:0", T=FLOAT),
             call("rest", "f", "less:z:0"), node("m", "Mul", "x", "rest:output:0", T=FLOAT)),
    function("end", "one:output:0", constant("one", 1.0)),
]


class FunctionsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.targets = cls.enterClassContext(serving.cluster("flowgrid", {"worker": 2}))["worker"]
        cls.channel = grpc.insecure_channel(cls.targets[0].removeprefix("grpc://"))
        cls.addClassCleanup(cls.channel.close)

    def tearDown(self):
        """After each bad request, the next step succeeds."""
        with tf.Graph().as_default(), tf1.Session(self.targets[0]) as session:
            self.assertEqual(session.run(tf.constant(2) * 3), 6)

    def call(self, method, request, timeout):
        return self.channel.unary_unary(f"/tensorflow.MasterService/{method}")(request, timeout=timeout)

    def run_function(self, functions, value=5.0, name="f0", timeout=60):
        """Calls a function with a constant; the value of the answer."""
        graph = graph_pb2.GraphDef(node=[constant("x", value), call("c", name, "x")])
        graph.library.function.extend(functions)
        graph.versions.producer = 2474
        handle = self.call("CreateSession", field(1, graph.SerializeToString()), 60)
        session = handle[2:2 + handle[1]]
        answer = self.call("RunStep", field(1, session) + field(3, b"c:0"), timeout)
        return self.fetched(answer)

    @staticmethod
    def fetched(answer):
        """The float in the first field of the answer, a NamedTensorProto."""
        at = answer.index(b"c:0") + 3
        skip = 2 if answer[at + 1] < 0x80 else 3
        return float(tf.make_ndarray(tensor_pb2.TensorProto.FromString(answer[at + skip:])))

    def refused(self, code, text, *args, **kwargs):
        with self.assertRaises(grpc.RpcError) as raised:
            self.run_function(*args, **kwargs)
        self.assertEqual(raised.exception.code(), code)
        self.assertIn(text, raised.exception.details())

    def test_factorial(self):
        self.assertEqual(self.run_function(FACTORIAL, 6.0, "f"), 720.0)

    def test_self_call(self):
        endless = function("f0", "a:output:0", call("a", "f0", "x"))
        self.refused(RESOURCE_EXHAUSTED, "Calls of functions nest deeper than 10000", [endless])

    def test_self_call_by_name(self):
        endless = function("f0", "a:y:0", node("a", "f0", "x"))
        self.refused(RESOURCE_EXHAUSTED, "Calls of functions nest deeper than 10000", [endless])

    def test_mutual_call(self):
        one, other = function("f0", "a:output:0", call("a", "f1", "x")), function("f1", "a:output:0", call("a", "f0", "x"))
        self.refused(RESOURCE_EXHAUSTED, "Calls of functions nest deeper than 10000", [one, other])

    def test_self_call_on_two_tasks(self):
        far = node("far", "Neg", "a:output:0", T=FLOAT, device="/job:worker/task:1")
        self.refused(RESOURCE_EXHAUSTED, "Calls of functions nest deeper than 10000",
                     [function("f0", "far:y:0", call("a", "f0", "x"), far)])

    def test_endless_gradient(self):
        gradient = node("a", "SymbolicGradient", "x", "x")
        gradient.attr["Tin"].list.type.extend([FLOAT, FLOAT])
        gradient.attr["Tout"].list.type.append(FLOAT)
        gradient.attr["f"].func.name = "f0"
        with self.assertRaises(grpc.RpcError):
            self.run_function([function("f0", "a:output:0", gradient)])

    def test_thousands_nested(self):
        self.assertEqual(self.run_function(chain(3000)), 2999 * 5.0 - 5.0 + 5.0)

    def test_hundreds_nested_on_two_tasks(self):
        self.assertEqual(self.run_function(chain(200, device="/job:worker/task:1")), 199 * 5.0)

    def test_thousands_nested_on_two_tasks(self):
        self.refused(RESOURCE_EXHAUSTED, "cannot be inlined: calls nest deeper than 1000",
                     chain(3000, device="/job:worker/task:1"))

    def test_calls_that_double(self):
        self.refused(grpc.StatusCode.DEADLINE_EXCEEDED, "", chain(40, twice=True), timeout=3)

    def test_calls_that_double_on_two_tasks(self):
        self.refused(RESOURCE_EXHAUSTED, "cannot be inlined: the inlined functions take more than",
                     chain(40, twice=True, device="/job:worker/task:1"))

    def test_conditions_in_conditions(self):
        self.assertEqual(self.run_function(nested_conditions(1000)), -5.0)
        self.assertEqual(self.run_function(nested_conditions(1000, lower=True)), -5.0)

    def test_conditions_in_conditions_on_two_tasks(self):
        functions = nested_conditions(100, lower=True, device="/job:worker/task:1")
        self.assertEqual(self.run_function(functions), -5.0)
        self.refused(RESOURCE_EXHAUSTED, "cannot be inlined",
                     nested_conditions(3000, lower=True, device="/job:worker/task:1"))

    def test_attributes_that_grow_with_every_call(self):
        again = call("a", "f0", "x")
        again.attr["f"].func.attr["g"].func.name = "f0"
        again.attr["f"].func.attr["g"].func.attr["g"].placeholder = "g"
        first = call("a", "f0", "x")
        first.attr["f"].func.attr["g"].func.name = "f0"
        self.refused(RESOURCE_EXHAUSTED, "has functions that nest deeper than 32",
                     [function("f0", "a:output:0", again), function("start", "a:output:0", first)], name="start")


if __name__ == "__main__":
    unittest.main()
