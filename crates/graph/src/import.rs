//! Importing a GraphDef into a graph under construction.

use crate::{
    AttrList, AttrValue, ControlFlow, Graph, GraphDef, Node, NodeDef, OpFacts, OpSet, Output, Scope, Signature,
    TensorName,
};
use bytes::Bytes;
use status::{Error, Result, invalid};
use std::collections::BTreeMap;

/// Options of an import.
#[derive(Default)]
pub struct ImportOptions {
    /// Prepended to every name, with a slash; empty for none.
    pub prefix: String,
    /// Replaces inputs by outputs of the target graph: `x:0` by an output, `^x` by the node of any output.
    pub input_map: BTreeMap<String, Output>,
}

impl Graph {
    /// Adds the nodes of `def` and returns them in the same order. The producer version of the graph becomes that of
    /// `def` if it is lower.
    pub fn import(&self, def: &GraphDef, options: &ImportOptions) -> Result<Vec<Node>> {
        let scope = match options.prefix.is_empty() {
            true => self.root(),
            false => self.root().named(&options.prefix),
        };
        for function in def.library.functions.values() {
            self.add_function((**function).clone());
        }
        let mut built_nodes: BTreeMap<&str, Node> = BTreeMap::new();
        let mut loops = Vec::new();
        for &place in &order(def, self.ops().as_ref())? {
            let node = import_node(&scope, def, place, &built_nodes, options, &mut loops)?;
            built_nodes.insert(&def.nodes[place].name, node);
        }
        self.check()?;
        self.lower_producer(def.versions.producer);
        for (merge, place, source) in &loops {
            let source = TensorName::parse(source);
            self.close_loop(
                &built_nodes[*merge],
                *place,
                &built_nodes[source.node].output(source.index.unwrap_or(0) as usize),
            );
        }
        Ok(def.nodes.iter().filter_map(|node| built_nodes.remove(node.name.as_str())).collect())
    }
}

/// Back edges of loops: the node, the index of the input, and the source, which is created later.
type Loops<'a> = Vec<(&'a str, usize, &'a str)>;

fn import_node<'a>(
    scope: &Scope,
    def: &'a GraphDef,
    place: usize,
    built_nodes: &BTreeMap<&str, Node>,
    options: &ImportOptions,
    loops: &mut Loops<'a>,
) -> Result<Node> {
    let node = &def.nodes[place];
    let signature = scope.graph().ops().signature(&node.op).cloned();
    let signature = signature
        .or_else(|| scope.graph().library().functions.get(&node.op).map(|function| function.signature.clone()))
        .ok_or_else(|| crate::flat::unknown_op(&node.op))?;
    let mut builder = scope.op(&node.op).named(&node.name);
    let mut inputs = Vec::new();
    for text in &node.inputs {
        let name = TensorName::parse(text);
        match name.index {
            None => match options.input_map.get(text) {
                Some(output) => builder = builder.after(output.node()),
                None => builder = builder.after(&built_nodes[name.node]),
            },
            Some(index) => {
                let mapped = options.input_map.get(text).or_else(|| options.input_map.get(&format!("{text}:0")));
                let source = built_nodes.get(name.node).map(|source| source.output(index as usize));
                inputs.push(match mapped.cloned().or(source) {
                    Some(input) => input,
                    // Until the loop is closed, its initial value takes the place of the back edge.
                    None => {
                        loops.push((&node.name, inputs.len(), text));
                        entry(node, built_nodes)?
                    }
                });
            }
        }
    }
    let mut inputs = inputs.into_iter();
    for arg in &signature.inputs {
        let count = signature.arg_types(arg, node)?.len();
        let group: Vec<Output> = inputs.by_ref().take(count).collect();
        builder = builder.inputs(&group);
    }
    if inputs.next().is_some() {
        return Err(too_many_inputs(node, &signature)?);
    }
    for (name, value) in &node.attrs {
        builder = match name.as_str() {
            "_class" => builder.attr(name, beside(value, scope.prefix())),
            _ => builder.attr(name, value.clone()),
        };
    }
    if !node.device.is_empty() {
        builder = builder.on(&node.device);
    }
    let built = builder.node();
    if loops.last().is_some_and(|(merge, _, _)| *merge == node.name) {
        built.forget_shapes();
    }
    Ok(built)
}

/// The error of a node with more inputs than its op takes.
fn too_many_inputs(node: &NodeDef, signature: &Signature) -> Result<Error> {
    let expected: Vec<String> = signature.input_types(node)?.iter().map(|dtype| dtype.to_string()).collect();
    Ok(invalid!(
        "NodeDef expected inputs '{}' do not match {} inputs specified; Op<name={}>; NodeDef: {{{{node {}}}}}",
        expected.join(", "),
        node.inputs.iter().filter(|name| !name.starts_with('^')).count(),
        node.op,
        node.name
    ))
}

/// The input of a loop's Merge that comes from outside the loop.
fn entry(node: &NodeDef, built_nodes: &BTreeMap<&str, Node>) -> Result<Output> {
    let outside = |text: &String| {
        let name = TensorName::parse(text);
        Some(built_nodes.get(name.node)?.output(name.index? as usize))
    };
    let found = node.inputs.iter().find_map(outside);
    found.ok_or_else(|| invalid!("The Merge '{}' of a loop has no input from outside the loop", node.name))
}

/// Adds the prefix to colocation constraints.
fn beside(groups: &AttrValue, prefix: &str) -> AttrValue {
    let AttrValue::List(groups) = groups else { return groups.clone() };
    let prefixed = |group: &Bytes| match std::str::from_utf8(group).ok().and_then(|group| group.strip_prefix("loc:@")) {
        Some(name) => format!("loc:@{prefix}{name}").into(),
        None => group.clone(),
    };
    AttrValue::from(AttrList { strings: groups.strings.iter().map(prefixed).collect(), ..(**groups).clone() })
}

/// True for a back edge: from NextIteration to Merge.
fn closes_loop(source: OpFacts, consumer: OpFacts) -> bool {
    source.is(ControlFlow::NextIteration) && consumer.is(ControlFlow::Merge)
}

/// The nodes in topological order, ignoring back edges.
fn order(def: &GraphDef, ops: &dyn OpSet) -> Result<Vec<usize>> {
    let facts: Vec<OpFacts> = def.nodes.iter().map(|node| ops.op_facts(&node.op)).collect();
    let places: BTreeMap<&str, usize> = def.nodes.iter().enumerate().map(|(i, node)| (node.name.as_str(), i)).collect();
    let mut waiting = vec![0usize; def.nodes.len()];
    let mut consumers = vec![Vec::new(); def.nodes.len()];
    for (place, node) in def.nodes.iter().enumerate() {
        for text in &node.inputs {
            let source = *places
                .get(TensorName::parse(text).node)
                .ok_or_else(|| invalid!("Node '{}': Unknown input node '{text}'", node.name))?;
            if closes_loop(facts[source], facts[place]) {
                continue;
            }
            waiting[place] += 1;
            consumers[source].push(place);
        }
    }
    let mut ready: std::collections::VecDeque<usize> = (0..waiting.len()).filter(|&i| waiting[i] == 0).collect();
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(place) = ready.pop_front() {
        order.push(place);
        for &consumer in &consumers[place] {
            waiting[consumer] -= 1;
            if waiting[consumer] == 0 {
                ready.push_back(consumer);
            }
        }
    }
    if order.len() < waiting.len() {
        return Err(invalid!("{} nodes in a cycle", waiting.len() - order.len()));
    }
    Ok(order)
}
