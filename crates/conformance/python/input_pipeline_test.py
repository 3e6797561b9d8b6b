"""Programs with tf.data on our servers and on TensorFlow's: equal elements in equal order, training, resuming."""
import concurrent.futures
import os
import tempfile
import threading
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

    def test_an_interrupted_job_continues_with_every_element_once(self):
        """Both workers train at once and save; then all tasks are killed, after steps that are lost with them."""
        orders = {}
        for kind in ("flowgrid", "tensorflow"):
            with self.subTest(server=kind), serving.tasks(kind, {"ps": 1, "worker": 2}) as cluster:
                folder = os.path.join(self.folder, kind)
                os.mkdir(folder)
                first = self.both(cluster, folder, steps=3, lost=2)
                for job, task in (("worker", 1), ("worker", 0), ("ps", 0)):
                    cluster.restart(job, task)
                second = self.both(cluster, folder)
                orders[kind] = [[ids for ids, _ in first], [ids for ids, _ in second]]
                seen = sum([ids for ids, _ in first + second], [])
                self.assertEqual(sorted(seen), list(range(RECORDS)))
                # The gradient of each example is its number, so the weight is the sum of those that were applied.
                self.assertEqual(max(weight for _, weight in second), sum(range(RECORDS)))
        self.assertEqual(orders["flowgrid"], orders["tensorflow"])

    def both(self, cluster, folder, steps=None, lost=0):
        """The ids that each worker saw before it saved, and the last weight that it read."""
        barrier = threading.Barrier(2, timeout=120)

        def run(task):
            try:
                return self.work(cluster, task, folder, steps, lost, barrier)
            except BaseException:
                barrier.abort()
                raise

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(run, range(2)))

    def work(self, cluster, task, folder, steps, lost, barrier):
        device = tf1.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{task}")
        with tf.Graph().as_default(), tf1.device(device):
            with tf1.device(f"/job:worker/task:{task}"):
                iterator = tf1.data.make_initializable_iterator(pipeline(self.path, (2, task)))
                ids, _ = iterator.get_next()
            w = tf1.get_variable("w", [], initializer=tf1.zeros_initializer())
            loss = -w * tf.reduce_sum(tf.cast(ids, tf.float32))
            update = tf1.train.GradientDescentOptimizer(1.0, use_locking=True).minimize(loss)
            position = tf.data.experimental.make_saveable_from_iterator(iterator)
            saver = tf1.train.Saver([position] + ([w] if task == 0 else []))
            init = tf1.global_variables_initializer()
        prefix, seen = os.path.join(folder, f"worker-{task}"), []
        with tf1.Session(cluster.target("worker", task), graph=w.graph) as session:
            session.run(iterator.initializer)
            if task == 0:
                session.run(init)
            if steps is None:
                saver.restore(session, prefix)
            barrier.wait()  # the chief has the variables
            try:
                for _ in range(steps or RECORDS):
                    seen += session.run([ids, update])[0].tolist()
            except tf.errors.OutOfRangeError:
                self.assertIsNone(steps)
            barrier.wait()  # no worker trains while the variables are saved
            if steps:
                saver.save(session, prefix, write_meta_graph=False)
            weight = session.run(w)
            barrier.wait()
            for _ in range(lost):
                session.run(update)
            return seen, weight


if __name__ == "__main__":
    unittest.main()
