"""The twin of 06_in_graph.rs. Give the target of a worker to use a cluster that runs already."""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
WORKERS = 3
if len(sys.argv) > 1:
    target = sys.argv[1]
else:
    from twin import local_cluster
    target = local_cluster(ps=2, worker=WORKERS)["worker"][0]


def dense(name, inputs, units, seed):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        kernel = tf.get_variable("kernel", [inputs.shape[1], units],
                                 initializer=tf.glorot_uniform_initializer(seed=seed))
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(inputs, kernel), bias)


def tower(x, y):
    return tf.reduce_mean(tf.square(dense("output", tf.tanh(dense("hidden", x, 8, 1)), 1, 2) - y))


def batch(step):
    def at(i):
        return (step * 24 + i) * 7 % 48 / 24.0 - 1.0
    xs = np.array([[at(i), at(i + 13)] for i in range(24)], np.float32)
    return xs, xs[:, :1] * xs[:, 1:]


x, y = tf.placeholder(tf.float32, [24, 2]), tf.placeholder(tf.float32, [24, 1])
losses = []
for worker, (part_x, part_y) in enumerate(zip(tf.split(x, WORKERS), tf.split(y, WORKERS))):
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{worker}")):
        losses.append(tower(part_x, part_y))
loss = sum(losses[1:], losses[0]) / WORKERS
train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, colocate_gradients_with_ops=True)

with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    for step in range(101):
        xs, ys = batch(step)
        now, _ = session.run((loss, train), {x: xs, y: ys})
        if step % 20 == 0:
            print(f"step {step}: loss {now:.6f}")
