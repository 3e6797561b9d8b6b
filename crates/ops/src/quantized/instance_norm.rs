//! QuantizedInstanceNorm.

use super::args::{range, ranged, with_range};
use super::level::{Encoder, Range};
use graph::ShapeQuery;
use op::{Grad, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "QuantizedInstanceNorm(x: T, x_min: float, x_max: float) -> y: T, y_min: float, y_max: float; \
          T: {qint8, quint8, qint32, qint16, quint16}; output_range_given: bool = false; given_y_min: float = 0.0; \
          given_y_max: float = 0.0; variance_epsilon: float = 1e-05; min_separation: float = 0.001",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(ranged(query.inputs[0].merge(&PartialShape::of_rank(4))?))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.dtype("T")? != DType::QU8 {
        return Err(setup.no_kernel());
    }
    let given = given_range(setup)?;
    let (epsilon, separation) = (setup.float("variance_epsilon")?, setup.float("min_separation")?);
    Ok(many(move |_, mut inputs| {
        let from = range(&inputs, 1, ["x_min", "x_max"])?;
        if !(from.min < from.max) {
            return Err(invalid!("input_min must be less than input_max : {} >= {}", from.min, from.max));
        }
        let input = inputs.tensor(0)?;
        let &[batch, height, width, channels] = input.shape().dims() else {
            return Err(invalid!("input must be 4-dimensional: {}", input.shape()));
        };
        let images = Images { batch, points: height * width, width, channels };
        let normed = images.normed(input.values::<u8>()?, (from.max - from.min) / 255.0, epsilon);
        let mut to = given.unwrap_or_else(|| extent(&normed));
        if to.max - to.min < separation {
            to.max = to.min + separation;
        }
        let encoder = Encoder::<u8>::new(to);
        let mut out = Tensor::scratch_of(DType::QU8, input.shape())?;
        let pairs = out.values_mut::<u8>()?.iter_mut().zip(&normed);
        pairs.for_each(|(out, &value)| *out = encoder.quantized(value));
        Ok(with_range(out, to))
    }))
}

fn given_range(setup: &Setup<'_>) -> Result<Option<Range>> {
    if !setup.bool("output_range_given")? {
        return Ok(None);
    }
    let (min, max) = (setup.float("given_y_min")?, setup.float("given_y_max")?);
    if !(min < max) {
        return Err(invalid!("given_y_min must be less than given_y_max : {min} >= {max}"));
    }
    Ok(Some(Range { min, max }))
}

fn extent(values: &[f32]) -> Range {
    values.iter().fold(Range { min: f32::INFINITY, max: f32::NEG_INFINITY }, |range, &value| Range {
        min: range.min.min(value),
        max: range.max.max(value),
    })
}

/// The sizes of a batch of images.
struct Images {
    batch: usize,
    points: usize,
    width: usize,
    channels: usize,
}

impl Images {
    /// All values with mean zero and variance one in each channel of each image.
    fn normed(&self, values: &[u8], scale: f32, epsilon: f32) -> Vec<f32> {
        let mut normed = vec![0.0; values.len()];
        let size = self.points * self.channels;
        for image in 0..self.batch {
            for channel in 0..self.channels {
                let at = |point: usize| image * size + point * self.channels + channel;
                let mean = self.mean(|point| f32::from(values[at(point)]));
                let centered = |point: usize| scale * (f32::from(values[at(point)]) - mean);
                let variance = self.mean(|point| centered(point) * centered(point));
                let inverse = 1.0 / (variance + epsilon).sqrt();
                (0..self.points).for_each(|point| normed[at(point)] = centered(point) * inverse);
            }
        }
        normed
    }

    /// The mean over the points of an image, which are added column by column as in TensorFlow.
    fn mean(&self, value: impl Fn(usize) -> f32) -> f32 {
        let columns = (0..self.width).flat_map(|column| (column..self.points).step_by(self.width));
        columns.fold(0.0, |sum, point| sum + value(point)) / self.points as f32
    }
}
