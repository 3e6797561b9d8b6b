//! RandomIndexShuffle: the place of an index in a random permutation, without the permutation itself.
//!
//! The permutation is a block cipher (Simon, Beaulieu et al., 2013) that is applied until the result is in range. It
//! has a few rounds and words of any size: it shuffles well, and hides nothing.

use graph::{Output, ShapeQuery};
use op::shapes::integers;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RandomIndexShuffle(index: dtype, seed: Tseed, max_index: dtype) -> output: dtype; rounds: int = 4; \
          dtype: {int32, uint32, int64, uint64}; Tseed: {int32, uint32, int64, uint64}",
    shape,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

/// More rounds than this do not shuffle any better.
const MOST_ROUNDS: usize = 1024;
/// Shorter words shuffle badly.
const LEAST_BITS: u32 = 8;

/// The place of `index`, an integer, in a random permutation of the integers up to `max_index`.
pub fn random_index_shuffle(index: &Output, seed: &Output, max_index: &Output) -> Output {
    index.scope().op("RandomIndexShuffle").input(index).input(seed).input(max_index).output()
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let [index, seed, limit] = [0, 1, 2].map(|input| &query.inputs[input]);
    check_ranks(index, seed, limit)?;
    let ranks = (index.rank(), seed.rank(), limit.rank());
    if ranks == (Some(0), Some(1), Some(0)) {
        return Ok(vec![PartialShape::scalar()]);
    }
    if ranks.0 != Some(1) && ranks.1 != Some(2) && ranks.2 != Some(1) {
        return Ok(vec![PartialShape::unknown()]);
    }
    let count = |shape: &PartialShape, rank: usize| if shape.rank() == Some(rank) { shape.dim(0) } else { None };
    let count = count(index, 1).or(count(seed, 2)).or(count(limit, 1));
    Ok(vec![PartialShape::new(&[count.map_or(-1, |count| count as i64)])])
}

fn check_ranks(index: &PartialShape, seed: &PartialShape, limit: &PartialShape) -> Result<()> {
    for shape in [index, limit] {
        if shape.rank().is_some_and(|rank| rank > 1) {
            return Err(invalid!("Shape must be at most rank 1 but is rank {}", shape.rank().unwrap_or_default()));
        }
    }
    match seed.dims() {
        Some([]) => Err(invalid!("Shape must be at least rank 1 but is rank 0")),
        Some([3 | -1] | [_, 3 | -1]) | None => Ok(()),
        Some([_] | [_, _]) => Err(invalid!("Seed must have shape [3] or [n, 3] but got {seed}.")),
        Some(dims) => Err(invalid!("Shape must be at most rank 2 but is rank {}", dims.len())),
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let rounds = usize::try_from(setup.int("rounds")?).ok();
    let rounds = rounds.filter(|&rounds| (4..=MOST_ROUNDS).contains(&rounds) && rounds.is_multiple_of(2));
    let rounds = rounds.ok_or_else(|| invalid!("rounds must be even and in [4, {MOST_ROUNDS}]"))?;
    Ok(many(move |_, inputs| run(inputs, rounds)).heavy())
}

fn run(mut inputs: Inputs, rounds: usize) -> Result<Outputs> {
    let (index, seed, limit) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let count = index.elements().max(limit.elements()).max(seed.elements() / 3);
    check_shapes(&index, &seed, &limit, count)?;
    let all_scalar = index.shape().rank() == 0 && seed.shape().rank() == 1 && limit.shape().rank() == 0;
    let shape = if all_scalar { Shape::scalar() } else { Shape::from([count]) };
    let (signed, dtype) = (index.dtype() != DType::U64, index.dtype());
    let (index, seed, limit) = (integers(&index)?, integers(&seed)?, integers(&limit)?);
    let at = |values: &[i64], i: usize| if values.len() == 1 { values[0] } else { values[i] };
    let each = |i: usize| {
        let (index, limit) = (at(&index, i), at(&limit, i));
        if signed {
            check(index.into(), limit.into())?;
        } else {
            check((index as u64).into(), (limit as u64).into())?;
        }
        let seed = if seed.len() == 3 { &seed[..] } else { &seed[i * 3..i * 3 + 3] };
        Ok(shuffled(index as u64, [seed[0], seed[1], seed[2]].map(|word| word as u32), limit as u64, rounds))
    };
    let found = (0..count).map(each).collect::<Result<Vec<u64>>>()?;
    Ok(outputs![narrowed(shape, dtype, &found)?])
}

fn check_shapes(index: &Tensor, seed: &Tensor, limit: &Tensor, count: usize) -> Result<()> {
    let fits = |dims: &[usize]| dims.is_empty() || dims == [count];
    if !fits(index.shape()) {
        return Err(invalid!("Index bust be a scalar or vector."));
    }
    if seed.shape().dims() != [3] && seed.shape().dims() != [count, 3] {
        return Err(invalid!(
            "Seed must be a vector of size [3] or a matrix of size [{count}, 3] but got {}.",
            seed.shape()
        ));
    }
    if !fits(limit.shape()) {
        return Err(invalid!(
            "Maxval must be a scalar or a vector of the same size as index but got {}",
            limit.shape()
        ));
    }
    Ok(())
}

fn check(index: i128, limit: i128) -> Result<()> {
    if index < 0 {
        return Err(invalid!("index must be >= 0 but was {index}"));
    }
    if limit < 0 {
        return Err(invalid!("max_index must be >= 0 but was {limit}"));
    }
    match limit >= index {
        true => Ok(()),
        false => Err(invalid!("max_index must be >= index, but {limit} < {index}")),
    }
}

fn narrowed(shape: Shape, dtype: DType, values: &[u64]) -> Result<Tensor> {
    match dtype {
        DType::I32 => Tensor::from_slice(shape, &values.iter().map(|&value| value as i32).collect::<Vec<_>>()),
        DType::U32 => Tensor::from_slice(shape, &values.iter().map(|&value| value as u32).collect::<Vec<_>>()),
        DType::I64 => Tensor::from_slice(shape, &values.iter().map(|&value| value as i64).collect::<Vec<_>>()),
        _ => Tensor::from_slice(shape, values),
    }
}

/// The place of `index` in the random permutation of the numbers up to `limit` that follows from `key`. `index` must not
/// be above `limit`; `rounds` is even and at least 4.
// Encrypts until the result is in range. The walk ends because the cipher is a permutation.
pub fn shuffled(index: u64, key: [u32; 3], limit: u64, rounds: usize) -> u64 {
    if limit == 0 {
        return 0;
    }
    // The logarithm in double precision, as in TensorFlow.
    let bits = (limit as f64).log2().ceil() as u32;
    let cipher = Cipher::new(bits.div_ceil(2).clamp(LEAST_BITS, 32), key, rounds);
    let mut place = index;
    loop {
        place = cipher.encrypt(place);
        if place <= limit {
            return place;
        }
    }
}

/// Simon with words of `bits` bits.
struct Cipher {
    bits: u32,
    keys: Vec<u64>,
}

impl Cipher {
    fn new(bits: u32, key: [u32; 3], rounds: usize) -> Cipher {
        let mut cipher = Cipher { bits, keys: Vec::new() };
        cipher.keys = key.iter().map(|&word| u64::from(word) & cipher.mask()).collect();
        let mut sequence = 0x7369_f885_192c_0ef5 & cipher.mask();
        for round in 3..rounds {
            let (old, last) = (cipher.keys[round - 3], cipher.keys[round - 1]);
            let constant = 0xffff_fffc & cipher.mask() ^ sequence & 1;
            let rotated = cipher.left(last, bits - 3) ^ cipher.left(last, bits - 4);
            cipher.keys.push(constant ^ old ^ rotated);
            sequence >>= 1;
        }
        cipher
    }

    fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    /// A word rotated to the left.
    fn left(&self, word: u64, by: u32) -> u64 {
        (word << by | word >> (self.bits - by)) & self.mask()
    }

    fn mixed(&self, word: u64) -> u64 {
        self.left(word, 1) & self.left(word, 8) ^ self.left(word, 2)
    }

    fn encrypt(&self, value: u64) -> u64 {
        let (mut left, mut right) = (value >> self.bits & self.mask(), value & self.mask());
        for keys in self.keys.chunks_exact(2) {
            left ^= self.mixed(right) ^ keys[0];
            right ^= self.mixed(left) ^ keys[1];
        }
        left << self.bits | right
    }
}
