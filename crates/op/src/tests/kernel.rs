//! Inputs of kernels, each taken once.

use crate::{Inputs, Value, Variable, outputs};
use std::sync::Arc;
use tensor::{DType, Tensor};

fn inputs() -> Inputs {
    let variable = Arc::new(Variable::new("v", DType::I32));
    variable.assign(Tensor::scalar(7i32));
    [Value::from(Tensor::scalar(1i32)), Value::Ref(variable), Value::from(Tensor::scalar(3i32))].into_iter().collect()
}

#[test]
fn an_input_is_taken_once() {
    let mut inputs = inputs();
    assert_eq!(inputs.look(0).unwrap().to_scalar::<i32>().unwrap(), 1);
    assert_eq!(inputs.tensor(0).unwrap().to_scalar::<i32>().unwrap(), 1);
    assert_eq!(inputs.tensor(0).unwrap_err().message, "input 0 is missing or was taken before");
    assert!(inputs.look(0).is_err());
    assert!(inputs.tensor(3).is_err());
    assert_eq!(inputs.len(), 3);
}

#[test]
fn a_reference_reads_as_the_value_of_its_variable() {
    let mut all = inputs();
    let values: Vec<i32> = all.tensors_from(0).unwrap().iter().map(|value| value.to_scalar().unwrap()).collect();
    assert_eq!(values, [1, 7, 3]);
    assert_eq!(inputs().variable(1).unwrap().name(), "v");
    assert_eq!(inputs().variable(0).unwrap_err().message, "input 0 is not a reference");
}

#[test]
fn outputs_are_in_order() {
    let outputs = outputs![Tensor::scalar(1i32), Tensor::scalar(2i32)];
    let values = outputs.into_iter().map(|value| value.read().unwrap().to_scalar::<i32>().unwrap());
    assert_eq!(values.collect::<Vec<_>>(), [1, 2]);
}
