"""SqlDataset on our server and on TensorFlow's: the same rows, and the same kinds of errors."""
import os
import sqlite3
import tempfile
import unittest

import tensorflow as tf

import serving

tf1 = tf.compat.v1
SERVERS = ("flowgrid", "tensorflow")
# Queries over the columns of the table, with a type for each column.
QUERIES = [
    ("SELECT name, age, weight FROM people ORDER BY age", (tf.string, tf.int32, tf.float64)),
    ("SELECT age, age, age, age FROM people ORDER BY age", (tf.int8, tf.uint8, tf.int16, tf.uint16)),
    # Values of other types than asked for, and missing ones, are converted by SQLite's rules.
    ("SELECT age, weight, missing FROM people ORDER BY age", (tf.string, tf.string, tf.string)),
    ("SELECT name, weight, missing FROM people ORDER BY age", (tf.int64, tf.int64, tf.int64)),
    ("SELECT name, age, missing FROM people ORDER BY age", (tf.float64, tf.float64, tf.bool)),
    ("SELECT big, big FROM people ORDER BY age", (tf.int64, tf.int32)),
    ("SELECT age FROM people WHERE age > 1000", (tf.int32,)),
    ("VALUES (1, 'a'), (2, 'b')", (tf.int64, tf.string)),
]
WRONG = [
    ("SELECT name FROM nowhere", (tf.string,)),
    ("SELEKT", (tf.string,)),
    ("SELECT name, age FROM people", (tf.string,)),
]


class SqlDatasetTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.targets = {kind: cls.enterClassContext(serving.server(kind))["worker"][0] for kind in SERVERS}
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())

    def database(self, kind):
        path = os.path.join(self.folder, f"{kind}.sqlite")
        if os.path.exists(path):
            os.remove(path)
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE people (name TEXT, age INTEGER, weight REAL, big INTEGER, missing TEXT)")
            rows = [("12 monkeys", 7, 20.0, 2**63 - 1, None), ("a\0b", 200, 1331241.3213421324, -(2**63), None),
                    ("", 70000, -1.5e300, 2**31, None)]
            connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
        connection.close()
        return path

    def rows(self, kind, query, types, path=None):
        with tf.Graph().as_default(), tf1.Session(self.targets[kind]) as session:
            dataset = tf.data.experimental.SqlDataset("sqlite", path or self.database(kind), query, types)
            element = tf1.data.make_one_shot_iterator(dataset).get_next()
            rows = []
            while True:
                try:
                    rows.append([value if isinstance(value, bytes) else value.item() for value in session.run(element)])
                except tf.errors.OutOfRangeError:
                    return rows

    def test_rows_and_conversions_are_those_of_tensorflow(self):
        for query, types in QUERIES:
            with self.subTest(query=query):
                found = {kind: self.rows(kind, query, types) for kind in SERVERS}
                self.assertEqual(found["flowgrid"], found["tensorflow"])

    def test_wrong_queries_have_the_error_of_tensorflow(self):
        for query, types in WRONG:
            with self.subTest(query=query):
                codes = {}
                for kind in SERVERS:
                    with self.assertRaises(tf.errors.OpError) as caught:
                        self.rows(kind, query, types)
                    codes[kind] = caught.exception.error_code, caught.exception.message.partition(":")[0]
                self.assertEqual(codes["flowgrid"], codes["tensorflow"])

    def test_many_rows_are_read_in_order_and_a_session_may_end_before_them(self):
        path = self.database("flowgrid")
        count = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n {}) SELECT i, 'text ' || i FROM n"
        types = (tf.int64, tf.string)
        rows = self.rows("flowgrid", count.format("WHERE i < 4999"), types, path)
        self.assertEqual(rows, [[i, b"text %d" % i] for i in range(5000)])
        with tf.Graph().as_default(), tf1.Session(self.targets["flowgrid"]) as session:
            dataset = tf.data.experimental.SqlDataset("sqlite", path, count.format(""), types)
            element = tf1.data.make_one_shot_iterator(dataset.prefetch(2)).get_next()
            self.assertEqual(session.run(element)[0], 0)
        # A query without a first row is interrupted when its session ends.
        endless = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"
        with tf.Graph().as_default(), tf1.Session(self.targets["flowgrid"]) as session:
            dataset = tf.data.experimental.SqlDataset("sqlite", path, endless, (tf.int64,))
            element = tf1.data.make_one_shot_iterator(dataset).get_next()
            with self.assertRaises(tf.errors.DeadlineExceededError):
                session.run(element, options=tf1.RunOptions(timeout_in_ms=200))
        self.assertEqual(self.rows("flowgrid", "SELECT 1", (tf.int64,), path), [[1]])

    def test_a_saved_iterator_continues_at_its_row(self):
        path = self.database("flowgrid")
        query = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i FROM n"
        for first, second in (("flowgrid", "flowgrid"), ("flowgrid", "tensorflow"), ("tensorflow", "flowgrid")):
            with self.subTest(saved_by=first, restored_by=second), tf.Graph().as_default():
                dataset = tf.data.experimental.SqlDataset("sqlite", path, query, (tf.int64,))
                iterator = tf1.data.make_initializable_iterator(dataset)
                element = iterator.get_next()[0]
                saver = tf1.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
                prefix = os.path.join(self.folder, "state")
                with tf1.Session(self.targets[first]) as session:
                    session.run(iterator.initializer)
                    self.assertEqual([session.run(element) for _ in range(4)], [0, 1, 2, 3])
                    saver.save(session, prefix)
                with tf1.Session(self.targets[second]) as session:
                    session.run(iterator.initializer)
                    saver.restore(session, prefix)
                    self.assertEqual([session.run(element) for _ in range(6)], [4, 5, 6, 7, 8, 9])
                    with self.assertRaises(tf.errors.OutOfRangeError):
                        session.run(element)


if __name__ == "__main__":
    unittest.main()
