"""The twin of 07_between_graph.rs. Give the targets of both workers to use a cluster that runs already."""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
if len(sys.argv) > 2:
    targets = sys.argv[1:]
else:
    from twin import local_cluster
    targets = local_cluster(ps=2, worker=2)["worker"]


def dense(name, inputs, units, seed):
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [inputs.shape[1], units],
                                 initializer=tf.glorot_uniform_initializer(seed=seed))
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(inputs, kernel), bias)


def batch(step):
    def at(i):
        return (step * 16 + i) * 7 % 48 / 24.0 - 1.0
    xs = np.array([[at(i), at(i + 13)] for i in range(16)], np.float32)
    return xs, xs[:, :1] * xs[:, 1:]


class Client:
    """One worker's client: a graph and a session of its own."""

    def __init__(self, task, target):
        self.device = f"/job:worker/replica:0/task:{task}"
        with tf.Graph().as_default() as graph:
            with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device=self.device)):
                self.x, self.y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 1])
                outputs = dense("output", tf.tanh(dense("hidden", self.x, 8, 1)), 1, 2)
                self.loss = tf.reduce_mean(tf.square(outputs - self.y))
                self.train = tf.train.AdagradOptimizer(0.2).minimize(self.loss)
            init = tf.global_variables_initializer()
        self.session = tf.Session(target, graph=graph)
        if task == 0:
            self.session.run(init)

    def step(self, number):
        xs, ys = batch(number)
        now, _ = self.session.run((self.loss, self.train), {self.x: xs, self.y: ys})
        if number % 20 < 2:
            print(f"step {number} on {self.device}: loss {now:.6f}")


clients = [Client(task, target) for task, target in enumerate(targets)]
for step in range(101):
    clients[step % 2].step(step)
for client in clients:
    client.session.close()
