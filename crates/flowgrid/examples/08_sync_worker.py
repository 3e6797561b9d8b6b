"""One of two workers that step together; the twin of 08_sync_worker.rs.

usage: 08_sync_worker.py grpc://host:port TASK
"""
import sys

import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()

WORKERS, STEPS = 2, 10


def examples(step, worker):
    """Two points on the line y = 2 x - 1."""
    xs = [[(step * 4 + worker * 2 + i) % 7 / 4] for i in range(2)]
    return xs, [[2 * x - 1] for x, in xs]


def work(target, worker):
    setter = tf1.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{worker}")
    with tf.Graph().as_default(), tf1.device(setter):
        step = tf1.train.get_or_create_global_step()
        x, y = tf1.placeholder(tf.float32, [None, 1]), tf1.placeholder(tf.float32, [None, 1])
        w = tf1.get_variable("w", [1, 1], initializer=tf1.zeros_initializer(), use_resource=True)
        b = tf1.get_variable("b", [1], initializer=tf1.zeros_initializer(), use_resource=True)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        optimizer = tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(0.1), WORKERS)
        train = optimizer.minimize(loss, global_step=step)
        hook = optimizer.make_session_run_hook(is_chief=worker == 0)
        with tf1.train.MonitoredTrainingSession(target, is_chief=worker == 0, hooks=[hook],
                                                stop_grace_period_secs=1) as session:
            for number in range(STEPS):
                xs, ys = examples(number, worker)
                session.run(train, {x: xs, y: ys})
            w, b = session.run([w, b])
            return float(w[0, 0]), float(b[0])


if __name__ == "__main__":
    print("w %.7f b %.7f" % work(sys.argv[1], int(sys.argv[2])))
