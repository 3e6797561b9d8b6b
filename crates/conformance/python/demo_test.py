"""The program from a user's view: what `flowgrid demo` and `flowgrid run` print and write, and what `demo` and `local` do
when they are interrupted, lose a task, or are killed."""
import contextlib
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1

SECONDS = 60  # for operations that should take less than one


def environment_of(process):
    with contextlib.suppress(OSError):  # it has ended
        return pathlib.Path(f"/proc/{process}/environ").read_bytes()
    return b""


class Program:
    """Our program in a session of its own, as at a terminal. All processes it starts are marked, so they are found
    even after it has ended."""

    def __init__(self, *args):
        self.mark = f"FLOWGRID_TEST_MARK={os.getpid()}-{time.monotonic_ns()}"
        name, value = self.mark.split("=")
        self.process = subprocess.Popen([os.environ["FLOWGRID_BIN"], *args], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=os.environ | {name: value}, start_new_session=True)
        self.said = ""

    def interrupt(self, number):
        """Sends a signal to the whole process group, as a terminal does."""
        os.killpg(self.process.pid, number)

    def running(self):
        """All processes of it, {number: arguments}."""
        found = {}
        for process in filter(str.isdigit, os.listdir("/proc")):
            if self.mark.encode() in environment_of(process).split(b"\0"):
                with contextlib.suppress(OSError):
                    found[int(process)] = pathlib.Path(f"/proc/{process}/cmdline").read_text().split("\0")
        return found

    def task(self, job, index):
        """The process of a task."""
        return next(process for process, args in self.running().items()
                    if args[1] == "server" and args[args.index("--job") + 1:][:3] == [job, "--task", str(index)])

    def wait_for(self, pattern):
        """Reads its output until the pattern appears."""
        deadline = time.monotonic() + SECONDS
        while not re.search(pattern, self.said):
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"no {pattern!r} in {self.said!r}")
            more = os.read(self.process.stdout.fileno(), 4096)
            if not more:
                raise EOFError(f"it ended before it said {pattern!r}: {self.said!r}")
            self.said += more.decode()

    def end(self):
        """Waits for its end; returns its exit code and its output."""
        said, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, self.said + said.decode() + errors.decode()

    def listens(self):
        """True if it handles SIGINT itself."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (signal.SIGINT - 1) & 1

    def wait_until(self, condition):
        deadline = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.running()} said {self.said!r}")
            time.sleep(0.02)

    def close(self):
        for process in self.running():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@contextlib.contextmanager
def program(*args):
    started = Program(*args)
    try:
        yield started
    finally:
        started.close()


def demo(*flags):
    """A demo that trains until it gets a signal."""
    return program("demo", "--ps", "1", "--workers", "2", "--steps", "100000000", *flags)


def flowgrid(*args):
    """Runs the program to its end; returns its output."""
    done = subprocess.run([os.environ["FLOWGRID_BIN"], *args], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
    assert done.returncode == 0, done.stdout
    return done.stdout


class EndTest(unittest.TestCase):
    """How a demo with very many steps ends."""

    def test_ctrl_c_ends_it_well(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number), demo() as running:
                running.wait_for("training on")
                running.interrupt(number)
                code, said = running.end()
                self.assertEqual(code, 0, said)
                self.assertIn("stopped before its end; all tasks are down", said)
                self.assertNotIn("was lost", said)
                self.assertRegex(said, r"\d+ steps in .* accuracy")
                self.assertEqual(running.running(), {})

    def test_a_lost_worker_is_named_and_the_other_goes_on(self):
        with demo() as running:
            running.wait_for("training on")
            os.kill(running.task("worker", 1), signal.SIGKILL)
            running.wait_for("worker 1 was lost")
            running.interrupt(signal.SIGINT)
            code, said = running.end()
            self.assertEqual(code, 0, said)
            self.assertRegex(said, r"worker 1 was lost after \d+ steps: UNAVAILABLE")
            self.assertNotIn("worker 0 was lost", said)
            self.assertRegex(said, r"\d+ steps in .* accuracy")
            self.assertEqual(running.running(), {})

    def test_without_its_ps_it_says_so_and_fails(self):
        with demo() as running:
            running.wait_for("training on")
            os.kill(running.task("ps", 0), signal.SIGKILL)
            code, said = running.end()
            self.assertEqual(code, 1, said)
            for worker in range(2):
                self.assertRegex(said, rf"worker {worker} was lost after \d+ steps: .*/job:ps/replica:0/task:0")
            self.assertIn("no worker is left", said)
            self.assertEqual(running.running(), {})

    def test_who_cannot_wait_sends_a_second_signal(self):
        """A session waits for a ps that never starts."""
        ports = serving.free_ports(2)
        cluster = f"ps=127.0.0.1:{ports[0]};worker=127.0.0.1:{ports[1]}"
        with program("server", "--cluster", cluster, "--job", "worker") as server:
            server.wait_for("ready")
            with program("demo", "--targets", cluster) as running:
                running.wait_until(running.listens)
                while running.process.poll() is None:
                    running.interrupt(signal.SIGINT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        running.process.wait(0.2)
                self.assertEqual(running.process.returncode, 130)

    def test_killed_it_leaves_no_task_behind(self):
        with demo() as running:
            running.wait_for("training on")
            self.assertEqual(len(running.running()), 4)
            running.process.kill()
            running.wait_until(lambda: not running.running())


class LocalTest(unittest.TestCase):

    def test_a_signal_stops_all_tasks(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number), program("local", "--ps", "1", "--workers", "2") as running:
                running.wait_for("ready; Ctrl-C stops all tasks")
                self.assertEqual(len(running.running()), 4)
                running.interrupt(number)
                code, said = running.end()
                self.assertEqual(code, 0, said)
                self.assertNotIn("ended unexpectedly", said)
                self.assertEqual(running.running(), {})

    def test_a_lost_task_is_named_and_stops_the_others(self):
        with program("local", "--ps", "1", "--workers", "2") as running:
            running.wait_for("ready")
            os.kill(running.task("worker", 1), signal.SIGKILL)
            code, said = running.end()
            self.assertEqual(code, 1, said)
            self.assertIn("/job:worker/replica:0/task:1 ended unexpectedly", said)
            self.assertEqual(running.running(), {})

    def test_killed_it_leaves_no_task_behind(self):
        with program("local", "--ps", "1", "--workers", "1") as running:
            running.wait_for("ready")
            running.process.kill()
            running.wait_until(lambda: not running.running())


# The bytes of the network on each of two ps: 144 x 64 and 64 x 10 weights; 64 and 10 biases.
WEIGHTS = [(144 * 64 + 64 * 10) * 4, (64 + 10) * 4]
POWERS = 2 * 4  # of Adam: colocated with the bias that is first by name, on the second ps; the first ps reads them


def travelled(said):
    """The table of bytes sent between tasks, {task: (received, sent)}."""
    row = re.compile(r"^/job:(\w+)/replica:0/task:(\d+) +((?:about )?\d+) +((?:about )?\d+)$", re.M)
    return {(job, int(task)): (received, sent) for job, task, received, sent in row.findall(said)}


class ReportTest(unittest.TestCase):

    def test_what_travelled_is_what_the_tasks_counted(self):
        said = flowgrid("demo", "--ps", "2", "--workers", "2", "--steps", "30")
        found = travelled(said)
        self.assertNotIn("estimated", said)
        self.assertEqual(len(found), 4, said)
        numbers = {task: (int(received), int(sent)) for task, (received, sent) in found.items()}
        for worker in range(2):
            # A step fetches all weights and sends all gradients, and nothing else.
            self.assertEqual(numbers["worker", worker], (15 * sum(WEIGHTS), 15 * sum(WEIGHTS)), said)
        self.assertEqual(numbers["ps", 0], (30 * (WEIGHTS[0] + POWERS), 30 * WEIGHTS[0]), said)
        self.assertEqual(numbers["ps", 1], (30 * WEIGHTS[1], 30 * (WEIGHTS[1] + POWERS)), said)

    def test_tasks_without_counters_are_estimated(self):
        kinds = {("ps", 0): "tensorflow", ("ps", 1): "flowgrid", ("worker", 0): "flowgrid"}
        with serving.cluster(kinds, {"ps": 2, "worker": 1}) as targets:
            hosts = {job: ",".join(target.removeprefix("grpc://") for target in tasks) for job, tasks in targets.items()}
            said = flowgrid("demo", "--targets", f"ps={hosts['ps']};worker={hosts['worker']}", "--steps", "20")
        found = travelled(said)
        self.assertEqual(found["worker", 0], (str(20 * sum(WEIGHTS)), str(20 * sum(WEIGHTS))), said)
        self.assertEqual(found["ps", 1], (str(20 * WEIGHTS[1]), str(20 * (WEIGHTS[1] + POWERS))), said)
        self.assertEqual(found["ps", 0], (f"about {20 * WEIGHTS[0]}", f"about {20 * WEIGHTS[0]}"), said)
        self.assertIn("about: estimated", said)

    def test_checkpoints_are_called_after_their_steps_and_five_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = os.path.join(folder, "model.ckpt")
            for run in range(1, 7):
                said = flowgrid("demo", "--alone", "--steps", "5", "--checkpoint-dir", folder)
                self.assertIn(f"saved {checkpoint}-{5 * run}\n", said)
                before = f"continuing from {checkpoint}-{5 * run - 5}\n"
                (self.assertNotIn if run == 1 else self.assertIn)(before, said)
            state = tf.train.get_checkpoint_state(folder)
            kept = [f"{checkpoint}-{step}" for step in (10, 15, 20, 25, 30)]
            self.assertEqual(list(state.all_model_checkpoint_paths), kept)
            self.assertEqual(tf.train.latest_checkpoint(folder), kept[-1])
            indices = {name for name in os.listdir(folder) if name.endswith(".index")}
            self.assertEqual(indices, {os.path.basename(path) + ".index" for path in kept})
            self.assertEqual(tf.train.load_variable(kept[-1], "global_step"), 30)

    def test_a_cluster_goes_on_from_its_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = (flowgrid("demo", "--steps", "20", "--checkpoint-dir", folder) for _ in range(2))
            self.assertIn(f"saved {folder}/model.ckpt-20\n", first)
            self.assertIn(f"continuing from {folder}/model.ckpt-20\n", second)
            self.assertIn(f"saved {folder}/model.ckpt-40\n", second)
            names = {name for name, _ in tf.train.list_variables(f"{folder}/model.ckpt-40")}
            self.assertLessEqual({"hidden/kernel", "logits/bias", "global_step"}, names)


class Trace:
    """A trace file: its rows, what ran in them, and the arrows between."""

    def __init__(self, path):
        with open(path) as file:
            self.events = json.load(file)["traceEvents"]
        named = {(event["name"], event["pid"], event.get("tid")): event["args"]["name"] for event in self.of("M")}
        self.tasks = {process: name for (kind, process, _), name in named.items() if kind == "process_name"}
        self.rows = {(process, row): name for (kind, process, row), name in named.items() if kind == "thread_name"}

    def of(self, phase):
        return [event for event in self.events if event["ph"] == phase]

    def inside(self, arrow):
        """True if an end of an arrow is within a slice."""
        slices = (event for event in self.of("X") if (event["pid"], event["tid"]) == (arrow["pid"], arrow["tid"]))
        return any(event["ts"] <= arrow["ts"] <= event["ts"] + event["dur"] for event in slices)

    def transfers(self, test):
        """Checks the whole file; returns the arrows between tasks, {(from, to)}."""
        for event in self.of("X"):
            test.assertIn(event["pid"], self.tasks)
            test.assertRegex(self.rows[event["pid"], event["tid"]], r"^CPU:\d+( receives)?( \(\d+\))?$")
            test.assertGreaterEqual(event["ts"], 0)
            test.assertGreaterEqual(event["dur"], 0)
        begins, ends = ({event["id"]: event for event in self.of(phase)} for phase in "sf")
        test.assertEqual(begins.keys(), ends.keys())
        test.assertEqual(len(begins) + len(ends), len(self.of("s")) + len(self.of("f")), "an arrow has one number")
        for number, begin in begins.items():
            test.assertLessEqual(begin["ts"], ends[number]["ts"])
            test.assertTrue(self.inside(begin) and self.inside(ends[number]), begin)
        return {(self.tasks[begin["pid"]], self.tasks[ends[number]["pid"]]) for number, begin in begins.items()}


class TraceTest(unittest.TestCase):

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.file = os.path.join(self.folder, "trace.json")

    def test_a_training_step_on_a_cluster(self):
        said = flowgrid("demo", "--ps", "2", "--workers", "2", "--steps", "30", "--trace", self.file)
        self.assertIn(f"{self.file} has the timeline of a step", said)
        trace = Trace(self.file)
        ps, worker = [f"/job:ps/replica:0/task:{task}" for task in range(2)], "/job:worker/replica:0/task:0"
        self.assertEqual(set(trace.tasks.values()), {*ps, worker})
        between = trace.transfers(self)
        for task in ps:
            self.assertLessEqual({(task, worker), (worker, task)}, between)  # weights and gradients
        ran = {event["name"] for event in trace.of("X")}
        self.assertTrue(any("Adam" in op for op in ran), ran)  # the update is part of it

    def test_a_step_of_a_graph(self):
        with tf.Graph().as_default() as graph:
            with tf1.device("/job:ps/task:0"):
                weights = tf1.get_variable("weights", [2], initializer=tf1.ones_initializer())
            with tf1.device("/job:worker/task:0"):
                tf.add(weights, 1.0, name="sum")
            init = tf1.global_variables_initializer().name
            path = tf1.train.write_graph(graph, self.folder, "graph.pb", as_text=False)
        with serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets:
            said = flowgrid("run", path, "--op", init, "--fetch", "sum", "--target", targets["worker"][0],
                            "--trace", self.file)
        self.assertIn("[2,2]", said.replace(" ", ""))
        ps, worker = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
        self.assertIn((ps, worker), Trace(self.file).transfers(self))


if __name__ == "__main__":
    unittest.main()
