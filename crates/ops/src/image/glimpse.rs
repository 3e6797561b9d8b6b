//! Windows of images at given positions, filled with noise beyond the border.

use math::philox::{Draw, Philox};
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use std::hash::{BuildHasher, RandomState};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ExtractGlimpse(input: float, size: int32, offsets: float) -> glimpse: float; centered: bool = true; \
              normalized: bool = true; uniform_noise: bool = true; noise: string = \"uniform\"",
        shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExtractGlimpseV2(input: float, size: int32, offsets: float) -> glimpse: float; centered: bool = true; \
              normalized: bool = true; uniform_noise: bool = true; noise: string = \"uniform\"",
        shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let input = query.inputs[0].merge(&PartialShape::of_rank(4))?;
    let dims = input.dims().unwrap_or(&[-1; 4]);
    let size = query.constants.get(1).and_then(Option::as_ref).map(op::shapes::integers).transpose()?;
    let [rows, cols] = match size.as_deref() {
        Some(&[rows, cols]) => [rows, cols],
        _ => [-1, -1],
    };
    Ok(vec![PartialShape::new(&[dims[0], rows, cols, dims[3]])])
}

#[derive(Clone, Copy, PartialEq)]
enum Noise {
    Uniform,
    Gaussian,
    Zero,
}

/// Reads the attributes of a node.
#[derive(Clone, Copy)]
struct Config {
    first_version: bool,
    normalized: bool,
    centered: bool,
    noise: Noise,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (uniform, noise) = (setup.bool("uniform_noise")?, setup.string("noise")?);
    if uniform && !noise.is_empty() && noise != "uniform" {
        return Err(invalid!("The uniform_noise should not be True when noise is not uniform"));
    }
    let noise = match noise.as_str() {
        "" if uniform => Noise::Uniform,
        "" | "gaussian" => Noise::Gaussian,
        "uniform" => Noise::Uniform,
        "zero" => Noise::Zero,
        other => return Err(invalid!("The noise could only be uniform, gaussian, or zero, got{other}")),
    };
    let config = Config {
        first_version: setup.def().op == "ExtractGlimpse",
        normalized: setup.bool("normalized")?,
        centered: setup.bool("centered")?,
        noise,
    };
    Ok(many(move |_, inputs| run(config, inputs)).heavy())
}

fn run(config: Config, mut inputs: Inputs) -> Result<Outputs> {
    let (input, size, offsets) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let &[batch, height, width, depth] = input.shape().dims() else {
        return Err(invalid!("input must be 4-dimensional (batch_size, height, width, depth){}", input.shape()));
    };
    if size.shape().dims() != [2] {
        return Err(invalid!("input must be a vector of size 2 (height, width){}", size.shape()));
    }
    let sizes = size.values::<i32>()?;
    let output = Shape::checked(&[batch as i64, sizes[0].into(), sizes[1].into(), depth as i64])?;
    let &[rows, columns] = offsets.shape().dims() else {
        return Err(invalid!("input must be a matrix{}", offsets.shape()));
    };
    if rows != batch {
        return Err(invalid!("first dimension should be batch{}", offsets.shape()));
    }
    if columns != 2 {
        return Err(invalid!("second dimension should be of size 2 (y,x){}", offsets.shape()));
    }
    let mut out = Tensor::zeros::<f32>(&output)?;
    if out.elements() == 0 || input.elements() == 0 {
        return Ok(outputs![out]);
    }
    let window = [output[1], output[2]];
    let (image, each) = (height * width * depth, window[0] * window[1] * depth);
    let glimpses = out.values_mut::<f32>()?.chunks_exact_mut(each);
    let offsets = offsets.values::<f32>()?.chunks_exact(2);
    for ((glimpse, image), offset) in glimpses.zip(input.values::<f32>()?.chunks_exact(image)).zip(offsets) {
        let top = config.start(offset[0], height, window[0]);
        let left = config.start(offset[1], width, window[1]);
        let (whole_rows, whole_cols) = (inside(top, window[0], height), inside(left, window[1], width));
        if !whole_rows || !whole_cols {
            fill_with_noise(config.noise, image, depth, glimpse);
        }
        for y in 0..window[0] {
            let Some(from) = place(top, y, height) else { continue };
            for x in 0..window[1] {
                let Some(at) = place(left, x, width) else { continue };
                let pixel = &image[(from * width + at) * depth..][..depth];
                glimpse[(y * window[1] + x) * depth..][..depth].copy_from_slice(pixel);
            }
        }
    }
    Ok(outputs![out])
}

impl Config {
    /// The start of a window along one axis.
    fn start(&self, offset: f32, size: usize, window: usize) -> i64 {
        let (size, window) = (size as f32, window as f32);
        let mut at = offset;
        if self.normalized {
            at *= size;
        }
        let halve = self.centered && (self.first_version || self.normalized);
        if halve {
            at /= 2.0;
        }
        if self.centered {
            at += size / 2.0;
        }
        if self.first_version || halve {
            at -= window / 2.0;
        }
        at as i64
    }
}

fn inside(start: i64, window: usize, size: usize) -> bool {
    start >= 0 && start.saturating_add(window as i64) < size as i64
}

fn place(start: i64, at: usize, size: usize) -> Option<usize> {
    let place = start.checked_add(at as i64)?;
    (0..size as i64).contains(&place).then_some(place as usize)
}

/// Numbers as they are in the image: between its lowest and highest, or of the mean and deviation of each channel.
fn fill_with_noise(noise: Noise, image: &[f32], depth: usize, glimpse: &mut [f32]) {
    let stream = Philox::new(RandomState::new().hash_one(0u64), 0);
    let limits = |values: &mut dyn Iterator<Item = f32>| {
        values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let mut block = [0f32; 4];
    match noise {
        Noise::Zero => glimpse.fill(0.0),
        Noise::Uniform => {
            let (low, high) = limits(&mut image.iter().copied());
            for (i, values) in glimpse.chunks_mut(4).enumerate() {
                f32::uniform(stream.block(i as u64), &mut block);
                values.iter_mut().zip(block).for_each(|(x, draw)| *x = low + draw * (high - low));
            }
        }
        Noise::Gaussian => {
            let count = (image.len() / depth) as f32;
            for c in 0..depth {
                let channel = || image.iter().skip(c).step_by(depth).copied();
                let (low, high) = limits(&mut channel());
                let mean = channel().sum::<f32>() / count;
                let deviation = (channel().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count).sqrt();
                for (i, x) in glimpse.iter_mut().skip(c).step_by(depth).enumerate() {
                    f32::normal(stream.block((c as u64) << 40 | i as u64), &mut block);
                    *x = (mean + block[0] * deviation).min(high).max(low);
                }
            }
        }
    }
}
