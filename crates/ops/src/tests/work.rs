//! The amount of work that kernels report before they run.

use crate::array::{gather, slice};
use op::{Peek, Value};
use tensor::{DType, Shape, Tensor};

fn ask(work: fn(&Peek<'_>) -> usize, inputs: &[Tensor]) -> usize {
    let inputs: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
    work(&Peek(&|index| inputs.get(index)))
}

fn zeros(dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::zeros_of(dtype, Shape::new(dims)).expect("room")
}

#[test]
fn a_slice_is_what_it_copies() {
    let cut = |dtype, begin: [i32; 2], size: [i32; 2]| {
        ask(slice::work, &[zeros(dtype, &[100, 1000]), Tensor::vector(&begin), Tensor::vector(&size)])
    };
    assert_eq!(cut(DType::F32, [0, 1], [-1, -1]), 100 * 999);
    assert_eq!(cut(DType::F32, [0, 0], [-1, 1]), 100);
    assert_eq!(cut(DType::F32, [5, 0], [10, -1]), 0, "a view");
    assert_eq!(cut(DType::STRING, [5, 0], [10, -1]), 10 * 1000, "no view of strings");
    assert_eq!(cut(DType::STRING, [0, 0], [-1, -1]), 0, "the same tensor");
}

#[test]
fn a_gather_is_what_it_picks() {
    let pick = |axis: i32| {
        ask(gather::work, &[zeros(DType::F32, &[100, 1000]), Tensor::vector(&[1i32, 2, 3]), Tensor::scalar(axis)])
    };
    assert_eq!((pick(0), pick(1), pick(-1)), (3 * 1000, 3 * 100, 3 * 100));
}
