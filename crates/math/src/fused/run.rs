//! Runs a program over arrays, tile by tile.

use std::ops::Range;

use super::Program;
use super::op::{Tile, select};
use super::program::{Place, Step};
use crate::Pool;
use crate::parallel::{Shared, split};

/// Elements of a tile: a few tiles fit the first cache.
const TILE: usize = 1024;

/// An operand of a run over `rows` times `width` elements.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// A value for every element.
    Full(&'a [f32]),
    /// One value for all.
    Scalar(f32),
    /// `width` values, the same for every row.
    Row(&'a [f32]),
    /// `rows` values, one for all elements of a row.
    Column(&'a [f32]),
    /// A value for every element, which stands in the output of this number before the run.
    InPlace(usize),
}

/// Runs `program` on `rows * width` elements.
pub fn run(pool: &Pool, program: &Program, rows: usize, width: usize, inputs: &[Operand], outputs: &mut [&mut [f32]]) {
    check(program, rows, width, inputs, outputs);
    if rows * width == 0 {
        return;
    }
    let flat = !inputs.iter().any(|operand| matches!(operand, Operand::Row(_) | Operand::Column(_)));
    let grid = if flat { Grid::new(1, rows * width) } else { Grid::new(rows, width) };
    let repeated = repeat_rows(&grid, inputs);
    let outputs: Vec<Shared<f32>> = outputs.iter_mut().map(|output| Shared::new(output)).collect();
    split(pool, grid.tiles(), program.cost() * grid.tile_len() as f32, 1, |tiles| {
        let mut scratch = Scratch::new(program, inputs.len());
        for tile in tiles {
            run_tile(program, &grid, tile, inputs, &repeated, &outputs, &mut scratch);
        }
    });
}

fn check(program: &Program, rows: usize, width: usize, inputs: &[Operand], outputs: &[&mut [f32]]) {
    assert_eq!(inputs.len(), program.inputs(), "fused: number of inputs");
    assert_eq!(outputs.len(), program.outputs(), "fused: number of outputs");
    for (i, output) in outputs.iter().enumerate() {
        assert_eq!(output.len(), rows * width, "fused: length of output {i}");
    }
    for (i, operand) in inputs.iter().enumerate() {
        match *operand {
            Operand::Full(values) => assert_eq!(values.len(), rows * width, "fused: length of input {i}"),
            Operand::Row(values) => assert_eq!(values.len(), width, "fused: length of row {i}"),
            Operand::Column(values) => assert_eq!(values.len(), rows, "fused: length of column {i}"),
            Operand::InPlace(output) => assert!(output < outputs.len(), "fused: output {output} in place"),
            Operand::Scalar(_) => {}
        }
    }
}

/// How the elements are cut into tiles: parts of a row, or several whole rows.
struct Grid {
    rows: usize,
    width: usize,
    rows_in_tile: usize,
    tiles_in_row: usize,
}

impl Grid {
    fn new(rows: usize, width: usize) -> Grid {
        Grid { rows, width, rows_in_tile: (TILE / width).max(1), tiles_in_row: width.div_ceil(TILE) }
    }

    fn tiles(&self) -> usize {
        self.rows.div_ceil(self.rows_in_tile) * self.tiles_in_row
    }

    fn tile_len(&self) -> usize {
        (self.rows_in_tile * self.width).min(TILE)
    }

    /// The rows and the columns of a tile.
    fn tile(&self, index: usize) -> (Range<usize>, Range<usize>) {
        let (row, part) = (index / self.tiles_in_row * self.rows_in_tile, index % self.tiles_in_row);
        let columns = part * TILE..self.width.min((part + 1) * TILE);
        (row..self.rows.min(row + self.rows_in_tile), columns)
    }
}

/// Rows written out as often as a tile has them; empty for other operands and for rows longer than a tile.
fn repeat_rows(grid: &Grid, inputs: &[Operand]) -> Vec<Vec<f32>> {
    let repeated = |operand: &Operand| match *operand {
        Operand::Row(values) if grid.tiles_in_row == 1 => values.repeat(grid.rows_in_tile.min(grid.rows)),
        _ => Vec::new(),
    };
    inputs.iter().map(repeated).collect()
}

/// What one thread needs beside the arrays.
struct Scratch {
    slots: Vec<Vec<f32>>,
    /// Columns written out for one tile, for each input.
    columns: Vec<Vec<f32>>,
}

impl Scratch {
    fn new(program: &Program, inputs: usize) -> Scratch {
        Scratch { slots: vec![vec![0.0; TILE]; program.slots()], columns: vec![Vec::new(); inputs] }
    }
}

fn run_tile(
    program: &Program,
    grid: &Grid,
    tile: usize,
    inputs: &[Operand],
    repeated: &[Vec<f32>],
    outputs: &[Shared<f32>],
    scratch: &mut Scratch,
) {
    let (rows, columns) = grid.tile(tile);
    let len = rows.len() * columns.len();
    let range = rows.start * grid.width + columns.start..rows.start * grid.width + columns.start + len;
    write_out_columns(grid, &rows, inputs, &mut scratch.columns);
    let input = |i: usize| match inputs[i] {
        Operand::Full(values) => Tile::Many(&values[range.clone()]),
        Operand::Scalar(value) => Tile::One(value),
        Operand::Row(values) if grid.tiles_in_row > 1 => Tile::Many(&values[columns.clone()]),
        Operand::Row(_) => Tile::Many(&repeated[i][..len]),
        Operand::Column(values) if rows.len() == 1 => Tile::One(values[rows.start]),
        Operand::Column(_) => Tile::Many(&scratch.columns[i][..len]),
        // SAFETY: tiles are disjoint, each is worked on by one thread, and outputs are written after the last step.
        Operand::InPlace(output) => Tile::Many(unsafe { outputs[output].read(range.clone()) }),
    };
    for step in program.steps() {
        apply(step, len, &input, &mut scratch.slots);
    }
    write_outputs(program, len, &input, &scratch.slots, outputs, &range);
}

fn write_out_columns(grid: &Grid, rows: &Range<usize>, inputs: &[Operand], columns: &mut [Vec<f32>]) {
    if rows.len() == 1 {
        return;
    }
    for (operand, column) in inputs.iter().zip(columns) {
        if let Operand::Column(values) = operand {
            column.clear();
            for &value in &values[rows.clone()] {
                column.resize(column.len() + grid.width, value);
            }
        }
    }
}

fn apply<'a>(step: &Step, len: usize, input: &impl Fn(usize) -> Tile<'a>, slots: &mut [Vec<f32>]) {
    let (Step::Unary(_, slot, _) | Step::Binary(_, slot, ..) | Step::Select(slot, ..)) = *step;
    // No step reads the slot it writes, so it can be taken out meanwhile.
    let mut out = std::mem::take(&mut slots[slot]);
    let dst = &mut out[..len];
    let at = |place: Place| match place {
        Place::Input(i) => input(i),
        Place::Slot(i) => Tile::Many(&slots[i][..len]),
    };
    match *step {
        Step::Unary(op, _, a) => op.apply(at(a), dst),
        Step::Binary(op, _, a, b) => op.apply(at(a), at(b), dst),
        Step::Select(_, cond, a, b) => select(at(cond), at(a), at(b), dst),
    }
    slots[slot] = out;
}

fn write_outputs<'a>(
    program: &Program,
    len: usize,
    input: &impl Fn(usize) -> Tile<'a>,
    slots: &[Vec<f32>],
    outputs: &[Shared<f32>],
    range: &Range<usize>,
) {
    // Copies of inputs first: one may stand in an output that is about to be written.
    let copies: Vec<Option<Vec<f32>>> = program
        .output_places()
        .iter()
        .map(|place| match *place {
            Place::Input(i) => Some(written_out(input(i), len)),
            Place::Slot(_) => None,
        })
        .collect();
    for ((place, copy), output) in program.output_places().iter().zip(copies).zip(outputs) {
        // SAFETY: tiles are disjoint, each is worked on by one thread, and no input is read any more.
        let dst = unsafe { output.range(range.clone()) };
        match (*place, copy) {
            (Place::Slot(slot), _) => dst.copy_from_slice(&slots[slot][..len]),
            (_, Some(copy)) => dst.copy_from_slice(&copy),
            (Place::Input(_), None) => {}
        }
    }
}

fn written_out(tile: Tile, len: usize) -> Vec<f32> {
    match tile {
        Tile::Many(values) => values.to_vec(),
        Tile::One(value) => vec![value; len],
    }
}
