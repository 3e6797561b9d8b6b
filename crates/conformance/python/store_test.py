"""Files on S3: an unmodified client's graphs read and write them on our server, and TensorFlow reads the results.

The client itself cannot open s3:// (TensorFlow left that to another package), so what it does by itself, such as the
file that names the newest checkpoint, is left out here.
"""
import glob
import os
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

import serving
import stores

tf1 = tf.compat.v1
tf1.disable_eager_execution()

BUCKET = "bucket"
LARGE = np.arange(6 << 20, dtype=np.float32)  # 24 MiB: several parts
SMALL = np.float32([[1, 2, 3], [4, 5, 6]])


def program(name):
    return os.path.join(os.path.dirname(os.environ["FLOWGRID_BIN"]), "examples", name)


class OnS3(unittest.TestCase):
    """One store and one server for all tests; each test has a folder of the bucket."""

    @classmethod
    def setUpClass(cls):
        cls.store = cls.enterClassContext(stores.s3())
        cls.store.client.create_bucket(Bucket=BUCKET)
        environment = cls.store.environment()
        targets = cls.enterClassContext(serving.cluster("flowgrid", {"worker": 1}, environment=environment))
        cls.target = targets["worker"][0]

    def setUp(self):
        self.folder = self._testMethodName
        self.url = f"s3://{BUCKET}/{self.folder}"
        self.local = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(tf1.Graph().as_default())

    def run_op(self, op, feeds=None):
        with tf1.Session(self.target) as session:
            return session.run(op, feeds)


class Checkpoints(OnS3):
    def model(self):
        large = tf1.get_variable("large", initializer=tf.zeros(LARGE.shape))
        small = tf1.get_variable("small", initializer=tf.zeros(SMALL.shape), use_resource=True)
        return [large, small], [tf1.assign(large, tf.range(len(LARGE), dtype=tf.float32)), tf1.assign(small, SMALL)]

    def check(self, sharded):
        variables, fill = self.model()
        saver = tf1.train.Saver(variables, sharded=sharded)
        with tf1.Session(self.target) as session:
            session.run(fill)
            path = saver.save(session, f"{self.url}/model", global_step=7, write_meta_graph=False, write_state=False)
            self.assertEqual(path.split("-")[0], f"{self.url}/model")
            session.run([variable.initializer for variable in variables])
            session.run(saver.saver_def.restore_op_name, {saver.saver_def.filename_tensor_name: path})
            np.testing.assert_array_equal(session.run(variables[0]), LARGE)
            np.testing.assert_array_equal(session.run(variables[1]), SMALL)
        data, index = f"{self.folder}/model-7.data-00000-of-00001", f"{self.folder}/model-7.index"
        self.assertEqual(self.store.names(BUCKET, self.folder + "/"), [data, index])
        self.store.download(BUCKET, self.folder, self.local)
        reader = tf.train.load_checkpoint(f"{self.local}/{self.folder}/model-7")
        np.testing.assert_array_equal(reader.get_tensor("large"), LARGE)
        np.testing.assert_array_equal(reader.get_tensor("small"), SMALL)

    def test_saved_and_restored(self):
        self.check(sharded=False)

    def test_saved_in_shards(self):
        self.check(sharded=True)

    def test_restored_from_tensorflow(self):
        variables, fill = self.model()
        saver = tf1.train.Saver(variables)
        with tf1.Session() as session:
            session.run(fill)
            saver.save(session, f"{self.local}/model", write_meta_graph=False, write_state=False)
        self.store.upload(self.local, BUCKET, self.folder)
        with tf1.Session(self.target) as session:
            session.run(saver.saver_def.restore_op_name, {saver.saver_def.filename_tensor_name: f"{self.url}/model"})
            np.testing.assert_array_equal(session.run(variables[0]), LARGE)
            np.testing.assert_array_equal(session.run(variables[1]), SMALL)


class Files(OnS3):
    def test_written_read_and_found(self):
        write = [tf.io.write_file(f"{self.url}/{name}", name) for name in ("a-1", "a-2", "b-1", "deep/a-3")]
        self.run_op(write)
        self.assertEqual(self.store.read(BUCKET, f"{self.folder}/a-2"), b"a-2")
        self.assertEqual(self.run_op(tf.io.read_file(f"{self.url}/deep/a-3")), b"deep/a-3")
        found = self.run_op(tf1.raw_ops.MatchingFiles(pattern=[f"{self.url}/a-*", f"{self.url}/*/a-?"]))
        expected = ["a-1", "a-2", "deep/a-3"]
        self.assertEqual(sorted(found.tolist()), [f"{self.url}/{name}".encode() for name in expected])

    def test_large_files(self):
        data = np.random.RandomState(1).bytes(20 << 20)
        self.store.write(BUCKET, f"{self.folder}/in", data)
        self.run_op(tf.io.write_file(f"{self.url}/out", tf.io.read_file(f"{self.url}/in")))
        self.assertEqual(self.store.read(BUCKET, f"{self.folder}/out"), data)

    def test_records(self):
        records = [bytes([number % 256]) * (number * 37 % 3000) for number in range(2000)]
        for compression in ("", "GZIP"):
            path = f"{self.local}/records{compression}"
            with tf.io.TFRecordWriter(path, compression) as writer:
                for record in records:
                    writer.write(record)
            self.store.client.upload_file(path, BUCKET, f"{self.folder}/records{compression}")
            queue = tf1.train.string_input_producer([f"{self.url}/records{compression}"], num_epochs=1, shuffle=False)
            reader = tf1.TFRecordReader(options=tf.io.TFRecordOptions(compression))
            _, values = reader.read_up_to(queue, 3000)
            with tf1.Session(self.target) as session:
                session.run([tf1.local_variables_initializer()])
                coordinator = tf1.train.Coordinator()
                threads = tf1.train.start_queue_runners(session, coordinator)
                self.assertEqual(session.run(values).tolist(), records)
                coordinator.request_stop()
                coordinator.join(threads)

    def test_vocabulary(self):
        self.store.write(BUCKET, f"{self.folder}/words", b"red\ngreen\nblue\n")
        table = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        fill = tf.raw_ops.InitializeTableFromTextFileV2(table_handle=table, filename=f"{self.url}/words", key_index=-2,
                                                        value_index=-1, vocab_size=-1, delimiter="\t")
        find = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=["blue", "red", "pink"],
                                            default_value=tf.constant(-1, tf.int64))
        with tf1.Session(self.target) as session:
            session.run(fill)
            self.assertEqual(session.run(find).tolist(), [2, 0, -1])

    def test_summaries(self):
        writer = tf.summary.create_file_writer(self.url, max_queue=1000)
        with writer.as_default(step=3):
            written = [tf.summary.scalar("loss", 0.5), tf.summary.histogram("weights", [1.0, 2.0])]
        with tf1.Session(self.target) as session:
            session.run(writer.init())
            session.run(written)
            session.run(writer.flush())
            self.assertEqual(self.tags(), {("loss", 3), ("weights", 3)})
            with writer.as_default(step=4):
                again = tf.summary.scalar("loss", 0.25)
            session.run(again)
            session.run(writer.close())
        self.assertEqual(self.tags(), {("loss", 3), ("weights", 3), ("loss", 4)})

    def tags(self):
        """The summaries that TensorFlow reads from the only event file."""
        with tempfile.TemporaryDirectory() as folder:
            self.store.download(BUCKET, self.folder, folder)
            (path,) = glob.glob(f"{folder}/{self.folder}/*tfevents*")
            return {(value.tag, event.step) for event in tf1.train.summary_iterator(path)
                    for value in event.summary.value}

    def test_nothing_is_left_of_uploads(self):
        self.run_op(tf.io.write_file(f"{self.url}/large", tf.fill([], "x" * (9 << 20))))
        self.assertNotIn("Uploads", self.store.client.list_multipart_uploads(Bucket=BUCKET))


class GoogleStorage(unittest.TestCase):
    """gs:// on the same server: Google's XML interface equals S3's except for copying, so nothing is renamed here."""

    def test_files_and_checkpoints(self):
        with stores.s3() as store, tf1.Graph().as_default():
            store.client.create_bucket(Bucket=BUCKET)
            environment = store.environment(STORAGE_EMULATOR_HOST=store.url)
            with serving.cluster("flowgrid", {"worker": 1}, environment=environment) as targets:
                self.check(store, targets["worker"][0])

    def check(self, store, target):
        url = f"gs://{BUCKET}/folder"
        with tf1.Session(target) as session:
            session.run([tf.io.write_file(f"{url}/{name}", name) for name in ("a", "b")])
            self.assertEqual(session.run(tf.io.read_file(f"{url}/b")), b"b")
            found = session.run(tf1.raw_ops.MatchingFiles(pattern=f"{url}/*"))
            self.assertEqual(found.tolist(), [f"{url}/a".encode(), f"{url}/b".encode()])
            with self.assertRaises(tf.errors.NotFoundError):
                session.run(tf.io.read_file(f"{url}/c"))
            session.run(tf.raw_ops.SaveV2(prefix=f"{url}/model", tensor_names=["large"], shape_and_slices=[""],
                                          tensors=[tf.range(len(LARGE), dtype=tf.float32)]))
            (restored,) = session.run(tf.raw_ops.RestoreV2(prefix=f"{url}/model", tensor_names=["large"],
                                                           shape_and_slices=[""], dtypes=[tf.float32]))
            np.testing.assert_array_equal(restored, LARGE)
        self.assertEqual(store.read(BUCKET, "folder/a"), b"a")


class Programs(OnS3):
    """Programs in Rust."""

    def peer(self, *args):
        done = subprocess.run([program("store_peer"), *args], capture_output=True, text=True, timeout=300,
                              env=self.store.environment())
        if done.returncode:
            raise AssertionError(f"store_peer {args}: {done.stdout}{done.stderr}")
        return done.stdout.splitlines()

    def test_train(self):
        """A monitored session saves, keeps the newest, writes events, and continues where another ended."""
        self.assertEqual(self.peer("train", self.url, "12"), ["step 12", f"latest {self.url}/model.ckpt-12"])
        self.assertEqual(self.peer("train", self.url, "20"), ["step 20", f"latest {self.url}/model.ckpt-20"])
        names = self.store.names(BUCKET, self.folder + "/")
        self.assertIn(f"{self.folder}/checkpoint", names)
        self.assertEqual(len([name for name in names if name.endswith(".index")]), 5, names)
        self.store.download(BUCKET, self.folder, self.local)
        reader = tf.train.load_checkpoint(f"{self.local}/{self.folder}/model.ckpt-20")
        self.assertEqual(reader.get_tensor("global_step"), 20)
        steps = set()
        for path in glob.glob(f"{self.local}/{self.folder}/*tfevents*"):
            steps |= {event.step for event in tf1.train.summary_iterator(path) for value in event.summary.value
                      if value.tag == "loss"}
        self.assertIn(20, steps)

    def test_saved_model(self):
        self.peer("export", f"{self.url}/model")
        self.assertEqual(self.peer("call", f"{self.url}/model"), ["y [32.0, 64.0]"])
        self.store.download(BUCKET, self.folder, self.local)
        with tf1.Session() as session:
            tf1.saved_model.load(session, ["serve"], f"{self.local}/{self.folder}/model")
            signature = session.graph.get_collection("saved_model_main_op")
            self.assertIsNotNone(signature)

    def test_inspect(self):
        self.peer("export", f"{self.url}/model")
        shown = subprocess.run([os.environ["FLOWGRID_BIN"], "inspect", f"{self.url}/model"], capture_output=True,
                               text=True, env=self.store.environment())
        self.assertIn("serving_default", shown.stdout, shown.stderr)


class Failures(OnS3):
    def error(self, kind, op, target=None):
        with tf1.Session(target or self.target) as session:
            with self.assertRaises(kind) as caught:
                session.run(op)
        for secret in (stores.KEY, stores.SECRET, stores.TOKEN):
            self.assertNotIn(secret, str(caught.exception))
        return str(caught.exception)

    def server(self, log=None, **environment):
        environment = self.store.environment(**environment)
        return serving.cluster("flowgrid", {"worker": 1}, environment=environment, log=log)

    def test_missing(self):
        text = self.error(tf.errors.NotFoundError, tf.io.read_file(f"{self.url}/nothing"))
        self.assertIn(f"{self.url}/nothing; No such file or directory", text)
        text = self.error(tf.errors.NotFoundError, tf.io.write_file("s3://no-such-bucket/file", "x"))
        self.assertIn("s3://no-such-bucket/file; NoSuchBucket", text)
        save = tf.raw_ops.SaveV2(prefix="s3://no-such-bucket/model", tensor_names=["v"], shape_and_slices=[""],
                                 tensors=[tf.constant(LARGE)])
        self.error(tf.errors.NotFoundError, save)

    def test_unknown_scheme(self):
        text = self.error(tf.errors.UnimplementedError, tf.io.read_file("gopher://hole/file"))
        self.assertIn("File system scheme 'gopher' not implemented (file: 'gopher://hole/file')", text)

    def test_wrong_key(self):
        with stores.s3() as store:
            store.client.create_bucket(Bucket=BUCKET)
            key, secret = store.require_keys()
            write = tf.io.write_file(f"{self.url}/file", "x")
            right = store.environment(AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret)
            with serving.cluster("flowgrid", {"worker": 1}, environment=right) as targets:
                with tf1.Session(targets["worker"][0]) as session:
                    session.run(write)
            for name, value in (("AWS_ACCESS_KEY_ID", stores.KEY), ("AWS_SECRET_ACCESS_KEY", stores.SECRET)):
                with serving.cluster("flowgrid", {"worker": 1}, environment={**right, name: value}) as targets:
                    text = self.error(tf.errors.PermissionDeniedError, write, targets["worker"][0])
                    self.assertIn(f"{self.url}/file; ", text)

    def test_store_is_lost(self):
        """Ops on a dead store end with an error; the server and its other work continue."""
        with stores.s3() as store:
            store.client.create_bucket(Bucket=BUCKET)
            with serving.cluster("flowgrid", {"worker": 1}, environment=store.environment()) as targets:
                target = targets["worker"][0]
                with tf1.Session(target) as session:
                    session.run(tf.io.write_file(f"{self.url}/file", "x"))
                    store.kill()
                    with self.assertRaises(tf.errors.UnavailableError):
                        session.run(tf.io.read_file(f"{self.url}/file"))
                    with self.assertRaises(tf.errors.UnavailableError):
                        session.run(tf.io.write_file(f"{self.url}/large", tf.fill([], "x" * (9 << 20))))
                    self.assertEqual(session.run(tf.constant(1) + 1), 2)

    def test_store_is_lost_midway(self):
        """A store that dies while a checkpoint is written is an error, too."""
        with stores.s3() as store:
            store.client.create_bucket(Bucket=BUCKET)
            with serving.cluster("flowgrid", {"worker": 1}, environment=store.environment()) as targets:
                save = tf.raw_ops.SaveV2(prefix=f"{self.url}/model", tensor_names=["v"], shape_and_slices=[""],
                                         tensors=[tf.fill([64 << 20], 1.0)])
                with tf1.Session(targets["worker"][0]) as session, ThreadPoolExecutor(1) as thread:
                    saved = thread.submit(session.run, save)
                    while "Uploads" not in store.client.list_multipart_uploads(Bucket=BUCKET):
                        self.assertFalse(saved.done(), "256 MiB went out before they could be seen")
                    store.kill()
                    with self.assertRaises(tf.errors.UnavailableError):
                        saved.result()
                    self.assertEqual(session.run(tf.constant(1) + 1), 2)

    def test_secrets_are_not_logged(self):
        with tempfile.TemporaryFile() as log:
            with self.server(log, AWS_SESSION_TOKEN=stores.TOKEN, RUST_LOG="trace") as targets:
                with tf1.Session(targets["worker"][0]) as session:
                    session.run(tf.io.write_file(f"{self.url}/file", "x"))
                    with self.assertRaises(tf.errors.NotFoundError):
                        session.run(tf.io.write_file("s3://no-such-bucket/file", "x"))
            log.seek(0)
            text = log.read().decode()
        self.assertIn("TRACE", text)
        for secret in (stores.KEY, stores.SECRET, stores.TOKEN):
            self.assertNotIn(secret, text)


if __name__ == "__main__":
    unittest.main()
