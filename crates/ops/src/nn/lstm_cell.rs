//! One step of a long short-term memory cell as one op, and its derivative.

use super::lstm_tensors::{cell, floats, input, step, step_outputs, tensor, weights};
use op::{Ctx, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "LSTMBlockCell(x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T) -> i: T, cs: T, f: T, \
              o: T, ci: T, co: T, h: T; forget_bias: float = 1.0; cell_clip: float = 3.0; \
              use_peephole: bool = false; T: {half, float}",
        shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "LSTMBlockCellGrad(x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: T, \
              o: T, ci: T, co: T, cs_grad: T, h_grad: T) -> cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, \
              wco_grad: T; use_peephole: bool; T: {half, float}",
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
    let state = query.inputs[1].merge(&PartialShape::of_rank(2))?;
    let dims = state.dims().unwrap_or(&[-1, -1]);
    let gates = PartialShape::new(&[dims[0], if dims[1] < 0 { -1 } else { dims[1].saturating_mul(4) }]);
    let cells = PartialShape::new(&dims[1..]);
    Ok(vec![state.clone(), gates, cells.clone(), cells.clone(), cells])
}

fn checked_type(setup: &Setup<'_>) -> Result<DType> {
    match setup.dtype("T")? {
        dtype @ (DType::F32 | DType::F16) => Ok(dtype),
        _ => Err(setup.no_kernel()),
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, peephole) = (checked_type(setup)?, setup.bool("use_peephole")?);
    let (forget_bias, clip) = (setup.float("forget_bias")?, setup.float("cell_clip")?);
    Ok(many(move |ctx, inputs| run(ctx, inputs, dtype, peephole, forget_bias, clip)).heavy())
}

fn run(
    ctx: &Ctx<'_>,
    mut inputs: Inputs,
    dtype: DType,
    peephole: bool,
    forget_bias: f32,
    clip: f32,
) -> Result<Outputs> {
    let (x, cs_prev) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let cell = cell(x.shape(), &cs_prev, false)?;
    let h_prev = input(&mut inputs, 2, "h_prev", &[cell.batch, cell.cells])?;
    let weights = weights(&mut inputs, 3, &cell, peephole)?;
    let (x, cs_prev) = (floats(&x)?, floats(&cs_prev)?);
    let step = cell.forward(ctx.pool(), &weights, [&x, &cs_prev, &h_prev], forget_bias, clip);
    step_outputs(dtype, &Shape::from([cell.batch, cell.cells]), &step)
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, peephole) = (checked_type(setup)?, setup.bool("use_peephole")?);
    Ok(many(move |_, inputs| run_grad(inputs, dtype, peephole)))
}

fn run_grad(mut inputs: Inputs, dtype: DType, peephole: bool) -> Result<Outputs> {
    let (x, cs_prev) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let cell = cell(x.shape(), &cs_prev, false)?;
    let dims = [cell.batch, cell.cells];
    if inputs.len() < 16 {
        return Err(invalid!("LSTMBlockCellGrad takes 16 inputs, got {}", inputs.len()));
    }
    let weights = weights(&mut inputs, 3, &cell, peephole)?;
    let step = step(&mut inputs, 8, &dims)?;
    let cs_grad = input(&mut inputs, 14, "cs_grad", &dims)?;
    let h_grad = input(&mut inputs, 15, "h_grad", &dims)?;
    let grad = cell.backward(&weights, &step, &floats(&cs_prev)?, [&cs_grad, &h_grad]);
    let cells = Shape::from([cell.cells]);
    let [wci, wcf, wco] = &grad.peepholes;
    Ok(outputs![
        tensor(dtype, &Shape::from(dims), &grad.cs_prev)?,
        tensor(dtype, &Shape::from([cell.batch, cell.cells * 4]), &grad.gates)?,
        tensor(dtype, &cells, wci)?,
        tensor(dtype, &cells, wcf)?,
        tensor(dtype, &cells, wco)?
    ])
}
