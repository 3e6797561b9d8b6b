//! Comparisons of two broadcast tensors.

use super::kernels::{broadcast_shape, pairing_to, run_pairs_to};
use super::strings;
use graph::Output;
use math::function::Real;
use math::lanes::Pairs;
use op::shapes::{broadcast, broadcast_shapes};
use op::{Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, binary};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Equal(x: T, y: T) -> z: bool; T: type; incompatible_shape_error: bool = true; commutative",
        shape: equal_shape,
        grad: Grad::Stop,
        kernel: equal_kernel,
        facts: PLAIN,
    },
    Op {
        def: "NotEqual(x: T, y: T) -> z: bool; T: type; incompatible_shape_error: bool = true; commutative",
        shape: equal_shape,
        grad: Grad::Stop,
        kernel: not_equal_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Less(x: T, y: T) -> z: bool; T: realnumbertype",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_core_to!(setup, [f32, f64, i32, i64, u64], T => Ok(pairing_to(Pairs::vector(|x: T, y: T| x < y)))),
        facts: PLAIN,
    },
    Op {
        def: "LessEqual(x: T, y: T) -> z: bool; T: realnumbertype",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_core_to!(setup, [f32, f64, i32, i64, u64], T => Ok(pairing_to(Pairs::vector(|x: T, y: T| x <= y)))),
        facts: PLAIN,
    },
    Op {
        def: "Greater(x: T, y: T) -> z: bool; T: realnumbertype",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_core_to!(setup, [f32, f64, i32, i64, u64], T => Ok(pairing_to(Pairs::vector(|x: T, y: T| x > y)))),
        facts: PLAIN,
    },
    Op {
        def: "GreaterEqual(x: T, y: T) -> z: bool; T: realnumbertype",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_core_to!(setup, [f32, f64, i32, i64, u64], T => Ok(pairing_to(Pairs::vector(|x: T, y: T| x >= y)))),
        facts: PLAIN,
    },
    Op {
        def: "ApproximateEqual(x: T, y: T) -> z: bool; T: numbertype; tolerance: float = 1e-05; commutative",
        shape: op::shapes::merged,
        grad: Grad::Stop,
        kernel: approximate_equal_kernel,
        facts: PLAIN,
    },
];

binary_builders! {
    /// True where `x` and `y` are equal.
    equal = "Equal";
    /// True where `x` and `y` differ.
    not_equal = "NotEqual";
    /// True where `x < y`.
    less = "Less";
    /// True where `x <= y`.
    less_equal = "LessEqual";
    /// True where `x > y`.
    greater = "Greater";
    /// True where `x >= y`.
    greater_equal = "GreaterEqual";
}

/// True where `x` and `y` differ by less than `tolerance`.
pub fn approximate_equal(x: &Output, y: &Output, tolerance: f32) -> Output {
    x.scope().op("ApproximateEqual").input(x).input(y).attr("tolerance", tolerance).output()
}

fn equal_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    if let graph::AttrValue::Bool(false) = query.attr("incompatible_shape_error")? {
        let shape = match (&query.inputs[0], &query.inputs[1]) {
            (x, y) if x.known().is_some() && y.known().is_some() => {
                broadcast_shapes(x, y).unwrap_or(PartialShape::scalar())
            }
            _ => PartialShape::unknown(),
        };
        return Ok(vec![shape]);
    }
    broadcast(query)
}

fn equal_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let other = different_shapes(setup, false)?;
    match setup.dtype("T")? {
        DType::STRING => Ok(testing(other, |_, x, y| strings::comparing(|x, y| x == y, &x, &y))),
        _ => {
            for_core_to!(setup, [f32, f64, i32, i64, bool, Complex32, Complex64], T => Ok(equality(other, Pairs::vector(|x: T, y: T| x == y))))
        }
    }
}

fn not_equal_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let other = different_shapes(setup, true)?;
    match setup.dtype("T")? {
        DType::STRING => Ok(testing(other, |_, x, y| strings::comparing(|x, y| x != y, &x, &y))),
        _ => {
            for_core_to!(setup, [f32, f64, i32, i64, bool, Complex32, Complex64], T => Ok(equality(other, Pairs::vector(|x: T, y: T| x != y))))
        }
    }
}

/// The result if the shapes cannot be broadcast; none if that is an error.
fn different_shapes(setup: &Setup<'_>, answer: bool) -> Result<Option<bool>> {
    Ok((!setup.bool("incompatible_shape_error")?).then_some(answer))
}

fn equality<T: Element>(other: Option<bool>, pairs: Pairs<T, T, bool>) -> Kernel {
    match other {
        None => pairing_to(pairs),
        Some(_) => testing(other, move |ctx, x, y| run_pairs_to(ctx, &pairs, x, y)),
    }
}

fn testing(
    other: Option<bool>,
    test: impl Fn(&op::Ctx<'_>, Tensor, Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Kernel {
    binary(move |ctx, x, y| match other {
        Some(answer) if broadcast_shape(x.shape(), y.shape()).is_err() => Ok(Tensor::scalar(answer)),
        _ => test(ctx, x, y),
    })
}

fn approximate_equal_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let tolerance = setup.float("tolerance")?;
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => Ok(binary(move |_, x, y| run_approximate_equal::<T>(tolerance, x, y))))
}

fn run_approximate_equal<T: Element + Real>(tolerance: f32, x: Tensor, y: Tensor) -> Result<Tensor> {
    if x.shape() != y.shape() {
        return Err(invalid!("x and y must be of the same shape. x shape: {}. y shape: {}", x.shape(), y.shape()));
    }
    let tolerance = T::from_f64(f64::from(tolerance));
    let close = |(&x, &y): (&T, &T)| x.sub(y).absolute() <= tolerance;
    let results: Vec<bool> = x.values::<T>()?.iter().zip(y.values::<T>()?).map(close).collect();
    Tensor::from_slice(x.shape(), &results)
}
