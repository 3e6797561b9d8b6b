//! DynamicStitch: merges rows of several tensors by index.

use super::gather::gather;
use super::index::{product, shape_of};
use super::units::Unit;
use graph::{Node, Output};
use math::rows;
use op::{Ctx, Grad, Grads, Inputs, IntoGradient, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DynamicStitch(indices: N * int32, data: N * T) -> merged: T; N: int >= 1; T: type",
        shape: stitch_shape,
        grad: Grad::Rule(stitch_rule),
        kernel: stitch_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ParallelDynamicStitch(indices: N * int32, data: N * T) -> merged: T; N: int >= 1; T: type",
        shape: stitch_shape,
        grad: Grad::Rule(stitch_rule),
        kernel: stitch_kernel,
        facts: PLAIN,
    },
];

/// Merges the rows of all `data`, each at the position its index gives.
pub fn dynamic_stitch(indices: &[Output], data: &[Output]) -> Output {
    indices[0].scope().op("DynamicStitch").inputs(indices).inputs(data).output()
}

fn stitch_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let count = query.inputs.len() / 2;
    let mut row = PartialShape::unknown();
    let mut highest = Some(-1);
    for number in 0..count {
        let largest = query.constants[number].as_ref().and_then(|indices| indices.values::<i32>().ok());
        highest = highest.zip(largest).map(|(highest, all)| all.iter().copied().fold(highest, i32::max));
        let (Some(indices), Some(data)) = (query.inputs[number].dims(), query.inputs[number + count].dims()) else {
            continue;
        };
        let Some(prefix) = data.get(..indices.len()) else {
            return Err(invalid!("Shape must be at least rank {} but is rank {}", indices.len(), data.len()));
        };
        PartialShape::new(prefix).merge(&query.inputs[number])?;
        row = row.merge(&PartialShape::new(&data[indices.len()..]))?;
    }
    let rows = highest.map_or(-1, |highest| i64::from(highest) + 1);
    let whole = row.dims().map(|row| PartialShape::new(&[&[rows], row].concat()));
    Ok(vec![whole.unwrap_or(PartialShape::unknown())])
}

fn stitch_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let inputs = op.all_inputs();
    let indices = &inputs[..inputs.len() / 2];
    let nothing = indices.iter().map(|_| None);
    Ok(nothing.chain(indices.iter().map(|indices| gather(dy, indices).into_gradient())).collect())
}

fn stitch_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let count = setup.int("N")? as usize;
    Ok(many(move |ctx, inputs| run(ctx, inputs, count)))
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs, count: usize) -> Result<Outputs> {
    let (indices, data) = (inputs.tensors(0, count)?, inputs.tensors(count, count)?);
    let mut rows = 0;
    for indices in &indices {
        rows = indices.values::<i32>()?.iter().fold(rows, |rows, &index| rows.max(i64::from(index) + 1));
    }
    for indices in &indices {
        if let Some(place) = indices.values::<i32>()?.iter().position(|&index| index < 0) {
            return Err(invalid!("indices[{place}] is out of range"));
        }
    }
    let row = checked_row(&indices, &data)?;
    let shape = shape_of(&[&[rows as usize], &row])?;
    let given: usize = indices.iter().map(Tensor::elements).sum();
    // Only where rows are left out need they be cleared.
    let mut merged = match given < rows as usize || !data[0].dtype().is_plain() {
        true => Tensor::zeros_of(data[0].dtype(), shape)?,
        false => covered(&indices, rows as usize, data[0].dtype(), shape)?,
    };
    for (indices, data) in indices.iter().zip(&data) {
        let targets: Vec<usize> = indices.values::<i32>()?.iter().map(|&index| index as usize).collect();
        for_runs!(data.dtype(), product(&row), (E, width) => {
            let (rows, merged) = (E::of(data)?, E::of_mut(&mut merged)?);
            let cost = 4.0 + (width * size_of::<E>()) as f32 / 8.0;
            rows::combine(ctx.pool(), cost, merged, width, &targets, |to, i| {
                to.clone_from_slice(&rows[i * width..][..width])
            });
        });
    }
    Ok(outputs![merged])
}

/// Room for the result: cleared unless every row is given.
fn covered(indices: &[Tensor], rows: usize, dtype: tensor::DType, shape: Shape) -> Result<Tensor> {
    let mut seen = vec![false; rows];
    let mut missing = rows;
    for indices in indices {
        for &index in indices.values::<i32>()? {
            missing -= usize::from(!std::mem::replace(&mut seen[index as usize], true));
        }
    }
    if missing > 0 { Tensor::zeros_of(dtype, shape) } else { Tensor::scratch_of(dtype, shape) }
}

/// The shape of one row, the same for all inputs.
fn checked_row(indices: &[Tensor], data: &[Tensor]) -> Result<Shape> {
    let row = |number: usize| data[number].shape().get(indices[number].shape().rank()..);
    for number in 0..data.len() {
        let (places, values) = (indices[number].shape(), data[number].shape());
        if !values.starts_with(places) {
            return Err(invalid!(
                "data[{number}].shape = {values} does not start with indices[{number}].shape = {places}"
            ));
        }
        if row(number) != row(0) {
            return Err(invalid!(
                "Need data[0].shape[{}:] = data[{number}].shape[{}:], got data[0].shape = {}, data[{number}].shape = {values}, \
                 indices[0].shape = {}, indices[{number}].shape = {places}",
                indices[0].shape().rank(),
                places.rank(),
                data[0].shape(),
                indices[0].shape()
            ));
        }
    }
    Ok(Shape::new(row(0).unwrap_or_default()))
}
