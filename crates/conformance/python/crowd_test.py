"""Many clients on many tasks at once: no update is lost, and the servers' memory does not grow.

CROWD_STEPS sets the number of steps of each client; `cargo xtask soak` uses a large number.
"""
import multiprocessing
import os
import subprocess
import sys
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

WORKERS, PS, CLIENTS = 8, 2, 16
STEPS = int(os.environ.get("CROWD_STEPS", "60"))
LOOKS = 100   # measurements of memory while the clients run
WARM_UP = 40  # measurements at the start, while threads, connections and lists of freed blocks still grow
BLOCK = 1.0   # megabytes: the unit in which an allocator takes memory, so a server may grow by it without a leak


def graph(worker, client):
    """Shared counters on every ps, and values from a worker that are added to them."""
    counters, adds = [], []
    for ps in range(PS):
        with tf1.device(f"/job:ps/task:{ps}"):
            counters.append(tf1.get_variable(f"sum{ps}", [64], tf.int64, tf1.zeros_initializer(), use_resource=True))
            counters.append(tf1.get_variable(f"old{ps}", [], tf.int64, tf1.zeros_initializer(), use_resource=False))
    with tf1.device(f"/job:worker/task:{worker}"):
        number = tf1.placeholder(tf.int64, [])
        many = tf.fill([64], number * (client + 1))
        check = tf.reduce_sum(tf.cast(tf.matmul(tf.ones([32, 32]), tf.ones([32, 32])), tf.int64))
    for counter in counters:
        with tf1.device(counter.device):
            adds.append(tf1.assign_add(counter, many if counter.shape.rank else number, use_locking=True).op)
    return number, counters, adds, check


def client(name, target, worker, begin, done, results):
    """Adds 1, 2, … to all counters."""
    try:
        with tf.Graph().as_default():
            number, _, adds, check = graph(worker, name)
            with tf1.Session(target) as session:
                begin.wait()
                for step in range(1, STEPS + 1):
                    value, _ = session.run([check, adds], {number: step})
                    assert value == 32 ** 3, value
                    with done.get_lock():
                        done.value += 1
        results.put((name, None))
    except Exception as error:
        results.put((name, repr(error)))


def resident(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def chief(target, what):
    """Creates the counters, or checks them."""
    with tf.Graph().as_default():
        _, counters, _, _ = graph(0, 0)
        with tf1.Session(target) as session:
            if what == "zero":
                session.run(tf1.global_variables_initializer())
                return
            once = STEPS * (STEPS + 1) // 2
            for counter, value in zip(counters, session.run([tf.identity(counter) for counter in counters])):
                each = sum(range(1, CLIENTS + 1)) if counter.shape.rank else CLIENTS
                np.testing.assert_array_equal(value, np.full(counter.shape, once * each))


def watch(processes, done):
    """The memory of every server after each share of the steps, [(steps, [megabytes])]."""
    looks = []
    for look in range(1, LOOKS + 1):
        goal = CLIENTS * STEPS * look // LOOKS
        while done.value < goal and multiprocessing.active_children():
            multiprocessing.connection.wait([child.sentinel for child in multiprocessing.active_children()], 0.05)
        looks.append((done.value, [resident(process) for process in processes]))
    return looks


def growth(steps, megabytes):
    """The growth of a server in 1000 steps, by least squares, and its uncertainty: three times the standard error, plus
    one block over all steps."""
    steps, megabytes = np.array(steps) / 1000, np.array(megabytes)
    (slope, start), spread = np.polyfit(steps, megabytes, 1), np.sum((steps - steps.mean()) ** 2)
    error = np.sqrt(np.sum((megabytes - start - slope * steps) ** 2) / (len(steps) - 2) / spread)
    return slope, 3 * error + BLOCK / (steps[-1] - steps[0])


def as_chief(fork, target, what):
    process = fork.Process(target=chief, args=(target, what))
    process.start()
    process.join()
    assert process.exitcode == 0, f"the chief could not {what} the counters"


def crowd():
    """The whole test, in a process without a session of its own, because clients are forks that share its memory."""
    fork = multiprocessing.get_context("fork")
    begin, done, results = fork.Barrier(CLIENTS + 1), fork.Value("q", 0), fork.SimpleQueue()
    with serving.cluster("flowgrid", {"ps": PS, "worker": WORKERS}) as targets:
        clients = [fork.Process(target=client, daemon=True, args=(
            name, targets["worker"][name % WORKERS], name % WORKERS, begin, done, results)) for name in range(CLIENTS)]
        for process in clients:
            process.start()
        as_chief(fork, targets["worker"][0], "zero")
        begin.wait()
        looks = watch(targets.processes, done)
        errors = [error for _, error in (results.get() for _ in clients) if error]
        for process in clients:
            process.join()
        assert not errors, errors
        as_chief(fork, targets["worker"][0], "check")
    for task, process in enumerate(targets.processes):
        steps, megabytes = zip(*((steps, sizes[task]) for steps, sizes in looks[WARM_UP:]))
        grows, noise = growth(steps, megabytes)
        print(f"{' '.join(process.args[-3:])}: {megabytes[-1]:.1f} MB, {grows:+.3f} MB in 1000 steps, noise {noise:.3f}")
        assert grows < noise, f"the memory of {process.args} grows: {megabytes}"


class CrowdTest(unittest.TestCase):

    def test_sums_are_exact_and_memory_is_flat(self):
        subprocess.run([sys.executable, __file__], check=True, timeout=1800)


if __name__ == "__main__":
    crowd()
