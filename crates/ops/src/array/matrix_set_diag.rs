//! MatrixSetDiag: matrices with some of their diagonals replaced.

use super::band::{Align, Band, Range};
use super::index::shape_of;
use super::matrix_diag::{align_of, matrix_diag_part, matrix_diag_part_band};
use super::nodes;
use super::units::Unit;
use graph::{AttrValue, Node, Output};
use math::parallel::split_rows_mut;
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, grads, many, outputs};
use status::{Result, invalid};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatrixSetDiag(input: T, diagonal: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "MatrixSetDiagV2(input: T, diagonal: T, k: int32) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Rule(band_rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "MatrixSetDiagV3(input: T, diagonal: T, k: int32) -> output: T; T: type; \
              align: {\"LEFT_RIGHT\", \"RIGHT_LEFT\", \"LEFT_LEFT\", \"RIGHT_RIGHT\"} = \"RIGHT_LEFT\"",
        shape: unchanged,
        grad: Grad::Rule(band_rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixSetDiag(input: T, diagonal: T) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN.removed_in(14, "Use MatrixSetDiag"),
    },
];

/// Matrices with their diagonals replaced.
pub fn matrix_set_diag(input: &Output, diagonal: &Output) -> Output {
    nodes::pair("MatrixSetDiag", input, diagonal)
}

/// Matrices with their diagonals `k` replaced (one number, or the lowest and the highest).
pub fn matrix_set_diag_band(input: &Output, diagonal: &Output, k: &Output, align: AttrValue) -> Output {
    input.scope().op("MatrixSetDiagV3").input(input).input(diagonal).input(k).attr("align", align).output()
}

/// Elements that were replaced have no gradient.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let zeros = nodes::zeros_like(&op.input(1));
    Ok(grads![matrix_set_diag(dy, &zeros), matrix_diag_part(dy)])
}

fn band_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (zeros, k) = (nodes::zeros_like(&op.input(1)), op.input(2));
    let kept = matrix_set_diag_band(dy, &zeros, &k, align_of(op));
    Ok(grads![kept, matrix_diag_part_band(dy, &k, align_of(op)), NoGradient])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let align = Align::of(setup)?;
    Ok(many(move |ctx, inputs| run(ctx, inputs, align)))
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs, align: Align) -> Result<Outputs> {
    let (mut input, diagonal) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let range = if inputs.len() > 2 { Range::of(&inputs.tensor(2)?)? } else { Range::MAIN };
    let band = checked_band(&input, &diagonal, range, align)?;
    if input.elements() > 0 && band.packed() > 0 {
        for_units!(input.dtype(), E => replace(ctx, E::of_mut(&mut input)?, E::of(&diagonal)?, &band));
    }
    Ok(outputs![input])
}

fn checked_band(input: &Tensor, diagonal: &Tensor, range: Range, align: Align) -> Result<Band> {
    let [batch @ .., rows, cols] = &input.shape()[..] else {
        return Err(invalid!("input must be at least 2-dim, received shape: {}", input.shape()));
    };
    if diagonal.shape().rank() == 0 {
        return Err(invalid!("diagonal must be at least 1-dim, received shape: {}", diagonal.shape()));
    }
    range.check(*rows, *cols, "")?;
    if range.count() > 1 && diagonal.shape().get(batch.len()) != Some(&(range.count() as usize)) {
        return Err(invalid!(
            "The number of diagonals provided in `diag` is not consistent with `lower_diag_index` and `upper_diag_index`"
        ));
    }
    let band = Band::of(*rows, *cols, range, align);
    let count = [range.count() as usize];
    let diagonals: &[usize] = if count[0] > 1 { &count } else { &[] };
    let expected = shape_of(&[batch, diagonals, &[band.longest]])?;
    if *diagonal.shape() != expected {
        return Err(invalid!(
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal to the \
             longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: {}\nDiagonal shape: {}\n\
             Expected diagonal shape: {expected}",
            input.shape(),
            diagonal.shape()
        ));
    }
    Ok(band)
}

fn replace<E: Unit>(ctx: &Ctx<'_>, matrices: &mut [E], packed: &[E], band: &Band) {
    let (size, width) = (band.rows * band.cols, band.packed());
    split_rows_mut(ctx.pool(), 4.0 + 2.0 * width as f32, matrices, size, |first, matrices| {
        for (number, matrix) in matrices.chunks_exact_mut(size).enumerate() {
            let packed = &packed[(first + number) * width..][..width];
            for diagonal in band.diagonals().filter(|diagonal| diagonal.len > 0) {
                let values = &packed[diagonal.row + diagonal.offset..][..diagonal.len];
                let places = matrix[diagonal.start..].iter_mut().step_by(diagonal.stride);
                places.zip(values).for_each(|(place, value)| *place = value.clone());
            }
        }
    });
}
