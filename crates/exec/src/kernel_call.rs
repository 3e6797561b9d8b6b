//! Calls kernels that answer before they return; turns a panic into an error of the step.

use crate::control_flow::run_control_flow;
use crate::core::Produced;
use crate::executor::{Execution, Message, Work};
use crate::node_stats::record;
use crate::program::{Node, OutEdge};
use op::{Ctx, Flow, Inputs, Run, Value};
use smallvec::{SmallVec, smallvec};
use status::{Error, Result, internal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

impl Execution {
    /// Runs a heavy op on this thread.
    pub fn execute(self: &Arc<Self>, work: Work) -> Message {
        let node = &self.program.nodes[work.ready.node as usize];
        let ready = work.ready;
        Message(ready, self.run_kernel(node, work))
    }

    /// Runs a kernel and records it in the trace of the step, if there is one.
    pub fn run_kernel(&self, node: &Node, work: Work) -> Result<Produced> {
        let start = self.env.stats.as_ref().map_or(0, |stats| stats.now());
        let ctx = Ctx { env: &self.env, frame: work.frame_key, iteration: work.ready.iteration };
        let result = match &node.kernel.run {
            Run::Stored(_) => self.call_stored(node, &ctx, work.inputs),
            _ => call(node, &ctx, work.inputs),
        };
        if let Some(stats) = &self.env.stats {
            record(stats, node, work.scheduled, start, result.as_ref().ok());
        }
        result.map_err(|error| error.at_node(&node.name))
    }

    /// Runs a node of control flow, which a trace shows too.
    pub fn run_flow(&self, flow: &Flow, node: &Node, work: Work) -> Result<Produced> {
        let start = self.env.stats.as_ref().map_or(0, |stats| stats.now());
        let result = run_control_flow(flow, node, work.inputs);
        if let Some(stats) = &self.env.stats {
            record(stats, node, work.scheduled, start, result.as_ref().ok());
        }
        result
    }

    /// Finds tensors in files. A large one that is only sent to other tasks stays in its file until it is sent.
    fn call_stored(&self, node: &Node, ctx: &Ctx<'_>, inputs: SmallVec<[Option<Value>; 4]>) -> Result<Produced> {
        let Run::Stored(run) = &node.kernel.run else { return Err(missing_input()) };
        let call = || {
            let found = run(ctx, resolve(node, inputs)?)?;
            let values = found.into_iter().enumerate().map(|(index, stored)| {
                let stays = stored.shape().elements() >= op::CHUNK / 4 && self.is_only_sent(node, index);
                Ok(Some(if stays { Value::Stored(stored) } else { Value::Tensor(stored.read()?) }))
            });
            values.collect::<Result<Produced>>()
        };
        catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panic_error(node, panic)))
    }

    /// Whether an output is read only by Sends to other tasks. A fetch is sent too, but with the reply of this run.
    fn is_only_sent(&self, node: &Node, output: usize) -> bool {
        let readers = node.outputs[output] as usize..node.outputs[output + 1] as usize;
        let is_send = |edge: &OutEdge| match &self.program.nodes[edge.node as usize].kernel.run {
            Run::Flow(Flow::Send(transfer)) => !transfer.client_terminated,
            _ => false,
        };
        self.program.edges[readers].iter().all(is_send)
    }
}

/// Calls a kernel; a panic in it is an error of this step only.
fn call(node: &Node, ctx: &Ctx<'_>, inputs: SmallVec<[Option<Value>; 4]>) -> Result<Produced> {
    let one = |tensor| smallvec![Some(Value::Tensor(tensor))];
    let result = catch_unwind(AssertUnwindSafe(|| match &node.kernel.run {
        Run::Source(run) => run(ctx).map(one),
        Run::Unary(run) => {
            let mut inputs = inputs.into_iter().flatten();
            let x = inputs.next().ok_or_else(missing_input).and_then(Value::read)?;
            run(ctx, x).map(one)
        }
        Run::Binary(run) => {
            let mut inputs = inputs.into_iter().flatten();
            let x = inputs.next().ok_or_else(missing_input).and_then(Value::read)?;
            let y = inputs.next().ok_or_else(missing_input).and_then(Value::read)?;
            run(ctx, x, y).map(one)
        }
        Run::Many(run) => run(ctx, resolve(node, inputs)?).map(|outputs| outputs.into_iter().map(Some).collect()),
        Run::Later(_) | Run::Stored(_) | Run::Flow(_) => Err(internal!("op {} cannot run here", node.op)),
    }));
    result.unwrap_or_else(|panic| Err(panic_error(node, panic)))
}

/// The inputs as the op wants them: a variable stays a reference where the op asks for one, else its value is read.
pub(crate) fn resolve(node: &Node, values: SmallVec<[Option<Value>; 4]>) -> Result<Inputs> {
    if node.refs == 0 && values.iter().all(|value| matches!(value, Some(Value::Tensor(_)))) {
        return Ok(Inputs::from(values));
    }
    let mut inputs = Inputs::default();
    for (index, value) in values.into_iter().flatten().enumerate() {
        let wants_ref = index < 64 && node.refs >> index & 1 == 1;
        inputs.push(match value {
            Value::Ref(variable) if wants_ref => {
                if !node.may_be_uninitialized && !variable.is_initialized() {
                    return Err(variable.uninitialized());
                }
                Value::Ref(variable)
            }
            value => Value::Tensor(value.read()?),
        });
    }
    Ok(inputs)
}

pub(crate) fn missing_input() -> Error {
    internal!("an input is missing")
}

/// A panic of a kernel as an error of its node.
pub(crate) fn panic_error(node: &Node, panic: Box<dyn std::any::Any + Send>) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    internal!("the kernel of {} ({}) failed unexpectedly: {text}", node.name, node.op).at_node(&node.name)
}
