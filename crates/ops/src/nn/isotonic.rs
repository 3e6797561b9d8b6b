//! IsotonicRegression: the nearest non-increasing sequence along the last axis.

use crate::array::gather::gather;
use crate::array::nodes;
use crate::array::unsorted_segment::unsorted_segment_sum;
use crate::math_ops::cast::converter;
use graph::{Node, Output};
use math::function::Real;
use math::isotonic;
use op::{Ctx, Grad, Gradient, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "IsotonicRegression(input: T) -> output: output_dtype, segments: int32; T: realnumbertype; \
          output_dtype: {half, bfloat16, float, double} = float",
    shape: both_unchanged,
    grad: Grad::Rules(rule),
    kernel,
    facts: PLAIN,
}];

/// The numbers nearest to `input`, in squares, that never rise along the last axis, and for each the number of the run
/// of equal ones it is in.
pub fn isotonic_regression(input: &Output) -> (Output, Output) {
    let output_dtype = match input.dtype() {
        DType::I8 | DType::I16 => DType::F32,
        DType::I32 | DType::I64 => DType::F64,
        same => same,
    };
    let node = input.scope().op("IsotonicRegression").input(input).attr("output_dtype", output_dtype).node();
    (node.output(0), node.output(1))
}

fn both_unchanged(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[0].clone(); 2])
}

/// All numbers of a run contribute equally to its mean, so the gradient of a run is spread evenly over it.
fn rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let Some(Some(dy)) = dy.first() else { return Ok(vec![None]) };
    let (x, runs) = (op.input(0), places_of_runs(&op.output(1)));
    let (count, flat) = (nodes::size(dy, DType::I32), nodes::flat(dy));
    let sums = unsorted_segment_sum(&flat, &runs, &count);
    let lengths = unsorted_segment_sum(&nodes::one("OnesLike", &flat), &runs, &count);
    let dx = gather(&sums, &runs) / gather(&lengths, &runs);
    let dx = nodes::reshape(&dx, &nodes::shape(dy, DType::I32));
    Ok(vec![Some(Gradient::Dense(nodes::cast(&dx, x.dtype())))])
}

/// The number of each run among all rows, flat: a row has no more runs than places.
fn places_of_runs(runs: &Output) -> Output {
    let width = nodes::element(&nodes::shape(runs, DType::I32), -1);
    let place = nodes::range(&nodes::size(runs, DType::I32));
    let row = nodes::pair("FloorDiv", &place, &width);
    nodes::flat(runs) + row * width
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    use DType as D;
    let (src, dst) = (setup.dtype("T")?, setup.dtype("output_dtype")?);
    let known = match dst {
        D::F16 | D::BF16 => src == dst,
        D::F32 => matches!(src, D::F32 | D::I8 | D::I16),
        _ => matches!(src, D::F64 | D::I32 | D::I64),
    };
    if !known {
        return Err(setup.no_kernel());
    }
    let convert = converter(src, dst)?;
    for_floats!(setup, dst, T => Ok(many(move |ctx, mut inputs| run::<T>(ctx, convert(ctx, inputs.tensor(0)?)?))))
}

fn run<T: Element + Real>(ctx: &Ctx<'_>, mut values: Tensor) -> Result<Outputs> {
    let width = values.shape().last().copied().unwrap_or(1);
    let rows = values.elements() / width.max(1);
    if width.max(rows) >= i32::MAX as usize {
        return Err(invalid!("Tensor too large"));
    }
    let mut runs = Tensor::scratch::<i32>(values.shape())?;
    isotonic(ctx.pool(), width, values.values_mut::<T>()?, runs.values_mut()?);
    Ok(outputs![values, runs])
}
