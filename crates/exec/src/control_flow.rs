//! What Switch, Merge and the other control flow ops do with their inputs, and how a function takes its arguments.

use crate::core::Produced;
use crate::kernel_call::missing_input;
use crate::program::Node;
use op::{Flow, Value};
use smallvec::{SmallVec, smallvec};
use status::{Error, Result, internal, invalid};
use tensor::{DType, Element, Tensor};

/// Runs a control flow op. Values pass through unchanged, references too where the op takes them.
pub(crate) fn run_control_flow(flow: &Flow, node: &Node, inputs: SmallVec<[Option<Value>; 4]>) -> Result<Produced> {
    let takes_ref = node.refs & 1 == 1;
    // A reference passes as it is, and the op that computes with it reads it then: a read that is ordered after an
    // update sees the update, even when the Identity before it ran earlier.
    let pass = |value: Value| match value {
        Value::Ref(variable) if !takes_ref && !variable.is_initialized() => Err(variable.uninitialized()),
        value => Ok(value),
    };
    let mut inputs = inputs.into_iter();
    let result = match flow {
        Flow::Merge => {
            let first = inputs.enumerate().find_map(|(index, value)| Some((index, value?)));
            let (index, value) = first.ok_or_else(missing_input)?;
            Ok(smallvec![Some(pass(value)?), Some(Value::Tensor(Tensor::scalar(index as i32)))])
        }
        Flow::ControlTrigger => Ok(Produced::new()),
        Flow::Switch => {
            let value = pass(inputs.next().flatten().ok_or_else(missing_input)?)?;
            let chosen = selector::<bool>(inputs.next().flatten().ok_or_else(missing_input)?)?;
            Ok(if chosen { smallvec![None, Some(value)] } else { smallvec![Some(value), None] })
        }
        Flow::SwitchN(count) => {
            let value = pass(inputs.next().flatten().ok_or_else(missing_input)?)?;
            let chosen = selector::<i32>(inputs.next().flatten().ok_or_else(missing_input)?)?;
            let chosen = usize::try_from(chosen).ok().filter(|chosen| chosen < count).unwrap_or(count - 1);
            let mut outputs: Produced = (0..*count).map(|_| None).collect();
            outputs[chosen] = Some(value);
            Ok(outputs)
        }
        _ => Ok(smallvec![Some(pass(inputs.next().flatten().ok_or_else(missing_input)?)?)]),
    };
    result.map_err(|error: Error| error.at_node(&node.name))
}

/// The second input of a Switch, which selects the output.
fn selector<T: Element>(value: Value) -> Result<T> {
    let value = value.read()?;
    match value.shape().rank() {
        0 => value.to_scalar(),
        _ => Err(invalid!("The second input must be a scalar, but it has shape {}", value.shape())),
    }
}

/// An argument of a function, if it has the dtype that the function takes.
pub(crate) fn argument(index: usize, dtype: DType, value: Option<Value>) -> Result<Produced> {
    let value = value.ok_or_else(|| internal!("argument {index} is missing"))?;
    let found = match &value {
        Value::Tensor(tensor) => tensor.dtype(),
        Value::Ref(variable) => variable.dtype(),
        Value::Stored(stored) => stored.dtype(),
    };
    if found != dtype.base() {
        return Err(invalid!("Expects arg[{index}] to be {dtype} but {found} is provided"));
    }
    Ok(smallvec![Some(value)])
}
