"""One worker of between-graph replication, the twin of 07_between_graph.rs.

usage: 07_between_graph.py grpc://WORKER:PORT TASK
"""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
target, task = sys.argv[1], int(sys.argv[2])


def dense(name, inputs, units, seed):
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [inputs.shape[1], units],
                                 initializer=tf.glorot_uniform_initializer(seed=seed))
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(inputs, kernel), bias)


def batch(number):
    def at(i):
        return (number * 16 + i) * 7 % 48 / 24.0 - 1.0
    xs = np.array([[at(i), at(i + 13)] for i in range(16)], np.float32)
    return xs, xs[:, :1] * xs[:, 1:]


with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{task}")):
    step = tf.train.get_or_create_global_step()
    x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 1])
    outputs = dense("output", tf.tanh(dense("hidden", x, 8, 1)), 1, 2)
    loss = tf.reduce_mean(tf.square(outputs - y))
    train = tf.train.AdagradOptimizer(0.2).minimize(loss, global_step=step)

number = task
with tf.train.MonitoredTrainingSession(target, is_chief=task == 0, hooks=[tf.train.StopAtStepHook(num_steps=51)],
                                       stop_grace_period_secs=1) as session:
    while not session.should_stop():
        xs, ys = batch(number)
        now, _ = session.run((loss, train), {x: xs, y: ys})
        if number % 20 == task:
            print(f"batch {number} on worker {task}: loss {now:.6f}")
        number += 2  # the batches in between are those of the other worker
