"""The twin of 01_graph.rs, in TensorFlow."""
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
graph = tf.Graph()
with graph.as_default():
    with tf.name_scope("model"):
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        with tf.device("/cpu:0"):
            w = tf.constant([[1.0], [2.0], [3.0]])
        y = tf.matmul(x, w) * 2.0 + 1.0
assert y.dtype == tf.float32
assert y.shape.as_list() == [None, 1]
definition = graph.as_graph_def()
print(len(definition.node), "nodes in", definition.ByteSize(), "bytes:", ", ".join(n.name for n in definition.node))
with tf.Graph().as_default():
    a = tf.constant([[1.0, 2.0]])
    try:
        tf.matmul(a, a)
    except ValueError as error:
        print(error)
