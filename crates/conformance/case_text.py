"""Text of conformance cases: words, tensors, attributes, errors, as `src/text.rs` and `src/values.rs` read them."""

import os
import re

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import attr_value_pb2, types_pb2  # noqa: E402
from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: E402

WHOLE = 64  # results with more elements are sampled
SAMPLES = 12
tf.compat.v1.disable_eager_execution()


class Bad(Exception):
    """A case that cannot be read."""


# Text


def split(text):
    """The words between spaces."""
    return [word for word in parts(text, " ") if word]


def items(text):
    """The parts of a list between commas; spaces around them do not count."""
    return [part.strip() for part in parts(text, ",") if part.strip()]


def parts(text, separator):
    """What stands between separators outside quotes, brackets and parentheses."""
    found, depth, quoted, start, i = [], 0, False, 0, 0
    while i < len(text):
        c = text[i]
        if c == "\\" and quoted:
            i += 1
        elif c == '"':
            quoted = not quoted
        elif not quoted and c in "([":
            depth += 1
        elif not quoted and c in ")]":
            depth -= 1
        elif c == separator and not quoted and depth == 0:
            found.append(text[start:i])
            start = i + 1
        i += 1
    found.append(text[start:])
    return found


ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", '"': b'"', "\\": b"\\"}


def unquote(text):
    """The bytes of a quoted string."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise Bad(f"{text} is not a quoted string")
    out, i, inner = b"", 0, text[1:-1]
    while i < len(inner):
        if inner[i] != "\\":
            out += inner[i].encode()
        elif inner[i + 1] == "x":
            out += bytes([int(inner[i + 2 : i + 4], 16)])
            i += 3
        else:
            out += ESCAPES[inner[i + 1]]
            i += 1
        i += 1
    return out


def quote(data):
    """A quoted string of these bytes."""
    out = ""
    for byte in data:
        if byte in b'"\\':
            out += "\\" + chr(byte)
        elif byte == 10:
            out += "\\n"
        elif 32 <= byte < 127:
            out += chr(byte)
        else:
            out += f"\\x{byte:02x}"
    return f'"{out}"'


def dtype_of(name):
    return tf.dtypes.as_dtype({"float": "float32", "double": "float64", "half": "float16"}.get(name, name))


def dtype_name(dtype):
    name = types_pb2.DataType.Name(dtype.base_dtype.as_datatype_enum)[3:].lower()
    return name


# Tensors

MASK = (1 << 64) - 1


def splitmix(seed, index):
    """Number `index` of the splitmix64 sequence of `seed`, scaled to [0, 1)."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return (z >> 11) * 2.0**-53


def generate(text, count):
    """`count` numbers of a generator such as `ramp(-1,1)`; none if the text is not a generator."""
    match = re.fullmatch(r"(ramp|range|uniform|fill|cycle)\((.*)\)", text)
    if not match:
        return None
    name, args = match[1], items(match[2])
    if name == "uniform":
        seed, lo, hi = int(args[0]), *(map(float, args[1:] or (0, 1)))
        return [lo + (hi - lo) * splitmix(seed, i) for i in range(count)]
    args = [float(arg) for arg in args]
    if name == "ramp":
        lo, hi = args
        return [lo + (hi - lo) * (i / max(count - 1, 1)) for i in range(count)]
    if name == "range":
        start, step = args
        return [start + step * i for i in range(count)]
    if name == "fill":
        return args * count
    return [args[i % len(args)] for i in range(count)]


def number(text, dtype):
    if dtype.is_integer or dtype.is_quantized:
        return int(text)
    if dtype.is_complex:
        return complex(text)
    if dtype.is_bool:
        return {"true": True, "false": False}[text]
    return float(text)


def tensor_of(tokens):
    """The array (and its type) that `float[2,2] 1 2 3 4` says; no array if there are no values for it."""
    match = re.fullmatch(r"(\w+)(?:\[([\d,]*)\])?", tokens[0])
    if not match:
        raise Bad(f"{tokens[0]} is not a type and a shape")
    dtype = dtype_of(match[1])
    shape = [int(dim) for dim in items(match[2] or "")]
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == tf.string:
        values = [unquote(token) for token in tokens[1:]]
        made = None
    else:
        made = generate(tokens[1], count * (2 if dtype.is_complex else 1)) if len(tokens) == 2 else None
        values = made if made is not None else [number(token, dtype) for token in tokens[1:]]
    if made is not None:
        values = cast_generated(made, dtype)
    if len(values) != count:
        if not values:
            return dtype, shape, None
        raise Bad(f"{len(values)} values for {count} elements of {tokens[0]}")
    if dtype == tf.string:
        array = np.empty(count, dtype=object)
        array[:] = values
        return dtype, shape, array.reshape(shape)
    return dtype, shape, to_array(values, dtype).reshape(shape)


def cast_generated(values, dtype):
    if dtype.is_complex:
        return [complex(re, im) for re, im in zip(values[::2], values[1::2])]
    if dtype.is_integer or dtype.is_quantized:
        return [int(np.floor(value)) for value in values]
    if dtype.is_bool:
        return [value >= 0.5 for value in values]
    return values


def to_array(values, dtype):
    numpy_type = dtype.as_numpy_dtype
    if dtype.is_quantized:
        storage = {tf.qint8: np.int8, tf.quint8: np.uint8, tf.qint16: np.int16, tf.quint16: np.uint16}
        return np.array(values, dtype=storage.get(dtype, np.int32)).astype(numpy_type)
    if dtype in (tf.float16, tf.bfloat16):
        return np.array(values, dtype=np.float32).astype(numpy_type)
    return np.array(values, dtype=numpy_type)


def spell(value, dtype):
    """One element as text."""
    if dtype == tf.string:
        return quote(value if isinstance(value, bytes) else str(value).encode())
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_complex:
        part = np.float32 if dtype == tf.complex64 else np.float64
        imag = spell_float(part(value.imag))
        return spell_float(part(value.real)) + (imag if imag[0] == "-" else "+" + imag) + "j"
    if dtype.is_floating:
        return spell_float(value if dtype in (tf.float32, tf.float64) else np.float32(value))
    if dtype.is_quantized:  # numpy gives some of them as structures of one field
        value = value.item()[0] if isinstance(value.item(), tuple) else value.item()
    return str(int(value))


def spell_float(value):
    text = str(value)
    return text[:-2] if text.endswith(".0") else text


def spell_tensor(dtype, array):
    """A tensor as text: whole when it is small, else samples, the sum and a weighted sum."""
    if dtype in (tf.resource, tf.variant):
        return f"{dtype_name(dtype)} any"
    # An array of bytes would lose zeros at the end of a string.
    array = np.asarray(array, dtype=object) if dtype == tf.string else np.asarray(array)
    head = f"{dtype_name(dtype)}[{','.join(map(str, array.shape))}]"
    flat = array.reshape(-1)
    if flat.size <= WHOLE or dtype == tf.string:
        return " ".join([head] + [spell(value, dtype) for value in flat])
    places = [i * (flat.size - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
    plain = plain_numbers(flat, dtype)
    finite = np.where(np.isfinite(plain), plain, 0)
    index = np.arange(flat.size, dtype=np.float64)
    weights = np.modf(index * 0.6180339887498949)[0]
    sums = [f"sum={spell_sum(finite.sum())}", f"mix={spell_sum((finite * weights).sum())}"]
    return " ".join([head] + [f"{i}={spell(flat[i], dtype)}" for i in places] + sums)


def plain_numbers(flat, dtype):
    if dtype.is_complex:
        return flat.astype(np.complex128)
    if dtype.is_quantized:
        return np.array([int(spell(value, dtype)) for value in flat], dtype=np.float64)
    return flat.astype(np.float64)


def spell_sum(value):
    if isinstance(value, complex) or np.iscomplexobj(value):
        return spell(np.complex128(value), tf.complex128)
    return spell_float(np.float64(value))


# Attributes


def attr_value(kind, text):
    """The AttrValue of a given kind that the text says."""
    value = attr_value_pb2.AttrValue()
    if kind.startswith("list("):
        value.list.SetInParent()
        for item in items(text[1:-1]):
            one = attr_value(kind[5:-1], item)
            field = one.WhichOneof("value")
            target = getattr(value.list, field)
            if field in ("shape", "tensor", "func"):
                target.add().CopyFrom(getattr(one, field))
            else:
                target.append(getattr(one, field))
    elif kind == "string":
        value.s = unquote(text) if text.startswith('"') else text.encode()
    elif kind == "int":
        value.i = int(text)
    elif kind == "float":
        value.f = float(text)
    elif kind == "bool":
        value.b = {"true": True, "false": False}[text]
    elif kind == "type":
        value.type = dtype_of(text).as_datatype_enum
    elif kind == "shape":
        value.shape.CopyFrom(shape_of(text).as_proto())
    elif kind == "tensor":
        dtype, _, array = tensor_of(split(text[1:-1]))
        value.tensor.CopyFrom(tf.make_tensor_proto(array, dtype))
    elif kind == "func":
        value.func.name = unquote(text).decode() if text.startswith('"') else text
    else:
        raise Bad(f"attributes of kind {kind} are not supported")
    return value


def shape_of(text):
    if text == "?":
        return tf.TensorShape(None)
    return tf.TensorShape([None if dim in ("?", "-1") else int(dim) for dim in items(text[1:-1])])


# Answers


def session(patience=0):
    """A session that runs graphs as they are; no step may take longer than the given number of milliseconds, if set."""
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.operation_timeout_in_ms = patience
    rewrite = config.graph_options.rewrite_options
    rewrite.disable_meta_optimizer = True
    rewrite.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    return tf.compat.v1.Session(config=config)


CODES = "Ok Cancelled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists PermissionDenied "
CODES += "ResourceExhausted FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable DataLoss"
CODES = CODES.split()


def error_line(like, code, message):
    """What TensorFlow said, without the place it happened."""
    text = re.sub(r"^Graph execution error:.*\nNode: '[^\n]*'\n", "", message, flags=re.S).split("\n\t [[")[0]
    text = re.sub(r"^Graph execution error:\s*", "", text)
    text = re.sub(r" for '\{\{node.*", "", text, flags=re.S).strip().split("\n")[0].strip()
    if like:
        if unquote(like).decode() not in text:
            raise Bad(f"like {like}, but TensorFlow says: {text}")
        text = unquote(like).decode()
    return f"error {CODES[code]} {quote(text.encode())}"
