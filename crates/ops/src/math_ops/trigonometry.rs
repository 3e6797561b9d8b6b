//! Trigonometric functions, element by element.

use super::broadcast_grad::summed;
use super::complex::conj;
use super::kernels::{pairing, run_map};
use super::unary::{reciprocal, sqrt, square};
use graph::{Node, Output};
use math::elementwise::cost;
use math::function::{FAST_ANGLE_LIMIT, Real, cos_fast, sin_fast};
use math::lanes::{Map, Pairs};
use op::shapes::{broadcast, unchanged};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads, unary};
use status::Result;
use tensor::DType;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Sin(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * cos(&conj(&op.input(0)))])),
        kernel: sin_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Cos(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![-dy * sin(&conj(&op.input(0)))])),
        kernel: cos_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Tan(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![square(&reciprocal(&cos(&conj(&op.input(0))))) * dy])),
        kernel: |setup| analytic!(setup, tan: scalar, scalar; |z| z.tan()),
        facts: PLAIN,
    },
    Op {
        def: "Asin(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * arc_slope(op)])),
        kernel: |setup| analytic!(setup, asin: scalar, scalar; |z| z.asin()),
        facts: PLAIN,
    },
    Op {
        def: "Acos(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![-dy * arc_slope(op)])),
        kernel: |setup| analytic!(setup, acos: scalar, scalar; |z| z.acos()),
        facts: PLAIN,
    },
    Op {
        def: "Atan(x: T) -> y: T; T: {bfloat16, half, float, double, complex64, complex128}",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| Ok(grads![dy * reciprocal(&(1.0 + square(&conj(&op.input(0)))))])),
        kernel: |setup| analytic!(setup, atan: scalar, scalar; |z| z.atan()),
        facts: PLAIN,
    },
    Op {
        def: "Atan2(y: T, x: T) -> z: T; T: {bfloat16, half, float, double}",
        shape: broadcast,
        grad: Grad::Rule(atan2_rule),
        kernel: |setup| for_core!(setup, [f32, f64], T => Ok(pairing(Pairs::scalar(<T as Real>::atan2)))),
        facts: PLAIN,
    },
];

unary_builders! {
    /// The sine.
    sin = "Sin";
    /// The cosine.
    cos = "Cos";
    /// The tangent.
    tan = "Tan";
    /// The angle whose sine is `x`.
    asin = "Asin";
    /// The angle whose cosine is `x`.
    acos = "Acos";
    /// The angle whose tangent is `x`.
    atan = "Atan";
}

/// The angle of the points with ordinate `y` and abscissa `x`.
pub fn atan2(y: &Output, x: &Output) -> Output {
    y.scope().op("Atan2").input(y).input(x).output()
}

fn sin_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        DType::F32 => Ok(of_angles(Map::vector(sin_fast), Map::scalar(<f32 as Real>::sin))),
        _ => analytic!(setup, sin: scalar, scalar; |z| z.sin()),
    }
}

fn cos_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        DType::F32 => Ok(of_angles(Map::vector(cos_fast), Map::scalar(<f32 as Real>::cos))),
        _ => analytic!(setup, cos: scalar, scalar; |z| z.cos()),
    }
}

/// A kernel that takes the `fast` function if it is exact for all angles, else the slow one.
fn of_angles(fast: Map<f32, f32>, slow: Map<f32, f32>) -> Kernel {
    let fast = fast.costing(cost::FUNCTION);
    unary(move |ctx, x| {
        let is_near = |group: &[f32]| group.iter().fold(true, |near, x| near & (x.abs() < FAST_ANGLE_LIMIT));
        let all_near = x.values::<f32>()?.chunks(4096).all(is_near);
        run_map(ctx, if all_near { &fast } else { &slow }, x)
    })
}

/// `1 / sqrt(1 - x²)`: the slope of the arcs of sine and cosine, but for the sign.
fn arc_slope(op: &Node) -> Output {
    reciprocal(&sqrt(&(1.0 - square(&conj(&op.input(0))))))
}

fn atan2_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [y, x] = op.inputs()?;
    let scaled = dz / (square(&y) + square(&x));
    let (dy, dx) = (&x * &scaled, -&y * &scaled);
    Ok(summed(&y, &x, dy, dx))
}
