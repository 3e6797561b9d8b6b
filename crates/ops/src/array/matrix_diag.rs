//! MatrixDiag and MatrixDiagPart: sets and extracts diagonals of matrices.

use super::band::{Align, Band, Range};
use super::index::{integer, shape_of};
use super::matrix_set_diag::{matrix_set_diag, matrix_set_diag_band};
use super::nodes;
use super::units::Unit;
use graph::{AttrValue, Node, Output};
use math::parallel::split_rows_mut;
use op::shapes::unknown;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatrixDiag(diagonal: T) -> output: T; T: type",
        shape: diag_shape,
        grad: Grad::Rule(|_: &Node, dy: &Output| -> Result<Grads> { Ok(grads![matrix_diag_part(dy)]) }),
        kernel: diag_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MatrixDiagV2(diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T) -> output: T; T: type",
        shape: unknown,
        grad: Grad::Rule(diag_rule),
        kernel: diag_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MatrixDiagV3(diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T) -> output: T; T: type; \
              align: {\"LEFT_RIGHT\", \"RIGHT_LEFT\", \"LEFT_LEFT\", \"RIGHT_RIGHT\"} = \"RIGHT_LEFT\"",
        shape: unknown,
        grad: Grad::Rule(diag_rule),
        kernel: diag_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixDiag(diagonal: T) -> output: T; T: type",
        shape: diag_shape,
        grad: Grad::Unknown,
        kernel: diag_kernel,
        facts: PLAIN.removed_in(14, "Use MatrixDiag"),
    },
    Op {
        def: "MatrixDiagPart(input: T) -> diagonal: T; T: type",
        shape: part_shape,
        grad: Grad::Rule(part_rule),
        kernel: part_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MatrixDiagPartV2(input: T, k: int32, padding_value: T) -> diagonal: T; T: type",
        shape: unknown,
        grad: Grad::Rule(part_band_rule),
        kernel: part_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MatrixDiagPartV3(input: T, k: int32, padding_value: T) -> diagonal: T; T: type; \
              align: {\"LEFT_RIGHT\", \"RIGHT_LEFT\", \"LEFT_LEFT\", \"RIGHT_RIGHT\"} = \"RIGHT_LEFT\"",
        shape: unknown,
        grad: Grad::Rule(part_band_rule),
        kernel: part_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixDiagPart(input: T) -> diagonal: T; T: type",
        shape: part_shape,
        grad: Grad::Unknown,
        kernel: part_kernel,
        facts: PLAIN.removed_in(14, "Use MatrixDiagPart"),
    },
];

/// Square matrices with `diagonal` on their diagonals.
pub fn matrix_diag(diagonal: &Output) -> Output {
    nodes::one("MatrixDiag", diagonal)
}

/// The diagonals of matrices.
pub fn matrix_diag_part(input: &Output) -> Output {
    nodes::one("MatrixDiagPart", input)
}

/// The diagonals `k` of matrices (one number, or the lowest and the highest), packed into rows; `align` is the side to
/// align them to, such as `RIGHT_LEFT`.
pub fn matrix_diag_part_band(input: &Output, k: &Output, align: AttrValue) -> Output {
    let padding = input.like(0.0);
    input.scope().op("MatrixDiagPartV3").input(input).input(k).input(&padding).attr("align", align).output()
}

/// How an op of this family packs its diagonals.
pub(super) fn align_of(op: &Node) -> AttrValue {
    op.attr("align").unwrap_or(AttrValue::from("LEFT_LEFT"))
}

fn diag_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.inputs[0].dims() {
        Some(dims) => match dims.last() {
            Some(&last) => Ok(vec![PartialShape::new(&[dims, &[last]].concat())]),
            None => Err(invalid!("Shape must be at least rank 1 but is rank 0")),
        },
        None => Ok(vec![PartialShape::unknown()]),
    }
}

fn part_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let [batch @ .., rows, cols] = dims else {
        return Err(invalid!("Shape must be at least rank 2 but is rank {}", dims.len()));
    };
    let length = if *rows < 0 || *cols < 0 { -1 } else { *rows.min(cols) };
    Ok(vec![PartialShape::new(&[batch, &[length]].concat())])
}

fn diag_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let diagonal = matrix_diag_part_band(dy, &op.input(1), align_of(op));
    Ok(grads![diagonal, NoGradient, NoGradient, NoGradient, NoGradient])
}

fn part_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![matrix_set_diag(&nodes::zeros_like(&op.input(0)), dy)])
}

fn part_band_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let zeros = nodes::zeros_like(&op.input(0));
    Ok(grads![matrix_set_diag_band(&zeros, dy, &op.input(1), align_of(op)), NoGradient, NoGradient])
}

/// How the node packs its diagonals, if its matrices are of numbers.
fn numbers(setup: &Setup<'_>) -> Result<Align> {
    if setup.dtype("T")?.is_plain() { Align::of(setup) } else { Err(setup.no_kernel()) }
}

fn diag_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let align = numbers(setup)?;
    Ok(many(move |ctx, inputs| run_diag(ctx, inputs, align)).heavy())
}

fn run_diag(ctx: &Ctx<'_>, mut inputs: Inputs, align: Align) -> Result<Outputs> {
    let diagonal = inputs.tensor(0)?;
    let (mut range, mut rows, mut cols, mut padding) = (Range::MAIN, -1, -1, None);
    if inputs.len() > 1 {
        range = Range::of(&inputs.tensor(1)?)?;
        rows = integer(&inputs.tensor(2)?, || invalid!("num_rows must be a scalar"))?;
        cols = integer(&inputs.tensor(3)?, || invalid!("num_cols must be a scalar"))?;
        let value = inputs.tensor(4)?;
        if value.shape().rank() != 0 {
            return Err(invalid!("padding_value must be a scalar"));
        }
        padding = Some(value);
    }
    let band = matrix_band(&diagonal, range, rows, cols, align)?;
    let dims = diagonal.shape();
    let batch = &dims[..dims.rank() - if range.count() == 1 { 1 } else { 2 }];
    let mut output = Tensor::scratch_of(diagonal.dtype(), shape_of(&[batch, &[band.rows, band.cols]])?)?;
    for_units!(diagonal.dtype(), E => {
        let padding = E::first_or_zero(padding.as_ref())?;
        spread(ctx, E::of(&diagonal)?, E::of_mut(&mut output)?, &band, &padding);
    });
    Ok(outputs![output])
}

/// The size of the matrices that these diagonals make; unknown sizes are -1.
fn matrix_band(diagonal: &Tensor, range: Range, rows: i64, cols: i64, align: Align) -> Result<Band> {
    let dims = diagonal.shape();
    let Some(&longest) = dims.last() else {
        return Err(invalid!("diagonal must be at least 1-dim, received shape: {dims}"));
    };
    range.check_order()?;
    if range.count() != 1 && dims[dims.rank().saturating_sub(2)] as i64 != range.count()
        || range.count() != 1 && dims.rank() < 2
    {
        return Err(invalid!(
            "The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index range."
        ));
    }
    let least_rows = longest as i64 - range.upper.min(0);
    let least_cols = longest as i64 + range.lower.max(0);
    if rows != -1 && rows < least_rows {
        return Err(invalid!("The number of rows is too small."));
    }
    if cols != -1 && cols < least_cols {
        return Err(invalid!("The number of columns is too small."));
    }
    let (rows, cols) = match (rows, cols) {
        (-1, -1) => (least_rows.max(least_cols), least_rows.max(least_cols)),
        (-1, cols) => (least_rows, cols),
        (rows, -1) => (rows, least_cols),
        given => given,
    };
    if rows != least_rows && cols != least_cols {
        return Err(invalid!(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal."
        ));
    }
    Ok(Band { rows: rows as usize, cols: cols as usize, range, longest, align })
}

fn spread<E: Unit>(ctx: &Ctx<'_>, packed: &[E], output: &mut [E], band: &Band, padding: &E) {
    let size = band.rows * band.cols;
    if output.is_empty() {
        return;
    }
    let cost = (size * size_of::<E>()) as f32 / 16.0 + 2.0 * band.packed() as f32;
    split_rows_mut(ctx.pool(), cost, output, size, |first, matrices| {
        for (number, matrix) in matrices.chunks_exact_mut(size).enumerate() {
            matrix.fill(padding.clone());
            let packed = &packed[(first + number) * band.packed()..][..band.packed()];
            for diagonal in band.diagonals().filter(|diagonal| diagonal.len > 0) {
                let values = &packed[diagonal.row + diagonal.offset..][..diagonal.len];
                let places = matrix[diagonal.start..].iter_mut().step_by(diagonal.stride);
                places.zip(values).for_each(|(place, value)| *place = value.clone());
            }
        }
    });
}

fn part_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let align = numbers(setup)?;
    Ok(many(move |ctx, inputs| run_part(ctx, inputs, align)))
}

fn run_part(ctx: &Ctx<'_>, mut inputs: Inputs, align: Align) -> Result<Outputs> {
    let input = inputs.tensor(0)?;
    let (mut range, mut padding) = (Range::MAIN, None);
    if inputs.len() > 1 {
        range = Range::of(&inputs.tensor(1)?)?;
        let value = inputs.tensor(2)?;
        if value.elements() != 1 {
            return Err(invalid!("Padding must be scalar."));
        }
        padding = Some(value);
    }
    let [batch @ .., rows, cols] = &input.shape()[..] else {
        return Err(invalid!("input must be at least 2-dim, received shape: {}", input.shape()));
    };
    range.check(*rows, *cols, ".")?;
    let band = Band::of(*rows, *cols, range, align);
    let count = [range.count() as usize];
    let diagonals: &[usize] = if count[0] > 1 { &count } else { &[] };
    let mut output = Tensor::scratch_of(input.dtype(), shape_of(&[batch, diagonals, &[band.longest]])?)?;
    for_units!(input.dtype(), E => {
        let padding = E::first_or_zero(padding.as_ref())?;
        collect(ctx, E::of(&input)?, E::of_mut(&mut output)?, &band, &padding);
    });
    Ok(outputs![output])
}

fn collect<E: Unit>(ctx: &Ctx<'_>, input: &[E], output: &mut [E], band: &Band, padding: &E) {
    let (size, packed) = (band.rows * band.cols, band.packed());
    if output.is_empty() {
        return;
    }
    split_rows_mut(ctx.pool(), 4.0 + 2.0 * packed as f32, output, packed, |first, parts| {
        for (number, part) in parts.chunks_exact_mut(packed).enumerate() {
            let matrix = &input[(first + number) * size..][..size];
            for diagonal in band.diagonals() {
                let row = &mut part[diagonal.row..][..band.longest];
                row[..diagonal.offset].fill(padding.clone());
                row[diagonal.offset + diagonal.len..].fill(padding.clone());
                if diagonal.len > 0 {
                    let places = matrix[diagonal.start..].iter().step_by(diagonal.stride);
                    let row = &mut row[diagonal.offset..][..diagonal.len];
                    row.iter_mut().zip(places).for_each(|(to, value)| *to = value.clone());
                }
            }
        }
    });
}
