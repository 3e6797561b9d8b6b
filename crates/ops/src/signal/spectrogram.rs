//! AudioSpectrogram: how strong each frequency of a sound is, over time.

use graph::{AttrValue, Output, ShapeQuery};
use math::fft::{Plans, each_row};
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use std::f64::consts::TAU;
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "AudioSpectrogram(input: float) -> spectrogram: float; window_size: int; stride: int; \
          magnitude_squared: bool = false",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// The magnitudes, of shape [channel, window, frequency], of windows of a sound of shape [sample, channel].
pub fn audio_spectrogram(input: &Output, window_size: impl Into<AttrValue>, stride: impl Into<AttrValue>) -> Output {
    let op = input.scope().op("AudioSpectrogram").input(input);
    op.attr("window_size", window_size).attr("stride", stride).output()
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let input = query.inputs[0].merge(&PartialShape::of_rank(2))?;
    let int = |name: &str| match query.attr(name) {
        Ok(AttrValue::Int(value)) => *value,
        _ => 0,
    };
    let sizes = Windows::new(int("window_size"), int("stride"))?;
    let dim = |size: Option<usize>| size.map_or(-1, |size| size as i64);
    let windows = input.dim(0).map(|samples| sizes.count(samples));
    Ok(vec![PartialShape::new(&[dim(input.dim(1)), dim(windows), sizes.frequencies() as i64])])
}

/// Windows of a sound: each begins `stride` samples after the one before.
#[derive(Clone, Copy)]
struct Windows {
    size: usize,
    stride: usize,
}

impl Windows {
    fn new(size: i64, stride: i64) -> Result<Windows> {
        if size <= 1 {
            return Err(invalid!("window size must be > 1, got {size}"));
        }
        if stride <= 0 {
            return Err(invalid!("stride must be strictly positive, got {stride}"));
        }
        match size.max(stride) <= i64::from(i32::MAX) {
            true => Ok(Windows { size: size as usize, stride: stride as usize }),
            false => Err(invalid!("Spectrogram initialization failed for window size {size} and stride {stride}")),
        }
    }

    fn count(&self, samples: usize) -> usize {
        samples.checked_sub(self.size).map_or(0, |rest| 1 + rest / self.stride)
    }

    /// The length of the transform: a power of two.
    fn padded(&self) -> usize {
        self.size.next_power_of_two()
    }

    fn frequencies(&self) -> usize {
        1 + self.padded() / 2
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let windows = Windows::new(setup.int("window_size")?, setup.int("stride")?)?;
    let (squared, plans) = (setup.bool("magnitude_squared")?, Plans::default());
    let run = move |ctx: &Ctx<'_>, input: Tensor| {
        if input.shape().rank() != 2 {
            return Err(invalid!("input must be 2-dimensional{}", input.shape()));
        }
        spectrogram(ctx, &plans, windows, squared, &input)
    };
    Ok(unary(run).heavy())
}

fn spectrogram(ctx: &Ctx<'_>, plans: &Plans<f64>, windows: Windows, squared: bool, input: &Tensor) -> Result<Tensor> {
    let (samples, channels) = (input.shape()[0], input.shape()[1]);
    let (count, width) = (windows.count(samples), windows.frequencies());
    let shape = Shape::checked(&[channels as i64, count as i64, width as i64])?;
    let mut tensor = Tensor::scratch::<f32>(shape)?;
    if tensor.elements() == 0 {
        return Ok(tensor);
    }
    let (sound, hann) = (input.values::<f32>()?, hann(windows.size));
    let fill = |row: usize, to: &mut [f64]| {
        let (channel, start) = (row / count, row % count * windows.stride);
        for (i, weight) in hann.iter().enumerate() {
            to[i] = f64::from(sound[(start + i) * channels + channel]) * weight;
        }
        to[windows.size..].fill(0.0);
    };
    each_row(ctx.pool(), plans, [windows.padded(), width], tensor.values_mut()?, fill, |frequencies, to| {
        for (to, z) in to.iter_mut().zip(frequencies) {
            let square = z.norm_sqr() as f32;
            *to = if squared { square } else { square.sqrt() };
        }
    });
    Ok(tensor)
}

/// The weights of a periodic Hann window.
fn hann(size: usize) -> Vec<f64> {
    (0..size).map(|i| 0.5 - 0.5 * (TAU * i as f64 / size as f64).cos()).collect()
}
