//! FTRL: follow the regularized leader.

use super::slots::{Layout, Slots, apply, for_fields, step_node};
use graph::{Node, Output};
use math::function::Real;
use math::optimizer::{Field, RealField, Stored};
use op::shapes::{none, unchanged};
use op::{Grad, Gradient, Kernel, Op, PLAIN, Setup};
use status::{Result, invalid};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ApplyFtrl(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, lr_power: T) -> \
              out: Ref(T); T: numbertype; use_locking: bool = false; multiply_linear_by_lr: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyFtrl(var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, \
              lr_power: T); T: numbertype; use_locking: bool = false; multiply_linear_by_lr: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyFtrl(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, \
              l2: T, lr_power: T) -> out: Ref(T); T: numbertype; Tindices: {int32, int64}; use_locking: bool = \
              false; multiply_linear_by_lr: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyFtrl(var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, \
              lr: T, l1: T, l2: T, lr_power: T); T: numbertype; Tindices: {int32, int64}; use_locking: bool = \
              false; multiply_linear_by_lr: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ApplyFtrlV2(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, l2_shrinkage: \
              T, lr_power: T) -> out: Ref(T); T: numbertype; use_locking: bool = false; multiply_linear_by_lr: bool \
              = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceApplyFtrlV2(var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, \
              l2_shrinkage: T, lr_power: T); T: numbertype; use_locking: bool = false; multiply_linear_by_lr: bool \
              = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseApplyFtrlV2(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: \
              T, l2: T, l2_shrinkage: T, lr_power: T) -> out: Ref(T); T: numbertype; Tindices: {int32, int64}; \
              use_locking: bool = false; multiply_linear_by_lr: bool = false",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: sparse_v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceSparseApplyFtrlV2(var: resource, accum: resource, linear: resource, grad: T, indices: \
              Tindices, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T); T: numbertype; Tindices: {int32, \
              int64}; use_locking: bool = false; multiply_linear_by_lr: bool = false; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: sparse_v2_kernel,
        facts: PLAIN,
    },
];

const LAYOUT: Layout<3> =
    Layout { variables: ["var", "accum", "linear"], rest: &["grad", "lr", "l1", "l2", "lr_power"] };
const SPARSE: Layout<3> =
    Layout { variables: ["var", "accum", "linear"], rest: &["grad", "indices", "lr+0", "l1+", "l2+", "lr_power-"] };
const V2: Layout<3> =
    Layout { variables: ["var", "accum", "linear"], rest: &["grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"] };
const SPARSE_V2: Layout<3> = Layout {
    variables: ["var", "accum", "linear"],
    rest: &["grad", "indices", "lr+0", "l1+", "l2+", "l2_shrinkage+", "lr_power-"],
};

/// One step; variables are var, accum and linear, `numbers` are lr, l1, l2 and lr_power.
pub fn apply_ftrl(variables: [&Output; 3], gradient: &Gradient, numbers: [&Output; 4]) -> Node {
    step_node("Ftrl", &variables, &[], gradient, &numbers).node()
}

/// One step with shrinkage; `numbers` are lr, l1, l2, l2_shrinkage and lr_power.
pub fn apply_ftrl_v2(variables: [&Output; 3], gradient: &Gradient, numbers: [&Output; 5]) -> Node {
    step_node("FtrlV2", &variables, &[], gradient, &numbers).node()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_layout(setup, &LAYOUT, false)
}

fn sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_layout(setup, &SPARSE, true)
}

fn v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    v2_with_layout(setup, &V2, false)
}

fn sparse_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    v2_with_layout(setup, &SPARSE_V2, true)
}

fn with_layout(setup: &Setup<'_>, layout: &'static Layout<3>, strict: bool) -> Result<Kernel> {
    let multiply = setup.bool("multiply_linear_by_lr")?;
    for_fields!(setup, real T => apply::<T, 3, 4>(setup, layout, move |[lr, l1, l2, lr_power], slots| {
        let shrinkage = <<T as Stored>::Compute as Field>::ZERO;
        Numbers { lr, l1, l2, shrinkage, lr_power, multiply }.checked(strict)?.step::<T>(slots)
    }))
}

fn v2_with_layout(setup: &Setup<'_>, layout: &'static Layout<3>, strict: bool) -> Result<Kernel> {
    let multiply = setup.bool("multiply_linear_by_lr")?;
    for_fields!(setup, real T => apply::<T, 3, 5>(setup, layout, move |[lr, l1, l2, shrinkage, lr_power], slots| {
        Numbers { lr, l1, l2, shrinkage, lr_power, multiply }.checked(strict)?.step::<T>(slots)
    }))
}

/// The scalars of an update. With `multiply`, `linear` is stored multiplied by lr.
struct Numbers<C> {
    lr: C,
    l1: C,
    l2: C,
    shrinkage: C,
    lr_power: C,
    multiply: bool,
}

impl<C: RealField> Numbers<C> {
    /// Steps on rows are checked for the range of their numbers, dense ones are not: as TensorFlow has it.
    fn checked(self, strict: bool) -> Result<Numbers<C>> {
        let zero = <C as Field>::ZERO;
        if !strict {
            return Ok(self);
        }
        if self.lr < zero || (self.lr == zero && !self.multiply) {
            return Err(invalid!("lr is not a positive scalar (or zero if multiply_linear_by_lr is set): []"));
        }
        if self.l1 < zero || self.l2 < zero {
            let name = if self.l1 < zero { "l1" } else { "l2" };
            return Err(invalid!("{name} regularization strength is not a non-negative scalar: []"));
        }
        if self.lr_power > zero {
            return Err(invalid!("lr_power is not a non-positive scalar: []"));
        }
        if self.shrinkage < zero {
            return Err(invalid!("l2 shrinkage regularization strength is not a non-negative scalar: []"));
        }
        Ok(self)
    }

    fn step<T: Stored<Compute = C>>(self, slots: Slots<'_, T, 3>) -> Result<()> {
        let half = C::from_f64(-0.5);
        if self.lr_power == half {
            return self.step_with(slots, |accum: C| accum.root());
        }
        let power = -self.lr_power;
        self.step_with(slots, move |accum: C| Real::pow(accum, power))
    }

    fn step_with<T: Stored<Compute = C>>(
        self,
        slots: Slots<'_, T, 3>,
        power: impl Fn(C) -> C + Copy + Send + Sync,
    ) -> Result<()> {
        let (zero, one, two) = (<C as Field>::ZERO, <C as Field>::ONE, C::from_f64(2.0));
        let (by_gradient, by_power) = if self.multiply { (self.lr, one) } else { (one, one / self.lr) };
        let (l1, l2, shrinkage) = (self.l1 * by_gradient, two * self.l2 * by_gradient, two * self.shrinkage);
        slots.run(move |[var, accum, linear], grad| {
            let next = accum + grad.squared();
            let rise = (power(next) - power(accum)) * by_power;
            let linear = linear + (grad + shrinkage * var) * by_gradient - rise * var;
            let quadratic = power(next) * by_power + l2;
            let var = if linear.absolute() > l1 { (l1 * linear.sign() - linear) / quadratic } else { zero };
            [var, next, linear]
        })
    }
}
