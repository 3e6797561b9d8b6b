"""The cost of a journal: steps per second of two clients that train a network 784-512-512-10, without it and with it.

    FLOWGRID_BIN=target/release/flowgrid python journal.py [rounds]
"""
import os
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
STEPS = 300


def client(target, worker, begin, rates):
    with tf.Graph().as_default():
        with tf1.device(tf1.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{worker}")):
            step = tf1.train.get_or_create_global_step()
            x = tf.random.stateless_uniform([128, 784], [1, 2])
            for number, width in enumerate([512, 512, 10]):
                w = tf1.get_variable(f"w{number}", [x.shape[1], width], initializer=tf1.glorot_uniform_initializer())
                x = tf.nn.relu(tf.matmul(x, w))
            train = tf1.train.GradientDescentOptimizer(1e-4).minimize(tf.reduce_mean(tf.square(x)), step)
        with tf1.Session(target) as session:
            if worker == 0:
                session.run(tf1.global_variables_initializer())
            begin.wait()
            run = session.make_callable(train)
            for _ in range(20):
                run()
            start = time.perf_counter()
            for _ in range(STEPS):
                run()
            rates.append(STEPS / (time.perf_counter() - start))


def measure(flags):
    with serving.tasks("flowgrid", {"ps": 1, "worker": 2}, flags={"ps": flags}) as cluster:
        begin, rates = threading.Barrier(2), []
        clients = [threading.Thread(target=client, args=(cluster.target("worker", worker), worker, begin, rates))
                   for worker in range(2)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        return sum(rates)


def main(rounds):
    without, with_it = [], []
    for _ in range(rounds):
        without.append(measure([]))
        with tempfile.TemporaryDirectory() as folder:
            with_it.append(measure(["--journal", folder]))
    one, other = statistics.median(without), statistics.median(with_it)
    print(f"{one:.1f} steps/s without a journal, {other:.1f} with one: {100 * (1 - other / one):.1f} % less")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
