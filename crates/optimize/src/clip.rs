//! Clipping of gradients.

use gradient::densify;
use graph::{Output, Scope};
use layers::{ScopeOps, TensorOps};
use op::{Gradient, Slices};

/// Applies a function to the values of a gradient; its rows stay.
fn mapped(gradient: &Gradient, change: impl FnOnce(&Output) -> Output) -> Gradient {
    match gradient {
        Gradient::Dense(output) => Gradient::Dense(change(output)),
        Gradient::Sparse(slices) => Gradient::Sparse(Slices { values: change(&slices.values), ..slices.clone() }),
    }
}

/// Limits each element to the range from `low` to `high`.
pub fn clip_by_value(gradient: &Gradient, low: f64, high: f64) -> Gradient {
    mapped(gradient, |values| values.clip(low, high))
}

/// Scales a gradient so that its L2 norm is at most `limit`.
pub fn clip_by_norm(gradient: &Gradient, limit: f64) -> Gradient {
    mapped(gradient, |values| {
        let squares = values.square().sum();
        let positive = squares.greater(&squares.like(0.0));
        // The root's slope at zero is infinite; one stands in for zero on both sides of the choice.
        let safe = choose(&positive, &squares, &squares.ones_like());
        let norm = choose(&positive, &safe.sqrt(), &squares);
        values * limit / norm.maximum(&norm.like(limit))
    })
}

/// The L2 norm of all gradients, as if they were one vector.
pub fn global_norm(scope: &Scope, gradients: &[Gradient]) -> Output {
    let halves: Vec<Output> = gradients
        .iter()
        .map(|gradient| match gradient {
            Gradient::Dense(output) => half_square(scope, output),
            Gradient::Sparse(slices) => half_square(scope, &slices.values),
        })
        .collect();
    match halves.is_empty() {
        true => scope.constant(0f32),
        false => {
            let sum = ops::raw::pack(scope, &halves).output().sum();
            (sum * 2.0).sqrt()
        }
    }
}

/// Scales all gradients by the same factor, so that their global norm is at most `limit`; also gives that norm. If the
/// norm is not finite, all gradients become NaN.
pub fn clip_by_global_norm(scope: &Scope, gradients: &[Gradient], limit: f64) -> (Vec<Gradient>, Output) {
    let scope = scope.named("clip_by_global_norm");
    let norm = global_norm(&scope, gradients);
    let scale = (1.0 / &norm).minimum(&norm.like(1.0 / limit)) * limit;
    // Zero if the norm is finite, else not a number.
    let poison = &norm * 0.0;
    let scale = scale + poison;
    let scaled = |values: &Output| values.seen_from(&scope) * scale.cast(values.dtype());
    (gradients.iter().map(|gradient| mapped(gradient, scaled)).collect(), norm)
}

/// A gradient as one dense tensor.
pub fn dense(gradient: &Gradient) -> Output {
    densify(gradient)
}

fn half_square(scope: &Scope, values: &Output) -> Output {
    ops::nn::l2_loss(&values.seen_from(scope))
}

fn choose(condition: &Output, yes: &Output, no: &Output) -> Output {
    ops::raw::select_v2(condition, yes, no).output()
}
