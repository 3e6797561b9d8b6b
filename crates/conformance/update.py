"""Writes the expected part of conformance cases: what real TensorFlow answers.

    python update.py [file.case ...]     all files under cases/ if none is given
    python update.py --op-list           rewrites op-list.txt instead

The format is described in README.md; `case_text.py` reads and writes values, `graph_case.py` runs graphs.
"""

import pathlib
import re
import sys

from case_text import Bad, attr_value, dtype_name, dtype_of, error_line, session, spell_tensor, split, tensor_of
from case_text import tf, to_array
import numpy as np
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import op_def_registry

import graph_case

HERE = pathlib.Path(__file__).resolve().parent
GENERATED = {"out", "after", "grad", "error", "ok"}


# Cases


class Case:
    """The lines of one case, those TensorFlow writes left out."""

    def __init__(self, lines):
        self.lines = [line for line in lines if split(line)[0] not in GENERATED]
        self.inputs, self.flags, self.like, self.op = [], set(), None, None
        self.undefined, self.stand_ins, self.shaped = set(), {}, set()
        for tokens in map(split, self.lines):
            if tokens[0] == "op":
                self.op, self.attrs = tokens[1], dict(token.split("=", 1) for token in tokens[2:])
            elif tokens[0] == "in":
                self.inputs.append((tokens[1], tokens[2:]))
            elif tokens[0] == "like":
                self.like = tokens[1]
            elif tokens[0] == "any":
                self.undefined |= set(tokens[1:])
            elif tokens[0] == "as":
                missing, known = tokens[1].split("=")
                self.stand_ins[dtype_of(missing)] = dtype_of(known)
            elif tokens[0] in ("nograd", "shapes", "ranked", "shaped", "slopes"):
                self.flags.add(tokens[0])
                self.shaped |= set(tokens[1:])
            elif tokens[0] != "tol" and not tokens[0].startswith("#"):
                raise Bad(f"what is '{tokens[0]}'?")
        if self.op is None:
            raise Bad("a case begins with an op line")


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
            dtype = self.case.stand_ins.get(dtype, dtype)
            placeholder = tf.compat.v1.placeholder(dtype, self.known_shape(name, array))
            self.feed[placeholder] = array.astype(dtype.as_numpy_dtype) if self.case.stand_ins else array
            return placeholder
        dtype, shape, array = tensor_of(split(match[2]))
        make = self.ref_variable if match[1] == "ref" else self.resource_variable
        return make(name, dtype, shape, array)

    def known_shape(self, name, array):
        """What TensorFlow's shape function is told of an input: nothing, unless the case says more."""
        if "shaped" in self.case.flags and name in (self.case.shaped or {name}):
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
            # A copy of its own: a kernel that writes to a variable which shares a feed's memory may miss it.
            value = tf.raw_ops.DeepCopy(x=self.constant(dtype, array))
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


def answers(case):
    """The lines real TensorFlow writes for a case."""
    with tf.Graph().as_default():
        built = Built(case)
        try:
            node = built.node()
        except (ValueError, TypeError) as error:
            return [error_line(case.like, 3, str(error))]
        except tf.errors.OpError as error:
            return [error_line(case.like, error.error_code, error.message)]
        with session() as sess:
            try:
                lines = run_node(case, built, node, sess)
            except tf.errors.OpError as error:
                return [error_line(case.like, error.error_code, error.message)]
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
        text = spell_answer(case, arg, tensor.dtype.base_dtype, array)
        if "shapes" in case.flags and not opaque:
            text = f"{dtype_name(tensor.dtype)}[{','.join(map(str, np.asarray(array).shape))}] any"
        lines.append(f"out {arg} {text}")
    for name, dtype, read in built.variables:
        lines.append(f"after {name} {left(sess, dtype, read)}")
    return lines


def spell_answer(case, name, dtype, array):
    """A tensor that TensorFlow answered, in the type that the case asks for."""
    for asked, used in case.stand_ins.items():
        if used == dtype:
            dtype, array = asked, np.asarray(array).astype(asked.as_numpy_dtype)
    return f"{dtype_name(dtype)} any" if name in case.undefined else spell_tensor(dtype, array)


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
        asked = {used: asked for asked, used in built.case.stand_ins.items()}
        weights = [weights_like(y.shape, asked.get(t.dtype, t.dtype)) for y, t in zip(values, ys)]
        weights = [tf.constant(weight.astype(t.dtype.as_numpy_dtype), t.dtype) for weight, t in zip(weights, ys)]
        try:
            grads = tf.gradients(ys, [tensor for _, tensor in xs], grad_ys=weights)
            grads = [tf.convert_to_tensor(grad) if grad is not None else None for grad in grads]
            found = sess.run([grad for grad in grads if grad is not None], built.feed)
            if "slopes" in built.case.flags:
                wanted = [tensor for (_, tensor), grad in zip(xs, grads) if grad is not None]
                found = [slope(built, sess, ys, weights, tensor) for tensor in wanted]
        except (LookupError, ValueError, TypeError, NotImplementedError, tf.errors.OpError) as error:
            print(f"  {built.case.op}: no gradient: {str(error).splitlines()[0]}")
            return []
    lines, found = [], iter(found)
    for (name, tensor), grad in zip(xs, grads):
        text = "none" if grad is None else spell_answer(built.case, name, tensor.dtype, next(found))
        lines.append(f"grad {name} {text}")
    return lines if any(not line.endswith(" none") for line in lines) else []


def slope(built, sess, ys, weights, x):
    """The gradient by one input, from what TensorFlow answers on either side of each element."""
    middle, factors = built.feed[x], [sess.run(weight) for weight in weights]
    step = 2.0**-17 if x.dtype in (tf.float64, tf.complex128) else 2.0**-10
    found = np.zeros(middle.shape, np.complex128)
    for place in np.ndindex(middle.shape):
        for direction in (1, 1j) if x.dtype.is_complex else (1,):
            for side in (step, -step):
                near = middle.copy()
                near[place] += side * direction
                values = sess.run(ys, {**built.feed, x: near})
                total = sum(np.vdot(factor, value.astype(np.complex128)).real for value, factor in zip(values, factors))
                found[place] += direction * total / (2 * side)
    return found.astype(middle.dtype) if x.dtype.is_complex else found.real.astype(middle.dtype)


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
        lines = [line.rstrip() for line in block.split("\n")]
        if not graph_case.is_one(lines):
            lines = [line.strip() for line in lines]
        if all(line.startswith("#") for line in lines):
            out.append("\n".join(lines))
            continue
        try:
            if graph_case.is_one(lines):
                lines = graph_case.answered(lines)
            else:
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
