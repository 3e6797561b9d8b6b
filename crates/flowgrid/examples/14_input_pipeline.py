"""An input pipeline on the workers that train, the twin of 14_input_pipeline.rs: equal elements in equal order."""
import glob
import tempfile
import threading

import tensorflow.compat.v1 as tf

from twin import local_cluster

tf.disable_eager_execution()


def example(i):
    xs = [float((i * 7 + k * 3) % 11) for k in range(i % 4 + 1)]
    return tf.train.Example(features=tf.train.Features(feature={
        "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
        "xs": tf.train.Feature(float_list=tf.train.FloatList(value=xs)),
        "y": tf.train.Feature(float_list=tf.train.FloatList(value=[2 * sum(xs)]))}))


class IteratorSaver(tf.train.SessionRunHook):
    """Begins an iterator, or continues it from the state that an earlier session saved at its end."""

    def __init__(self, iterator, prefix):
        saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
        self.saver, self.iterator, self.prefix = tf.train.Saver([saveable], sharded=True), iterator, prefix

    def after_create_session(self, session, coord):
        session.run(self.iterator.initializer)
        if glob.glob(self.prefix + ".index"):
            self.saver.restore(session, self.prefix)

    def end(self, session):
        self.saver.save(session, self.prefix, write_meta_graph=False, write_state=False)


def train(task, target, folder, last_step):
    features = {"id": tf.io.FixedLenFeature([], tf.int64), "y": tf.io.FixedLenFeature([], tf.float32),
                "xs": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True)}
    device = tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{task}")
    with tf.Graph().as_default(), tf.device(device):
        records = tf.data.TFRecordDataset(f"{folder}/examples").shard(2, task).shuffle(20, seed=7)
        parsed = records.map(lambda record: tf.io.parse_single_example(record, features))
        scaled = parsed.map(lambda one: (one["id"], one["xs"] / 20, one["y"] / 20), num_parallel_calls=2)
        iterator = tf.data.make_initializable_iterator(scaled.padded_batch(4, ([], [None], [])).prefetch(2))
        ids, xs, y = iterator.get_next()
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(xs, 1) * w - y))
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)
        hooks = [tf.train.StopAtStepHook(last_step=last_step), IteratorSaver(iterator, f"{folder}/input_{task}")]
        with tf.train.MonitoredTrainingSession(target, task == 0, folder, hooks=hooks) as session:
            while not session.should_stop():
                value, numbers, _ = session.run([w, ids, train_op])
                print(f"worker {task}: w {value:.3f}, examples {numbers.tolist()}", flush=True)


with tempfile.TemporaryDirectory(prefix="flowgrid-pipeline") as folder:
    with tf.io.TFRecordWriter(f"{folder}/examples") as writer:
        for i in range(96):
            writer.write(example(i).SerializeToString())
    for last_step in (10, 1 << 60):
        targets = local_cluster(ps=1, worker=2)["worker"]
        workers = [threading.Thread(target=train, args=(*one, folder, last_step)) for one in enumerate(targets)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
