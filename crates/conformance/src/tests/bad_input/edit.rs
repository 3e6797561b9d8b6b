//! Changes of programs: nodes that are added, inputs and attributes that are replaced.

use crate::{Feed, Program};
use graph::{AttrValue, FunctionDef, NodeDef};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::Tensor;

/// Where the node under test is.
#[derive(Clone, Debug)]
pub enum Target {
    /// A node of the graph.
    Graph(usize),
    /// A node in the body of a function.
    Body(String, usize),
}

/// A program and one of its nodes.
#[derive(Clone)]
pub struct Sample {
    /// Where the program was written.
    pub place: String,
    pub program: Program,
    pub target: Target,
}

/// A node by name, op, inputs and attributes.
pub fn node(name: &str, op: &str, inputs: &[&str], attrs: &[(&str, AttrValue)]) -> NodeDef {
    NodeDef {
        name: name.to_string(),
        op: op.to_string(),
        inputs: inputs.iter().map(|input| input.to_string()).collect(),
        attrs: attrs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        ..NodeDef::default()
    }
}

/// A Const node.
pub fn constant(name: &str, value: &Tensor) -> NodeDef {
    node(name, "Const", &[], &[("dtype", value.dtype().into()), ("value", value.clone().into())])
}

impl Sample {
    /// The node under test.
    pub fn node(&self) -> &NodeDef {
        match &self.target {
            Target::Graph(place) => &self.program.graph.nodes[*place],
            Target::Body(function, place) => &self.program.graph.library.functions[function].nodes[*place],
        }
    }

    /// Its name in descriptions of mutants.
    pub fn in_body(&self) -> bool {
        matches!(self.target, Target::Body(..))
    }

    /// The same program with another node under test.
    pub fn with(&self, change: impl FnOnce(&mut NodeDef)) -> Sample {
        let mut sample = self.clone();
        match &self.target {
            Target::Graph(place) => change(Arc::make_mut(&mut sample.program.graph.nodes[*place])),
            Target::Body(name, place) => {
                sample.change_function(name, |function| change(Arc::make_mut(&mut function.nodes[*place])));
            }
        }
        sample
    }

    /// Replaces the value of an attribute of the node.
    pub fn with_attr(&self, name: &str, value: AttrValue) -> Sample {
        self.with(|node| _ = node.attrs.insert(name.to_string(), value))
    }

    /// Adds nodes next to the node under test, and replaces its input by the first output of the last of them.
    pub fn with_input_node(&self, input: usize, added: Vec<NodeDef>, output: &str) -> Sample {
        let Some(last) = added.last() else { return self.clone() };
        let name = if self.in_body() { format!("{}:{output}:0", last.name) } else { last.name.clone() };
        let mut sample = self.with(|node| node.inputs[input] = name);
        let added = added.into_iter().map(Arc::new);
        match &self.target {
            Target::Graph(_) => sample.program.graph.nodes.extend(added),
            Target::Body(name, _) => sample.change_function(name, |function| function.nodes.extend(added)),
        }
        sample
    }

    /// Replaces an input of the node by a value: fed if the node is in the graph and `fed`, else a constant.
    pub fn with_input(&self, input: usize, value: &Tensor, fed: bool) -> Sample {
        let name = format!("bad{input}");
        if self.in_body() || !fed {
            return self.with_input_node(input, vec![constant(&name, value)], "output");
        }
        let placeholder = node(&name, "Placeholder", &[], &[("dtype", value.dtype().into())]);
        let mut sample = self.with_input_node(input, vec![placeholder], "output");
        for step in &mut sample.program.steps {
            step.feeds.insert(name.clone(), Feed::Value(value.clone()));
        }
        sample
    }

    /// The value of an input of the node, if it is a constant or fed.
    pub fn input_value(&self, input: usize) -> Option<Tensor> {
        let name = self.node().inputs.get(input)?.split(':').next()?.to_string();
        let nodes = match &self.target {
            Target::Graph(_) => &self.program.graph.nodes,
            Target::Body(function, _) => &self.program.graph.library.functions[function].nodes,
        };
        let source = nodes.iter().find(|node| node.name == name)?;
        if let Some(AttrValue::Tensor(value)) = source.attrs.get("value") {
            return value.decode().ok();
        }
        let fed = self.program.steps.iter().rev().find_map(|step| step.feeds.get(&name));
        match fed? {
            Feed::Value(value) => Some(value.clone()),
            Feed::Last(_) => None,
        }
    }

    /// The number of inputs that are tensors.
    pub fn data_inputs(&self) -> usize {
        self.node().inputs.iter().filter(|input| !input.starts_with('^')).count()
    }

    fn change_function(&mut self, name: &str, change: impl FnOnce(&mut FunctionDef)) {
        let functions: &mut BTreeMap<_, _> = &mut self.program.graph.library.functions;
        if let Some(function) = functions.get_mut(name) {
            change(Arc::make_mut(function));
        }
    }
}
