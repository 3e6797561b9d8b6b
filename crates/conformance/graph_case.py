"""Cases that are graphs: nodes, functions, and steps one after another in one session."""

import re
import shutil
import tempfile

from case_text import Bad, attr_value, dtype_name, dtype_of, error_line, session, spell_tensor, split, tensor_of, tf
import numpy as np
from tensorflow.core.framework import function_pb2, graph_pb2, node_def_pb2
from tensorflow.python.framework import op_def_registry, versions

PATIENCE = 20000  # milliseconds that one step may take


def is_one(lines):
    """Whether these are the lines of a graph case."""
    return any(line.split(" ", 1)[0] == "graph" for line in lines)


def answered(lines):
    """The lines of a case with what TensorFlow answers under each `run`."""
    lines = [line for line in lines if not re.match(r"\s*(out|error|ok)( |$)", line)]
    folder = tempfile.mkdtemp()
    try:
        with tf.Graph().as_default():
            return [line.replace(folder, "{tmp}") for line in Case(lines, folder).answered()]
    finally:
        shutil.rmtree(folder)


class Nodes:
    """The nodes of a graph or of a function's body, with the types of their outputs."""

    def __init__(self, case, args=()):
        self.case, self.defs = case, []
        # By name: for each output its type, and how a function's body calls it.
        self.outputs = {name: [(dtype, name)] for name, dtype in args}

    def add(self, name, op, words):
        """Adds the node of `node name op words`."""
        op_def = self.case.op_def(op)
        node = node_def_pb2.NodeDef(name=name, op=op)
        kinds = {attr.name: attr.type for attr in op_def.attr}
        inputs, controls = [], []
        for word in words:
            match = re.match(r"(\w+)=(.*)", word)
            if match:
                kind = kinds.get(match[1]) or guessed_kind(match[2])
                node.attr[match[1]].CopyFrom(attr_value(kind, match[2]))
            elif word.startswith("^"):
                controls.append(word)
            elif word.startswith("@"):
                node.device = word[1:]
            else:
                inputs.append(word)
        self.infer_attrs(op_def, node, inputs)
        node.input.extend([self.edge(word) for word in inputs] + controls)
        self.outputs[name] = output_names(op_def, node)
        self.defs.append(node)

    def output(self, word):
        """Type and name of an output; none for one that is made further below."""
        name, _, index = word.partition(":")
        found = self.outputs.get(name)
        if found is None:
            return None
        if int(index or 0) >= len(found):
            raise Bad(f"{name} has {len(found)} outputs")
        return found[int(index or 0)]

    def edge(self, word):
        return word

    def infer_attrs(self, op_def, node, inputs):
        """Adds types and counts that follow from the inputs."""
        at = 0
        for i, arg in enumerate(op_def.input_arg):
            count = self.known_count(arg, node)
            if count is None:
                later = [self.known_count(other, node) for other in op_def.input_arg[i + 1 :]]
                if None in later:
                    raise Bad(f"{node.name}: say the number of inputs of {arg.name}")
                count = len(inputs) - at - sum(later)
            found = [self.output(word) for word in inputs[at : at + count]]
            types = [one[0] for one in found if one]
            at += count
            if arg.number_attr and arg.number_attr not in node.attr:
                node.attr[arg.number_attr].i = count
            if arg.type_list_attr and arg.type_list_attr not in node.attr:
                node.attr[arg.type_list_attr].list.SetInParent()
                node.attr[arg.type_list_attr].list.type.extend(types)
            if arg.type_attr and arg.type_attr not in node.attr and types:
                node.attr[arg.type_attr].type = types[0]
        if at != len(inputs):
            raise Bad(f"{node.name}: {len(inputs)} inputs, but {op_def.name} takes {at}")

    def known_count(self, arg, node):
        if arg.number_attr:
            return node.attr[arg.number_attr].i if arg.number_attr in node.attr else None
        if arg.type_list_attr:
            return len(node.attr[arg.type_list_attr].list.type) if arg.type_list_attr in node.attr else None
        return 1


class Body(Nodes):
    """The nodes of a function's body: inputs are called `node:result:0` there."""

    def edge(self, word):
        found = self.output(word)
        if found is None:
            raise Bad(f"{word} is made further below")
        return found[1]


def guessed_kind(text):
    """The kind of an attribute that the op does not name, such as `_output_shapes`."""
    if text in ("true", "false"):
        return "bool"
    return "int" if re.fullmatch(r"-?\d+", text) else "list(string)" if text.startswith("[") else "string"


def output_names(op_def, node):
    """For each output its type, and its name in a function's body."""
    defaults = {attr.name: attr.default_value for attr in op_def.attr if attr.HasField("default_value")}

    def value(name):
        return node.attr[name] if name in node.attr else defaults[name]

    found = []
    for arg in op_def.output_arg:
        count = value(arg.number_attr).i if arg.number_attr else 1
        if arg.type_list_attr:
            types = list(value(arg.type_list_attr).list.type)
        else:
            types = [value(arg.type_attr).type if arg.type_attr else arg.type] * count
        found += [(dtype, f"{node.name}:{arg.name}:{i}") for i, dtype in enumerate(types)]
    return found


class Last:
    """What a fetch gave when it was last asked for."""

    def __init__(self, fetch):
        self.fetch = fetch


class Case:
    """A graph, functions, and steps."""

    def __init__(self, lines, folder):
        self.lines, self.folder = lines, folder
        self.producer, self.functions, self.feeds, self.last = versions.GRAPH_DEF_VERSION, {}, {}, {}
        self.nodes = self.into = Nodes(self)

    def answered(self):
        """All lines, with the answers under each `run`."""
        steps = self.read()
        graph = graph_pb2.GraphDef(node=self.nodes.defs)
        graph.versions.producer = self.producer
        graph.library.function.extend(self.functions.values())
        answers = self.answers(graph, steps)
        out, waiting = [], []
        for number, line in enumerate(self.lines):
            if split(line)[0] not in ("like", "shapes"):
                out, waiting = out + waiting, answers.get(number, [])
            out.append(line)
        return out + waiting

    def read(self):
        """Reads all lines; gives the steps as (line, fetches, feeds)."""
        steps = []
        for number, line in enumerate(self.lines):
            words = split(line.strip().replace("{tmp}", self.folder))
            match words[0]:
                case "graph":
                    self.producer = int(dict(word.split("=") for word in words[1:]).get("producer", self.producer))
                case "node":
                    self.into.add(words[1], words[2], words[3:])
                case "const":
                    dtype = dtype_name(tensor_of(words[2:])[0])
                    self.into.add(words[1], "Const", [f"dtype={dtype}", f"value=({' '.join(words[2:])})"])
                case "in":
                    self.feed(words[1], words[2:])
                case "function":
                    self.begin_function(words[1], words[2:])
                case "return":
                    self.end_function(words[1:])
                case "run":
                    steps.append([number, words[1:], dict(self.feeds), None, False])
                case "like":
                    steps[-1][3] = words[1]
                case "shapes":
                    steps[-1][4] = True
                case "tol" | "direct":
                    pass
                case word if not word.startswith("#"):
                    raise Bad(f"what is '{word}'?")
        return steps

    def op_def(self, op):
        found = self.functions[op].signature if op in self.functions else op_def_registry.get(op)
        if found is None:
            raise Bad(f"there is no op or function {op}")
        return found

    def feed(self, name, words):
        last = re.fullmatch(r"last\((.*)\)", words[0])
        if last:
            dtype, value = tf.dtypes.as_dtype(self.nodes.output(last[1])[0]), Last(last[1])
        else:
            dtype, _, value = tensor_of(words)
        if name not in self.nodes.outputs:
            self.nodes.add(name, "Placeholder", [f"dtype={dtype_name(dtype)}"])
        self.feeds[f"{name}:0"] = value

    def begin_function(self, name, words):
        args = [word.split("=") for word in words]
        self.into = Body(self, [(arg, dtype_of(dtype).as_datatype_enum) for arg, dtype in args])
        self.into.name, self.into.args = name, args

    def end_function(self, words):
        body, self.into = self.into, self.nodes
        function = function_pb2.FunctionDef(node_def=body.defs)
        signature = function.signature
        signature.name = body.name
        signature.is_stateful = any(self.op_def(node.op).is_stateful for node in body.defs)
        for arg, dtype in body.args:
            signature.input_arg.add(name=arg, type=dtype_of(dtype).as_datatype_enum)
        for word in words:
            if word.startswith("^"):
                signature.control_output.append(word[1:])
                function.control_ret[word[1:]] = word[1:]
                continue
            name, _, source = word.partition("=")
            dtype, source = body.output(source)
            signature.output_arg.add(name=name, type=dtype)
            function.ret[name] = source
        self.functions[body.name] = function

    def answers(self, graph, steps):
        """The lines under each `run`, by its place."""
        try:
            tf.import_graph_def(graph, name="")
        except (ValueError, TypeError, tf.errors.OpError) as error:
            if len(steps) != 1:
                raise Bad(f"a graph that TensorFlow refuses has one run: {error}")
            return {steps[0][0]: [refusal(steps[0][3], error)]}
        with session(PATIENCE) as sess:
            return {step[0]: self.answer(sess, *step[1:]) for step in steps}

    def answer(self, sess, fetches, feeds, like, shapes):
        """The lines under one `run`."""
        tensors = [word for word in fetches if not word.startswith("^")]
        names = [word if ":" in word else f"{word}:0" for word in tensors]
        feeds = {name: self.last[value.fetch] if isinstance(value, Last) else value for name, value in feeds.items()}
        try:
            results = sess.run(names + [word[1:] for word in fetches if word.startswith("^")], feeds)
        except tf.errors.OpError as error:
            return [error_line(like, error.error_code, error.message)]
        graph, lines = tf.compat.v1.get_default_graph(), []
        width = max(map(len, tensors), default=0)
        # Python wraps what GetSessionHandle gives.
        self.last.update({word: getattr(array, "handle", array) for word, array in zip(tensors, results)})
        for word, name, array in zip(tensors, names, results):
            dtype = graph.get_tensor_by_name(name).dtype.base_dtype
            text = spell_tensor(dtype, array)
            if shapes:
                text = f"{dtype_name(dtype)}[{','.join(map(str, np.shape(array)))}] any"
            lines.append(f"out {word.ljust(width)} {text}")
        return lines or ["ok"]


def refusal(like, error):
    if isinstance(error, tf.errors.OpError):
        return error_line(like, error.error_code, error.message)
    return error_line(like, 3, str(error))
