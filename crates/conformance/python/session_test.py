"""Calls of the master service as the real Python client makes them, against our server."""
import threading
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

import serving

tf1 = tf.compat.v1
errors = tf.errors


class SessionTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(serving.server("flowgrid"))["worker"][0]

    def setUp(self):
        self.enterContext(tf.Graph().as_default())

    def session(self, **kwargs):
        return self.enterContext(tf1.Session(self.target, **kwargs))

    def test_feed_and_fetch(self):
        x = tf1.placeholder(tf.float32, [None, 2])
        y = tf.matmul(x, tf.constant([[1.0], [10.0]]))
        result = self.session().run({"y": y, "x": x + 1}, {x: [[1, 2], [3, 4]]})
        np.testing.assert_array_equal(result["y"], [[21], [43]])
        np.testing.assert_array_equal(result["x"], [[2, 3], [4, 5]])

    def test_large_feeds_and_fetches(self):
        large = np.random.RandomState(1).rand(300, 1000).astype(np.float32)
        names = np.array([b"x" * 50000, b"", b"y" * 100], object)
        x, s = tf1.placeholder(tf.float32, [None, 1000]), tf1.placeholder(tf.string)
        outs = [x * 2, s, tf.constant(3), tf.reshape(x, [-1])]
        call = self.session().make_callable(outs, [x, s])
        session = self.session()
        for doubled, text, three, flat in [call(large, names), session.run(outs, {s: names, x: large})]:
            np.testing.assert_array_equal(doubled, large * 2)
            np.testing.assert_array_equal(text, names)
            self.assertEqual(three, 3)
            np.testing.assert_array_equal(flat, large.reshape(-1))

    def test_a_large_constant_stays_what_it_is(self):
        v = tf1.get_variable("large", [500, 1000], initializer=tf1.constant_initializer(1.5), use_resource=False)
        constant = tf.constant(1.5, shape=[500, 1000])
        add, again = tf1.assign_add(v, constant), tf1.assign(v, constant)
        session = self.session()
        session.run(v.initializer)
        for _ in range(3):
            session.run(add.op)
            session.run(add.op)
            np.testing.assert_array_equal(session.run(v), np.full([500, 1000], 4.5, np.float32))
            np.testing.assert_array_equal(session.run(constant), np.full([500, 1000], 1.5, np.float32))
            session.run(again.op)

    def test_a_reference_is_read_when_it_is_used(self):
        v = tf1.get_variable("counter", [], tf.int64, initializer=tf1.zeros_initializer(), use_resource=False)
        with tf.control_dependencies([tf1.assign_add(v, 1)]):
            token = tf.fill([1], v)  # reads `counter/read`, which runs before the update
        session = self.session()
        session.run(v.initializer)
        self.assertEqual([session.run(token)[0] for _ in range(3)], [1, 2, 3])

    def test_graph_grows_between_runs(self):
        session = self.session()
        a = tf.constant(2.0)
        self.assertEqual(session.run(a), 2)
        b = a * 3
        self.assertEqual(session.run(b), 6)

    def test_variables_are_shared_between_sessions(self):
        v = tf1.Variable(1.0, name="shared_between_sessions", use_resource=False)
        add = v.assign_add(1.0)
        first, second = self.session(), self.session()
        first.run(v.initializer)
        second.run(add)
        self.assertEqual(first.run(v), 2)

    def test_isolated_state_is_not_shared(self):
        v = tf1.Variable(1.0, name="isolated", use_resource=False)
        config = tf1.ConfigProto(isolate_session_state=True)
        first, second = self.session(config=config), self.session(config=config)
        first.run(v.initializer)
        with self.assertRaisesRegex(errors.FailedPreconditionError, "uninitialized value isolated"):
            second.run(v)

    def test_uninitialized_resource_variable(self):
        v = tf1.Variable(1.0, name="never_set", use_resource=True)
        with self.assertRaisesRegex(errors.FailedPreconditionError, "never_set.*uninitialized"):
            self.session().run(v)

    def test_callable_from_options(self):
        x = tf1.placeholder(tf.float32, [])
        y = x * 2
        options = config_pb2.CallableOptions(feed=[x.name], fetch=[y.name])
        call = self.session()._make_callable_from_options(options)
        self.assertEqual(call(np.float32(21))[0], 42)

    def test_partial_run(self):
        a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
        c = a + 1
        d = c * b
        session = self.session()
        handle = session.partial_run_setup([c, d], [a, b])
        self.assertEqual(session.partial_run(handle, c, {a: 2}), 3)
        self.assertEqual(session.partial_run(handle, d, {b: 5}), 15)

    def test_partial_run_needs_its_feeds(self):
        a, b = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.float32, [])
        session = self.session()
        handle = session.partial_run_setup([a * b], [a, b])
        with self.assertRaisesRegex(errors.InvalidArgumentError, "can't be computed from the feeds"):
            session.partial_run(handle, "mul:0", {a: 2})

    def test_devices(self):
        names = [device.name for device in self.session().list_devices()]
        self.assertEqual(names, ["/job:worker/replica:0/task:0/device:CPU:0"])

    def test_reset_forgets_variables(self):
        v = tf1.Variable(1.0, name="forgotten", use_resource=False)
        with tf1.Session(self.target) as session:
            session.run(v.initializer)
        tf1.Session.reset(self.target)
        with self.assertRaises(errors.FailedPreconditionError):
            self.session().run(v)

    def test_trace(self):
        y = tf.matmul(tf.ones([4, 4]), tf.ones([4, 4]), name="product")
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        self.session().run(y, options=options, run_metadata=metadata)
        stats = {node.node_name: node for device in metadata.step_stats.dev_stats for node in device.node_stats}
        self.assertIn("product", stats)
        self.assertGreater(stats["product"].all_start_micros, 0)
        memory = stats["product"].output[0].tensor_description.allocation_description
        self.assertEqual((memory.requested_bytes, memory.allocator_name), (64, "cpu"))

    def test_timeout_names_itself(self):
        body = tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [tf.constant(0)])
        with self.assertRaises(errors.DeadlineExceededError):
            self.session().run(body, options=tf1.RunOptions(timeout_in_ms=300))
        self.assertEqual(self.session().run(tf.constant(1)), 1)

    def test_many_steps_at_once(self):
        x = tf1.placeholder(tf.float32, [])
        y = x * x
        session = self.session()
        results = {}

        def work(i):
            results[i] = [session.run(y, {x: i}) for _ in range(20)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(8):
            self.assertEqual(results[i], [i * i] * 20)


class ControlFlowTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(serving.server("flowgrid"))["worker"][0]

    def run_both(self, build):
        """The same graph in this process by TensorFlow, and on our server."""
        with tf.Graph().as_default():
            fetches = build()
            with tf1.Session() as local, tf1.Session(self.target) as remote:
                for session in (local, remote):
                    session.run(tf1.global_variables_initializer())
                return local.run(fetches), remote.run(fetches)

    def check(self, build):
        expected, found = self.run_both(build)
        for e, f in zip(tf.nest.flatten(expected), tf.nest.flatten(found)):
            np.testing.assert_allclose(f, e, rtol=1e-5)

    def test_cond(self):
        def build():
            x = tf.constant(3.0)
            return [tf1.cond(x > limit, lambda: x * 2, lambda: x - 1) for limit in (1.0, 5.0)]
        self.check(build)

    def nested_loop(self):
        def outer(i, total):
            inner = tf1.while_loop(lambda j, s: j < i, lambda j, s: (j + 1, s + tf.cast(j, tf.float32)),
                                   [tf.constant(0), total])
            return i + 1, inner[1]
        return tf1.while_loop(lambda i, total: i < 7, outer, [tf.constant(0), tf.constant(0.0)])

    def test_nested_while(self):
        self.check(self.nested_loop)

    def test_gradient_through_while(self):
        def build():
            x = tf.constant(1.5)
            y = tf1.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * x), [tf.constant(0), tf.constant(1.0)])[1]
            return [y, tf1.gradients(y, x)[0]]
        self.check(build)

    def test_gradient_through_cond(self):
        def build():
            x = tf.constant(1.5)
            y = tf1.cond(x > 1, lambda: x * x, lambda: x)
            return [y, tf1.gradients(y, x)[0]]
        self.check(build)

    def test_control_flow_v2(self):
        def build():
            tf1.enable_control_flow_v2()
            try:
                x = tf.constant(1.5)
                y = tf.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * x), [tf.constant(0), tf.constant(1.0)])[1]
                z = tf.cond(y > 1, lambda: y * y, lambda: y)
                return [z, tf1.gradients(z, x)[0]]
            finally:
                tf1.disable_control_flow_v2()
        self.check(build)

    def test_defun(self):
        def build():
            @tf.function
            def f(a, b):
                return a * b + a
            x = tf.constant([1.0, 2.0])
            return [f(x, x), tf1.gradients(f(x, x), x)[0]]
        self.check(build)

    def test_unused_loop_in_a_branch(self):
        def build():
            x = tf.constant(1.0)
            loop = lambda: tf1.while_loop(lambda i: i < 3.0, lambda i: i + 1, [x])
            return tf1.cond(x > 2, loop, lambda: x)
        self.check(build)


if __name__ == "__main__":
    unittest.main()
