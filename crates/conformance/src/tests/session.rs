//! The runtime that is a session, in this process, on a Flowgrid server, or on a TensorFlow server. It also computes
//! gradients.

use crate::{Answer, Case, Input, Kind, Runner, Want};
use flowgrid::prelude::*;
use flowgrid::{AttrValue, GradientOptions, gradients_with};
use graph::{Signature, Signatures};
use status::{Result, not_found};
use tensor::{Complex32, Complex64, bf16, f16};

/// Runs each case in a session of its own.
pub struct InSession {
    target: String,
    derivatives: bool,
}

impl InSession {
    /// Sessions with this target, empty for this process. With `derivatives`, gradients are compared too.
    pub fn new(target: &str, derivatives: bool) -> InSession {
        InSession { target: target.to_string(), derivatives }
    }
}

impl Runner for InSession {
    fn takes(&self, case: &Case) -> bool {
        let held = |outputs: &[(String, crate::Expected)]| {
            outputs.iter().any(|(_, expected)| matches!(expected.dtype, DType::RESOURCE | DType::VARIANT))
        };
        match &case.want {
            Want::Outputs { outputs, .. } => !(held(outputs) || self.derivatives && case.grads.is_empty()),
            _ => !self.derivatives,
        }
    }

    fn run(&self, case: &Case) -> Result<Answer> {
        let built = Built::new(case)?;
        let config = SessionConfig { isolate_state: true, ..SessionConfig::default() };
        let session = Session::with_config(&self.target, &built.graph, config)?;
        if !built.initial.is_empty() {
            session.execute_with(&built.initial[..], built.feeds.clone())?;
        }
        let outputs: Vec<Tensor> = match built.node.outputs() {
            none if none.is_empty() => session.execute_with(&built.node, built.feeds.clone()).map(|()| Vec::new())?,
            some => session.run_with(&some[..], built.feeds.clone())?,
        };
        let mut after = Vec::new();
        for (name, read) in &built.variables {
            after.push((name.clone(), session.run::<Tensor>(&read(&built.graph.root())).ok()));
        }
        let grads = if self.derivatives { built.gradients(&session, &outputs)? } else { Vec::new() };
        Ok(Answer { outputs, after, grads })
    }

    fn differentiates(&self) -> bool {
        self.derivatives
    }
}

type Read = Box<dyn Fn(&Scope) -> Output>;

/// The graph of a case.
struct Built {
    graph: Graph,
    node: Node,
    inputs: Vec<(String, Output)>,
    feeds: Feeds,
    /// Nodes that assign the values of variables.
    initial: Vec<Node>,
    variables: Vec<(String, Read)>,
}

impl Built {
    fn new(case: &Case) -> Result<Built> {
        let graph: Graph = AllOps::new();
        let registry = data::registry();
        let signature = Signatures::signature(&*registry, &case.op)
            .ok_or_else(|| not_found!("Op type not registered '{}'", case.op))?;
        let def = crate::attrs::node(case, signature)?;
        signature.check_attrs(&def)?;
        let mut builder = graph.root().op(&case.op).named("case");
        let (mut inputs, mut feeds) = (Vec::new(), Feeds::new());
        let (mut initial, mut variables) = (Vec::new(), Vec::new());
        for (name, input) in in_order(case, signature) {
            let place = format!("{name}_{}", inputs.len());
            let output = match input.kind {
                Kind::Value => fed(&graph.root(), input, &mut feeds),
                kind => {
                    let (output, read) = variable(&graph.root(), name, kind, input, &mut feeds, &mut initial);
                    variables.push((name.clone(), read));
                    output
                }
            };
            inputs.push((name.clone(), output, place));
        }
        for arg in &signature.inputs {
            let group: Vec<Output> =
                inputs.iter().filter(|(name, ..)| *name == arg.name).map(|(_, output, _)| output.clone()).collect();
            builder = builder.inputs(&group);
        }
        for (name, value) in &def.attrs {
            builder = builder.attr(name, value.clone());
        }
        let node = builder.node();
        graph.check()?;
        let inputs = inputs.into_iter().map(|(name, output, _)| (name, output)).collect();
        Ok(Built { graph, node, inputs, feeds, initial, variables })
    }

    /// The gradients of the weighted sum of all floating outputs by all floating inputs.
    fn gradients(&self, session: &Session, outputs: &[Tensor]) -> Result<Vec<(String, Option<Tensor>)>> {
        let smooth = |output: &Output| output.dtype().is_floating() || output.dtype().is_complex();
        let mut ys = Vec::new();
        let mut options = GradientOptions::default();
        for (output, value) in self.node.outputs().iter().zip(outputs).filter(|(output, _)| smooth(output)) {
            let weights = ramp(value)?;
            options.grad_ys.push(Some(ops::array::constant(&self.graph.root(), weights)));
            ys.push(output.clone());
        }
        let xs: Vec<&(String, Output)> = self.inputs.iter().filter(|(_, output)| smooth(output)).collect();
        let by: Vec<&Output> = xs.iter().map(|(_, output)| output).collect();
        let found = gradients_with(&ys.iter().collect::<Vec<_>>(), &by, &options)?;
        let mut grads = Vec::new();
        for ((name, _), gradient) in xs.into_iter().zip(found) {
            let value = match gradient {
                Some(gradient) => Some(session.run_with::<Tensor>(&dense(&gradient), self.feeds.clone())?),
                None => None,
            };
            grads.push((name.clone(), value));
        }
        Ok(grads)
    }
}

/// The inputs in the order of the op's arguments.
fn in_order<'a>(case: &'a Case, signature: &'a Signature) -> impl Iterator<Item = &'a (String, Input)> {
    signature.inputs.iter().flat_map(|arg| case.inputs.iter().filter(|(name, _)| *name == arg.name))
}

fn fed(scope: &Scope, input: &Input, feeds: &mut Feeds) -> Output {
    let shape = AttrValue::Shape(PartialShape::unknown());
    let output = scope.op("Placeholder").attr("dtype", input.dtype).attr("shape", shape).output();
    if let Some(value) = &input.value {
        *feeds = std::mem::take(feeds).with(&output, value.clone());
    }
    output
}

fn variable(
    scope: &Scope,
    name: &str,
    kind: Kind,
    input: &Input,
    feeds: &mut Feeds,
    initial: &mut Vec<Node>,
) -> (Output, Read) {
    let shape = AttrValue::Shape((&input.shape).into());
    let is_ref = kind == Kind::Ref;
    let op = scope.op(if is_ref { "VariableV2" } else { "VarHandleOp" }).named(name);
    let output = op.attr("dtype", input.dtype).attr("shape", shape).attr("shared_name", name).output();
    if input.value.is_some() {
        let value = fed(scope, input, feeds);
        let assign = scope.op(if is_ref { "Assign" } else { "AssignVariableOp" }).input(&output).input(&value);
        initial.push(if is_ref { assign.attr("validate_shape", false).node() } else { assign.node() });
    }
    let (dtype, held) = (input.dtype, output.clone());
    let read: Read = match is_ref {
        true => Box::new(move |scope| scope.op("Identity").input(&held).output()),
        false => Box::new(move |scope| scope.op("ReadVariableOp").input(&held).attr("dtype", dtype).output()),
    };
    (output, read)
}

/// Weights that increase evenly from 0.5 to 1.5, in the shape of a tensor.
fn ramp(like: &Tensor) -> Result<Tensor> {
    let count = like.elements();
    let weights: Vec<f64> = (0..count).map(|i| 0.5 + i as f64 / count.saturating_sub(1).max(1) as f64).collect();
    let shape = like.shape().clone();
    match like.dtype() {
        DType::F16 => Tensor::from_slice(shape, &weights.iter().map(|&w| f16::from_f64(w)).collect::<Vec<_>>()),
        DType::BF16 => Tensor::from_slice(shape, &weights.iter().map(|&w| bf16::from_f64(w)).collect::<Vec<_>>()),
        DType::F32 => Tensor::from_slice(shape, &weights.iter().map(|&w| w as f32).collect::<Vec<_>>()),
        DType::C64 => {
            Tensor::from_slice(shape, &weights.iter().map(|&w| Complex32::new(w as f32, 0.0)).collect::<Vec<_>>())
        }
        DType::C128 => Tensor::from_slice(shape, &weights.iter().map(|&w| Complex64::new(w, 0.0)).collect::<Vec<_>>()),
        _ => Tensor::from_slice(shape, &weights),
    }
}
