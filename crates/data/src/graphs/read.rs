//! Reads graphs of datasets: runs their nodes, once and in order, and returns the dataset.

use crate::dataset::Handle;
use graph::builtin_ops::RETVAL;
use graph::wire::read_graph;
use graph::{FlatGraph, FlatNode, NodeId, Signatures, TensorName};
use op::{Ctx, Flow, Functions, Home, Inputs, Libraries, Outputs, Run, Setup, Siblings, outputs};
use status::{Result, internal, invalid, not_found, unimplemented_op};
use std::sync::Arc;
use tensor::{Bytes, Tensor, Variant};

/// The type name of a dataset in serialised variants, which hold its graph.
pub(crate) const ENCODED: &str = "flowgrid.Dataset";

/// Reads datasets for the kernel of a node.
#[derive(Clone)]
pub(crate) struct GraphReader {
    home: Home,
    siblings: Option<Arc<dyn Siblings>>,
    libraries: Option<Arc<dyn Libraries>>,
}

impl GraphReader {
    /// For a kernel.
    pub fn of(setup: &Setup<'_>) -> GraphReader {
        GraphReader { home: Home::of(setup), siblings: setup.siblings().cloned(), libraries: setup.libraries() }
    }

    /// The dataset that a serialised graph returns.
    pub fn read(&self, ctx: &Ctx<'_>, graph: &Bytes) -> Result<Tensor> {
        let graph = read_graph(graph.clone()).map_err(|_| invalid!("Could not parse GraphDef"))?;
        let returned = graph.nodes.iter().rev().find(|node| node.op == RETVAL);
        let output = returned.and_then(|node| node.inputs.first()).cloned().unwrap_or_default();
        // Graphs inside of graphs would be read by recursion, as deep as the client says.
        let libraries = self.libraries.as_ref();
        let libraries =
            libraries.ok_or_else(|| invalid!("The graph of a dataset has the graph of another dataset in it"))?;
        let functions = libraries.with(&graph.library)?;
        let flat = FlatGraph::new(&graph, &*crate::registry())?;
        let output = TensorName::parse(&output);
        let missing = || not_found!("FetchOutputs node {}: not found", output.node);
        let node = flat.find(output.node).ok_or_else(missing)?;
        let mut values: Vec<Option<Outputs>> = vec![None; flat.nodes.len()];
        for id in order(&flat, node) {
            values[id as usize] = Some(self.run(ctx, flat.node(id), &values, &*functions)?);
        }
        let index = output.index.unwrap_or(0) as usize;
        let found = values[node as usize].as_ref().and_then(|outputs| outputs.get(index));
        found.cloned().ok_or_else(missing)?.read()
    }

    fn run(
        &self,
        ctx: &Ctx<'_>,
        node: &FlatNode,
        values: &[Option<Outputs>],
        functions: &dyn Functions,
    ) -> Result<Outputs> {
        let (def, registry) = (&*node.def, crate::registry());
        let Some(signature) = registry.signature(&def.op) else { return Err(cannot_run(&def.op)) };
        let types = (&node.input_types[..], &node.output_types[..]);
        let mut setup = Setup::new(def, signature, types, self.home.device(), self.home.resources(), functions);
        if let Some(siblings) = &self.siblings {
            setup = setup.in_function(siblings.clone());
        }
        let kernel = registry.kernel(&setup)?;
        let value = |edge: &graph::Edge| {
            let outputs = values[edge.node as usize].as_ref();
            let value = outputs.and_then(|outputs| outputs.get(edge.index as usize)).cloned();
            value.ok_or_else(|| internal!("an input of {} is missing", def.name))
        };
        let mut inputs = node.inputs.iter().map(value).collect::<Result<Inputs>>()?;
        let result = match &kernel.run {
            Run::Source(run) => run(ctx).map(|tensor| outputs![tensor]),
            Run::Unary(run) => run(ctx, inputs.tensor(0)?).map(|tensor| outputs![tensor]),
            Run::Binary(run) => run(ctx, inputs.tensor(0)?, inputs.tensor(1)?).map(|tensor| outputs![tensor]),
            Run::Many(run) => run(ctx, inputs),
            Run::Flow(Flow::Identity) => Ok(std::iter::once(inputs.take(0)?).collect()),
            _ => Err(cannot_run(&def.op)),
        };
        result.map_err(|error| error.at_node(&def.name))
    }

    /// Replaces the inputs that are datasets in their serialised form.
    pub fn read_inputs(&self, ctx: &Ctx<'_>, inputs: &mut Inputs) -> Result<()> {
        for index in 0..inputs.len() {
            let Ok(tensor) = inputs.look_mut(index) else { continue };
            if let Some(read) = self.read_tensor(ctx, tensor)? {
                *tensor = read;
            }
        }
        Ok(())
    }

    /// A tensor with datasets in place of their serialised form; none if there are none.
    pub fn read_tensor(&self, ctx: &Ctx<'_>, tensor: &Tensor) -> Result<Option<Tensor>> {
        let Ok(variants) = tensor.variants() else { return Ok(None) };
        if !variants.iter().any(|variant| encoded(variant).is_some()) {
            return Ok(None);
        }
        let read = |variant: &Variant| match encoded(variant) {
            Some(graph) => single(&self.read(ctx, &graph.to_string_scalar()?)?),
            None => Ok(variant.clone()),
        };
        let variants = variants.iter().map(read).collect::<Result<_>>()?;
        Tensor::from_variants(tensor.shape().clone(), variants).map(Some)
    }
}

/// The graph in a serialised dataset.
fn encoded(variant: &Variant) -> Option<&Tensor> {
    match variant {
        Variant::Data(data) if data.type_name == ENCODED => data.tensors.first(),
        _ => None,
    }
}

fn single(dataset: &Tensor) -> Result<Variant> {
    Handle::of(dataset)?;
    dataset.variants()?.first().cloned().ok_or_else(|| invalid!("The graph of a dataset returns an empty tensor"))
}

/// The nodes that a node needs, and the node, each after those that it needs itself.
fn order(flat: &FlatGraph, last: NodeId) -> Vec<NodeId> {
    let mut order = Vec::new();
    let mut seen = vec![false; flat.nodes.len()];
    let mut waiting = vec![(last, false)];
    while let Some((id, are_inputs_done)) = waiting.pop() {
        if are_inputs_done {
            order.push(id);
        } else if !std::mem::replace(&mut seen[id as usize], true) {
            let node = flat.node(id);
            waiting.push((id, true));
            let needed = node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied());
            waiting.extend(needed.map(|needed| (needed, false)));
        }
    }
    order
}

fn cannot_run(op: &str) -> status::Error {
    unimplemented_op!(
        "{op} cannot be in the graph of a dataset: only ops can that return at once, as those that describe datasets do"
    )
}
