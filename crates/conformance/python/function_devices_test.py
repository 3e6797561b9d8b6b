"""Functions that use variables of several devices of a task."""
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1


class FunctionDevicesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(
            serving.cluster("flowgrid", {"worker": 1}, ["--cpu-devices", "2"]))["worker"][0]

    def run_graph(self, build):
        with tf.Graph().as_default():
            variables = []
            for i in range(2):
                with tf.device(f"/job:worker/task:0/device:CPU:{i}"):
                    variables.append(tf1.get_variable(f"v{i}", initializer=float(i + 1), use_resource=True))
            fetch = build(variables)
            with tf1.Session(self.target) as session:
                session.run(tf1.global_variables_initializer())
                return session.run(fetch), session.run(variables)

    def test_a_body_reads_and_changes_variables_of_two_devices(self):
        def build(variables):
            @tf.function(autograph=False)
            def body(x):
                with tf.control_dependencies([variable.assign_add(x) for variable in variables]):
                    return variables[0].read_value() * 10 + variables[1].read_value()
            with tf.device("/job:worker/task:0/device:CPU:0"):
                return body(tf.constant(1.0))
        self.assertEqual(self.run_graph(build), (23.0, [2.0, 3.0]))

    def test_a_conditional_and_a_loop_in_a_body(self):
        def build(variables):
            @tf.function(autograph=False)
            def body(x):
                with tf.control_dependencies([tf.cond(x > 0, lambda: variables[1].assign_add(x).read_value(),
                                                      lambda: variables[0].assign_add(x).read_value())]):
                    return tf.while_loop(lambda i: i < 3, lambda i: [i + variables[1]], [tf.constant(0.0)])[0]
            with tf.device("/job:worker/task:0/device:CPU:0"):
                return body(tf.constant(1.0))
        self.assertEqual(self.run_graph(build), (3.0, [1.0, 3.0]))


if __name__ == "__main__":
    unittest.main()
