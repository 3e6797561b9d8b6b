"""`flowgrid data` with files of real TensorFlow: what it writes, TensorFlow reads, and the other way round."""
import json
import os
import subprocess
import tempfile
import unittest

import tensorflow as tf


def flowgrid(*args):
    """Runs `flowgrid data` to its end. Returns exit code, standard output and standard error."""
    done = subprocess.run([os.environ["FLOWGRID_BIN"], "data", *args], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def example(i):
    feature = {
        "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"item {i}".encode()])),
        "weights": tf.train.Feature(float_list=tf.train.FloatList(value=[i / 2] * (i % 3))),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def read(path):
    return list(tf.compat.v1.io.tf_record_iterator(path))


class DataCliTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def records(self, name, count=10, compression=""):
        path = self.path(name)
        with tf.io.TFRecordWriter(path, compression) as writer:
            for i in range(count):
                writer.write(example(i))
        return path

    def test_records_of_tensorflow_become_json_lines(self):
        path = self.records("a.tfrecord.gz", compression="GZIP")
        code, out, err = flowgrid("convert", path, self.path("a.jsonl"))
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"(?m)^weights +float list")
        with open(self.path("a.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        self.assertEqual(rows[5], {"id": 5, "name": "item 5", "weights": [2.5, 2.5]})
        self.assertEqual(len(rows), 10)

    def test_csv_becomes_records_that_tensorflow_reads(self):
        with open(self.path("a.csv"), "w") as file:
            file.write('x,label,text\n0.5,1,"a, b"\n2,0,c\n')
        code, _, err = flowgrid("convert", self.path("a.csv"), self.path("a.tfrecord"))
        self.assertEqual((code, err), (0, ""))
        rows = [tf.train.Example.FromString(record).features.feature for record in read(self.path("a.tfrecord"))]
        self.assertEqual([row["x"].float_list.value[:] for row in rows], [[0.5], [2.0]])
        self.assertEqual([row["label"].int64_list.value[:] for row in rows], [[1], [0]])
        self.assertEqual([row["text"].bytes_list.value[:] for row in rows], [[b"a, b"], [b"c"]])

    def test_shards_hold_every_record_once(self):
        path = self.records("a.tfrecord")
        code, _, err = flowgrid("shard", path, "--shards", "3", "--out", self.path("s.tfrecord"))
        self.assertEqual((code, err), (0, ""))
        names = [self.path(f"s.tfrecord-{i:05}-of-00003") for i in range(3)]
        self.assertEqual([len(read(name)) for name in names], [4, 3, 3])
        self.assertEqual(sorted(sum((read(name) for name in names), [])), sorted(read(path)))

    def test_damage_is_named_with_its_offset(self):
        good, path = self.records("good.tfrecord"), self.records("bad.tfrecord")
        with open(path, "rb") as file:
            data = file.read()
        second = len(example(0)) + 16
        cases = {
            "flipped": (data[:second + 20] + b"\xff" + data[second + 21:], f"corrupted record at {second + 12}"),
            "cut": (data[:-3], "truncated record at "),
            "cut in a header": (data[:second + 5], f"truncated record at {second}: the header has 12 bytes"),
        }
        for name, (content, message) in cases.items():
            with self.subTest(name):
                with open(path, "wb") as file:
                    file.write(content)
                code, out, err = flowgrid("verify", good, path)
                self.assertEqual(code, 1)
                self.assertIn(f"{good}: 10 records, {len(data)} bytes: ok", out)
                self.assertIn(message, out)
                self.assertEqual(err, "error: one file is damaged\n")

    def test_wrong_arguments_say_what_to_do(self):
        self.records("a.data")
        with open(self.path("b.data"), "w") as file:
            file.write("a word")
        for args, message in [
                (["inspect", self.path("b.data")], "say its format; expected .tfrecord"),
                (["verify", self.path("none-*")], "no file matches"),
                (["inspect", self.path("none.csv")], "none.csv"),
                (["convert", self.path("a.data"), self.path("a.csv"), "--from", "xml"], "unknown format 'xml'"),
                (["shard", self.path("a.data"), "--shards", "0", "--out", "x"], "--shards is 0; expected 1 to 1000"),
        ]:
            with self.subTest(args=args[0]):
                code, _, err = flowgrid(*args)
                self.assertEqual(code, 1)
                self.assertIn(message, err)

    def test_a_file_is_not_converted_into_itself(self):
        path, link = self.path("a.csv"), self.path("link.csv")
        with open(path, "w") as file:
            file.write("x\n1\n")
        os.symlink(path, link)
        for name in [path, link, self.path("./a.csv"), f"file://{path}"]:
            with self.subTest(name=name):
                code, _, err = flowgrid("convert", path, name)
                self.assertEqual((code, err), (1, f"error: {name} is the input {path}; write to another file\n"))
        with open(path) as file:
            self.assertEqual(file.read(), "x\n1\n")

    def test_a_failed_conversion_leaves_the_old_output(self):
        with open(self.path("a.csv"), "w") as file:
            file.write("x,y\n1,2\n3\n")
        with open(self.path("b.csv"), "w") as file:
            file.write("old")
        code, _, err = flowgrid("convert", self.path("a.csv"), self.path("b.csv"))
        self.assertEqual(code, 1)
        self.assertIn("row 2 (line 3, offset 8): found 1 fields, but the first line names 2 columns", err)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.csv", "b.csv"])
        with open(self.path("b.csv")) as file:
            self.assertEqual(file.read(), "old")

    def test_shards_of_compressed_records_are_read_under_any_name(self):
        path = self.records("a.tfrecord.gz", compression="GZIP")
        for out, compression in [("s", "GZIP"), ("s.tfrecord.gz", "GZIP"), ("s.tfrecord", "")]:
            with self.subTest(out=out):
                code, _, err = flowgrid("shard", path, "--shards", "2", "--out", self.path(out))
                self.assertEqual((code, err), (0, ""))
                names = [self.path(f"{out}-{i:05}-of-00002") for i in range(2)]
                kind = tf.compat.v1.io.TFRecordCompressionType
                options = tf.compat.v1.io.TFRecordOptions(kind.GZIP if compression else kind.NONE)
                records = [record for name in names for record in tf.compat.v1.io.tf_record_iterator(name, options)]
                self.assertEqual(sorted(records), sorted(example(i) for i in range(10)))
                code, shown, _ = flowgrid("verify", self.path(f"{out}-*"))
                self.assertEqual((code, shown.count(": 5 records, ")), (0, 2))
                code, shown, _ = flowgrid("inspect", self.path(f"{out}-*"), "--count")
                self.assertEqual(code, 0)
                self.assertIn("\n10 rows, ", shown)

    def test_a_truncated_compressed_file_is_damaged(self):
        path = self.records("a.tfrecord.gz", compression="GZIP")
        with open(path, "rb") as file:
            data = file.read()
        size = sum(len(example(i)) + 16 for i in range(10))
        # TensorFlow takes a file without its trailer, and one that ends in a header, for one that is still being written.
        for cut, place in [(4, f"truncated record at {size}: "), (len(data) - 20, "truncated record at 0: ")]:
            with self.subTest(cut=cut):
                with open(path, "wb") as file:
                    file.write(data[:-cut])
                for command in [["verify", path], ["convert", path, self.path("b.csv")]]:
                    code, out, err = flowgrid(*command)
                    self.assertEqual(code, 1)
                    self.assertIn(place + "the compressed data ends too early", out + err)
        self.assertFalse(os.path.exists(self.path("b.csv")))

    def test_texts_are_verified_as_what_they_are(self):
        cases = {
            "a.csv": ("x,y\n1,2\n", "1 rows, 8 bytes: ok"),
            "b.csv": ("x,y\n1,2\n1,2,3\n", "row 2 (line 3, offset 8): found 3 fields, but the first line names 2 columns"),
            "a.jsonl": ('{"x": 1}\n{"x": 2}\n', "2 rows, 18 bytes: ok"),
            "b.jsonl": ('{"x": 1}\n{"x": }\n', "row 2 (line 2, offset 9): expected value at column 7"),
            "c-00000-of-00001": ('{"x": 1}\n', "1 rows, 9 bytes: ok"),
        }
        for name, (content, _) in cases.items():
            with open(self.path(name), "w") as file:
                file.write(content)
        code, out, err = flowgrid("verify", *(self.path(name) for name in cases))
        self.assertEqual((code, err), (1, "error: 2 files are damaged\n"))
        self.assertEqual(out.splitlines(), [f"{self.path(name)}: {found}" for name, (_, found) in cases.items()])

    def test_a_file_is_shown(self):
        code, out, _ = flowgrid("inspect", self.records("a.tfrecord"), "--rows", "1", "--count")
        self.assertEqual(code, 0)
        self.assertIn("name: item 0", out)
        self.assertIn("10 rows", out)


if __name__ == "__main__":
    unittest.main()
