//! Graphs written as text, one node a line: `name Op input input @device attr=value`.

use crate::{Device, Part};
use graph::{
    AttrKind, AttrList, AttrValue, ControlFlow, DeviceSpec, FlatGraph, Forwards, Function, FunctionCall, FunctionDef,
    GraphDef, NodeDef, OpFacts, Signature, Signatures, StaticValue,
};
use op::DeviceTypes;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

const OPS: &[&str] = &[
    "Const() -> output: dtype; value: tensor; dtype: type = float",
    "Placeholder() -> output: dtype; dtype: type = float",
    "Mul(x: T, y: T) -> z: T; T: type = float",
    "Add(x: T, y: T) -> z: T; T: type = float",
    "Neg(x: T) -> y: T; T: type = float",
    "Less(x: T, y: T) -> z: bool; T: type = float",
    "Identity(input: T) -> output: T; T: type = float",
    "IdentityN(input: [T]) -> output: [T]; T: list(type)",
    "NoOp()",
    "Shape(input: T) -> output: int32; T: type = float",
    "Split(axis: int32, value: T) -> output: num_split * T; num_split: int; T: type = float",
    "Print(input: T) -> output: T; T: type = float; stateful",
    "Act(); stateful",
    "VariableV2() -> ref: Ref(dtype); dtype: type = float; shape: shape = []; stateful",
    "Assign(ref: Ref(T), value: T) -> output_ref: Ref(T); T: type = float; uninitialized",
    "VarHandleOp() -> resource: resource; dtype: type = float; shared_name: string = \"\"; stateful",
    "ReadVariableOp(resource: resource) -> value: dtype; dtype: type = float; stateful",
    "AssignVariableOp(resource: resource, value: dtype); dtype: type = float; stateful",
    "Switch(data: T, pred: bool) -> output_false: T, output_true: T; T: type = float",
    "_SwitchN(data: T, output_index: int32) -> outputs: num_outs * T; num_outs: int >= 1; T: type",
    "RefSwitch(data: Ref(T), pred: bool) -> output_false: Ref(T), output_true: Ref(T); T: type = float",
    "Merge(inputs: N * T) -> output: T, value_index: int32; N: int >= 1; T: type = float",
    "Enter(data: T) -> output: T; T: type = float; frame_name: string; is_constant: bool = false; \
     parallel_iterations: int = 10",
    "Exit(data: T) -> output: T; T: type = float",
    "NextIteration(data: T) -> output: T; T: type = float",
    "LoopCond(input: bool) -> output: bool",
    "_Send(tensor: T); T: type; tensor_name: string; send_device: string; send_device_incarnation: int; \
     recv_device: string; client_terminated: bool = false; stateful",
    "_Recv() -> tensor: tensor_type; tensor_type: type; tensor_name: string; send_device: string; \
     send_device_incarnation: int; recv_device: string; client_terminated: bool = false; stateful",
    "If(cond: Tcond, input: [Tin]) -> output: [Tout]; Tcond: type = bool; Tin: list(type); Tout: list(type); \
     then_branch: func; else_branch: func; stateful",
    "StatelessIf(cond: Tcond, input: [Tin]) -> output: [Tout]; Tcond: type = bool; Tin: list(type); \
     Tout: list(type); then_branch: func; else_branch: func",
    "Case(branch_index: int32, input: [Tin]) -> output: [Tout]; Tin: list(type); Tout: list(type); \
     branches: list(func) >= 1; stateful",
    "While(input: [T]) -> output: [T]; T: list(type); cond: func; body: func; parallel_iterations: int = 10; stateful",
    "PartitionedCall(args: [Tin]) -> output: [Tout]; Tin: list(type); Tout: list(type); f: func",
    "StatefulPartitionedCall(args: [Tin]) -> output: [Tout]; Tin: list(type); Tout: list(type); f: func; stateful",
];

/// The ops of the tests.
pub struct Ops(FxHashMap<String, Signature>);

impl Signatures for Ops {
    fn signature(&self, op: &str) -> Option<&Signature> {
        self.0.get(op)
    }

    fn op_facts(&self, op: &str) -> OpFacts {
        let plain = OpFacts::PLAIN;
        match op {
            "Const" => OpFacts { static_value: StaticValue::Attribute, ..plain },
            "Placeholder" => OpFacts { is_placeholder: true, ..plain },
            "Identity" => OpFacts { forwards: Forwards::First, ..plain },
            "IdentityN" => OpFacts { forwards: Forwards::Each, ..plain },
            "Shape" => OpFacts { reads_shape_only: true, ..plain },
            "Switch" | "_SwitchN" | "RefSwitch" => OpFacts::of_control_flow(ControlFlow::Switch),
            "Merge" => OpFacts::of_control_flow(ControlFlow::Merge),
            "Enter" => OpFacts::of_control_flow(ControlFlow::Enter),
            "Exit" => OpFacts::of_control_flow(ControlFlow::Exit),
            "NextIteration" => OpFacts::of_control_flow(ControlFlow::NextIteration),
            "LoopCond" => OpFacts::of_control_flow(ControlFlow::LoopCond),
            "If" | "StatelessIf" => OpFacts { function_call: Some(FunctionCall::If), ..plain },
            "Case" => OpFacts { function_call: Some(FunctionCall::Case), ..plain },
            "While" => OpFacts { function_call: Some(FunctionCall::While), ..plain },
            "PartitionedCall" | "StatefulPartitionedCall" => {
                OpFacts { function_call: Some(FunctionCall::Plain), ..plain }
            }
            _ => plain,
        }
    }
}

pub fn ops() -> Ops {
    let signatures = OPS.iter().map(|text| Signature::parse(text).unwrap());
    Ops(signatures.map(|signature| (signature.name.clone(), signature)).collect())
}

/// A graph; `fn NAME(ARGS) -> RESULTS`, body lines, `ret NAME SOURCE`, `control NODE` and `end` make a function.
pub fn graph(text: &str) -> FlatGraph {
    FlatGraph::new(&def(text), &ops()).unwrap()
}

pub fn def(text: &str) -> GraphDef {
    let (ops, mut graph) = (ops(), GraphDef::default());
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        match line.strip_prefix("fn ") {
            Some(head) => {
                let function = function(head, &mut lines, &ops);
                graph.library.functions.insert(function.signature.name.clone(), Arc::new(function));
            }
            None => graph.nodes.push(Arc::new(node(line, &ops))),
        }
    }
    graph
}

fn function<'a>(head: &str, lines: &mut impl Iterator<Item = &'a str>, ops: &Ops) -> FunctionDef {
    let (head, attrs) = head.split_once(';').unwrap_or((head, ""));
    let mut function = FunctionDef {
        signature: Signature::parse(head).unwrap(),
        attrs: attrs.split_whitespace().map(|name| (name.to_string(), true.into())).collect(),
        nodes: Vec::new(),
        ret: BTreeMap::new(),
        control_ret: BTreeMap::new(),
        arg_attrs: BTreeMap::new(),
        resource_arg_unique_id: BTreeMap::new(),
        encoded: tensor::Bytes::new(),
    };
    for line in lines.take_while(|line| *line != "end") {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["ret", name, source] => drop(function.ret.insert(name.to_string(), source.to_string())),
            ["control", name] => drop(function.control_ret.insert(name.to_string(), name.to_string())),
            _ => function.nodes.push(Arc::new(node(line, ops))),
        }
    }
    function
}

fn node(line: &str, ops: &Ops) -> NodeDef {
    let mut words = line.split_whitespace();
    let (name, op) = (words.next().unwrap().to_string(), words.next().unwrap().to_string());
    let mut node = NodeDef { name, op, ..NodeDef::default() };
    for word in words {
        if let Some(device) = word.strip_prefix('@') {
            node.device = device.to_string();
        } else if let Some((key, value)) = word.split_once('=') {
            let value = attr(ops.signature(&node.op), key, value);
            node.attrs.insert(key.to_string(), value);
        } else {
            node.inputs.push(word.to_string());
        }
    }
    if node.op == "Const" && !node.attrs.contains_key("value") {
        node.attrs.insert("value".to_string(), Tensor::scalar(1f32).into());
    }
    node
}

fn attr(signature: Option<&Signature>, key: &str, text: &str) -> AttrValue {
    let Some(def) = signature.and_then(|signature| signature.attr(key)) else {
        return match text {
            "true" => true.into(),
            _ => AttrValue::from(AttrList {
                strings: text.split(',').map(|s| s.to_string().into()).collect(),
                ..AttrList::default()
            }),
        };
    };
    let dtype = |name: &str| DType::from_name(name).unwrap();
    let called = |name: &str| Arc::new(Function { name: name.to_string(), attrs: BTreeMap::new() });
    let items = text.split(',').filter(|item| !item.is_empty());
    match (def.kind, def.list) {
        (AttrKind::Type, true) => AttrValue::from(items.map(dtype).collect::<Vec<_>>()),
        (AttrKind::Func, true) => {
            AttrValue::from(AttrList { funcs: items.map(called).collect(), ..AttrList::default() })
        }
        (AttrKind::Type, false) => dtype(text).into(),
        (AttrKind::Func, false) => AttrValue::Func(called(text)),
        (AttrKind::Int, _) => text.parse::<i64>().unwrap().into(),
        (AttrKind::Bool, _) => (text == "true").into(),
        (AttrKind::Shape, _) => PartialShape::unknown().into(),
        _ => text.into(),
    }
}

/// Devices by short name, `ps:0` for `/job:ps/replica:0/task:0/device:CPU:0`.
pub fn devices(names: &[&str]) -> Vec<Device> {
    let spec = |(job, task): (&str, &str)| format!("/job:{job}/replica:0/task:{task}/device:CPU:0");
    let specs = names.iter().map(|name| DeviceSpec::parse(&spec(name.split_once(':').unwrap())).unwrap());
    specs.enumerate().map(|(i, spec)| Device::new(spec, i as u64 + 1, &DeviceTypes::default())).collect()
}

/// The nodes of a part, in order: `name Op inputs`.
pub fn lines(part: &Part) -> Vec<String> {
    let mut lines: Vec<String> = part.graph.nodes.iter().map(|node| line(node)).collect();
    lines.sort();
    lines
}

pub fn line(node: &NodeDef) -> String {
    [&[node.name.clone(), node.op.clone()], &node.inputs[..]].concat().join(" ")
}

/// What `text` says, a line each, sorted.
pub fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(|line| line.trim().to_string()).filter(|l| !l.is_empty()).collect();
    lines.sort();
    lines
}
