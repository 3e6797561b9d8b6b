"""An unmodified client trains the same models on TensorFlow's server and on ours: equal losses in each step."""
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
STEPS = 200


def digits(examples, seed=0):
    """Ten noisy patterns and their labels."""
    rng = np.random.RandomState(seed)
    patterns = np.random.RandomState(7).rand(10, 784) < 0.2
    labels = rng.randint(0, 10, examples)
    pixels = np.where(patterns[labels], 0.6, 0.0) + rng.rand(examples, 784) * 0.4
    return pixels.astype(np.float32), labels.astype(np.int32)


def dense(x, width, name, resource):
    w = tf1.get_variable(name + "/w", [x.shape[1], width], use_resource=resource,
                         initializer=tf1.glorot_uniform_initializer(seed=3))
    b = tf1.get_variable(name + "/b", [width], use_resource=resource, initializer=tf1.zeros_initializer())
    return tf.nn.bias_add(tf.matmul(x, w), b)


def mlp(x, resource, training):
    hidden = tf.nn.relu(dense(x, 64, "hidden", resource))
    return dense(hidden, 10, "logits", resource)


def cnn(x, resource, training):
    x = tf.reshape(x, [-1, 28, 28, 1])
    for i, width in enumerate([8, 16]):
        kernel = tf1.get_variable(f"conv{i}/k", [5, 5, x.shape[3], width], use_resource=resource,
                                  initializer=tf1.truncated_normal_initializer(stddev=0.1, seed=i))
        x = tf.nn.conv2d(x, kernel, strides=1, padding="SAME")
        scale = tf1.get_variable(f"bn{i}/scale", [width], use_resource=resource, initializer=tf1.ones_initializer())
        offset = tf1.get_variable(f"bn{i}/offset", [width], use_resource=resource, initializer=tf1.zeros_initializer())
        x, _, _ = tf1.nn.fused_batch_norm(x, scale, offset, is_training=training)
        # Smooth, so that rounding cannot change the path of a gradient, which would be no error of either side.
        x = tf.nn.avg_pool2d(tf.nn.elu(x), 2, 2, "SAME")
    x = tf.reshape(x, [-1, 7 * 7 * 16])
    return dense(x, 10, "logits", resource)


def losses(target, model, resource, steps=STEPS, batch=32):
    """The loss of each step, with clipped gradients and Adam at a decaying rate."""
    pixels, labels = digits(batch * 8)
    with tf.Graph().as_default():
        tf1.set_random_seed(11)
        x = tf1.placeholder(tf.float32, [None, 784])
        y = tf1.placeholder(tf.int32, [None])
        step = tf1.train.get_or_create_global_step()
        with tf1.variable_scope(f"{model.__name__}_{resource}"):  # variables outlive sessions on a server
            logits = model(x, resource, True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        rate = tf1.train.exponential_decay(2e-3, step, 50, 0.8)
        optimizer = tf1.train.AdamOptimizer(rate)
        pairs = optimizer.compute_gradients(loss)
        clipped, norm = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)
        train = optimizer.apply_gradients(zip(clipped, [v for _, v in pairs]), step)
        found = []
        with tf1.Session(target) as session:
            session.run(tf1.global_variables_initializer())
            for i in range(steps):
                rows = slice((i % 8) * batch, (i % 8 + 1) * batch)
                value, _ = session.run([loss, train], {x: pixels[rows], y: labels[rows]})
                found.append(value)
        return np.array(found)


class TrainingTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.ours = cls.enterClassContext(serving.server("flowgrid"))["worker"][0]
        cls.theirs = cls.enterClassContext(serving.server("tensorflow"))["worker"][0]

    def check(self, model, resource):
        ours, theirs = losses(self.ours, model, resource), losses(self.theirs, model, resource)
        self.assertLess(theirs[-1], 0.5 * theirs[0], "the model does not learn")
        # A probability near one has a resolution of 6e-8 in 32 bits, and so has its logarithm. The CNN reaches it.
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-7)

    def test_mlp_with_ref_variables(self):
        self.check(mlp, False)

    def test_mlp_with_resource_variables(self):
        self.check(mlp, True)

    def test_cnn_with_ref_variables(self):
        self.check(cnn, False)

    def test_cnn_with_resource_variables(self):
        self.check(cnn, True)


if __name__ == "__main__":
    unittest.main()
