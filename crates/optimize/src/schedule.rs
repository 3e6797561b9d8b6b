//! Learning rates that change with the step.

use graph::Output;
use layers::{ScopeOps, TensorOps};
use tensor::DType;

/// `step / steps`, rounded down with `staircase`.
fn progress(step: &Output, steps: f64, staircase: bool) -> Output {
    let part = step.cast(DType::F32) / steps;
    if staircase { part.floor() } else { part }
}

/// `rate decay ^ (step / steps)`.
pub fn exponential_decay(rate: f64, step: &Output, steps: f64, decay: f64, staircase: bool) -> Output {
    let part = progress(step, steps, staircase);
    rate * part.like(decay).pow(&part)
}

/// `rate exp(-decay step / steps)`.
pub fn natural_exp_decay(rate: f64, step: &Output, steps: f64, decay: f64, staircase: bool) -> Output {
    rate * (progress(step, steps, staircase) * -decay).exp()
}

/// `rate / (1 + decay step / steps)`.
pub fn inverse_time_decay(rate: f64, step: &Output, steps: f64, decay: f64, staircase: bool) -> Output {
    rate / (progress(step, steps, staircase) * decay + 1.0)
}

/// From `rate` to `end` in this many steps, along a polynomial. With `cycle` it starts again when it reaches `end`,
/// each time over more steps.
pub fn polynomial_decay(rate: f64, step: &Output, steps: f64, end: f64, power: f64, cycle: bool) -> Output {
    let step = step.cast(DType::F32);
    let (step, steps) = match cycle {
        false => (step.minimum(&step.like(steps)), step.like(steps)),
        true => {
            let rounds = (&step / steps).ceil().maximum(&step.like(1.0));
            (step, rounds * steps)
        }
    };
    let left = 1.0 - step / steps;
    left.pow(&left.like(power)) * (rate - end) + end
}

/// From `rate` to `alpha rate` in this many steps, along half a cosine.
pub fn cosine_decay(rate: f64, step: &Output, steps: f64, alpha: f64) -> Output {
    let step = step.cast(DType::F32);
    let part = step.minimum(&step.like(steps)) / steps;
    let cosine = ((part * std::f64::consts::PI).cos() + 1.0) * 0.5;
    rate * (cosine * (1.0 - alpha) + alpha)
}

/// `values[0]` up to and including `boundaries[0]`, `values[1]` up to `boundaries[1]`, and so on.
pub fn piecewise_constant(step: &Output, boundaries: &[i64], values: &[f64]) -> Output {
    let scope = step.scope();
    if values.len() != boundaries.len() + 1 {
        let error = status::invalid!(
            "The length of boundaries should be 1 less than the length of values, found {} and {}",
            boundaries.len(),
            values.len()
        );
        scope.graph().fail(error);
        return scope.constant(0f32);
    }
    let mut rate = scope.constant(values[boundaries.len()] as f32);
    for (boundary, value) in boundaries.iter().zip(values).rev() {
        let passed = step.greater(&step.like(*boundary as f64));
        let before = scope.constant(*value as f32);
        rate = ops::raw::select_v2(&passed.seen_from(scope), &rate, &before).output();
    }
    rate
}
