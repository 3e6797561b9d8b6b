//! Functions of two and three arguments related to the gamma function.

use super::broadcast_grad::{summed, summed_right};
use super::exponential::{exp, log, xlog1py, xlogy};
use super::kernels::pairing;
use super::special::lgamma;
use graph::{Node, Output};
use math::function::{self, Real};
use math::lanes::Pairs;
use math::parallel::split_mut;
use op::shapes::broadcast;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Shape, Tensor};

/// Nanoseconds for an element: series of many terms.
const COST: f32 = 200.0;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Igamma(a: T, x: T) -> z: T; T: {bfloat16, half, float, double}",
        shape: broadcast,
        grad: Grad::Rule(igamma_rule),
        kernel: |setup| for_core!(setup, [f32, f64], T => Ok(pairing(Pairs::scalar(<T as Real>::igamma).costing(COST)))),
        facts: PLAIN,
    },
    Op {
        def: "Igammac(a: T, x: T) -> z: T; T: {bfloat16, half, float, double}",
        shape: broadcast,
        grad: Grad::Rule(igammac_rule),
        kernel: |setup| for_core!(setup, [f32, f64], T => Ok(pairing(Pairs::scalar(<T as Real>::igammac).costing(COST)))),
        facts: PLAIN,
    },
    Op {
        def: "IgammaGradA(a: T, x: T) -> z: T; T: {float, double}",
        shape: broadcast,
        grad: Grad::Unknown,
        kernel: igamma_grad_a_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Zeta(x: T, q: T) -> z: T; T: {float, double}",
        shape: broadcast,
        grad: Grad::Rule(zeta_rule),
        kernel: |setup| {
            for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
                Ok(pairing(Pairs::scalar(<T as Real>::zeta).costing(COST)))
            })
        },
        facts: PLAIN,
    },
    Op {
        def: "Polygamma(a: T, x: T) -> z: T; T: {float, double}",
        shape: broadcast,
        grad: Grad::Rule(polygamma_rule),
        kernel: |setup| {
            for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
                Ok(pairing(Pairs::scalar(<T as Real>::polygamma).costing(COST)))
            })
        },
        facts: PLAIN,
    },
    Op {
        def: "Betainc(a: T, b: T, x: T) -> z: T; T: {float, double}",
        shape: betainc_shape,
        grad: Grad::Rule(betainc_rule),
        kernel: |setup| {
            for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
                Ok(many(|ctx, inputs| Ok(outputs![run_betainc::<T>(ctx, inputs)?])))
            })
        },
        facts: PLAIN,
    },
];

binary_builders! {
    /// The lower incomplete gamma function of order `x` at `y`, divided by the complete one.
    igamma = "Igamma";
    /// The upper incomplete gamma function of order `x` at `y`, divided by the complete one.
    igammac = "Igammac";
    /// The derivative of `igamma` by its order.
    igamma_grad_a = "IgammaGradA";
    /// The Hurwitz zeta function of exponent `x` at `y`.
    zeta = "Zeta";
    /// The derivative of order `x` of `digamma` at `y`.
    polygamma = "Polygamma";
}

/// The incomplete beta function of `a` and `b` at `x`, divided by the complete one.
pub fn betainc(a: &Output, b: &Output, x: &Output) -> Output {
    a.scope().op("Betainc").input(a).input(b).input(x).output()
}

fn igamma_grad_a_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
        Ok(pairing(Pairs::scalar(<T as Real>::igamma_grad_a).costing(COST)))
    })
}

fn igamma_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [a, x] = op.inputs()?;
    let (da, dx) = igamma_slopes(&a, &x);
    Ok(summed(&a, &x, da * dz, dx * dz))
}

fn igammac_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [a, x] = op.inputs()?;
    let (da, dx) = igamma_slopes(&a, &x);
    Ok(summed(&a, &x, -da * dz, -dx * dz))
}

/// The derivatives of `igamma`. The one by `x` is computed with logarithms, because its factors overflow.
fn igamma_slopes(a: &Output, x: &Output) -> (Output, Output) {
    (igamma_grad_a(a, x), exp(&((a - 1.0) * log(x) - x - lgamma(a))))
}

fn zeta_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [x, q] = op.inputs()?;
    let slope = -&x * zeta(&(&x + 1.0), &q);
    Ok(grads![NoGradient, summed_right(&x, &q, slope * dz)])
}

fn polygamma_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [order, x] = op.inputs()?;
    let slope = polygamma(&(&order + 1.0), &x);
    Ok(grads![NoGradient, summed_right(&order, &x, slope * dz)])
}

fn betainc_rule(op: &Node, dz: &Output) -> Result<Grads> {
    let [a, b, x] = op.inputs()?;
    let log_beta = lgamma(&a) + lgamma(&b) - lgamma(&(&a + &b));
    let slope = exp(&(xlog1py(&(&b - 1.0), &-&x) + xlogy(&(&a - 1.0), &x) - log_beta));
    Ok(grads![NoGradient, NoGradient, summed_right(&a, &x, slope * dz)])
}

fn betainc_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let mut shape = PartialShape::scalar();
    for input in query.inputs {
        match (input.rank(), shape.rank()) {
            (None, _) => return Ok(vec![PartialShape::unknown()]),
            (Some(0), _) => {}
            (_, Some(0)) => shape = input.clone(),
            _ => shape = shape.merge(input)?,
        }
    }
    Ok(vec![shape])
}

fn run_betainc<T: Element + Real>(ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<Tensor> {
    let (a, b, x) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let shape = common_shape(&a, &b, &x)?;
    let mut out = Tensor::scratch::<T>(shape)?;
    let (a, b, x) = (a.values::<T>()?, b.values::<T>()?, x.values::<T>()?);
    let at = |values: &[T], index: usize| if values.len() == 1 { values[0] } else { values[index] };
    split_mut(ctx.pool(), COST, out.values_mut::<T>()?, |start, out| {
        for (i, out) in out.iter_mut().enumerate() {
            let index = start + i;
            *out = function::betainc(at(a, index), at(b, index), at(x, index));
        }
    });
    Ok(out)
}

/// All three have one shape, except for scalars.
fn common_shape(a: &Tensor, b: &Tensor, x: &Tensor) -> Result<Shape> {
    let all = [("a", a.shape()), ("b", b.shape()), ("x", x.shape())];
    for (first, second) in [(0, 1), (0, 2), (1, 2)] {
        let ((name, shape), (other_name, other)) = (all[first], all[second]);
        if shape.rank() > 0 && other.rank() > 0 && shape != other {
            return Err(invalid!("Shapes of {name} and {other_name} are inconsistent: {shape} vs. {other}"));
        }
    }
    let shaped = all.into_iter().map(|(_, shape)| shape).find(|shape| shape.rank() > 0);
    Ok(shaped.cloned().unwrap_or_default())
}
