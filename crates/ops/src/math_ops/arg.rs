//! Indices of the largest and smallest elements along an axis.

use super::axes::place_of;
use super::cast::converter;
use graph::{Output, Scope};
use math::function::Ordered;
use math::reduce::{argmax as find_largest, argmin as find_smallest};
use op::shapes::integers;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, binary};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ArgMax(input: T, dimension: Tidx) -> output: output_type; T: {realnumbertype, qint8, quint8, qint32, \
              qint16, quint16, bool}; Tidx: {int16, int32, int64} = int32; \
              output_type: {int16, uint16, int32, int64} = int64",
        shape: arg_shape,
        grad: Grad::Stop,
        kernel: |setup| arg_kernel(setup, Extreme::Largest),
        facts: PLAIN,
    },
    Op {
        def: "ArgMin(input: T, dimension: Tidx) -> output: output_type; T: {realnumbertype, qint8, quint8, qint32, \
              qint16, quint16, bool}; Tidx: {int32, int64} = int32; output_type: {int32, int64} = int64",
        shape: arg_shape,
        grad: Grad::Stop,
        kernel: |setup| arg_kernel(setup, Extreme::Smallest),
        facts: PLAIN,
    },
];

/// The position of the largest element along `axis`.
pub fn argmax(x: &Output, axis: i32) -> Output {
    build("ArgMax", x, axis)
}

/// The position of the smallest element along `axis`.
pub fn argmin(x: &Output, axis: i32) -> Output {
    build("ArgMin", x, axis)
}

fn build(op: &str, x: &Output, axis: i32) -> Output {
    let scope: &Scope = x.scope();
    let axis = super::broadcast_grad::constant(scope, Tensor::scalar(axis));
    scope.op(op).input(x).input(&axis).output()
}

fn arg_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let axis = match query.constants.get(1).and_then(Option::as_ref).map(integers) {
        Some(Ok(axes)) if axes.len() == 1 => axes[0],
        _ if dims.len() == 1 => return Ok(vec![PartialShape::scalar()]),
        _ => return Ok(vec![PartialShape::of_rank(dims.len().saturating_sub(1))]),
    };
    let rank = dims.len() as i64;
    let place = place_of(axis, dims.len())
        .ok_or_else(|| invalid!("Dimension ({axis}) must be in the range [{}, {rank}), where {rank} is the number of dimensions in the input.", -rank))?;
    let mut left = dims.to_vec();
    left.remove(place);
    Ok(vec![PartialShape::new(&left)])
}

#[derive(Clone, Copy)]
enum Extreme {
    Largest,
    Smallest,
}

fn arg_kernel(setup: &Setup<'_>, extreme: Extreme) -> Result<Kernel> {
    let output_type = setup.dtype("output_type")?;
    for_core_to!(setup, [f32, f64, i32, i64, u64], T => {
        let narrow = (output_type != DType::I64).then(|| converter(DType::I64, output_type)).transpose()?;
        Ok(binary(move |ctx, x, axis| {
            let positions = run_arg::<T>(ctx, extreme, &x, &axis)?;
            match &narrow {
                None => Ok(positions),
                Some(narrow) => narrow(ctx, positions),
            }
        }))
    })
}

fn run_arg<T: Element + Ordered>(ctx: &Ctx<'_>, extreme: Extreme, x: &Tensor, axis: &Tensor) -> Result<Tensor> {
    let place = checked_axis(x.shape(), axis)?;
    let dims = x.shape().dims();
    let mut left = x.shape().clone();
    left.dims_mut().remove(place);
    let mut out = Tensor::zeros::<i64>(left)?;
    if x.elements() > 0 {
        let (outer, inner) = (dims[..place].iter().product(), dims[place + 1..].iter().product());
        let (sizes, src, dst) = ([outer, dims[place], inner], x.values::<T>()?, out.values_mut::<i64>()?);
        match extreme {
            Extreme::Largest => find_largest(ctx.pool(), sizes, src, dst),
            Extreme::Smallest => find_smallest(ctx.pool(), sizes, src, dst),
        }
    }
    Ok(out)
}

fn checked_axis(shape: &Shape, axis: &Tensor) -> Result<usize> {
    if axis.shape().rank() != 0 {
        return Err(invalid!("dim must be a scalar, but received tensor of shape: {}", axis.shape()));
    }
    let (axis, rank) = (integers(axis)?[0], shape.rank());
    let place = place_of(axis, rank)
        .ok_or_else(|| invalid!("Expected dimension in the range [{}, {rank}), but got {axis}", -(rank as i64)))?;
    if shape[place] == 0 {
        return Err(invalid!("Reduction axis {axis} is empty in shape {shape}"));
    }
    Ok(place)
}
