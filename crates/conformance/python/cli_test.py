"""What a new user meets on the command line: closed pipes, wrong flags, text graphs, servers that do not answer."""
import os
import socket
import subprocess
import tempfile
import unittest

import tensorflow as tf
from google.protobuf import text_format

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
CLOSED_PIPE = 141  # what a shell reports of a program that SIGPIPE ended


def flowgrid(*args, environment=None):
    """Runs the program to its end. Returns exit code, standard output and standard error."""
    done = subprocess.run([os.environ["FLOWGRID_BIN"], *args], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env=os.environ | (environment or {}))
    return done.returncode, done.stdout, done.stderr


def chain(length):
    """A graph of Identity nodes, x -> y."""
    with tf.Graph().as_default() as graph:
        value = tf1.placeholder(tf.float32, [2], name="x")
        for _ in range(length):
            value = tf.identity(value)
        tf.add(value, 1.0, name="y")
        return graph


class CliTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def test_a_closed_pipe_ends_the_program_quietly(self):
        path = self.path("graph.pb", chain(20_000).as_graph_def().SerializeToString())
        for args in (["inspect", "--nodes", path],
                     ["run", path, "--feed", "x=[1,2]", "--fetch", "y"],
                     ["demo", "--alone", "--steps", "1"]):
            with self.subTest(args=args[0]):
                reader, writer = os.pipe()
                os.close(reader)  # as `head` does when it has its lines
                try:
                    done = subprocess.run([os.environ["FLOWGRID_BIN"], *args], stdout=writer, stderr=subprocess.PIPE,
                                          text=True, timeout=120)
                finally:
                    os.close(writer)
                self.assertEqual(done.returncode, CLOSED_PIPE, done.stderr)
                self.assertNotIn("panicked", done.stderr)
                self.assertNotIn("error", done.stderr)

    def test_head_gets_the_first_lines(self):
        path = self.path("graph.pb", chain(20_000).as_graph_def().SerializeToString())
        shell = f"'{os.environ['FLOWGRID_BIN']}' inspect --nodes '{path}' | head -n 3"
        done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("20003 nodes, 0 functions"), done.stdout)

    def test_errors_have_no_backtrace(self):
        code, printed, said = flowgrid("inspect", "/nowhere/graph.pb", environment={"RUST_BACKTRACE": "1"})
        self.assertEqual((code, printed), (1, ""))
        self.assertRegex(said, r"^error: cannot read /nowhere/graph.pb as a GraphDef: NOT_FOUND: [^\n]*\n$")

    def test_values_that_are_no_numbers(self):
        cluster = ["--cluster", "ps=127.0.0.1:1;worker=127.0.0.1:2"]
        for args, parts in [
            (["server", *cluster, "--job", "ps", "--task", "current_task_index"],
             ["'current_task_index'", "'--task <N>'", "expected a whole number, 0 or larger"]),
            (["server", *cluster, "--cpu-devices", "two"], ["'two'", "'--cpu-devices <N>'", "expected a whole number"]),
            (["server", *cluster, "--peer-timeout", "soon"], ["'soon'", "expected a number of seconds from 0.1 to 86400"]),
            (["local", "--workers", "-1"], ["'-1'"]),
            (["demo", "--learning-rate", "fast"], ["'fast'", "'--learning-rate <RATE>'", "expected a number, such as"]),
            (["run", "graph.pb", "--connect-timeout", "0"], ["'0'", "'--connect-timeout <SECONDS>'"]),
        ]:
            with self.subTest(args=args):
                code, _, said = flowgrid(*args)
                self.assertEqual(code, 2, said)
                for part in parts:
                    self.assertIn(part, said)
                self.assertNotIn("invalid digit", said)

    def test_graphs_as_text(self):
        graph = chain(1)
        names = {"graph.pb": graph.as_graph_def().SerializeToString(),
                 "graph.pbtxt": text_format.MessageToString(graph.as_graph_def())}
        meta = tf1.train.export_meta_graph(graph_def=graph.as_graph_def(), graph=graph)
        names |= {"model.meta": meta.SerializeToString(), "meta.pbtxt": text_format.MessageToString(meta)}
        for name, content in names.items():
            with self.subTest(name=name):
                path = self.path(name, content)
                code, printed, said = flowgrid("run", path, "--feed", "x=[1,2]", "--fetch", "y")
                self.assertEqual((code, printed), (0, "y:0 float [2]\n[2, 3]\n"), said)
                code, printed, said = flowgrid("inspect", path)
                self.assertEqual(code, 0, said)
                self.assertIn("4 nodes, 0 functions", printed)
                code, printed, said = flowgrid("inspect", "--nodes", path)
                self.assertEqual(code, 0, said)
                self.assertIn("Placeholder", printed)
        code, _, said = flowgrid("inspect", self.path("broken.pbtxt", "node { name: "))
        self.assertEqual(code, 1)
        self.assertIn("broken.pbtxt as a GraphDef", said)

    def test_a_saved_model_as_text(self):
        folder = os.path.join(self.folder, "model")
        with chain(1).as_default() as graph, tf1.Session(graph=graph) as session:
            builder = tf1.saved_model.Builder(folder)
            builder.add_meta_graph_and_variables(session, ["serve"], strip_default_attrs=True)
            builder.save(as_text=True)
        for path in (folder, os.path.join(folder, "saved_model.pbtxt")):
            code, printed, said = flowgrid("inspect", path)
            self.assertEqual(code, 0, said)
            self.assertIn("saved model, version 1, 1 graphs", printed)
            self.assertIn("tags: serve", printed)

    def test_a_server_that_does_not_answer(self):
        path = self.path("graph.pb", chain(1).as_graph_def().SerializeToString())
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        target = f"grpc://127.0.0.1:{port}"
        code, _, said = flowgrid("run", path, "--fetch", "y", "--target", target, "--connect-timeout", "4")
        self.assertEqual(code, 1)
        self.assertIn(f"waiting for the server at {target} (for 4 s; --connect-timeout sets the limit)", said)
        self.assertRegex(said, rf"error: [^\n]*127.0.0.1:{port}")

    def test_a_server_that_answers_needs_no_notice(self):
        path = self.path("graph.pb", chain(1).as_graph_def().SerializeToString())
        with serving.cluster("flowgrid", {"worker": 1}) as targets:
            code, printed, said = flowgrid("run", path, "--feed", "x=[1,2]", "--fetch", "y", "--target",
                                           targets["worker"][0], "--connect-timeout", "600")
            self.assertEqual((code, printed), (0, "y:0 float [2]\n[2, 3]\n"), said)

    def test_an_op_that_is_missing(self):
        path = self.path("graph.pbtxt", 'node { name: "a" op: "Frobnicate" }')
        code, _, said = flowgrid("run", path, "--fetch", "a")
        self.assertEqual(code, 1)
        self.assertIn("Op type not registered 'Frobnicate' in binary running on", said)
        self.assertIn("Flowgrid does not implement this op: check its spelling, build the graph from other ops", said)


if __name__ == "__main__":
    unittest.main()
