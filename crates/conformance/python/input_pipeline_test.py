"""Programs with tf.data on our servers and on TensorFlow's: equal elements in equal order, training, resuming."""
import os
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
RECORDS = 96


def write_records(path):
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(RECORDS):
            feature = {
                "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "xs": tf.train.Feature(float_list=tf.train.FloatList(value=np.arange(i % 5 + 1) / 4)),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def pipeline(path, shard=None):
    """TFRecord, shuffle, parse, map, padded batches, prefetch: what a training job does."""
    spec = {"id": tf.io.FixedLenFeature([], tf.int64),
            "xs": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True)}
    dataset = tf.data.TFRecordDataset(path)
    if shard:
        dataset = dataset.shard(*shard)
    dataset = dataset.shuffle(30, seed=5)
    dataset = dataset.map(lambda record: tf.io.parse_single_example(record, spec), num_parallel_calls=2)
    dataset = dataset.map(lambda parsed: (parsed["id"], parsed["xs"] * 2.0))
    return dataset.padded_batch(8, ([], [None])).prefetch(2)


def batches(target, path, epochs=2):
    """All batches of some epochs, each of which initializes the iterator anew."""
    with tf.Graph().as_default(), tf1.device("/job:worker/task:0"):
        iterator = tf1.data.make_initializable_iterator(pipeline(path))
        element = iterator.get_next()
        found = []
        with tf1.Session(target) as session:
            for _ in range(epochs):
                session.run(iterator.initializer)
                while True:
                    try:
                        ids, xs = session.run(element)
                    except tf.errors.OutOfRangeError:
                        break
                    found.append((ids.tolist(), xs.tolist()))
        return found


def train(cluster, task, path, steps):
    """One worker of between-graph training; returns the ids that it saw and its losses."""
    device = tf1.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{task}")
    with tf.Graph().as_default(), tf1.device(device):
        step = tf1.train.get_or_create_global_step()
        with tf1.device(f"/job:worker/task:{task}"):
            iterator = tf1.data.make_initializable_iterator(pipeline(path, (2, task)).repeat())
            ids, xs = iterator.get_next()
        w = tf1.get_variable("w", [], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(w - tf.reduce_mean(xs)))
        update = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        scaffold = tf1.train.Scaffold(local_init_op=tf.group(iterator.initializer, tf1.local_variables_initializer()))
        seen, losses = [], []
        with tf1.train.MonitoredTrainingSession(cluster["worker"][task], is_chief=task == 0, scaffold=scaffold) as session:
            for _ in range(steps):
                batch, value, _ = session.run([ids, loss, update])
                seen.append(batch.tolist())
                losses.append(float(value))
        return seen, losses


class InputPipelineTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "examples.tfrecord")
        write_records(self.path)

    def test_elements_and_their_order_are_tensorflows(self):
        with serving.server("flowgrid") as ours, serving.server("tensorflow") as theirs:
            found, expected = batches(ours["worker"][0], self.path), batches(theirs["worker"][0], self.path)
        self.assertEqual(len(expected), 2 * RECORDS // 8)
        self.assertEqual(found, expected)

    def test_workers_train_on_the_elements_that_tensorflow_gives_them(self):
        seen, losses = {}, {}
        for kind in ("flowgrid", "tensorflow"):
            with serving.cluster(kind, {"ps": 1, "worker": 2}) as cluster:
                results = [train(cluster, task, self.path, 12) for task in range(2)]  # the chief first
            seen[kind] = [ids for ids, _ in results]
            losses[kind] = [values for _, values in results]
        self.assertEqual(seen["flowgrid"], seen["tensorflow"])
        np.testing.assert_allclose(losses["flowgrid"], losses["tensorflow"], rtol=1e-5)
        chief = losses["flowgrid"][0]
        self.assertLess(chief[-1], chief[0] / 2)

    def test_a_resumed_pipeline_gives_every_element_once(self):
        prefix = os.path.join(self.folder, "iterator")
        seen = []

        def run(restore, steps):
            with serving.server("flowgrid") as cluster, tf.Graph().as_default(), tf1.device("/job:worker/task:0"):
                iterator = tf1.data.make_initializable_iterator(pipeline(self.path))
                ids, _ = iterator.get_next()
                saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
                saver = tf1.train.Saver({"iterator": saveable})
                with tf1.Session(cluster["worker"][0]) as session:
                    session.run(iterator.initializer)
                    if restore:
                        saver.restore(session, prefix)
                    for _ in range(steps):
                        seen.extend(session.run(ids).tolist())
                    if steps < RECORDS // 8 and not restore:
                        saver.save(session, prefix)

        run(False, 5)
        run(True, RECORDS // 8 - 5)
        self.assertEqual(sorted(seen), list(range(RECORDS)))


if __name__ == "__main__":
    unittest.main()
