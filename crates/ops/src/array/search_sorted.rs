//! LowerBound and UpperBound: the positions at which values would be inserted into sorted rows.

use super::index::from_places;
use graph::Output;
use math::parallel::split_rows_mut;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, binary};
use status::{Result, invalid};
use std::cmp::Ordering;
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "LowerBound(sorted_inputs: T, values: T) -> output: out_type; T: type; out_type: {int32, int64} = int32",
        shape: bound_shape,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "UpperBound(sorted_inputs: T, values: T) -> output: out_type; T: type; out_type: {int32, int64} = int32",
        shape: bound_shape,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, true),
        facts: PLAIN,
    },
];

/// For each value the first place of its row in `sorted` that is not below it.
pub fn lower_bound(sorted: &Output, values: &Output) -> Output {
    super::nodes::pair("LowerBound", sorted, values)
}

/// For each value the first place of its row in `sorted` that is above it.
pub fn upper_bound(sorted: &Output, values: &Output) -> Output {
    super::nodes::pair("UpperBound", sorted, values)
}

fn bound_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    query.inputs[0].merge(&PartialShape::of_rank(2))?;
    Ok(vec![query.inputs[1].merge(&PartialShape::of_rank(2))?])
}

fn kernel(setup: &Setup<'_>, upper: bool) -> Result<Kernel> {
    let out_type = setup.dtype("out_type")?;
    for_core_to!(setup, [f32, f64, i64, u64], T => Ok(binary(move |ctx, sorted, values| {
        run::<T>(ctx, &sorted, &values, upper, out_type)
    })))
}

fn run<T: Element + PartialOrd>(
    ctx: &Ctx<'_>,
    sorted: &Tensor,
    values: &Tensor,
    upper: bool,
    out_type: DType,
) -> Result<Tensor> {
    let matrix = |tensor: &Tensor, name: &str| match tensor.shape().dims() {
        &[rows, cols] => Ok((rows, cols)),
        dims => Err(invalid!("Shape must be rank 2 but is rank {} for `{name}` argument", dims.len())),
    };
    let (rows, width) = matrix(sorted, "sorted_inputs")?;
    let (value_rows, count) = matrix(values, "values")?;
    if rows != value_rows {
        return Err(invalid!("Leading dim_size of both tensors must match."));
    }
    if values.elements() >= i32::MAX as usize {
        return Err(invalid!("values tensor size must less than INT_MAX"));
    }
    if out_type == DType::I32 && width >= i32::MAX as usize {
        return Err(invalid!("trailing dim_size must less than INT_MAX for int32 output type, was {width}"));
    }
    let (table, wanted) = (sorted.values::<T>()?, values.values::<T>()?);
    let mut places = vec![0_usize; wanted.len()];
    split_rows_mut(ctx.pool(), 20.0, &mut places, 1, |first, part| {
        for (number, place) in part.iter_mut().enumerate() {
            let row = &table[(first + number) / count * width..][..width];
            let value = wanted[first + number];
            *place = match upper {
                true => row.partition_point(|&entry| value.partial_cmp(&entry) != Some(Ordering::Less)),
                false => row.partition_point(|&entry| entry < value),
            };
        }
    });
    from_places(&places, values.shape(), out_type)
}
