//! A graph case in executable form: a graph, its steps, and the nodes that they reach.

use crate::case::Want;
use graph::{AttrValue, GraphDef, NodeDef, TensorName};
use std::collections::{BTreeMap, BTreeSet};
use tensor::Tensor;

/// A graph case in executable form.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The graph.
    pub graph: GraphDef,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The tolerance, if it is not the default.
    pub tolerance: Option<f64>,
}

/// One step: feeds, fetches, and TensorFlow's answer.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Values of placeholders, by name.
    pub feeds: BTreeMap<String, Feed>,
    /// Fetched tensors, `name:0`.
    pub fetches: Vec<String>,
    /// Nodes that run without being fetched.
    pub targets: Vec<String>,
    /// What to expect.
    pub want: Want,
}

/// The value of a placeholder.
#[derive(Clone, Debug)]
pub enum Feed {
    /// A value.
    Value(Tensor),
    /// The value that this fetch had in its last step.
    Last(String),
}

impl Program {
    /// The ops that its steps run, including those in functions.
    pub fn ops(&self) -> BTreeSet<String> {
        let mut ops = BTreeSet::new();
        let (nodes, functions) = self.reached();
        ops.extend(nodes.iter().map(|node| node.op.clone()));
        for function in functions.iter().filter_map(|name| self.graph.library.functions.get(*name)) {
            ops.extend(function.nodes.iter().map(|node| node.op.clone()));
            // Calls of functions pass their arguments and results through these ops.
            ops.extend(function.signature.inputs.first().map(|_| "_Arg".to_string()));
            ops.extend(function.signature.outputs.first().map(|_| "_Retval".to_string()));
        }
        ops
    }

    /// Nodes and functions that no step reaches.
    pub fn idle(&self) -> Vec<String> {
        let (nodes, functions) = self.reached();
        let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let all = self.graph.nodes.iter().map(|node| node.name.as_str());
        let mut idle: Vec<String> = all.filter(|name| !names.contains(name)).map(str::to_string).collect();
        let all = self.graph.library.functions.keys();
        idle.extend(all.filter(|name| !functions.contains(name.as_str())).cloned());
        idle
    }

    /// The nodes that the steps need, and the functions they name.
    fn reached(&self) -> (Vec<&NodeDef>, BTreeSet<&str>) {
        let by_name: BTreeMap<&str, &NodeDef> = self.graph.nodes.iter().map(|node| (&*node.name, &**node)).collect();
        let asked = self.steps.iter().flat_map(|step| step.fetches.iter().chain(&step.targets));
        let mut waiting: Vec<&str> = asked.map(|name| TensorName::parse(name).node).collect();
        let (mut seen, mut nodes) = (BTreeSet::new(), Vec::new());
        while let Some(name) = waiting.pop() {
            let Some(node) = by_name.get(name).filter(|_| seen.insert(name)) else { continue };
            nodes.push(*node);
            waiting.extend(node.inputs.iter().map(|input| TensorName::parse(input).node));
        }
        let mut functions = BTreeSet::new();
        let mut waiting: Vec<&str> = nodes.iter().flat_map(|node| called(node)).collect();
        while let Some(name) = waiting.pop() {
            let Some(function) = self.graph.library.functions.get(name).filter(|_| functions.insert(name)) else {
                continue;
            };
            waiting.extend(function.nodes.iter().flat_map(|node| called(node)));
        }
        (nodes, functions)
    }
}

/// The functions that a node may name: its op, and those in its attributes.
fn called(node: &NodeDef) -> Vec<&str> {
    let mut names = vec![node.op.as_str()];
    for value in node.attrs.values() {
        match value {
            AttrValue::Func(function) => names.push(&function.name),
            AttrValue::List(list) => names.extend(list.funcs.iter().map(|function| function.name.as_str())),
            _ => {}
        }
    }
    names
}
