//! A graph under construction: nodes with their types and static shapes.

use crate::builtin_ops::PLACEHOLDER;
use crate::signature::Types;
use crate::{
    AttrValue, Edge, FunctionDef, FunctionLibrary, GraphDef, Node, NodeDef, NodeId, Output, Scope, Signature,
    Signatures, Versions,
};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use status::{Error, Result};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

/// The version of TensorFlow's graph format this library writes.
const PRODUCER: i32 = 2474;

/// A graph that is being built; a cheap shared handle.
///
/// Building never fails on the spot: the graph keeps the first error, and `check` returns it.
#[derive(Clone)]
pub struct Graph {
    inner: Arc<Mutex<Inner>>,
    ops: Arc<dyn OpSet>,
}

/// What a graph needs to know about ops in order to build nodes.
pub trait OpSet: Signatures + Send + Sync {
    /// Shapes of a new node's outputs; an error if its inputs are invalid.
    fn infer(&self, query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>>;
}

/// The input of a shape function.
pub struct ShapeQuery<'a> {
    /// The node.
    pub def: &'a NodeDef,
    /// Its op.
    pub signature: &'a Signature,
    /// Shapes of its inputs.
    pub inputs: &'a [PartialShape],
    /// Values of the inputs that are known statically.
    pub constants: &'a [Option<Tensor>],
    /// Type and shape of the variables behind inputs that are resource handles, where known.
    pub variables: &'a [Option<(DType, PartialShape)>],
    /// The number of its outputs.
    pub outputs: usize,
}

impl ShapeQuery<'_> {
    /// The value of an attribute, or its default.
    pub fn attr(&self, name: &str) -> Result<&AttrValue> {
        self.signature.value(self.def, name)
    }
}

/// A built node.
#[derive(Clone)]
pub(crate) struct Built {
    pub def: Arc<NodeDef>,
    pub inputs: Vec<Edge>,
    pub types: Types,
    pub shapes: Vec<PartialShape>,
    pub constant: Option<Tensor>,
    pub variable: Option<(DType, PartialShape)>,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub nodes: Vec<Built>,
    pub names: FxHashMap<String, NodeId>,
    pub taken: FxHashMap<String, u32>,
    pub error: Option<Error>,
    pub collections: BTreeMap<String, Vec<AttrValue>>,
    pub library: FunctionLibrary,
    pub seed: Option<i64>,
    /// The lowest producer version of the imported graphs.
    pub producer: Option<i32>,
    pub finalized: bool,
    /// Set if the graph is the body of a function.
    pub body: Option<Body>,
}

/// What the body of a function takes from the graphs around it.
pub(crate) struct Body {
    /// How many functions are around it, with itself.
    depth: usize,
    /// Outputs of other graphs, with the placeholders that stand for them.
    captured: Vec<(Output, Output)>,
}

impl Graph {
    /// An empty graph of these ops.
    pub fn with_ops(ops: Arc<dyn OpSet>) -> Graph {
        Graph { inner: Arc::default(), ops }
    }

    /// The body of a function that nodes of `outer` will call.
    pub(crate) fn body_in(outer: &Graph) -> Graph {
        let graph = Graph::with_ops(outer.ops.clone());
        {
            let (mut inner, outer) = (graph.lock(), outer.lock());
            inner.body =
                Some(Body { depth: outer.body.as_ref().map_or(0, |body| body.depth) + 1, captured: Vec::new() });
            inner.library = outer.library.clone();
            inner.seed = outer.seed;
        }
        graph
    }

    /// The number of functions around a node of this graph.
    pub(crate) fn depth(&self) -> usize {
        self.lock().body.as_ref().map_or(0, |body| body.depth)
    }

    /// The output of this graph that stands for an output of this graph or, if this is the body of a function, of a graph
    /// around it.
    pub(crate) fn captured(&self, output: &Output) -> Output {
        if output.scope().graph().is_same(self) {
            return output.clone();
        }
        let known = |body: &Body| body.captured.iter().find(|(outer, _)| outer == output).map(|(_, own)| own.clone());
        if let Some(own) = self.lock().body.as_ref().and_then(known) {
            return own;
        }
        let name = format!("captured_{}", output.node().name().replace('/', "_"));
        let built = self.root().op(PLACEHOLDER).named(&name).attr("dtype", output.dtype());
        let own = built.attr("shape", output.shape()).output();
        if let Some(body) = &mut self.lock().body {
            body.captured.push((output.clone(), own.clone()));
        }
        own
    }

    /// What was captured: the outputs of other graphs, and the placeholders that stand for them.
    pub(crate) fn captures(&self) -> (Vec<Output>, Vec<Output>) {
        self.lock().body.as_ref().map(|body| body.captured.iter().cloned().unzip()).unwrap_or_default()
    }

    /// A name for a function that no function of the graph has.
    pub(crate) fn unused_function_name(&self, wanted: &str) -> String {
        let inner = self.lock();
        let taken = |name: &String| inner.library.functions.contains_key(name);
        let numbered = (1..).map(|number| format!("{wanted}_{number}"));
        std::iter::once(wanted.to_string()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
    }

    /// The root scope.
    pub fn root(&self) -> Scope {
        Scope::root(self)
    }

    /// Returns the first building error, if any.
    pub fn check(&self) -> Result<()> {
        self.lock().error.clone().map_or(Ok(()), Err)
    }

    /// Makes the graph read-only: adding a node is a building error from now on.
    pub fn finalize(&self) {
        self.lock().finalized = true;
    }

    /// True after `finalize`.
    pub fn is_finalized(&self) -> bool {
        self.lock().finalized
    }

    /// Records an error, unless one was recorded before.
    pub fn fail(&self, error: Error) {
        self.lock().error.get_or_insert(error);
    }

    /// The graph built so far; the first building error, if there was one.
    pub fn to_def(&self) -> Result<GraphDef> {
        self.check()?;
        Ok(self.def_from(0))
    }

    /// The number of nodes; nodes are numbered in creation order.
    pub fn len(&self) -> usize {
        self.lock().nodes.len()
    }

    /// True if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The nodes created after the first `first`: the part a session has to send to its master.
    pub fn def_from(&self, first: usize) -> GraphDef {
        let inner = self.lock();
        GraphDef {
            nodes: inner.nodes[first.min(inner.nodes.len())..].iter().map(|node| node.def.clone()).collect(),
            library: inner.library.clone(),
            versions: Versions { producer: inner.producer.unwrap_or(PRODUCER), ..Versions::default() },
            ..GraphDef::default()
        }
    }

    /// The ops this graph is built of.
    pub fn ops(&self) -> &Arc<dyn OpSet> {
        &self.ops
    }

    /// True if both handles refer to the same graph.
    pub fn is_same(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Adds a function that nodes may call.
    pub fn add_function(&self, function: FunctionDef) {
        let name = function.signature.name.clone();
        self.lock().library.functions.insert(name, Arc::new(function));
    }

    /// The functions nodes may call.
    pub fn library(&self) -> FunctionLibrary {
        self.lock().library.clone()
    }

    /// Adds a value to a collection.
    pub fn add_to_collection(&self, collection: &str, value: impl Into<AttrValue>) {
        self.lock().collections.entry(collection.to_string()).or_default().push(value.into());
    }

    /// The values of a collection, in the order they were added.
    pub fn collection(&self, collection: &str) -> Vec<AttrValue> {
        self.lock().collections.get(collection).cloned().unwrap_or_default()
    }

    /// The names of all collections.
    pub fn collections(&self) -> Vec<String> {
        self.lock().collections.keys().cloned().collect()
    }

    /// Sets the graph-level random seed. Ops without a seed of their own then draw the same numbers in every session.
    pub fn set_seed(&self, seed: i64) {
        self.lock().seed = Some(seed);
    }

    /// The seed pair of a random op that was given `seed`, by TensorFlow's rule.
    pub fn seeds(&self, seed: Option<i64>) -> (i64, i64) {
        const DEFAULT: i64 = 87_654_321;
        let inner = self.lock();
        match (inner.seed, seed) {
            (None, None) => (0, 0),
            (None, Some(seed)) => (DEFAULT, seed),
            (Some(graph), None) => (graph, inner.nodes.len() as i64),
            (Some(0), Some(0)) => (0, i64::from(i32::MAX)),
            (Some(graph), Some(seed)) => (graph, seed),
        }
    }

    /// Lowers the producer version; ops that were removed in a later version become usable again.
    pub(crate) fn lower_producer(&self, version: i32) {
        let mut inner = self.lock();
        inner.producer = Some(inner.producer.unwrap_or(PRODUCER).min(version));
    }

    /// Replaces the provisional input of a loop's `merge` by the back edge, which is created after it.
    pub(crate) fn close_loop(&self, merge: &Node, place: usize, source: &Output) {
        let name = match source.index() {
            0 => source.node().name(),
            index => format!("{}:{index}", source.node().name()),
        };
        if let Some(built) = self.lock().nodes.get_mut(merge.id() as usize) {
            Arc::make_mut(&mut built.def).inputs[place] = name;
            built.inputs[place] = Edge { node: source.node().id(), index: source.index() as u32 };
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    /// A name that is not in use: `x`, `x_1`, `x_2`, …
    pub fn unique_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        loop {
            // TensorFlow treats names as equal if they differ in case only, because they would collide in file
            // systems.
            let key = name.to_lowercase();
            let count = self.taken.entry(wanted.to_lowercase()).or_insert(0);
            let taken = *count;
            *count += 1;
            if taken == 0 && key == wanted.to_lowercase() {
                return name;
            }
            name = format!("{wanted}_{taken}");
            let key = name.to_lowercase();
            if let Entry::Vacant(free) = self.taken.entry(key) {
                free.insert(1);
                return name;
            }
        }
    }
}
