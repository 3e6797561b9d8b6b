"""The speed of single ops on TensorFlow's server and on ours: generated calls of all numeric ops, with inputs above 1 MB.

    FLOWGRID_BIN=target/dist/flowgrid python ops.py [--json FILE] [OP ...]

Each op is tried with a few sets of inputs that follow from its signature and the names of its inputs. Measured is the first
set that TensorFlow accepts. Both servers run at the same time and are measured in turn, so that both meet the same
conditions. A ratio above 1 means that ours is faster.
"""
import argparse
import json
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

import serving

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_control_flow_v2()
KINDS = ("tensorflow", "flowgrid")
ROWS, WIDTH = 512, 1024
BATCH, SIDE, DEPTH = 8, 64, 16
ROUNDS = 5
# Seconds of one measurement.
WINDOW = 0.02
# Types in the order of preference.
TYPES = ["float32", "int32", "uint8", "int64", "complex64", "bool", "float64"]
# Ops that wait, draw state, read files, or work on things other than numbers.
EXCLUDED = re.compile(
    "Barrier|Queue|Stack|TensorArray|Reader|File|Summary|Print|Debug|Dataset|Iterator|Collective|Send|Recv|Stage|Sleep|"
    "Variable|Resource|Ref|Table|Accumul|Lookup|Decode|Encode|Parse|String|Regex|Json|Save|Restore|Shard|Timestamp|^Assert$|"
    "Serialize|Abort|Placeholder|Stub|Unicode|Candidate|Const$|Empty|^Copy|NoOp|RngSkip|Handle|Optional|Fingerprint")


def integers(high, shape, low=0):
    return np.random.RandomState(3).randint(low, high, shape).astype(np.int32)


def matrix(dtype, shape):
    random = np.random.RandomState(len(shape))
    if dtype == tf.bool:
        return random.rand(*shape) < 0.5
    if dtype.is_complex:
        return (random.rand(*shape) + 1j * random.rand(*shape)).astype(dtype.as_numpy_dtype)
    if dtype.is_integer:
        return random.randint(1, 100, shape).astype(dtype.as_numpy_dtype)
    return (random.rand(*shape) * 0.9 + 0.05).astype(dtype.as_numpy_dtype)


def positive_definite():
    base = np.random.RandomState(5).rand(8, 256, 256).astype(np.float32)
    return base @ base.transpose(0, 2, 1) + 256 * np.eye(256, dtype=np.float32)


# Inputs by their names, in every set.
NAMED = {
    "axis": 1, "axes": [1], "reduction_indices": [1], "dimension": 1, "dim": 1, "concat_dim": 1, "split_dim": 1, "perm": [1, 0],
    "shape": [ROWS, WIDTH], "dims": [ROWS, WIDTH], "output_shape": [ROWS, WIDTH], "multiples": [1, 2],
    "paddings": [[1, 1], [2, 2]], "begin": [1, 1], "end": [ROWS - 1, WIDTH - 1], "strides": [1, 1], "size": [ROWS // 2, WIDTH // 2],
    "k": 8, "n": 8, "num_segments": 64, "segment_ids": np.sort(integers(64, ROWS)), "indices": integers(ROWS, 2 * ROWS),
    "depth": 64, "num_lower": 3, "num_upper": 3, "shift": [3], "seed": [1, 2], "alg": 1, "delta": 1, "start": 0, "limit": 1 << 19,
    "num": 1 << 19, "num_samples": 64, "block_shape": [2, 2], "crops": [[0, 0], [0, 0]], "updates": None, "size_splits": [512, 512],
    "diagonal_k": 0, "bins": 64, "nbins": 64, "value_range": [0.0, 1.0], "clip_value_min": 0.1, "clip_value_max": 0.9,
    "on_value": 1.0, "off_value": 0.0, "min": 0.0, "max": 1.0, "minval": 0, "maxval": 100, "fft_length": [WIDTH],
    "keep_prob": 0.5, "rate": 1.0, "lam": 2.0, "counts": 10.0, "probs": 0.5, "means": 0.0, "stdevs": 1.0, "minvals": -1.0,
    "maxvals": 1.0, "alpha": 2.0, "num_bits": 8, "class_ids": None, "crop_size": [32, 32], "num_split": 2,
}
FILTER = [3, 3, DEPTH, DEPTH]
IMAGE = [BATCH, SIDE, SIDE, DEPTH]
# Attributes by their names.
ATTRIBUTES = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME", "N": 2, "num_split": 2, "rates": [1, 1, 1, 1],
              "block_size": 2, "num_bits": 8, "ksizes": [1, 3, 3, 1], "equation": "ij,jk->ik", "num": ROWS, "k": 8, "seed": 1}
# Inputs of ops whose names say nothing about them.
SPECIAL = {
    "MatMul": dict(a=[512, 512], b=[512, 512]),
    "BatchMatMul": dict(x=[8, 256, 256], y=[8, 256, 256]),
    "BatchMatMulV2": dict(x=[8, 256, 256], y=[8, 256, 256]),
    "BatchMatMulV3": dict(x=[8, 256, 256], y=[8, 256, 256]),
    "Einsum": dict(inputs=[512, 512]),
    "Conv2D": dict(input=IMAGE, filter=FILTER),
    "Conv2DBackpropInput": dict(input_sizes=np.int32(IMAGE), filter=FILTER, out_backprop=IMAGE),
    "Conv2DBackpropFilter": dict(input=IMAGE, filter_sizes=np.int32(FILTER), out_backprop=IMAGE),
    "DepthwiseConv2dNative": dict(input=IMAGE, filter=[3, 3, DEPTH, 1]),
    "DepthwiseConv2dNativeBackpropInput": dict(input_sizes=np.int32(IMAGE), filter=[3, 3, DEPTH, 1], out_backprop=IMAGE),
    "DepthwiseConv2dNativeBackpropFilter": dict(
        input=IMAGE, filter_sizes=np.int32([3, 3, DEPTH, 1]), out_backprop=IMAGE),
    "Conv3D": dict(input=[2, 16, 32, 32, 8], filter=[3, 3, 3, 8, 8], _strides=[1, 1, 1, 1, 1]),
    "MaxPool3D": dict(input=[2, 16, 32, 32, 16], _ksize=[1, 2, 2, 2, 1], _strides=[1, 2, 2, 2, 1]),
    "AvgPool3D": dict(input=[2, 16, 32, 32, 16], _ksize=[1, 2, 2, 2, 1], _strides=[1, 2, 2, 2, 1]),
    "MaxPoolGrad": dict(orig_input=IMAGE, orig_output=IMAGE, grad=IMAGE),
    "AvgPoolGrad": dict(orig_input_shape=np.int32(IMAGE), grad=IMAGE),
    "FusedBatchNorm": dict(x=IMAGE, scale=[DEPTH], offset=[DEPTH], mean=np.zeros(0, np.float32), variance=np.zeros(0, np.float32)),
    "FusedBatchNormV2": dict(x=IMAGE, scale=[DEPTH], offset=[DEPTH], mean=np.zeros(0, np.float32), variance=np.zeros(0, np.float32)),
    "FusedBatchNormV3": dict(x=IMAGE, scale=[DEPTH], offset=[DEPTH], mean=np.zeros(0, np.float32), variance=np.zeros(0, np.float32)),
    "FusedBatchNormGrad": dict(y_backprop=IMAGE, x=IMAGE, scale=[DEPTH], reserve_space_1=[DEPTH], reserve_space_2=[DEPTH]),
    "FusedBatchNormGradV2": dict(y_backprop=IMAGE, x=IMAGE, scale=[DEPTH], reserve_space_1=[DEPTH], reserve_space_2=[DEPTH]),
    "FusedBatchNormGradV3": dict(
        y_backprop=IMAGE, x=IMAGE, scale=[DEPTH], reserve_space_1=[DEPTH], reserve_space_2=[DEPTH], reserve_space_3=[DEPTH]),
    "BiasAdd": dict(value=[ROWS, WIDTH], bias=[WIDTH]),
    "SparseSoftmaxCrossEntropyWithLogits": dict(features=[ROWS, WIDTH], labels=integers(WIDTH, ROWS)),
    "Cholesky": dict(input=positive_definite()),
    "MatrixInverse": dict(input=positive_definite()),
    "MatrixDeterminant": dict(input=positive_definite()),
    "LogMatrixDeterminant": dict(input=positive_definite()),
    "Lu": dict(input=positive_definite()),
    "MatrixSolve": dict(matrix=positive_definite(), rhs=[8, 256, 256]),
    "MatrixTriangularSolve": dict(matrix=positive_definite(), rhs=[8, 256, 256]),
    "Gather": dict(params=[ROWS, WIDTH], indices=integers(ROWS, ROWS)),
    "GatherV2": dict(params=[ROWS, WIDTH], indices=integers(ROWS, ROWS), axis=np.int32(0)),
    "GatherNd": dict(params=[ROWS, WIDTH], indices=integers(ROWS, [ROWS, 1])),
    "ScatterNd": dict(indices=integers(ROWS, [ROWS, 1]), updates=[ROWS, WIDTH], shape=np.int32([ROWS, WIDTH])),
    "TensorScatterUpdate": dict(tensor=[ROWS, WIDTH], indices=integers(ROWS, [64, 1]), updates=[64, WIDTH]),
    "TensorScatterAdd": dict(tensor=[ROWS, WIDTH], indices=integers(ROWS, [64, 1]), updates=[64, WIDTH]),
    "OneHot": dict(indices=integers(256, 4096), depth=np.int32(256)),
    "DynamicPartition": dict(data=[ROWS, WIDTH], partitions=integers(2, ROWS), _num_partitions=2),
    "TopK": dict(input=[ROWS, WIDTH]), "TopKV2": dict(input=[ROWS, WIDTH], k=np.int32(8)),
    "Unique": dict(x=integers(1000, 1 << 18)), "UniqueV2": dict(x=integers(1000, 1 << 18), axis=np.int64([0])),
    "UniqueWithCounts": dict(x=integers(1000, 1 << 18)),
    "Bincount": dict(arr=integers(64, 1 << 18), size=np.int32(64), weights=np.zeros(0, np.float32)),
    "Roll": dict(input=[ROWS, WIDTH], shift=np.int32([3]), axis=np.int32([1])),
    "ReverseV2": dict(tensor=[ROWS, WIDTH], axis=np.int32([1])),
    "ReverseSequence": dict(input=[ROWS, WIDTH], seq_lengths=integers(WIDTH, ROWS, 1), _seq_dim=1, _batch_dim=0),
    "SegmentSum": dict(data=[ROWS, WIDTH], segment_ids=np.sort(integers(64, ROWS))),
    "SparseSegmentSum": dict(data=[ROWS, WIDTH], indices=integers(ROWS, ROWS), segment_ids=np.sort(integers(64, ROWS))),
    "SparseSegmentMean": dict(data=[ROWS, WIDTH], indices=integers(ROWS, ROWS), segment_ids=np.sort(integers(64, ROWS))),
    "SparseSegmentSqrtN": dict(data=[ROWS, WIDTH], indices=integers(ROWS, ROWS), segment_ids=np.sort(integers(64, ROWS))),
    "Select": dict(condition=matrix(tf.bool, [ROWS, WIDTH]), t=[ROWS, WIDTH], e=[ROWS, WIDTH]),
    "SelectV2": dict(condition=matrix(tf.bool, [ROWS, WIDTH]), t=[ROWS, WIDTH], e=[ROWS, WIDTH]),
    "Range": dict(start=np.int32(0), limit=np.int32(1 << 19), delta=np.int32(1)),
    "LinSpace": dict(start=np.float32(0), stop=np.float32(1), num=np.int32(1 << 19)),
    "Fill": dict(dims=np.int32([ROWS, WIDTH]), value=np.float32(1.5)),
    "BroadcastTo": dict(input=[1, WIDTH], shape=np.int32([ROWS, WIDTH])),
    "Slice": dict(input=[ROWS, WIDTH], begin=np.int32([1, 1]), size=np.int32([ROWS - 2, WIDTH - 2])),
    "MirrorPad": dict(input=[ROWS, WIDTH], paddings=np.int32([[1, 1], [2, 2]]), _mode="REFLECT"),
    "ResizeBilinear": dict(images=[4, 128, 128, 8], size=np.int32([200, 200])),
    "ResizeNearestNeighbor": dict(images=[4, 128, 128, 8], size=np.int32([200, 200])),
    "ResizeBicubic": dict(images=[4, 128, 128, 8], size=np.int32([200, 200])),
    "ResizeArea": dict(images=[4, 128, 128, 8], size=np.int32([64, 64])),
    "AdjustContrastv2": dict(images=[8, 128, 128, 3], contrast_factor=np.float32(1.5)),
    "AdjustHue": dict(images=[8, 128, 128, 3], delta=np.float32(0.1)),
    "AdjustSaturation": dict(images=[8, 128, 128, 3], scale=np.float32(1.5)),
    "RGBToHSV": dict(images=[8, 128, 128, 3]), "HSVToRGB": dict(images=[8, 128, 128, 3]),
    "FFT": dict(input=np.ones([ROWS, 512], np.complex64)), "IFFT": dict(input=np.ones([ROWS, 512], np.complex64)),
    "FFT2D": dict(input=np.ones([4, 256, 256], np.complex64)), "IFFT2D": dict(input=np.ones([4, 256, 256], np.complex64)),
    "RFFT": dict(input=[ROWS, WIDTH], fft_length=np.int32([WIDTH])),
    "IRFFT": dict(input=np.ones([ROWS, 513], np.complex64), fft_length=np.int32([WIDTH])),
    "MatrixDiag": dict(diagonal=[8, 256]), "MatrixBandPart": dict(input=[8, 256, 256], num_lower=np.int64(3), num_upper=np.int64(3)),
    "Cast": dict(x=[ROWS, WIDTH], _DstT=tf.float64), "Bitcast": dict(input=[ROWS, WIDTH], _type=tf.int32),
    "Bucketize": dict(input=[ROWS, WIDTH], _boundaries=[0.1, 0.3, 0.5, 0.7]),
    "SplitV": dict(value=[ROWS, WIDTH], size_splits=np.int32([512, 512]), axis=np.int32(1), _num_split=2),
    "Cross": dict(a=[1 << 17, 3], b=[1 << 17, 3]),
    "Dilation2D": dict(input=IMAGE, filter=[3, 3, DEPTH]),
    "LRN": dict(input=IMAGE),
    "InTopK": dict(predictions=[ROWS, WIDTH], targets=integers(WIDTH, ROWS)),
    "InTopKV2": dict(predictions=[ROWS, WIDTH], targets=integers(WIDTH, ROWS), k=np.int32(8)),
    "ClipByValue": dict(t=[ROWS, WIDTH], clip_value_min=np.float32(0.1), clip_value_max=np.float32(0.9)),
    "Multinomial": dict(logits=[ROWS, 1000], num_samples=np.int32(32)),
    "StatelessMultinomial": dict(logits=[ROWS, 1000], num_samples=np.int32(32), seed=np.int32([1, 2])),
    "NonMaxSuppressionV3": dict(boxes=[4096, 4], scores=[4096], max_output_size=np.int32(100), iou_threshold=np.float32(0.5),
                                score_threshold=np.float32(0.0)),
    "SparseTensorDenseMatMul": dict(a_indices=np.int64([[i, i * 7 % ROWS] for i in range(ROWS)]), a_values=[ROWS],
                                    a_shape=np.int64([ROWS, ROWS]), b=[ROWS, WIDTH]),
}


def type_of(attribute):
    """The type that a call has for an attribute of a type; none if no kind of numbers is allowed."""
    allowed = {tf.as_dtype(number).name for number in attribute.allowed_values.list.type}
    return next((tf.as_dtype(name) for name in TYPES if not allowed or name in allowed), None)


def calls(op):
    """Sets of inputs and attributes of an op, the likeliest first."""
    special = SPECIAL.get(op.name, {})
    shapes = [[ROWS, WIDTH]] if special else [[ROWS, WIDTH], IMAGE, [8, 256, 256], [1 << 19]]
    types = {attr.name: type_of(attr) for attr in op.attr if attr.type == "type"}
    if None in types.values():
        return
    for shape in shapes:
        inputs, given = {}, dict(types)
        for attr in op.attr:
            if attr.name in ATTRIBUTES and not attr.HasField("default_value"):
                given[attr.name] = ATTRIBUTES[attr.name]
        given.update({name[1:]: value for name, value in special.items() if name.startswith("_")})
        for name in types:  # indices are 32 bits wide
            if name in ("Tidx", "Tindices", "Index", "Tshape", "Tperm", "Tdim", "Tpaddings", "Tmultiples", "index_type", "Tlen"):
                given[name] = tf.int32
        for argument in op.input_arg:
            dtype = given.get(argument.type_attr) if argument.type_attr else tf.as_dtype(argument.type)
            if dtype is None or argument.type_list_attr or dtype in (tf.resource, tf.variant, tf.string) or argument.is_ref:
                return
            value = special.get(argument.name, NAMED.get(argument.name))
            if isinstance(value, np.ndarray) or np.isscalar(value) and isinstance(value, np.generic):
                if argument.type_attr and not tf.as_dtype(value.dtype).is_compatible_with(dtype):
                    given[argument.type_attr] = tf.as_dtype(value.dtype)
            elif argument.name in special:
                value = matrix(dtype, value)
            elif value is not None:
                value = np.asarray(value).astype(dtype.as_numpy_dtype)
            else:
                value = matrix(dtype, shape)
            inputs[argument.name] = [value, value] if argument.number_attr else value
        if sum(np.asarray(value).nbytes for value in inputs.values()) or not inputs:
            yield inputs, given


def build(op, inputs, given, count):
    """A fetch of one element after `count` calls in a row, and the feeds of the variables."""
    function = getattr(tf.raw_ops, op.name)
    names = {attr.name for attr in op.attr}
    inferred = {argument.type_attr for argument in op.input_arg} | {argument.number_attr for argument in op.input_arg}
    attributes = {name: value for name, value in given.items() if name in names and name not in inferred}

    def variable(value):
        value = np.asarray(value)
        return tf.constant(value) if value.nbytes < 1 << 14 else tf1.Variable(value, trainable=False, use_resource=False)

    held = {name: [variable(one) for one in value] if isinstance(value, list) else variable(value) for name, value in inputs.items()}
    last = []
    for _ in range(count):
        with tf.control_dependencies(last):
            output = function(**held, **attributes)
            output = output if isinstance(output, tf.Tensor) else next(o for o in tf.nest.flatten(output) if isinstance(o, tf.Tensor))
            last = [tf.identity(output).op]
    with tf.control_dependencies(last):
        return tf.reshape(output, [-1])[:1]


def open_session(target, op, call, count):
    graph = tf.Graph()
    with graph.as_default():
        fetch = build(op, *call, count)
        config = tf1.ConfigProto(operation_timeout_in_ms=20_000)
        config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        session = tf1.Session(target, graph=graph, config=config)
        session.run(tf1.global_variables_initializer())
        return session, session.make_callable(fetch)


def seconds(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def accepted(target, op):
    """The first set of inputs with which TensorFlow runs the op, and how often to run it in a step."""
    for call in calls(op):
        try:
            session, step = open_session(target, op, call, 1)
        except Exception:  # a set of inputs that does not fit
            continue
        try:
            step()
            taken = min(seconds(step) for _ in range(3))
            return call, max(1, min(20, int(WINDOW / max(taken, 1e-5))))
        except tf.errors.OpError:
            continue
        finally:
            session.close()
    return None, 0


def compare(targets, op):
    """Median milliseconds of a call on each server."""
    call, count = accepted(targets["tensorflow"], op)
    if call is None:
        return None
    steps, sessions = {}, []
    for kind in KINDS:
        session, steps[kind] = open_session(targets[kind], op, call, count)
        sessions.append(session)
    times = {kind: [] for kind in KINDS}
    for round_ in range(ROUNDS + 1):
        for kind in KINDS:
            taken = [seconds(steps[kind]) for _ in range(2)]
            if round_:
                times[kind] += taken
    for session in sessions:
        session.close()
    return {kind: statistics.median(taken) * 1000 / count for kind, taken in times.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("ops", nargs="*")
    args = parser.parse_args()
    names = args.ops or [name for name in dir(tf.raw_ops) if not EXCLUDED.search(name)]
    rows, left = {}, {}
    with serving.server("tensorflow") as ours, serving.server("flowgrid") as theirs:
        targets = {"tensorflow": ours["worker"][0], "flowgrid": theirs["worker"][0]}
        for name in names:
            op = op_def_registry.get(name)
            if op is None or not op.output_arg or op.is_stateful and "Random" not in name:
                continue
            try:
                found = compare(targets, op)
            except (tf.errors.OpError, ValueError, TypeError, StopIteration) as error:
                left[name] = str(error).partition("\n")[0][:150]
                continue
            if found is None:
                continue
            rows[name] = found
            print(f"{name:45} {found['tensorflow']:9.3f} {found['flowgrid']:9.3f} ms "
                  f"{found['tensorflow'] / found['flowgrid']:6.2f}", flush=True)
    ratios = sorted((times["tensorflow"] / times["flowgrid"], name) for name, times in rows.items())
    slow = [f"{name} {ratio:.2f}" for ratio, name in ratios if ratio < 0.8]
    print(f"\n{len(rows)} ops; median ratio {statistics.median(ratio for ratio, _ in ratios):.2f}; {len(slow)} under 0.8: {slow}")
    print("errors:", left)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"rows": rows, "errors": left}, file, indent=1)


if __name__ == "__main__":
    main()
