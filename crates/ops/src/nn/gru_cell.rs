//! One step of a gated recurrent unit as one op, and its derivative.

use super::lstm_tensors::input;
use math::Pool;
use math::function::Real;
use math::gemm::{Epilogue, Matrix, matmul, matmul_with};
use op::{Ctx, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "GRUBlockCell(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T) -> r: T, u: T, c: T, h: T; T: {float}",
        shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "GRUBlockCellGrad(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T) -> \
              d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T; T: {float}",
        shape: grad_shape,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].merge(&PartialShape::of_rank(2))?; query.outputs])
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let h = query.inputs[1].merge(&PartialShape::of_rank(2))?;
    let dims = h.dims().unwrap_or(&[-1, -1]);
    let gates = PartialShape::new(&[dims[0], if dims[1] < 0 { -1 } else { dims[1].saturating_mul(2) }]);
    Ok(vec![query.inputs[0].clone(), h.clone(), h, gates])
}

/// A cell with its input, the state it had, and its weights.
struct Unit {
    batch: usize,
    inputs: usize,
    cells: usize,
    x: Vec<f32>,
    h: Vec<f32>,
    w_ru: Vec<f32>,
    w_c: Vec<f32>,
    b_ru: Vec<f32>,
    b_c: Vec<f32>,
}

impl Unit {
    fn of(tensors: &mut Inputs) -> Result<Unit> {
        let (x, h) = (tensors.tensor(0)?, tensors.tensor(1)?);
        let &[batch, inputs] = x.shape().dims() else { return Err(invalid!("Rank of x must be 2")) };
        let &[found, cells] = h.shape().dims() else { return Err(invalid!("Rank of h_prev must be 2")) };
        if found != batch {
            return Err(invalid!("h_prev.dims(0) != batch_size: {found} vs. {batch}"));
        }
        let (Some(depth), Some(both)) = (inputs.checked_add(cells), cells.checked_mul(2)) else {
            return Err(invalid!("the cell is too large: {inputs} inputs, {cells} cells"));
        };
        let w_ru = input(tensors, 2, "w_ru", &[depth, both])?;
        let w_c = input(tensors, 3, "w_c", &[depth, cells])?;
        let (b_ru, b_c) = (input(tensors, 4, "b_ru", &[both])?, input(tensors, 5, "b_c", &[cells])?);
        let (x, h) = (x.values::<f32>()?.to_vec(), h.values::<f32>()?.to_vec());
        Ok(Unit { batch, inputs, cells, x, h, w_ru, w_c, b_ru, b_c })
    }

    /// The input with a state beside it.
    fn joined(&self, state: &[f32]) -> Vec<f32> {
        let mut rows = Vec::with_capacity(self.batch * (self.inputs + self.cells));
        for b in 0..self.batch {
            rows.extend_from_slice(&self.x[b * self.inputs..][..self.inputs]);
            rows.extend_from_slice(&state[b * self.cells..][..self.cells]);
        }
        rows
    }

    fn product(&self, pool: &Pool, state: &[f32], w: &[f32], bias: &[f32]) -> Vec<f32> {
        let depth = self.inputs + self.cells;
        let joined = self.joined(state);
        let mut out = vec![0f32; self.batch * bias.len()];
        let end = Epilogue { bias: Some(bias), relu: false };
        matmul_with(pool, Matrix::new(&joined, self.batch, depth), Matrix::new(w, depth, bias.len()), end, &mut out);
        out
    }

    /// Back through a product: `[batch, inputs + cells]`.
    fn product_back(&self, pool: &Pool, grads: &[f32], w: &[f32], cols: usize) -> Vec<f32> {
        let depth = self.inputs + self.cells;
        let mut out = vec![0f32; self.batch * depth];
        let rhs = Matrix::new(w, depth, cols).transposed();
        matmul(pool, Matrix::new(grads, self.batch, cols), rhs, &mut out);
        out
    }

    fn tensor(&self, cols: usize, values: &[f32]) -> Result<Tensor> {
        Tensor::from_slice([self.batch, cols], values)
    }
}

fn kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(run).heavy())
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<Outputs> {
    let unit = Unit::of(&mut inputs)?;
    let gates = unit.product(ctx.pool(), &unit.h, &unit.w_ru, &unit.b_ru);
    let gate = |n: usize, offset: usize| gates[n / unit.cells * 2 * unit.cells + offset + n % unit.cells];
    let places = 0..unit.h.len();
    let r: Vec<f32> = places.clone().map(|n| Real::sigmoid(gate(n, 0))).collect();
    let u: Vec<f32> = places.clone().map(|n| Real::sigmoid(gate(n, unit.cells))).collect();
    let reset: Vec<f32> = unit.h.iter().zip(&r).map(|(h, r)| h * r).collect();
    let mut c = unit.product(ctx.pool(), &reset, &unit.w_c, &unit.b_c);
    c.iter_mut().for_each(|c| *c = Real::tanh(*c));
    let h: Vec<f32> = places.map(|n| u[n] * (unit.h[n] - c[n]) + c[n]).collect();
    let cells = unit.cells;
    Ok(outputs![unit.tensor(cells, &r)?, unit.tensor(cells, &u)?, unit.tensor(cells, &c)?, unit.tensor(cells, &h)?])
}

fn grad_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(run_grad).heavy())
}

fn run_grad(ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<Outputs> {
    let unit = Unit::of(&mut inputs)?;
    let (batch, size, cells) = (unit.batch, unit.inputs, unit.cells);
    let mut next = |index: usize, name: &str| input(&mut inputs, index, name, &[batch, cells]);
    let (r, u, c, by_h) = (next(6, "r")?, next(7, "u")?, next(8, "c")?, next(9, "d_h")?);
    let places = 0..unit.h.len();
    let by_c: Vec<f32> = places.clone().map(|n| by_h[n] * (1.0 - u[n]) * (1.0 - c[n] * c[n])).collect();
    let through_c = unit.product_back(ctx.pool(), &by_c, &unit.w_c, cells);
    let depth = size + cells;
    let by_reset = |n: usize| through_c[n / cells * depth + size + n % cells];
    let mut by_gates = vec![0f32; batch * 2 * cells];
    for n in places.clone() {
        let row = &mut by_gates[n / cells * 2 * cells..][..2 * cells];
        row[n % cells] = by_reset(n) * unit.h[n] * r[n] * (1.0 - r[n]);
        row[cells + n % cells] = by_h[n] * (unit.h[n] - c[n]) * u[n] * (1.0 - u[n]);
    }
    let through_gates = unit.product_back(ctx.pool(), &by_gates, &unit.w_ru, 2 * cells);
    let by_x: Vec<f32> =
        (0..batch * size).map(|n| n / size * depth + n % size).map(|at| through_c[at] + through_gates[at]).collect();
    let by_h_prev: Vec<f32> = places
        .map(|n| through_gates[n / cells * depth + size + n % cells] + by_reset(n) * r[n] + by_h[n] * u[n])
        .collect();
    Ok(outputs![
        unit.tensor(size, &by_x)?,
        unit.tensor(cells, &by_h_prev)?,
        unit.tensor(cells, &by_c)?,
        unit.tensor(2 * cells, &by_gates)?
    ])
}
