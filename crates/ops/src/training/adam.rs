//! Adam and related optimizers.

use super::slots::{Layout, Slots, apply, for_fields, step_node};
use graph::{Node, Output};
use math::function::Ordered;
use math::optimizer::{Field, RealField, Stored};
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyAdam(var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: \
              T, epsilon: T, grad: T) -> out: Ref(T); T: numbertype; use_locking: bool = false; use_nesterov: bool \
              = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyAdam(var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, \
              beta1: T, beta2: T, epsilon: T, grad: T); T: numbertype; use_locking: bool = false; use_nesterov: \
              bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyAdamWithAmsgrad(var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, \
              beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T); T: numbertype; use_locking: bool = \
              false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: amsgrad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ApplyAdaMax(var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, \
              grad: T) -> out: Ref(T); T: numbertype; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: max_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyAdaMax(var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: \
              T, epsilon: T, grad: T); T: numbertype; use_locking: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: max_kernel,
        facts: PLAIN,
    },
];

const ADAM: Layout<3> = Layout {
    variables: ["var", "m", "v"],
    rest: &["beta1_power", "beta2_power", "lr ", "beta1", "beta2", "epsilon", "grad"],
};
const AMSGRAD: Layout<4> = Layout {
    variables: ["var", "m", "v", "vhat"],
    rest: &["beta1_power", "beta2_power", "lr ", "beta1", "beta2", "epsilon", "grad"],
};
const ADA_MAX: Layout<3> =
    Layout { variables: ["var", "m", "v"], rest: &["beta1_power", "lr ", "beta1", "beta2", "epsilon", "grad"] };

/// A step by the mean of past gradients over the root of the mean of their squares; `numbers` are beta1_power,
/// beta2_power, lr, beta1, beta2 and epsilon.
pub fn apply_adam(
    var: &Output,
    m: &Output,
    v: &Output,
    numbers: [&Output; 6],
    gradient: &Output,
    nesterov: bool,
) -> Node {
    let gradient = Gradient::Dense(gradient.clone());
    step_node("Adam", &[var, m, v], &numbers, &gradient, &[]).attr("use_nesterov", nesterov).node()
}

/// Adam whose divisor never decreases; `numbers` as for `apply_adam`.
pub fn apply_adam_with_amsgrad(variables: [&Output; 4], numbers: [&Output; 6], gradient: &Output) -> Node {
    step_node("AdamWithAmsgrad", &variables, &numbers, &Gradient::Dense(gradient.clone()), &[]).node()
}

/// Adam by the largest of past gradients; `numbers` are beta1_power, lr, beta1, beta2 and epsilon.
pub fn apply_ada_max(var: &Output, m: &Output, v: &Output, numbers: [&Output; 5], gradient: &Output) -> Node {
    step_node("AdaMax", &[var, m, v], &numbers, &Gradient::Dense(gradient.clone()), &[]).node()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let nesterov = setup.bool("use_nesterov")?;
    for_fields!(setup, T => apply::<T, 3, 6>(setup, &ADAM, move |numbers, slots| step::<T>(numbers, slots, nesterov)))
}

fn amsgrad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, real T => apply::<T, 4, 6>(setup, &AMSGRAD, amsgrad_step::<T>))
}

fn max_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, real T => apply::<T, 3, 5>(setup, &ADA_MAX, max_step::<T>))
}

fn step<T: Stored>(
    [beta1_power, beta2_power, lr, beta1, beta2, epsilon]: [T::Compute; 6],
    slots: Slots<'_, T, 3>,
    nesterov: bool,
) -> Result<()> {
    let one = T::Compute::ONE;
    let alpha = lr * (one - beta2_power).root() / (one - beta1_power);
    let (fresh1, fresh2) = (one - beta1, one - beta2);
    if nesterov {
        return slots.run(move |[var, m, v], grad| {
            let m = m + (grad - m) * fresh1;
            let v = v + (grad.squared() - v) * fresh2;
            [var - (grad * fresh1 + beta1 * m) * alpha / (v.root() + epsilon), m, v]
        });
    }
    slots.run(move |[var, m, v], grad| {
        let m = m + (grad - m) * fresh1;
        let v = v + (grad.squared() - v) * fresh2;
        [var - m * alpha / (v.root() + epsilon), m, v]
    })
}

fn amsgrad_step<T: Stored<Compute: RealField>>(
    [beta1_power, beta2_power, lr, beta1, beta2, epsilon]: [T::Compute; 6],
    slots: Slots<'_, T, 4>,
) -> Result<()> {
    let one = <T::Compute as Field>::ONE;
    let alpha = lr * (one - beta2_power).root() / (one - beta1_power);
    let (fresh1, fresh2) = (one - beta1, one - beta2);
    slots.run(move |[var, m, v, vhat], grad| {
        let m = m + (grad - m) * fresh1;
        let v = v + (grad.squared() - v) * fresh2;
        let vhat = vhat.larger(v);
        [var - m * alpha / (vhat.root() + epsilon), m, v, vhat]
    })
}

fn max_step<T: Stored<Compute: RealField>>(
    [beta1_power, lr, beta1, beta2, epsilon]: [T::Compute; 5],
    slots: Slots<'_, T, 3>,
) -> Result<()> {
    let one = <T::Compute as Field>::ONE;
    let (alpha, fresh) = (lr / (one - beta1_power), one - beta1);
    slots.run(move |[var, m, v], grad| {
        let m = m + (grad - m) * fresh;
        let v = (beta2 * v).larger(grad.absolute());
        [var - alpha * (m / (v + epsilon)), m, v]
    })
}
