//! Random numbers: Philox4x32-10 (Salmon et al., 2011), with TensorFlow's use of its stream, bit for bit.
//!
//! A value is a function of the generator and the value's index alone, so threads do not change results.

use half::{bf16, f16};

use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::elementwise::Element;
use crate::function::{Number, f32_to_bf16, f32_to_f16};
use crate::parallel::split_rows_mut;

/// Blocks a run sets aside for each of its outputs; the next run of the same kernel starts after them.
pub const RESERVED_BLOCKS: u64 = 256;

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const KEY_STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
/// Blocks computed side by side.
const LANES: usize = 8;

/// A place in a stream of random blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    counter: u128,
    key: [u32; 2],
}

impl Philox {
    /// The stream with this key, at this counter.
    pub fn new(key: u64, counter: u128) -> Philox {
        Philox { counter, key: [key as u32, (key >> 32) as u32] }
    }

    /// The stream of a kernel with the attributes `seed` and `seed2`, which are not both zero.
    pub fn from_seeds(seed: u64, seed2: u64) -> Philox {
        Philox::new(seed, u128::from(seed2) << 64)
    }

    /// The stream of a stateless kernel: the two seeds are scrambled into key and counter.
    pub fn stateless(seeds: [u64; 2]) -> Philox {
        let counter = u128::from(seeds[0]) | u128::from(seeds[1]) << 64;
        let [m0, m1, m2, m3] = Philox::new(0x0246_1e29_3ec8_f720, counter).block(0);
        let key = u64::from(m0) | u64::from(m1) << 32;
        Philox::new(key, (u128::from(m2) | u128::from(m3) << 32) << 64)
    }

    /// The key of the stream.
    pub fn key(&self) -> u64 {
        u64::from(self.key[0]) | u64::from(self.key[1]) << 32
    }

    /// The place in the stream.
    pub fn counter(&self) -> u128 {
        self.counter
    }

    /// The same stream, this many blocks later.
    pub fn skipped(&self, blocks: u64) -> Philox {
        Philox { counter: self.counter.wrapping_add(u128::from(blocks)), key: self.key }
    }

    /// Goes this many blocks ahead.
    pub fn skip(&mut self, blocks: u64) {
        *self = self.skipped(blocks);
    }

    /// The block this many blocks later.
    pub fn block(&self, index: u64) -> [u32; 4] {
        self.blocks::<1>(index)[0]
    }

    /// Neighbouring blocks from `index` on; the plain twin is one block at a time.
    #[inline(always)]
    fn blocks<const N: usize>(&self, index: u64) -> [[u32; 4]; N] {
        let mut words = [[0u32; N]; 4];
        for lane in 0..N {
            let counter = self.counter.wrapping_add(u128::from(index) + lane as u128);
            for (i, word) in words.iter_mut().enumerate() {
                word[lane] = (counter >> (32 * i)) as u32;
            }
        }
        let mut key = self.key;
        for _ in 0..10 {
            words = round(words, key);
            key = [key[0].wrapping_add(KEY_STEPS[0]), key[1].wrapping_add(KEY_STEPS[1])];
        }
        std::array::from_fn(|lane| std::array::from_fn(|i| words[i][lane]))
    }

    /// The words of the stream one by one, from block `start` on.
    pub fn words(&self, start: u64) -> impl Iterator<Item = u32> + use<> {
        let stream = self.skipped(start);
        (0..).flat_map(move |index| stream.block(index))
    }
}

#[inline(always)]
fn round<const N: usize>(words: [[u32; N]; 4], key: [u32; 2]) -> [[u32; N]; 4] {
    let mut next = [[0; N]; 4];
    for lane in 0..N {
        let even = u64::from(MULTIPLIERS[0]) * u64::from(words[0][lane]);
        let odd = u64::from(MULTIPLIERS[1]) * u64::from(words[2][lane]);
        next[0][lane] = (odd >> 32) as u32 ^ words[1][lane] ^ key[0];
        next[1][lane] = odd as u32;
        next[2][lane] = (even >> 32) as u32 ^ words[3][lane] ^ key[1];
        next[3][lane] = even as u32;
    }
    next
}

/// A float that can be drawn.
pub trait Draw: Element {
    /// How many a block yields.
    const PER_BLOCK: usize;

    /// Uniform numbers from zero to below one, written to the first `PER_BLOCK` places.
    fn uniform(block: [u32; 4], out: &mut [Self]);
    /// Normal numbers, written likewise.
    fn normal(block: [u32; 4], out: &mut [Self]);
    /// A pair of normal numbers from successive words, and whether each is within two standard deviations.
    fn normal_pair(words: &mut dyn Iterator<Item = u32>) -> [(Self, bool); 2];
}

#[inline(always)]
fn uniform_f32(x: u32) -> f32 {
    f32::from_bits(0x3f80_0000 | (x & 0x7f_ffff)) - 1.0
}

#[inline(always)]
fn uniform_f64(high: u32, low: u32) -> f64 {
    f64::from_bits(1023 << 52 | u64::from(high & 0xf_ffff) << 32 | u64::from(low)) - 1.0
}

/// Two normal numbers from two uniform ones; the system's logarithm, sine and cosine are those TensorFlow calls.
fn box_muller_f32(x0: u32, x1: u32) -> [f32; 2] {
    let u = uniform_f32(x0).max(1.0e-7);
    let angle = (2.0 * std::f64::consts::PI * f64::from(uniform_f32(x1))) as f32;
    let radius = (-2.0 * u.ln()).sqrt();
    [angle.sin() * radius, angle.cos() * radius]
}

fn box_muller_f64(words: [u32; 4]) -> [f64; 2] {
    let u = uniform_f64(words[0], words[1]).max(1.0e-7);
    let angle = 2.0 * std::f64::consts::PI * uniform_f64(words[2], words[3]);
    let radius = (-2.0 * u.ln()).sqrt();
    [angle.sin() * radius, angle.cos() * radius]
}

macro_rules! draw {
    ($t:ty, $uniform:expr, $narrow:expr) => {
        impl Draw for $t {
            const PER_BLOCK: usize = 4;

            #[inline(always)]
            fn uniform(block: [u32; 4], out: &mut [$t]) {
                for (out, x) in out.iter_mut().zip(block) {
                    *out = $uniform(x);
                }
            }

            fn normal(block: [u32; 4], out: &mut [$t]) {
                let ([a, b], [c, d]) = (box_muller_f32(block[0], block[1]), box_muller_f32(block[2], block[3]));
                for (out, x) in out.iter_mut().zip([a, b, c, d]) {
                    *out = $narrow(x);
                }
            }

            fn normal_pair(words: &mut dyn Iterator<Item = u32>) -> [($t, bool); 2] {
                let mut word = || words.next().unwrap_or_default();
                let (x0, x1) = (word(), word());
                box_muller_f32(x0, x1).map(|x| ($narrow(x), x.abs() < 2.0))
            }
        }
    };
}

draw!(f32, uniform_f32, |x: f32| x);
draw!(f16, |x: u32| f16::from_bits(15 << 10 | (x & 0x3ff) as u16).sub(f16::ONE), f32_to_f16);
draw!(bf16, |x: u32| bf16::from_bits(127 << 7 | (x & 0x7f) as u16).sub(bf16::ONE), f32_to_bf16);

impl Draw for f64 {
    const PER_BLOCK: usize = 2;

    #[inline(always)]
    fn uniform([a, b, c, d]: [u32; 4], out: &mut [f64]) {
        for (out, x) in out.iter_mut().zip([uniform_f64(a, b), uniform_f64(c, d)]) {
            *out = x;
        }
    }

    fn normal(block: [u32; 4], out: &mut [f64]) {
        for (out, x) in out.iter_mut().zip(box_muller_f64(block)) {
            *out = x;
        }
    }

    fn normal_pair(words: &mut dyn Iterator<Item = u32>) -> [(f64, bool); 2] {
        let block = std::array::from_fn(|_| words.next().unwrap_or_default());
        box_muller_f64(block).map(|x| (x, x.abs() < 2.0))
    }
}

/// An integer that can be drawn.
pub trait DrawInteger: Element {
    /// How many a block yields.
    const PER_BLOCK: usize;

    /// Integers over the whole range of the type, written to the first `PER_BLOCK` places.
    fn whole(block: [u32; 4], out: &mut [Self]);
    /// `low + x mod (high - low)`, without sign.
    fn within(self, low: Self, high: Self) -> Self;
}

macro_rules! draw_integer {
    ($($t:ty, $unsigned:ty, $per_block:expr;)*) => {$(
        impl DrawInteger for $t {
            const PER_BLOCK: usize = $per_block;

            #[inline(always)]
            fn whole(block: [u32; 4], out: &mut [$t]) {
                for (i, out) in out.iter_mut().enumerate().take($per_block) {
                    let word = |j: usize| u64::from(block[(i * (4 / $per_block) + j) % 4]);
                    *out = if $per_block == 4 { word(0) as $t } else { (word(0) | word(1) << 32) as $t };
                }
            }

            #[inline(always)]
            fn within(self, low: $t, high: $t) -> $t {
                let range = (high as $unsigned).wrapping_sub(low as $unsigned);
                (low as $unsigned).wrapping_add(self as $unsigned % range) as $t
            }
        }
    )*};
}

draw_integer!(i32, u32, 4; u32, u32, 4; i64, u64, 2; u64, u64, 2;);

/// Uniform numbers from zero to below one.
pub fn uniform<T: Draw>(pool: &Pool, stream: &Philox, dst: &mut [T]) {
    fill(pool, 1.0, stream, T::PER_BLOCK, dst, T::uniform);
}

/// Numbers of the standard normal distribution.
pub fn normal<T: Draw>(pool: &Pool, stream: &Philox, dst: &mut [T]) {
    fill(pool, 10.0, stream, T::PER_BLOCK, dst, T::normal);
}

/// Uniform integers from `low` to below `high`, which is larger.
pub fn uniform_integers<T: DrawInteger>(pool: &Pool, stream: &Philox, low: T, high: T, dst: &mut [T]) {
    fill(pool, 2.0, stream, T::PER_BLOCK, dst, move |block: [u32; 4], out: &mut [T]| {
        T::whole(block, out);
        for x in out {
            *x = x.within(low, high);
        }
    });
}

/// Integers over the whole range of the type.
pub fn whole_integers<T: DrawInteger>(pool: &Pool, stream: &Philox, dst: &mut [T]) {
    fill(pool, 1.0, stream, T::PER_BLOCK, dst, T::whole);
}

/// Numbers of the standard normal distribution within two standard deviations. Groups of outputs have parts of the
/// stream of their own, so that rejected numbers do not move those of other groups.
pub fn truncated_normal<T: Draw>(pool: &Pool, stream: &Philox, dst: &mut [T]) {
    let group = T::PER_BLOCK;
    let stride = group as u64 * RESERVED_BLOCKS / 4;
    split_rows_mut(pool, 15.0 * group as f32, dst, group, |first, dst| {
        for (i, dst) in dst.chunks_mut(group).enumerate() {
            let mut words = stream.words((first + i) as u64 * stride);
            let mut accepted = std::iter::from_fn(|| Some(T::normal_pair(&mut words)))
                .flatten()
                .filter_map(|(x, within)| within.then_some(x));
            dst.iter_mut().for_each(|out| *out = accepted.next().unwrap_or(*out));
        }
    });
}

/// Calls `swap(i, j)` so that what it swaps gets into random order; answers how many blocks that took.
pub fn shuffle(stream: &Philox, len: usize, mut swap: impl FnMut(usize, usize)) -> u64 {
    let mut words = stream.words(0);
    let swaps = len.saturating_sub(1);
    for i in 0..swaps {
        let word = words.next().unwrap_or_default() as usize;
        swap(i, i + word % (len - i));
    }
    swaps.div_ceil(4) as u64
}

fn fill<T: Element>(
    pool: &Pool,
    cost: f32,
    stream: &Philox,
    per_block: usize,
    dst: &mut [T],
    draw: impl Fn([u32; 4], &mut [T]) + Copy + Send + Sync,
) {
    split_rows_mut(pool, cost * per_block as f32, dst, per_block, |first, dst| {
        vectorize(Fill { stream: stream.skipped(first as u64), per_block, dst, draw });
    });
}

struct Fill<'a, T, F> {
    stream: Philox,
    per_block: usize,
    dst: &'a mut [T],
    draw: F,
}

impl<T, F: Fn([u32; 4], &mut [T])> Loop for Fill<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (i, dst) in self.dst.chunks_mut(LANES * self.per_block).enumerate() {
            let blocks = self.stream.blocks::<LANES>((i * LANES) as u64);
            for (block, dst) in blocks.into_iter().zip(dst.chunks_mut(self.per_block)) {
                (self.draw)(block, dst);
            }
        }
    }
}
