//! One step of a long short-term memory cell and its derivative, on plain matrices.

use math::Pool;
use math::function::Real;
use math::gemm::{Epilogue, Matrix, matmul, matmul_with};

/// Sizes of a cell, and where its gates stand: input first, output last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub batch: usize,
    pub inputs: usize,
    pub cells: usize,
    /// The forget gate precedes the cell input.
    pub forget_first: bool,
}

/// The weights of a cell.
pub(super) struct Weights {
    /// `[inputs + cells, 4 cells]`.
    pub w: Vec<f32>,
    pub bias: Vec<f32>,
    /// The peephole weights of the input, forget and output gates, if any.
    pub peepholes: Option<[Vec<f32>; 3]>,
}

/// The results of a step, each `[batch, cells]`.
#[derive(Clone, Default)]
pub(super) struct Step {
    pub i: Vec<f32>,
    pub cs: Vec<f32>,
    pub f: Vec<f32>,
    pub o: Vec<f32>,
    pub ci: Vec<f32>,
    pub co: Vec<f32>,
    pub h: Vec<f32>,
}

/// The derivative of a step.
pub(super) struct StepGrad {
    pub cs_prev: Vec<f32>,
    /// The gradients of the gates before their activation: `[batch, 4 cells]`.
    pub gates: Vec<f32>,
    /// The gradients of the peephole weights.
    pub peepholes: [Vec<f32>; 3],
}

impl Cell {
    /// Columns of gates `i`, `ci`, `f`, `o`.
    fn columns(&self) -> [usize; 4] {
        let (ci, f) = if self.forget_first { (2, 1) } else { (1, 2) };
        [0, ci * self.cells, f * self.cells, 3 * self.cells]
    }

    fn len(&self) -> usize {
        self.batch * self.cells
    }

    /// The input and the last output, concatenated.
    pub fn joined(&self, x: &[f32], h: &[f32]) -> Vec<f32> {
        let mut rows = Vec::with_capacity(self.batch * (self.inputs + self.cells));
        for b in 0..self.batch {
            rows.extend_from_slice(&x[b * self.inputs..][..self.inputs]);
            rows.extend_from_slice(&h[b * self.cells..][..self.cells]);
        }
        rows
    }

    /// One step forward; `clip` bounds the cell state if it is positive.
    pub fn forward(
        &self,
        pool: &Pool,
        weights: &Weights,
        [x, cs_prev, h_prev]: [&[f32]; 3],
        forget_bias: f32,
        clip: f32,
    ) -> Step {
        let depth = self.inputs + self.cells;
        let joined = self.joined(x, h_prev);
        let mut gates = vec![0f32; self.batch * 4 * self.cells];
        let end = Epilogue { bias: Some(&weights.bias[..]), relu: false };
        let (lhs, rhs) = (Matrix::new(&joined, self.batch, depth), Matrix::new(&weights.w, depth, 4 * self.cells));
        matmul_with(pool, lhs, rhs, end, &mut gates);
        let [at_i, at_ci, at_f, at_o] = self.columns();
        let empty = || vec![0f32; self.len()];
        let mut step = Step { i: empty(), cs: empty(), f: empty(), o: empty(), ci: empty(), co: empty(), h: empty() };
        for n in 0..self.len() {
            let (row, c) = (&gates[n / self.cells * 4 * self.cells..], n % self.cells);
            let peep = |which: usize, state: f32| weights.peepholes.as_ref().map_or(0.0, |peep| state * peep[which][c]);
            step.i[n] = Real::sigmoid(row[at_i + c] + peep(0, cs_prev[n]));
            step.ci[n] = Real::tanh(row[at_ci + c]);
            step.f[n] = Real::sigmoid(row[at_f + c] + forget_bias + peep(1, cs_prev[n]));
            let cs = step.i[n] * step.ci[n] + step.f[n] * cs_prev[n];
            step.cs[n] = if clip > 0.0 { cs.clamp(-clip, clip) } else { cs };
            step.co[n] = Real::tanh(step.cs[n]);
            step.o[n] = Real::sigmoid(row[at_o + c] + peep(2, step.cs[n]));
            step.h[n] = step.o[n] * step.co[n];
        }
        step
    }

    /// The derivative of a step, given those of its cell state and its output.
    pub fn backward(
        &self,
        weights: &Weights,
        step: &Step,
        cs_prev: &[f32],
        [cs_grad, h_grad]: [&[f32]; 2],
    ) -> StepGrad {
        let [at_i, at_ci, at_f, at_o] = self.columns();
        let none = || vec![0f32; self.cells];
        let mut grad = StepGrad {
            cs_prev: vec![0f32; self.len()],
            gates: vec![0f32; self.batch * 4 * self.cells],
            peepholes: [none(), none(), none()],
        };
        for n in 0..self.len() {
            let (row, c) = (&mut grad.gates[n / self.cells * 4 * self.cells..], n % self.cells);
            let Step { i, cs, f, o, ci, co, .. } = step;
            let by_o = o[n] * (1.0 - o[n]) * h_grad[n] * co[n];
            let mut by_cs = (1.0 - co[n] * co[n]) * h_grad[n] * o[n] + cs_grad[n];
            by_cs += weights.peepholes.as_ref().map_or(0.0, |peep| by_o * peep[2][c]);
            let by_i = i[n] * (1.0 - i[n]) * by_cs * ci[n];
            let by_f = f[n] * (1.0 - f[n]) * by_cs * cs_prev[n];
            row[at_i + c] = by_i;
            row[at_ci + c] = (1.0 - ci[n] * ci[n]) * by_cs * i[n];
            row[at_f + c] = by_f;
            row[at_o + c] = by_o;
            grad.cs_prev[n] = by_cs * f[n];
            if let Some(peep) = &weights.peepholes {
                grad.cs_prev[n] += by_i * peep[0][c] + by_f * peep[1][c];
                grad.peepholes[0][c] += by_i * cs_prev[n];
                grad.peepholes[1][c] += by_f * cs_prev[n];
                grad.peepholes[2][c] += by_o * cs[n];
            }
        }
        grad
    }

    /// The derivative by the concatenated input and last output.
    pub fn backward_joined(&self, pool: &Pool, w: &[f32], gates: &[f32]) -> Vec<f32> {
        let depth = self.inputs + self.cells;
        let mut out = vec![0f32; self.batch * depth];
        let rhs = Matrix::new(w, depth, 4 * self.cells).transposed();
        matmul(pool, Matrix::new(gates, self.batch, 4 * self.cells), rhs, &mut out);
        out
    }

    /// The derivative by the weights.
    pub fn backward_weights(&self, pool: &Pool, joined: &[f32], gates: &[f32]) -> Vec<f32> {
        let depth = self.inputs + self.cells;
        let mut out = vec![0f32; depth * 4 * self.cells];
        let lhs = Matrix::new(joined, self.batch, depth).transposed();
        matmul(pool, lhs, Matrix::new(gates, self.batch, 4 * self.cells), &mut out);
        out
    }
}
