"""The twin of 12_mnist_cluster.rs: one worker of a cluster that learns digits.

usage: 12_mnist_cluster.py --ps_hosts=a:1 --worker_hosts=b:2,c:3 --task_index=0 --checkpoint_dir=DIR [--sync_replicas]
"""
import argparse

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

BATCH, PIXELS, LAST_STEP = 64, 784, 200


def mixed(number):
    """Numbers that look like chance."""
    number = (number ^ number >> np.uint32(15)) * np.uint32(0x9e3779b1)
    return number ^ number >> np.uint32(13)


def digits(batch):
    """Noisy pictures of ten patterns, and which patterns they are."""
    example = np.arange(batch * BATCH, (batch + 1) * BATCH, dtype=np.uint32)[:, None]
    at = np.arange(PIXELS, dtype=np.uint32)
    labels = mixed(example) % 10
    ink = np.where(mixed(labels * np.uint32(PIXELS) + at) % 5 == 0, 0.6, 0.0)
    noise = mixed(example * np.uint32(PIXELS) + at + np.uint32(9999)) % 256 / 255
    return (ink + 0.4 * noise).astype(np.float32), labels[:, 0].astype(np.int32)


def dense(name, inputs, units):
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [inputs.shape[1], units], initializer=tf.glorot_uniform_initializer())
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(inputs, kernel), bias)


def main(flags):
    workers, task = flags.worker_hosts.split(","), flags.task_index
    with tf.device(tf.train.replica_device_setter(ps_tasks=len(flags.ps_hosts.split(",")),
                                                  worker_device=f"/job:worker/task:{task}")):
        step = tf.train.get_or_create_global_step()
        x, labels = tf.placeholder(tf.float32, [None, PIXELS]), tf.placeholder(tf.int32, [None])
        logits = dense("logits", tf.nn.relu(dense("hidden", x, 64)), 10)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer, hooks = tf.train.GradientDescentOptimizer(0.1), [tf.train.StopAtStepHook(last_step=LAST_STEP)]
        if flags.sync_replicas:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=len(workers))
            hooks.append(optimizer.make_session_run_hook(is_chief=task == 0))
        train = optimizer.minimize(loss, global_step=step)
    batch, mean = task, 2.3
    with tf.train.MonitoredTrainingSession(f"grpc://{workers[task]}", is_chief=task == 0, hooks=hooks,
                                           checkpoint_dir=flags.checkpoint_dir, stop_grace_period_secs=1) as session:
        while not session.should_stop():
            pixels, numbers = digits(batch)
            now, _ = session.run([loss, train], {x: pixels, labels: numbers})
            batch += len(workers)
            mean += 0.1 * (now - mean)
    print(f"loss {mean:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--checkpoint_dir", required=True)
    parser.add_argument("--sync_replicas", action="store_true")
    main(parser.parse_args())
