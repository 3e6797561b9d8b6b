//! Candidate classes for sampled losses.

use super::stream::Stream;
use super::unigram::{Fixed, Learned};
use super::words::Words;
use graph::{Output, ShapeQuery};
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use status::{Result, exhausted, internal, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "UniformCandidateSampler(true_classes: int64) -> sampled_candidates: int64, true_expected_count: \
              float, sampled_expected_count: float; num_true: int >= 1; num_sampled: int >= 1; unique: bool; \
              range_max: int >= 1; seed: int = 0; seed2: int = 0; stateful",
        shape: sampled_shapes,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Sampler::uniform),
        facts: PLAIN,
    },
    Op {
        def: "LogUniformCandidateSampler(true_classes: int64) -> sampled_candidates: int64, true_expected_count: \
              float, sampled_expected_count: float; num_true: int >= 1; num_sampled: int >= 1; unique: bool; \
              range_max: int >= 1; seed: int = 0; seed2: int = 0; stateful",
        shape: sampled_shapes,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Sampler::log_uniform),
        facts: PLAIN,
    },
    Op {
        def: "LearnedUnigramCandidateSampler(true_classes: int64) -> sampled_candidates: int64, \
              true_expected_count: float, sampled_expected_count: float; num_true: int >= 1; num_sampled: int >= 1; \
              unique: bool; range_max: int >= 1; seed: int = 0; seed2: int = 0; stateful",
        shape: sampled_shapes,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Sampler::learned),
        facts: PLAIN,
    },
    Op {
        def: "ThreadUnsafeUnigramCandidateSampler(true_classes: int64) -> sampled_candidates: int64, \
              true_expected_count: float, sampled_expected_count: float; num_true: int >= 1; num_sampled: int >= 1; \
              unique: bool; range_max: int >= 1; seed: int = 0; seed2: int = 0; stateful",
        shape: sampled_shapes,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Sampler::learned),
        facts: PLAIN,
    },
    Op {
        def: "FixedUnigramCandidateSampler(true_classes: int64) -> sampled_candidates: int64, true_expected_count: \
              float, sampled_expected_count: float; num_true: int >= 1; num_sampled: int >= 1; unique: bool; \
              range_max: int >= 1; vocab_file: string = \"\"; distortion: float = 1.0; num_reserved_ids: int = 0; \
              num_shards: int >= 1 = 1; shard: int >= 0 = 0; unigrams: list(float) = []; seed: int = 0; seed2: int \
              = 0; stateful",
        shape: sampled_shapes,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Sampler::fixed),
        facts: PLAIN,
    },
    Op {
        def: "AllCandidateSampler(true_classes: int64) -> sampled_candidates: int64, true_expected_count: float, \
              sampled_expected_count: float; num_true: int >= 1; num_sampled: int >= 1; unique: bool; seed: int = \
              0; seed2: int = 0; stateful",
        shape: sampled_shapes,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Sampler::all),
        facts: PLAIN,
    },
    Op {
        def: "ComputeAccidentalHits(true_classes: int64, sampled_candidates: int64) -> indices: int32, ids: int64, \
              weights: float; num_true: int; seed: int = 0; seed2: int = 0",
        shape: hits_shapes,
        grad: Grad::Stop,
        kernel: hits_kernel,
        facts: PLAIN,
    },
];

/// Classes drawn log-uniformly from below `range_max`: the classes, and how often each true class and each drawn one
/// is to be expected.
pub fn log_uniform_candidate_sampler(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
) -> (Output, Output, Output) {
    let op = true_classes.scope().op("LogUniformCandidateSampler").input(true_classes);
    let op = op.attr("num_true", num_true).attr("num_sampled", num_sampled);
    let node = op.attr("unique", unique).attr("range_max", range_max).node();
    (node.output(0), node.output(1), node.output(2))
}

fn int_attr(query: &ShapeQuery<'_>, name: &str) -> i64 {
    match query.attr(name) {
        Ok(graph::AttrValue::Int(value)) => *value,
        _ => -1,
    }
}

fn sampled_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (sampled, columns) = (int_attr(query, "num_sampled"), int_attr(query, "num_true"));
    let rows = query.inputs[0].dim(0).map_or(-1, |rows| rows as i64);
    let sampled = PartialShape::new(&[sampled]);
    Ok(vec![sampled.clone(), PartialShape::new(&[rows, columns]), sampled])
}

fn hits_shapes(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(1); 3])
}

/// How classes are drawn.
enum Sampler {
    Uniform,
    LogUniform,
    /// By the frequency of each class among the true classes so far.
    Learned(Mutex<Learned>),
    /// By fixed weights.
    Fixed(Fixed),
    /// All classes, each once.
    All,
}

impl Sampler {
    fn uniform(_: &Setup<'_>, _: u64) -> Result<Sampler> {
        Ok(Sampler::Uniform)
    }

    fn log_uniform(_: &Setup<'_>, _: u64) -> Result<Sampler> {
        Ok(Sampler::LogUniform)
    }

    fn learned(_: &Setup<'_>, range: u64) -> Result<Sampler> {
        Ok(Sampler::Learned(Mutex::new(Learned::new(range)?)))
    }

    fn fixed(setup: &Setup<'_>, range: u64) -> Result<Sampler> {
        Ok(Sampler::Fixed(Fixed::new(setup, range)?))
    }

    fn all(_: &Setup<'_>, _: u64) -> Result<Sampler> {
        Ok(Sampler::All)
    }

    fn sample(&self, range: u64, words: &mut Words<impl Iterator<Item = u32>>) -> u64 {
        match self {
            Sampler::Uniform => words.below64(range),
            Sampler::LogUniform => ((words.double() * (range as f64).ln_1p()).exp() as u64).saturating_sub(1) % range,
            Sampler::Learned(learned) => learned.lock().sample(words),
            Sampler::Fixed(fixed) => fixed.sample(words),
            Sampler::All => 0,
        }
    }

    fn probability(&self, range: u64, class: u64) -> f32 {
        match self {
            Sampler::Uniform => (1.0 / range as f64) as f32,
            Sampler::LogUniform => {
                let class = class as f64;
                (((class + 2.0) / (class + 1.0)).ln() / (range as f64).ln_1p()) as f32
            }
            Sampler::Learned(learned) => learned.lock().probability(class),
            Sampler::Fixed(fixed) => fixed.probability(class),
            Sampler::All => 1.0,
        }
    }
}

/// The inputs of each run.
struct Request {
    num_true: usize,
    num_sampled: usize,
    unique: bool,
    range: u64,
}

fn kernel(setup: &Setup<'_>, make: fn(&Setup<'_>, u64) -> Result<Sampler>) -> Result<Kernel> {
    let count = |name: &str| setup.int(name).map(|value| usize::try_from(value).unwrap_or(0));
    let (num_true, num_sampled) = (count("num_true")?, count("num_sampled")?);
    let range = if setup.find("range_max").is_some() { count("range_max")? } else { num_sampled } as u64;
    let request = Request { num_true, num_sampled, unique: setup.bool("unique")?, range };
    let (sampler, stream) = (make(setup, range)?, Stream::of(setup)?);
    Ok(many(move |_, mut inputs| {
        let classes = inputs.tensor(0)?;
        let trues = request.check(&classes)?;
        let part = stream.take_blocks((request.num_sampled as u64).wrapping_mul(2048).div_ceil(4));
        let (sampled, tries) = request.sample(&sampler, &mut Words::new(part.words(0)))?;
        let expected = |class: u64| match sampler {
            Sampler::All => 1.0,
            _ => expected_count(sampler.probability(request.range, class), request.num_sampled, tries),
        };
        let mut of_sampled = Tensor::zeros::<f32>([sampled.len()])?;
        for (count, &class) in of_sampled.values_mut()?.iter_mut().zip(&sampled) {
            *count = expected(class as u64);
        }
        let of_true: Vec<f32> = trues.iter().map(|&class| expected(class as u64)).collect();
        if let Sampler::Learned(learned) = &sampler {
            learned.lock().learn(trues);
        }
        let of_true = Tensor::from_slice(classes.shape(), &of_true)?;
        Ok(outputs![Tensor::vector(&sampled), of_true, of_sampled])
    })
    .heavy())
}

impl Request {
    fn check<'a>(&self, classes: &'a Tensor) -> Result<&'a [i64]> {
        let &[_, columns] = classes.shape().dims() else { return Err(invalid!("true_classes must be a matrix")) };
        if columns != self.num_true {
            return Err(invalid!(
                "true_classes must have num_true columns, expected: {columns} was: {}",
                self.num_true
            ));
        }
        if self.unique && self.num_sampled as u64 > self.range {
            return Err(invalid!("Sampler's range is too small."));
        }
        let trues = classes.values::<i64>()?;
        match trues.iter().find(|&&class| !u64::try_from(class).is_ok_and(|class| class < self.range)) {
            Some(class) => Err(invalid!("`true_candidate` out of range [0, {}), received {class}", self.range)),
            None => Ok(trues),
        }
    }

    /// The classes, and how many tries they took.
    fn sample(&self, sampler: &Sampler, words: &mut Words<impl Iterator<Item = u32>>) -> Result<(Vec<i64>, usize)> {
        let count = self.num_sampled;
        let mut sampled: Vec<i64> = Vec::new();
        let out_of_memory = |_| exhausted!("OOM when allocating tensor with shape[{count}] and type int64");
        sampled.try_reserve_exact(count).map_err(out_of_memory)?;
        if matches!(sampler, Sampler::All) {
            sampled.extend(0..count as i64);
            return Ok((sampled, count));
        }
        if !self.unique {
            sampled.extend((0..count).map(|_| sampler.sample(self.range, words) as i64));
            return Ok((sampled, count));
        }
        let mut used = FxHashSet::default();
        let mut latest = 0;
        for tries in 1..=MOST_TRIES {
            let class = sampler.sample(self.range, words) as i64;
            if used.insert(class) {
                sampled.push(class);
                latest = tries;
            }
            if tries - latest > MOST_VAIN_TRIES {
                break;
            }
            if sampled.len() == self.num_sampled {
                return Ok((sampled, tries));
            }
        }
        Err(internal!("{} distinct classes were not found in {MOST_TRIES} tries, only {}", count, sampled.len()))
    }
}

/// A sampler that needs more tries is refused rather than left to run.
const MOST_TRIES: usize = 1 << 26;
/// As many tries that find no further class mean that the others have no weight.
const MOST_VAIN_TRIES: usize = 1 << 23;

/// How often a class of probability `p` is to be expected in a sample that took `tries`.
fn expected_count(p: f32, samples: usize, tries: usize) -> f32 {
    if tries == samples {
        return p * samples as f32;
    }
    -(tries as f32 * (-p).ln_1p()).exp_m1()
}

fn hits_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let num_true = setup.int("num_true")?;
    Ok(many(move |_, mut inputs| {
        let (trues, sampled) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let columns = match trues.shape().dims() {
            [_, columns] if *columns as i64 == num_true => *columns,
            _ => return Err(invalid!("true_candidates must be a batch_size * num_true matrix")),
        };
        if sampled.shape().rank() != 1 {
            return Err(invalid!(
                "sampled_candidates must be a vector, which is typically an output from CandidateSampler"
            ));
        }
        let places: FxHashMap<i64, i64> = sampled.values::<i64>()?.iter().copied().zip(0..).collect();
        let (mut indices, mut ids) = (Vec::new(), Vec::new());
        for (i, class) in trues.values::<i64>()?.iter().enumerate() {
            if let Some(&place) = places.get(class) {
                indices.push((i / columns.max(1)) as i32);
                ids.push(place);
            }
        }
        let weights = vec![f32::MIN; ids.len()];
        Ok(outputs![Tensor::vector(&indices), Tensor::vector(&ids), Tensor::vector(&weights)])
    }))
}
