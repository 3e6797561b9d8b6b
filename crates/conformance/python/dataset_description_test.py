"""Descriptions of datasets: equal ones have equal fingerprints, and their graphs mean the same to TensorFlow."""
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1
Dataset = tf1.data.Dataset
WARN, FAIL = 0, 2


def captured(dataset):
    offset = tf.constant([10, 20], tf.int64)
    return dataset.map(lambda x: x + offset)


def looked_up(dataset):
    values = tf.lookup.KeyValueTensorInitializer([0, 1], [5, 7], tf.int64, tf.int64)
    table = tf.lookup.StaticHashTable(values, -1)
    return dataset.map(table.lookup)


PIPELINES = {
    "range": (lambda: Dataset.range(2, 9, 3), [2, 5, 8]),
    "batch": (lambda: Dataset.range(3).batch(2).map(tf.reduce_sum), [1, 2]),
    "captured": (lambda: captured(Dataset.range(2)), [[10, 20], [11, 21]]),
    "table": (lambda: looked_up(Dataset.range(3)), [5, 7, -1]),
    "nested functions": (lambda: Dataset.range(3).flat_map(lambda x: Dataset.range(x).map(lambda y: y + x)), [1, 2, 3]),
    "zip": (lambda: Dataset.zip((Dataset.range(2), Dataset.range(5, 7))).map(lambda a, b: a * b), [0, 6]),
    "windows": (lambda: Dataset.range(4).window(2).flat_map(lambda window: window), [0, 1, 2, 3]),
    "dataset of a dataset": (lambda: Dataset.from_tensors(Dataset.range(3)).flat_map(lambda inner: inner), [0, 1, 2]),
    "shuffled": (lambda: Dataset.range(1).shuffle(3, seed=4).cache().repeat(2), [0, 0]),
    "options": (lambda: Dataset.range(2).with_options(tf.data.Options()), [0, 1]),
}


def graph_of(dataset, policy=WARN, **attrs):
    return tf.raw_ops.DatasetToGraphV2(
        input_dataset=dataset._variant_tensor, external_state_policy=policy, **attrs)


class DatasetDescriptionTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        start = lambda engine: cls.enterClassContext(serving.cluster(engine, {"worker": 1}))["worker"][0]
        cls.target, cls.oracle = start("flowgrid"), start("tensorflow")

    def run_op(self, build, target=None, initialize=False):
        with tf.Graph().as_default(), tf1.Session(target or self.target) as session:
            op = build()
            if initialize:
                session.run([tf1.tables_initializer(), tf1.global_variables_initializer()])
            return session.run(op)

    def elements(self, graph, like, target):
        """The elements of the dataset that a graph describes."""
        with tf.Graph().as_default(), tf1.Session(target) as session:
            spec = like().element_spec
            fed = tf1.placeholder(tf.string, [])  # TensorFlow folds constants, and cannot keep a folded dataset
            variant = tf.raw_ops.DatasetFromGraph(graph_def=fed)
            iterator = tf1.data.make_initializable_iterator(
                tf.data.experimental.from_variant(variant, spec))
            session.run(iterator.initializer, {fed: graph})
            element, found = iterator.get_next(), []
            while True:
                try:
                    found.append(session.run(element).tolist())
                except tf.errors.OutOfRangeError:
                    return found

    def fingerprint(self, size):
        dataset = Dataset.from_tensor_slices(list(range(size)))
        return tf.raw_ops.DatasetFingerprint(input_dataset=dataset._variant_tensor)

    def test_equal_datasets_have_equal_fingerprints(self):
        one, same, other = self.run_op(lambda: [self.fingerprint(size) for size in (2, 2, 3)])
        self.assertEqual(one, same)
        self.assertNotEqual(one, other)

    def test_each_reads_the_graphs_of_the_other(self):
        for name, (build, expected) in PIPELINES.items():
            for writer in (self.target, self.oracle):
                graph = self.run_op(lambda: graph_of(build()), writer, initialize=True)
                for reader in (self.target, self.oracle):
                    with self.subTest(pipeline=name, ours=(writer == self.target, reader == self.target)):
                        self.assertEqual(self.elements(graph, build, reader), expected)

    def test_the_nodes_are_those_of_tensorflow(self):
        build = PIPELINES["captured"][0]
        described = []
        for target in (self.target, self.oracle):
            graph = tf1.GraphDef.FromString(self.run_op(lambda: graph_of(build()), target))
            names = [(node.name, node.op, list(node.input)) for node in graph.node]
            described.append((names, len(graph.library.function)))
        self.assertEqual(*described)

    def test_the_first_version_of_the_op_returns_the_graph_too(self):
        build = PIPELINES["range"][0]
        graph = self.run_op(lambda: tf.raw_ops.DatasetToGraph(input_dataset=build()._variant_tensor))
        self.assertEqual(self.elements(graph, build, self.target), [2, 5, 8])

    def test_a_function_with_state_is_refused_if_the_user_wants_that(self):
        random = lambda: Dataset.range(3).map(lambda _: tf1.random_uniform([]))
        for target in (self.target, self.oracle):
            with self.assertRaisesRegex(
                    tf.errors.FailedPreconditionError,
                    "Failed to serialize the input pipeline graph: RandomUniform is stateful"):
                self.run_op(lambda: graph_of(random(), FAIL), target)
            self.run_op(lambda: graph_of(random(), WARN), target)

    def test_variables_are_written_with_their_values(self):
        def build(name="v"):
            variable = tf1.get_variable(name, initializer=tf.constant(5, tf.int64), use_resource=True)
            return Dataset.range(2).map(lambda x: x + variable)
        graph = self.run_op(lambda: graph_of(build()), initialize=True)
        for reader in (self.target, self.oracle):
            self.assertEqual(self.elements(graph, PIPELINES["range"][0], reader), [5, 6])
        with self.assertRaises(tf.errors.OpError):
            self.run_op(lambda: graph_of(build("uninitialized")))

    def test_python_generators_have_no_graph(self):
        dataset = lambda: Dataset.from_generator(lambda: iter([1]), tf.int64)
        for target in (self.target, self.oracle):
            with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "Failed to serialize"):
                self.run_op(lambda: graph_of(dataset(), FAIL), target)

    def test_a_map_that_changes_nothing_does_not_hide_how_many_elements_there_are(self):
        def at(index):
            dataset = Dataset.range(10).batch(4, drop_remainder=True).unbatch()
            return tf.raw_ops.GetElementAtIndex(
                dataset=dataset._variant_tensor, index=index, output_types=[tf.int64], output_shapes=[[]])
        for target in (self.target, self.oracle):
            self.assertEqual(self.run_op(lambda: at(5), target), [5])
            with self.assertRaises(tf.errors.OutOfRangeError):
                self.run_op(lambda: at(8), target)

    def test_devices_are_made_local(self):
        def build():
            with tf.device("/job:worker/task:0/cpu:0"):
                return Dataset.range(2).map(lambda x: x + 1)
        graph = self.run_op(lambda: graph_of(build(), strip_device_assignment=True))
        graph = tf1.GraphDef.FromString(graph)
        devices = {node.device for function in graph.library.function for node in function.node_def}
        self.assertLessEqual(devices, {"", "/device:CPU:0"})

    def test_what_is_no_graph_of_a_dataset_is_an_error(self):
        unknown = tf1.GraphDef()
        unknown.node.add(name="x", op="NoSuchOp")
        unknown.node.add(name="dataset", op="_Retval", input=["x"]).attr["T"].type = tf.variant.as_datatype_enum
        unknown.node[1].attr["index"].i = 0
        for graph, error in [
                (b"\xff", tf.errors.InvalidArgumentError),
                (b"", tf.errors.NotFoundError),
                (unknown.SerializeToString(), tf.errors.NotFoundError)]:
            for target in (self.target, self.oracle):
                with self.subTest(graph=graph, ours=target == self.target), self.assertRaises(error):
                    self.run_op(lambda: tf.raw_ops.DatasetFromGraph(graph_def=graph).op, target)

    def test_a_dataset_goes_to_another_task(self):
        with serving.cluster("flowgrid", {"worker": 2}) as servers, tf.Graph().as_default():
            with tf.device("/job:worker/task:1"):
                dataset = captured(Dataset.range(2))
            with tf.device("/job:worker/task:0"):
                iterator = tf1.data.make_initializable_iterator(dataset)
                element = iterator.get_next()
            with tf1.Session(servers["worker"][0]) as session:
                session.run(iterator.initializer)
                self.assertEqual(session.run(element).tolist(), [10, 20])


if __name__ == "__main__":
    unittest.main()
