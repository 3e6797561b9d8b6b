"""An input pipeline, the twin of 14_input_pipeline.rs: equal seeds, so equal elements in equal order."""
import os
import tempfile

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
path = os.path.join(tempfile.mkdtemp(prefix="flowgrid-pipeline"), "examples.tfrecord")
with tf.io.TFRecordWriter(path) as writer:
    for i in range(60):
        xs = [float((i * 7 + k * 3) % 11) for k in range(i % 4 + 1)]
        y = sum(x * w for x, w in zip(xs, [2.0, 1.0, 0.5, -1.0]))
        writer.write(tf.train.Example(features=tf.train.Features(feature={
            "xs": tf.train.Feature(float_list=tf.train.FloatList(value=xs)),
            "y": tf.train.Feature(float_list=tf.train.FloatList(value=[y]))})).SerializeToString())

features = {"xs": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
            "y": tf.io.FixedLenFeature([], tf.float32)}
dataset = tf.data.TFRecordDataset(path).shuffle(20, seed=7).repeat(2)
dataset = dataset.map(lambda record: tf.io.parse_single_example(record, features))
dataset = dataset.map(lambda parsed: (parsed["xs"] / 10, parsed["y"] / 10), num_parallel_calls=2)
dataset = dataset.padded_batch(12, ([None], [])).prefetch(2)
iterator = tf.data.make_initializable_iterator(dataset)
xs, y = iterator.get_next()
w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.reduce_sum(xs, 1) * w - y))
train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)

with tf.Session() as session:
    session.run([tf.global_variables_initializer(), iterator.initializer])
    while True:
        try:
            print(f"loss {session.run([loss, train])[0]:.5f}")
        except tf.errors.OutOfRangeError:
            break
    print(f"after both rounds w is {session.run(w):.4f}")
os.remove(path)
