//! QuantizedAvgPool and QuantizedMaxPool.

use super::args::{ranged, with_range};
use super::level::{Level, Range};
use crate::nn::max_pool;
use crate::nn::pool::{Pooling, static_shape};
use graph::ShapeQuery;
use math::conv::Axis;
use math::pooling::PoolShape;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "QuantizedAvgPool(input: T, min_input: float, max_input: float) -> output: T, min_output: float, \
              max_output: float; T: {qint8, quint8, qint32, qint16, quint16}; ksize: list(int); strides: list(int); \
              padding: {\"SAME\", \"VALID\"}",
        shape,
        grad: Grad::Unknown,
        kernel: average_kernel,
        facts: PLAIN,
    },
    Op {
        def: "QuantizedMaxPool(input: T, min_input: float, max_input: float) -> output: T, min_output: float, \
              max_output: float; T: {qint8, quint8, qint32, qint16, quint16}; ksize: list(int); strides: list(int); \
              padding: {\"SAME\", \"VALID\"}",
        shape,
        grad: Grad::Unknown,
        kernel: max_kernel,
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(ranged(static_shape(query, 2)?.swap_remove(0)))
}

const SPATIAL: &str = "Non-spatial pooling is not yet supported. Volunteers? :)";

fn average_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 2)?.spatial_only(SPATIAL)?;
    let dtype = setup.dtype("T")?;
    for_levels!(setup, dtype, [QI8 = i8, QU8 = u8], T => Ok(many(move |_, mut inputs| {
        let range = range(&inputs)?;
        let input = inputs.tensor(0)?;
        let shape = pooling.shape(input.shape())?;
        let mut out = Tensor::scratch_of(dtype, pooling.output(&shape))?;
        average::<T>(&shape, input.values()?, out.values_mut()?);
        Ok(with_range(out, range))
    })))
}

fn max_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 2)?;
    let dtype = setup.dtype("T")?;
    for_levels!(setup, dtype, [QI8 = i8, QU8 = u8], T => Ok(many(move |ctx, mut inputs| {
        let range = range(&inputs)?;
        let output = max_pool::run::<T>(ctx, &pooling, inputs.tensor(0)?)?;
        Ok(with_range(output.retyped(dtype)?, range))
    })))
}

fn range(inputs: &Inputs) -> Result<Range> {
    let bound = |index: usize, name: &str| -> Result<f32> {
        let tensor = inputs.look(index)?;
        match tensor.shape().rank() {
            0 => tensor.to_scalar(),
            rank => Err(invalid!("{name} shape must be rank 0 but is rank {rank}, received shape: {}", tensor.shape())),
        }
    };
    Ok(Range { min: bound(1, "min_input")?, max: bound(2, "max_input")? })
}

/// The sum of each window divided by the number of its elements, rounded towards zero.
fn average<T: Level>(shape: &PoolShape, input: &[T], out: &mut [T]) {
    let [_, height, width] = shape.axes.map(|axis| axis.input);
    let [_, rows, cols] = shape.output;
    let channels = shape.channels;
    for (i, out) in out.chunks_exact_mut(channels.max(1)).enumerate() {
        let (image, row, col) = (i / cols / rows, i / cols % rows, i % cols);
        let (down, across) = (covered(&shape.axes[1], row), covered(&shape.axes[2], col));
        let points = (down.len() * across.len()) as i64;
        for (channel, out) in out.iter_mut().enumerate() {
            let at = |y: usize, x: usize| input[((image * height + y) * width + x) * channels + channel].number();
            let sum: i64 = down.clone().map(|y| across.clone().map(|x| at(y, x)).sum::<i64>()).sum();
            *out = T::saturated(sum / points.max(1));
        }
    }
}

/// The part of the input that a window covers along an axis.
fn covered(axis: &Axis, index: usize) -> std::ops::Range<usize> {
    let (start, before) = (index * axis.stride, axis.pad.0);
    let end = (start + axis.filter).saturating_sub(before).min(axis.input);
    start.saturating_sub(before).min(end)..end
}
