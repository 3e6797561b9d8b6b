"""TensorFlow's op list as lines of text, in the syntax of `graph::Signature::parse`."""

import numpy as np
from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session

REAL = "float double int32 uint8 int16 int8 int64 bfloat16 uint16 half uint32 uint64".split()
NUMBERS = "float double int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 uint16"
NUMBERS = NUMBERS.split() + "complex128 half uint32 uint64".split()
FLAGS = [
    ("is_stateful", "stateful"),
    ("is_commutative", "commutative"),
    ("is_aggregate", "aggregate"),
    ("allows_uninitialized_input", "uninitialized"),
    ("is_distributed_communication", "distributed"),
]


def type_name(number):
    return types_pb2.DataType.Name(number)[3:].lower()


def quote(data):
    return '"' + data.decode().replace("\n", "\\n") + '"'


def shape(proto):
    return "?" if proto.unknown_rank else "[" + ", ".join(str(dim.size) for dim in proto.dim) + "]"


SPELL = {
    "string": ("s", quote),
    "int": ("i", str),
    "float": ("f", lambda value: str(np.float32(value))),
    "bool": ("b", lambda value: str(value).lower()),
    "type": ("type", type_name),
    "shape": ("shape", shape),
}


def default(value, kind):
    if kind in ("tensor", "func"):
        return None
    if kind.startswith("list("):
        field, spell = SPELL.get(kind[5:-1], ("func", str))
        return "[" + ", ".join(spell(item) for item in getattr(value.list, field)) + "]"
    field, spell = SPELL[kind]
    return spell(getattr(value, field))


def argument(arg):
    text = arg.type_attr or type_name(arg.type)
    if arg.type_list_attr:
        text = f"[{arg.type_list_attr}]"
    if arg.number_attr:
        text = f"{arg.number_attr} * {text}"
    return f"{arg.name}: Ref({text})" if arg.is_ref else f"{arg.name}: {text}"


def allowed(values):
    if not values.list.type:
        return "{" + ", ".join(quote(text) for text in values.list.s) + "}"
    types = [type_name(number) for number in values.list.type]
    return {tuple(REAL): "realnumbertype", tuple(NUMBERS): "numbertype"}.get(tuple(types), "{" + ", ".join(types) + "}")


def attribute(attr):
    kind = attr.type
    if attr.HasField("allowed_values"):
        kind = allowed(attr.allowed_values)
        kind = f"list({kind})" if attr.type.startswith("list(") else kind
    if attr.has_minimum:
        kind += f" >= {attr.minimum}"
    value = default(attr.default_value, attr.type) if attr.HasField("default_value") else None
    return f"{attr.name}: {kind}" + (f" = {value}" if value is not None else "")


def render(op):
    """One op as one line."""
    text = f"{op.name}({', '.join(map(argument, op.input_arg))})"
    if op.output_arg:
        text += " -> " + ", ".join(map(argument, op.output_arg))
    return "; ".join([text] + [attribute(attr) for attr in op.attr] + [name for field, name in FLAGS if getattr(op, field)])


def render_all():
    """All ops, one a line, sorted."""
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return "".join(render(op) + "\n" for op in sorted(ops.op, key=lambda op: op.name))
