//! Elementwise kernels of one tensor, or of two that are broadcast against each other.

use super::core_types::through;
use math::elementwise::{self, Broadcast};
use math::lanes::{Map, Meeting, Pairs};
use op::{Ctx, Kernel, Setup, binary, unary};
use status::{Result, invalid};
use tensor::{DType, Element, Shape, Tensor};

/// A kernel that maps elements to elements of the same type, in place where it can.
pub(crate) fn mapping<T: Element>(map: Map<T, T>) -> Kernel {
    unary(move |ctx, x| run_map(ctx, &map, x))
}

/// A kernel that calls a function for each element: for functions that take long anyway.
pub(crate) fn mapping_by<T: Element>(function: fn(T) -> T) -> Kernel {
    unary(move |ctx, mut x| {
        elementwise::map_in_place(ctx.pool(), elementwise::cost::SCALAR, x.values_mut()?, function);
        Ok(x)
    })
}

/// The kernel of a function of floating-point numbers.
pub(crate) fn real_kernel(setup: &Setup<'_>, single: Map<f32, f32>, double: Map<f64, f64>) -> Result<Kernel> {
    through(setup, &[DType::F32, DType::F64], true, &|core| match core {
        DType::F64 => Ok(mapping(double)),
        _ => Ok(mapping(single)),
    })
}

/// A kernel that maps elements to elements of another type.
pub(crate) fn mapping_to<T: Element, U: Element>(map: Map<T, U>) -> Kernel {
    unary(move |ctx, x| {
        let mut y = Tensor::scratch::<U>(x.shape())?;
        map.apply(ctx.pool(), x.values()?, y.values_mut()?);
        Ok(y)
    })
}

/// A kernel of two broadcast operands, in place where it can.
pub(crate) fn pairing<T: Element>(pairs: Pairs<T, T, T>) -> Kernel {
    binary(move |ctx, x, y| run_pairs(ctx, &pairs, x, y))
}

/// As `pairing`, where `check` sees both operands first, unless the result is empty.
pub(crate) fn pairing_checked<T: Element>(pairs: Pairs<T, T, T>, check: fn(&[T], &[T]) -> Result<()>) -> Kernel {
    binary(move |ctx, x, y| {
        if x.elements() > 0 && y.elements() > 0 {
            check(x.values()?, y.values()?)?;
        }
        run_pairs(ctx, &pairs, x, y)
    })
}

/// A kernel of two broadcast operands with a result of another type.
pub(crate) fn pairing_to<T: Element, U: Element>(pairs: Pairs<T, T, U>) -> Kernel {
    binary(move |ctx, x, y| run_pairs_to(ctx, &pairs, x, y))
}

/// A kernel of two operands with as many elements: the derivatives that take an output and its gradient.
pub(crate) fn pairing_alike<T: Element>(pairs: Pairs<T, T, T>) -> Kernel {
    binary(move |ctx, x, y| {
        if x.elements() != y.elements() {
            return Err(invalid!(
                "The two arguments to a cwise op must have same number of elements, got {} and {}",
                x.elements(),
                y.elements()
            ));
        }
        let shape = x.shape().clone();
        run_pairs(ctx, &pairs, x, y.reshaped(shape)?)
    })
}

/// Maps all elements, in place if the tensor is not shared.
pub(crate) fn run_map<T: Element>(ctx: &Ctx<'_>, map: &Map<T, T>, mut x: Tensor) -> Result<Tensor> {
    if x.is_unique() {
        map.apply_in_place(ctx.pool(), x.values_mut()?);
        return Ok(x);
    }
    let mut y = Tensor::scratch_of(x.dtype(), x.shape())?;
    map.apply(ctx.pool(), x.values()?, y.values_mut()?);
    Ok(y)
}

/// Combines all pairs of elements, in place of an operand that is not shared and has the size of the result.
pub(crate) fn run_pairs<T: Element>(ctx: &Ctx<'_>, pairs: &Pairs<T, T, T>, mut x: Tensor, y: Tensor) -> Result<Tensor> {
    // The everyday case, above all single numbers, takes no detour.
    if x.shape() == y.shape() && x.is_unique() {
        pairs.apply_left(ctx.pool(), Meeting::Flat, x.values_mut()?, y.values()?);
        return Ok(x);
    }
    run_pairs_apart(ctx, pairs, x, y)
}

fn run_pairs_apart<T: Element>(ctx: &Ctx<'_>, pairs: &Pairs<T, T, T>, mut x: Tensor, mut y: Tensor) -> Result<Tensor> {
    let plan = Plan::new(x.shape(), y.shape())?;
    let len = plan.len;
    if x.elements() == len && len > 0 && x.is_unique() {
        pairs.apply_left(ctx.pool(), plan.meeting(), x.values_mut()?, y.values()?);
        return x.reshaped(plan.shape);
    }
    if y.elements() == len && len > 0 && y.is_unique() {
        pairs.apply_right(ctx.pool(), plan.meeting(), x.values()?, y.values_mut()?);
        return y.reshaped(plan.shape);
    }
    let mut out = Tensor::scratch_of(x.dtype(), &plan.shape)?;
    if len > 0 {
        pairs.apply(ctx.pool(), plan.meeting(), x.values()?, y.values()?, out.values_mut()?);
    }
    Ok(out)
}

/// Pairs all elements into a result of another type.
pub(crate) fn run_pairs_to<T: Element, U: Element>(
    ctx: &Ctx<'_>,
    pairs: &Pairs<T, T, U>,
    x: Tensor,
    y: Tensor,
) -> Result<Tensor> {
    if x.shape() == y.shape() {
        let mut out = Tensor::scratch::<U>(x.shape())?;
        pairs.apply(ctx.pool(), Meeting::Flat, x.values()?, y.values()?, out.values_mut()?);
        return Ok(out);
    }
    let plan = Plan::new(x.shape(), y.shape())?;
    let mut out = Tensor::scratch::<U>(&plan.shape)?;
    if plan.len > 0 {
        pairs.apply(ctx.pool(), plan.meeting(), x.values()?, y.values()?, out.values_mut()?);
    }
    Ok(out)
}

/// How two shapes are broadcast, and the shape of the result.
struct Plan {
    shape: Shape,
    len: usize,
    /// None where both operands are as long as the result, or single numbers.
    broadcast: Option<Broadcast>,
}

impl Plan {
    fn new(x: &Shape, y: &Shape) -> Result<Plan> {
        let shape = broadcast_shape(x, y)?;
        let len = shape.checked_elements()?;
        let flat = |shape: &Shape| matches!(shape.elements(), 1) || shape.elements() == len;
        // An empty result needs no broadcasting; dimensions of empty operands may be too large to multiply.
        if len == 0 || (flat(x) && flat(y)) {
            return Ok(Plan { shape, len, broadcast: None });
        }
        let broadcast = Broadcast::new(x, y).ok_or_else(|| incompatible(x, y))?;
        Ok(Plan { shape, len, broadcast: Some(broadcast) })
    }

    fn meeting(&self) -> Meeting<'_> {
        match &self.broadcast {
            None => Meeting::Flat,
            Some(broadcast) => Meeting::Broadcast(broadcast),
        }
    }
}

/// The shape that two shapes broadcast to.
pub(crate) fn broadcast_shape(x: &Shape, y: &Shape) -> Result<Shape> {
    let (long, short) = if x.rank() >= y.rank() { (x, y) } else { (y, x) };
    let mut shape = long.clone();
    let skipped = long.rank() - short.rank();
    for (dim, &other) in shape.dims_mut()[skipped..].iter_mut().zip(short.iter()) {
        match (*dim, other) {
            (_, 1) => {}
            (1, other) => *dim = other,
            (dim, other) if dim == other => {}
            _ => return Err(incompatible(x, y)),
        }
    }
    Ok(shape)
}

fn incompatible(x: &Shape, y: &Shape) -> status::Error {
    invalid!("Incompatible shapes: {x} vs. {y}")
}
