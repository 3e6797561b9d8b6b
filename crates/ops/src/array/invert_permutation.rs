//! InvertPermutation: the position of each number in a permutation.

use super::nodes;
use graph::Output;
use op::{Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, unary};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "InvertPermutation(x: T) -> y: T; T: {int32, int64} = int32",
    shape: permutation_shape,
    grad: Grad::Stop,
    kernel: permutation_kernel,
    facts: PLAIN,
}];

/// `y` such that `y[x[i]] = i`.
pub fn invert_permutation(x: &Output) -> Output {
    nodes::one("InvertPermutation", x)
}

fn permutation_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[0].merge(&PartialShape::of_rank(1))?])
}

fn permutation_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, x| match x.dtype() {
        DType::I32 => run::<i32>(&x, |place| place as i32),
        _ => run::<i64>(&x, |place| place as i64),
    }))
}

fn run<T: super::index::Index>(x: &Tensor, number: fn(usize) -> T) -> Result<Tensor> {
    if x.shape().rank() != 1 {
        return Err(invalid!("invert_permutation expects a 1D vector."));
    }
    let values = x.values::<T>()?;
    let count = values.len();
    if count >= i32::MAX as usize {
        return Err(invalid!("permutation of nonnegative int32s must have <= int32 max elements"));
    }
    let mut taken = vec![false; count];
    let mut output = Tensor::scratch::<T>([count])?;
    let inverse = output.values_mut::<T>()?;
    for (place, &value) in values.iter().enumerate() {
        let slot = value.below(count).ok_or_else(|| invalid!("{value} is not between 0 and {count}"))?;
        if std::mem::replace(&mut taken[slot], true) {
            return Err(invalid!("{value} is duplicated in the input."));
        }
        inverse[slot] = number(place);
    }
    Ok(output)
}
