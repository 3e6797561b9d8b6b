//! Complex numbers: real and imaginary parts, absolute value, angle, conjugate.

use super::broadcast_grad::summed;
use super::division::div_no_nan;
use super::kernels::{mapping, mapping_to, pairing_to};
use super::unary::reciprocal;
use crate::sparse::csr::{Csr, conjugated};
use graph::{Node, Output};
use math::function::Number;
use math::lanes::{Map, Pairs};
use op::shapes::{broadcast, unchanged};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads};
use status::{Result, internal};
use std::sync::Arc;
use tensor::{Complex, Complex32, Complex64, DType, Tensor, Variant};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Complex(real: T, imag: T) -> out: Tout; T: {float, double} = float; \
              Tout: {complex64, complex128} = complex64",
        shape: broadcast,
        grad: Grad::Rule(complex_rule),
        kernel: complex_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Real(input: T) -> output: Tout; T: {complex64, complex128} = complex64; Tout: {float, double} = float",
        shape: unchanged,
        grad: Grad::Rule(|_, dy| Ok(grads![complex(dy, &dy.like(0.0))])),
        kernel: |setup| part_kernel(setup, Map::vector(|z: Complex32| z.re), Map::vector(|z: Complex64| z.re)),
        facts: PLAIN,
    },
    Op {
        def: "Imag(input: T) -> output: Tout; T: {complex64, complex128} = complex64; Tout: {float, double} = float",
        shape: unchanged,
        grad: Grad::Rule(|_, dy| Ok(grads![complex(&dy.like(0.0), dy)])),
        kernel: |setup| part_kernel(setup, Map::vector(|z: Complex32| z.im), Map::vector(|z: Complex64| z.im)),
        facts: PLAIN,
    },
    Op {
        def: "Angle(input: T) -> output: Tout; T: {complex64, complex128} = complex64; Tout: {float, double} = float",
        shape: unchanged,
        grad: Grad::Rule(angle_rule),
        kernel: |setup| part_kernel(setup, Map::scalar(|z: Complex32| z.arg()), Map::scalar(|z: Complex64| z.arg())),
        facts: PLAIN,
    },
    Op {
        def: "ComplexAbs(x: T) -> y: Tout; T: {complex64, complex128} = complex64; Tout: {float, double} = float",
        shape: unchanged,
        grad: Grad::Rule(complex_abs_rule),
        kernel: |setup| part_kernel(setup, Map::scalar(|z: Complex32| z.norm()), Map::scalar(|z: Complex64| z.norm())),
        facts: PLAIN,
    },
    Op {
        def: "Conj(input: T) -> output: T; T: {complex64, complex128, variant} = complex64",
        shape: unchanged,
        grad: Grad::Rule(|_, dy| Ok(grads![conj(dy)])),
        kernel: conj_kernel,
        facts: PLAIN,
    },
];

/// The complex numbers `real + i imag`.
pub fn complex(real: &Output, imag: &Output) -> Output {
    let dtype = if real.dtype() == DType::F64 { DType::C128 } else { DType::C64 };
    real.scope().op("Complex").input(real).input(imag).attr("Tout", dtype).output()
}

/// The real part; a real number is its own.
pub fn real(z: &Output) -> Output {
    part("Real", z)
}

/// The imaginary part of a complex number.
pub fn imag(z: &Output) -> Output {
    part("Imag", z)
}

/// The angle of a complex number.
pub fn angle(z: &Output) -> Output {
    part("Angle", z)
}

/// The distance of a complex number from zero.
pub fn complex_abs(z: &Output) -> Output {
    part("ComplexAbs", z)
}

/// The complex conjugate; a real number is its own.
pub fn conj(z: &Output) -> Output {
    if z.dtype().is_complex() { z.scope().op("Conj").input(z).output() } else { z.clone() }
}

fn conj_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        DType::VARIANT => Ok(op::unary(|_, variants| conj_variants(&variants))),
        dtype => for_types!(setup, dtype, [Complex32, Complex64], T => {
            Ok(mapping(Map::vector(<T as Conjugate>::conjugate)))
        }),
    }
}

/// Of the objects in variants, only sparse matrices have a conjugate.
fn conj_variants(variants: &Tensor) -> Result<Tensor> {
    let conj = |variant: &Variant| match Csr::from_variant(variant) {
        Some(csr) => Ok(Variant::Object(Arc::new(conjugated(&csr?)?))),
        None => Err(internal!(
            "No unary variant unary_op function found for op CONJ Variant type_name: {} for device type: CPU",
            variant.encode()?.type_name
        )),
    };
    let conjugates: Result<Vec<Variant>> = variants.variants()?.iter().map(conj).collect();
    Tensor::from_variants(variants.shape(), conjugates?)
}

fn part(op: &str, z: &Output) -> Output {
    match z.dtype() {
        DType::C128 => z.scope().op(op).input(z).attr("Tout", DType::F64).output(),
        DType::C64 => z.scope().op(op).input(z).attr("Tout", DType::F32).output(),
        _ => z.clone(),
    }
}

/// The operations that derivatives of complex functions need besides arithmetic.
pub(super) trait Conjugate: Number {
    /// One half.
    const HALF: Self;
    /// The complex conjugate.
    fn conjugate(self) -> Self;
}

macro_rules! conjugate_of_real {
    ($($rust:ty),*) => {$(
        impl Conjugate for $rust {
            const HALF: $rust = 0.5;

            #[inline(always)]
            fn conjugate(self) -> $rust {
                self
            }
        }
    )*};
}

conjugate_of_real!(f32, f64);

macro_rules! conjugate_of_complex {
    ($($rust:ty),*) => {$(
        impl Conjugate for Complex<$rust> {
            const HALF: Complex<$rust> = Complex { re: 0.5, im: 0.0 };

            #[inline(always)]
            fn conjugate(self) -> Complex<$rust> {
                self.conj()
            }
        }
    )*};
}

conjugate_of_complex!(f32, f64);

fn complex_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => Ok(pairing_to(Pairs::vector(Complex::<T>::new))))
}

fn part_kernel(setup: &Setup<'_>, single: Map<Complex32, f32>, double: Map<Complex64, f64>) -> Result<Kernel> {
    match (setup.dtype("T")?, setup.dtype("Tout")?) {
        (DType::C64, DType::F32) => Ok(mapping_to(single)),
        (DType::C128, DType::F64) => Ok(mapping_to(double)),
        _ => Err(setup.no_kernel()),
    }
}

fn complex_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, y] = op.inputs()?;
    Ok(summed(&x, &y, real(dz), imag(dz)))
}

fn angle_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let z = op.input(0);
    Ok(grads![-complex(dy, &dy.like(0.0)) * reciprocal(&complex(&imag(&z), &real(&z)))])
}

/// The gradient points along `z`, and vanishes where `z` does.
fn complex_abs_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let length = op.output(0);
    let along = complex(dy, &dy.like(0.0)) * op.input(0);
    Ok(grads![div_no_nan(&along, &complex(&length, &length.like(0.0)))])
}
