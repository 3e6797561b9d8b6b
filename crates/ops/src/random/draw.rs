//! Random ops whose kernels keep their position in a stream.

use super::stream::{Stream, shape_of};
use graph::{Output, Scope, ShapeQuery};
use math::philox::{self, Draw, DrawInteger, Philox};
use op::shapes::shape_from_input;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, many, outputs, unary};
use status::{Result, invalid};
use std::fmt::Display;
use tensor::{DType, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RandomUniform(shape: T) -> output: dtype; seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, \
              float, double}; T: {int32, int64}; stateful",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Uniform),
        facts: PLAIN,
    },
    Op {
        def: "RandomStandardNormal(shape: T) -> output: dtype; seed: int = 0; seed2: int = 0; dtype: {half, \
              bfloat16, float, double}; T: {int32, int64}; stateful",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Normal),
        facts: PLAIN,
    },
    Op {
        def: "TruncatedNormal(shape: T) -> output: dtype; seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, \
              float, double}; T: {int32, int64}; stateful",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Truncated),
        facts: PLAIN,
    },
    Op {
        def: "RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> output: Tout; seed: int = 0; seed2: int = \
              0; Tout: {int32, int64}; T: {int32, int64}; stateful",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: integer_kernel,
        facts: PLAIN,
    },
];

/// Uniform numbers from zero to below one; with a seed, the same ones every time.
pub fn random_uniform(shape: &Output, dtype: DType, seed: Option<i64>) -> Output {
    float_node("RandomUniform", shape, dtype, seed)
}

/// Numbers of the standard normal distribution.
pub fn random_standard_normal(shape: &Output, dtype: DType, seed: Option<i64>) -> Output {
    float_node("RandomStandardNormal", shape, dtype, seed)
}

/// Numbers of the standard normal distribution within two standard deviations.
pub fn truncated_normal(shape: &Output, dtype: DType, seed: Option<i64>) -> Output {
    float_node("TruncatedNormal", shape, dtype, seed)
}

/// Integers from `minval` to below `maxval`.
pub fn random_uniform_int(shape: &Output, minval: &Output, maxval: &Output, seed: Option<i64>) -> Output {
    let (seed, seed2) = seeds(shape.scope(), seed);
    let op = shape.scope().op("RandomUniformInt").input(shape).input(minval).input(maxval);
    op.attr("seed", seed).attr("seed2", seed2).output()
}

fn float_node(op: &str, shape: &Output, dtype: DType, seed: Option<i64>) -> Output {
    let (seed, seed2) = seeds(shape.scope(), seed);
    shape.scope().op(op).input(shape).attr("dtype", dtype).attr("seed", seed).attr("seed2", seed2).output()
}

/// The two seeds of a random node, from the graph's and its own.
pub(crate) fn seeds(scope: &Scope, seed: Option<i64>) -> (i64, i64) {
    scope.graph().seeds(seed)
}

/// The output has the shape that the first input holds.
pub(crate) fn from_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 0)])
}

/// How numbers are spread.
#[derive(Clone, Copy)]
pub(crate) enum Law {
    /// Evenly from zero to below one.
    Uniform,
    /// The standard normal distribution.
    Normal,
    /// Normally, within two standard deviations.
    Truncated,
}

/// A tensor of numbers from a stream.
pub(crate) type Fill = fn(&Ctx<'_>, &Philox, Shape) -> Result<Tensor>;

/// The function that draws numbers of this type by this law.
pub(crate) fn fill_of(setup: &Setup<'_>, dtype: DType, law: Law) -> Result<Fill> {
    for_floats!(setup, dtype, T => Ok(match law {
        Law::Uniform => uniform::<T> as Fill,
        Law::Normal => normal::<T>,
        Law::Truncated => truncated::<T>,
    }))
}

fn uniform<T: Element + Draw>(ctx: &Ctx<'_>, stream: &Philox, shape: Shape) -> Result<Tensor> {
    let mut out = Tensor::scratch::<T>(shape)?;
    philox::uniform(ctx.pool(), stream, out.values_mut::<T>()?);
    Ok(out)
}

fn normal<T: Element + Draw>(ctx: &Ctx<'_>, stream: &Philox, shape: Shape) -> Result<Tensor> {
    let mut out = Tensor::scratch::<T>(shape)?;
    philox::normal(ctx.pool(), stream, out.values_mut::<T>()?);
    Ok(out)
}

fn truncated<T: Element + Draw>(ctx: &Ctx<'_>, stream: &Philox, shape: Shape) -> Result<Tensor> {
    let mut out = Tensor::scratch::<T>(shape)?;
    philox::truncated_normal(ctx.pool(), stream, out.values_mut::<T>()?);
    Ok(out)
}

fn float_kernel(setup: &Setup<'_>, law: Law) -> Result<Kernel> {
    let (fill, stream) = (fill_of(setup, setup.dtype("dtype")?, law)?, Stream::of(setup)?);
    Ok(unary(move |ctx, shape| {
        let shape = shape_of(&shape)?;
        fill(ctx, &stream.take(shape.elements()), shape)
    })
    .heavy())
}

/// The bounds of a draw of integers: `minval` below `maxval`.
pub(crate) fn bounds<T: Element + PartialOrd + Display>(minval: &Tensor, maxval: &Tensor) -> Result<(T, T)> {
    for (name, bound) in [("minval", minval), ("maxval", maxval)] {
        if bound.shape().rank() != 0 {
            return Err(invalid!("{name} must be 0-D, got shape {}", bound.shape()));
        }
    }
    Ok((minval.to_scalar::<T>()?, maxval.to_scalar::<T>()?))
}

/// Integers between bounds, which are checked only if there is anything to draw.
pub(crate) fn integers_within<T: Element + DrawInteger + PartialOrd + Display>(
    ctx: &Ctx<'_>,
    stream: &Philox,
    shape: Shape,
    (low, high): (T, T),
) -> Result<Tensor> {
    let mut out = Tensor::scratch::<T>(shape)?;
    if out.elements() > 0 && low >= high {
        return Err(invalid!("Need minval < maxval, got {low} >= {high}"));
    }
    philox::uniform_integers(ctx.pool(), stream, low, high, out.values_mut::<T>()?);
    Ok(out)
}

fn integer_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let stream = Stream::of(setup)?;
    for_types!(setup, setup.dtype("Tout")?, [i32, i64], T => Ok(many(move |ctx, mut inputs| {
        let (shape, minval, maxval) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let bounds = bounds::<T>(&minval, &maxval)?;
        let shape = shape_of(&shape)?;
        if shape.elements() > 0 && bounds.0 >= bounds.1 {
            return Err(invalid!("Need minval < maxval, got {} >= {}", bounds.0, bounds.1));
        }
        let part = stream.take(shape.elements());
        Ok(outputs![integers_within::<T>(ctx, &part, shape, bounds)?])
    }).heavy()))
}
