//! Clips values to two bounds.

use super::kernels::run_pairs;
use super::{broadcast_grad, compare, logical, select};
use graph::{Node, Output};
use math::function::Ordered;
use math::lanes::Pairs;
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Inputs, Kernel, Op, PLAIN, Setup, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Complex, DType, Element, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> output: T; T: numbertype",
    shape: unchanged,
    grad: Grad::Rule(clip_rule),
    kernel: clip_kernel,
    facts: PLAIN,
}];

/// `t` where it is between the bounds, else the bound that is nearer.
pub fn clip_by_value(t: &Output, min: &Output, max: &Output) -> Output {
    t.scope().op("ClipByValue").input(t).input(min).input(max).output()
}

fn clip_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        DType::C64 => return Ok(box_clipping::<f32>()),
        DType::C128 => return Ok(box_clipping::<f64>()),
        _ => {}
    }
    for_core!(setup, [f32, f64, i32, i64, u64], T => {
        Ok(clipping(Pairs::vector(<T as Ordered>::larger), Pairs::vector(<T as Ordered>::smaller)))
    })
}

fn clipping<T: Element>(larger: Pairs<T, T, T>, smaller: Pairs<T, T, T>) -> Kernel {
    many(move |ctx, inputs| Ok(outputs![run_clip::<T>(ctx, &larger, &smaller, inputs)?]))
}

/// Bounds of complex numbers are the corners of a box.
fn box_clipping<R: Ordered>() -> Kernel
where
    Complex<R>: Element + math::elementwise::Element,
{
    clipping(Pairs::scalar(|a, b| each(a, b, R::larger)), Pairs::scalar(|a, b| each(a, b, R::smaller)))
}

#[inline(always)]
fn each<R>(a: Complex<R>, b: Complex<R>, choose: fn(R, R) -> R) -> Complex<R> {
    Complex { re: choose(a.re, b.re), im: choose(a.im, b.im) }
}

fn run_clip<T: Element>(
    ctx: &Ctx<'_>,
    larger: &Pairs<T, T, T>,
    smaller: &Pairs<T, T, T>,
    mut inputs: Inputs,
) -> Result<Tensor> {
    let (t, min, max) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let fits = |bound: &Tensor| bound.shape() == t.shape() || bound.shape().rank() == 0;
    if !fits(&min) || !fits(&max) {
        return Err(invalid!(
            "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. \
             input shape: {}clip_value_min shape: {}clip_value_max shape: {}",
            t.shape(),
            min.shape(),
            max.shape()
        ));
    }
    let below = run_pairs(ctx, smaller, t, max)?;
    run_pairs(ctx, larger, below, min)
}

/// The gradient is passed to the one of the three inputs that was chosen.
fn clip_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [t, min, max] = op.inputs()?;
    let zero = dy.like(0.0);
    let (is_low, is_high) = (compare::less(&t, &min), compare::greater(&t, &max));
    let outside = logical::logical_or(&is_low, &is_high);
    let dt = select::select_v2(&outside, &zero, dy);
    let part = |is_chosen: &Output, bound: &Output| {
        broadcast_grad::sum_to_shape_of(select::select_v2(is_chosen, dy, &zero), bound, &t)
    };
    Ok(grads![dt, part(&is_low, &min), part(&is_high, &max)])
}
