//! Fourier transforms of real numbers along the last one, two or three axes, and back.

use super::fft::{size, with_rank};
use super::transform::{Number, check_rank, forward, inverse, real_lengths};
use crate::array::nodes;
use crate::math_ops::complex::complex;
use graph::{Node, Output, ShapeQuery};
use math::fft::Plans;
use op::shapes::integers;
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid};
use tensor::{Complex, DType, Element, PartialShape, Tensor};

macro_rules! transforms {
    ($(($rank:literal, $forward:literal, $forward_grad:expr, $inverse:literal, $inverse_grad:expr)),* $(,)?) => {
        &[$(Op {
            def: concat!(
                $forward,
                "(input: Treal, fft_length: int32) -> output: Tcomplex; Treal: {float, double} = float; \
                 Tcomplex: {complex64, complex128} = complex64"
            ),
            shape: |query| shape(query, $rank, true),
            grad: $forward_grad,
            kernel: |setup| forward_kernel(setup, $rank),
            facts: PLAIN,
        },
        Op {
            def: concat!(
                $inverse,
                "(input: Tcomplex, fft_length: int32) -> output: Treal; Treal: {float, double} = float; \
                 Tcomplex: {complex64, complex128} = complex64"
            ),
            shape: |query| shape(query, $rank, false),
            grad: $inverse_grad,
            kernel: |setup| inverse_kernel(setup, $rank),
            facts: PLAIN,
        }),*]
    };
}

pub(crate) const OPS: &[Op] = transforms! {
    (
        1,
        "RFFT", Grad::Rule(|op, dy| Ok(forward_rule(op, dy, "IRFFT", 1))),
        "IRFFT", Grad::Rule(|op, dy| Ok(inverse_rule(op, dy, "RFFT", 1)))
    ),
    (
        2,
        "RFFT2D", Grad::Rule(|op, dy| Ok(forward_rule(op, dy, "IRFFT2D", 2))),
        "IRFFT2D", Grad::Rule(|op, dy| Ok(inverse_rule(op, dy, "RFFT2D", 2)))
    ),
    (3, "RFFT3D", Grad::Unknown, "IRFFT3D", Grad::Unknown),
};

/// The first half of the frequencies of real rows, which are cropped to `fft_length`.
pub fn rfft(input: &Output, fft_length: &Output) -> Output {
    to_complex("RFFT", input, fft_length)
}

/// As `rfft`, along the last two axes.
pub fn rfft2d(input: &Output, fft_length: &Output) -> Output {
    to_complex("RFFT2D", input, fft_length)
}

/// As `rfft`, along the last three axes.
pub fn rfft3d(input: &Output, fft_length: &Output) -> Output {
    to_complex("RFFT3D", input, fft_length)
}

/// Real rows of `fft_length` numbers from the first half of their frequencies.
pub fn irfft(input: &Output, fft_length: &Output) -> Output {
    to_real("IRFFT", input, fft_length)
}

/// As `irfft`, along the last two axes.
pub fn irfft2d(input: &Output, fft_length: &Output) -> Output {
    to_real("IRFFT2D", input, fft_length)
}

/// As `irfft`, along the last three axes.
pub fn irfft3d(input: &Output, fft_length: &Output) -> Output {
    to_real("IRFFT3D", input, fft_length)
}

fn to_complex(op: &str, input: &Output, fft_length: &Output) -> Output {
    let dtype = if input.dtype() == DType::F64 { DType::C128 } else { DType::C64 };
    input.scope().op(op).input(input).input(fft_length).attr("Tcomplex", dtype).output()
}

fn to_real(op: &str, input: &Output, fft_length: &Output) -> Output {
    input.scope().op(op).input(input).input(fft_length).attr("Treal", real_of(input.dtype())).output()
}

fn real_of(dtype: DType) -> DType {
    if dtype == DType::C128 { DType::F64 } else { DType::F32 }
}

/// Shape function: the last axes have the lengths of input `fft_length`, the last one of frequencies about half.
fn shape(query: &ShapeQuery<'_>, rank: usize, halved: bool) -> Result<Vec<PartialShape>> {
    let input = with_rank(&query.inputs[0], rank)?;
    query.inputs[1].merge(&PartialShape::new(&[rank as i64]))?;
    let Some(dims) = input.dims() else { return Ok(vec![PartialShape::unknown()]) };
    let mut lengths = match query.constants.get(1).and_then(Option::as_ref) {
        Some(lengths) => integers(lengths)?,
        None => vec![-1; rank],
    };
    if let Some(last) = lengths.last_mut()
        && halved
        && *last > 0
    {
        *last = *last / 2 + 1;
    }
    Ok(vec![PartialShape::new(&[&dims[..dims.len() - rank], &lengths].concat())])
}

/// The transform of real numbers is linear: its transpose is the inverse transform without the factor of the inverse,
/// in which a frequency that stands for two counts once.
fn forward_rule(op: &Node, dy: &Output, inverse: &str, rank: i32) -> Grads {
    let (input, fft_length) = (op.input(0), op.input(1));
    let once = dy / counts(&fft_length, dy.dtype());
    let rows = to_real(inverse, &once, &fft_length);
    let dx = &rows * size(&rows, rank, rows.dtype());
    grads![padded(&dx, &input), NoGradient]
}

/// The transpose of the inverse: a frequency that stands for two gets the gradient of both.
fn inverse_rule(op: &Node, dy: &Output, forward: &str, rank: i32) -> Grads {
    let (input, fft_length) = (op.input(0), op.input(1));
    let frequencies = to_complex(forward, dy, &fft_length);
    let each = counts(&fft_length, input.dtype()) / size(dy, rank, input.dtype());
    grads![padded(&(frequencies * each), &input), NoGradient]
}

/// How many frequencies of a real row each of the first half stands for: one for zero and for half of an even length,
/// else two.
fn counts(fft_length: &Output, dtype: DType) -> Output {
    let scope = fft_length.scope();
    let last = nodes::part(fft_length, -1, None);
    let one = || nodes::ints(scope, &[1]);
    let pairs = nodes::pair("FloorDiv", &(&last - one()), &nodes::ints(scope, &[2]));
    let halves = one() - nodes::pair("FloorMod", &last, &nodes::ints(scope, &[2]));
    let real = |value: f32| nodes::cast(&nodes::constant(scope, Tensor::scalar(value)), real_of(dtype));
    let repeated = |count: &Output, value: f32| nodes::pair("Fill", count, &real(value));
    let parts = [repeated(&one(), 1.0), repeated(&pairs, 2.0), repeated(&halves, 1.0)];
    let counts = nodes::concat(&parts.iter().collect::<Vec<_>>());
    complex(&counts, &nodes::zeros_like(&counts))
}

/// The gradient of an input that was cropped: zero where it was cut off.
fn padded(gradient: &Output, input: &Output) -> Output {
    let (found, wanted) = (gradient.shape(), input.shape());
    if found.known().is_some() && found == wanted {
        return gradient.clone();
    }
    let missing = nodes::shape(input, DType::I32) - nodes::shape(gradient, DType::I32);
    let pads = gradient.scope().op("Pack").inputs([&nodes::zeros_like(&missing), &missing]).attr("axis", 1).output();
    nodes::pair("Pad", gradient, &pads)
}

fn forward_kernel(setup: &Setup<'_>, rank: usize) -> Result<Kernel> {
    match (setup.dtype("Treal")?, setup.dtype("Tcomplex")?) {
        (DType::F32, DType::C64) => Ok(forward_run::<f32>(rank)),
        (DType::F64, DType::C128) => Ok(forward_run::<f64>(rank)),
        (real, complex) => Ok(wrong_types("forward", real, complex)),
    }
}

fn inverse_kernel(setup: &Setup<'_>, rank: usize) -> Result<Kernel> {
    match (setup.dtype("Tcomplex")?, setup.dtype("Treal")?) {
        (DType::C64, DType::F32) => Ok(inverse_run::<f32>(rank)),
        (DType::C128, DType::F64) => Ok(inverse_run::<f64>(rank)),
        (complex, real) => Ok(wrong_types("backward", complex, real)),
    }
}

/// A kernel that refuses every input: the types do not belong together.
pub(super) fn wrong_types(direction: &'static str, from: DType, to: DType) -> Kernel {
    let (from, to) = (from.number(), to.number());
    op::many(move |_, _| Err(invalid!("Wrong types for {direction} real FFT: in={from} out={to}")))
}

fn forward_run<T: Number>(rank: usize) -> Kernel
where
    Complex<T>: Element,
{
    let plans = Plans::<T>::default();
    binary(move |ctx, input, fft_length| {
        check(&input, &fft_length, rank)?;
        forward(ctx, &plans, &input, &real_lengths(input.shape(), &fft_length, rank, false)?)
    })
    .heavy()
}

fn inverse_run<T: Number>(rank: usize) -> Kernel
where
    Complex<T>: Element,
{
    let plans = Plans::<T>::default();
    binary(move |ctx, input, fft_length| {
        check(&input, &fft_length, rank)?;
        let lengths = real_lengths(input.shape(), &fft_length, rank, true)?;
        inverse(ctx, &plans, input, &lengths)
    })
    .heavy()
}

fn check(input: &Tensor, fft_length: &Tensor, rank: usize) -> Result<()> {
    check_rank(input, rank)?;
    match fft_length.shape().dims() == [rank] {
        true => Ok(()),
        false => Err(invalid!("fft_length must have shape [{rank}]")),
    }
}
