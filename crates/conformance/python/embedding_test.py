"""Embeddings as Python builds them, partitioned over two ps: lookups, their gradients and the updates of optimizers
equal those of a session of TensorFlow."""
import itertools
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()

ROWS, WIDTH, PARTS, STEPS = 11, 4, 2, 3
TABLE = np.random.RandomState(5).uniform(-1, 1, [ROWS, WIDTH]).astype(np.float32)
OPTIMIZERS = {
    "descent": lambda: tf1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf1.train.AdagradOptimizer(0.1),
    "adam": lambda: tf1.train.AdamOptimizer(0.1),
}


def sparse(values, dtype):
    """Five rows of words: the second has none, the last one word twice."""
    places = [[0, 0], [0, 2], [2, 0], [3, 1], [4, 0], [4, 1]]
    return tf.SparseTensor(np.int64(places), tf.constant(values, dtype), np.int64([5, 3]))


def table(name, resource):
    def initial(shape, dtype=None, partition_info=None):
        begin = partition_info.var_offset[0]
        return tf.constant(TABLE[begin:begin + shape[0]], dtype)

    return tf1.get_variable(name, [ROWS, WIDTH], initializer=initial, use_resource=resource,
                            partitioner=tf1.fixed_size_partitioner(PARTS))


def lookups(rows, strategy):
    """All ways to look up rows of a table."""
    words = sparse([3, 10, 3, 0, 7, 7], tf.int64)
    # Negative words are ignored, and so are weights that are not positive.
    holes = sparse([3, -1, 3, 0, 7, 7], tf.int64)
    weights, signs = sparse([0.5, 2, 1, 3, 1, -1.5], tf.float32), sparse([0.5, 2, 0, 3, 1, 1.5], tf.float32)
    yield tf1.nn.embedding_lookup(rows, tf.constant([[1, 10], [5, 1]], tf.int64), strategy)
    yield tf1.nn.embedding_lookup(rows, tf.constant([9, 0, 9], tf.int32), strategy, max_norm=0.8)
    yield tf1.nn.embedding_lookup_sparse(rows, words, None, strategy, combiner="mean", max_norm=0.8)
    yield tf1.nn.embedding_lookup_sparse(rows, words, weights, strategy, combiner="sum")
    yield tf1.nn.embedding_lookup_sparse(rows, words, weights, strategy, combiner="sqrtn")
    yield tf1.nn.safe_embedding_lookup_sparse(list(rows), holes, signs, "mean", 2, partition_strategy=strategy)
    yield tf1.nn.safe_embedding_lookup_sparse(list(rows), holes, None, "sqrtn", partition_strategy=strategy)


def answers(target, resource):
    """The results of lookups, their gradients, and all variables after some steps of each optimizer."""
    ps = 2 if target else 0
    with tf.Graph().as_default(), tf1.device(tf1.train.replica_device_setter(ps_tasks=ps)):
        found, gradients, steps = [], [], []
        for strategy in ("mod", "div"):
            rows = table(strategy, resource)
            looked_up = list(lookups(rows, strategy))
            loss = tf.add_n([tf.reduce_sum(tf.square(part - 0.3 * place)) for place, part in enumerate(looked_up)])
            found += looked_up
            gradients += tf.gradients(loss, list(rows))
        for (name, optimizer), strategy in zip(OPTIMIZERS.items(), itertools.cycle(["mod", "div"])):
            rows = table(name, resource)
            words, weights = sparse([3, 10, 3, 0, 7, 7], tf.int64), sparse([0.5, 2, 1, 3, 1, -1.5], tf.float32)
            mean = tf1.nn.embedding_lookup_sparse(rows, words, weights, strategy, combiner="mean")
            steps.append(optimizer().minimize(tf.reduce_sum(tf.square(mean - 0.5)), var_list=list(rows)))
        values = {variable.op.name: variable for variable in tf1.global_variables()}
        with tf1.Session(target) as session:
            session.run(tf1.global_variables_initializer())
            before = session.run([found, gradients])
            for _ in range(STEPS):
                session.run(steps)
            return before, session.run(values)


class EmbeddingTest(unittest.TestCase):

    def test_lookups_and_updates_are_those_of_tensorflow(self):
        with serving.cluster("flowgrid", {"ps": 2, "worker": 1}) as targets:
            for resource in (False, True):
                with self.subTest(resource=resource):
                    theirs, ours = answers("", resource), answers(targets["worker"][0], resource)
                    self.assertTrue(all(hasattr(gradient, "indices") for gradient in theirs[0][1]))
                    tf.nest.map_structure(self.close, theirs, ours)

    def close(self, theirs, ours):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
