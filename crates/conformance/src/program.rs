//! A graph case that can be run: a graph, its steps, and what of it they reach.

use crate::case::Want;
use graph::{AttrValue, GraphDef, NodeDef, TensorName};
use std::collections::{BTreeMap, BTreeSet};
use tensor::Tensor;

/// A graph case that can be run.
#[derive(Debug, Default)]
pub struct Program {
    /// Its graph.
    pub graph: GraphDef,
    /// What is run, in order.
    pub steps: Vec<Step>,
    /// Tolerance, if it is not the usual one.
    pub tolerance: Option<f64>,
}

/// One step: what is fed and asked for, and what TensorFlow answered.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// What placeholders are fed, by name.
    pub feeds: BTreeMap<String, Feed>,
    /// Tensors asked for, `name:0`.
    pub fetches: Vec<String>,
    /// Nodes that only run.
    pub targets: Vec<String>,
    /// What to expect.
    pub want: Want,
}

/// What a placeholder is fed.
#[derive(Clone, Debug)]
pub enum Feed {
    /// A value.
    Value(Tensor),
    /// What this fetch gave when it was last asked for.
    Last(String),
}

impl Program {
    /// The ops that its steps run, those of functions included.
    pub fn ops(&self) -> BTreeSet<String> {
        let mut ops = BTreeSet::new();
        let (nodes, functions) = self.reached();
        ops.extend(nodes.iter().map(|node| node.op.clone()));
        for function in functions.iter().filter_map(|name| self.graph.library.functions.get(*name)) {
            ops.extend(function.nodes.iter().map(|node| node.op.clone()));
            // What a call hands over goes through these.
            ops.extend(function.signature.inputs.first().map(|_| "_Arg".to_string()));
            ops.extend(function.signature.outputs.first().map(|_| "_Retval".to_string()));
        }
        ops
    }

    /// Nodes and functions that stand there and that no step reaches.
    pub fn idle(&self) -> Vec<String> {
        let (nodes, functions) = self.reached();
        let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let all = self.graph.nodes.iter().map(|node| node.name.as_str());
        let mut idle: Vec<String> = all.filter(|name| !names.contains(name)).map(str::to_string).collect();
        let all = self.graph.library.functions.keys();
        idle.extend(all.filter(|name| !functions.contains(name.as_str())).cloned());
        idle
    }

    /// The nodes that the steps need, and the functions those name.
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

/// The functions a node may name: its op, and those in its attributes.
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
