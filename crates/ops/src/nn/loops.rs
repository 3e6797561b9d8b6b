//! Loops over whole tensors that write in place if the tensor is not shared.

use math::elementwise;
use op::Ctx;
use status::{Result, invalid};
use tensor::{Element, Tensor};

/// Applies `f` to every element.
pub(crate) fn map<T: Element>(
    ctx: &Ctx<'_>,
    cost: f32,
    mut x: Tensor,
    f: impl Fn(T) -> T + Copy + Send + Sync,
) -> Result<Tensor> {
    if x.is_unique() {
        elementwise::map_in_place(ctx.pool(), cost, x.values_mut::<T>()?, f);
        return Ok(x);
    }
    let mut y = Tensor::scratch_of(x.dtype(), x.shape())?;
    elementwise::map(ctx.pool(), cost, x.values::<T>()?, y.values_mut::<T>()?, f);
    Ok(y)
}

/// `f(x, y)` for the pairs of two tensors of one shape.
pub(crate) fn zip<T: Element>(
    ctx: &Ctx<'_>,
    cost: f32,
    mut x: Tensor,
    mut y: Tensor,
    f: impl Fn(T, T) -> T + Copy + Send + Sync,
) -> Result<Tensor> {
    if x.is_unique() {
        elementwise::zip_in_place_left(ctx.pool(), cost, x.values_mut::<T>()?, y.values::<T>()?, f);
        return Ok(x);
    }
    if y.is_unique() {
        elementwise::zip_in_place_right(ctx.pool(), cost, x.values::<T>()?, y.values_mut::<T>()?, f);
        return Ok(y);
    }
    let mut z = Tensor::scratch_of(x.dtype(), x.shape())?;
    elementwise::zip(ctx.pool(), cost, x.values::<T>()?, y.values::<T>()?, z.values_mut::<T>()?, f);
    Ok(z)
}

/// The name and op of a node, for its errors.
#[derive(Clone)]
pub(crate) struct Place {
    name: String,
    op: String,
}

impl Place {
    /// Of the node that is being made ready.
    pub fn of(setup: &op::Setup<'_>) -> Place {
        Place { name: setup.name().to_string(), op: setup.def().op.clone() }
    }

    /// An error unless both inputs have one shape.
    pub fn same_shape(&self, x: &Tensor, y: &Tensor) -> Result<()> {
        if x.shape() == y.shape() {
            return Ok(());
        }
        Err(invalid!(
            "Inputs to operation {} of type {} must have the same size and shape.  Input 0: {} != input 1: {}",
            self.name,
            self.op,
            x.shape(),
            y.shape()
        ))
    }
}
