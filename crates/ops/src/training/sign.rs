//! AddSign and PowerSign: steps are longer where the signs of gradient and momentum agree.

use super::slots::{Layout, Slots, apply, for_fields, step_node};
use graph::{Node, Output};
use math::function::{Ordered, Real};
use math::optimizer::{Field, RealField, Stored};
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyAddSign(var: Ref(T), m: Ref(T), lr: T, alpha: T, sign_decay: T, beta: T, grad: T) -> out: \
              Ref(T); T: numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: add_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyAddSign(var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T, grad: T); \
              T: numbertype; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: add_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ApplyPowerSign(var: Ref(T), m: Ref(T), lr: T, logbase: T, sign_decay: T, beta: T, grad: T) -> out: \
              Ref(T); T: numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: power_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyPowerSign(var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T, grad: \
              T); T: numbertype; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: power_kernel,
        facts: PLAIN,
    },
];

const ADD: Layout<2> = Layout { variables: ["var", "m"], rest: &["lr", "alpha", "sign_decay", "beta", "grad"] };
const POWER: Layout<2> = Layout { variables: ["var", "m"], rest: &["lr", "logbase", "sign_decay", "beta", "grad"] };

/// `var -= lr (alpha + sign_decay sign(g) sign(m)) g`; `numbers` are lr, alpha, sign_decay and beta.
pub fn apply_add_sign(var: &Output, m: &Output, numbers: [&Output; 4], gradient: &Output) -> Node {
    step_node("AddSign", &[var, m], &numbers, &Gradient::Dense(gradient.clone()), &[]).node()
}

/// `var -= lr exp(logbase sign_decay sign(g) sign(m)) g`; `numbers` are lr, logbase, sign_decay and beta.
pub fn apply_power_sign(var: &Output, m: &Output, numbers: [&Output; 4], gradient: &Output) -> Node {
    step_node("PowerSign", &[var, m], &numbers, &Gradient::Dense(gradient.clone()), &[]).node()
}

fn add_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, real T => apply::<T, 2, 4>(setup, &ADD, add_step::<T>))
}

fn power_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, real T => apply::<T, 2, 4>(setup, &POWER, power_step::<T>))
}

fn add_step<T: Stored<Compute: RealField>>(
    [lr, alpha, sign_decay, beta]: [T::Compute; 4],
    slots: Slots<'_, T, 2>,
) -> Result<()> {
    let fresh = <T::Compute as Field>::ONE - beta;
    slots.run(move |[var, m], grad| {
        let m = m * beta + grad * fresh;
        [var - lr * (alpha + sign_decay * grad.sign() * m.sign()) * grad, m]
    })
}

fn power_step<T: Stored<Compute: RealField>>(
    [lr, logbase, sign_decay, beta]: [T::Compute; 4],
    slots: Slots<'_, T, 2>,
) -> Result<()> {
    let one = <T::Compute as Field>::ONE;
    let fresh = one - beta;
    slots.run(move |[var, m], grad| {
        let m = m * beta + grad * fresh;
        let scale = Real::exp(logbase * sign_decay * grad.sign() * m.sign());
        [var - lr * scale * grad, m]
    })
}
