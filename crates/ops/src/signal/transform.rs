//! Fourier transforms of tensors along their last axes, shared by the kernels of all ranks.

use crate::array::index::{product, shape_of};
use math::fft::{Direction, Plans, Real, Rows, along, fit, forward_rows, inverse_rows};
use op::Ctx;
use status::{Result, invalid};
use tensor::{Complex, Element, Tensor};

/// A real number that tensors hold, and whose complex numbers they hold too.
pub(super) trait Number: Real + Element {}

impl Number for f32 {}
impl Number for f64 {}

/// The sizes of a transform: of all axes of the input, and of those along which it is transformed.
pub(super) struct Sizes<'a> {
    pub input: &'a [usize],
    pub lengths: &'a [usize],
}

impl Sizes<'_> {
    fn batch(&self) -> &[usize] {
        &self.input[..self.input.len() - self.lengths.len()]
    }

    fn last(&self) -> usize {
        self.lengths.last().copied().unwrap_or(1)
    }

    /// The dimensions of the input, cropped or padded, with rows of `width`.
    fn dims(&self, width: usize) -> Result<Vec<usize>> {
        let outer = &self.lengths[..self.lengths.len() - 1];
        Ok(shape_of(&[self.batch(), outer, &[width]])?.to_vec())
    }

    /// The factor of an inverse transform.
    fn scale(&self, direction: Direction) -> f64 {
        match direction {
            Direction::Forward => 1.0,
            Direction::Inverse => 1.0 / self.lengths.iter().map(|&len| len as f64).product::<f64>(),
        }
    }
}

/// From complex numbers to as many complex numbers.
pub(super) fn complex<T: Number>(
    ctx: &Ctx<'_>,
    plans: &Plans<T>,
    direction: Direction,
    input: Tensor,
    lengths: &[usize],
) -> Result<Tensor>
where
    Complex<T>: Element,
{
    let shape = input.shape().clone();
    let sizes = Sizes { input: &shape, lengths };
    let mut tensor = fitted::<T>(ctx, input, &sizes.dims(sizes.last())?)?;
    let batch = sizes.batch().len();
    outer_axes(ctx, plans, direction, &mut tensor, batch..shape.rank(), sizes.scale(direction))?;
    Ok(tensor)
}

/// From real numbers to the first halves of their frequencies.
pub(super) fn forward<T: Number>(ctx: &Ctx<'_>, plans: &Plans<T>, input: &Tensor, lengths: &[usize]) -> Result<Tensor>
where
    Complex<T>: Element,
{
    let sizes = Sizes { input: input.shape(), lengths };
    let len = sizes.last();
    let dims = sizes.dims(if len == 0 { 0 } else { len / 2 + 1 })?;
    let width = input.shape().last().copied().unwrap_or(0);
    let mut tensor = Tensor::zeros::<Complex<T>>(&*dims)?;
    if input.elements() == 0 || tensor.elements() == 0 {
        return Ok(tensor);
    }
    let rows = Rows::new(input.shape(), &dims);
    forward_rows(ctx.pool(), plans, &rows, [width, len], input.values()?, tensor.values_mut()?);
    outer_axes(ctx, plans, Direction::Forward, &mut tensor, sizes.batch().len()..dims.len() - 1, 1.0)?;
    Ok(tensor)
}

/// From the first halves of frequencies to real numbers.
pub(super) fn inverse<T: Number>(ctx: &Ctx<'_>, plans: &Plans<T>, input: Tensor, lengths: &[usize]) -> Result<Tensor>
where
    Complex<T>: Element,
{
    let shape = input.shape().clone();
    let sizes = Sizes { input: &shape, lengths };
    let len = sizes.last();
    let mut tensor = Tensor::zeros::<T>(&*sizes.dims(len)?)?;
    if input.elements() == 0 || tensor.elements() == 0 {
        return Ok(tensor);
    }
    let (batch, rank) = (sizes.batch().len(), shape.rank());
    let mut halves = input;
    if lengths.len() > 1 {
        halves = fitted::<T>(ctx, halves, &sizes.dims(len / 2 + 1)?)?;
        outer_axes(ctx, plans, Direction::Inverse, &mut halves, batch..rank - 1, 1.0)?;
    }
    let width = halves.shape().last().copied().unwrap_or(0);
    let scale = sizes.scale(Direction::Inverse);
    inverse_rows(ctx.pool(), plans, [width, len], scale, halves.values()?, tensor.values_mut()?);
    Ok(tensor)
}

/// The tensor cropped or padded with zeros.
fn fitted<T: Number>(ctx: &Ctx<'_>, input: Tensor, dims: &[usize]) -> Result<Tensor>
where
    Complex<T>: Element,
{
    if input.shape().dims() == dims {
        return Ok(input);
    }
    let width = |dims: &[usize]| dims.last().copied().unwrap_or(0);
    let mut tensor = Tensor::scratch::<Complex<T>>(dims)?;
    let rows = Rows::new(input.shape(), dims);
    let widths = [width(input.shape()), width(dims)];
    fit(ctx.pool(), &rows, widths, input.values::<Complex<T>>()?, tensor.values_mut()?);
    Ok(tensor)
}

/// Transforms along some axes, the innermost first, and multiplies by `scale`.
fn outer_axes<T: Number>(
    ctx: &Ctx<'_>,
    plans: &Plans<T>,
    direction: Direction,
    tensor: &mut Tensor,
    axes: std::ops::Range<usize>,
    scale: f64,
) -> Result<()>
where
    Complex<T>: Element,
{
    let dims = tensor.shape().clone();
    if dims.contains(&0) {
        return Ok(());
    }
    let values = tensor.values_mut::<Complex<T>>()?;
    let first = axes.start;
    for axis in axes.rev() {
        let scale = if axis == first { scale } else { 1.0 };
        along(ctx.pool(), plans, direction, values, [dims[axis], product(&dims[axis + 1..])], scale);
    }
    Ok(())
}

/// The lengths in input `fft_length`, one for each of the last axes of `input`, and all of it there to be transformed:
/// frequencies have `len / 2 + 1` numbers in a row, as `halved` says.
pub(super) fn real_lengths(input: &[usize], fft_length: &Tensor, rank: usize, halved: bool) -> Result<Vec<usize>> {
    let lengths = lengths(fft_length)?;
    for (i, &len) in lengths.iter().enumerate() {
        let least = if halved && i + 1 == rank { len / 2 + 1 } else { len };
        let axis = input.len() - rank + i;
        if input[axis] != 0 && input[axis] < least {
            return Err(invalid!(
                "Input dimension {axis} must have length of at least {least} but got: {}",
                input[axis]
            ));
        }
    }
    Ok(lengths)
}

/// The numbers of input `fft_length`, none negative.
pub(super) fn lengths(fft_length: &Tensor) -> Result<Vec<usize>> {
    let each = |(i, &len): (usize, &i32)| {
        usize::try_from(len).map_err(|_| invalid!("fft_length[{i}] must >= 0, but got: {len}"))
    };
    fft_length.values::<i32>()?.iter().enumerate().map(each).collect()
}

/// Refuses an input of too low a rank.
pub(super) fn check_rank(input: &Tensor, rank: usize) -> Result<()> {
    match input.shape().rank() >= rank {
        true => Ok(()),
        false => Err(invalid!("Input must have rank of at least {rank} but got: {}", input.shape())),
    }
}
