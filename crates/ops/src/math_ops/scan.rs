//! Cumulative sums and products along an axis.

use super::axes::place_of;
use super::compare::{greater, less};
use super::division::div_no_nan;
use super::exponential::{exp, log};
use super::select::select_v2;
use graph::{Node, Output};
use math::Pool;
use math::reduce::{self, Direction};
use op::shapes::{integers, unchanged};
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, DType, Element, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Cumsum(x: T, axis: Tidx) -> out: T; exclusive: bool = false; reverse: bool = false; T: numbertype; \
              Tidx: {int32, int64} = int32",
        shape: unchanged,
        grad: Grad::Rule(cumsum_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i64, Complex32, Complex64], T => scanning::<T>(setup, reduce::cumsum::<T>)),
        facts: PLAIN,
    },
    Op {
        def: "Cumprod(x: T, axis: Tidx) -> out: T; exclusive: bool = false; reverse: bool = false; T: numbertype; \
              Tidx: {int32, int64} = int32",
        shape: unchanged,
        grad: Grad::Rule(cumprod_rule),
        kernel: |setup| for_core!(setup, [f32, f64, i64, Complex32, Complex64], T => scanning::<T>(setup, reduce::cumprod::<T>)),
        facts: PLAIN,
    },
    Op {
        def: "CumulativeLogsumexp(x: T, axis: Tidx) -> out: T; exclusive: bool = false; reverse: bool = false; \
              T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32",
        shape: unchanged,
        grad: Grad::Rule(cumulative_logsumexp_rule),
        kernel: |setup| for_core!(setup, [f32, f64], T => scanning::<T>(setup, reduce::cumulative_logsumexp::<T>)),
        facts: PLAIN,
    },
];

/// Which elements a running result covers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scan {
    /// True if an element is not included in its own result.
    pub exclusive: bool,
    /// True if the scan runs from the end of the axis to its start.
    pub reverse: bool,
}

/// Running sums along `axis`.
pub fn cumsum(x: &Output, axis: &Output, scan: Scan) -> Output {
    build("Cumsum", x, axis, scan)
}

/// Running products along `axis`.
pub fn cumprod(x: &Output, axis: &Output, scan: Scan) -> Output {
    build("Cumprod", x, axis, scan)
}

/// Logarithms of running sums of exponentials along `axis`.
pub fn cumulative_logsumexp(x: &Output, axis: &Output, scan: Scan) -> Output {
    build("CumulativeLogsumexp", x, axis, scan)
}

fn build(op: &str, x: &Output, axis: &Output, scan: Scan) -> Output {
    let node = x.scope().op(op).input(x).input(axis);
    node.attr("exclusive", scan.exclusive).attr("reverse", scan.reverse).output()
}

/// A loop over `[outer, len, inner]`.
type Loop<T> = fn(&Pool, [usize; 3], Direction, &[T], &mut [T]);

fn scanning<T: Element>(setup: &Setup<'_>, run: Loop<T>) -> Result<Kernel> {
    let direction = Direction { exclusive: setup.bool("exclusive")?, reverse: setup.bool("reverse")? };
    Ok(binary(move |ctx, x, axis| run_scan(ctx, run, direction, &x, &axis)))
}

fn run_scan<T: Element>(
    ctx: &Ctx<'_>,
    run: Loop<T>,
    direction: Direction,
    x: &Tensor,
    axis: &Tensor,
) -> Result<Tensor> {
    if axis.shape().rank() != 0 {
        return Err(invalid!("ScanOp: axis must be a scalar, not {}", axis.shape()));
    }
    let (axis, rank) = (integers(axis)?[0], x.shape().rank());
    let place = place_of(axis, rank).ok_or_else(|| {
        let counted = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
        invalid!("ScanOp: Expected scan axis in the range [{}, {rank}), but got {counted}", -(rank as i64))
    })?;
    let mut out = Tensor::scratch_of(x.dtype(), x.shape())?;
    if x.elements() > 0 {
        let dims = x.shape().dims();
        let (outer, inner) = (dims[..place].iter().product(), dims[place + 1..].iter().product());
        run(ctx.pool(), [outer, dims[place], inner], direction, x.values()?, out.values_mut()?);
    }
    Ok(out)
}

/// The elements that the node includes.
fn scan_of(op: &Node) -> Result<Scan> {
    Ok(Scan { exclusive: op.attr_bool("exclusive")?, reverse: op.attr_bool("reverse")? })
}

/// The same, from the other end.
fn turned(scan: Scan) -> Scan {
    Scan { reverse: !scan.reverse, ..scan }
}

fn cumsum_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![cumsum(dy, &op.input(1), turned(scan_of(op)?)), NoGradient])
}

fn cumprod_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [x, axis] = op.inputs()?;
    let products = op.output(0) * dy;
    Ok(grads![div_no_nan(&cumsum(&products, &axis, turned(scan_of(op)?)), &x), NoGradient])
}

/// Positive and negative gradients go through logarithms apart, so that nothing overflows.
fn cumulative_logsumexp_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [x, axis] = op.inputs()?;
    let (scan, zero) = (turned(scan_of(op)?), dy.like(0.0));
    let lowest = dy.like(lowest(dy.dtype()));
    let through = |is_part: Output, part: &Output| {
        let logs = select_v2(&is_part, &log(part), &lowest);
        exp(&(cumulative_logsumexp(&(logs - op.output(0)), &axis, scan) + &x))
    };
    let positive = through(greater(dy, &zero), dy);
    let negative = through(less(dy, &zero), &-dy);
    Ok(grads![positive - negative, NoGradient])
}

/// The lowest finite number of a floating-point type.
fn lowest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::MIN,
        DType::F16 => -65504.0,
        DType::BF16 => -3.389_531_389_251_535_5e38,
        _ => f32::MIN.into(),
    }
}
