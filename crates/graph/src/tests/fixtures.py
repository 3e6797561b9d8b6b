"""Writes control_flow.pb: a graph made by real TensorFlow with a function, a cond, a while loop, and a device."""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402

with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, [None, 3], name="x")
    with tf.device("/job:ps/task:1"):
        weights = tf.compat.v1.get_variable("w", [3, 2], use_resource=True)

    @tf.function
    def square(value):
        return value * value

    product = tf.matmul(x, weights, name="product")
    with tf.control_dependencies([product]):
        total = tf.reduce_sum(square(product), name="total")
    chosen = tf.cond(total > 1.0, lambda: total / 2.0, lambda: total + 1.0, name="chosen")
    _, looped = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [0, chosen], name="looped")
    tf.gradients(looped, weights, name="gradient")
    text = tf.constant([b"a", b"\x00\xff"], name="text")
    data = graph.as_graph_def(add_shapes=True).SerializeToString(deterministic=True)

(pathlib.Path(__file__).parent / "control_flow.pb").write_bytes(data)
print(len(data), "bytes", [node.op for node in graph.as_graph_def().node])
