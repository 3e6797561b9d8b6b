//! Ops that the runtime of TensorFlow puts between others and that return their inputs: lists and arrays of arguments,
//! and pinned memory.

use op::shapes::{unchanged, unknown};
use op::{Grad, Kernel, Op, PLAIN, Setup, Value, many, unary};
use status::{Result, failed_precondition, invalid};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "_ListToArray(input: [Tin]) -> output: N * T; Tin: list(type) >= 1; T: type; N: int >= 1",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: pass_on,
        facts: PLAIN,
    },
    Op {
        def: "_ArrayToList(input: N * T) -> output: [out_types]; T: type; N: int >= 1; out_types: list(type) >= 1",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: pass_on,
        facts: PLAIN,
    },
    Op {
        def: "CheckPinned(tensor: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: check_pinned,
        facts: PLAIN,
    },
];

fn pass_on(setup: &Setup<'_>) -> Result<Kernel> {
    let (inputs, outputs) = (setup.input_types(), setup.output_types());
    if inputs.len() != outputs.len() {
        return Err(invalid!("#inputs != #outputs : {} vs. {}", inputs.len(), outputs.len()));
    }
    if let Some(i) = (0..inputs.len()).find(|&i| inputs[i] != outputs[i]) {
        return Err(invalid!("Type mismatch: actual {} vs. expect {}", inputs[i], outputs[i]));
    }
    Ok(many(|_, mut inputs| Ok(inputs.tensors_from(0)?.into_iter().map(Value::Tensor).collect())).free())
}

/// Memory is pinned for GPUs, of which this runtime knows nothing.
fn check_pinned(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, _| Err(failed_precondition!("to check pinnedness, must be built with `--config=cuda`"))).free())
}
