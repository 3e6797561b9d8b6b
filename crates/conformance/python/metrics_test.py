"""The metrics of tasks: as counters that clients read, and in event files that the real TensorBoard reads."""
import collections
import os
import re
import signal
import subprocess
import tempfile
import unittest

import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator

import serving

tf1 = tf.compat.v1
FLOATS = 1000  # sent from ps to worker in every step of `crossing`


def scalars(folder):
    """{tag: [(step, value)]} of the event file in a folder, as TensorBoard reads it."""
    accumulator = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0})
    accumulator.Reload()
    return {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
            for tag in accumulator.Tags()["scalars"]}


def end(processes):
    """Stops servers with a signal, as an operator would, and waits for their end."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait()


def crossing():
    """An initializer of a variable on the ps, and its sum on the worker."""
    with tf.device("/job:ps/task:0"):
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[FLOATS], shared_name="floats")
        assign = tf.raw_ops.AssignVariableOp(resource=handle, value=tf.ones([FLOATS]))
        floats = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    with tf.device("/job:worker/task:0"):
        return assign, tf.reduce_sum(floats)


def counter(device, name):
    with tf.device(device):
        handle = tf.raw_ops.VarHandleOp(container="flowgrid", shared_name=name, dtype=tf.int64, shape=[])
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)


def gradients_and_queue():
    """Three gradients of step 0 for an accumulator on the ps and two stale ones, and two elements for a queue."""
    with tf.device("/job:ps/task:0"):
        accumulator = tf1.ConditionalAccumulator(tf.float32, shape=[], shared_name="w:0/grad_accum")
        step = tf1.placeholder(tf.int64, [])
        apply = accumulator.apply_grad(1.0, local_step=step)
        later = accumulator.set_global_step(5)
        queue = tf1.FIFOQueue(9, tf.float32, shared_name="some/queue")
        enqueue = queue.enqueue_many([[1.0, 2.0]])
    return [(apply, {step: 0})] * 3 + [(later, None)] + [(apply, {step: 4})] * 2 + [(enqueue, None)]


class CountersTest(unittest.TestCase):

    def test_a_client_reads_them(self):
        with serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets, tf.Graph().as_default():
            assign, total = crossing()
            sent = counter("/job:ps/task:0", "bytes_out")
            came = counter("/job:worker/task:0", "bytes_in")
            steps = counter("/job:worker/task:0", "steps")
            with tf1.Session(targets["worker"][0]) as session:
                session.run(assign)
                before = session.run(steps), session.run(came), session.run(sent)
                for _ in range(5):
                    self.assertEqual(session.run(total), FLOATS)
                after = session.run(steps), session.run(came), session.run(sent)
            # The worker takes no part in a step that reads of the ps alone; what it reads came through it: eight bytes.
            self.assertEqual(after[0] - before[0], 5 + 2)
            self.assertEqual(after[1] - before[1], 5 * 4 * FLOATS + 8)
            self.assertEqual(after[2] - before[2], 5 * 4 * FLOATS + 8)

    def test_they_survive_a_reset(self):
        with serving.server("flowgrid") as targets, tf.Graph().as_default():
            steps = counter("/job:worker/task:0", "steps")
            with tf1.Session(targets["worker"][0]) as session:
                self.assertEqual([session.run(steps), session.run(steps)], [0, 1])
            tf1.Session.reset(targets["worker"][0])
            with tf1.Session(targets["worker"][0]) as session:
                self.assertEqual(session.run(steps), 2)


class ServerTest(unittest.TestCase):

    def run_with(self, folder, interval):
        flags = ["--metrics", folder, "--metrics-interval", interval]
        with serving.cluster("flowgrid", {"ps": 1, "worker": 1}, flags) as targets, tf.Graph().as_default():
            assign, total = crossing()
            rest = gradients_and_queue()
            with tf1.Session(targets["worker"][0]) as session:
                session.run(assign)
                for _ in range(5):
                    session.run(total)
                for op, feeds in rest:
                    session.run(op, feeds)
            end(targets.processes)

    def test_one_report_at_the_end(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_with(folder, "3600")
            ps, worker = (scalars(os.path.join(folder, run)) for run in ["ps-0", "worker-0"])
            (step, sent), = ps["cluster/ps/0/bytes_out"]
            self.assertEqual(sent, 5 * 4 * FLOATS)
            self.assertEqual(ps["cluster/ps/0/steps"], [(step, step)])
            self.assertEqual(ps["cluster/queue/some/queue"], [(step, 2)])
            name = "w_0/grad_accum"
            fates = [ps[f"cluster/gradients/{name}/{fate}"][0][1] for fate in ["accepted", "stale", "dropped"]]
            self.assertEqual(fates, [3, 2, 0])
            self.assertAlmostEqual(ps[f"cluster/staleness/{name}"][0][1], 2 / 5)
            self.assertGreater(ps["cluster/ps/0/bytes_out_per_sec"][0][1], 0)
            # The step numbers that were fed crossed from the worker: five int64.
            self.assertEqual([value for _, value in ps["cluster/ps/0/bytes_in"]], [5 * 8])
            self.assertEqual([value for _, value in worker["cluster/worker/0/bytes_in"]], [5 * 4 * FLOATS])
            self.assertEqual([value for _, value in worker["cluster/worker/0/bytes_out"]], [5 * 8])
            self.assertNotIn("cluster/queue/some/queue", worker)

    def test_reports_by_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_with(folder, "1steps")
            sent = scalars(os.path.join(folder, "ps-0"))["cluster/ps/0/bytes_out"]
            self.assertEqual(sent[-1][1], 5 * 4 * FLOATS)
            self.assertEqual([step for step, _ in sent], sorted({step for step, _ in sent}))

    def test_a_folder_that_cannot_be_is_an_error_at_the_start(self):
        with tempfile.NamedTemporaryFile() as file:
            own = serving.command("flowgrid", {"worker": ["127.0.0.1:0"]}, "worker", 0, ["--metrics", file.name])
            ended = subprocess.run(own, capture_output=True, text=True, timeout=60)
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn(file.name, ended.stderr)


class LocalTest(unittest.TestCase):

    def test_all_tasks_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            logs, journal = os.path.join(folder, "logs"), os.path.join(folder, "journal")
            own = [os.environ["FLOWGRID_BIN"], "local", "--ps", "1", "--workers", "1", "--sync-policy", "exact",
                   "--metrics", logs, "--journal", journal]
            process = subprocess.Popen(own, stdout=subprocess.PIPE, text=True)
            try:
                targets = {}
                for line in process.stdout:
                    found = re.match(r"/job:(\w+)/replica:0/task:\d+ +(grpc://\S+)", line)
                    if found:
                        targets[found[1]] = found[2]
                    if line.startswith("ready"):
                        break
                with tf.Graph().as_default(), tf1.Session(targets["worker"]) as session:
                    session.run(crossing()[0])
                    for op, feeds in gradients_and_queue():
                        session.run(op, feeds)
                process.send_signal(signal.SIGTERM)
                process.wait()
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
            self.assertEqual(sorted(os.listdir(logs)), ["ps-0", "worker-0"])
            self.assertEqual(sorted(os.listdir(journal)), ["ps-0", "worker-0"])
            self.assertTrue(os.listdir(os.path.join(journal, "ps-0", "cpu-0")))
            ps = scalars(os.path.join(logs, "ps-0"))
            fates = [ps[f"cluster/gradients/w_0/grad_accum/{fate}"][-1][1] for fate in ["accepted", "stale", "dropped"]]
            self.assertEqual(fates, [1, 2, 2])  # one session counts once


def demo(*flags):
    own = [os.environ["FLOWGRID_BIN"], "demo", "--steps", "40", *flags]
    return subprocess.run(own, capture_output=True, text=True, timeout=300)


class DemoTest(unittest.TestCase):

    def test_what_it_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = demo("--ps", "2", "--workers", "2", "--logdir", folder)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["worker-0", "worker-1"])
            runs = {run: scalars(os.path.join(folder, run)) for run in os.listdir(folder)}
            losses = [pair for run in runs.values() for pair in run["loss"]]
            self.assertEqual(sorted(step for step, _ in losses), list(range(1, 41)))
            first = runs["worker-0"]
            steps, digits = first["cluster/steps_per_sec"], first["cluster/examples_per_sec"]
            self.assertEqual(len(steps), 1)  # 20 steps of its own: two reports, and what was between them
            self.assertAlmostEqual(digits[0][1] / steps[0][1], 64, 3)
            for task in ["ps/0", "ps/1", "worker/0", "worker/1"]:
                values = [first[f"cluster/{task}/{way}"][-1][1] for way in ["bytes_in", "bytes_out"]]
                self.assertTrue(all(value > 0 for value in values), (task, values))
            accumulator = event_accumulator.EventAccumulator(os.path.join(folder, "worker-0"))
            accumulator.Reload()
            self.assertEqual(len(accumulator.Tags()["histograms"]), 4)
            devices = {node.device for node in accumulator.Graph().node}
            tasks = {f"/job:{job}/replica:0/task:{task}/device:CPU:0" for job, task in [("ps", 0), ("ps", 1), ("worker", 0)]}
            self.assertLessEqual(tasks, devices)

    def test_tasks_of_tensorflow_tell_nothing_and_that_is_said_once(self):
        with serving.cluster("tensorflow", {"ps": 1, "worker": 1}) as targets, tempfile.TemporaryDirectory() as folder:
            spec = ";".join(f"{job}={hosts[0].removeprefix('grpc://')}" for job, hosts in targets.items())
            ended = demo("--targets", spec, "--logdir", folder)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            reported = collections.Counter(re.findall(r"the counters of /job:(\w+)/replica:0/task:0 cannot be read", ended.stderr))
            self.assertEqual(reported, {"ps": 1, "worker": 1})
            found = scalars(os.path.join(folder, "worker-0"))
            self.assertGreater(found["cluster/steps_per_sec"][0][1], 0)
            self.assertNotIn("cluster/ps/0/bytes_in", found)


if __name__ == "__main__":
    unittest.main()
