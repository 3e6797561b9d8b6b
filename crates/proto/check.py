"""Writes fixtures/: every message of ours, filled and serialised by real TensorFlow, and every enum.

    python crates/proto/check.py     # a Python that has tensorflow; prints what it wrote

The test `tensorflow_bytes_survive` decodes and encodes these bytes again; a wrong number, type or label of a field
would lose or change some. TensorFlow itself is not imported, only its message classes. Those of the master and the
worker have no Python module: their definitions are read out of its library.

A fixture is a sequence of records: length and bytes of a message's full name, then of the message, lengths as u32le.
Maps and lists get one entry, so that there is one order of writing. A message with a oneof gives a record per member.
"""
import importlib
import mmap
import pathlib
import re
import struct
import sys
import types

from google.protobuf import any_pb2  # noqa: F401  (puts Any into the pool)
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HERE = pathlib.Path(__file__).parent
LIBRARY = "libtensorflow_cc.so.2"
EMBEDDED = ["tensorflow/core/protobuf/worker.proto", "tensorflow/core/protobuf/master.proto"]
MODULES = """
core.framework.graph_pb2 core.framework.op_def_pb2 core.framework.cost_graph_pb2 core.framework.summary_pb2
core.framework.variable_pb2 core.framework.device_attributes_pb2 core.framework.full_type_pb2 core.framework.graph_debug_info_pb2
core.protobuf.config_pb2 core.protobuf.named_tensor_pb2 core.protobuf.tensorflow_server_pb2
core.protobuf.tensor_bundle_pb2 core.protobuf.saved_model_pb2 core.protobuf.fingerprint_pb2
core.protobuf.queue_runner_pb2 core.protobuf.control_flow_pb2 core.protobuf.transport_options_pb2
core.protobuf.core_platform_payloads_pb2 core.util.event_pb2 core.util.saved_tensor_slice_pb2
core.example.example_pb2 core.framework.dataset_pb2 core.framework.dataset_options_pb2 compiler.xla.tsl.protobuf.distributed_runtime_payloads_pb2
python.training.checkpoint_state_pb2
""".split()

def load():
    """Fills the default pool with TensorFlow's definitions and returns it."""
    root = next(p for p in (pathlib.Path(s or ".", "tensorflow") for s in sys.path) if (p / "core").is_dir())
    for name, path in ("tensorflow", root), ("tensorflow.python", root / "python"), (
            "tensorflow.python.training", root / "python" / "training"):
        package = types.ModuleType(name)  # keeps the package's own __init__ from running
        package.__path__ = [str(path)]
        sys.modules[name] = package
    for module in MODULES:
        importlib.import_module("tensorflow." + module)
    pool = descriptor_pool.Default()
    with open(root / LIBRARY, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for name in EMBEDDED:
            pool.AddSerializedFile(embedded(data, name))
    return pool


def embedded(data, name):
    """The serialized definition of `name`: starts with its name, ends with the field `syntax`."""
    start = b"\x0a" + bytes([len(name)]) + name.encode()
    end = b"\x62\x06proto3"
    at = data.find(start)
    while at >= 0:
        blob = data[at:data.find(end, at) + len(end)]
        try:
            if descriptor_pb2.FileDescriptorProto.FromString(blob).message_type:
                return blob
        except Exception:  # the name stands in other places, too
            pass
        at = data.find(start, at + 1)
    sys.exit(f"{name} is not in {LIBRARY}")


def declared(path, kind):
    """Full names of the messages or enums one of our definition files declares, nested ones included."""
    scope, names = [], []
    for line in path.read_text().splitlines():
        line = line.split("//")[0].strip()
        if found := re.match(r"package (.*);", line):
            scope = [found[1]]
        elif found := re.match(r"(message|enum|oneof|service) (\w+) \{(\})?", line):
            scope.append(found[2])
            if found[1] == kind:
                names.append(".".join(scope))
            if found[3]:
                scope.pop()
        elif line == "}":
            scope.pop()
    return names


def scalar(field):
    """A value that is not the default and differs from field to field."""
    if field.enum_type is not None:
        return next((v.number for v in reversed(field.enum_type.values) if v.number), 0)
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        return f"{field.number}" if field.type == field.TYPE_STRING else b"\xff%d" % field.number
    if kind == field.CPPTYPE_BOOL:
        return True
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return field.number + 0.5
    # Signed, or above half of the range: a type of the wrong width or sign writes other bytes.
    return {field.CPPTYPE_INT32: -field.number, field.CPPTYPE_INT64: -(1 << 40) - field.number,
            field.CPPTYPE_UINT32: (1 << 31) + field.number, field.CPPTYPE_UINT64: (1 << 40) + field.number}[kind]


def fill(message, depth):
    """Fills every field, of each oneof the first member; messages within messages down to `depth`."""
    chosen = set()
    for field in sorted(message.DESCRIPTOR.fields, key=lambda f: f.number):
        group = field.containing_oneof
        if group is None or group.name not in chosen:
            set_field(message, field, depth)
            chosen.add(group.name if group else None)
    return message


def set_field(message, field, depth):
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        set_entry(getattr(message, field.name), entry, depth)
    elif entry is not None and depth == 0:
        pass
    elif entry is not None:
        target = getattr(message, field.name)
        target = target.add() if field.is_repeated else target
        target.SetInParent()
        fill(target, depth - 1)
    elif field.is_repeated:
        getattr(message, field.name).append(scalar(field))
    else:
        setattr(message, field.name, scalar(field))


def set_entry(target, entry, depth):
    key, value = (entry.fields_by_name[name] for name in ("key", "value"))
    if value.message_type is None:
        target[scalar(key)] = scalar(value)
    elif depth > 0:
        filled = target[scalar(key)]
        while not filled.ByteSize():  # an entry's empty message may be left out, or not
            fill(filled, depth - 1)
            depth += 1


def variants(descriptor):
    """The message with all fields, then one with each further member of a oneof alone."""
    new = message_factory.GetMessageClass(descriptor)
    yield fill(new(), 1)
    for group in descriptor.oneofs:
        for field in sorted(group.fields, key=lambda f: f.number)[1:]:
            message = new()
            set_field(message, field, 1)
            yield message


def record(name, data):
    return struct.pack("<I", len(name)) + name.encode() + struct.pack("<I", len(data)) + data


def main():
    pool = load()
    folder = HERE / "fixtures"
    folder.mkdir(exist_ok=True)
    enums = ""
    for path in sorted((HERE / "proto").glob("*.proto")):
        out = b""
        for name in declared(path, "message"):
            for message in variants(pool.FindMessageTypeByName(name)):
                out += record(name, message.SerializeToString(deterministic=True))
        for name in declared(path, "enum"):
            for value in pool.FindEnumTypeByName(name).values:
                if not value.name.startswith("DO_NOT_USE"):
                    enums += f"{name} {value.name} {value.number}\n"
        if out:
            (folder / path.with_suffix(".bin").name).write_bytes(out)
            print(f"{path.stem}: {len(out)} bytes")
    (folder / "enums.txt").write_text(enums)


if __name__ == "__main__":
    main()
