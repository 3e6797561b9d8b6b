"""Writes fixtures.txt: tensors as real TensorFlow encodes them, `name | type[shape] values | hex of the message`."""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import tensor_pb2, types_pb2  # noqa: E402

VALUES = {
    "float": [1.5, -2.25, np.inf, -0.0],
    "double": [1.5, -2.25, 1e300, -0.0],
    "half": [1.5, -2.25, 65504, 6e-8],
    "bfloat16": [1.5, -2.25, 1e30, 0],
    "int8": [-128, 0, 127, -1],
    "int16": [-32768, 0, 32767, -1],
    "int32": [-(2**31), 0, 2**31 - 1, -1],
    "int64": [-(2**63), 0, 2**63 - 1, -1],
    "uint8": [0, 1, 128, 255],
    "uint16": [0, 1, 32768, 65535],
    "uint32": [0, 1, 2**31, 2**32 - 1],
    "uint64": [0, 1, 2**63, 2**64 - 1],
    "bool": [True, False, True, True],
    "complex64": [1 + 2j, -1.5j, 0, 3],
    "complex128": [1 + 2j, -1.5j, 0, 3],
    "qint8": [-128, 0, 127, -1],
    "quint8": [0, 1, 128, 255],
    "qint16": [-32768, 0, 32767, -1],
    "quint16": [0, 1, 32768, 65535],
    "qint32": [-(2**31), 0, 2**31 - 1, -1],
    "string": [b"", b"a", b"\x00\xff", b"long " * 40],
}
FIELDS = {
    "float": "float_val", "double": "double_val", "half": "half_val", "bfloat16": "half_val", "int64": "int64_val",
    "uint32": "uint32_val", "uint64": "uint64_val", "bool": "bool_val", "complex64": "scomplex_val",
    "complex128": "dcomplex_val", "string": "string_val",
}  # fmt: skip
LINES = []


def number(name):
    return types_pb2.DataType.Value("DT_" + name.upper())


def numpy_type(name):
    return tf.dtypes.as_dtype({"float": "float32", "double": "float64", "half": "float16"}.get(name, name)).as_numpy_dtype


def bits(name, values):
    """The values as the wire stores them: strings as hex, floats by their bits."""
    if name == "string":
        return ["x" + value.hex() for value in values]
    if name == "bool":
        return [str(int(value)) for value in values]
    array = array_of(name, values)
    if name.startswith("complex"):
        parts = np.stack([array.real, array.imag], -1).reshape(-1)
        return [str(value) for value in parts.view(f"u{parts.itemsize}")]
    if name in ("float", "double", "half", "bfloat16"):
        return [str(value) for value in array.view(f"u{array.itemsize}")]
    return [str(int(value)) for value in values]


def array_of(name, values):
    if name == "string":
        return np.array(values, dtype=object)
    if name.startswith("q"):
        storage = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32"}[name]
        return np.array(values, dtype=storage).astype(numpy_type(name))
    return np.array(values, dtype=numpy_type(name))


def plain(value):
    """A quantized element; numpy gives some of them as structures of one field."""
    return value[0] if isinstance(value, tuple) else value


def add(label, name, shape, values, message):
    head = f"{name}[{','.join(map(str, shape))}]"
    LINES.append(f"{label} | {' '.join([head] + bits(name, values))} | {message.SerializeToString().hex()}")


def message(name, shape):
    proto = tensor_pb2.TensorProto(dtype=number(name))
    proto.tensor_shape.SetInParent()
    for size in shape:
        proto.tensor_shape.dim.add().size = size
    return proto


def typed(name, values):
    """The repeated field of a type, as C++ reads it."""
    if name in ("half", "bfloat16"):
        return [int(bit) for bit in bits(name, values)]
    if name.startswith("complex"):
        return [part for value in values for part in (complex(value).real, complex(value).imag)]
    return values


def constant(name, shape, values):
    """The value of a Const node, as Python writes it into a graph."""
    array = array_of(name, values).reshape(shape)
    with tf.Graph().as_default() as graph:
        tf.constant(array, dtype=number(name))
        return graph.as_graph_def().node[0].attr["value"].tensor


def main():
    for name, values in VALUES.items():
        field = FIELDS.get(name, "int_val")
        add(f"{name} in a graph", name, [2, 2], values, constant(name, [2, 2], values))
        add(f"{name} scalar", name, [], values[:1], constant(name, [], values[:1]))
        add(f"{name} empty", name, [0, 3], [], message(name, [0, 3]))
        whole = message(name, [4])
        getattr(whole, field).extend(typed(name, values))
        add(f"{name} typed field", name, [4], values, whole)
        repeated = message(name, [5])
        getattr(repeated, field).extend(typed(name, values[:2]))
        add(f"{name} last value repeated", name, [5], values[:2] + [values[1]] * 3, repeated)
        none = message(name, [3])
        zero = [b""] if name == "string" else [0]
        add(f"{name} without values", name, [3], zero * 3, none)
        if name != "string":
            content = message(name, [2, 2])
            content.tensor_content = array_of(name, values).tobytes()
            add(f"{name} content", name, [2, 2], values, content)
    strings = tensor_pb2.TensorProto()
    serialized = tf.io.serialize_tensor(tf.constant(VALUES["string"], shape=[2, 2]))
    strings.ParseFromString(serialized.numpy())
    add("string by SerializeTensor", "string", [2, 2], VALUES["string"], strings)
    check_with_tensorflow()
    (pathlib.Path(__file__).parent / "fixtures.txt").write_text("\n".join(LINES) + "\n")


def check_with_tensorflow():
    """TensorFlow must read every message as its line says."""
    for line in LINES:
        label, value, data = line.split(" | ")
        proto = tensor_pb2.TensorProto.FromString(bytes.fromhex(data))
        tensor = tf.io.parse_tensor(proto.SerializeToString(), tf.dtypes.as_dtype(proto.dtype))
        head, *expected = value.split(" ")
        name = head.split("[")[0]
        array = np.atleast_1d(tensor.numpy()).reshape(-1)
        values = list(array) if name == "string" else array
        found = [str(plain(v)) for v in array.tolist()] if name.startswith("q") else bits(name, values)
        assert found == expected, (label, found, expected)


main()
