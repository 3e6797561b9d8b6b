"""The memory of the tasks of a cluster."""
import tensorflow as tf

tf1 = tf.compat.v1


def peak(process):
    """The peak memory in megabytes, since the start or the last reset."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def initialize(session, processes):
    """Initializes all variables, and then resets the peaks of the processes."""
    session.run(tf1.global_variables_initializer())
    for process in processes:
        with open(f"/proc/{process.pid}/clear_refs", "w") as refs:
            refs.write("5")
