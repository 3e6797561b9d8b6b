//! The walk: from what is differentiated back to what it is differentiated by.

use crate::between::{between, reached, trainable};
use crate::gate::gate;
use crate::nodes::{densify, ones, zeros_like};
use crate::{call, sum};
use graph::{Edge, Node, Output, Scope};
use op::{Grad, Gradient, Grads, Registry};
use rustc_hash::FxHashMap;
use status::{Result, invalid, not_found};
use tensor::DType;

/// How to differentiate.
#[derive(Clone, Default)]
pub struct GradientOptions {
    /// Where the new nodes go; the outermost scope if none.
    pub scope: Option<Scope>,
    /// The gradients of `ys` themselves, in order; ones where none is given.
    pub grad_ys: Vec<Option<Output>>,
    /// Values through which no gradient passes.
    pub stop: Vec<Output>,
    /// Let the gradients of a node's inputs be used only when all of them are there: a step that changes a
    /// reference variable must not change it under a gradient that still reads it.
    pub gate: bool,
    /// Put each new node on the device of the node it is the derivative of.
    pub colocate: bool,
}

/// The derivative of the sum of `ys` by each of `xs`; none where `ys` do not depend on it.
pub fn gradients(registry: &Registry, ys: &[Output], xs: &[Output]) -> Result<Vec<Option<Gradient>>> {
    gradients_with(registry, ys, xs, &GradientOptions::default())
}

/// As `gradients`, with options.
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
        return Err(invalid!("gradients of values in different graphs were asked for"));
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
    Ok(xs.iter().map(|x| walk.take(x)).collect())
}

struct Walk<'a> {
    registry: &'a Registry,
    options: &'a GradientOptions,
    scope: Scope,
    reached: Vec<bool>,
    /// What has come back to each value so far.
    sums: FxHashMap<Edge, Vec<Gradient>>,
}

impl Walk<'_> {
    /// The gradients of `ys` themselves.
    fn begin(&mut self, ys: &[Output]) -> Result<()> {
        let given = &self.options.grad_ys;
        if !given.is_empty() && given.len() != ys.len() {
            return Err(invalid!("{} gradients were given for {} values", given.len(), ys.len()));
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

    /// The whole gradient of a value, whose users have all been passed.
    fn take(&mut self, output: &Output) -> Option<Gradient> {
        let parts = self.sums.remove(&edge(output))?;
        let total = sum::sum(&self.scope, parts)?;
        self.sums.insert(edge(output), vec![total.clone()]);
        Some(total)
    }

    /// Passes the gradients of a node's outputs on to its inputs.
    fn pass(&mut self, node: &Node) -> Result<()> {
        let inputs = node.all_inputs();
        if !inputs.iter().any(|input| self.wants(input)) {
            return Ok(());
        }
        let gradients: Vec<Option<Gradient>> = node.outputs().iter().map(|output| self.take(output)).collect();
        if gradients.iter().all(Option::is_none) {
            return Ok(());
        }
        let scope = self.scope.named(&format!("{}_grad", node.name()));
        let scope = if self.options.colocate { scope.beside(node) } else { scope };
        let passed = self.ask(&node.seen_from(&scope), &gradients)?;
        if passed.len() != inputs.len() {
            return Err(status::internal!(
                "the gradient rule of {} gave {} gradients for {} inputs",
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

    /// Asks the row of a node's op.
    fn ask(&self, node: &Node, gradients: &[Option<Gradient>]) -> Result<Grads> {
        let op = node.op();
        if let [Some(gradient @ Gradient::Sparse(_))] = gradients
            && passes_rows(&op)
        {
            return Ok(vec![Some(gradient.clone())]);
        }
        let dense: Vec<Option<Output>> =
            gradients.iter().map(|g| g.as_ref().map(|g| densify(g).seen_from(node.scope()))).collect();
        if let Some(function) = call::called(node) {
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

/// Ops that give back what they were given: rows stay rows.
fn passes_rows(op: &str) -> bool {
    matches!(op, "Identity" | "RefIdentity" | "ReadVariableOp" | "PlaceholderWithDefault")
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
