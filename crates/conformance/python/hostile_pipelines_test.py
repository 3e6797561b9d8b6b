"""Input pipelines that nest without end, or that are far larger than their graphs: errors, and a server that continues."""
import unittest

import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2, types_pb2

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
raw = tf.raw_ops
INT64, VARIANT = types_pb2.DT_INT64, types_pb2.DT_VARIANT
SPEC = {"output_types": [tf.int64], "output_shapes": [[]]}


def node(name, op, *inputs, function=None, **attrs):
    """A node; attributes are types, lists of types, or strings. Elements are scalars of type int64."""
    made = node_def_pb2.NodeDef(name=name, op=op, input=inputs)
    for key, value in attrs.items():
        if isinstance(value, list):
            made.attr[key].list.type.extend(value)
        elif isinstance(value, str):
            made.attr[key].s = value.encode()
        else:
            made.attr[key].type = value
    if function:
        made.attr["f"].func.name = function
    return made


def elements(name, op, *inputs, **attrs):
    """A node with the types and shapes of elements."""
    made = node(name, op, *inputs, output_types=[INT64], **attrs)
    made.attr["output_shapes"].list.shape.add()
    return made


def number(name, value):
    made = node(name, "Const", dtype=INT64)
    made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int64))
    return made


def numbers():
    """A dataset of one number, named `range`, and some constants."""
    return [number("zero", 0), number("one", 1), number("two", 2), elements("range", "RangeDataset", "zero", "one", "one")]


def function(name, args, result, kind, *nodes):
    made = function_pb2.FunctionDef(node_def=nodes, ret={"y": result})
    made.signature.name = name
    for arg, dtype in args.items():
        made.signature.input_arg.add(name=arg, type=dtype)
    made.signature.output_arg.add(name="y", type=kind)
    return made


def in_body(nodes):
    """The same nodes with inputs as they are named in the body of a function."""
    outputs = {"Const": "output", "RangeDataset": "handle"}
    ops = {made.name: outputs[made.op] for made in nodes if made.op in outputs}
    for made in nodes:
        made.input[:] = [f"{name}:{ops[name]}:0" if name in ops else name for name in made.input]
    return nodes


class HostilePipelinesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(serving.server("flowgrid"))["worker"][0]

    def tearDown(self):
        """After each pipeline, the next step succeeds."""
        with tf.Graph().as_default(), tf1.Session(self.target) as session:
            self.assertEqual(session.run(tf.constant(2) * 3), 6)

    def exhausted(self, text, build):
        """What `build` returns fails with this error."""
        with tf.Graph().as_default():
            target = build()
            with tf1.Session(self.target) as session, self.assertRaisesRegex(tf.errors.ResourceExhaustedError, text):
                session.run(target)

    def run_graph(self, text, nodes, functions):
        """The node `out` fails with this error."""
        graph_def = graph_pb2.GraphDef(node=nodes)
        graph_def.library.function.extend(functions)
        graph_def.versions.producer = 1882
        self.exhausted(text, lambda: tf.import_graph_def(graph_def, return_elements=["out:0"])[0])

    def returns_its_own_kind(self, make):
        """A function whose dataset calls the function again, for each of its elements."""
        body = function("f", {"x": INT64}, "nested:handle:0", VARIANT, *in_body([*numbers(), make("nested")]))
        nodes = [*numbers(), make("first"), elements("out", "DatasetToSingleElement", "first")]
        self.run_graph("more than 1000 stages", nodes, [body])

    def test_a_flat_map_of_itself(self):
        def make(name):
            return elements(name, "FlatMapDataset", "range", function="f", Targuments=[])
        self.returns_its_own_kind(make)

    def test_an_interleave_of_itself(self):
        def make(name):
            return elements(name, "InterleaveDataset", "range", "two", "one", function="f", Targuments=[])
        self.returns_its_own_kind(make)

    def test_an_interleave_of_itself_in_the_background(self):
        def make(name):
            return elements(name, "ParallelInterleaveDatasetV4", "range", "two", "one", "one", "one", "two", function="f",
                            Targuments=[], deterministic="true")
        self.returns_its_own_kind(make)

    def test_a_function_that_reduces_with_itself(self):
        def make(name, state):
            return elements(name, "ReduceDataset", "range", state, function="f", Tstate=[INT64], Targuments=[])
        body = function("f", {"s": INT64, "x": INT64}, "nested:components:0", INT64,
                        *in_body([*numbers(), make("nested", "s")]))
        self.run_graph("Input pipelines nest deeper than 100", [*numbers(), make("out", "zero")], [body])

    def captured(self, wrap, first, count=30_000):
        """Values in each other: `wrap` puts one into the next, in a loop."""
        def build():
            shape = tf.TensorShape([])
            body = lambda i, value: (i + 1, wrap(value))
            _, value = tf1.while_loop(lambda i, _: i < count, body, [0, first()], [shape, shape])
            return value.op
        return build

    def test_datasets_that_functions_capture(self):
        @tf.function(input_signature=[tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.variant)])
        def inner(_, dataset):
            return dataset

        def first():
            return raw.RangeDataset(start=0, stop=1, step=1, **SPEC)
        concrete = inner.get_concrete_function()

        def wrap(value):
            concrete.add_to_graph(tf1.get_default_graph())
            return raw.FlatMapDataset(input_dataset=first(), other_arguments=[value], f=concrete, **SPEC)
        self.exhausted("nest deeper than 1000", self.captured(wrap, first))

    def test_datasets_as_elements(self):
        def wrap(value):
            return raw.TensorDataset(components=[value], output_shapes=[[]])
        self.exhausted("nest deeper than 1000", self.captured(wrap, lambda: wrap(tf.constant(1))))

    def test_optionals_in_each_other(self):
        def wrap(value):
            return raw.OptionalFromValue(components=[value])
        self.exhausted("nest deeper than 1000", self.captured(wrap, lambda: wrap(tf.constant(1))))

    def test_lists_in_each_other(self):
        def wrap(value):
            empty = raw.EmptyTensorList(element_shape=tf.constant([], tf.int32), max_num_elements=-1,
                                        element_dtype=tf.variant)
            return raw.TensorListPushBack(input_handle=empty, tensor=value)
        self.exhausted("nest deeper than 1000", self.captured(wrap, lambda: raw.OptionalNone()))

    def test_the_deepest_values_are_used_and_dropped(self):
        """999 datasets in each other are fine."""
        with tf.Graph().as_default():
            def wrap(value):
                return raw.TensorDataset(components=[value], output_shapes=[[]])
            value = self.captured(wrap, lambda: wrap(tf.constant(1)), 999)().outputs[0]
            cardinality = raw.DatasetCardinality(input_dataset=value)
            with tf1.Session(self.target) as session:
                self.assertEqual(session.run(cardinality), 1)

    def test_iterators_that_double_with_every_stage(self):
        def build():
            dataset = raw.RangeDataset(start=0, stop=9, step=1, **SPEC)
            for _ in range(40):
                dataset = raw.DirectedInterleaveDataset(selector_input_dataset=dataset,
                                                        data_input_datasets=[dataset, dataset], **SPEC)
            return raw.MakeIterator(dataset=dataset, iterator=raw.IteratorV2(shared_name="", container="", **SPEC))
        self.exhausted("more than 100000 iterators", build)

    def test_components_that_double_with_every_stage(self):
        def build():
            dataset = raw.RangeDataset(start=0, stop=9, step=1, **SPEC)
            for _ in range(40):
                dataset = raw.ZipDataset(input_datasets=[dataset, dataset], **SPEC)
            return raw.DatasetCardinality(input_dataset=dataset)
        self.exhausted("131072 components, more than 65536", build)

    def test_the_cardinality_of_datasets_that_double_with_every_stage(self):
        with tf.Graph().as_default():
            dataset = raw.RangeDataset(start=0, stop=3, step=1, **SPEC)
            for _ in range(40):
                dataset = raw.ConcatenateDataset(input_dataset=dataset, another_dataset=dataset, **SPEC)
            with tf1.Session(self.target) as session:
                self.assertEqual(session.run(raw.DatasetCardinality(input_dataset=dataset)), 3 << 40)


if __name__ == "__main__":
    unittest.main()
