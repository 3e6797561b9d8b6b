//! Adadelta.

use super::slots::{Layout, Slots, apply, for_fields, step_node};
use graph::{Node, Output};
use math::optimizer::{Field, Stored};
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyAdadelta(var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T) \
              -> out: Ref(T); T: numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyAdadelta(var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: \
              T, grad: T); T: numbertype; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyAdadelta(var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, \
              grad: T, indices: Tindices) -> out: Ref(T); T: numbertype; Tindices: {int32, int64}; use_locking: \
              bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyAdadelta(var: resource, accum: resource, accum_update: resource, lr: T, rho: T, \
              epsilon: T, grad: T, indices: Tindices); T: numbertype; Tindices: {int32, int64}; use_locking: bool = \
              false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
];

const LAYOUT: Layout<3> =
    Layout { variables: ["var", "accum", "accum_update"], rest: &["lr", "rho", "epsilon", "grad"] };
const SPARSE: Layout<3> =
    Layout { variables: ["var", "accum_grad", "accum_update"], rest: &["lr", "rho", "epsilon", "grad", "indices"] };

/// Scales the step by the ratio of past updates to past gradients; `numbers` are lr, rho and epsilon.
pub fn apply_adadelta(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    numbers: [&Output; 3],
    gradient: &Gradient,
) -> Node {
    step_node("Adadelta", &[var, accum, accum_update], &numbers, gradient, &[]).node()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, T => apply::<T, 3, 3>(setup, &LAYOUT, step::<T>))
}

fn sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, T => apply::<T, 3, 3>(setup, &SPARSE, step::<T>))
}

fn step<T: Stored>([lr, rho, epsilon]: [T::Compute; 3], slots: Slots<'_, T, 3>) -> Result<()> {
    let fresh = T::Compute::ONE - rho;
    slots.run(move |[var, accum, accum_update], grad| {
        let accum = accum * rho + grad.squared() * fresh;
        let update = (accum_update + epsilon).root() / (accum + epsilon).root() * grad;
        [var - update * lr, accum, accum_update * rho + update.squared() * fresh]
    })
}
