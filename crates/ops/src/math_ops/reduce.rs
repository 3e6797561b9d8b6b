//! Reductions along axes: sums, means, products, extremes.

use super::axes::{reduced_axes, reduced_shape, reduction_shape};
use super::reduce_grad::{extreme_rule, mean_rule, norm_rule, prod_rule, sum_rule};
use graph::{Output, Scope};
use math::elementwise::cost;
use math::reduce::{All, Any, EuclideanNorm, Fold, Max, Mean, Min, Prod, Reduction, Sum};
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, binary};
use status::Result;
use tensor::{Complex32, Complex64, Element, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Sum(input: T, reduction_indices: Tidx) -> output: T; keep_dims: bool = false; T: numbertype; \
              Tidx: {int32, int64} = int32",
        shape: reduction_shape,
        grad: Grad::Rule(sum_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => reducing::<T, Sum>(setup, Sum)),
        facts: PLAIN,
    },
    Op {
        def: "Mean(input: T, reduction_indices: Tidx) -> output: T; keep_dims: bool = false; T: numbertype; \
              Tidx: {int32, int64} = int32",
        shape: reduction_shape,
        grad: Grad::Rule(mean_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i64, u64, Complex32, Complex64], T => reducing::<T, Mean>(setup, Mean)),
        facts: PLAIN,
    },
    Op {
        def: "Prod(input: T, reduction_indices: Tidx) -> output: T; keep_dims: bool = false; T: numbertype; \
              Tidx: {int32, int64} = int32",
        shape: reduction_shape,
        grad: Grad::Rule(prod_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i64, Complex32, Complex64], T => reducing::<T, Prod>(setup, Prod)),
        facts: PLAIN,
    },
    Op {
        def: "EuclideanNorm(input: T, reduction_indices: Tidx) -> output: T; keep_dims: bool = false; T: numbertype; \
              Tidx: {int32, int64} = int32",
        shape: reduction_shape,
        grad: Grad::Rule(norm_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i64, u64, Complex32, Complex64], T => reducing::<T, EuclideanNorm>(setup, EuclideanNorm)),
        facts: PLAIN,
    },
    Op {
        def: "Max(input: T, reduction_indices: Tidx) -> output: T; keep_dims: bool = false; T: {realnumbertype, qint8, \
              quint8, qint32, qint16, quint16}; Tidx: {int32, int64} = int32",
        shape: reduction_shape,
        grad: Grad::Rule(extreme_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, u64], T => reducing::<T, Max>(setup, Max)),
        facts: PLAIN,
    },
    Op {
        def: "Min(input: T, reduction_indices: Tidx) -> output: T; keep_dims: bool = false; T: {realnumbertype, qint8, \
              quint8, qint32, qint16, quint16}; Tidx: {int32, int64} = int32",
        shape: reduction_shape,
        grad: Grad::Rule(extreme_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i32, i64, u64], T => reducing::<T, Min>(setup, Min)),
        facts: PLAIN,
    },
    Op {
        def: "All(input: bool, reduction_indices: Tidx) -> output: bool; keep_dims: bool = false; \
              Tidx: {int32, int64} = int32",
        shape: reduction_shape,
        grad: Grad::Unknown,
        kernel: |setup| reducing::<bool, All>(setup, All),
        facts: PLAIN,
    },
    Op {
        def: "Any(input: bool, reduction_indices: Tidx) -> output: bool; keep_dims: bool = false; \
              Tidx: {int32, int64} = int32",
        shape: reduction_shape,
        grad: Grad::Unknown,
        kernel: |setup| reducing::<bool, Any>(setup, Any),
        facts: PLAIN,
    },
];

/// Along which axes to reduce.
#[derive(Clone, Copy, Debug)]
pub enum Axes<'a> {
    /// All axes; the rank must be known.
    All,
    /// These; negative ones count from the last.
    These(&'a [i32]),
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)*) => {$(
        $(#[$doc])*
        pub fn $name(x: &Output, axes: Axes<'_>, keep_dims: bool) -> Output {
            let axes = axes_of(x, axes);
            x.scope().op($op).input(x).input(&axes).attr("keep_dims", keep_dims).output()
        }
    )*};
}

reductions! {
    /// The sum along axes.
    reduce_sum = "Sum";
    /// The arithmetic mean along axes.
    reduce_mean = "Mean";
    /// The product along axes.
    reduce_prod = "Prod";
    /// The largest element along axes.
    reduce_max = "Max";
    /// The smallest element along axes.
    reduce_min = "Min";
    /// Whether all elements along axes are true.
    reduce_all = "All";
    /// Whether any element along axes is true.
    reduce_any = "Any";
    /// The square root of the sum of squares along axes.
    euclidean_norm = "EuclideanNorm";
}

/// The axes as a tensor; all axes of a tensor of unknown rank are counted when the graph runs.
fn axes_of(x: &Output, axes: Axes<'_>) -> Output {
    let constant = |axes: &[i32]| super::broadcast_grad::constant(x.scope(), Tensor::vector(axes));
    match (axes, x.shape().rank()) {
        (Axes::These(axes), _) => constant(axes),
        (Axes::All, Some(rank)) => constant(&(0..rank as i32).collect::<Vec<_>>()),
        (Axes::All, None) => {
            let rank = x.scope().op("Rank").input(x).output();
            range(x.scope(), &rank)
        }
    }
}

/// The numbers below `limit`.
pub(super) fn range(scope: &Scope, limit: &Output) -> Output {
    let number = |value: i32| super::broadcast_grad::constant(scope, Tensor::scalar(value));
    scope.op("Range").input(&number(0)).input(limit).input(&number(1)).output()
}

fn reducing<T: Element, F: Fold<T> + 'static>(setup: &Setup<'_>, fold: F) -> Result<Kernel> {
    let keep_dims = setup.bool("keep_dims")?;
    Ok(binary(move |ctx, input, axes| run_reduce::<T, F>(ctx, fold, keep_dims, &input, &axes)))
}

fn run_reduce<T: Element, F: Fold<T>>(
    ctx: &Ctx<'_>,
    fold: F,
    keep_dims: bool,
    input: &Tensor,
    axes: &Tensor,
) -> Result<Tensor> {
    let shape = input.shape();
    let reduced = reduced_axes(shape, axes)?;
    let mut output = Tensor::scratch_of(input.dtype(), reduced_shape(shape, &reduced, keep_dims))?;
    let reduction = match input.elements() {
        // Dimensions beside one of zero may be too large to multiply.
        0 => Reduction::new(&[output.elements(), 0], &[false, true]),
        _ => Reduction::new(shape, &reduced),
    };
    math::reduce::reduce_axes(ctx.pool(), cost::SIMPLE, &reduction, input.values()?, output.values_mut::<T>()?, fold);
    Ok(output)
}
