"""The twin of 11_summaries.rs, in TensorFlow. Give a folder to keep what it reports."""
import sys
import tempfile

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()

with tf.device("/cpu:0"):
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.placeholder(tf.float32, [None, 1])
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    error = tf.matmul(x, w) - y
    loss = tf.reduce_mean(error * error)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    tf.summary.scalar("loss", loss)
    tf.summary.histogram("weights", w)
    tf.summary.image("error", tf.reshape(error, [1, 2, 2, 1]), 1)
    tf.summary.text("about", tf.constant("a plane through four points"))
    merged = tf.summary.merge_all()

writer = tf.summary.FileWriter(folder, tf.get_default_graph())
points = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
heights = [[0.0], [3.0], [2.0], [5.0]]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(20):
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE if step == 10 else tf.RunOptions.NO_TRACE)
        metadata = tf.RunMetadata()
        value, report = session.run([loss, merged], {x: points, y: heights}, options, metadata)
        writer.add_summary(report, step)
        session.run(train, {x: points, y: heights})
        if step == 10:
            writer.add_run_metadata(metadata, "step 10", step)
writer.close()
print(f"loss {value:.4f}, see {folder}")
assert value < 1.0
