//! RMSProp, plain and centered.

use super::slots::{Layout, Slots, apply, for_fields, step_node};
use graph::{Node, Output};
use math::optimizer::{Field, Stored};
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyRMSProp(var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T) \
              -> out: Ref(T); T: numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyRMSProp(var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: \
              T, grad: T); T: numbertype; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyRMSProp(var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, \
              grad: T, indices: Tindices) -> out: Ref(T); T: numbertype; Tindices: {int32, int64}; use_locking: \
              bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyRMSProp(var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, \
              epsilon: T, grad: T, indices: Tindices); T: numbertype; Tindices: {int32, int64}; use_locking: bool = \
              false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ApplyCenteredRMSProp(var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, \
              epsilon: T, grad: T) -> out: Ref(T); T: numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: centered_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyCenteredRMSProp(var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, \
              momentum: T, epsilon: T, grad: T); T: numbertype; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: centered_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyCenteredRMSProp(var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: \
              T, epsilon: T, grad: T, indices: Tindices) -> out: Ref(T); T: numbertype; Tindices: {int32, int64}; \
              use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_centered_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyCenteredRMSProp(var: resource, mg: resource, ms: resource, mom: resource, lr: T, \
              rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices); T: numbertype; Tindices: {int32, \
              int64}; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_centered_kernel,
        facts: PLAIN,
    },
];

const LAYOUT: Layout<3> =
    Layout { variables: ["var", "ms", "mom"], rest: &["lr ", "rho", "momentum", "epsilon", "grad"] };
const SPARSE: Layout<3> =
    Layout { variables: ["var", "ms", "mom"], rest: &["lr", "rho", "momentum", "epsilon", "grad", "indices"] };
const CENTERED: Layout<4> =
    Layout { variables: ["var", "mg", "ms", "mom"], rest: &["lr ", "rho", "momentum", "epsilon", "grad"] };
const SPARSE_CENTERED: Layout<4> =
    Layout { variables: ["var", "mg", "ms", "mom"], rest: &["lr", "rho", "momentum", "epsilon", "grad", "indices"] };

/// A step by the gradient over the root of the mean of past squares; `numbers` are lr, rho, momentum and epsilon.
pub fn apply_rms_prop(variables: [&Output; 3], numbers: [&Output; 4], gradient: &Gradient) -> Node {
    step_node("RMSProp", &variables, &numbers, gradient, &[]).node()
}

/// RMSProp by the variance of past gradients; variables are var, mg, ms and mom, `numbers` as for `apply_rms_prop`.
pub fn apply_centered_rms_prop(variables: [&Output; 4], numbers: [&Output; 4], gradient: &Gradient) -> Node {
    step_node("CenteredRMSProp", &variables, &numbers, gradient, &[]).node()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, T => apply::<T, 3, 4>(setup, &LAYOUT, step::<T>))
}

fn sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, T => apply::<T, 3, 4>(setup, &SPARSE, step::<T>))
}

fn centered_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, T => apply::<T, 4, 4>(setup, &CENTERED, centered_step::<T>))
}

fn sparse_centered_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, T => apply::<T, 4, 4>(setup, &SPARSE_CENTERED, centered_step::<T>))
}

fn step<T: Stored>([lr, rho, momentum, epsilon]: [T::Compute; 4], slots: Slots<'_, T, 3>) -> Result<()> {
    let fresh = T::Compute::ONE - rho;
    slots.run(move |[var, ms, mom], grad| {
        let ms = ms + (grad.squared() - ms) * fresh;
        let mom = mom * momentum + grad * lr / (ms + epsilon).root();
        [var - mom, ms, mom]
    })
}

fn centered_step<T: Stored>([lr, rho, momentum, epsilon]: [T::Compute; 4], slots: Slots<'_, T, 4>) -> Result<()> {
    let fresh = T::Compute::ONE - rho;
    slots.run(move |[var, mg, ms, mom], grad| {
        let ms = ms + (grad.squared() - ms) * fresh;
        let mg = mg + (grad - mg) * fresh;
        let mom = mom * momentum + grad * lr / (ms - mg.squared() + epsilon).root();
        [var - mom, mg, ms, mom]
    })
}
