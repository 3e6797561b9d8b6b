//! The random streams of kernels, and the shapes they read.

use math::philox::{Draw, Philox, RESERVED_BLOCKS};
use op::Setup;
use op::shapes::integers;
use parking_lot::Mutex;
use status::{Result, invalid};
use std::hash::{BuildHasher, RandomState};
use tensor::{DType, Shape, Tensor};

/// The stream of a stateful kernel: every run takes the part after the last run's.
pub(crate) struct Stream(Mutex<Philox>);

impl Stream {
    /// The stream of attributes `seed` and `seed2`; a random one if both are zero, as in TensorFlow.
    pub fn of(setup: &Setup<'_>) -> Result<Stream> {
        let (seed, seed2) = match (setup.int("seed")?, setup.int("seed2")?) {
            (0, 0) => (entropy(), entropy()),
            (seed, seed2) => (seed as u64, seed2 as u64),
        };
        Ok(Stream(Mutex::new(Philox::from_seeds(seed, seed2))))
    }

    /// Reserves the next `blocks` blocks of the stream.
    pub fn take_blocks(&self, blocks: u64) -> Philox {
        let mut stream = self.0.lock();
        let part = *stream;
        stream.skip(blocks);
        part
    }

    /// Reserves the part of the stream for a result of this many numbers.
    pub fn take(&self, outputs: usize) -> Philox {
        self.take_blocks((outputs as u64).wrapping_mul(RESERVED_BLOCKS))
    }
}

/// An unpredictable number.
pub(crate) fn entropy() -> u64 {
    RandomState::new().hash_one(0u64)
}

/// The stream that a tensor of two seeds means.
pub(crate) fn from_seed(seed: &Tensor) -> Result<Philox> {
    if seed.shape().dims() != [2] {
        return Err(invalid!("seed must have shape [2], not {}", seed.shape()));
    }
    match integers(seed)?[..] {
        [a, b] => Ok(Philox::stateless([a as u64, b as u64])),
        _ => Err(invalid!("seed must have shape [2], not {}", seed.shape())),
    }
}

/// The stream that key, counter and algorithm mean.
pub(crate) fn from_key(key: &Tensor, counter: &Tensor, algorithm: &Tensor, first: usize) -> Result<Philox> {
    let algorithm = match algorithm.shape().rank() {
        0 => algorithm.to_scalar::<i32>()?,
        _ => return Err(invalid!("input {first} (0-based) must have shape [], not {}", algorithm.shape())),
    };
    if key.shape().dims() != [1] {
        return Err(invalid!(
            "key must have shape [1], not {}. (Note that batched keys are not supported yet.)",
            key.shape()
        ));
    }
    if counter.shape().rank() != 1 || counter.shape()[0] < 2 {
        return Err(invalid!(
            "counter must be a vector with length at least 2; got shape: {}. (Note that batched counters are not \
             supported yet.)",
            counter.shape()
        ));
    }
    if algorithm != PHILOX as i32 && algorithm != AUTO as i32 {
        return Err(invalid!("Unsupported algorithm id: {algorithm}"));
    }
    let counter = counter.values::<u64>()?;
    Ok(Philox::new(key.values::<u64>()?[0], u128::from(counter[0]) | u128::from(counter[1]) << 64))
}

/// The code of Philox, where an op has an algorithm as an input.
pub(crate) const PHILOX: i64 = 1;
/// The number that leaves the choice of algorithm to the device.
pub(crate) const AUTO: i64 = 3;

/// A shape tensor as a shape.
pub(crate) fn shape_of(tensor: &Tensor) -> Result<Shape> {
    if tensor.shape().rank() != 1 {
        return Err(invalid!("shape must be a vector of {{int32,int64}}, got shape {}", tensor.shape()));
    }
    if !matches!(tensor.dtype(), DType::I32 | DType::I64) {
        return Err(invalid!("shape must be a vector of {{int32,int64}}."));
    }
    let dims = integers(tensor)?;
    if let Some(negative) = dims.iter().find(|&&dim| dim < 0) {
        return Err(invalid!("Dimension {negative} must be >= 0"));
    }
    let shape: Shape = dims.iter().map(|&dim| dim as usize).collect();
    match shape.checked_elements() {
        Ok(_) => Shape::checked(&dims),
        Err(_) => Err(invalid!("Shape {shape} would have more than 2**63 - 1 elements")),
    }
}

/// Doubles one by one, for samplers with rejection; each kind has a buffer of its own over one stream.
pub(crate) struct Source {
    stream: Philox,
    next: u64,
    uniforms: Buffer,
    normals: Buffer,
}

#[derive(Default)]
struct Buffer {
    values: [f64; 2],
    left: usize,
}

impl Source {
    /// The doubles of a stream from this block on.
    pub fn new(stream: &Philox, block: u64) -> Source {
        Source { stream: *stream, next: block, uniforms: Buffer::default(), normals: Buffer::default() }
    }

    /// A uniform number from zero to below one.
    pub fn uniform(&mut self) -> f64 {
        take(&mut self.uniforms, &self.stream, &mut self.next, f64::uniform)
    }

    /// A number of the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        take(&mut self.normals, &self.stream, &mut self.next, f64::normal)
    }
}

/// The last value of a buffer, filled from the next block if it is empty.
fn take(buffer: &mut Buffer, stream: &Philox, next: &mut u64, draw: fn([u32; 4], &mut [f64])) -> f64 {
    if buffer.left == 0 {
        draw(stream.block(*next), &mut buffer.values);
        *next = next.wrapping_add(1);
        buffer.left = 2;
    }
    buffer.left -= 1;
    buffer.values[buffer.left]
}
