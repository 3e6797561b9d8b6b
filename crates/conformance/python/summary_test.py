"""Summary ops and event files of TensorFlow's server and of ours, and the real TensorBoard that reads them."""
import contextlib
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "flowgrid" / "examples"


def report(target, build, feed=None):
    """The merged summaries of `build`, as bytes."""
    with tf.Graph().as_default():
        build()
        merged = tf1.summary.merge_all()
        with tf1.Session(target) as session:
            return session.run(merged, feed)


def events(folder):
    """All events of the only file in a folder, except the one with the version."""
    (name,) = glob.glob(os.path.join(folder, "*tfevents*"))
    found = [tf1.Event.FromString(record) for record in tf1.io.tf_record_iterator(name)]
    assert found[0].file_version == "brain.Event:2"
    return found[1:]


def without_time(event):
    event.ClearField("wall_time")
    return event


def pictures(summary):
    """Tags and pixels of all images."""
    with tf.Graph().as_default(), tf1.Session() as session:
        return [(value.tag, value.image.height, value.image.width, value.image.colorspace,
                 session.run(tf.image.decode_png(value.image.encoded_image_string)))
                for value in tf1.Summary.FromString(summary).value]


@contextlib.contextmanager
def serving_tensorboard(folder):
    """The real TensorBoard on a folder, which reads everything before it serves; yields its address."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--port", "0", "--host", "127.0.0.1",
               "--load_fast=false", "--reload_task", "blocking", "--reload_interval", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        for line in process.stderr:
            address = re.search(r"http://127\.0\.0\.1:\d+", line)
            if address:
                break
        else:
            raise RuntimeError("TensorBoard ended instead of serving")

        yield address[0]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@contextlib.contextmanager
def tensorboard(folder):
    """The same; yields a function that sends requests to it."""
    with serving_tensorboard(folder) as address:

        def ask(path, **query):
            with urllib.request.urlopen(f"{address}/data/{path}?{urllib.parse.urlencode(query)}") as answer:
                return answer.read()

        yield ask


def run_example(folder):
    """Runs the example that writes summaries, in Rust."""
    program = pathlib.Path(os.environ["FLOWGRID_BIN"]).parent / "examples" / "11_summaries"
    subprocess.run([program, folder], check=True, stdout=subprocess.DEVNULL)


def run_twin(folder):
    """Runs its twin, in Python."""
    subprocess.run([sys.executable, EXAMPLES / "11_summaries.py", folder], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


class MessagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.ours = cls.enterClassContext(serving.server("flowgrid"))["worker"][0]
        cls.theirs = cls.enterClassContext(serving.server("tensorflow"))["worker"][0]

    def check(self, build):
        self.assertEqual(report(self.ours, build), report(self.theirs, build))

    def test_scalars(self):
        def build():
            for dtype in [np.float32, np.float64, np.float16, np.int8, np.int64, np.uint8, np.uint16]:
                tf1.summary.scalar(np.dtype(dtype).name, np.array(7, dtype))
            with tf1.name_scope("train"):
                tf1.summary.scalar("loss", 0.1)
                tf1.summary.scalar("loss", float("nan"))
                tf1.summary.scalar("a b", 1e30, family="f")
        self.check(build)

    def test_histograms(self):
        def build():
            rng = np.random.RandomState(0)
            tf1.summary.histogram("normal", rng.randn(100, 50).astype(np.float32))
            tf1.summary.histogram("tiny", rng.randn(1000) * 1e-12)
            tf1.summary.histogram("huge", rng.randn(1000) * 1e20)
            tf1.summary.histogram("integers", rng.randint(-5, 5, [3, 4, 5]))
            tf1.summary.histogram("none", np.zeros([0], np.float32))
        self.check(build)

    def test_a_histogram_needs_numbers(self):
        for value, text in [(np.nan, "Nan in summary histogram for: h"), (np.inf, "Infinity in Histogram for: h")]:
            for target in self.ours, self.theirs:
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, text):
                    report(target, lambda: tf1.summary.histogram("h", [1.0, value]))

    def test_tensors_text_and_sounds(self):
        def build():
            tf1.summary.text("text", tf.constant([["a", "b"], ["c", "\0"]]))
            tf1.summary.tensor_summary("tensor", tf.range(6), summary_description="all", display_name="numbers")
            tf1.summary.audio("tone", np.sin(np.arange(3000, dtype=np.float32)).reshape(2, 750, 2), 8000.0)
            tf1.summary.audio("mono", np.linspace(-2, 2, 99, dtype=np.float32).reshape(1, 99), 44100.4, max_outputs=1)
        self.check(build)

    def test_pictures_have_equal_pixels(self):
        def build():
            rng = np.random.RandomState(1)
            for dtype in [np.float32, np.float64, np.float16]:
                name = np.dtype(dtype).name
                tf1.summary.image(name + "_signed", rng.randn(2, 5, 7, 3).astype(dtype))
                tf1.summary.image(name + "_positive", rng.rand(4, 3, 3, 1).astype(dtype), max_outputs=2)
            tf1.summary.image("bytes", rng.randint(0, 256, [1, 9, 4, 4]).astype(np.uint8), max_outputs=1)
            broken = rng.randn(1, 2, 2, 4).astype(np.float32)
            broken[0, 0, 1, 2], broken[0, 1, 0, 0] = np.nan, np.inf
            tf1.summary.image("broken", broken)
            tf1.summary.image("black", np.zeros([1, 2, 2, 3], np.float32))
        ours, theirs = pictures(report(self.ours, build)), pictures(report(self.theirs, build))
        self.assertEqual(len(ours), len(theirs))
        for (*our_words, our_pixels), (*words, pixels) in zip(ours, theirs):
            self.assertEqual(our_words, words)
            np.testing.assert_array_equal(our_pixels, pixels, words[0])

    def test_a_tag_comes_once(self):
        def build():
            tf1.summary.scalar("a", 1.0)
            tf1.add_to_collection(tf1.GraphKeys.SUMMARIES, tf1.get_collection(tf1.GraphKeys.SUMMARIES)[0])
        for target in self.ours, self.theirs:
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Duplicate tag a found in summary inputs"):
                report(target, build)

    def written(self, target):
        """Events of a writer that lives on a server, without their times."""
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            writer = tf.summary.create_file_writer(folder, max_queue=2, flush_millis=10**6)
            step = tf1.placeholder(tf.int64, [])
            with writer.as_default(step=step):
                ops = [tf.summary.write("tensor", tf.range(3.0)), tf.summary.text("text", "hello")]
                raw = tf.summary.experimental.write_raw_pb(
                    tf1.Summary(value=[tf1.Summary.Value(tag="raw", simple_value=2)]).SerializeToString())
                graph = tf.raw_ops.WriteGraphSummary(writer=writer._resource, step=step, tensor=b"")
                number = tf.raw_ops.WriteScalarSummary(writer=writer._resource, step=step, tag="n", value=3)
                spread = tf.raw_ops.WriteHistogramSummary(writer=writer._resource, step=step, tag="h", values=[1., 2.])
                sound = tf.raw_ops.WriteAudioSummary(writer=writer._resource, step=step, tag="s", tensor=[[0.5, 1.]],
                                                     sample_rate=8000.)
                event = tf.raw_ops.ImportEvent(
                    writer=writer._resource, event=tf1.Event(step=9, file_version="x").SerializeToString())
            with tf1.Session(target) as session:
                flush = writer.flush()
                session.run(writer.init())
                for number_of_step in range(3):
                    for op in [*ops, raw, graph, number, spread, sound, event]:
                        session.run(op, {step: number_of_step})
                session.run(flush)
                before = len(events(folder))
                session.run(ops[0], {step: 7})
                self.assertEqual(len(events(folder)), before)  # it waits
                session.run(writer.close())
                with self.assertRaises(tf.errors.NotFoundError):
                    session.run(flush)
            return [without_time(event) for event in events(folder)]

    def test_writers_on_a_server(self):
        ours, theirs = self.written(self.ours), self.written(self.theirs)
        self.assertEqual(len(ours), 3 * 8 + 1)
        self.assertEqual(ours, theirs)


class FileWriterTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.ours, cls.theirs = os.path.join(cls.folder, "ours"), os.path.join(cls.folder, "theirs")
        run_example(cls.ours)
        run_twin(cls.theirs)

    def test_the_same_kinds_of_events(self):
        kinds = lambda folder: [(event.WhichOneof("what"), event.step) for event in events(folder)]
        self.assertEqual(kinds(self.ours), kinds(self.theirs))

    def test_the_same_summaries(self):
        def summaries(folder):
            return [value for event in events(folder) for value in event.summary.value]
        for ours, theirs in zip(summaries(self.ours), summaries(self.theirs), strict=True):
            self.assertEqual((ours.tag, ours.metadata), (theirs.tag, theirs.metadata))
            self.assertEqual(ours.WhichOneof("value"), theirs.WhichOneof("value"))
            self.assertAlmostEqual(ours.simple_value, theirs.simple_value, 5)
            self.assertEqual(ours.histo.num, theirs.histo.num)
            self.assertAlmostEqual(ours.histo.sum, theirs.histo.sum, 5)
            self.assertEqual(ours.tensor, theirs.tensor)

    def test_the_same_nodes_for_summaries(self):
        def nodes(folder):
            graph = next(tf1.GraphDef.FromString(event.graph_def) for event in events(folder) if event.graph_def)
            by_name = {node.name: node for node in graph.node}
            found = {}
            for node in graph.node:
                if "Summary" in node.op and node.op != "MergeSummary":
                    tag = by_name[node.input[0]]
                    found[node.name] = (node.op, node.device, tag.name, tag.attr["value"].tensor.string_val[0])
            return found, {node.device for node in graph.node}
        ours, theirs = nodes(self.ours), nodes(self.theirs)
        self.assertEqual(ours[0], theirs[0])
        self.assertIn("/device:CPU:0", ours[1])

    def test_what_a_step_told(self):
        (event,) = [event for event in events(self.ours) if event.HasField("tagged_run_metadata")]
        self.assertEqual(event.tagged_run_metadata.tag, "step 10")
        metadata = tf1.RunMetadata.FromString(event.tagged_run_metadata.run_metadata)
        names = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
        self.assertIn("MatMul", names)

    def test_the_trace_of_a_step(self):
        trace = json.loads(pathlib.Path(self.ours, "trace.json").read_text())
        ops = {event["args"]["op"] for event in trace["traceEvents"] if event["ph"] == "X"}
        self.assertIn("ScalarSummary", ops)

    def test_tensorboard_reads_it(self):
        with tensorboard(self.folder) as ask:
            self.assertEqual(sorted(json.loads(ask("runs"))), ["ours", "theirs"])
            for plugin in ["scalars", "histograms", "images", "text"]:
                tags = json.loads(ask(f"plugin/{plugin}/tags"))
                self.assertEqual(tags["ours"], tags["theirs"])
            read = lambda run, plugin, tag: json.loads(ask(f"plugin/{plugin}/{plugin}", run=run, tag=tag))
            ours, theirs = read("ours", "scalars", "loss"), read("theirs", "scalars", "loss")
            self.assertEqual([step for _, step, _ in ours], list(range(20)))
            np.testing.assert_allclose([value for *_, value in ours], [value for *_, value in theirs], rtol=1e-5)
            ours, theirs = read("ours", "histograms", "weights"), read("theirs", "histograms", "weights")
            np.testing.assert_allclose(ours[-1][2], theirs[-1][2], rtol=1e-5, atol=1e-6)
            self.assertIn("a plane through four points", read("ours", "text", "about")[0]["text"])
            info = json.loads(ask("plugin/graphs/info"))
            self.assertEqual(info["ours"] | {"run": ""}, info["theirs"] | {"run": ""})
            graph = ask("plugin/graphs/graph", run="ours", conceptual="false").decode()
            self.assertIn('name: "MatMul"', graph)
            self.assertIn('device: "/device:CPU:0"', graph)
            metadata = ask("plugin/graphs/run_metadata", run="ours", tag="step 10").decode()
            self.assertIn('node_name: "MatMul"', metadata)


if __name__ == "__main__":
    unittest.main()
