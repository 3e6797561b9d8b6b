//! Gradient descent with momentum, in TensorFlow's two definitions.

use super::slots::{Layout, Slots, apply, for_fields, step_node};
use graph::{Node, Output};
use math::optimizer::Stored;
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyMomentum(var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T) -> out: Ref(T); T: numbertype; \
              use_locking: bool = false; use_nesterov: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyMomentum(var: resource, accum: resource, lr: T, grad: T, momentum: T); T: numbertype; \
              use_locking: bool = false; use_nesterov: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyMomentum(var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices, momentum: T) -> \
              out: Ref(T); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; use_nesterov: bool = \
              false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyMomentum(var: resource, accum: resource, lr: T, grad: T, indices: Tindices, \
              momentum: T); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; use_nesterov: bool \
              = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyKerasMomentum(var: resource, accum: resource, lr: T, grad: T, momentum: T); T: \
              numbertype; use_locking: bool = false; use_nesterov: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: keras_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyKerasMomentum(var: resource, accum: resource, lr: T, grad: T, indices: Tindices, \
              momentum: T); T: numbertype; Tindices: {int32, int64}; use_locking: bool = false; use_nesterov: bool \
              = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_keras_kernel,
        facts: PLAIN,
    },
];

const LAYOUT: Layout<2> = Layout { variables: ["var", "accum"], rest: &["lr", "grad", "momentum"] };
const SPARSE: Layout<2> = Layout { variables: ["var", "accum"], rest: &["lr ", "grad", "indices", "momentum"] };
const SPARSE_KERAS: Layout<2> = Layout { variables: ["var", "accum"], rest: &["lr ", "grad", "indices[]", "momentum"] };

/// `accum = momentum accum + gradient; var -= lr accum`; with `nesterov`, a step further on.
pub fn apply_momentum(
    var: &Output,
    accum: &Output,
    lr: &Output,
    gradient: &Gradient,
    momentum: &Output,
    nesterov: bool,
) -> Node {
    step_node("Momentum", &[var, accum], &[lr], gradient, &[momentum]).attr("use_nesterov", nesterov).node()
}

/// `accum = momentum accum - lr gradient; var += accum`; with `nesterov`, a step further on.
pub fn apply_keras_momentum(
    var: &Output,
    accum: &Output,
    lr: &Output,
    gradient: &Gradient,
    momentum: &Output,
    nesterov: bool,
) -> Node {
    step_node("KerasMomentum", &[var, accum], &[lr], gradient, &[momentum]).attr("use_nesterov", nesterov).node()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_layout(setup, &LAYOUT)
}

fn sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_layout(setup, &SPARSE)
}

fn keras_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    keras_with_layout(setup, &LAYOUT)
}

fn sparse_keras_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    keras_with_layout(setup, &SPARSE_KERAS)
}

fn with_layout(setup: &Setup<'_>, layout: &'static Layout<2>) -> Result<Kernel> {
    let nesterov = setup.bool("use_nesterov")?;
    for_fields!(setup, T => apply::<T, 2, 2>(setup, layout, move |numbers, slots| step::<T>(numbers, slots, nesterov)))
}

fn keras_with_layout(setup: &Setup<'_>, layout: &'static Layout<2>) -> Result<Kernel> {
    let nesterov = setup.bool("use_nesterov")?;
    for_fields!(setup, T => {
        apply::<T, 2, 2>(setup, layout, move |numbers, slots| keras_step::<T>(numbers, slots, nesterov))
    })
}

fn step<T: Stored>([lr, momentum]: [T::Compute; 2], slots: Slots<'_, T, 2>, nesterov: bool) -> Result<()> {
    if nesterov {
        return slots.run(move |[var, accum], grad| {
            let accum = accum * momentum + grad;
            [var - (grad * lr + accum * momentum * lr), accum]
        });
    }
    slots.run(move |[var, accum], grad| {
        let accum = accum * momentum + grad;
        [var - accum * lr, accum]
    })
}

fn keras_step<T: Stored>([lr, momentum]: [T::Compute; 2], slots: Slots<'_, T, 2>, nesterov: bool) -> Result<()> {
    if nesterov {
        return slots.run(move |[var, accum], grad| {
            let accum = accum * momentum - grad * lr;
            [var + (accum * momentum - grad * lr), accum]
        });
    }
    slots.run(move |[var, accum], grad| {
        let accum = accum * momentum - grad * lr;
        [var + accum, accum]
    })
}
