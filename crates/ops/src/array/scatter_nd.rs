//! ScatterNd and related ops, which combine slices into a tensor at positions given by index vectors.

use super::args::to_shape;
use super::gather_nd::{OUTSIDE, gather_nd, starts};
use super::index::{joined, largest, place, product};
use super::units::Unit;
use graph::{Node, Output};
use math::function::{Number, Ordered};
use math::rows;
use op::shapes::{shape_from_input, unchanged};
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Bytes, Complex32, Complex64, DType, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> output: T; T: type; \
              Tindices: {int16, int32, int64}; bad_indices_policy: string = \"\"",
        shape: scatter_nd_shape,
        grad: Grad::Rule(scatter_nd_rule),
        kernel: scatter_nd_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ScatterNdNonAliasingAdd(input: T, indices: Tindices, updates: T) -> output: T; T: {float, double, int32, \
              uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, \
              half, uint32, uint64, bool}; Tindices: {int32, int64}; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Rule(add_rule),
        kernel: non_aliasing_add_kernel,
        facts: PLAIN,
    },
];

/// Zeros of `shape`, with `updates` added at the places that `indices` name.
pub fn scatter_nd(indices: &Output, updates: &Output, shape: &Output) -> Output {
    updates.scope().op("ScatterNd").input(indices).input(updates).input(shape).output()
}

fn scatter_nd_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 2)])
}

fn scatter_nd_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![NoGradient, gather_nd(dy, &op.input(0)), NoGradient])
}

pub(super) fn add_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.clone(), NoGradient, gather_nd(dy, &op.input(1))])
}

/// How an update is combined with the present value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    Assign,
    Add,
    Sub,
    Max,
    Min,
}

/// Combines updates into a tensor at checked places.
pub(crate) type Apply = fn(&Ctx<'_>, &mut Tensor, &Targets, &Tensor) -> Result<()>;

/// The kernel that `make` builds from the function that combines updates of the node's type.
pub(crate) fn combining(setup: &Setup<'_>, combine: Combine, make: impl Fn(Apply) -> Kernel) -> Result<Kernel> {
    match (combine, setup.dtype("T")?) {
        (Combine::Assign, _) => Ok(make(assign)),
        (Combine::Add, DType::STRING) => Ok(make(append)),
        (Combine::Add, DType::BOOL) => {
            Ok(make(|ctx, dst, targets, updates| merge::<bool>(ctx, dst, targets, updates, |a, b| a | b)))
        }
        (Combine::Sub, DType::BOOL) => {
            Ok(make(|ctx, dst, targets, updates| merge::<bool>(ctx, dst, targets, updates, |a, b| a ^ b)))
        }
        (Combine::Add, _) => for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(make(add::<T>))),
        (Combine::Sub, _) => for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(make(sub::<T>))),
        (Combine::Max, _) => for_core!(setup, [f32, f64, i32, i64, u64], T => Ok(make(max::<T>))),
        (Combine::Min, _) => for_core!(setup, [f32, f64, i32, i64, u64], T => Ok(make(min::<T>))),
    }
}

/// The targets of updates: update `i`, of `width` elements, belongs to slice `starts[i]`.
pub(crate) struct Targets {
    starts: Vec<usize>,
    width: usize,
}

impl Targets {
    /// Places in a tensor of this shape; a vector that names none is an error, or is left out.
    pub(crate) fn new(shape: &Shape, indices: &Tensor, updates: &Tensor, ignore: bool) -> Result<Targets> {
        check_update_shape(shape, indices, updates)?;
        let (depth, outer) = match indices.shape().split_last() {
            Some((&depth, outer)) if !outer.is_empty() => (depth, outer),
            _ => (1, &indices.shape()[..]),
        };
        if shape.elements() == 0 || indices.elements() == 0 && depth > 0 {
            return Ok(Targets { starts: Vec::new(), width: 0 });
        }
        if depth == 0 {
            return Err(invalid!(
                "Only indices.shape[-1] values between 1 and 5 are currently supported.  Requested rank: {depth}"
            ));
        }
        let starts = for_indices!(indices, values: I => Ok(starts::<I>(values, product(outer), &shape[..depth])))?;
        match starts.iter().rposition(|&start| start == OUTSIDE) {
            Some(bad) if !ignore => {
                let vector = joined(&op::shapes::integers(indices)?[bad * depth..][..depth], ", ");
                Err(invalid!("indices{} = [{vector}] does not index into shape {shape}", place(outer, bad)))
            }
            _ => Ok(Targets { starts, width: product(&shape[depth..]) }),
        }
    }

    fn cost<T>(&self) -> f32 {
        4.0 + (self.width * size_of::<T>()) as f32 / 8.0
    }
}

fn check_update_shape(shape: &Shape, indices: &Tensor, updates: &Tensor) -> Result<()> {
    let (places, slices) = (indices.shape(), updates.shape());
    if shape.rank() == 0 {
        return Err(invalid!("Output must be at least 1-D, got shape: {shape}"));
    }
    if !fits_empty(shape.elements(), indices, updates) {
        return Err(invalid!("Indices and updates specified for empty output.  indices shape: {places}"));
    }
    let (Some(&count), Some(&given)) = (places.first(), slices.first()) else {
        return Err(invalid!("Indices and updates must have rank at least one. Found:{places} and {slices}"));
    };
    if count != given {
        return Err(invalid!(
            "Dimensions [0,1) of indices[shape={places}] = {count} must match dimensions [0,1) of updates[shape={slices}] = {given}"
        ));
    }
    check_dimensions(shape, places, slices)?;
    let (elements, highest) = (indices.elements() as i64, largest(indices.dtype()));
    if elements > highest {
        return Err(invalid!("indices has too many elements for {} indexing: {elements} > {highest}", indices.dtype()));
    }
    if shape[0] as i64 > highest {
        return Err(invalid!("params_shape[0] too large for {} indexing: {} > {highest}", indices.dtype(), shape[0]));
    }
    Ok(())
}

/// Updates have the outer dimensions of the indices, then those of a slice.
fn check_dimensions(shape: &Shape, places: &Shape, slices: &Shape) -> Result<()> {
    let (depth, batch) = if places.rank() > 1 { (places[places.rank() - 1], places.rank() - 1) } else { (1, 1) };
    if slices.rank() < batch || slices[..batch] != places[..batch] {
        return Err(invalid!(
            "Dimensions [0,{batch}) of indices[shape={places}] must match dimensions [0,{batch}) of updates[shape={slices}]"
        ));
    }
    if depth > shape.rank() || slices[batch..] != shape[depth..] {
        return Err(invalid!(
            "Dimensions [{depth},{}) of input[shape={shape}] must match dimensions [{depth},{}) of updates[shape={slices}]",
            shape.rank(),
            slices.rank()
        ));
    }
    Ok(())
}

/// True if an output of this many elements can take these updates: an empty one takes none.
fn fits_empty(elements: usize, indices: &Tensor, updates: &Tensor) -> bool {
    let (places, given) = (indices.elements(), updates.elements());
    (places == 0 && given == 0) || (elements != 0 && places != 0 && given != 0)
}

/// True if invalid index vectors are ignored, according to the attribute.
pub(crate) fn ignores_bad_indices(setup: &Setup<'_>) -> Result<bool> {
    match setup.string("bad_indices_policy")?.as_str() {
        "" | "DEFAULT" | "ERROR" => Ok(false),
        "IGNORE" => Ok(true),
        other => Err(invalid!("Unknown bad indices handling attribute: {other}")),
    }
}

fn scatter_nd_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let ignore = ignores_bad_indices(setup)?;
    combining(setup, Combine::Add, |apply| {
        let kernel = many(move |ctx, mut inputs| {
            let (indices, updates, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
            let dims = checked_output_shape(&indices, &updates, &shape)?;
            let targets = Targets::new(&dims, &indices, &updates, ignore)?;
            let mut output = Tensor::zeros_of(updates.dtype(), dims)?;
            apply(ctx, &mut output, &targets, &updates)?;
            Ok(outputs![output])
        });
        kernel.heavy()
    })
}

fn checked_output_shape(indices: &Tensor, updates: &Tensor, shape: &Tensor) -> Result<Shape> {
    let (places, slices) = (indices.shape(), updates.shape());
    if places.rank() == 0 {
        return Err(invalid!("Indices shape must have rank at least one. Found:{places}"));
    }
    if slices.rank() == 0 {
        return Err(invalid!("Updates shape must have rank at least one. Found:{slices}"));
    }
    let dims = to_shape(shape)?;
    if !fits_empty(dims.rank(), indices, updates) {
        return Err(invalid!("Indices and updates specified for empty output shape"));
    }
    let outer = places.rank() - 1;
    if slices.rank() < outer || places[..outer] != slices[..outer] {
        return Err(invalid!(
            "Dimensions [0,{outer}) of indices[shape={places}] must match dimensions [0,{outer}) of updates[shape={slices}]"
        ));
    }
    let depth = places[outer];
    if depth > dims.rank() || slices[outer..] != dims[depth..] {
        return Err(invalid!(
            "Dimensions [{depth},{}) of input[shape={dims}] must match dimensions [{outer},{}) of updates[shape={slices}]",
            dims.rank(),
            slices.rank()
        ));
    }
    if shape.shape().rank() != 1 {
        return Err(invalid!("Shape must be a vector"));
    }
    Ok(dims)
}

fn non_aliasing_add_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let ignore = ignores_bad_indices(setup)?;
    combining(setup, Combine::Add, |apply| {
        many(move |ctx, mut inputs| {
            let (mut output, indices, updates) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
            let targets = Targets::new(output.shape(), &indices, &updates, ignore)?;
            apply(ctx, &mut output, &targets, &updates)?;
            Ok(outputs![output])
        })
    })
}

fn assign(ctx: &Ctx<'_>, dst: &mut Tensor, targets: &Targets, updates: &Tensor) -> Result<()> {
    for_runs!(updates.dtype(), targets.width, (E, width) => {
        let cost = 4.0 + (width * size_of::<E>()) as f32 / 8.0;
        let (dst, updates) = (E::of_mut(dst)?, E::of(updates)?);
        rows::combine(ctx.pool(), cost, dst, width, &targets.starts, |to, i| {
            to.clone_from_slice(&updates[i * width..][..width])
        });
        Ok(())
    })
}

/// Strings are concatenated.
fn append(_: &Ctx<'_>, dst: &mut Tensor, targets: &Targets, updates: &Tensor) -> Result<()> {
    let (dst, width) = (dst.strings_mut()?, targets.width);
    if width == 0 {
        return Ok(());
    }
    for (&start, slice) in targets.starts.iter().zip(updates.strings()?.chunks_exact(width)) {
        if start == OUTSIDE {
            continue;
        }
        for (to, from) in dst[start * width..][..width].iter_mut().zip(slice) {
            *to = Bytes::from([&to[..], &from[..]].concat());
        }
    }
    Ok(())
}

fn merge<T: Element>(
    ctx: &Ctx<'_>,
    dst: &mut Tensor,
    targets: &Targets,
    updates: &Tensor,
    combine: impl Fn(T, T) -> T + Sync,
) -> Result<()> {
    let (dst, updates, width) = (dst.values_mut::<T>()?, updates.values::<T>()?, targets.width);
    rows::combine(ctx.pool(), targets.cost::<T>(), dst, width, &targets.starts, |to, i| {
        for (to, &from) in to.iter_mut().zip(&updates[i * width..][..width]) {
            *to = combine(*to, from);
        }
    });
    Ok(())
}

fn add<T: Element + Number>(ctx: &Ctx<'_>, dst: &mut Tensor, targets: &Targets, updates: &Tensor) -> Result<()> {
    merge::<T>(ctx, dst, targets, updates, T::add)
}

fn sub<T: Element + Number>(ctx: &Ctx<'_>, dst: &mut Tensor, targets: &Targets, updates: &Tensor) -> Result<()> {
    merge::<T>(ctx, dst, targets, updates, T::sub)
}

fn max<T: Element + Ordered>(ctx: &Ctx<'_>, dst: &mut Tensor, targets: &Targets, updates: &Tensor) -> Result<()> {
    merge::<T>(ctx, dst, targets, updates, T::larger)
}

fn min<T: Element + Ordered>(ctx: &Ctx<'_>, dst: &mut Tensor, targets: &Targets, updates: &Tensor) -> Result<()> {
    merge::<T>(ctx, dst, targets, updates, T::smaller)
}
