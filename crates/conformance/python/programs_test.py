"""Programs of tutorials on distributed TensorFlow on our servers, and the errors of common mistakes in them."""
import contextlib
import io
import os
import subprocess
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()


@contextlib.contextmanager
def fresh_graph():
    with tf.Graph().as_default() as graph:
        yield graph


def flowgrid(*args, env=None):
    """Runs the program to its end; returns its exit code and its output."""
    done = subprocess.run([os.environ["FLOWGRID_BIN"], *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=os.environ | (env or {}))
    return done.returncode, done.stdout + done.stderr


def on_the_eighth_worker():
    """Parameters on two ps tasks, the rest on /job:worker/task:7; returns logits, loss and train_op."""
    with tf1.device("/job:ps/task:0"):
        weights_1 = tf1.Variable(tf.ones([4, 3]) * 0.5)
        biases_1 = tf1.Variable(tf.zeros([3]))
    with tf1.device("/job:ps/task:1"):
        weights_2 = tf1.Variable(tf.ones([3, 2]) * 0.25)
        biases_2 = tf1.Variable(tf.ones([2]))
    with tf1.device("/job:worker/task:7"):
        inputs, labels = tf.ones([5, 4]), tf.zeros([5, 2])
        layer_1 = tf.nn.relu(tf.matmul(inputs, weights_1) + biases_1)
        logits = tf.nn.relu(tf.matmul(layer_1, weights_2) + biases_2)
        loss = tf.reduce_mean(tf.square(logits - labels))
        return logits, loss, tf1.train.GradientDescentOptimizer(0.01).minimize(loss)


class ProgramsTest(unittest.TestCase):

    def test_parameters_on_two_ps_and_products_on_a_worker(self):
        with serving.cluster("flowgrid", {"ps": 2, "worker": 8}) as targets, fresh_graph():
            logits, loss, train_op = on_the_eighth_worker()
            with tf1.Session(targets["worker"][7]) as session:
                session.run(tf1.global_variables_initializer())
                np.testing.assert_allclose(session.run(logits), np.full([5, 2], 2.5), rtol=1e-6)
                losses = [session.run([loss, train_op])[0] for _ in range(10)]
                self.assertLess(losses[-1], losses[0])

    def test_the_eighth_of_three_workers(self):
        """The program above on the cluster of the same tutorial."""
        with serving.cluster("flowgrid", {"ps": 2, "worker": 3}) as targets, fresh_graph():
            logits, _, train_op = on_the_eighth_worker()
            with tf1.Session(targets["worker"][0]) as session:
                # All of a graph is placed when its first step is run.
                for fetch in (tf1.global_variables_initializer(), logits, train_op):
                    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                        session.run(fetch)
                    said = str(caught.exception)
                    valid = [f"/job:ps/replica:0/task:{task}" for task in range(2)]
                    valid += [f"/job:worker/replica:0/task:{task}" for task in range(3)]
                    for part in ["/job:worker/task:7", "The session's cluster has no such task", *valid]:
                        self.assertIn(part, said)

    def test_variables_go_round_the_ps_tasks(self):
        size = {"ps": 3, "worker": 2}
        with serving.cluster("flowgrid", size) as targets, fresh_graph():
            with tf1.device(tf1.train.replica_device_setter(ps_tasks=3)):
                w_0, b_0 = tf1.Variable(tf.ones([2, 3])), tf1.Variable(tf.ones([3]))
                w_1, b_1 = tf1.Variable(tf.ones([3, 1])), tf1.Variable(tf.ones([1]))
                input_data = tf1.placeholder(tf.float32)
                layer_0 = tf.matmul(input_data, w_0) + b_0
                layer_1 = tf.matmul(layer_0, w_1) + b_1
            self.assertEqual([v.device for v in (w_0, b_0, w_1, b_1)],
                             ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:2", "/job:ps/task:0"])
            for target in targets["worker"]:
                with tf1.Session(target) as session:
                    session.run(tf1.global_variables_initializer())
                    options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
                    metadata = tf1.RunMetadata()
                    value = session.run(layer_1, {input_data: [[1.0, 2.0]]}, options, metadata)
                    np.testing.assert_allclose(value, [[13.0]])
                    where = {device.device for device in metadata.step_stats.dev_stats if device.node_stats}
                    for task in range(3):
                        self.assertTrue(any(f"/job:ps/replica:0/task:{task}" in name for name in where), where)

    def test_between_graph_with_a_cluster_spec(self):
        size = {"ps": 2, "worker": 2}
        with serving.cluster("flowgrid", size) as targets:
            cluster = tf1.train.ClusterSpec({job: [t[len("grpc://"):] for t in ts] for job, ts in targets.items()})
            for task_index in range(2):
                with fresh_graph():
                    with tf1.device(tf1.train.replica_device_setter(
                            worker_device="/job:worker/task:%d" % task_index, cluster=cluster)):
                        total = tf1.get_variable("total", [], initializer=tf1.zeros_initializer())
                        add = tf1.assign_add(total, task_index + 1.0)
                    with tf1.Session(targets["worker"][task_index]) as session:
                        if task_index == 0:
                            session.run(tf1.global_variables_initializer())
                        value = session.run(add)
            self.assertEqual(value, 3.0)

    def test_a_server_and_a_separate_client(self):
        with serving.cluster("flowgrid", {"ps": 2, "worker": 2}) as targets, fresh_graph():
            with tf1.device("/job:ps/task:0"):
                w = tf1.get_variable("w", shape=[2, 4], dtype=tf.float32, initializer=tf1.ones_initializer())
                b = tf1.get_variable("b", shape=[4], dtype=tf.float32, initializer=tf1.ones_initializer())
            with tf1.device("/job:worker/task:0"):
                x = tf1.placeholder(dtype=tf.float32, shape=[1, 2])
                res = tf.matmul(x, w) + b
                init = tf1.global_variables_initializer()
            with tf1.Session(targets["worker"][0]) as session:
                session.run(init)
                np.testing.assert_array_equal(session.run(res, {x: [[1.0, 2.0]]}), [[4.0] * 4])
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "You must feed a value for placeholder"):
                    session.run(res)

    def test_a_client_with_the_old_name_of_the_initializer(self):
        """The tutorial's client: without initializers, and with `init` on the worker."""
        with serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets, fresh_graph():
            with tf1.device("/job:ps/task:0"):
                w = tf1.get_variable("w", shape=[2, 4], dtype=tf.float32)
                b = tf1.get_variable("b", shape=[4], dtype=tf.float32)
            with tf1.device("/job:worker/task:0"):
                x = tf1.placeholder(dtype=tf.float32, shape=[1, 2])
                res = tf.matmul(x, w)
                init = tf1.initialize_all_variables()
            with tf1.Session(targets["worker"][0]) as sess:
                sess.run(init)
                value, weights, biases = sess.run([res, w, b], {x: [[1.0, 2.0]]})
                np.testing.assert_allclose(value, [[1.0, 2.0]] @ weights, rtol=1e-5)
                # Glorot's uniform distribution, TensorFlow's default.
                for drawn, limit in ((weights, np.sqrt(6 / (2 + 4))), (biases, np.sqrt(6 / (4 + 4)))):
                    self.assertLess(np.abs(drawn).max(), limit)
                    self.assertEqual(len(np.unique(drawn)), drawn.size)

    def test_a_session_without_a_target_has_no_such_devices(self):
        """The same client with `tf.Session()`: TensorFlow's runtime in the client answers, not a server of ours."""
        for variable_device in ("/job:ps/task:0", "/job:worker/task:0"):
            with fresh_graph():
                with tf1.device(variable_device):
                    tf1.get_variable("w", shape=[2, 4], dtype=tf.float32)
                with tf1.Session() as sess, self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                    sess.run(tf1.initialize_all_variables())
                for part in ("Cannot assign a device for operation w", variable_device, "/job:localhost/replica:0"):
                    self.assertIn(part, str(caught.exception))

    def test_targets_that_are_none(self):
        """Errors of TensorFlow's client itself, before it sends anything: `grpc://` or a port is missing."""
        with serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets:
            address = targets["worker"][0].removeprefix("grpc://")
            for target in (address, "worker0.example.com:port", "worker0.example.com:2222"):
                with self.assertRaises(tf.errors.NotFoundError) as caught:
                    tf1.Session(target, graph=tf.Graph())
                for part in ("No session factory registered for the given session options", target, "GRPC_SESSION"):
                    self.assertIn(part, str(caught.exception))
        for address in ("worker0.example.com:port", "worker0.example.com"):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                        f'Could not interpret "{address}" as a host-port pair'):
                tf1.Session("grpc://" + address, graph=tf.Graph())

    def test_words_that_python_does_not_know(self):
        """Typing errors in tutorials. Python reports these itself and names the word; no server is involved."""
        cluster = tf1.train.ClusterSpec({"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]})
        for error, word, line in [
            (TypeError, "clustercluster", lambda: tf1.train.replica_device_setter(
                worker_device="/job:worker/task:0", clustercluster=cluster)),
            (TypeError, 'can only concatenate str .not "int"', lambda: tf1.train.replica_device_setter(
                worker_device="/job:worker/task:" + 0, cluster=cluster)),
            (AttributeError, "trian", lambda: tf1.trian.replica_device_setter(cluster=cluster)),
            (AttributeError, "trian", lambda: tf1.trian.Server(cluster, job_name="ps", task_index=0)),
            (AttributeError, "flaot32", lambda: tf1.get_variable("w", shape=[2, 4], dtype=tf.flaot32)),
            # The first argument of a Server is called server_or_cluster_def.
            (TypeError, "keyword argument 'cluster'", lambda: tf1.train.Server(
                cluster=cluster, job_name="ps", task_index=0)),
            (TypeError, "'str' object cannot be interpreted as an integer", lambda: tf1.train.Server(
                cluster, job_name="ps", task_index="current_task_index")),
            (tf.errors.InternalError, "current_job_name", lambda: tf1.train.Server(
                cluster, job_name="current_job_name", task_index=0)),
        ]:
            with self.subTest(word=word), self.assertRaisesRegex(error, word):
                line()

    def test_placement_is_logged_by_the_master(self):
        ports = serving.free_ports(2)
        spec = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
        logs, tasks = {}, []
        try:
            for job in spec:
                tasks.append(subprocess.Popen(serving.command("flowgrid", spec, job, 0), text=True,
                                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT))
                serving.wait_ready(tasks[-1])
            with fresh_graph():
                with tf1.device("/job:ps/task:0"):
                    weights = tf1.get_variable("weights", [2], initializer=tf1.zeros_initializer(), use_resource=False)
                config = tf1.ConfigProto(log_device_placement=True)
                with tf1.Session("grpc://" + spec["worker"][0], config=config) as session:
                    session.run(tf1.global_variables_initializer())
                    session.run(weights)
        finally:
            for job, task in zip(spec, tasks):
                task.terminate()
                logs[job] = task.communicate(timeout=30)[0]
        self.assertIn("weights: (VariableV2): /job:ps/replica:0/task:0/device:CPU:0", logs["worker"])
        self.assertNotIn("weights: (VariableV2)", logs["ps"])

    def test_a_device_that_no_task_has(self):
        with serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets, fresh_graph():
            with tf1.device("/job:ps/task:3"):
                value = tf.constant(1.0) + 1.0
            with tf1.Session(targets["worker"][0]) as session:
                with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                    session.run(value)
            for part in ("/job:ps/task:3", "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "no such task"):
                self.assertIn(part, str(caught.exception))

    def test_supervisor_wants_devices_for_variables(self):
        """Variables outside of the device scope are the mistake; variables inside are correct."""
        with serving.cluster("flowgrid", {"ps": 1, "worker": 2}) as targets:
            for task in range(2):
                with fresh_graph(), contextlib.redirect_stderr(io.StringIO()):
                    setter = tf1.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{task}")
                    with tf1.device(setter):
                        step = tf1.train.get_or_create_global_step()
                        advance = tf1.assign_add(step, 1)
                    supervisor = tf1.train.Supervisor(is_chief=task == 0, global_step=step, logdir=None)
                    with supervisor.managed_session(targets["worker"][task]) as session:
                        self.assertEqual(session.run(advance), task + 1)
        with fresh_graph():
            tf1.get_variable("loose", [1], use_resource=False)
            with self.assertRaisesRegex(ValueError, "all Variables must have their device set"):
                tf1.train.Supervisor(is_chief=False)

    def test_a_supervisor_inside_and_outside_of_the_device_scope(self):
        """Tutorials create it outside. Inside, its own nodes are on the worker, and it works the same. Neither helps
        variables without a device."""
        def supervisor(step, task):
            with contextlib.redirect_stderr(io.StringIO()):
                return tf1.train.Supervisor(is_chief=task == 0, global_step=step, logdir=None)

        def counter():
            return tf1.get_variable("global_step", [], tf.int64, tf1.zeros_initializer(), trainable=False,
                                    use_resource=False)

        for supervisor_inside in (False, True):
            with self.subTest(supervisor_inside=supervisor_inside), \
                    serving.cluster("flowgrid", {"ps": 1, "worker": 2}) as targets:
                for task in range(2):
                    device = f"/job:worker/task:{task}"
                    setter = tf1.train.replica_device_setter(ps_tasks=1, worker_device=device)
                    with fresh_graph() as graph:
                        with tf1.device(setter):
                            step = counter()
                            advance = tf1.assign_add(step, 1)
                        with tf1.device(setter) if supervisor_inside else contextlib.nullcontext():
                            made = supervisor(step, task)
                        ready = graph.get_operation_by_name("report_uninitialized_variables/LogicalNot")
                        self.assertEqual(ready.device, f"{device if supervisor_inside else ''}/device:CPU:0")
                        with made.managed_session(targets["worker"][task]) as session:
                            self.assertEqual(session.run(advance), task + 1)
                # Without a device each worker would have a variable of its own.
                with fresh_graph():
                    step = counter()
                    with tf1.device(setter) if supervisor_inside else contextlib.nullcontext(), \
                            self.assertRaisesRegex(ValueError, "When using replicas, all Variables must have"):
                        supervisor(step, 1)

    def test_wrong_flags_say_what_is_right(self):
        cluster = ["--cluster", "ps=127.0.0.1:1;worker=127.0.0.1:2"]
        for args, parts in [
            (["--job", "current_job_name", "--task", "0"], ["current_job_name", "ps, worker"]),
            (["--job", "ps", "--task", "current_task_index"], ["current_task_index", "--task"]),
            (["--job", "ps", "--task", "4"], ["No task with index 4", "0"]),
        ]:
            code, text = flowgrid("server", *cluster, *args)
            self.assertNotEqual(code, 0, text)
            for part in parts:
                self.assertIn(part, text)
        code, text = flowgrid("server", "--cluster", "worker=127.0.0.1", env={"TF_CONFIG": ""})
        self.assertIn("expected host:port", text)


if __name__ == "__main__":
    unittest.main()
