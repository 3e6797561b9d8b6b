//! Proximal gradient descent and proximal Adagrad, with L1 and L2 regularization.

use super::slots::{Layout, Slots, apply, step_node};
use graph::{Node, Output};
use math::optimizer::{Field, RealField, Stored};
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::{Result, invalid};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyProximalGradientDescent(var: Ref(T), alpha: T, l1: T, l2: T, delta: T) -> out: Ref(T); T: \
              numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: descent_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyProximalGradientDescent(var: resource, alpha: T, l1: T, l2: T, delta: T); T: numbertype; \
              use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: descent_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyProximalGradientDescent(var: Ref(T), alpha: T, l1: T, l2: T, grad: T, indices: Tindices) \
              -> out: Ref(T); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_descent_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyProximalGradientDescent(var: resource, alpha: T, l1: T, l2: T, grad: T, indices: \
              Tindices); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_descent_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ApplyProximalAdagrad(var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T) -> out: Ref(T); T: \
              numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: adagrad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyProximalAdagrad(var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T); T: \
              numbertype; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: adagrad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyProximalAdagrad(var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T, indices: \
              Tindices) -> out: Ref(T); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_adagrad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyProximalAdagrad(var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T, \
              indices: Tindices); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_adagrad_kernel,
        facts: PLAIN,
    },
];

const DESCENT: Layout<1> = Layout { variables: ["var"], rest: &["alpha", "l1", "l2", "delta"] };
const SPARSE_DESCENT: Layout<1> = Layout { variables: ["var"], rest: &["lr", "l1", "l2", "grad", "indices"] };
const ADAGRAD: Layout<2> = Layout { variables: ["var", "accum"], rest: &["lr+", "l1+", "l2+", "grad"] };
const SPARSE_ADAGRAD: Layout<2> =
    Layout { variables: ["var", "accum"], rest: &["lr+", "l1+", "l2+", "grad", "indices"] };

/// Gradient descent, then shrinking; `numbers` are lr, l1 and l2.
pub fn apply_proximal_gradient_descent(var: &Output, numbers: [&Output; 3], gradient: &Gradient) -> Node {
    step_node("ProximalGradientDescent", &[var], &numbers, gradient, &[]).node()
}

/// Adagrad, then shrinking; `numbers` are lr, l1 and l2.
pub fn apply_proximal_adagrad(var: &Output, accum: &Output, numbers: [&Output; 3], gradient: &Gradient) -> Node {
    step_node("ProximalAdagrad", &[var, accum], &numbers, gradient, &[]).node()
}

fn descent_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => apply::<T, 1, 3>(setup, &DESCENT, descent_step::<T>))
}

fn sparse_descent_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => apply::<T, 1, 3>(setup, &SPARSE_DESCENT, descent_step::<T>))
}

fn adagrad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => apply::<T, 2, 3>(setup, &ADAGRAD, adagrad_step::<T>))
}

fn sparse_adagrad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => apply::<T, 2, 3>(setup, &SPARSE_ADAGRAD, adagrad_step::<T>))
}

/// `sign(x) max(|x| - lr l1, 0) / (1 + lr l2)`: nearer to zero by both penalties.
#[inline(always)]
fn shrunk<C: RealField>(x: C, lr: C, l1: C, l2: C) -> C {
    let zero = <C as Field>::ZERO;
    let far = (x.absolute() - lr * l1).larger(zero);
    (if l1 > zero { x.sign() * far } else { x }) / (<C as Field>::ONE + l2 * lr)
}

fn descent_step<T: Stored<Compute: RealField>>([lr, l1, l2]: [T::Compute; 3], slots: Slots<'_, T, 1>) -> Result<()> {
    slots.run(move |[var], grad| [shrunk(var - grad * lr, lr, l1, l2)])
}

fn adagrad_step<T: Stored<Compute: RealField>>([lr, l1, l2]: [T::Compute; 3], slots: Slots<'_, T, 2>) -> Result<()> {
    let zero = <T::Compute as Field>::ZERO;
    if lr <= zero {
        return Err(invalid!("lr is not a positive scalar: []"));
    }
    if l1 < zero || l2 < zero {
        let name = if l1 < zero { "l1" } else { "l2" };
        return Err(invalid!("{name} regularization strength is not a non-negative scalar: []"));
    }
    slots.run(move |[var, accum], grad| {
        let accum = accum + grad.squared();
        let rate = lr / accum.root();
        [shrunk(var - grad * rate, rate, l1, l2), accum]
    })
}
