//! Functions under construction: a body is a graph of its own, and a graph can be turned into a function.

use crate::builtin_ops::PLACEHOLDER;
use crate::flat::unknown_op;
use crate::{Arg, ArgType, Function, FunctionDef, Graph, Node, NodeDef, Output, Scope, Signature};
use rustc_hash::FxHashSet;
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::{DType, PartialShape};

/// A function under construction. Nodes of the body may read outputs of the graph around it: these become further
/// arguments, the captured values, which follow the others.
///
/// # Examples
///
/// ```
/// # use flowgrid_graph::{FunctionBuilder, Graph, OpSet, ShapeQuery, Signature, Signatures, OpFacts};
/// # use tensor::DType;
/// # struct Add(Signature, Signature);
/// # impl Signatures for Add {
/// #     fn signature(&self, op: &str) -> Option<&Signature> {
/// #         Some(if op == "Add" { &self.0 } else { &self.1 })
/// #     }
/// #     fn op_facts(&self, _: &str) -> OpFacts { OpFacts::PLAIN }
/// # }
/// # impl OpSet for Add {
/// #     fn infer(&self, _: &ShapeQuery<'_>) -> status::Result<Vec<tensor::PartialShape>> {
/// #         Ok(vec![tensor::PartialShape::unknown()])
/// #     }
/// # }
/// # let add = Signature::parse("Add(x: float, y: float) -> z: float").unwrap();
/// # let placeholder = Signature::parse("Placeholder() -> output: dtype; dtype: type; shape: shape = ?").unwrap();
/// # let graph = Graph::with_ops(std::sync::Arc::new(Add(add, placeholder)));
/// let outer = graph.root().op("Placeholder").attr("dtype", DType::F32).output();
/// let mut body = FunctionBuilder::new(&graph);
/// let x = body.arg(DType::F32, tensor::PartialShape::scalar());
/// let sum = x.scope().op("Add").input(&x).input(&outer).output();
/// let (function, captured) = body.finish(&graph, "add_outer", &[sum])?;
/// assert_eq!(captured, [outer]);
/// assert_eq!(graph.library().functions[&function.name].signature.inputs.len(), 2);
/// # Ok::<(), status::Error>(())
/// ```
pub struct FunctionBuilder {
    graph: Graph,
    args: Vec<Output>,
}

impl FunctionBuilder {
    /// A function for nodes of `outer`, with an empty body.
    pub fn new(outer: &Graph) -> FunctionBuilder {
        FunctionBuilder { graph: Graph::body_in(outer), args: Vec::new() }
    }

    /// The scope of the body.
    pub fn scope(&self) -> Scope {
        self.graph.root()
    }

    /// Adds an argument.
    pub fn arg(&mut self, dtype: DType, shape: PartialShape) -> Output {
        let name = format!("arg{}", self.args.len());
        let arg = self.graph.root().op(PLACEHOLDER).named(&name).attr("dtype", dtype).attr("shape", shape).output();
        self.args.push(arg.clone());
        arg
    }

    /// Adds the function to `outer`, under `name` or, if that is taken, a name that begins with it. Returns the function
    /// and the outputs of `outer` that it captured.
    pub fn finish(self, outer: &Graph, name: &str, results: &[Output]) -> Result<(Function, Vec<Output>)> {
        self.graph.check()?;
        let results: Vec<Output> = results.iter().map(|result| self.graph.captured(result)).collect();
        let (captured, placeholders) = self.graph.captures();
        let args: Vec<Output> = self.args.iter().chain(&placeholders).cloned().collect();
        let results: Vec<_> = results.into_iter().enumerate().map(|(at, one)| (format!("result{at}"), one)).collect();
        let name = outer.unused_function_name(name);
        let function = to_function(&self.graph, &name, &args, &results)?;
        for (inner, function) in self.graph.library().functions {
            if !outer.library().functions.contains_key(&inner) {
                outer.add_function((*function).clone());
            }
        }
        outer.add_function(function);
        Ok((Function { name, attrs: BTreeMap::new() }, captured))
    }
}

/// A function of the outputs `args`, which are placeholders of the graph, with the nodes on which its results depend and
/// the nodes with state.
pub fn to_function(graph: &Graph, name: &str, args: &[Output], results: &[(String, Output)]) -> Result<FunctionDef> {
    graph.check()?;
    let by_name = args.iter().map(|arg| arg.node().name()).collect();
    function_of(graph, name, (args, &by_name), results, None)
}

/// A function without arguments that computes these results from copies of all nodes on which they depend.
pub fn copied_function(graph: &Graph, name: &str, results: &[(String, Output)]) -> Result<FunctionDef> {
    let needed = ancestors(graph, results.iter().map(|(_, result)| result.node().clone()));
    function_of(graph, name, (&[], &FxHashSet::default()), results, Some(&needed))
}

fn function_of(
    graph: &Graph,
    name: &str,
    (args, arg_names): (&[Output], &FxHashSet<String>),
    results: &[(String, Output)],
    needed: Option<&FxHashSet<String>>,
) -> Result<FunctionDef> {
    let mut signature = Signature { name: name.to_string(), ..Signature::default() };
    signature.inputs = args.iter().map(|arg| argument(arg.node().name(), arg.dtype())).collect();
    let mut ret = BTreeMap::new();
    for (name, result) in results {
        ret.insert(name.clone(), source_name(graph, result, arg_names)?);
        signature.outputs.push(argument(name.clone(), result.dtype()));
    }
    let root = graph.root();
    let mut nodes = Vec::new();
    for id in 0..graph.len() {
        let Some(node) = Node::of(&root, id as u32) else { continue };
        let name = node.name();
        if arg_names.contains(&name) || needed.is_some_and(|needed| !needed.contains(&name)) {
            continue;
        }
        signature.stateful |= op_signature(graph, &node.op())?.stateful;
        nodes.push(Arc::new(body_node(graph, &node, arg_names)?));
    }
    Ok(FunctionDef { signature, nodes, ret, ..FunctionDef::default() })
}

/// The names of the nodes and of all nodes that they read or wait for.
fn ancestors(graph: &Graph, nodes: impl Iterator<Item = Node>) -> FxHashSet<String> {
    let mut found = FxHashSet::default();
    let mut waiting: Vec<Node> = nodes.collect();
    while let Some(node) = waiting.pop() {
        if !found.insert(node.name()) {
            continue;
        }
        waiting.extend(node.all_inputs().iter().map(|input| input.node().clone()));
        let def = node.def();
        let controls = def.inputs.iter().filter_map(|input| input.strip_prefix('^'));
        waiting.extend(controls.filter_map(|name| Node::find(&graph.root(), name)));
    }
    found
}

/// A node with its inputs in the syntax of function bodies.
fn body_node(graph: &Graph, node: &Node, args: &FxHashSet<String>) -> Result<NodeDef> {
    let mut def = (*node.def()).clone();
    let controls: Vec<String> = def.inputs.iter().filter(|input| input.starts_with('^')).cloned().collect();
    let data = node.all_inputs();
    let data = data.iter().map(|input| source_name(graph, input, args)).collect::<Result<Vec<_>>>()?;
    def.inputs = data.into_iter().chain(controls).collect();
    Ok(def)
}

fn source_name(graph: &Graph, output: &Output, args: &FxHashSet<String>) -> Result<String> {
    let def = output.node().def();
    if args.contains(&def.name) {
        return Ok(def.name.clone());
    }
    let mut names = output_names(&op_signature(graph, &def.op)?, &def)?;
    match output.index() < names.len() {
        true => Ok(names.swap_remove(output.index())),
        false => Err(invalid!("{} has no output {}", def.name, output.index())),
    }
}

/// `node:out:i` for each output of a node: the names that function bodies use.
pub fn output_names(signature: &Signature, node: &NodeDef) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for arg in &signature.outputs {
        let count = signature.arg_types(arg, node)?.len();
        names.extend((0..count).map(|place| format!("{}:{}:{place}", node.name, arg.name)));
    }
    Ok(names)
}

/// The signature of an op or of a function of the graph.
pub fn op_signature(graph: &Graph, op: &str) -> Result<Signature> {
    let function = graph.library().functions.get(op).map(|function| function.signature.clone());
    let found = function.or_else(|| graph.ops().signature(op).cloned());
    found.ok_or_else(|| unknown_op(op))
}

fn argument(name: String, dtype: DType) -> Arg {
    Arg { name, ty: ArgType::Fixed(dtype), number: None, is_ref: false }
}
