"""Real TensorFlow writes files that Rust tests read, and reads files that Rust tests wrote.

    python files.py write FOLDER
    python files.py check FOLDER

Tests of the crate `io` run it when FLOWGRID_PYTHON names a Python with TensorFlow.
"""
import glob
import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.lib.io import _pywrap_record_io

tf1 = tf.compat.v1
tf1.disable_eager_execution()

KINDS = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "bool", "complex64", "complex128"]
BLOCKS = 5000  # tensors: the index gets several blocks


def run(op):
    with tf1.Session() as session:
        return session.run(op)


def write(folder):
    """Writes the files that Rust reads: a checkpoint with an index of several blocks and a tensor larger than any buffer."""
    with tf1.Graph().as_default():
        names = [f"layer_{number}/weights" for number in range(BLOCKS)] + ["large"]
        tensors = [tf.constant([number], tf.int32) for number in range(BLOCKS)]
        tensors.append(tf.range(3 << 20, dtype=tf.int32))
        run(tf.raw_ops.SaveV2(prefix=folder + "/many", tensor_names=names, shape_and_slices=[""] * len(names),
                              tensors=tensors))
        run(tf.raw_ops.Save(filename=folder + "/many_first", tensor_names=names, data=tensors))
        with tf.io.TFRecordWriter(folder + "/many_records", "GZIP") as writer:
            for number in range(1000):
                writer.write(bytes([number % 256]) * number)


def check_tensors(reader):
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    for kind in KINDS:
        dtype = tf.as_dtype(kind)
        assert shapes[kind] == [2, 3] and types[kind] == dtype, kind
        expected = np.arange(6).reshape(2, 3).astype(dtype.as_numpy_dtype)
        np.testing.assert_array_equal(reader.get_tensor(kind), expected, kind)
    assert reader.get_tensor("string").tolist() == [b"", b"\x00\xff", b"long" * 1000]
    assert reader.get_tensor("scalar") == 7
    assert reader.get_tensor("empty").shape == (0, 4)


def check_slices(reader, prefix, expected):
    assert reader.get_variable_to_shape_map()["v"] == list(expected.shape)
    np.testing.assert_array_equal(reader.get_tensor("v"), expected)
    rows, columns = expected.shape
    with tf1.Graph().as_default():
        for spec, part in [("1,2:-", expected[1:3]), ("0,4:1,1", expected[0:4, 1:2]), ("-:-", expected)]:
            restored = run(tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=["v"],
                                                shape_and_slices=[f"{rows} {columns} {spec}"], dtypes=[tf.float32]))[0]
            np.testing.assert_array_equal(restored, part, spec)


def check_first_format(folder):
    reader = tf1.train.NewCheckpointReader(folder + "/first")
    np.testing.assert_array_equal(reader.get_tensor("float"), [[0, 1, 2], [3, 4, 5]])
    assert reader.get_tensor("string").tolist() == [b"", b"x" * 300]
    with tf1.Graph().as_default():
        half = run(tf.raw_ops.Restore(file_pattern=folder + "/first", tensor_name="half", dt=tf.float16))
        np.testing.assert_array_equal(half, np.float16([0.5, -1.5]))
        rows = run(tf.raw_ops.RestoreSlice(file_pattern=folder + "/first_parts-?????-of-00002", tensor_name="v",
                                           shape_and_slice="4 2 0,3:-", dt=tf.float32))
        np.testing.assert_array_equal(rows, np.arange(6).reshape(3, 2))


def check_records(folder):
    for compression in ["", "ZLIB", "GZIP", "SNAPPY"]:
        path = folder + "/records" + compression.lower()
        records = list(_pywrap_record_io.RecordIterator(path, compression))
        assert records == [b"", b"one", bytes(range(256)) * 200], compression


def check_events(folder):
    [path] = glob.glob(folder + "/logs/events.out.tfevents.1700000000.host.suffix")
    events = list(tf1.train.summary_iterator(path))
    assert events[0].file_version == "brain.Event:2" and events[0].wall_time == 1700000000
    assert events[1].step == 3 and events[1].summary.value[0].tag == "loss"
    assert events[1].summary.value[0].simple_value == 0.25
    assert tf.make_ndarray(events[1].summary.value[1].tensor).tolist() == [1, 2]
    assert events[1].summary.value[1].metadata.plugin_data.plugin_name == "scalars"
    histogram = events[1].summary.value[2].histo
    assert histogram.num == 3 and list(histogram.bucket) == [1, 2]
    assert events[2].session_log.status == tf1.SessionLog.CHECKPOINT and events[2].session_log.checkpoint_path == "/x"
    assert tf1.GraphDef.FromString(events[3].graph_def).versions.producer == 21
    assert events[4].tagged_run_metadata.tag == "step 1" and events[5].log_message.message == "hello"


def check_models(folder):
    assert tf.train.latest_checkpoint(folder) == folder + "/model"
    assert tf.train.get_checkpoint_state(folder).all_model_checkpoint_timestamps == [1.5, 2.5]
    with tf1.Graph().as_default(), tf1.Session() as session:
        meta = tf1.saved_model.loader.load(session, ["serve"], folder + "/export")
        call = meta.signature_def["serving_default"]
        y = session.run(call.outputs["y"].name, {call.inputs["x"].name: [[1.0, 1.0]]})
        np.testing.assert_array_equal(y, [[3.0, 5.0, 7.0]])
    with tf1.Graph().as_default():
        saver = tf1.train.import_meta_graph(folder + "/model.meta")
        assert saver.saver_def.sharded and len(tf1.global_variables()) == 4


def check(folder):
    check_tensors(tf.train.load_checkpoint(folder + "/model"))
    check_slices(tf1.train.NewCheckpointReader(folder + "/sliced"), folder + "/sliced",
                 np.arange(8, dtype=np.float32).reshape(4, 2))
    merged = tf1.train.NewCheckpointReader(folder + "/merged")
    check_slices(merged, folder + "/merged", np.arange(8, dtype=np.float32).reshape(4, 2))
    assert sorted(merged.get_variable_to_shape_map()) == ["a", "b", "v"]
    many = tf.train.load_checkpoint(folder + "/many")
    for number in (0, 1, BLOCKS // 2, BLOCKS - 1):
        assert many.get_tensor(f"layer_{number}/weights") == [number]
    np.testing.assert_array_equal(many.get_tensor("large"), np.arange(3 << 20))
    check_first_format(folder)
    check_records(folder)
    check_events(folder)
    check_models(folder)


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](os.path.abspath(sys.argv[2]))
