"""The twin of 05_model_parallel.rs. Give the target of a worker to use a cluster that runs already."""
import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
if len(sys.argv) > 1:
    target = sys.argv[1]
else:
    from twin import local_cluster
    target = local_cluster(ps=2, worker=1)["worker"][0]

with tf.device("/job:ps/task:0"):
    weights_1 = tf.get_variable("weights_1", initializer=[[0.5, -0.25, 1.0], [0.75, 0.5, -1.0]])
    biases_1 = tf.get_variable("biases_1", [3], initializer=tf.zeros_initializer())
with tf.device("/job:ps/task:1"):
    weights_2 = tf.get_variable("weights_2", initializer=[[1.0], [-0.5], [0.25]])
    biases_2 = tf.get_variable("biases_2", [1], initializer=tf.zeros_initializer())
with tf.device("/job:worker/task:0"):
    x = tf.placeholder(tf.float32, [None, 2])
    layer_1 = tf.nn.relu(tf.matmul(x, weights_1) + biases_1)
    y = tf.matmul(layer_1, weights_2) + biases_2
    loss = tf.reduce_mean(tf.square(y - tf.constant([[2.0], [1.0], [0.0]])))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, colocate_gradients_with_ops=True)

with tf.Session(target) as session:
    session.run(tf.global_variables_initializer())
    for step in range(41):
        now, _ = session.run((loss, train), {x: [[1.0, 1.0], [2.0, -1.0], [-1.0, 0.5]]})
        if step % 10 == 0:
            print(f"step {step}: loss {now:.6f}")
