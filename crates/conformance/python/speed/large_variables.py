"""A partitioned variable of 1 GB goes from TensorFlow's servers to ours and back by checkpoints, each time into another
number of parts: seconds, and the peak memory of each task in MB. Every value must arrive, and no task of ours may take
more than 64 MB above its own variables. `cargo xtask soak` runs it.

    FLOWGRID_BIN=target/release/flowgrid python large_variables.py [megabytes]
"""
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tensorflow as tf

import memory
import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
WIDTH = 1024  # int32 per row
BLOCK = 4096  # rows that are compared at once
SIZE = {"ps": 2, "worker": 1}
MOST = 64  # MB in addition to its own variables


def rows_of(begin, count):
    """Rows of a table in which no two numbers are equal."""
    return tf.reshape(tf.range(begin * WIDTH, (begin + count) * WIDTH), [count, WIDTH])


def build(rows, parts):
    """A variable whose parts alternate between two ps; a Saver; for each block of rows, whether it is as it should be; how
    many MB of it each task has."""
    def initial(shape, dtype=None, partition_info=None):
        begin = partition_info.var_offset[0]
        with tf1.device(place(begin * parts // rows)):
            return rows_of(begin, shape[0])

    def place(part):
        return f"/job:ps/task:{part % 2}"

    numbers = iter(range(parts))
    with tf1.device(lambda op: place(next(numbers)) if op.type == "VariableV2" else ""):
        variable = tf1.get_variable("table", [rows, WIDTH], tf.int32, initializer=initial, use_resource=False,
                                    partitioner=tf1.fixed_size_partitioner(parts))
    checks, own = [], [0, 0, 0]
    for number, part in enumerate(variable):
        info = part._get_save_slice_info()
        own[number % 2] += info.var_shape[0] * WIDTH * 4 / (1 << 20)
        with tf1.device(part.device):
            for begin in range(0, info.var_shape[0], BLOCK):
                count = min(BLOCK, info.var_shape[0] - begin)
                wanted = rows_of(info.var_offset[0] + begin, count)
                checks.append(tf.reduce_all(tf.equal(part[begin:begin + count], wanted)))
    return tf1.train.Saver(), checks, own


def told(what, kind, seconds, processes, own):
    peaks = [memory.peak(process) for process in processes]
    words = ", ".join(f"{peak:.0f} ({mine:.0f} its own)" for peak, mine in zip(peaks, own))
    print(f"{kind} {what}: {seconds:.1f} s, peak MB of ps 0, ps 1, worker: {words}", flush=True)
    if kind == "flowgrid" and any(peak > mine + MOST for peak, mine in zip(peaks, own)):
        raise SystemExit(f"more than {MOST} MB above the own variables")


def write(kind, prefix, rows, parts):
    with serving.cluster(kind, SIZE) as targets, tf.Graph().as_default():
        saver, _, own = build(rows, parts)
        with tf1.Session(targets["worker"][0]) as session:
            memory.initialize(session, targets.processes)
            start = time.perf_counter()
            prefix = saver.save(session, prefix, write_meta_graph=False)
            told(f"saves {parts} parts", kind, time.perf_counter() - start, targets.processes, own)
            return prefix


def read(kind, prefix, rows, parts):
    with serving.cluster(kind, SIZE) as targets, tf.Graph().as_default():
        saver, checks, own = build(rows, parts)
        with tf1.Session(targets["worker"][0]) as session:
            start = time.perf_counter()
            saver.restore(session, prefix)
            told(f"restores {parts} parts", kind, time.perf_counter() - start, targets.processes, own)
            right = [session.run(check) for check in checks]
            if not all(right):
                raise SystemExit(f"{kind}: {right.count(False)} of {len(right)} blocks are not what was saved")


def main(megabytes):
    rows = megabytes * (1 << 20) // (4 * WIDTH)
    with tempfile.TemporaryDirectory() as folder:
        theirs = write("tensorflow", os.path.join(folder, "theirs"), rows, 4)
        read("flowgrid", theirs, rows, 3)
        for file in os.listdir(folder):
            os.remove(os.path.join(folder, file))
        ours = write("flowgrid", os.path.join(folder, "ours"), rows, 3)
        read("tensorflow", ours, rows, 4)
        read("flowgrid", ours, rows, 2)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
