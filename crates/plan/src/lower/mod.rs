//! Lowers functional control flow and calls to plain graphs, so that their bodies can be partitioned by task.

mod body;
mod branch;
mod crossing;
mod inline;
mod repeat;

use graph::builtin_ops::{IDENTITY_N, NO_OP};
use graph::{
    AttrList, AttrValue, DeviceSpec, FlatGraph, Function, FunctionCall, FunctionLibrary, GraphDef, LOWERED, NodeDef,
    Signature, Signatures, TensorName,
};
use rustc_hash::FxHashMap;
use status::{Result, invalid, not_found};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::DType;

/// When functional ops are lowered.
#[derive(Clone, Debug, Default)]
pub struct LowerOptions {
    /// The task of nodes that name none: the master's own.
    pub home: DeviceSpec,
    /// Also lower conditionals that stay on one task. Their inputs then end where a branch is not taken, and a trace shows
    /// which one was.
    pub conditionals: bool,
}

/// Replaces `If`, `Case` and `While` nodes that request it by Switch, Merge and loops, and calls by the bodies of
/// their functions, where the bodies or their resources are on other tasks or the options say so. A replaced node is succeeded by one of
/// the same name with the same outputs; existing nodes keep their numbers, new ones follow. `None` if nothing is to
/// be lowered.
pub fn lower(graph: &FlatGraph, ops: &dyn Signatures, options: &LowerOptions) -> Result<Option<FlatGraph>> {
    if graph.library.functions.is_empty() {
        return Ok(None);
    }
    let mut lowering = Lowering::new(graph, ops, options);
    let mut place = 0;
    while let Some(node) = lowering.nodes.get(place).cloned() {
        if let Some(node) = node {
            lowering.visit(place, &node).map_err(|error| error.at_node(&shown(&node.name)))?;
        }
        place += 1;
    }
    if lowering.count == 0 {
        return Ok(None);
    }
    lowering.finish(graph, ops).map(Some)
}

/// Control flow on one device, which need not be lowered, is lowered up to this nesting of bodies.
const HOME_DEPTH: usize = 64;
/// Control flow on one device is lowered as long as its bodies take at most this memory.
const HOME_BYTES: usize = 16 << 20;

/// Marks calls created here: they are always inlined, and their bodies keep their own devices.
const OWN_CALL: &str = "_lower_as_multi_device_function";

struct Lowering<'a> {
    library: &'a FunctionLibrary,
    ops: &'a dyn Signatures,
    options: &'a LowerOptions,
    /// `None` for a replaced call to which no name refers.
    nodes: Vec<Option<Arc<NodeDef>>>,
    places: FxHashMap<String, usize>,
    /// Outputs that have moved to another tensor.
    outputs: FxHashMap<(String, u32), String>,
    /// Nodes that took over the control edges of another.
    controls: FxHashMap<String, String>,
    count: usize,
    /// For each node, how many bodies it is in.
    depths: Vec<usize>,
    /// How many bodies the nodes that are being added are in.
    depth: usize,
    /// An estimate of the memory of the nodes that were added.
    bytes: usize,
    /// Answers about functions: whether their bodies leave the task of a device, and whether they call themselves.
    leaving: FxHashMap<(&'a str, DeviceSpec), bool>,
    recursive: FxHashMap<String, bool>,
}

impl<'a> Lowering<'a> {
    fn new(graph: &'a FlatGraph, ops: &'a dyn Signatures, options: &'a LowerOptions) -> Lowering<'a> {
        let places = graph.nodes.iter().enumerate().map(|(place, node)| (node.def.name.clone(), place));
        Lowering {
            library: &graph.library,
            ops,
            options,
            nodes: graph.nodes.iter().map(|node| Some(node.def.clone())).collect(),
            places: places.collect(),
            outputs: FxHashMap::default(),
            controls: FxHashMap::default(),
            count: 0,
            depths: vec![0; graph.nodes.len()],
            depth: 0,
            bytes: 0,
            leaving: FxHashMap::default(),
            recursive: FxHashMap::default(),
        }
    }

    fn visit(&mut self, place: usize, node: &NodeDef) -> Result<()> {
        self.depth = self.depths[place];
        let Some(call) = self.function_call(node) else { return Ok(()) };
        if !self.wants(node, call) {
            return Ok(());
        }
        match call {
            FunctionCall::If => self.lower_if(place, node),
            FunctionCall::Case => self.lower_case(place, node),
            FunctionCall::While => self.lower_while(place, node),
            FunctionCall::Plain => self.inline(place, node),
        }
    }

    /// How a node calls functions: as its op does, or because its op is a function.
    fn function_call(&self, node: &NodeDef) -> Option<FunctionCall> {
        match self.library.functions.contains_key(&node.op) {
            true => Some(FunctionCall::Plain),
            false => self.ops.op_facts(&node.op).function_call,
        }
    }

    /// True if a node requests lowering and needs it.
    fn wants(&mut self, node: &NodeDef, call: FunctionCall) -> bool {
        if is_true(node, OWN_CALL) {
            return true;
        }
        let for_compiler = is_true(node, "_XlaMustCompile") || node.attrs.contains_key("_xla_compile_id");
        let asks = call == FunctionCall::Plain || is_true(node, "_lower_using_switch_merge");
        asks && !for_compiler && (self.may_lower_at_home(call) || self.crosses(node))
    }

    /// True for conditionals that stay on one task, as long as their bodies are few: they also run as they are.
    fn may_lower_at_home(&self, call: FunctionCall) -> bool {
        let is_conditional = matches!(call, FunctionCall::If | FunctionCall::Case);
        is_conditional && self.options.conditionals && self.depth < HOME_DEPTH && self.bytes < HOME_BYTES
    }

    fn signature(&self, op: &str) -> Result<&Signature> {
        let function = self.library.functions.get(op).map(|function| &function.signature);
        let signature = function.or_else(|| self.ops.signature(op));
        signature.ok_or_else(|| not_found!("Op type not registered '{op}'"))
    }

    /// A name that is not in use: `prefix/_7`.
    fn new_name(&mut self, prefix: &str) -> String {
        loop {
            let name = format!("{prefix}/_{}", self.count);
            self.count += 1;
            if !self.places.contains_key(&name) {
                return name;
            }
        }
    }

    fn add(&mut self, node: NodeDef) {
        self.bytes += node_bytes(&node);
        self.depths.push(self.depth);
        self.places.insert(node.name.clone(), self.nodes.len());
        self.nodes.push(Some(Arc::new(node)));
    }

    /// The current tensor for `text`.
    fn tensor(&self, text: &str) -> String {
        let mut now = text.to_string();
        loop {
            let name = TensorName::parse(&now);
            match self.outputs.get(&(name.node.to_string(), name.index.unwrap_or(0))) {
                Some(next) => now = next.clone(),
                None => return now,
            }
        }
    }

    fn waited_for(&self, name: &str) -> String {
        let mut now = name;
        while let Some(next) = self.controls.get(now) {
            now = next;
        }
        now.to_string()
    }

    /// The node that computes a tensor, if it exists.
    fn source(&self, tensor: &str) -> Option<&Arc<NodeDef>> {
        let place = self.places.get(TensorName::parse(tensor).node)?;
        self.nodes[*place].as_ref()
    }

    fn requested_device(&self, tensor: &str) -> String {
        self.source(tensor).map(|node| node.device.clone()).unwrap_or_default()
    }

    /// Adds a node with the name of the replaced one: it has its outputs, if any, and its control edges.
    fn leave_behind(&mut self, place: usize, node: &NodeDef, outputs: Vec<(String, DType)>, waits: Option<String>) {
        let (op, mut attrs) = match outputs.is_empty() {
            true => (NO_OP, BTreeMap::new()),
            false => {
                let types: Vec<DType> = outputs.iter().map(|(_, dtype)| *dtype).collect();
                (IDENTITY_N, BTreeMap::from([("T".to_string(), types.into())]))
            }
        };
        if self.function_call(node).is_some_and(|call| call != FunctionCall::Plain) {
            attrs.insert(LOWERED.to_string(), true.into());
        }
        let mut inputs: Vec<String> = outputs.into_iter().map(|(tensor, _)| tensor).collect();
        inputs.extend(waits.map(|name| format!("^{name}")));
        let (name, device) = (node.name.clone(), node.device.clone());
        self.nodes[place] = Some(Arc::new(NodeDef { name, op: op.to_string(), inputs, device, attrs, extra: None }));
    }

    fn finish(self, graph: &FlatGraph, ops: &dyn Signatures) -> Result<FlatGraph> {
        let nodes = self.nodes.iter().flatten().map(|node| self.rewired(node)).collect();
        let mut lowered = FlatGraph::with_library(graph.library.clone());
        lowered.versions = graph.versions.clone();
        lowered.extend(&GraphDef { nodes, ..GraphDef::default() }, ops)?;
        Ok(lowered)
    }

    /// The node with its inputs redirected to current tensors.
    fn rewired(&self, node: &Arc<NodeDef>) -> Arc<NodeDef> {
        let mut inputs: Vec<String> = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            match input.strip_prefix('^') {
                None => inputs.push(self.tensor(input)),
                Some(name) => {
                    let control = format!("^{}", self.waited_for(name));
                    if !inputs.contains(&control) {
                        inputs.push(control);
                    }
                }
            }
        }
        match inputs == node.inputs {
            true => node.clone(),
            false => Arc::new(NodeDef { inputs, ..(**node).clone() }),
        }
    }
}

/// The beginning of a node's name, for errors: the names of nodes in bodies in bodies are long.
fn shown(name: &str) -> String {
    name.chars().take(256).collect()
}

/// An estimate of the memory that a node takes.
fn node_bytes(node: &NodeDef) -> usize {
    let texts = node.inputs.iter().map(String::len).sum::<usize>() + 2 * node.name.len() + node.device.len();
    size_of::<NodeDef>() + 64 * (node.attrs.len() + node.inputs.len()) + texts
}

fn is_true(node: &NodeDef, attr: &str) -> bool {
    node.attrs.get(attr) == Some(&AttrValue::Bool(true))
}

/// Data inputs, and control inputs without their `^`.
fn split_inputs(node: &NodeDef) -> (Vec<&str>, Vec<&str>) {
    let (controls, data): (Vec<&str>, Vec<&str>) =
        node.inputs.iter().map(String::as_str).partition(|i| i.starts_with('^'));
    (data, controls.into_iter().map(|control| &control[1..]).collect())
}

fn function_attr(node: &NodeDef, attr: &str) -> Result<Arc<Function>> {
    match node.attrs.get(attr) {
        Some(AttrValue::Func(function)) => Ok(function.clone()),
        _ => Err(invalid!("{} without its function '{attr}'", node.op)),
    }
}

/// The `_class` attribute that colocates a node with another.
fn beside(name: &str) -> AttrValue {
    AttrValue::from(AttrList { strings: vec![format!("loc:@{name}").into()], ..AttrList::default() })
}

/// A call of a function that is inlined later.
fn own_call(name: &str, function: &Function, inputs: Vec<String>, device: &str) -> NodeDef {
    let mut attrs = function.attrs.clone();
    attrs.insert(OWN_CALL.to_string(), true.into());
    new_node(name, &function.name, inputs, device, attrs)
}

fn new_node(
    name: &str,
    op: &str,
    inputs: Vec<String>,
    device: &str,
    attrs: impl IntoIterator<Item = (String, AttrValue)>,
) -> NodeDef {
    NodeDef {
        name: name.to_string(),
        op: op.to_string(),
        inputs,
        device: device.to_string(),
        attrs: attrs.into_iter().collect(),
        extra: None,
    }
}

/// The attribute `T`.
fn typed(dtype: DType) -> (String, AttrValue) {
    ("T".to_string(), dtype.into())
}

fn output(name: &str, index: usize) -> String {
    match index {
        0 => name.to_string(),
        index => format!("{name}:{index}"),
    }
}
