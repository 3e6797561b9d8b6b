"""States of iterators that one server saves continue on the other: Flowgrid's and TensorFlow's checkpoints are the same."""
import os
import tempfile
import unittest
import warnings

import tensorflow as tf

import serving

tf1 = tf.compat.v1
Dataset = tf1.data.Dataset


PIPELINES = {
    "range": lambda: Dataset.range(10),
    "batch": lambda: Dataset.range(10).batch(3),
    "slices": lambda: Dataset.from_tensor_slices([1.5, 2.5, 3.5, 4.5]),
    "filter": lambda: Dataset.range(20).filter(lambda x: tf.equal(x % 3, 0)),
    "repeat": lambda: Dataset.range(3).repeat(3),
    "zip": lambda: Dataset.zip((Dataset.range(6), Dataset.range(3).repeat(2))),
    "concatenate": lambda: Dataset.range(3).concatenate(Dataset.range(5)),
    "take and skip": lambda: Dataset.range(10).skip(2).take(5),
    "shard": lambda: Dataset.range(10).shard(3, 1),
    "prefetch": lambda: Dataset.range(10).prefetch(2),
    "no rewriting": lambda: Dataset.range(6).with_options(unchanged()),
    "no-ops": lambda: Dataset.range(9).skip(0).repeat(1).map(lambda x: x).shard(1, 0).take(7),
    "map": lambda: Dataset.range(6).map(lambda x: x * x),
    "parallel map": lambda: Dataset.range(9).map(lambda x: x + 1, num_parallel_calls=3),
    "shuffle": lambda: Dataset.range(12).shuffle(5, seed=3),
    "shuffled epochs": lambda: Dataset.range(5).shuffle(5, seed=3).repeat(2),
    "records": lambda: tf1.data.TFRecordDataset(RECORDS).map(tf.strings.length).batch(3),
    "cached epochs": lambda: Dataset.range(3).cache().repeat(3),
    "group by window": lambda: Dataset.range(12).apply(tf.data.experimental.group_by_window(
        lambda x: x % 3, lambda _, group: group.batch(2), window_size=3)),
    "interleave": lambda: Dataset.range(4).interleave(Dataset.range, 2, 2),
    "parallel interleave": lambda: Dataset.range(1, 5).interleave(Dataset.range, 2, 1, num_parallel_calls=2),
    "window": lambda: Dataset.range(10).window(4, shift=2).flat_map(lambda window: window.batch(4)),
    "padded batch": lambda: Dataset.range(7).map(lambda x: tf.fill([x], x)).padded_batch(3, [None]),
    "nested": lambda: Dataset.range(4).flat_map(lambda x: Dataset.range(5).map(lambda y: x * y).batch(2)),
}

# Unless they are told not to, servers rewrite these, and then save the state of other iterators.
UNCHANGED = ["map", "shuffled epochs", "records", "padded batch"]

# TensorFlow saves the files of a loaded dataset in another way.
OURS = {"loaded": lambda: Dataset.load(SAVED)}

FOLDER = tempfile.TemporaryDirectory()
SAVED = os.path.join(FOLDER.name, "saved")
RECORDS = [os.path.join(FOLDER.name, name) for name in ("first", "second")]


def write_records():
    for path in RECORDS:
        with tf.io.TFRecordWriter(path) as writer:
            for length in range(4):
                writer.write(bytes(length))
    Dataset.range(7).save(SAVED)


def unchanged():
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return options


def not_rewritten(build):
    return lambda: build().with_options(unchanged())


class Pipeline:
    """A pipeline in a graph of its own, with a Saver for its iterator."""

    def __init__(self, build):
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device("/job:worker/task:0"):
            iterator = tf1.data.make_initializable_iterator(build())
            self.next = iterator.get_next()
            self.initializer = iterator.initializer
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
            self.saver = tf1.train.Saver([saveable])

    def session(self, target):
        session = tf1.Session(target, graph=self.graph)
        session.run(self.initializer)
        return session

    def rest(self, session):
        elements = []
        try:
            while True:
                elements.append(session.run(self.next))
        except tf.errors.OutOfRangeError:
            return [str(element) for element in elements]


class IteratorCheckpointTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(FOLDER.cleanup)
        write_records()
        cls.targets = {kind: cls.enterClassContext(serving.cluster(kind, {"worker": 1}))["worker"][0]
                       for kind in ("flowgrid", "tensorflow")}
        builds = {**PIPELINES, **{f"{name}, unchanged": not_rewritten(PIPELINES[name]) for name in UNCHANGED}}
        cls.pipelines = {name: Pipeline(build) for name, build in builds.items()}
        cls.elements = {name: cls.read(pipeline) for name, pipeline in cls.pipelines.items()}

    @classmethod
    def read(cls, pipeline):
        with pipeline.session(cls.targets["tensorflow"]) as session:
            return pipeline.rest(session)

    def check(self, saver, restorer):
        for name, pipeline in self.pipelines.items():
            if name in OURS and "tensorflow" in (saver, restorer):
                continue
            every = self.elements[name]
            with self.subTest(pipeline=name, saver=saver, restorer=restorer), tempfile.TemporaryDirectory() as folder:
                for position in (0, 2, len(every)):
                    path = os.path.join(folder, f"state{position}")
                    with pipeline.session(self.targets[saver]) as session:
                        taken = [str(session.run(pipeline.next)) for _ in range(position)]
                        self.assertEqual(taken, every[:position])
                        pipeline.saver.save(session, path, write_meta_graph=False)
                    with pipeline.session(self.targets[restorer]) as session:
                        pipeline.saver.restore(session, path)
                        self.assertEqual(pipeline.rest(session), every[position:], f"from {position} on")

    def test_flowgrid_continues_its_own_state(self):
        self.check("flowgrid", "flowgrid")

    def test_tensorflow_continues_a_state_of_flowgrid(self):
        self.check("flowgrid", "tensorflow")

    def test_flowgrid_continues_a_state_of_tensorflow(self):
        self.check("tensorflow", "flowgrid")


if __name__ == "__main__":
    unittest.main()
