//! MatrixBandPart: matrices with everything outside a band around the diagonal set to zero.

use super::index::integer;
use super::nodes;
use super::units::Unit;
use graph::{Node, Output};
use math::parallel::split_rows_mut;
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex) -> band: T; T: type; \
              Tindex: {int32, int64} = int64",
        shape: unchanged,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixBandPart(input: T, num_lower: int64, num_upper: int64) -> band: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN.removed_in(14, "Use MatrixBandPart"),
    },
];

/// Matrices that keep `num_lower` diagonals below the main one and `num_upper` above it; a negative number keeps all.
pub fn matrix_band_part(input: &Output, num_lower: i64, num_upper: i64) -> Output {
    let end = |count: i64| nodes::constant(input.scope(), Tensor::scalar(count));
    build(input, &end(num_lower), &end(num_upper))
}

fn build(input: &Output, num_lower: &Output, num_upper: &Output) -> Output {
    input.scope().op("MatrixBandPart").input(input).input(num_lower).input(num_upper).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![build(dy, &op.input(1), &op.input(2)), NoGradient, NoGradient])
}

fn kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(run))
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<Outputs> {
    let (mut input, lower, upper) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let [.., rows, cols] = input.shape()[..] else {
        return Err(invalid!("input must be at least 2-dim, received shape: {}", input.shape()));
    };
    let below = integer(&lower, || invalid!("num_lower must be scalar, got shape {}", lower.shape()))?;
    if below > rows as i64 {
        return Err(invalid!("num_lower must be negative or less or equal to number of rows ({rows}) got: {below}"));
    }
    let above = integer(&upper, || invalid!("num_upper must be scalar, got shape {}", upper.shape()))?;
    if above > cols as i64 {
        return Err(invalid!("num_upper must be negative or less or equal to number of columns ({cols}) got: {above}"));
    }
    if input.elements() == 0 {
        return Ok(outputs![input]);
    }
    let kept = |count: i64| usize::try_from(count).unwrap_or(usize::MAX);
    match input.dtype() {
        DType::STRING | DType::RESOURCE | DType::VARIANT => {
            return Err(invalid!("MatrixBandPart is not there for elements of type {}", input.dtype()));
        }
        dtype => for_units!(dtype, E => clear(ctx, E::of_mut(&mut input)?, (rows, cols), kept(below), kept(above))),
    }
    Ok(outputs![input])
}

/// Sets all elements outside the band to zero.
fn clear<E: Unit>(ctx: &Ctx<'_>, values: &mut [E], (rows, cols): (usize, usize), below: usize, above: usize) {
    let cost = 2.0 + (cols * size_of::<E>()) as f32 / 32.0;
    split_rows_mut(ctx.pool(), cost, values, cols, |first, part| {
        for (number, row) in part.chunks_exact_mut(cols).enumerate() {
            let place = (first + number) % rows;
            row[..place.saturating_sub(below).min(cols)].fill(E::default());
            row[place.saturating_add(above).saturating_add(1).min(cols)..].fill(E::default());
        }
    });
}
