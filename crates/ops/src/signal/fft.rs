//! Fourier transforms of complex numbers along the last one, two or three axes.

use super::transform::{Number, check_rank, complex};
use crate::array::nodes;
use graph::{Output, ShapeQuery};
use math::fft::{Direction, Plans};
use op::shapes::unknown;
use op::{Facts, Grad, Grads, Kernel, Op, PLAIN, Setup, grads, unary};
use status::{Result, invalid};
use tensor::{Complex, DType, Element, PartialShape};

macro_rules! transforms {
    ($(($name:literal, $rank:literal, $direction:ident, $back:literal)),* $(,)?) => {
        &[$(Op {
            def: concat!(
                $name,
                "(input: Tcomplex) -> output: Tcomplex; Tcomplex: {complex64, complex128} = complex64"
            ),
            shape: |query| unchanged(query, $rank),
            grad: Grad::Rule(|_, dy| Ok(rule(dy, $rank, Direction::$direction, $back))),
            kernel: |setup| kernel(setup, Direction::$direction, $rank),
            facts: PLAIN,
        },)*
        $(Op {
            def: concat!("Batch", $name, "(input: complex64) -> output: complex64"),
            shape: unknown,
            grad: Grad::Unknown,
            kernel: |setup| kernel(setup, Direction::$direction, $rank),
            facts: removed(concat!("Use ", $name)),
        }),*]
    };
}

pub(crate) const OPS: &[Op] = transforms! {
    ("FFT", 1, Forward, "IFFT"),
    ("FFT2D", 2, Forward, "IFFT2D"),
    ("FFT3D", 3, Forward, "IFFT3D"),
    ("IFFT", 1, Inverse, "FFT"),
    ("IFFT2D", 2, Inverse, "FFT2D"),
    ("IFFT3D", 3, Inverse, "FFT3D"),
};

const fn removed(instead: &'static str) -> Facts {
    PLAIN.removed_in(15, instead)
}

/// The Fourier transform along the last axis.
pub fn fft(input: &Output) -> Output {
    nodes::one("FFT", input)
}

/// The Fourier transform along the last two axes.
pub fn fft2d(input: &Output) -> Output {
    nodes::one("FFT2D", input)
}

/// The Fourier transform along the last three axes.
pub fn fft3d(input: &Output) -> Output {
    nodes::one("FFT3D", input)
}

/// The inverse of `fft`.
pub fn ifft(input: &Output) -> Output {
    nodes::one("IFFT", input)
}

/// The inverse of `fft2d`.
pub fn ifft2d(input: &Output) -> Output {
    nodes::one("IFFT2D", input)
}

/// The inverse of `fft3d`.
pub fn ifft3d(input: &Output) -> Output {
    nodes::one("IFFT3D", input)
}

/// Shape function: the shape of the input, which has at least `rank` axes.
pub(super) fn unchanged(query: &ShapeQuery<'_>, rank: usize) -> Result<Vec<PartialShape>> {
    Ok(vec![with_rank(&query.inputs[0], rank)?])
}

/// The shape, checked to have at least `rank` axes.
pub(super) fn with_rank(shape: &PartialShape, rank: usize) -> Result<PartialShape> {
    match shape.rank() {
        Some(found) if found < rank => Err(invalid!("Shape must be at least rank {rank} but is rank {found}")),
        _ => Ok(shape.clone()),
    }
}

/// The number of elements that are transformed together, as a scalar of type `dtype`.
pub(super) fn size(x: &Output, rank: i32, dtype: DType) -> Output {
    nodes::cast(&nodes::product(&nodes::part(&nodes::shape(x, DType::I32), -rank, None)), dtype)
}

/// The transform in the other direction, without the factor of the inverse or with the missing one.
fn rule(dy: &Output, rank: i32, direction: Direction, back: &str) -> Grads {
    let other = nodes::one(back, dy);
    let size = size(dy, rank, dy.dtype());
    match direction {
        Direction::Forward => grads![other * size],
        Direction::Inverse => grads![other / size],
    }
}

fn kernel(setup: &Setup<'_>, direction: Direction, rank: usize) -> Result<Kernel> {
    match setup.input_types() {
        [DType::C64] => Ok(transform::<f32>(direction, rank)),
        [DType::C128] => Ok(transform::<f64>(direction, rank)),
        _ => Err(setup.no_kernel()),
    }
}

fn transform<T: Number>(direction: Direction, rank: usize) -> Kernel
where
    Complex<T>: Element,
{
    let plans = Plans::<T>::default();
    unary(move |ctx, input| {
        check_rank(&input, rank)?;
        let dims = input.shape().clone();
        complex(ctx, &plans, direction, input, &dims[dims.rank() - rank..])
    })
    .heavy()
}
