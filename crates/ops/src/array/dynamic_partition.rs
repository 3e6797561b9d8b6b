//! DynamicPartition: distributes rows over several tensors.

use super::dynamic_stitch::dynamic_stitch;
use super::index::{place, product, shape_of};
use super::nodes;
use super::units::Unit;
use graph::{Node, Output};
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "DynamicPartition(data: T, partitions: int32) -> outputs: num_partitions * T; num_partitions: int >= 1; T: type",
    shape: partition_shape,
    grad: Grad::Rules(partition_rule),
    kernel: partition_kernel,
    facts: PLAIN,
}];

/// Distributes the rows of `data` over the outputs; `partitions` holds the output of each row.
pub fn dynamic_partition(data: &Output, partitions: &Output, count: usize) -> Vec<Output> {
    let builder = data.scope().op("DynamicPartition").input(data).input(partitions);
    builder.attr("num_partitions", count).node().outputs()
}

fn partition_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some(data), Some(partitions)) = (query.inputs[0].dims(), query.inputs[1].dims()) else {
        return Ok(vec![PartialShape::unknown(); query.outputs]);
    };
    let Some(prefix) = data.get(..partitions.len()) else {
        return Err(invalid!("Shape must be at least rank {} but is rank {}", partitions.len(), data.len()));
    };
    PartialShape::new(prefix).merge(&query.inputs[1])?;
    let shape = PartialShape::new(&[&[-1], &data[partitions.len()..]].concat());
    Ok(vec![shape; query.outputs])
}

/// Row numbers take the same way; stitching by them brings the gradients back.
fn partition_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let [data, partitions] = op.inputs()?;
    let count = op.attr_int("num_partitions")? as usize;
    let numbers = nodes::range(&nodes::size(&partitions, DType::I32));
    let numbers = nodes::reshape(&numbers, &nodes::shape(&partitions, DType::I32));
    let places = dynamic_partition(&numbers, &partitions, count);
    let dys: Vec<Output> =
        (0..count).map(|part| dys[part].clone().unwrap_or_else(|| nodes::zeros_like(&op.output(part)))).collect();
    let stitched = dynamic_stitch(&places, &dys);
    Ok(grads![nodes::reshape(&stitched, &nodes::shape(&data, DType::I32)), NoGradient])
}

fn partition_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let count = setup.int("num_partitions")? as usize;
    Ok(many(move |_, inputs| run(inputs, count)))
}

fn run(mut inputs: Inputs, count: usize) -> Result<Outputs> {
    let (data, partitions) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if !data.shape().starts_with(partitions.shape()) {
        return Err(invalid!(
            "data.shape must start with partitions.shape, got data.shape = {}, partitions.shape = {}",
            data.shape(),
            partitions.shape()
        ));
    }
    let numbers = partitions.values::<i32>()?;
    let mut counts = vec![0; count];
    for (flat, &number) in numbers.iter().enumerate() {
        match usize::try_from(number).ok().and_then(|number| counts.get_mut(number)) {
            Some(slot) => *slot += 1,
            None => {
                let place = place(partitions.shape(), flat);
                return Err(invalid!("partitions{place} = {number} is not in [0, {count})"));
            }
        }
    }
    let row = &data.shape()[partitions.shape().rank()..];
    let make = |&rows: &usize| Tensor::scratch_of(data.dtype(), shape_of(&[&[rows], row])?);
    let mut outputs: Vec<Tensor> = counts.iter().map(make).collect::<Result<_>>()?;
    if data.elements() > 0 {
        for_runs!(data.dtype(), product(row), (E, width) => deal(E::of(&data)?, numbers, &mut outputs, width, E::of_mut)?);
    }
    Ok(outputs.into_iter().map(Into::into).collect())
}

fn deal<E: Unit>(
    data: &[E],
    numbers: &[i32],
    outputs: &mut [Tensor],
    width: usize,
    units: fn(&mut Tensor) -> Result<&mut [E]>,
) -> Result<()> {
    let mut rest: Vec<&mut [E]> = outputs.iter_mut().map(units).collect::<Result<_>>()?;
    for (row, &number) in data.chunks_exact(width).zip(numbers) {
        let part = &mut rest[number as usize];
        let (now, later) = std::mem::take(part).split_at_mut(width);
        now.clone_from_slice(row);
        *part = later;
    }
    Ok(())
}
