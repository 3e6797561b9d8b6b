"""Clients that save repeatedly, each in a process of its own that can be killed.

    python saving_client.py

A line of JSON on standard input starts one. It tells its process, before each save "saving STEP", after it "saved STEP",
and at the end "over": because the client was killed, or because a server was.
"""
import json
import os
import sys
import traceback

import tensorflow as tf

tf1 = tf.compat.v1
SIZE = 1 << 20  # floats in a variable


def tell(*words):
    # One write for each line, because a test may kill this process at any time.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def save_again_and_again(target, folder, step, sharded, same_name):
    """Variables on two ps whose value is the step; one checkpoint for each step, which may overwrite the last."""
    tf1.disable_eager_execution()
    variables = []
    for task, name in enumerate(["a", "b"]):
        with tf1.device(f"/job:ps/task:{task}"):
            variables.append(tf1.get_variable(name, [SIZE], initializer=tf1.zeros_initializer()))
    with tf1.device("/job:ps/task:0"):
        counter = tf1.get_variable("step", [], tf.int64, initializer=tf1.zeros_initializer())
    goal = tf1.placeholder(tf.int64, [])
    update = tf.group(counter.assign(goal), *[
        variable.assign(tf.fill([SIZE], tf.cast(goal, tf.float32))) for variable in variables])
    saver = tf1.train.Saver(sharded=sharded, max_to_keep=2)
    state = tf.train.get_checkpoint_state(folder)
    if state:
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
    config = tf1.ConfigProto(operation_timeout_in_ms=20_000)
    session = tf1.Session(target, config=config)  # never closed, because its server may have been killed
    while True:
        step += 1
        session.run(update, {goal: step})
        tell("saving", step)
        saver.save(session, os.path.join(folder, "model"), global_step=None if same_name else step)
        tell("saved", step)


def main():
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            try:
                tell("process", os.getpid())
                save_again_and_again(**json.loads(line))
            except (tf.errors.OpError, ValueError):
                os._exit(0)  # a server was killed
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        status = os.waitpid(process, 0)[1]
        tell("over", status)


if __name__ == "__main__":
    main()
