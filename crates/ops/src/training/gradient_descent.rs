//! Gradient descent.

use super::slots::{Layout, Slots, apply, for_fields, step_node};
use crate::state::scatter::{Update, resource_scatter, scatter};
use graph::{Node, Output};
use math::optimizer::Stored;
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::Result;
use tensor::DType;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyGradientDescent(var: Ref(T), alpha: T, delta: T) -> out: Ref(T); T: numbertype; use_locking: \
              bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyGradientDescent(var: resource, alpha: T, delta: T); T: numbertype; use_locking: bool = \
              false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
];

const LAYOUT: Layout<1> = Layout { variables: ["var"], rest: &["alpha", "delta"] };

/// `var -= lr gradient`; rows that have a gradient, if it is sparse.
pub fn apply_gradient_descent(var: &Output, lr: &Output, gradient: &Gradient) -> Node {
    match gradient {
        Gradient::Dense(_) => step_node("GradientDescent", &[var], &[lr], gradient, &[]).node(),
        Gradient::Sparse(slices) => {
            let delta = &slices.values * lr;
            match var.full_dtype() {
                DType::RESOURCE => resource_scatter(Update::Sub, var, &slices.indices, &delta),
                _ => scatter(Update::Sub, var, &slices.indices, &delta).node().clone(),
            }
        }
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, T => apply::<T, 1, 1>(setup, &LAYOUT, step::<T>))
}

fn step<T: Stored>([alpha]: [T::Compute; 1], slots: Slots<'_, T, 1>) -> Result<()> {
    slots.run(move |[var], delta| [var - delta * alpha])
}
