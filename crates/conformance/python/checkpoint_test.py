"""Checkpoints, graphs and saved models are exchanged in both directions between TensorFlow and Rust programs.
TensorFlow's training sessions run on our servers, also when a server is lost."""
import ast
import contextlib
import glob
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np
import tensorflow as tf

import serving
from threads import together

tf1 = tf.compat.v1
tf1.disable_eager_execution()

OURS, THEIRS = "flowgrid", "tensorflow"

# TensorFlow 2 saves and loads in eager mode, which is disabled in this process.
SAVE_EAGERLY = """
import sys
import tensorflow as tf

class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([[2.], [3.]])

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def call(self, x):
        return {"y": tf.matmul(x, self.w) + tf.cond(tf.reduce_sum(x) > 0, lambda: 0.5, lambda: 1.5)}

model = Model()
tf.saved_model.save(model, sys.argv[1], signatures={"serving_default": model.call})
"""
LOAD_EAGERLY = """
import sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
print(model.signatures["serving_default"](x=tf.constant([[1., 10.], [2., 20.]]))["y"].numpy().tolist())
"""

A = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
B = np.arange(10, 14, dtype=np.float32)
P = np.arange(100, 110, dtype=np.float32).reshape(5, 2)


def program(name):
    return os.path.join(os.path.dirname(os.environ["FLOWGRID_BIN"]), "examples", name)


def peer(*args):
    """Runs the Rust program; returns the lines it printed."""
    done = subprocess.run([program("checkpoint_peer"), *args], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"checkpoint_peer {args}: {done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def variables(parts, zero=False):
    """The variables of the Rust program."""
    def make(name, value, **kwargs):
        def initial(shape, dtype=None, partition_info=None):
            begin = partition_info.var_offset if partition_info else [0] * len(shape)
            part = tuple(slice(b, b + length) for b, length in zip(begin, shape))
            return tf.constant(value[part] * (0 if zero else 1), dtype)

        return tf1.get_variable(name, value.shape, initializer=initial, **kwargs)

    a = make("a", A, use_resource=True)
    with tf1.variable_scope("scope"):
        b = make("b", B, use_resource=False)
    p = make("p", P, use_resource=True, partitioner=tf1.fixed_size_partitioner(parts))
    step = tf1.get_variable("global_step", [], tf.int64, tf1.constant_initializer(0 if zero else 42), trainable=False,
                            collections=[tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.GLOBAL_STEP])
    loss = tf.identity(tf.reduce_sum(a) + tf.reduce_sum(b), name="loss")
    return [a, b, tf.convert_to_tensor(p), step], loss


def on_two_devices():
    """Places variables on two processors in turn, so that a sharded saver writes several files."""
    numbers = itertools.count()
    return lambda op: f"/cpu:{next(numbers) % 2}" if op.type in ("VarHandleOp", "VariableV2") else ""


class CheckpointTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def check(self, values):
        for found, wanted in zip(values, [A, B, P, 42], strict=True):
            np.testing.assert_array_equal(np.reshape(found, np.shape(wanted)), wanted)

    def test_what_rust_saves_tensorflow_restores(self):
        for kind in (None, OURS, THEIRS):
            with self.subTest(server=kind):
                if kind:
                    with serving.server(kind) as targets:
                        prefixes = peer("save", self.folder, targets["worker"][0])
                else:
                    prefixes = peer("save", self.folder, "")
                self.assertEqual(tf.train.latest_checkpoint(self.folder), prefixes[-1])
                for prefix in prefixes:
                    reader = tf.train.load_checkpoint(prefix)
                    self.assertEqual(set(reader.get_variable_to_shape_map()), {"a", "scope/b", "p", "global_step"})
                    for parts in (1, 2, 3):
                        with tf.Graph().as_default(), tf1.Session() as session:
                            values, _ = variables(parts, zero=True)
                            tf1.train.Saver().restore(session, prefix)
                            self.check(session.run(values))

    def test_what_tensorflow_saves_rust_restores(self):
        with serving.server(OURS) as ours, serving.server(THEIRS) as theirs:
            for version in (tf1.train.SaverDef.V2, tf1.train.SaverDef.V1):
                for sharded in (False, True):
                    with tf.Graph().as_default(), tf1.Session(config=tf1.ConfigProto(device_count={"CPU": 2})) as session:
                        with tf1.device(on_two_devices()):
                            variables(2)
                        saver = tf1.train.Saver(sharded=sharded, write_version=version)
                        session.run(tf1.global_variables_initializer())
                        prefix = saver.save(session, os.path.join(self.folder, f"theirs-{version}-{sharded}"))
                    if sharded:
                        self.assertGreater(len(glob.glob(os.path.join(self.folder, f"theirs-{version}-True*-of-*"))), 1)
                    for target in ("", ours["worker"][0], theirs["worker"][0]):
                        with self.subTest(version=version, sharded=sharded, target=target):
                            self.check([ast.literal_eval(line) for line in peer("restore", prefix, target)])

    def test_graphs_of_rust_are_imported_by_tensorflow(self):
        for prefix in peer("save", self.folder, ""):
            with tf.Graph().as_default(), tf1.Session() as session:
                saver = tf1.train.import_meta_graph(prefix + ".meta")
                saver.restore(session, prefix)
                names = [v.op.name for v in tf1.global_variables()]
                self.assertEqual(names, ["a", "scope/b", "p/part_0", "p/part_1", "global_step"])
                self.assertEqual([v.op.name for v in tf1.trainable_variables()], names[:-1])
                self.assertEqual(session.run("loss:0"), A.sum() + B.sum())
                self.assertEqual(session.run(tf1.train.get_global_step()), 42)
                info = tf1.global_variables()[3]._get_save_slice_info()
                self.assertEqual((info.full_name, info.spec), ("p", "5 2 3,2:0,2"))
                # It can be trained on, and saved again.
                loss = session.graph.get_tensor_by_name("loss:0")
                train = tf1.train.AdamOptimizer(0.1).minimize(loss)
                session.run(tf1.variables_initializer(
                    [v for v in tf1.global_variables() if v.op.name not in names]))
                session.run(train)
                self.assertLess(session.run(loss), A.sum() + B.sum())
                saver.save(session, os.path.join(self.folder, "again"))

    def test_graphs_of_tensorflow_are_imported_by_rust(self):
        with tf.Graph().as_default(), tf1.Session() as session:
            (a, *_), loss = variables(2)
            tf1.train.AdamOptimizer(0.1).minimize(loss)
            doubled = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, a))[1]
            tf.reduce_sum(doubled, name="doubled")
            saver = tf1.train.Saver(sharded=True)
            session.run(tf1.global_variables_initializer())
            prefix = saver.save(session, os.path.join(self.folder, "theirs"))
            names = [v.op.name for v in tf1.global_variables()]
        value, found, trainable, again, doubled = peer("import", prefix, "doubled:0")
        self.assertEqual(float(value), A.sum() + B.sum())
        self.assertEqual(float(doubled), 8 * A.sum())
        self.assertEqual(found.split(","), names)
        self.assertEqual(trainable.split(","), ["a", "scope/b", "p/part_0", "p/part_1"])
        self.assertIn("beta1_power", tf.train.load_checkpoint(again).get_variable_to_shape_map())

    def test_saved_models_of_rust_are_loaded_by_tensorflow(self):
        folder = os.path.join(self.folder, "model")
        peer("export-model", folder)
        x = np.float32([[1, 10], [2, 20]])
        with tf.Graph().as_default(), tf1.Session() as session:
            meta = tf1.saved_model.load(session, ["serve"], folder)
            signature = meta.signature_def["serving_default"]
            answer = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: x})
            np.testing.assert_array_equal(answer, x @ np.float32([[2], [3]]))

    def test_saved_models_of_tensorflow_are_loaded_by_rust(self):
        folder = os.path.join(self.folder, "model")
        with tf.Graph().as_default(), tf1.Session() as session:
            x = tf1.placeholder(tf.float32, [None, 2])
            w = tf1.get_variable("w", initializer=np.float32([[2], [3]]), use_resource=True)
            offset = tf1.get_local_variable("offset", [], initializer=tf1.zeros_initializer())
            y = tf.matmul(x, w) + offset
            session.run(tf1.global_variables_initializer())
            builder = tf1.saved_model.Builder(folder)
            signature = tf1.saved_model.predict_signature_def({"x": x}, {"y": y})
            builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature},
                                                 main_op=tf1.assign(offset, 0.5).op)
            builder.save()
        self.assertEqual(peer("call-model", folder), ["y [32.5, 64.5]"])

    def export_words(self, folder, vocabulary):
        """The model of `checkpoint_peer export-words`, by TensorFlow."""
        with tf.Graph().as_default(), tf1.Session() as session:
            words = tf1.placeholder(tf.string, [None])
            table = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                              tf.lookup.TextFileIndex.LINE_NUMBER), 0)
            rows = tf1.get_variable("rows", P.shape, partitioner=tf1.fixed_size_partitioner(3), use_resource=True,
                                    initializer=lambda shape, dtype=None, partition_info=None: tf.constant(
                                        P[partition_info.var_offset[0]:][:shape[0]], dtype))
            found = tf1.nn.embedding_lookup(rows, table.lookup(words), partition_strategy="div")
            session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
            builder = tf1.saved_model.Builder(folder)
            signature = tf1.saved_model.predict_signature_def({"words": words}, {"rows": found})
            builder.add_meta_graph_and_variables(
                session, ["serve"], {"serving_default": signature}, main_op=tf1.tables_initializer(),
                assets_collection=tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS))
            builder.save()

    def call_words(self, folder, words):
        with tf.Graph().as_default(), tf1.Session() as session:
            meta = tf1.saved_model.load(session, ["serve"], folder)
            signature = meta.signature_def["serving_default"]
            return session.run(signature.outputs["rows"].name, {signature.inputs["words"].name: words})

    def test_saved_models_with_files_and_partitioned_variables_go_both_ways(self):
        words = ["red", "no such word", "yellow", "green"]
        for writer in (OURS, THEIRS):
            with self.subTest(writer=writer):
                vocabulary = os.path.join(self.folder, "colours.txt")
                with open(vocabulary, "w") as file:
                    file.write("unknown\nred\ngreen\nblue\nyellow\n")
                written, folder = os.path.join(self.folder, "new"), os.path.join(self.folder, writer)
                if writer == OURS:
                    peer("export-words", written, vocabulary)
                else:
                    self.export_words(written, vocabulary)
                # The model contains the file, so it can be moved.
                os.remove(vocabulary)
                os.rename(written, folder)
                self.assertEqual(os.listdir(os.path.join(folder, "assets")), ["colours.txt"])
                np.testing.assert_array_equal(self.call_words(folder, words), P[[1, 0, 4, 2]])
                [line] = peer("call-words", folder, *words)
                self.assertEqual(ast.literal_eval(line), P[[1, 0, 4, 2]].ravel().tolist())

    def test_saved_models_go_both_ways_with_tensorflow_2(self):
        theirs, ours = os.path.join(self.folder, "theirs"), os.path.join(self.folder, "ours")
        subprocess.run([sys.executable, "-c", SAVE_EAGERLY, theirs], check=True, capture_output=True)
        self.assertEqual(peer("call-model", theirs), ["y [32.5, 64.5]"])
        peer("export-model", ours)
        done = subprocess.run([sys.executable, "-c", LOAD_EAGERLY, ours], check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout.split("\n")[-2], "[[32.0], [64.0]]")


class RustTrainingTest(unittest.TestCase):
    """A Rust program that trains on one ps and a worker, of either kind, while the ps is lost."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    @contextlib.contextmanager
    def program(self, target, folder):
        """The running program: calling it runs a step and returns what it printed."""
        command = [program("checkpoint_peer"), "train", target, folder]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def step():
            process.stdin.write("step\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        try:
            yield step
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def test_a_lost_ps_is_restored_from_the_checkpoint(self):
        for kind in (OURS, THEIRS):
            folder = os.path.join(self.folder, kind)
            with self.subTest(kind=kind), serving.tasks(kind, {"ps": 1, "worker": 1}) as tasks:
                with self.program(tasks.target("worker", 0), folder) as step:
                    self.assertEqual([step() for _ in range(12)], [str(number) for number in range(1, 13)])
                    tasks.restart("ps", 0)
                    # Checkpoints are written every five steps: 11 and 12 are lost.
                    self.assertEqual(step(), "11")

    def test_a_lost_ps_without_checkpoints_is_an_error(self):
        for kind in (OURS, THEIRS):
            with self.subTest(kind=kind), serving.tasks(kind, {"ps": 1, "worker": 1}) as tasks:
                with self.program(tasks.target("worker", 0), "") as step:
                    self.assertEqual([step(), step()], ["1", "2"])
                    tasks.restart("ps", 0)
                    self.assertIn("DATA_LOSS: A task lost its state at global step 2", step())


class TrainingTest(unittest.TestCase):
    """TensorFlow's unmodified training sessions on one ps and two workers of ours."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def graph(self, task):
        """A counter and a weight on the ps."""
        graph = tf.Graph()
        with graph.as_default(), tf1.device(tf1.train.replica_device_setter(
                ps_tasks=1, worker_device=f"/job:worker/task:{task}")):
            step = tf1.train.get_or_create_global_step()
            w = tf1.get_variable("w", [3], initializer=tf1.zeros_initializer(), use_resource=True)
            slow = tf1.get_variable("slow", [3], initializer=tf1.zeros_initializer(), use_resource=False)
            loss = tf.reduce_sum(tf.square(w - 1.0)) + tf.reduce_sum(tf.square(slow - 2.0))
            tf1.summary.scalar("loss", loss)
            train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        return graph, step, loss, train

    def both(self, work):
        """Runs `work(task)` on a thread for each worker; the first error fails the test."""
        together(*[lambda task=task: work(task) for task in range(2)], seconds=120)

    def test_monitored_training_session(self):
        losses = [[], []]
        # The chief runs the first step: its hook measures the steps from there on to its next one.
        chief_has_begun = threading.Event()
        with serving.cluster(OURS, {"ps": 1, "worker": 2}) as targets:
            def work(task):
                graph, _, loss, train = self.graph(task)
                with graph.as_default(), tf1.train.MonitoredTrainingSession(
                        targets["worker"][task], is_chief=task == 0, checkpoint_dir=self.folder,
                        save_checkpoint_steps=10, save_summaries_steps=10, log_step_count_steps=10,
                        hooks=[tf1.train.StopAtStepHook(last_step=60)], max_wait_secs=60) as session:
                    if task > 0:
                        chief_has_begun.wait(60)
                    while not session.should_stop():
                        losses[task].append(session.run([loss, train])[0])
                        chief_has_begun.set()

            self.both(work)
        self.assertLess(losses[0][-1], 0.1)
        reader = tf.train.load_checkpoint(self.folder)
        self.assertGreaterEqual(reader.get_tensor("global_step"), 60)
        np.testing.assert_allclose(reader.get_tensor("slow"), [2, 2, 2], atol=0.1)
        events = [os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.startswith("events")]
        tags = {value.tag for file in events for event in tf1.train.summary_iterator(file)
                for value in event.summary.value}
        self.assertEqual(tags, {"loss", "global_step/sec"})

    def test_saver_over_two_ps(self):
        def saved(session, sharded):
            path = os.path.join(self.folder, f"sharded-{sharded}")
            return savers[sharded].save(session, path, global_step=tf1.train.get_global_step())

        with serving.cluster(OURS, {"ps": 2, "worker": 1}) as targets, tf.Graph().as_default():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=2)):
                variables(3)
            savers = [tf1.train.Saver(sharded=sharded) for sharded in (False, True)]
            with tf1.Session(targets["worker"][0]) as session:
                session.run(tf1.global_variables_initializer())
                prefixes = [saved(session, sharded) for sharded in (False, True)]
        self.assertEqual(len(glob.glob(prefixes[1] + ".data-*-of-00002")), 2)
        # On fewer tasks and with another partitioning.
        for prefix in prefixes:
            with serving.cluster(OURS, {"ps": 1, "worker": 1}) as targets, tf.Graph().as_default():
                with tf1.device(tf1.train.replica_device_setter(ps_tasks=1)):
                    values, _ = variables(2, zero=True)
                saver = tf1.train.Saver(sharded=True)
                with tf1.Session(targets["worker"][0]) as session:
                    saver.restore(session, prefix)
                    for found, wanted in zip(session.run(values), [A, B, P, 42]):
                        np.testing.assert_array_equal(found, wanted)

    def test_supervisor(self):
        with serving.cluster(OURS, {"ps": 1, "worker": 2}) as targets:
            def work(task):
                graph, step, loss, train = self.graph(task)
                with graph.as_default():
                    supervisor = tf1.train.Supervisor(is_chief=task == 0, logdir=self.folder, save_model_secs=1,
                                                      save_summaries_secs=1, recovery_wait_secs=1, global_step=step)
                    with supervisor.managed_session(targets["worker"][task]) as session:
                        while not supervisor.should_stop() and session.run(step) < 60:
                            session.run(train)

            self.both(work)
        self.assertIsNotNone(tf.train.latest_checkpoint(self.folder))

    def test_a_lost_ps_is_restored_from_the_checkpoint(self):
        graph, step, _, train = self.graph(0)
        with serving.tasks(OURS, {"ps": 1, "worker": 1}) as tasks:
            with graph.as_default(), tf1.train.MonitoredTrainingSession(
                    tasks.target("worker", 0), is_chief=True, checkpoint_dir=self.folder, save_checkpoint_steps=5,
                    save_summaries_steps=None, log_step_count_steps=None) as session:
                for _ in range(12):
                    session.run(train)
                tasks.restart("ps", 0)
                # Steps 11 and 12 are lost with the ps; this step is the one after the checkpoint of step 10.
                session.run(train)
                self.assertEqual(session.run(step), 11)


if __name__ == "__main__":
    unittest.main()
