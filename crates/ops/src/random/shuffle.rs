//! RandomShuffle: the rows in random order.

use super::draw::seeds;
use super::stream::{Stream, from_key};
use graph::Output;
use math::philox::{self, Philox};
use op::shapes::unchanged;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, many, outputs, unary};
use status::Result;
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RandomShuffle(value: T) -> output: T; seed: int = 0; seed2: int = 0; T: type; stateful",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: shuffle_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessShuffle(value: T, key: uint64, counter: uint64, alg: int32) -> output: T; T: type",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: stateless_kernel,
        facts: PLAIN,
    },
];

/// The rows of a tensor in random order.
pub fn random_shuffle(value: &Output, seed: Option<i64>) -> Output {
    let (seed, seed2) = seeds(value.scope(), seed);
    value.scope().op("RandomShuffle").input(value).attr("seed", seed).attr("seed2", seed2).output()
}

fn shuffle_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let stream = Stream::of(setup)?;
    Ok(unary(move |ctx, value| shuffled(ctx, value, |swaps| stream.take_blocks(swaps.div_ceil(4) as u64))))
}

fn stateless_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let stream = from_key(&inputs.tensor(1)?, &inputs.tensor(2)?, &inputs.tensor(3)?, 3)?;
        Ok(outputs![shuffled(ctx, inputs.tensor(0)?, |_| stream)?])
    }))
}

fn shuffled(ctx: &Ctx<'_>, value: Tensor, stream: impl FnOnce(usize) -> Philox) -> Result<Tensor> {
    let rows = value.shape().first().copied().unwrap_or(0);
    if value.elements() <= 1 || rows <= 1 {
        return Ok(value);
    }
    let mut order: Vec<usize> = (0..rows).collect();
    philox::shuffle(&stream(rows - 1), rows, |i, j| order.swap(i, j));
    picked(ctx, &value, &order, value.elements() / rows)
}

/// The rows with these numbers, under the same shape.
fn picked(ctx: &Ctx<'_>, value: &Tensor, rows: &[usize], width: usize) -> Result<Tensor> {
    let shape = value.shape().clone();
    let all = || rows.iter().flat_map(|&row| row * width..(row + 1) * width);
    match value.dtype() {
        DType::STRING => {
            let values = value.strings()?;
            Tensor::from_strings(shape, all().map(|i| values[i].clone()).collect())
        }
        DType::VARIANT => {
            let values = value.variants()?;
            Tensor::from_variants(shape, all().map(|i| values[i].clone()).collect())
        }
        DType::RESOURCE => {
            let values = value.handles()?;
            Tensor::from_handles(shape, all().map(|i| values[i].clone()).collect())
        }
        dtype => {
            let mut out = Tensor::scratch_of(dtype, shape)?;
            let bytes = value.buffer().map(|buffer| buffer.bytes()).unwrap_or_default();
            math::gather(ctx.pool(), bytes, width * dtype.size(), rows, out.bytes_mut()?);
            Ok(out)
        }
    }
}
