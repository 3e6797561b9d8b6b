//! Decodes label sequences from the class scores of connectionist temporal classification: greedily, or by beam
//! search.

use math::function::Real;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many};
use rustc_hash::FxHashMap;
use status::{Result, failed_precondition, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CTCGreedyDecoder(inputs: T, sequence_length: int32) -> decoded_indices: int64, decoded_values: int64, \
              decoded_shape: int64, log_probability: T; merge_repeated: bool = false; blank_index: int = -1; \
              T: {float, double} = float",
        shape,
        grad: Grad::Stop,
        kernel: greedy_kernel,
        facts: PLAIN,
    },
    Op {
        def: "CTCBeamSearchDecoder(inputs: T, sequence_length: int32) -> decoded_indices: top_paths * int64, \
              decoded_values: top_paths * int64, decoded_shape: top_paths * int64, log_probability: T; \
              beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; T: {float, double} = float",
        shape,
        grad: Grad::Stop,
        kernel: beam_kernel,
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let inputs = query.inputs[0].merge(&PartialShape::of_rank(3))?;
    let paths = (query.outputs - 1) / 3;
    let mut shapes = vec![PartialShape::new(&[-1, 2]); paths];
    shapes.extend(vec![PartialShape::of_rank(1); paths]);
    shapes.extend(vec![PartialShape::new(&[2]); paths]);
    shapes.push(PartialShape::new(&[inputs.dims().map_or(-1, |dims| dims[1]), paths as i64]));
    Ok(shapes)
}

/// Scores of all classes: `[time, batch, classes]`.
struct Scores<'a, T> {
    values: &'a [T],
    batch: usize,
    classes: usize,
}

impl<T: Real> Scores<'_, T> {
    fn row(&self, t: usize, b: usize) -> impl Iterator<Item = f64> + Clone {
        self.values[(t * self.batch + b) * self.classes..][..self.classes].iter().map(|x| x.to_f64())
    }
}

fn greedy_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (merge, blank) = (setup.bool("merge_repeated")?, setup.int("blank_index")?);
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
        Ok(many(move |_, inputs| run_greedy::<T>(inputs, merge, blank)))
    })
}

fn beam_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let merge = setup.bool("merge_repeated")?;
    let size = |name: &str| -> Result<usize> {
        usize::try_from(setup.int(name)?).map_err(|_| invalid!("{name} must be positive"))
    };
    let (width, paths) = (size("beam_width")?, size("top_paths")?);
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
        Ok(many(move |_, inputs| run_beam::<T>(inputs, merge, width, paths)).heavy())
    })
}

/// The inputs, and how many time steps of each sequence count.
fn checked(inputs: &mut Inputs) -> Result<(Tensor, [usize; 3], Vec<usize>)> {
    let (scores, lengths) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let &[time, batch, classes] = scores.shape().dims() else { return Err(invalid!("inputs is not a 3-Tensor")) };
    if scores.elements() == 0 {
        return Err(invalid!("inputs must not be empty"));
    }
    if lengths.shape().rank() != 1 {
        return Err(invalid!("sequence_length is not a vector"));
    }
    if lengths.elements() != batch {
        return Err(failed_precondition!(
            "len(sequence_length) != batch_size.  len(sequence_length):  {} batch_size: {batch}",
            lengths.elements()
        ));
    }
    let lengths = lengths.values::<i32>()?;
    if let Some(b) = lengths.iter().position(|&length| i64::from(length) > time as i64) {
        return Err(failed_precondition!("sequence_length({b}) <= {time}"));
    }
    let lengths = lengths.iter().map(|&length| usize::try_from(length).unwrap_or(0)).collect();
    Ok((scores, [time, batch, classes], lengths))
}

fn run_greedy<T: Element + Real>(mut inputs: Inputs, merge: bool, blank: i64) -> Result<Outputs> {
    let (scores, [_, batch, classes], lengths) = checked(&mut inputs)?;
    let index = if blank < 0 { classes as i64 + blank } else { blank };
    if index < 0 || index >= classes as i64 {
        return Err(invalid!("blank_index expected to be between -{classes} and {} but was {blank}", classes - 1));
    }
    let scores = Scores { values: scores.values::<T>()?, batch, classes };
    let mut found = vec![vec![Vec::new(); batch]];
    let mut log = vec![T::ZERO; batch];
    for (b, &length) in lengths.iter().enumerate() {
        let mut last = None;
        for t in 0..length {
            let (class, score) = first_highest(scores.row(t, b));
            log[b] = log[b].sub(T::from_f64(score));
            if class as i64 != index && !(merge && last == Some(class)) {
                found[0][b].push(class as i64);
            }
            last = Some(class);
        }
    }
    decoded(found, Tensor::from_slice([batch, 1], &log)?)
}

fn first_highest(row: impl Iterator<Item = f64>) -> (usize, f64) {
    let mut best = (0, f64::NEG_INFINITY);
    for (i, x) in row.enumerate() {
        if i == 0 || x > best.1 {
            best = (i, x);
        }
    }
    best
}

/// Paths as sparse tensors of `[batch, time]`: all indices, then all values, then all shapes.
fn decoded(paths: Vec<Vec<Vec<i64>>>, log_probability: Tensor) -> Result<Outputs> {
    let (mut indices, mut values, mut shapes) = (Outputs::new(), Outputs::new(), Outputs::new());
    for path in &paths {
        let places = path.iter().enumerate().flat_map(|(b, labels)| (0..labels.len()).map(move |t| (b, t)));
        let places: Vec<i64> = places.flat_map(|(b, t)| [b as i64, t as i64]).collect();
        let longest = path.iter().map(Vec::len).max().unwrap_or(0);
        indices.push(Tensor::from_slice([places.len() / 2, 2], &places)?.into());
        values.push(Tensor::vector(&path.concat()).into());
        shapes.push(Tensor::vector(&[path.len() as i64, longest as i64]).into());
    }
    indices.extend(values);
    indices.extend(shapes);
    indices.push(log_probability.into());
    Ok(indices)
}

fn run_beam<T: Element + Real>(mut inputs: Inputs, merge: bool, width: usize, paths: usize) -> Result<Outputs> {
    let (scores, [_, batch, classes], lengths) = checked(&mut inputs)?;
    if paths > width {
        return Err(invalid!("requested more paths than the beam width."));
    }
    let scores = Scores { values: scores.values::<T>()?, batch, classes };
    let mut found = vec![vec![Vec::new(); batch]; paths];
    let mut log = Vec::with_capacity(batch * paths);
    for (b, &length) in lengths.iter().enumerate() {
        let mut search = Search::new(width);
        for t in 0..length {
            search.step(&log_softmax(scores.row(t, b)));
        }
        let beams = search.sorted();
        if paths > beams.len() {
            return Err(invalid!("Less leaves in the beam search than requested."));
        }
        for (p, &beam) in beams[..paths].iter().enumerate() {
            found[p][b] = search.labels(beam, merge);
            log.push(T::from_f64(search.beams[beam].now.total));
        }
    }
    decoded(found, Tensor::from_slice([batch, paths], &log)?)
}

fn log_softmax(row: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let highest = row.clone().fold(f64::NEG_INFINITY, f64::max);
    let offset = highest + row.clone().map(|x| (x - highest).exp()).sum::<f64>().ln();
    row.map(|x| x - offset).collect()
}

const NEVER: f64 = f64::NEG_INFINITY;

/// Logarithms of the probability of a prefix: in all, of alignments that end in a blank, and in its last label.
#[derive(Clone, Copy)]
struct Probability {
    total: f64,
    blank: f64,
    label: f64,
}

const IMPOSSIBLE: Probability = Probability { total: NEVER, blank: NEVER, label: NEVER };

/// A prefix: another prefix with a label more.
struct Beam {
    parent: Option<usize>,
    label: usize,
    children: FxHashMap<usize, usize>,
    before: Probability,
    now: Probability,
}

/// A beam search over prefixes.
struct Search {
    width: usize,
    beams: Vec<Beam>,
    leaves: Vec<usize>,
}

impl Search {
    fn new(width: usize) -> Search {
        let now = Probability { total: 0.0, blank: 0.0, label: NEVER };
        let root = Beam { parent: None, label: usize::MAX, children: FxHashMap::default(), before: IMPOSSIBLE, now };
        Search { width, beams: vec![root], leaves: vec![0] }
    }

    /// The leaves, the most probable first.
    fn sorted(&self) -> Vec<usize> {
        let mut leaves = self.leaves.clone();
        let total = |&beam: &usize| self.beams[beam].now.total;
        leaves.sort_by(|a, b| total(b).total_cmp(&total(a)));
        leaves
    }

    /// Advances one time step, with the logarithms of the probabilities of all classes; the last class is the blank.
    fn step(&mut self, log: &[f64]) {
        let branches = self.sorted();
        for &beam in &branches {
            self.beams[beam].before = self.beams[beam].now;
        }
        for &beam in &branches {
            self.lengthen(beam, log);
        }
        self.leaves.clone_from(&branches);
        for &beam in &branches {
            self.grow(beam, &log[..log.len() - 1]);
        }
    }

    /// The same prefix after one more time step.
    fn lengthen(&mut self, beam: usize, log: &[f64]) {
        let Beam { parent, label, before, mut now, .. } = self.beams[beam];
        if let Some(parent) = parent {
            let parent = &self.beams[parent];
            if parent.now.total != NEVER {
                now.label = log_add(now.label, parent.before.followed_by(parent.label == label));
            }
            now.label += log[label];
        }
        now.blank = before.total + log[log.len() - 1];
        now.total = log_add(now.blank, now.label);
        self.beams[beam].now = now;
    }

    /// Prefixes with one label more, if they are probable enough.
    fn grow(&mut self, beam: usize, log: &[f64]) {
        let before = self.beams[beam].before;
        if !self.is_candidate(before.total) {
            return;
        }
        for (label, &log) in log.iter().enumerate() {
            let known = self.beams[beam].children.get(&label).copied();
            if known.is_some_and(|child| self.beams[child].now.total != NEVER) {
                continue;
            }
            let total = log + before.followed_by(self.beams[beam].label == label);
            if !self.is_candidate(total) {
                continue;
            }
            if self.leaves.len() == self.width {
                self.drop_worst();
            }
            let child = known.unwrap_or_else(|| self.child(beam, label));
            self.beams[child].before = IMPOSSIBLE;
            self.beams[child].now = Probability { total, blank: NEVER, label: total };
            self.leaves.push(child);
        }
    }

    fn child(&mut self, parent: usize, label: usize) -> usize {
        let child = self.beams.len();
        let children = FxHashMap::default();
        self.beams.push(Beam { parent: Some(parent), label, children, before: IMPOSSIBLE, now: IMPOSSIBLE });
        self.beams[parent].children.insert(label, child);
        child
    }

    /// The place among the leaves of the least probable one.
    fn worst(&self) -> Option<usize> {
        let total = |place: &usize| self.beams[self.leaves[*place]].now.total;
        (0..self.leaves.len()).min_by(|a, b| total(a).total_cmp(&total(b)))
    }

    fn drop_worst(&mut self) {
        if let Some(place) = self.worst() {
            let beam = self.leaves.swap_remove(place);
            self.beams[beam].now = IMPOSSIBLE;
        }
    }

    fn is_candidate(&self, total: f64) -> bool {
        let better = || self.worst().is_some_and(|place| total > self.beams[self.leaves[place]].now.total);
        total > NEVER && (self.leaves.len() < self.width || better())
    }

    /// The labels of a prefix.
    fn labels(&self, mut beam: usize, merge: bool) -> Vec<i64> {
        let mut labels = Vec::new();
        let mut last = None;
        while let Some(parent) = self.beams[beam].parent {
            let label = self.beams[beam].label;
            if !merge || last != Some(label) {
                labels.push(label as i64);
            }
            last = Some(label);
            beam = parent;
        }
        labels.reverse();
        labels
    }
}

impl Probability {
    /// The probability of the paths that a further label can extend: between two equal labels there must be a blank.
    fn followed_by(&self, same: bool) -> f64 {
        if same { self.blank } else { self.total }
    }
}

/// `ln(exp(a) + exp(b))`.
fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == NEVER { high } else { high + (low - high).exp().ln_1p() }
}
