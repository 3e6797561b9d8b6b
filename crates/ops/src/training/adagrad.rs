//! Adagrad, with and without an epsilon, and with dual averaging.

use super::slots::{Layout, Slots, apply, for_fields, step_node};
use graph::{Node, Output};
use math::function::Ordered;
use math::optimizer::{Field, RealField, Stored};
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyAdagrad(var: Ref(T), accum: Ref(T), lr: T, grad: T) -> out: Ref(T); T: numbertype; use_locking: \
              bool = false; update_slots: bool = true",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyAdagrad(var: resource, accum: resource, lr: T, grad: T); T: numbertype; use_locking: \
              bool = false; update_slots: bool = true; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyAdagrad(var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices) -> out: Ref(T); T: \
              numbertype; Tindices: {int32, int64}; use_locking: bool = false; update_slots: bool = true",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyAdagrad(var: resource, accum: resource, lr: T, grad: T, indices: Tindices); T: \
              numbertype; Tindices: {int32, int64}; use_locking: bool = false; update_slots: bool = true; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ApplyAdagradV2(var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T) -> out: Ref(T); T: numbertype; \
              use_locking: bool = false; update_slots: bool = true",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyAdagradV2(var: resource, accum: resource, lr: T, epsilon: T, grad: T); T: numbertype; \
              use_locking: bool = false; update_slots: bool = true; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyAdagradV2(var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T, indices: Tindices) -> \
              out: Ref(T); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; update_slots: bool = \
              true",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyAdagradV2(var: resource, accum: resource, lr: T, epsilon: T, grad: T, indices: \
              Tindices); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; update_slots: bool = \
              true; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ApplyAdagradDA(var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: \
              T, lr: T, l1: T, l2: T, global_step: int64) -> out: Ref(T); T: numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: da_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyAdagradDA(var: resource, gradient_accumulator: resource, gradient_squared_accumulator: \
              resource, grad: T, lr: T, l1: T, l2: T, global_step: int64); T: numbertype; use_locking: bool = \
              false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: da_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyAdagradDA(var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), \
              grad: T, indices: Tindices, lr: T, l1: T, l2: T, global_step: int64) -> out: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_da_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyAdagradDA(var: resource, gradient_accumulator: resource, \
              gradient_squared_accumulator: resource, grad: T, indices: Tindices, lr: T, l1: T, l2: T, global_step: \
              int64); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_da_kernel,
        facts: PLAIN,
    },
];

const LAYOUT: Layout<2> = Layout { variables: ["var", "accum"], rest: &["lr", "grad"] };
const SPARSE: Layout<2> = Layout { variables: ["var", "accum"], rest: &["lr", "grad", "indices"] };
const V2: Layout<2> = Layout { variables: ["var", "accum"], rest: &["lr", "epsilon", "grad"] };
const SPARSE_V2: Layout<2> = Layout { variables: ["var", "accum"], rest: &["lr", "epsilon", "grad", "indices"] };
const DA: Layout<3> = Layout { variables: ["var", "accum", "accum"], rest: &["grad", "lr", "l1", "l2", "global_step"] };
const SPARSE_DA: Layout<3> =
    Layout { variables: ["var", "accum", "accum"], rest: &["grad", "indices", "lr", "l1", "l2", "global_step"] };

/// `accum += gradient²; var -= lr gradient / √accum`.
pub fn apply_adagrad(var: &Output, accum: &Output, lr: &Output, gradient: &Gradient) -> Node {
    step_node("Adagrad", &[var, accum], &[lr], gradient, &[]).node()
}

/// `accum += gradient²; var -= lr gradient / (√accum + epsilon)`.
pub fn apply_adagrad_v2(var: &Output, accum: &Output, lr: &Output, epsilon: &Output, gradient: &Gradient) -> Node {
    step_node("AdagradV2", &[var, accum], &[lr, epsilon], gradient, &[]).node()
}

/// Adagrad with dual averaging: `numbers` are lr, l1, l2 and the global step.
pub fn apply_adagrad_da(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    gradient: &Gradient,
    numbers: [&Output; 4],
) -> Node {
    let variables = [var, gradient_accumulator, gradient_squared_accumulator];
    step_node("AdagradDA", &variables, &[], gradient, &numbers).node()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_layout(setup, &LAYOUT)
}

fn sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_layout(setup, &SPARSE)
}

fn v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    v2_with_layout(setup, &V2)
}

fn sparse_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    v2_with_layout(setup, &SPARSE_V2)
}

fn da_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => apply::<T, 3, 4>(setup, &DA, da_step::<T>))
}

fn sparse_da_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => apply::<T, 3, 4>(setup, &SPARSE_DA, da_step::<T>))
}

fn with_layout(setup: &Setup<'_>, layout: &'static Layout<2>) -> Result<Kernel> {
    let update_slots = setup.bool("update_slots")?;
    for_fields!(setup, T => {
        apply::<T, 2, 1>(setup, layout, move |numbers, slots| step::<T>(numbers, slots, update_slots))
    })
}

fn v2_with_layout(setup: &Setup<'_>, layout: &'static Layout<2>) -> Result<Kernel> {
    let update_slots = setup.bool("update_slots")?;
    for_fields!(setup, T => {
        apply::<T, 2, 2>(setup, layout, move |numbers, slots| v2_step::<T>(numbers, slots, update_slots))
    })
}

fn step<T: Stored>([lr]: [T::Compute; 1], slots: Slots<'_, T, 2>, update_slots: bool) -> Result<()> {
    slots.run(move |[var, accum], grad| {
        let accum = if update_slots { accum + grad.squared() } else { accum };
        [var - grad * lr / accum.root(), accum]
    })
}

fn v2_step<T: Stored>([lr, epsilon]: [T::Compute; 2], slots: Slots<'_, T, 2>, update_slots: bool) -> Result<()> {
    slots.run(move |[var, accum], grad| {
        let accum = if update_slots { accum + grad.squared() } else { accum };
        [var - grad * lr / (accum.root() + epsilon), accum]
    })
}

/// With g the sum of gradients, s that of their squares and t the step:
/// `var = -sign(g) lr max(|g| - l1 t, 0) / (l2 t lr + √s)`.
fn da_step<T: Stored<Compute: RealField>>([lr, l1, l2, step]: [T::Compute; 4], slots: Slots<'_, T, 3>) -> Result<()> {
    let (zero, shrink) = (T::Compute::ZERO, l2 * step * lr);
    let threshold = if l1 > zero { l1 * step } else { zero };
    slots.run(move |[_, sum, squares], grad| {
        let (sum, squares) = (sum + grad, squares + grad.squared());
        let far = (sum.absolute() - threshold).larger(zero);
        [-sum.sign() * lr * far / (shrink + squares.root()), sum, squares]
    })
}
