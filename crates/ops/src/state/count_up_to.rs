//! CountUpTo: increments a variable up to a limit.

use super::target::Target;
use graph::{Output, ShapeQuery};
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid, out_of_range};
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CountUpTo(ref: Ref(T)) -> output: T; limit: int; T: {int32, int64}",
        shape: one,
        grad: Grad::Stop,
        kernel: count_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceCountUpTo(resource: resource) -> output: T; limit: int; T: {int32, int64}; stateful",
        shape: one,
        grad: Grad::Stop,
        kernel: count_kernel,
        facts: PLAIN,
    },
];

/// The value of a variable, which is then one more; an error at `limit`.
pub fn count_up_to(variable: &Output, limit: i64) -> Output {
    variable.scope().op("CountUpTo").input(variable).attr("limit", limit).output()
}

/// As `count_up_to`, for the variable behind a handle.
pub fn resource_count_up_to(handle: &Output, limit: i64, dtype: DType) -> Output {
    handle.scope().op("ResourceCountUpTo").input(handle).attr("limit", limit).attr("T", dtype).output()
}

fn one(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::scalar().merge(&query.inputs[0])?])
}

fn count_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [i32, i64], T => {
        let (target, limit) = (Target::of(setup), setup.int("limit")?);
        Ok(many(move |_, mut inputs| {
            let variable = target.take(&mut inputs, 0)?;
            let before = variable.update(|value| count::<T>(value, limit))?;
            Ok(outputs![before])
        }).free())
    })
}

fn count<T: Element + Into<i64> + TryFrom<i64>>(value: &mut Tensor, limit: i64) -> Result<Tensor> {
    if value.shape().rank() != 0 {
        return Err(invalid!("input is not a scalar: {}", value.shape()));
    }
    let before = value.clone();
    let count: i64 = value.to_scalar::<T>()?.into();
    if count >= limit {
        return Err(out_of_range!("Reached limit of {limit}"));
    }
    let next = T::try_from(count + 1).map_err(|_| out_of_range!("Reached limit of {limit}"))?;
    *value = Tensor::scalar(next);
    Ok(before)
}
