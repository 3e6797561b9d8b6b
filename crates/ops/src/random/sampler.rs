//! Samples of parameterised distributions. Each sample depends only on the stream and its own number.

use super::stream::{Source, shape_of};
use graph::ShapeQuery;
use math::parallel::split_mut;
use math::philox::{Philox, RESERVED_BLOCKS};
use op::Ctx;
use op::shapes::shape_from_input;
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Shape, Tensor, bf16, f16};

/// An element that samples, which are doubles, become.
pub(crate) trait Sampled: Element {
    /// The largest value.
    const HIGHEST: f64;
    /// The element for a sample.
    fn of(sample: f64) -> Self;
}

macro_rules! sampled {
    ($($t:ty, $highest:expr, $of:expr;)*) => {$(
        impl Sampled for $t {
            const HIGHEST: f64 = $highest;

            #[inline(always)]
            fn of(sample: f64) -> $t {
                $of(sample)
            }
        }
    )*};
}

sampled! {
    f16, 65504.0, |x: f64| f16::from_f32(x as f32);
    f32, f32::MAX as f64, |x| x as f32;
    f64, f64::MAX, |x| x;
    i32, i32::MAX as f64, |x| x as i32;
    i64, i64::MAX as f64, |x| x as i64;
}

/// Nanoseconds a sample takes, roughly.
const COST: f32 = 60.0;

/// Draws `samples` for each of `parameters`: in the result samples are outermost, in the stream parameters are.
/// `sample` gets the index of the parameter and a source of doubles of its own.
pub(crate) fn draw<T: Sampled>(
    ctx: &Ctx<'_>,
    stream: &Philox,
    shape: Shape,
    parameters: usize,
    sample: impl Fn(usize, &mut Source) -> f64 + Sync,
) -> Result<Tensor> {
    draw_from::<T>(ctx, shape, parameters, |parameter, number| {
        sample(parameter, &mut Source::new(stream, (number as u64).wrapping_mul(RESERVED_BLOCKS)))
    })
}

/// As `draw`; `sample` gets the number of the parameter and the number of the sample.
pub(crate) fn draw_from<T: Sampled>(
    ctx: &Ctx<'_>,
    shape: Shape,
    parameters: usize,
    sample: impl Fn(usize, usize) -> f64 + Sync,
) -> Result<Tensor> {
    let mut out = Tensor::scratch::<T>(shape)?;
    let samples = out.elements() / parameters.max(1);
    split_mut(ctx.pool(), COST, out.values_mut::<T>()?, |first, chunk| {
        for (place, out) in (first..).zip(chunk) {
            let (parameter, number) = (place % parameters, place / parameters);
            *out = T::of(sample(parameter, parameter * samples + number));
        }
    });
    Ok(out)
}

/// The elements of a tensor of numbers, as doubles.
pub(crate) fn doubles(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(match tensor.dtype() {
        DType::F16 => tensor.values::<f16>()?.iter().map(|x| x.to_f64()).collect(),
        DType::BF16 => tensor.values::<bf16>()?.iter().map(|x| x.to_f64()).collect(),
        DType::F32 => tensor.values::<f32>()?.iter().map(|&x| x.into()).collect(),
        DType::F64 => tensor.values::<f64>()?.to_vec(),
        DType::I32 => tensor.values::<i32>()?.iter().map(|&x| x.into()).collect(),
        DType::I64 => tensor.values::<i64>()?.iter().map(|&x| x as f64).collect(),
        other => return Err(invalid!("Expected a tensor of numbers, got one of type {other}")),
    })
}

/// The shape that a shape tensor and, after it, the shape of the parameters make.
pub(crate) fn appended(shape: &Tensor, parameters: &Shape) -> Result<Shape> {
    let whole: Shape = shape_of(shape)?.iter().chain(parameters.iter()).copied().collect();
    Shape::checked(&whole.to_i64())
}

/// The shape in a shape tensor, which must end with the shape of the parameters.
pub(crate) fn ending_with(shape: &Tensor, parameters: &Shape) -> Result<Shape> {
    let shape = shape_of(shape)?;
    match shape.ends_with(parameters) {
        true => Ok(shape),
        false => Err(invalid!("Shape passed in must end with broadcasted shape.")),
    }
}

/// The output has the shape that the first input holds, then that of the second.
pub(crate) fn appended_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (first, second) = (shape_from_input(query, 0), &query.inputs[query.inputs.len() - 1]);
    let dims = first.dims().zip(second.dims());
    Ok(vec![match dims {
        Some((first, second)) => PartialShape::new(&[first, second].concat()),
        None => PartialShape::unknown(),
    }])
}
