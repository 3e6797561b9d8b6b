//! BandedTriangularSolve: equations with triangular matrices of which only some diagonals are given.

use super::batch::{Matrices, Number, gathered, map, matrix_dims};
use super::nodes::{product, sum_to_batch};
use super::triangular_solve::repeated;
use crate::array::index::shape_of;
use crate::array::matrix_diag::matrix_diag_part_band;
use crate::array::nodes as array_nodes;
use graph::{AttrValue, Node, Output};
use op::shapes::broadcast_shapes;
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "BandedTriangularSolve(matrix: T, rhs: T) -> output: T; lower: bool = true; adjoint: bool = false; \
          T: {double, float, half, complex64, complex128}",
    shape: solve_shape,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// The `x` with `matrix x = rhs`; the rows of `matrix` are the diagonals of a triangular matrix.
pub fn banded_triangular_solve(matrix: &Output, rhs: &Output, lower: bool, adjoint: bool) -> Output {
    let builder = matrix.scope().op("BandedTriangularSolve").input(matrix).input(rhs);
    builder.attr("lower", lower).attr("adjoint", adjoint).output()
}

fn solve_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some((left, _, size)), Some((right, _, width))) =
        (matrix_dims(&query.inputs[0])?, matrix_dims(&query.inputs[1])?)
    else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let batch = broadcast_shapes(&PartialShape::new(left), &PartialShape::new(right))?;
    Ok(vec![PartialShape::new(&[batch.dims().unwrap_or_default(), &[size, width]].concat())])
}

/// As for full matrices; of the gradient of the matrix, the diagonals count.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [a, b] = op.inputs()?;
    let (x, lower, adjoint) = (op.output(0), op.attr_bool("lower")?, op.attr_bool("adjoint")?);
    let db = banded_triangular_solve(&a, dy, lower, !adjoint);
    let da = -if adjoint { product(&x, &db, false, true) } else { product(&db, &x, false, true) };
    let da = matrix_diag_part_band(&da, &diagonals(&a, lower), AttrValue::from("LEFT_RIGHT"));
    let batch = |x: &Output| x.shape().known().map(|shape| shape[..shape.rank().saturating_sub(2)].to_vec());
    if batch(&a).is_some() && batch(&a) == batch(&b) {
        return Ok(grads![da, db]);
    }
    Ok(grads![sum_to_batch(&da, &a, &b), sum_to_batch(&db, &b, &a)])
}

/// The lowest and the highest diagonal.
fn diagonals(matrix: &Output, lower: bool) -> Output {
    let bands = array_nodes::part(&array_nodes::shape(matrix, DType::I32), -2, Some(-1));
    let bands = crate::array::reshape::reshape_to(&bands, &[]);
    let (one, zero) = (bands.like(1.0), bands.like(0.0));
    let pair = if lower { [one - bands, zero] } else { [zero, bands - one] };
    crate::array::pack::pack(matrix.scope(), &pair, 0)
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (lower, adjoint) = (setup.bool("lower")?, setup.bool("adjoint")?);
    if setup.dtype("T")? == DType::F16 {
        return Err(setup.no_kernel());
    }
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run::<T>(ctx, inputs, lower, adjoint))
}

fn run<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], lower: bool, adjoint: bool) -> Result<Outputs> {
    for (number, input) in inputs.iter().enumerate() {
        if input.shape().rank() < 2 {
            return Err(invalid!("In[{number}] ndims must be >= 2: {}", input.shape().rank()));
        }
    }
    for (number, input) in inputs.iter().enumerate() {
        if input.elements() == 0 {
            return Err(invalid!(
                "In[{number}] must not be an empty tensor: Tensor<type: {} shape: {} values: >",
                input.dtype(),
                input.shape()
            ));
        }
    }
    let (a, b) = (Matrices::<T>::of(&inputs[0], 0)?, Matrices::<T>::of(&inputs[1], 1)?);
    let (left, right) = (inputs[0].shape(), inputs[1].shape());
    let (batch, places) = repeated(a.batch, b.batch)
        .ok_or_else(|| invalid!("In[0] and In[1] must have compatible batch dimensions: {left} vs. {right}"))?;
    if a.cols != b.rows {
        return Err(invalid!(
            "In[0] mismatch In[1] shape: {} vs. {}: {left} {right} {} {}",
            a.cols,
            b.rows,
            i32::from(lower),
            i32::from(adjoint)
        ));
    }
    let bands = Bands { count: a.rows, size: a.cols, lower, adjoint };
    // Like TensorFlow, only the first matrix is checked.
    if bands.diagonal(a.get(0)).contains(&T::default()) {
        return Err(invalid!("Input matrix is not invertible."));
    }
    let results = map(ctx, places.len(), (a.rows * a.cols * b.cols) as f64, |number| {
        let (left, right) = places[number];
        let mut x = b.get(right).to_vec();
        bands.solve(a.get(left), &mut x, b.cols);
        Ok(x)
    })?;
    Ok(outputs![gathered(shape_of(&[&batch, &[a.cols, b.cols]])?, results)?])
}

/// A triangular matrix of `count` diagonals; the main diagonal is the first of a lower matrix, the last of an upper.
struct Bands {
    count: usize,
    size: usize,
    lower: bool,
    adjoint: bool,
}

impl Bands {
    fn diagonal<'a, T: Number>(&self, bands: &'a [T]) -> &'a [T] {
        let row = if self.lower { 0 } else { self.count - 1 };
        &bands[row * self.size..][..self.size]
    }

    /// Replaces right-hand sides by solutions, in the order in which they depend on each other.
    fn solve<T: Number>(&self, bands: &[T], x: &mut [T], cols: usize) {
        for step in 0..self.size {
            let row = if self.lower == self.adjoint { self.size - 1 - step } else { step };
            for distance in 1..self.count.min(step + 1) {
                let other = if self.lower == self.adjoint { row + distance } else { row - distance };
                let factor = self.element(bands, row, other, distance);
                for col in 0..cols {
                    x[row * cols + col] = x[row * cols + col] - factor * x[other * cols + col];
                }
            }
            let pivot = self.element(bands, row, row, 0);
            (0..cols).for_each(|col| x[row * cols + col] = x[row * cols + col] / pivot);
        }
    }

    /// The element of the matrix, or of its adjoint, at a distance from the diagonal. A band holds the elements of a
    /// row of the matrix at the index of the row.
    fn element<T: Number>(&self, bands: &[T], row: usize, col: usize, distance: usize) -> T {
        let band = if self.lower { distance } else { self.count - 1 - distance };
        let place = if self.adjoint { col } else { row };
        let element = bands[band * self.size + place];
        if self.adjoint { element.conjugate() } else { element }
    }
}
