//! All steps of a long short-term memory over a sequence, as one op, and its derivative.

use super::lstm::{Cell, Step, Weights};
use super::lstm_tensors::{cell, floats, input, step, step_outputs, tensor, weights};
use super::rules::{apply, copied};
use graph::{Node, Output};
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "BlockLSTM(seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T) -> i: T, \
              cs: T, f: T, o: T, ci: T, co: T, h: T; forget_bias: float = 1.0; cell_clip: float = 3.0; \
              use_peephole: bool = false; T: {half, float}",
        shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BlockLSTMV2(seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T) -> \
              i: T, cs: T, f: T, o: T, ci: T, co: T, h: T; cell_clip: float = 0.0; use_peephole: bool = false; \
              T: {half, float}",
        shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BlockLSTMGrad(seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, \
              i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T) -> x_grad: T, cs_prev_grad: T, \
              h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T; use_peephole: bool; \
              T: {half, float}",
        shape: grad_shape,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BlockLSTMGradV2(seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, \
              i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T) -> x_grad: T, cs_prev_grad: T, \
              h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T; use_peephole: bool; \
              T: {half, float}",
        shape: grad_shape,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

fn rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let name = op.op().replace("BlockLSTM", "BlockLSTMGrad");
    let given = |i: usize| dy[i].clone().unwrap_or_else(|| apply("ZerosLike", &op.output(i)));
    let mut builder = op.scope().op(&name);
    for input in op.all_inputs().iter().chain(&op.outputs()).chain([&given(1), &given(6)]) {
        builder = builder.input(input);
    }
    let node = copied(builder, op, &["use_peephole"])?.node();
    let mut all = grads![NoGradient];
    all.extend(node.outputs().into_iter().map(op::Gradient::Dense).map(Some));
    Ok(all)
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let x = query.inputs[1].merge(&PartialShape::of_rank(3))?;
    let dims = x.dims().unwrap_or(&[-1; 3]);
    let cells = query.inputs[2].dims().and_then(|dims| dims.get(1).copied()).unwrap_or(-1);
    Ok(vec![PartialShape::new(&[dims[0], dims[1], cells]); query.outputs])
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(query.inputs[1..9].to_vec())
}

/// Reads the attributes of a node.
#[derive(Clone, Copy)]
struct Config {
    dtype: DType,
    peephole: bool,
    forget_bias: f32,
    clip: f32,
    second: bool,
}

fn config(setup: &Setup<'_>) -> Result<Config> {
    let dtype = match setup.dtype("T")? {
        dtype @ (DType::F32 | DType::F16) => dtype,
        _ => return Err(setup.no_kernel()),
    };
    Ok(Config {
        dtype,
        peephole: setup.bool("use_peephole")?,
        forget_bias: setup.float("forget_bias").unwrap_or(0.0),
        clip: setup.float("cell_clip").unwrap_or(0.0),
        second: setup.def().op.ends_with("V2"),
    })
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let config = config(setup)?;
    Ok(many(move |ctx, inputs| run(ctx, config, inputs)).heavy())
}

/// A sequence and the cell that runs over it.
struct Sequence {
    time: usize,
    /// The number of valid steps.
    steps: usize,
    x: Vec<f32>,
    cs_prev: Vec<f32>,
    h_prev: Vec<f32>,
    cell: Cell,
    weights: Weights,
}

impl Sequence {
    fn of(config: Config, inputs: &mut Inputs) -> Result<Sequence> {
        let limit = inputs.tensor(0)?;
        if limit.shape().rank() != 0 {
            return Err(invalid!("`seq_len_max_tensor` must be rank 0 but is rank {}", limit.shape().rank()));
        }
        let (x, cs_prev) = (inputs.tensor(1)?, inputs.tensor(2)?);
        let &[time, batch, size] = x.shape().dims() else { return Err(invalid!("x must be 3D")) };
        let cell = cell(&[batch, size], &cs_prev, config.second)?;
        let h_prev = input(inputs, 3, "h_prev", &[batch, cell.cells])?;
        let weights = weights(inputs, 4, &cell, config.peephole)?;
        let steps = limit.to_scalar::<i64>()?.clamp(0, time as i64) as usize;
        Ok(Sequence { time, steps, x: floats(&x)?, cs_prev: floats(&cs_prev)?, h_prev, cell, weights })
    }

    fn shape(&self) -> Shape {
        Shape::from([self.time, self.cell.batch, self.cell.cells])
    }

    fn x_at(&self, t: usize) -> &[f32] {
        let len = self.cell.batch * self.cell.inputs;
        &self.x[t * len..][..len]
    }
}

fn run(ctx: &Ctx<'_>, config: Config, mut inputs: Inputs) -> Result<Outputs> {
    let sequence = Sequence::of(config, &mut inputs)?;
    let len = sequence.cell.batch * sequence.cell.cells;
    let mut all = Step::default();
    let (mut cs, mut h) = (sequence.cs_prev.clone(), sequence.h_prev.clone());
    for t in 0..sequence.steps {
        let x = sequence.x_at(t);
        let step = sequence.cell.forward(ctx.pool(), &sequence.weights, [x, &cs, &h], config.forget_bias, config.clip);
        append(&mut all, &step);
        (cs, h) = (step.cs, step.h);
    }
    resize(&mut all, sequence.time * len);
    step_outputs(config.dtype, &sequence.shape(), &all)
}

fn append(all: &mut Step, step: &Step) {
    all.i.extend_from_slice(&step.i);
    all.cs.extend_from_slice(&step.cs);
    all.f.extend_from_slice(&step.f);
    all.o.extend_from_slice(&step.o);
    all.ci.extend_from_slice(&step.ci);
    all.co.extend_from_slice(&step.co);
    all.h.extend_from_slice(&step.h);
}

fn resize(all: &mut Step, len: usize) {
    let Step { i, cs, f, o, ci, co, h } = all;
    [i, cs, f, o, ci, co, h].into_iter().for_each(|values| values.resize(len, 0.0));
}

fn part(all: &Step, t: usize, len: usize) -> Step {
    let at = |values: &[f32]| values[t * len..][..len].to_vec();
    let (i, cs, f) = (at(&all.i), at(&all.cs), at(&all.f));
    Step { i, cs, f, o: at(&all.o), ci: at(&all.ci), co: at(&all.co), h: Vec::new() }
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let config = config(setup)?;
    Ok(many(move |ctx, inputs| run_grad(ctx, config, inputs)).heavy())
}

/// Sums of gradients over time.
struct Sums {
    x: Vec<f32>,
    w: Vec<f32>,
    bias: Vec<f32>,
    peepholes: [Vec<f32>; 3],
}

fn run_grad(ctx: &Ctx<'_>, config: Config, mut inputs: Inputs) -> Result<Outputs> {
    let sequence = Sequence::of(config, &mut inputs)?;
    let Cell { batch, inputs: size, cells, .. } = sequence.cell;
    let (dims, len) = ([sequence.time, batch, cells], batch * cells);
    let all = step(&mut inputs, 9, &dims)?;
    let h = input(&mut inputs, 15, "h", &dims)?;
    let (cs_grads, h_grads) = (input(&mut inputs, 16, "cs_grad", &dims)?, input(&mut inputs, 17, "h_grad", &dims)?);
    let none = || vec![0f32; cells];
    let mut sums = Sums {
        x: vec![0f32; sequence.x.len()],
        w: vec![0f32; sequence.weights.w.len()],
        bias: vec![0f32; 4 * cells],
        peepholes: [none(), none(), none()],
    };
    let (mut cs_grad, mut h_grad) = (vec![0f32; len], vec![0f32; len]);
    for t in (0..sequence.steps).rev() {
        add(&mut cs_grad, &cs_grads[t * len..][..len]);
        add(&mut h_grad, &h_grads[t * len..][..len]);
        let before = |values: &[f32], first: &[f32]| match t {
            0 => first.to_vec(),
            _ => values[(t - 1) * len..][..len].to_vec(),
        };
        let (cs_prev, h_prev) = (before(&all.cs, &sequence.cs_prev), before(&h, &sequence.h_prev));
        let grad = sequence.cell.backward(&sequence.weights, &part(&all, t, len), &cs_prev, [&cs_grad, &h_grad]);
        let joined = sequence.cell.joined(sequence.x_at(t), &h_prev);
        let by_joined = sequence.cell.backward_joined(ctx.pool(), &sequence.weights.w, &grad.gates);
        add(&mut sums.w, &sequence.cell.backward_weights(ctx.pool(), &joined, &grad.gates));
        grad.gates.chunks_exact(4 * cells).for_each(|row| add(&mut sums.bias, row));
        sums.peepholes.iter_mut().zip(&grad.peepholes).for_each(|(sum, part)| add(sum, part));
        for (b, row) in by_joined.chunks_exact(size + cells).enumerate() {
            sums.x[(t * batch + b) * size..][..size].copy_from_slice(&row[..size]);
            h_grad[b * cells..][..cells].copy_from_slice(&row[size..]);
        }
        cs_grad = grad.cs_prev;
    }
    grad_outputs(config, &sequence, &sums, &cs_grad, &h_grad)
}

fn add(sum: &mut [f32], part: &[f32]) {
    sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
}

fn grad_outputs(config: Config, sequence: &Sequence, sums: &Sums, cs: &[f32], h: &[f32]) -> Result<Outputs> {
    let Cell { batch, inputs, cells, .. } = sequence.cell;
    let make = |dims: &[usize], values: &[f32]| -> Result<Tensor> { tensor(config.dtype, &Shape::new(dims), values) };
    let [wci, wcf, wco] = &sums.peepholes;
    Ok(outputs![
        make(&[sequence.time, batch, inputs], &sums.x)?,
        make(&[batch, cells], cs)?,
        make(&[batch, cells], h)?,
        make(&[inputs + cells, 4 * cells], &sums.w)?,
        make(&[cells], wci)?,
        make(&[cells], wcf)?,
        make(&[cells], wco)?,
        make(&[4 * cells], &sums.bias)?
    ])
}
