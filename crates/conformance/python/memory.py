"""How much memory the tasks of a cluster take."""
import tensorflow as tf

tf1 = tf.compat.v1


def peak(process):
    """Megabytes, the most since the process began or its peak was forgotten."""
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def initialize(session, processes):
    """Gives all variables their first values; the peaks of the processes begin after that."""
    session.run(tf1.global_variables_initializer())
    for process in processes:
        with open(f"/proc/{process.pid}/clear_refs", "w") as refs:
            refs.write("5")
