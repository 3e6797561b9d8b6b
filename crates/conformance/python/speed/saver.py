"""The time that Python's default Saver takes for 4 variables of 100 MB on 2 ps, on TensorFlow's servers and on ours.

    FLOWGRID_BIN=target/release/flowgrid python saver.py [rounds]
"""
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tensorflow as tf

import memory
import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
SIZE = 25_000_000  # floats


def measure(kind, sharded):
    """Seconds of a save, and the peak memory of each task in MB."""
    with tempfile.TemporaryDirectory() as folder, serving.cluster(kind, {"ps": 2, "worker": 1}) as targets:
        with tf.Graph().as_default():
            for number in range(4):
                with tf1.device(f"/job:ps/task:{number % 2}"):
                    tf1.get_variable(f"v{number}", [SIZE], initializer=tf1.random_uniform_initializer(seed=number))
            saver = tf1.train.Saver(sharded=sharded)
            with tf1.Session(targets["worker"][0]) as session:
                session.run(tf1.global_variables_initializer())
                times = []
                for step in range(3):
                    start = time.perf_counter()
                    saver.save(session, os.path.join(folder, "model"), global_step=step, write_meta_graph=False)
                    times.append(time.perf_counter() - start)
        return min(times), [memory.peak(process) for process in targets.processes]


def main(rounds):
    for sharded in (False, True):
        found = {"tensorflow": [], "flowgrid": []}
        for _ in range(rounds):
            for kind, results in found.items():
                results.append(measure(kind, sharded))
        seconds = {kind: statistics.median(time for time, _ in results) for kind, results in found.items()}
        for kind, results in found.items():
            peaks = [max(peaks[task] for _, peaks in results) for task in range(3)]
            print(f"sharded={sharded} {kind}: {seconds[kind]:.2f} s, peak MB of ps 0, ps 1, worker: "
                  + ", ".join(f"{peak:.0f}" for peak in peaks))
        print(f"ratio {seconds['tensorflow'] / seconds['flowgrid']:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
