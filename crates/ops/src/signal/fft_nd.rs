//! Fourier transforms along any number of last axes.

use super::fft::with_rank;
use super::real_fft::wrong_types;
use super::transform::{Number, check_rank, complex, forward, inverse, lengths, real_lengths};
use graph::{Output, ShapeQuery};
use math::fft::{Direction, Plans};
use op::{Ctx, Grad, Inputs, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{Complex, DType, Element, PartialShape, Tensor};

macro_rules! transforms {
    ($(($def:literal, $kernel:expr)),* $(,)?) => {
        &[$(Op {
            def: $def,
            shape,
            grad: Grad::Unknown,
            kernel: $kernel,
            facts: PLAIN,
        }),*]
    };
}

pub(crate) const OPS: &[Op] = transforms! {
    (
        "FFTND(input: Tcomplex, fft_length: int32, axes: int32) -> output: Tcomplex; \
         Tcomplex: {complex64, complex128} = complex64",
        |setup| complex_kernel(setup, Direction::Forward)
    ),
    (
        "IFFTND(input: Tcomplex, fft_length: int32, axes: int32) -> output: Tcomplex; \
         Tcomplex: {complex64, complex128} = complex64",
        |setup| complex_kernel(setup, Direction::Inverse)
    ),
    (
        "RFFTND(input: Treal, fft_length: int32, axes: int32) -> output: Tcomplex; Treal: {float, double} = float; \
         Tcomplex: {complex64, complex128} = complex64",
        forward_kernel
    ),
    (
        "IRFFTND(input: Tcomplex, fft_length: int32, axes: int32) -> output: Treal; Treal: {float, double} = float; \
         Tcomplex: {complex64, complex128} = complex64",
        inverse_kernel
    ),
};

/// The Fourier transform along `axes`, the last ones in order, each cropped or padded to its length.
pub fn fftnd(input: &Output, fft_length: &Output, axes: &Output) -> Output {
    input.scope().op("FFTND").input(input).input(fft_length).input(axes).output()
}

/// The inverse of `fftnd`.
pub fn ifftnd(input: &Output, fft_length: &Output, axes: &Output) -> Output {
    input.scope().op("IFFTND").input(input).input(fft_length).input(axes).output()
}

/// The axes before the transformed ones keep their sizes.
fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let input = with_rank(&query.inputs[0], 1)?;
    let (Some(dims), Some(rank)) = (input.dims(), query.inputs[1].dim(0)) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let batch = dims.len().saturating_sub(rank);
    Ok(vec![PartialShape::new(&[&dims[..batch], &vec![-1; dims.len() - batch]].concat())])
}

fn complex_kernel(setup: &Setup<'_>, direction: Direction) -> Result<Kernel> {
    match setup.dtype("Tcomplex")? {
        DType::C64 => Ok(complex_run::<f32>(direction)),
        _ => Ok(complex_run::<f64>(direction)),
    }
}

fn complex_run<T: Number>(direction: Direction) -> Kernel
where
    Complex<T>: Element,
{
    let plans = Plans::<T>::default();
    run(move |ctx, input, fft_length, _| complex(ctx, &plans, direction, input, &lengths(fft_length)?))
}

fn forward_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match (setup.dtype("Treal")?, setup.dtype("Tcomplex")?) {
        (DType::F32, DType::C64) => Ok(forward_run::<f32>()),
        (DType::F64, DType::C128) => Ok(forward_run::<f64>()),
        (real, complex) => Ok(wrong_types("forward", real, complex)),
    }
}

fn forward_run<T: Number>() -> Kernel
where
    Complex<T>: Element,
{
    let plans = Plans::<T>::default();
    run(move |ctx, input, fft_length, rank| {
        forward(ctx, &plans, &input, &real_lengths(input.shape(), fft_length, rank, false)?)
    })
}

fn inverse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match (setup.dtype("Tcomplex")?, setup.dtype("Treal")?) {
        (DType::C64, DType::F32) => Ok(inverse_run::<f32>()),
        (DType::C128, DType::F64) => Ok(inverse_run::<f64>()),
        (complex, real) => Ok(wrong_types("backward", complex, real)),
    }
}

fn inverse_run<T: Number>() -> Kernel
where
    Complex<T>: Element,
{
    let plans = Plans::<T>::default();
    run(move |ctx, input, fft_length, rank| {
        let lengths = real_lengths(input.shape(), fft_length, rank, true)?;
        inverse(ctx, &plans, input, &lengths)
    })
}

/// A kernel of checked inputs: the tensor, the lengths, and the number of axes.
fn run(run: impl Fn(&Ctx<'_>, Tensor, &Tensor, usize) -> Result<Tensor> + Send + Sync + 'static) -> Kernel {
    many(move |ctx, mut inputs: Inputs| {
        let (input, fft_length, axes) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let rank = check_axes(&input, &axes)?;
        if fft_length.shape().dims() != [rank] {
            let found = fft_length.shape().first().copied().unwrap_or(0);
            return Err(invalid!("fft_length must have shape [{rank}], but got: {found}."));
        }
        Ok(outputs![run(ctx, input, &fft_length, rank)?])
    })
    .heavy()
}

/// The number of axes, which are the last ones in order.
fn check_axes(input: &Tensor, axes: &Tensor) -> Result<usize> {
    let &[rank] = axes.shape().dims() else { return Err(invalid!("axes must be a vector, not {}", axes.shape())) };
    check_rank(input, rank)?;
    let from_end = |axis: i64| if axis < 0 { axis } else { axis - input.shape().rank() as i64 };
    let axes: Vec<i64> = axes.values::<i32>()?.iter().map(|&axis| from_end(axis.into())).collect();
    if axes.windows(2).any(|pair| pair[0] + 1 != pair[1]) {
        return Err(invalid!("axes must be successive and ascending."));
    }
    match axes.last() {
        Some(-1) => Ok(rank),
        _ => Err(invalid!("The last axis to perform transform on must be -1.")),
    }
}
