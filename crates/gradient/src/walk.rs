//! Walks backwards from `ys` to `xs` and sums the gradients of every value on the way.

use crate::between::{between, reached, trainable};
use crate::gate::gate;
use crate::nodes::{densify, ones, zeros_like};
use crate::{call, sum};
use graph::{Edge, Node, Output, Scope};
use op::{Grad, Gradient, Grads, Registry};
use rustc_hash::FxHashMap;
use status::{Result, invalid, not_found};
use tensor::DType;

/// Options of differentiation.
#[derive(Clone, Default)]
pub struct GradientOptions {
    /// The scope of the new nodes; the root scope if none.
    pub scope: Option<Scope>,
    /// The gradients of `ys`, in order; ones where none is given.
    pub grad_ys: Vec<Option<Output>>,
    /// Outputs that pass no gradients.
    pub stop: Vec<Output>,
    /// Makes the gradients of the inputs of a node available only when all of them are computed. Otherwise an update of
    /// a reference variable can run before another gradient has read the variable.
    pub gate: bool,
    /// Colocates each new node with the node whose gradient it computes.
    pub colocate: bool,
}

/// Returns the gradient of the sum of `ys` with respect to each of `xs`; none where `ys` do not depend on it.
pub fn gradients(registry: &Registry, ys: &[Output], xs: &[Output]) -> Result<Vec<Option<Gradient>>> {
    gradients_with(registry, ys, xs, &GradientOptions::default())
}

/// Like [`gradients`], with options.
pub fn gradients_with(
    registry: &Registry,
    ys: &[Output],
    xs: &[Output],
    options: &GradientOptions,
) -> Result<Vec<Option<Gradient>>> {
    let Some(first) = ys.first().or(xs.first()) else { return Ok(Vec::new()) };
    let graph = first.scope().graph().clone();
    graph.check()?;
    if ys.iter().chain(xs).any(|output| !output.scope().graph().is_same(&graph)) {
        return Err(invalid!("all ys and xs must be in the same graph"));
    }
    let outer = options.scope.clone().unwrap_or_else(|| graph.root());
    let scope = outer.named("gradients");
    let reached = reached(&graph, xs, &options.stop);
    let nodes = between(&graph, ys, &reached, &options.stop);
    let mut walk = Walk { registry, options, scope, reached, sums: FxHashMap::default() };
    walk.begin(ys)?;
    for node in nodes {
        walk.pass(&node)?;
    }
    graph.check()?;
    Ok(xs.iter().map(|x| walk.total(x)).collect())
}

struct Walk<'a> {
    registry: &'a Registry,
    options: &'a GradientOptions,
    scope: Scope,
    reached: Vec<bool>,
    /// The gradients of each output that were found so far, one for each use.
    sums: FxHashMap<Edge, Vec<Gradient>>,
}

impl Walk<'_> {
    /// Adds the gradients of `ys`.
    fn begin(&mut self, ys: &[Output]) -> Result<()> {
        let given = &self.options.grad_ys;
        if !given.is_empty() && given.len() != ys.len() {
            return Err(invalid!("grad_ys has {} gradients for {} ys", given.len(), ys.len()));
        }
        for (place, y) in ys.iter().enumerate() {
            let y = y.seen_from(&self.scope);
            let gradient = match given.get(place).cloned().flatten() {
                Some(gradient) => gradient.seen_from(&self.scope),
                None if matches!(y.dtype(), DType::C64 | DType::C128) => {
                    return Err(invalid!(
                        "Gradients of complex tensors ({}) must set grad_ys (y.dtype = {})",
                        y.name(),
                        y.dtype()
                    ));
                }
                None if trainable(y.dtype()) => ones(&y, place),
                None => continue,
            };
            self.add(&y, Gradient::Dense(gradient));
        }
        Ok(())
    }

    fn add(&mut self, output: &Output, gradient: Gradient) {
        self.sums.entry(edge(output)).or_default().push(gradient);
    }

    /// The sum of the gradients of an output. All nodes that use the output must have been passed.
    fn total(&mut self, output: &Output) -> Option<Gradient> {
        let parts = self.sums.remove(&edge(output))?;
        let total = sum::sum(&self.scope, parts)?;
        self.sums.insert(edge(output), vec![total.clone()]);
        Some(total)
    }

    /// Computes the gradients of the inputs of a node from those of its outputs.
    fn pass(&mut self, node: &Node) -> Result<()> {
        let inputs = node.all_inputs();
        if !inputs.iter().any(|input| self.wants(input)) {
            return Ok(());
        }
        let gradients: Vec<Option<Gradient>> = node.outputs().iter().map(|output| self.total(output)).collect();
        if gradients.iter().all(Option::is_none) {
            return Ok(());
        }
        let scope = self.scope.named(&format!("{}_grad", node.name()));
        let scope = if self.options.colocate { scope.beside(node) } else { scope };
        let passed = self.apply_rule(&node.seen_from(&scope), &gradients)?;
        if passed.len() != inputs.len() {
            return Err(status::internal!(
                "the gradient rule of {} returned {} gradients for {} inputs",
                node.op(),
                passed.len(),
                inputs.len()
            ));
        }
        let mut wanted: Vec<(&Output, Gradient)> = Vec::new();
        for (input, gradient) in inputs.iter().zip(passed) {
            if let Some(gradient) = gradient.filter(|_| self.wants(input)) {
                check_shape(node, input, &gradient)?;
                wanted.push((input, gradient));
            }
        }
        if self.options.gate && wanted.len() > 1 {
            gate(&scope, wanted.iter_mut().map(|(_, gradient)| gradient));
        }
        for (input, gradient) in wanted {
            self.add(input, gradient);
        }
        Ok(())
    }

    fn wants(&self, input: &Output) -> bool {
        self.reached.get(input.node().id() as usize) == Some(&true)
            && trainable(input.dtype())
            && !self.options.stop.contains(input)
    }

    /// Calls the gradient rule of the node's op.
    fn apply_rule(&self, node: &Node, gradients: &[Option<Gradient>]) -> Result<Grads> {
        let op = node.op();
        if let [Some(gradient @ Gradient::Sparse(_))] = gradients
            && self.registry.facts(&op).passes_gradient
        {
            return Ok(vec![Some(gradient.clone())]);
        }
        let dense: Vec<Option<Output>> =
            gradients.iter().map(|g| g.as_ref().map(|g| densify(g).seen_from(node.scope()))).collect();
        if let Some(function) = call::called(node, self.registry.facts(&op).graph) {
            return call::pass(node, function, &dense);
        }
        match self.registry.op(&op).map(|row| row.grad) {
            Some(Grad::Rule(rule)) => match dense.into_iter().next().flatten() {
                Some(gradient) => rule(node, &gradient),
                None => rule(node, &zeros_like(&node.output(0))),
            },
            Some(Grad::Rules(rule)) => rule(node, &dense),
            Some(Grad::Stop) => Ok(vec![None; node.all_inputs().len()]),
            Some(Grad::Unknown) | None => {
                Err(not_found!("No gradient defined for operation '{}' (op type: {op})", node.name()))
            }
        }
    }
}

fn edge(output: &Output) -> Edge {
    Edge { node: output.node().id(), index: output.index() as u32 }
}

fn check_shape(node: &Node, input: &Output, gradient: &Gradient) -> Result<()> {
    let Gradient::Dense(gradient) = gradient else { return Ok(()) };
    if matches!(input.dtype(), DType::RESOURCE | DType::VARIANT) || input.shape().compatible(&gradient.shape()) {
        return Ok(());
    }
    Err(invalid!(
        "Incompatible shapes between op input and calculated input gradient. Forward operation: {}. \
         Original input shape: {}. Calculated input gradient shape: {}",
        node.name(),
        input.shape(),
        gradient.shape()
    ))
}
