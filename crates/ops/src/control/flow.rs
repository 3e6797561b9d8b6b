//! The rows of Switch, Merge and the ops of loops; the executor runs them.

use graph::{ControlFlow, Forwards, Node, Output};
use op::shapes::{none, scalar, unchanged, unknown};
use op::{Flow, Grad, Grads, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::PartialShape;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Switch(data: T, pred: bool) -> output_false: T, output_true: T; T: type",
        shape: unchanged,
        grad: Grad::Rules(switch_rule),
        kernel: switch,
        facts: PLAIN.control_flow(ControlFlow::Switch),
    },
    Op {
        def: "RefSwitch(data: Ref(T), pred: bool) -> output_false: Ref(T), output_true: Ref(T); T: type; uninitialized",
        shape: unchanged,
        grad: Grad::Rules(switch_rule),
        kernel: switch,
        facts: PLAIN.control_flow(ControlFlow::Switch),
    },
    Op {
        def: "_SwitchN(data: T, output_index: int32) -> outputs: num_outs * T; num_outs: int >= 1; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: switch_n,
        facts: PLAIN.control_flow(ControlFlow::Switch),
    },
    Op {
        def: "Merge(inputs: N * T) -> output: T, value_index: int32; T: type; N: int >= 1",
        shape: merge_shape,
        grad: Grad::Unknown,
        kernel: merge,
        facts: PLAIN.control_flow(ControlFlow::Merge),
    },
    Op {
        def: "RefMerge(inputs: Ref(N * T)) -> output: Ref(T), value_index: int32; T: type; N: int >= 1",
        shape: merge_shape,
        grad: Grad::Unknown,
        kernel: merge,
        facts: PLAIN.control_flow(ControlFlow::Merge),
    },
    Op {
        def: "Enter(data: T) -> output: T; T: type; frame_name: string; is_constant: bool = false; \
              parallel_iterations: int = 10",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: enter,
        facts: PLAIN.control_flow(ControlFlow::Enter),
    },
    Op {
        def: "RefEnter(data: Ref(T)) -> output: Ref(T); T: type; frame_name: string; is_constant: bool = false; \
              parallel_iterations: int = 10",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: enter,
        facts: PLAIN.control_flow(ControlFlow::Enter),
    },
    Op {
        def: "Exit(data: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: exit,
        facts: PLAIN.control_flow(ControlFlow::Exit),
    },
    Op {
        def: "RefExit(data: Ref(T)) -> output: Ref(T); T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: exit,
        facts: PLAIN.control_flow(ControlFlow::Exit),
    },
    Op {
        def: "NextIteration(data: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: next_iteration,
        facts: PLAIN.control_flow(ControlFlow::NextIteration),
    },
    Op {
        def: "RefNextIteration(data: Ref(T)) -> output: Ref(T); T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: next_iteration,
        facts: PLAIN.control_flow(ControlFlow::NextIteration),
    },
    Op {
        def: "LoopCond(input: bool) -> output: bool",
        shape: scalar,
        grad: Grad::Stop,
        kernel: identity,
        facts: PLAIN.control_flow(ControlFlow::LoopCond),
    },
    Op {
        def: "RefIdentity(input: Ref(T)) -> output: Ref(T); T: type; uninitialized",
        shape: unchanged,
        grad: Grad::Rule(pass_rule),
        kernel: identity,
        facts: PLAIN.forwards(Forwards::First).passes_gradient(),
    },
    Op {
        def: "RefSelect(index: int32, inputs: Ref(N * T)) -> output: Ref(T); T: type; N: int >= 1",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: ref_select,
        facts: PLAIN,
    },
    Op {
        def: "ControlTrigger()",
        shape: none,
        grad: Grad::Stop,
        kernel: control_trigger,
        facts: PLAIN.control_flow(ControlFlow::Trigger),
    },
    Op {
        def: "Abort(); error_msg: string = \"\"; exit_without_error: bool = false",
        shape: none,
        grad: Grad::Stop,
        kernel: abort,
        facts: PLAIN,
    },
];

/// Passes `data` to output 1 if `pred` holds, else to output 0.
pub fn switch_on(data: &Output, pred: &Output) -> Node {
    data.scope().op("Switch").input(data).input(pred).node()
}

/// The first of `inputs` that is alive.
pub fn merge_of(inputs: &[Output]) -> Option<Node> {
    Some(inputs.first()?.scope().op("Merge").inputs(inputs).node())
}

/// The gradients of both branches are merged; a branch without one yields zeros.
fn switch_rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let branch = |index: usize| {
        dy[index].clone().unwrap_or_else(|| op.scope().op("ZerosLike").input(&op.output(index)).output())
    };
    if dy.iter().all(Option::is_none) {
        return Ok(grads![op::NoGradient, op::NoGradient]);
    }
    let merged = merge_of(&[branch(0), branch(1)]).map(|node| node.output(0));
    Ok(grads![merged, op::NoGradient])
}

fn pass_rule(_: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.clone()])
}

fn merge_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let mut common = query.inputs.first().cloned().unwrap_or(PartialShape::unknown());
    for shape in query.inputs {
        if *shape != common {
            common = match (shape.rank(), common.rank()) {
                (Some(a), Some(b)) if a == b => PartialShape::of_rank(a),
                _ => PartialShape::unknown(),
            };
        }
    }
    Ok(vec![common, PartialShape::scalar()])
}

fn switch(_: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::Switch))
}

fn switch_n(setup: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::SwitchN(setup.output_types().len())))
}

fn merge(_: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::Merge))
}

fn enter(setup: &Setup<'_>) -> Result<Kernel> {
    let parallel = setup.int("parallel_iterations")?.max(1) as usize;
    Ok(Kernel::flow(Flow::Enter { frame: setup.string("frame_name")?, constant: setup.bool("is_constant")?, parallel }))
}

fn exit(_: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::Exit))
}

fn next_iteration(_: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::NextIteration))
}

fn identity(_: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::Identity))
}

fn control_trigger(_: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::ControlTrigger))
}

fn ref_select(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(run_ref_select).free())
}

fn run_ref_select(_: &op::Ctx<'_>, mut inputs: Inputs) -> Result<Outputs> {
    let index = inputs.tensor(0)?.to_scalar::<i32>()?;
    let count = inputs.len() - 1;
    let place = usize::try_from(index).ok().filter(|&place| place < count);
    let place = place.ok_or_else(|| invalid!("Index must be in the range [0, {count}) but got {index}"))?;
    Ok(outputs![inputs.take(place + 1)?])
}

/// A client may end its own step, never the server: the op is an error of the step.
fn abort(setup: &Setup<'_>) -> Result<Kernel> {
    let (text, silent) = (setup.string("error_msg")?, setup.bool("exit_without_error")?);
    Ok(many(move |_, _| match silent {
        true => Ok(Outputs::new()),
        false => Err(status::aborted!("Abort_op intentional failure; {text}")),
    }))
}
