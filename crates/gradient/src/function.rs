//! The gradient of a function, as a function. It takes the arguments, then the gradients of the results, and returns
//! the gradients of the arguments.

use crate::nodes::{densify, zeros_like};
use crate::walk::{GradientOptions, gradients_with};
use graph::builtin_ops::PLACEHOLDER;
use graph::{
    Arg, ArgType, FunctionDef, FunctionLibrary, Graph, Node, NodeDef, Output, op_signature, output_names, to_function,
};
use op::Registry;
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use std::sync::Arc;
use tensor::DType;

/// Returns the gradient function of `def`, whose attributes must all have values. The gradient of an argument on which
/// no result depends is zero.
pub fn differentiate(registry: &Arc<Registry>, def: &FunctionDef, library: &FunctionLibrary) -> Result<FunctionDef> {
    let graph = Graph::with_ops(registry.clone());
    // The signatures of other functions are not needed: a library may be large, and each of its functions asks.
    for function in def.nodes.iter().filter_map(|node| library.functions.get(&node.op)) {
        graph.add_function((**function).clone());
    }
    let mut body = Body { graph, sources: FxHashMap::default(), args: Vec::new() };
    let xs = body.add_args(&def.signature.inputs)?;
    body.add_nodes(def)?;
    let ys = body.results(def)?;
    let dys = body.add_result_gradients(&def.signature.outputs)?;
    let options = GradientOptions { grad_ys: dys.into_iter().map(Some).collect(), ..GradientOptions::default() };
    let found = gradients_with(registry, &ys, &xs, &options)?;
    let gradients: Vec<Output> = xs
        .iter()
        .zip(found)
        .map(|(x, gradient)| gradient.map_or_else(|| zeros_like(x), |gradient| densify(&gradient)))
        .collect();
    body.graph.check()?;
    body.into_function(def, &gradients)
}

/// The body of a function as a graph under construction.
struct Body {
    graph: Graph,
    /// The outputs that `arg`, `node:out:i` and `node:out` refer to.
    sources: FxHashMap<String, Output>,
    /// Arguments, in order; each is a placeholder in the graph.
    args: Vec<Output>,
}

impl Body {
    fn add_args(&mut self, args: &[Arg]) -> Result<Vec<Output>> {
        let mut added = Vec::new();
        for arg in args {
            let placeholder = self.add_arg(&arg.name, fixed(arg)?);
            self.sources.insert(arg.name.clone(), placeholder.clone());
            self.sources.insert(format!("{}:0", arg.name), placeholder.clone());
            added.push(placeholder);
        }
        Ok(added)
    }

    fn add_arg(&mut self, name: &str, dtype: DType) -> Output {
        let arg = self.graph.root().op(PLACEHOLDER).named(name).attr("dtype", dtype).output();
        self.args.push(arg.clone());
        arg
    }

    fn add_result_gradients(&mut self, results: &[Arg]) -> Result<Vec<Output>> {
        results.iter().map(|result| Ok(self.add_arg(&format!("grad_{}", result.name), fixed(result)?))).collect()
    }

    /// Adds the nodes of the body, each after its inputs.
    fn add_nodes(&mut self, def: &FunctionDef) -> Result<()> {
        let mut made: FxHashMap<String, Node> = FxHashMap::default();
        for place in order(def) {
            let node = &def.nodes[place];
            if !self.ready(node, &made) {
                return Err(missing_input(def, node));
            }
            made.insert(node.name.clone(), self.add_node(node, &made)?);
        }
        match def.nodes.iter().find(|node| !made.contains_key(&node.name)) {
            Some(node) => Err(missing_input(def, node)),
            None => Ok(()),
        }
    }

    fn ready(&self, node: &NodeDef, made: &FxHashMap<String, Node>) -> bool {
        node.inputs.iter().all(|input| match input.strip_prefix('^') {
            Some(control) => made.contains_key(control) || self.sources.contains_key(control),
            None => self.sources.contains_key(input),
        })
    }

    fn add_node(&mut self, node: &NodeDef, made: &FxHashMap<String, Node>) -> Result<Node> {
        let signature = op_signature(&self.graph, &node.op)?;
        let mut builder = self.graph.root().op(&node.op).named(&node.name);
        let mut data = node.inputs.iter().filter(|input| !input.starts_with('^'));
        for arg in &signature.inputs {
            let count = signature.arg_types(arg, node)?.len();
            let group: Vec<Output> =
                data.by_ref().take(count).filter_map(|input| self.sources.get(input).cloned()).collect();
            builder = builder.inputs(&group);
        }
        for control in node.inputs.iter().filter_map(|input| input.strip_prefix('^')) {
            if let Some(node) = made.get(control) {
                builder = builder.after(node);
            }
        }
        for (name, value) in &node.attrs {
            builder = builder.attr(name, value.clone());
        }
        let built = if node.device.is_empty() { builder.node() } else { builder.on(&node.device).node() };
        self.graph.check()?;
        for (place, name) in output_names(&signature, node)?.into_iter().enumerate() {
            if let Some(short) = name.strip_suffix(":0") {
                self.sources.insert(short.to_string(), built.output(place));
            }
            self.sources.insert(name, built.output(place));
        }
        Ok(built)
    }

    fn results(&self, def: &FunctionDef) -> Result<Vec<Output>> {
        let of_result = |result: &Arg| {
            let source = def.ret.get(&result.name).and_then(|source| self.sources.get(source));
            source.cloned().ok_or_else(|| invalid!("Function result '{}' is missing", result.name))
        };
        def.signature.outputs.iter().map(of_result).collect()
    }

    /// Returns the graph as a function of its placeholders.
    fn into_function(self, def: &FunctionDef, gradients: &[Output]) -> Result<FunctionDef> {
        let named = |(place, gradient): (usize, &Output)| (format!("gradient_{place}"), gradient.clone());
        let results: Vec<(String, Output)> = gradients.iter().enumerate().map(named).collect();
        to_function(&self.graph, &format!("{}_grad", def.signature.name), &self.args, &results)
    }
}

/// The nodes of a body in topological order, without those on cycles and behind them.
fn order(def: &FunctionDef) -> Vec<usize> {
    let places = def.nodes.iter().enumerate().map(|(place, node)| (node.name.as_str(), place));
    let places: FxHashMap<&str, usize> = places.collect();
    let mut waiting = vec![0usize; def.nodes.len()];
    let mut readers = vec![Vec::new(); def.nodes.len()];
    for (place, node) in def.nodes.iter().enumerate() {
        for input in &node.inputs {
            let name = input.strip_prefix('^').unwrap_or(input);
            let source = places.get(name.split(':').next().unwrap_or(name));
            waiting[place] += usize::from(source.is_some());
            source.into_iter().for_each(|&source| readers[source].push(place));
        }
    }
    let mut order: Vec<usize> = (0..waiting.len()).filter(|&place| waiting[place] == 0).collect();
    let mut next = 0;
    while let Some(&place) = order.get(next) {
        next += 1;
        for &reader in &readers[place] {
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                order.push(reader);
            }
        }
    }
    order
}

fn missing_input(def: &FunctionDef, node: &NodeDef) -> status::Error {
    let (function, node) = (&def.signature.name, &node.name);
    invalid!("Function {function}: node '{node}' has an input that does not exist or depends on the node itself")
}

fn fixed(arg: &Arg) -> Result<DType> {
    match (&arg.ty, &arg.number) {
        (ArgType::Fixed(dtype), None) => Ok(*dtype),
        _ => Err(invalid!("Argument '{}' of a function must be one tensor of a fixed type", arg.name)),
    }
}
