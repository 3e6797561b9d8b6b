"""The twin of 02_session.rs, in TensorFlow."""
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [None])
mean = tf.reduce_mean(x)
spread = tf.sqrt(tf.reduce_mean(tf.square(x - mean)))
total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
add = total.assign_add(tf.reduce_sum(x))

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    m, s, _ = session.run((mean, spread, add.op), {x: [1.0, 2.0, 3.0, 6.0]})
    print("mean", m, "spread", s)
    session.run(add.op, {x: [8.0]})
    t = session.run(total)
    print("total", t)
    assert (m, t) == (3.0, 20.0)
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run(add.op, {x: [0.0]}, options=options, run_metadata=metadata)
    print(sum(len(device.node_stats) for device in metadata.step_stats.dev_stats), "nodes ran")
