//! Mfcc: mel-frequency cepstral coefficients of spectrograms.

use graph::{Output, ShapeQuery};
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, binary};
use status::{Result, invalid};
use std::f64::consts::PI;
use std::ops::RangeInclusive;
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Mfcc(spectrogram: float, sample_rate: int32) -> output: float; upper_frequency_limit: float = 4000.0; \
          lower_frequency_limit: float = 20.0; filterbank_channel_count: int = 40; dct_coefficient_count: int = 13",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// The smallest energy of a band, so that its logarithm is finite.
const FLOOR: f64 = 1e-12;
/// The largest table of cosines; more than this is a mistake in the attributes.
const MOST_COSINES: usize = 1 << 24;

/// The mel-frequency cepstral coefficients of squared magnitudes of shape [channel, window, frequency].
pub fn mfcc(spectrogram: &Output, sample_rate: &Output) -> Output {
    spectrogram.scope().op("Mfcc").input(spectrogram).input(sample_rate).output()
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let input = query.inputs[0].merge(&PartialShape::of_rank(3))?;
    query.inputs[1].merge(&PartialShape::scalar())?;
    let coefficients = match query.attr("dct_coefficient_count") {
        Ok(graph::AttrValue::Int(count)) => *count,
        _ => -1,
    };
    let dim = |axis: usize| input.dim(axis).map_or(-1, |dim| dim as i64);
    Ok(vec![PartialShape::new(&[dim(0), dim(1), coefficients])])
}

/// The attributes.
#[derive(Clone, Copy)]
struct Limits {
    lower: f64,
    upper: f64,
    bands: i64,
    coefficients: i64,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let limits = Limits {
        lower: setup.float("lower_frequency_limit")?.into(),
        upper: setup.float("upper_frequency_limit")?.into(),
        bands: setup.int("filterbank_channel_count")?,
        coefficients: setup.int("dct_coefficient_count")?,
    };
    Ok(binary(move |ctx, spectrogram, sample_rate| run(ctx, limits, &spectrogram, &sample_rate)).heavy())
}

fn run(ctx: &Ctx<'_>, limits: Limits, spectrogram: &Tensor, sample_rate: &Tensor) -> Result<Tensor> {
    let &[channels, windows, width] = spectrogram.shape().dims() else {
        return Err(invalid!("spectrogram must be 3-dimensional{}", spectrogram.shape()));
    };
    if sample_rate.shape().rank() != 0 {
        return Err(invalid!("Input sample_rate should be a scalar tensor, got {} instead.", sample_rate.shape()));
    }
    let rate = sample_rate.to_scalar::<i32>()?;
    let features = Features::new(limits, width, rate.into()).ok_or_else(|| {
        invalid!(
            "Mfcc initialization failed for channel count {width}, sample rate {rate} and filterbank_channel_count {}",
            limits.bands
        )
    })?;
    let mut tensor = Tensor::scratch::<f32>(Shape::checked(&[channels as i64, windows as i64, limits.coefficients])?)?;
    let (from, count) = (spectrogram.values::<f32>()?, limits.coefficients as usize);
    let cost = (width + count * features.bands) as f32;
    math::parallel::split_rows_mut(ctx.pool(), cost, tensor.values_mut()?, count, |first, chunk| {
        let mut bands = vec![0.0; features.bands];
        for (row, to) in chunk.chunks_exact_mut(count).enumerate() {
            features.of(&from[(first + row) * width..][..width], &mut bands, to);
        }
    });
    Ok(tensor)
}

/// A bank of triangular filters that are spaced evenly on the mel scale, and a cosine transform of their logarithms.
struct Features {
    bands: usize,
    /// Frequencies from the first one that counts: the band on whose falling side it is, one more than its index, and
    /// its weight there. The rest of its weight is on the rising side of the next band.
    weights: Vec<(usize, f64)>,
    first: usize,
    /// Whether the limits are above what the sample rate can represent.
    too_high: bool,
    /// The cosines, one row for each coefficient.
    cosines: Vec<f64>,
}

impl Features {
    /// None if the sizes or limits cannot be used.
    fn new(limits: Limits, width: usize, rate: f64) -> Option<Features> {
        let (bands, coefficients) = (usize::try_from(limits.bands).ok()?, usize::try_from(limits.coefficients).ok()?);
        let counts = 1 <= coefficients && coefficients <= bands && bands.checked_mul(coefficients)? <= MOST_COSINES;
        let frequencies = rate > 0.0 && width >= 2 && !(limits.lower < 0.0) && !(limits.upper <= limits.lower);
        if !counts || !frequencies {
            return None;
        }
        let step = 0.5 * rate / (width - 1) as f64;
        let (first, last) = ((1.5 + limits.lower / step) as usize, (limits.upper / step) as usize);
        let too_high = last >= width;
        let weights = if too_high { Vec::new() } else { weights(limits, bands, step, first..=last) };
        Some(Features { bands, weights, first, too_high, cosines: cosines(bands, coefficients) })
    }

    /// The coefficients of one window; `bands` is scratch memory.
    fn of(&self, window: &[f32], bands: &mut [f64], to: &mut [f32]) {
        if self.too_high {
            return to.fill(0.0);
        }
        bands.fill(0.0);
        for (&(band, weight), &power) in self.weights.iter().zip(window.iter().skip(self.first)) {
            let magnitude = f64::from(power).sqrt();
            let falling = magnitude * weight;
            if band > 0 {
                bands[band - 1] += falling;
            }
            if let Some(next) = bands.get_mut(band) {
                *next += magnitude - falling;
            }
        }
        bands.iter_mut().for_each(|band| *band = if *band < FLOOR { FLOOR } else { *band }.ln());
        for (to, cosines) in to.iter_mut().zip(self.cosines.chunks_exact(self.bands)) {
            *to = cosines.iter().zip(&*bands).map(|(cosine, band)| cosine * band).sum::<f64>() as f32;
        }
    }
}

fn mel(frequency: f64) -> f64 {
    1127.0 * (frequency / 700.0).ln_1p()
}

/// The bands and weights of some frequencies, which are `step` apart.
fn weights(limits: Limits, bands: usize, step: f64, frequencies: RangeInclusive<usize>) -> Vec<(usize, f64)> {
    let low = mel(limits.lower);
    let spacing = (mel(limits.upper) - low) / (bands + 1) as f64;
    let center = |band: usize| low + spacing * (band + 1) as f64;
    let mut band = 0;
    let weight = |frequency: usize| {
        let mel = mel(frequency as f64 * step);
        while band < bands && center(band) < mel {
            band += 1;
        }
        let below = if band == 0 { low } else { center(band - 1) };
        (band, (center(band) - mel) / (center(band) - below))
    };
    frequencies.map(weight).collect()
}

fn cosines(bands: usize, coefficients: usize) -> Vec<f64> {
    let (norm, angle) = ((2.0 / bands as f64).sqrt(), PI / bands as f64);
    let cosine = |i: usize, j: usize| norm * (i as f64 * angle * (j as f64 + 0.5)).cos();
    (0..coefficients).flat_map(|i| (0..bands).map(move |j| cosine(i, j))).collect()
}
