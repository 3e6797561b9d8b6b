//! Word vectors by skip-grams (Mikolov et al., 2013): examples from a text, and steps with negative samples.

use crate::checkpoint::systems;
use crate::random::stream::entropy;
use crate::random::unigram::Fixed;
use crate::random::words::Words;
use math::philox::Philox;
use op::shapes::{none, unknown};
use op::{Ctx, Grad, Inputs, Kernel, Op, PLAIN, Setup, Variable, many, outputs};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Skipgram() -> vocab_word: string, vocab_freq: int32, words_per_epoch: int64, current_epoch: int32, \
              total_words_processed: int64, examples: int32, labels: int32; filename: string; batch_size: int; \
              window_size: int = 5; min_count: int = 5; subsample: float = 0.001; stateful",
        shape: unknown,
        grad: Grad::Stop,
        kernel: skipgram_kernel,
        facts: PLAIN.removed_in(19, MOVED),
    },
    Op {
        def: "NegTrain(w_in: Ref(float), w_out: Ref(float), examples: int32, labels: int32, lr: float); \
              vocab_count: list(int); num_negative_samples: int; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: train_kernel,
        facts: PLAIN.removed_in(19, MOVED),
    },
];

const MOVED: &str = "Moving word2vec into tensorflow_models/tutorials and deprecating its ops here as a result";

/// Words that are read at once; windows do not reach beyond them.
const SENTENCE: usize = 1000;

/// Pairs that are made at once. The counters of an epoch include all of them, as in TensorFlow.
const AHEAD: usize = 3000;

/// The words of a text as numbers by falling frequency; 0 stands for all rare ones.
struct Text {
    words: Vec<u32>,
    vocabulary: Tensor,
    frequencies: Vec<i32>,
}

impl Text {
    fn new(text: &[u8], least: i64) -> Result<Text> {
        let mut counts: FxHashMap<&[u8], i32> = FxHashMap::default();
        split(text).for_each(|word| *counts.entry(word).or_default() += 1);
        let mut frequent: Vec<(&[u8], i32)> =
            counts.into_iter().filter(|&(_, count)| i64::from(count) >= least).collect();
        frequent.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let numbers: FxHashMap<&[u8], u32> = frequent.iter().map(|&(word, _)| word).zip(1..).collect();
        let words: Vec<u32> = split(text).map(|word| numbers.get(word).copied().unwrap_or(0)).collect();
        let rare = words.iter().filter(|&&word| word == 0).count() as i32;
        let names = std::iter::once(Bytes::from_static(b"UNK"));
        let names: Vec<Bytes> = names.chain(frequent.iter().map(|(word, _)| Bytes::copy_from_slice(word))).collect();
        let frequencies = std::iter::once(rare).chain(frequent.iter().map(|&(_, count)| count)).collect();
        Ok(Text { words, vocabulary: Tensor::from_strings([names.len()], names)?, frequencies })
    }
}

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    text.split(space).filter(|word| !word.is_empty())
}

/// Pairs of a word and a word near it, from the text over and over.
struct Skipgrams {
    text: Text,
    window: u32,
    subsample: f32,
    words: Words<Box<dyn Iterator<Item = u32> + Send>>,
    epoch: i32,
    processed: i64,
    /// The next word of the text.
    place: usize,
    sentence: Vec<u32>,
    /// The word of the current pairs in the sentence.
    center: usize,
    /// The labels that are left for it.
    labels: std::ops::Range<usize>,
    /// Pairs that were made, and how many of them were taken.
    ahead: Vec<(i32, i32)>,
    taken: usize,
}

impl Skipgrams {
    fn new(text: Text, window: u32, subsample: f32) -> Skipgrams {
        let random = Philox::from_seeds(entropy(), entropy());
        let place = text.words.len();
        let mut skipgrams = Skipgrams {
            text,
            window,
            subsample,
            words: Words::new(Box::new(random.words(0))),
            epoch: -1,
            processed: 0,
            place,
            sentence: Vec::new(),
            center: SENTENCE,
            labels: 0..0,
            ahead: Vec::new(),
            taken: 0,
        };
        skipgrams.refill();
        skipgrams
    }

    fn refill(&mut self) {
        self.taken = 0;
        self.ahead = (0..AHEAD).map(|_| self.make()).collect();
    }

    fn next(&mut self) -> (i32, i32) {
        let next = self.ahead[self.taken];
        self.taken += 1;
        if self.taken >= AHEAD {
            self.refill();
        }
        next
    }

    fn make(&mut self) -> (i32, i32) {
        loop {
            match self.labels.next() {
                None => self.advance(),
                Some(label) if label == self.center => {}
                Some(label) => return (self.sentence[self.center] as i32, self.sentence[label] as i32),
            }
        }
    }

    /// Goes to the next word, whose window has a random size.
    fn advance(&mut self) {
        self.processed += 1;
        self.center += 1;
        if self.center >= SENTENCE {
            self.center = 0;
            self.read_sentence();
        }
        let reach = 1 + self.words.below(self.window) as usize;
        self.labels = self.center.saturating_sub(reach)..SENTENCE.min(self.center + reach + 1);
    }

    fn read_sentence(&mut self) {
        self.sentence.clear();
        while self.sentence.len() < SENTENCE {
            if self.place >= self.text.words.len() {
                self.epoch = self.epoch.wrapping_add(1);
                self.place = 0;
            }
            let word = self.text.words[self.place];
            self.place += 1;
            if self.keeps(word) {
                self.sentence.push(word);
            }
        }
    }

    /// Frequent words are left out at random.
    fn keeps(&mut self, word: u32) -> bool {
        if !(self.subsample > 0.0) {
            return true;
        }
        let frequency = self.text.frequencies[word as usize] as f32;
        let threshold = self.subsample * self.text.words.len() as f32;
        let chance = ((frequency / threshold).sqrt() + 1.0) * threshold / frequency;
        !(self.words.float() > chance)
    }
}

fn skipgram_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (file, batch, window) = (setup.string("filename")?, setup.int("batch_size")?, setup.int("window_size")?);
    let text = Text::new(&systems(setup)?.read(&file)?, setup.int("min_count")?)?;
    let count = text.words.len();
    if (count as i64) < window.saturating_mul(10) || count == 0 {
        return Err(invalid!("The text file {file} contains too little data: {count} words"));
    }
    let window = u32::try_from(window).ok().filter(|&window| window > 0);
    let window = window.ok_or_else(|| invalid!("window_size must be positive"))?;
    let batch = usize::try_from(batch).map_err(|_| invalid!("batch_size must not be negative, got {batch}"))?;
    let (vocabulary, frequencies) = (text.vocabulary.clone(), Tensor::vector(&text.frequencies));
    let state = Mutex::new(Skipgrams::new(text, window, setup.float("subsample")?));
    Ok(many(move |_, _| {
        let (mut examples, mut labels) = (Tensor::zeros::<i32>([batch])?, Tensor::zeros::<i32>([batch])?);
        let mut state = state.lock();
        for (example, label) in examples.values_mut::<i32>()?.iter_mut().zip(labels.values_mut::<i32>()?) {
            (*example, *label) = state.next();
        }
        let (words, epoch) = (Tensor::scalar(count as i64), Tensor::scalar(state.epoch));
        let processed = Tensor::scalar(state.processed);
        Ok(outputs![vocabulary.clone(), frequencies.clone(), words, epoch, processed, examples, labels])
    })
    .heavy())
}

/// The number of negative samples after which a cancelled step ends.
const PATIENCE: usize = 1 << 12;

/// A step of the training: the classes by how often they are drawn as negative samples.
struct Training {
    sampler: Fixed,
    negatives: usize,
    random: Mutex<Philox>,
}

fn train_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let weights = setup.ints("vocab_count")?.iter().map(|&count| (count as f32).powf(0.75)).collect();
    let training = Training {
        sampler: Fixed::of_weights(weights),
        negatives: usize::try_from(setup.int("num_negative_samples")?).unwrap_or(0),
        random: Mutex::new(Philox::from_seeds(entropy(), entropy())),
    };
    Ok(many(move |ctx, inputs| training.run(ctx, inputs).map(|()| outputs![])).heavy())
}

impl Training {
    fn run(&self, ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<()> {
        let variables = [inputs.variable(0)?, inputs.variable(1)?];
        let (examples, labels, rate) = (inputs.tensor(2)?, inputs.tensor(3)?, inputs.tensor(4)?);
        both(&variables, |w_in, w_out| {
            let &[words, width] = w_in.shape().dims() else { return Err(invalid!("Must be a matrix")) };
            if w_in.shape() != w_out.shape() {
                return Err(invalid!("w_in.shape == w_out.shape"));
            }
            if examples.shape().rank() != 1 {
                return Err(invalid!("Must be a vector"));
            }
            if examples.shape() != labels.shape() {
                return Err(invalid!("examples.shape == labels.shape"));
            }
            if rate.shape().rank() != 0 {
                return Err(invalid!("Must be a scalar"));
            }
            if words != self.sampler.len() {
                return Err(invalid!("vocab_size mismatches: {words} vs. {}", self.sampler.len()));
            }
            let (examples, labels) = (numbers(&examples, words)?, numbers(&labels, words)?);
            let pairs = examples.into_iter().zip(labels);
            self.train(ctx, [w_in.values_mut()?, w_out.values_mut()?], width, rate.to_scalar()?, pairs)
        })
    }

    fn train(
        &self,
        ctx: &Ctx<'_>,
        [w_in, w_out]: [&mut [f32]; 2],
        width: usize,
        rate: f32,
        pairs: impl Iterator<Item = (usize, usize)>,
    ) -> Result<()> {
        let random = {
            let mut random = self.random.lock();
            let part = *random;
            random.skip(1 << 40); // more than a step needs
            part
        };
        let mut words = Words::new(random.words(0));
        let mut change = vec![0.0; width];
        for (example, label) in pairs {
            let v_in = &mut w_in[example * width..][..width];
            change.fill(0.0);
            learn(v_in, &mut w_out[label * width..][..width], &mut change, rate, true);
            for negative in 0..self.negatives {
                if negative % PATIENCE == PATIENCE - 1 {
                    ctx.env.cancel.reason().map_or(Ok(()), Err)?;
                }
                let sample = self.sampler.sample(&mut words) as usize;
                if sample != label {
                    learn(v_in, &mut w_out[sample * width..][..width], &mut change, rate, false);
                }
            }
            v_in.iter_mut().zip(&change).for_each(|(value, change)| *value += change);
        }
        Ok(())
    }
}

/// Moves `v_out` towards `v_in`, or away from it, and adds the opposite change to `change`.
fn learn(v_in: &[f32], v_out: &mut [f32], change: &mut [f32], rate: f32, towards: bool) {
    let dot: f32 = v_in.iter().zip(&*v_out).map(|(a, b)| a * b).sum();
    let slope = if towards { 1.0 / (dot.exp() + 1.0) } else { -1.0 / ((-dot).exp() + 1.0) };
    for ((change, v_out), v_in) in change.iter_mut().zip(v_out).zip(v_in) {
        *change += *v_out * (slope * rate);
        *v_out += v_in * (slope * rate);
    }
}

fn numbers(tensor: &Tensor, words: usize) -> Result<Vec<usize>> {
    let number = |&word: &i32| {
        let number = usize::try_from(word).ok().filter(|&number| number < words);
        number.ok_or_else(|| invalid!("word {word} is not in [0, {words})"))
    };
    tensor.values::<i32>()?.iter().map(number).collect()
}

/// Changes two variables, which are locked in the order of their addresses: another op may have them in the other order.
fn both(
    [first, second]: &[Arc<Variable>; 2],
    change: impl FnOnce(&mut Tensor, &mut Tensor) -> Result<()>,
) -> Result<()> {
    if Arc::ptr_eq(first, second) {
        return Err(invalid!("w_in and w_out are the same variable"));
    }
    if Arc::as_ptr(first) < Arc::as_ptr(second) {
        first.update(|first| second.update(|second| change(first, second)))
    } else {
        second.update(|second| first.update(|first| change(first, second)))
    }
}
