"""Writes the expected part of conformance cases: what real TensorFlow answers.

    python update.py [file.case ...]     all files under cases/ if none is given
    python update.py --op-list           rewrites op-list.txt instead

The format is described in README.md; `src/text.rs` and `src/generate.rs` read it on the Rust side.
"""

import os
import pathlib
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import attr_value_pb2, types_pb2  # noqa: E402
from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: E402
from tensorflow.python.framework import op_def_registry, ops  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
WHOLE = 64  # results with more elements are sampled
SAMPLES = 12
GENERATED = {"out", "after", "grad", "error", "ok"}
tf.compat.v1.disable_eager_execution()


class Bad(Exception):
    """A case that cannot be read."""


# Text


def split(text):
    """Splits at spaces outside quotes, brackets and parentheses."""
    tokens, depth, quoted, start, i = [], 0, False, None, 0
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
        if c == " " and not quoted and depth == 0:
            if start is not None:
                tokens.append(text[start:i])
            start = None
        elif start is None:
            start = i
        i += 1
    if start is not None:
        tokens.append(text[start:])
    return tokens


def items(text):
    """The parts of a list between commas; spaces around them do not count."""
    parts, depth, quoted, start, i = [], 0, False, 0, 0
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
        elif c == "," and not quoted and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
        i += 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


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


# Cases


class Case:
    """The lines of one case, those TensorFlow writes left out."""

    def __init__(self, lines):
        self.lines = [line for line in lines if split(line)[0] not in GENERATED]
        self.inputs, self.flags, self.like, self.op = [], set(), None, None
        for tokens in map(split, self.lines):
            if tokens[0] == "op":
                self.op, self.attrs = tokens[1], dict(token.split("=", 1) for token in tokens[2:])
            elif tokens[0] == "in":
                self.inputs.append((tokens[1], tokens[2:]))
            elif tokens[0] == "like":
                self.like = tokens[1]
            elif tokens[0] in ("nograd", "shapes", "ranked", "shaped"):
                self.flags.add(tokens[0])
            elif tokens[0] != "tol" and not tokens[0].startswith("#"):
                raise Bad(f"what is '{tokens[0]}'?")
        if self.op is None:
            raise Bad("a case begins with an op line")


def attr_value(kind, text):
    """The AttrValue of a given kind that the text says."""
    value = attr_value_pb2.AttrValue()
    if kind.startswith("list("):
        value.list.SetInParent()
        for item in items(text[1:-1]):
            one = attr_value(kind[5:-1], item)
            field = one.WhichOneof("value")
            target = getattr(value.list, field)
            if field in ("shape", "tensor"):
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
    else:
        raise Bad(f"attributes of kind {kind} are not supported")
    return value


def shape_of(text):
    if text == "?":
        return tf.TensorShape(None)
    return tf.TensorShape([None if dim in ("?", "-1") else int(dim) for dim in items(text[1:-1])])


def infer_attrs(op_def, inputs, attrs):
    """Adds the attributes that follow from the inputs."""
    for arg in op_def.input_arg:
        types = [dtype.as_datatype_enum for name, dtype in inputs if name == arg.name]
        if arg.number_attr and arg.number_attr not in attrs:
            attrs[arg.number_attr] = attr_value_pb2.AttrValue(i=len(types))
        if arg.type_list_attr and arg.type_list_attr not in attrs:
            attrs[arg.type_list_attr] = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=types))
        if arg.type_attr and arg.type_attr not in attrs and types:
            attrs[arg.type_attr] = attr_value_pb2.AttrValue(type=types[0])


class Built:
    """The graph of one case."""

    def __init__(self, case):
        self.case, self.feed, self.init, self.variables = case, {}, [], []
        self.tensors = []
        for name, tokens in case.inputs:
            self.tensors.append((name, self.input(name, tokens)))
        order = [arg.name for arg in self.op_def().input_arg]
        for name, _ in self.tensors:
            if name not in order:
                raise Bad(f"{case.op} has no input '{name}', but {order}")
        self.tensors.sort(key=lambda pair: order.index(pair[0]))

    def op_def(self):
        op_def = op_def_registry.get(self.case.op)
        if op_def is None:
            raise Bad(f"TensorFlow has no op {self.case.op}")
        return op_def

    def input(self, name, tokens):
        match = re.fullmatch(r"(ref|resource)\((.*)\)", tokens[0])
        if not match:
            dtype, _, array = tensor_of(tokens)
            if array is None:
                raise Bad(f"input {name} has no values")
            placeholder = tf.compat.v1.placeholder(dtype, self.known_shape(array))
            self.feed[placeholder] = array
            return placeholder
        dtype, shape, array = tensor_of(split(match[2]))
        make = self.ref_variable if match[1] == "ref" else self.resource_variable
        return make(name, dtype, shape, array)

    def known_shape(self, array):
        """What TensorFlow's shape function is told of an input: nothing, unless the case says more."""
        if "shaped" in self.case.flags:
            return np.shape(array)
        return [None] * np.ndim(array) if "ranked" in self.case.flags else None

    def ref_variable(self, name, dtype, shape, array):
        variable = tf.raw_ops.VariableV2(shape=shape, dtype=dtype, shared_name=name, name=name)
        if array is not None:
            self.init.append(tf.raw_ops.Assign(ref=variable, value=self.constant(dtype, array), validate_shape=False))
        self.variables.append((name, dtype, lambda: tf.raw_ops.Identity(input=variable)))
        return variable

    def resource_variable(self, name, dtype, shape, array):
        handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name, name=name)
        if array is not None:
            value = self.constant(dtype, array)
            self.init.append(tf.raw_ops.AssignVariableOp(resource=handle, value=value))
        self.variables.append((name, dtype, lambda: tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)))
        return handle

    def constant(self, dtype, array):
        placeholder = tf.compat.v1.placeholder(dtype)
        self.feed[placeholder] = array
        return placeholder

    def node(self):
        op_def, case = self.op_def(), self.case
        kinds = {attr.name: attr.type for attr in op_def.attr}
        attrs = {name: attr_value(kinds[name], text) for name, text in case.attrs.items()}
        infer_attrs(op_def, [(name, self.type_of(name, tensor)) for name, tensor in self.tensors], attrs)
        return tf.compat.v1.get_default_graph()._create_op_internal(
            case.op,
            [tensor for _, tensor in self.tensors],
            None,
            input_types=[tensor.dtype for _, tensor in self.tensors]
            if any(arg.is_ref for arg in op_def.input_arg)
            else None,
            name="case",
            attrs=attrs,
            op_def=op_def,
        )

    def type_of(self, name, tensor):
        return tensor.dtype.base_dtype


def session():
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    rewrite = config.graph_options.rewrite_options
    rewrite.disable_meta_optimizer = True
    rewrite.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    return tf.compat.v1.Session(config=config)


CODES = "Ok Cancelled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists PermissionDenied "
CODES += "ResourceExhausted FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable DataLoss"
CODES = CODES.split()


def error_line(case, code, message):
    """What TensorFlow said, without the place it happened."""
    text = re.sub(r"^Graph execution error:.*\nNode: '[^\n]*'\n", "", message, flags=re.S).split("\n\t [[")[0]
    text = re.sub(r" for '\{\{node.*", "", text, flags=re.S).strip().split("\n")[0].strip()
    if case.like:
        if unquote(case.like).decode() not in text:
            raise Bad(f"like {case.like}, but TensorFlow says: {text}")
        text = unquote(case.like).decode()
    return f"error {CODES[code]} {quote(text.encode())}"


def answers(case):
    """The lines real TensorFlow writes for a case."""
    with tf.Graph().as_default():
        built = Built(case)
        try:
            node = built.node()
        except (ValueError, TypeError) as error:
            return [error_line(case, 3, str(error))]
        except tf.errors.OpError as error:
            return [error_line(case, error.error_code, error.message)]
        with session() as sess:
            try:
                lines = run_node(case, built, node, sess)
            except tf.errors.OpError as error:
                return [error_line(case, error.error_code, error.message)]
        if "nograd" not in case.flags and "shapes" not in case.flags and not built.variables:
            lines += gradients(built, node)
        return lines or ["ok"]


def run_node(case, built, node, sess):
    if built.init:
        sess.run(built.init, built.feed)
    outputs = [tensor for tensor in node.outputs if tensor.dtype not in (tf.resource, tf.variant)]
    results = iter(sess.run(outputs + [node], built.feed))
    lines = []
    for arg, tensor in zip(output_names(node), node.outputs):
        opaque = tensor.dtype in (tf.resource, tf.variant)
        array = None if opaque else next(results)
        text = spell_tensor(tensor.dtype.base_dtype, array)
        if "shapes" in case.flags and not opaque:
            text = f"{dtype_name(tensor.dtype)}[{','.join(map(str, np.asarray(array).shape))}] any"
        lines.append(f"out {arg} {text}")
    for name, dtype, read in built.variables:
        lines.append(f"after {name} {left(sess, dtype, read)}")
    return lines


def left(sess, dtype, read):
    """A variable's value as text."""
    try:
        return spell_tensor(dtype, sess.run(read()))
    except (tf.errors.FailedPreconditionError, tf.errors.NotFoundError):
        return "none"


def output_names(node):
    """The argument each output belongs to."""
    names = []
    for arg in node.op_def.output_arg:
        count = node.get_attr(arg.number_attr) if arg.number_attr else 1
        count = len(node.get_attr(arg.type_list_attr)) if arg.type_list_attr else count
        names += [arg.name] * count
    return names


def weights_like(shape, dtype):
    """The fixed weights of `sum(out * weights)`: a ramp from 0.5 to 1.5."""
    count = int(np.prod(shape, dtype=np.int64))
    ramp = [0.5 + i / max(count - 1, 1) for i in range(count)]
    return to_array(ramp, dtype).reshape(shape)


def differentiable(tensor):
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def gradients(built, node):
    """`grad` lines: of the weighted sum of all floating outputs, by each floating input."""
    ys = [tensor for tensor in node.outputs if differentiable(tensor)]
    xs = [(name, tensor) for name, tensor in built.tensors if differentiable(tensor)]
    if not ys or not xs:
        return []
    with session() as sess:
        values = sess.run(ys, built.feed)
        weights = [tf.constant(weights_like(y.shape, t.dtype), t.dtype) for y, t in zip(values, ys)]
        try:
            grads = tf.gradients(ys, [tensor for _, tensor in xs], grad_ys=weights)
            grads = [tf.convert_to_tensor(grad) if grad is not None else None for grad in grads]
            found = iter(sess.run([grad for grad in grads if grad is not None], built.feed))
        except (LookupError, ValueError, TypeError, NotImplementedError, tf.errors.OpError) as error:
            print(f"  {built.case.op}: no gradient: {str(error).splitlines()[0]}")
            return []
    lines = []
    for (name, tensor), grad in zip(xs, grads):
        text = "none" if grad is None else spell_tensor(tensor.dtype, next(found))
        lines.append(f"grad {name} {text}")
    return lines if any(not line.endswith(" none") for line in lines) else []


# Files


def aligned(lines):
    """The same lines with the columns of in, out, after and grad under each other."""
    tensors = [split(line) for line in lines if line.split(" ", 1)[0] in ("in", "out", "after", "grad")]
    if not tensors:
        return lines
    first = max(len(tokens[0]) for tokens in tensors)
    second = max(len(tokens[1]) for tokens in tensors)
    out = []
    for line in lines:
        tokens = split(line)
        if tokens[0] in ("in", "out", "after", "grad"):
            line = " ".join([tokens[0].ljust(first), tokens[1].ljust(second)] + tokens[2:])
        out.append(line.rstrip())
    return out


def update(path):
    """Rewrites one file; true if every case of it could be answered."""
    blocks = re.split(r"\n\s*\n", path.read_text().strip("\n"))
    good, out = True, []
    for block in blocks:
        lines = [line.strip() for line in block.split("\n")]
        if all(line.startswith("#") for line in lines):
            out.append("\n".join(lines))
            continue
        try:
            case = Case(lines)
            lines = aligned(case.lines + answers(case))
        except Exception as error:  # the other cases go on
            good = False
            print(f"{path}: {lines[0]}: {type(error).__name__}: {error}")
        out.append("\n".join(lines))
    text = "\n\n".join(out) + "\n"
    if text != path.read_text():
        path.write_text(text)
        print(f"wrote {path}")
    return good


def main(args):
    if args == ["--op-list"]:
        import op_list

        (HERE / "op-list.txt").write_text(op_list.render_all())
        return 0
    files = [pathlib.Path(arg) for arg in args] or sorted((HERE / "cases").rglob("*.case"))
    return 0 if all([update(path) for path in files]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
