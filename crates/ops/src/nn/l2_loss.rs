//! Half the sum of squares.

use graph::{Node, Output};
use math::elementwise::cost::SIMPLE;
use math::function::{Number, Real};
use math::reduce::{Accumulate, Fold, Reduction, reduce_axes};
use op::shapes::scalar;
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, grads, unary};
use status::Result;
use tensor::{Element, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "L2Loss(t: T) -> output: T; T: {half, bfloat16, float, double}",
    shape: scalar,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// `sum(t²) / 2`.
pub fn l2_loss(t: &Output) -> Output {
    t.scope().op("L2Loss").input(t).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![op.input(0) * dy])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(run::<T>)))
}

fn run<T: Element + Accumulate<Sum: Real>>(ctx: &Ctx<'_>, t: Tensor) -> Result<Tensor> {
    let mut loss = Tensor::scratch::<T>(Shape::scalar())?;
    let shape = Reduction::new(&[t.elements()], &[true]);
    reduce_axes(ctx.pool(), SIMPLE, &shape, t.values::<T>()?, loss.values_mut()?, HalfSquares);
    Ok(loss)
}

#[derive(Clone, Copy)]
struct HalfSquares;

impl<T: Accumulate<Sum: Real>> Fold<T> for HalfSquares {
    type State = T::Sum;
    const START: T::Sum = T::Sum::ZERO;

    #[inline(always)]
    fn take(sum: T::Sum, x: T) -> T::Sum {
        sum.add(x.to_sum().square())
    }

    #[inline(always)]
    fn merge(a: T::Sum, b: T::Sum) -> T::Sum {
        a.add(b)
    }

    fn finish(sum: T::Sum, _: usize) -> T {
        T::from_sum(sum.mul(Real::from_f64(0.5)))
    }
}
