"""Writes philox.txt: what TensorFlow draws from given seeds, as bits in hexadecimal."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()
raw = tf.raw_ops
SEEDS = [(1, 2), (87654321, 0), (-5, 1 << 40)]
NAMES = {tf.float32: "f32", tf.float64: "f64", tf.float16: "f16", tf.bfloat16: "bf16", tf.int32: "i32", tf.int64: "i64",
         tf.uint32: "u32", tf.uint64: "u64"}
FLOATS = [tf.float32, tf.float64, tf.float16, tf.bfloat16]


def hexadecimal(values):
    values = np.asarray(values)
    return " ".join("%x" % bits for bits in values.view("u%d" % values.itemsize))


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "philox.txt"), "w") as out, \
        tf.compat.v1.Session() as session:
    def write(kind, dtype, seeds, op, runs=1):
        for run in range(runs):
            print(kind, NAMES[dtype], *seeds, run, hexadecimal(session.run(op)), file=out)

    for seeds in SEEDS:
        attrs = dict(seed=seeds[0], seed2=seeds[1])
        for dtype in FLOATS:
            write("uniform", dtype, seeds, raw.RandomUniform(shape=[13], dtype=dtype, **attrs), 2)
            write("normal", dtype, seeds, raw.RandomStandardNormal(shape=[41], dtype=dtype, **attrs), 2)
            write("truncated", dtype, seeds, raw.TruncatedNormal(shape=[41], dtype=dtype, **attrs), 2)
            write("stateless_uniform", dtype, seeds, raw.StatelessRandomUniform(shape=[7], seed=seeds, dtype=dtype))
            write("stateless_normal", dtype, seeds, raw.StatelessRandomNormal(shape=[7], seed=seeds, dtype=dtype))
            write("stateless_truncated", dtype, seeds,
                  raw.StatelessTruncatedNormal(shape=[7], seed=seeds, dtype=dtype))
        for dtype in (tf.int32, tf.int64):
            low, high = tf.constant(-7, dtype), tf.constant(1000, dtype)
            write("integers", dtype, seeds, raw.RandomUniformInt(shape=[13], minval=low, maxval=high, **attrs), 2)
        for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
            write("stateless_whole", dtype, seeds,
                  raw.StatelessRandomUniformFullInt(shape=[7], seed=seeds, dtype=dtype))
        write("shuffle", tf.int32, seeds, raw.RandomShuffle(value=np.arange(21, dtype=np.int32), **attrs), 2)
