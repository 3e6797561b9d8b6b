//! The loss of connectionist temporal classification (Graves, 2012), and its derivative: minus the logarithm of the
//! total probability of all alignments of a label sequence with the time steps.

use super::rules::expand_last;
use graph::{Node, Output};
use math::function::Real;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "CTCLoss(inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32) -> loss: T, \
          gradient: T; preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; \
          ignore_longer_outputs_than_inputs: bool = false; T: {float, double} = float",
    shape,
    grad: Grad::Rules(rule),
    kernel,
    facts: PLAIN,
}];

fn rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let by_inputs = dy[0].as_ref().map(|loss| expand_last(loss) * op.output(1));
    Ok(grads![by_inputs, NoGradient, NoGradient, NoGradient])
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let inputs = query.inputs[0].merge(&PartialShape::of_rank(3))?;
    let batch = PartialShape::new(&[inputs.dims().map_or(-1, |dims| dims[1])]).merge(&query.inputs[3])?;
    Ok(vec![batch, inputs])
}

/// Reads the attributes of a node.
#[derive(Clone, Copy)]
struct Config {
    collapse: bool,
    merge: bool,
    ignore_longer: bool,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let config = Config {
        collapse: setup.bool("preprocess_collapse_repeated")?,
        merge: setup.bool("ctc_merge_repeated")?,
        ignore_longer: setup.bool("ignore_longer_outputs_than_inputs")?,
    };
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
        Ok(many(move |ctx, inputs| run::<T>(ctx, config, inputs)))
    })
}

/// One sequence of a batch.
struct Example {
    /// How many time steps count.
    time: usize,
    /// Labels with blanks before, between and after them; none if the loss is zero by decree.
    path: Option<Vec<usize>>,
}

fn run<T: Element + Real>(ctx: &Ctx<'_>, config: Config, mut inputs: Inputs) -> Result<Outputs> {
    let (logits, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (values, lengths) = (inputs.tensor(2)?, inputs.tensor(3)?);
    let [time, batch, classes] = checked(&logits, &indices, &values, &lengths)?;
    let labels = labels_by_batch(&indices, &values, batch)?;
    let lengths = lengths.values::<i32>()?;
    if let Some(b) = lengths.iter().position(|&length| i64::from(length) > time as i64) {
        return Err(invalid!("sequence_length({b}) <= {time}"));
    }
    if let Some(b) = lengths.iter().position(|&length| length < 0) {
        return Err(invalid!("seq_len({b}) < 0"));
    }
    let examples: Vec<Example> =
        (0..batch).map(|b| example(config, b, &labels[b], lengths[b] as usize, classes)).collect::<Result<_>>()?;
    let mut loss = Tensor::zeros::<T>([batch])?;
    let mut gradient = Tensor::zeros::<T>([time, batch, classes])?;
    let logits = logits.values::<T>()?;
    let mut answers: Vec<(f64, Vec<f64>)> = vec![(0.0, Vec::new()); batch];
    let cost = (time * classes) as f32 * 50.0;
    math::parallel::split_rows_mut(ctx.pool(), cost, &mut answers, 1, |first, answers| {
        for (i, answer) in answers.iter_mut().enumerate() {
            let example = &examples[first + i];
            let rows = (0..example.time).map(|t| &logits[(t * batch + first + i) * classes..][..classes]);
            if let Some(path) = &example.path {
                *answer = loss_and_gradient(config, path, softmax_rows(rows), classes);
            }
        }
    });
    let out = gradient.values_mut::<T>()?;
    for (b, (value, rows)) in answers.iter().enumerate() {
        loss.values_mut::<T>()?[b] = T::from_f64(*value);
        for (t, row) in rows.chunks_exact(classes).enumerate() {
            let out = &mut out[(t * batch + b) * classes..][..classes];
            out.iter_mut().zip(row).for_each(|(out, &x)| *out = T::from_f64(x));
        }
    }
    Ok(outputs![loss, gradient])
}

fn checked(logits: &Tensor, indices: &Tensor, values: &Tensor, lengths: &Tensor) -> Result<[usize; 3]> {
    let &[time, batch, classes] = logits.shape().dims() else { return Err(invalid!("inputs is not a 3-Tensor")) };
    if lengths.shape().rank() != 1 {
        return Err(invalid!("sequence_length is not a vector"));
    }
    let &[rows, cols] = indices.shape().dims() else { return Err(invalid!("labels_indices is not a matrix")) };
    if cols < 2 {
        return Err(invalid!("labels_indices second dimension must be >= 1. Received {cols}"));
    }
    if values.shape().rank() != 1 {
        return Err(invalid!("labels_values is not a vector"));
    }
    if time == 0 {
        return Err(invalid!("Max time or first dimension of input cannot be 0."));
    }
    if lengths.elements() != batch {
        return Err(invalid!(
            "len(sequence_length) != batch_size.  len(sequence_length):  {} batch_size: {batch}",
            lengths.elements()
        ));
    }
    if rows != values.elements() {
        return Err(invalid!(
            "labels_indices and labels_values must contain the same number of rows, but saw shapes: {} vs. {}",
            indices.shape(),
            values.shape()
        ));
    }
    if batch == 0 {
        return Err(invalid!("batch_size must not be 0"));
    }
    if classes == 0 {
        return Err(invalid!("inputs must have at least one class"));
    }
    Ok([time, batch, classes])
}

/// The labels of each sequence; their places must be in order.
fn labels_by_batch(indices: &Tensor, values: &Tensor, batch: usize) -> Result<Vec<Vec<i32>>> {
    let cols = indices.shape()[1];
    let places = indices.values::<i64>()?.chunks_exact(cols).map(|row| (row[0], row[1]));
    let longest = places.clone().map(|place| place.1.saturating_add(1)).max().unwrap_or(0).max(0);
    let mut labels = vec![Vec::new(); batch];
    let mut last = None;
    for (n, (place, &value)) in places.zip(values.values::<i32>()?).enumerate() {
        let (b, t) = place;
        let wrong = |what: &str| Err(invalid!("label SparseTensor is not valid: indices[{n}] = [{b},{t}] is {what}"));
        if b < 0 || b >= batch as i64 || t < 0 {
            return wrong(&format!("out of bounds: need 0 <= index < [{batch},{longest}]"));
        }
        match last {
            Some(last) if place == last => return wrong("repeated"),
            Some(last) if place < last => return wrong("out of order"),
            _ => last = Some(place),
        }
        labels[b as usize].push(value);
    }
    Ok(labels)
}

fn example(config: Config, b: usize, labels: &[i32], time: usize, classes: usize) -> Result<Example> {
    let blank = classes - 1;
    if labels.is_empty() {
        return Err(invalid!("Labels length is zero in batch {b}"));
    }
    let joined = |labels: &[i32]| labels.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let mut kept = Vec::new();
    let mut finished = false;
    for (i, &label) in labels.iter().enumerate() {
        if i > 0 && config.collapse && label == labels[i - 1] {
            continue;
        }
        if i64::from(label) >= blank as i64 {
            finished = true;
        } else if finished {
            return Err(invalid!(
                "Saw a non-null label (index >= num_classes - 1) following a null label, batch: {b} num_classes: \
                 {classes} labels: {} labels seen so far: {}",
                joined(labels),
                joined(&kept)
            ));
        } else {
            kept.push(label);
        }
    }
    if kept.iter().any(|&label| label < 0) {
        return Err(invalid!("All labels must be nonnegative integers, batch: {b} labels: {}", joined(&kept)));
    }
    if !config.ignore_longer && labels.len() > time {
        return Err(invalid!(
            "Not enough time for target transition sequence (required: {}, available: {time}){b}You can turn this \
             error into a warning by using the flag ignore_longer_outputs_than_inputs",
            labels.len()
        ));
    }
    if time == 0 || labels.len() > time {
        return Ok(Example { time, path: None });
    }
    let mut path: Vec<usize> = kept.iter().flat_map(|&label| [blank, label as usize]).collect();
    path.push(blank);
    Ok(Example { time, path: Some(path) })
}

/// The softmax of each row, one after the other.
fn softmax_rows<'a, T: Real>(rows: impl Iterator<Item = &'a [T]>) -> Vec<f64> {
    let mut all = Vec::new();
    for row in rows {
        let highest = row.iter().map(|x| x.to_f64()).fold(f64::NEG_INFINITY, f64::max);
        let start = all.len();
        all.extend(row.iter().map(|x| (x.to_f64() - highest).exp()));
        let sum: f64 = all[start..].iter().sum();
        all[start..].iter_mut().for_each(|x| *x /= sum);
    }
    all
}

/// The loss of one sequence and the derivative by its logits, given the probabilities of all classes in time.
fn loss_and_gradient(config: Config, path: &[usize], mut probabilities: Vec<f64>, classes: usize) -> (f64, Vec<f64>) {
    let time = probabilities.len() / classes;
    let logs: Vec<f64> = (0..time)
        .flat_map(|t| path.iter().map(move |&label| t * classes + label))
        .map(|at| probabilities[at].ln())
        .collect();
    let lattice = Lattice { path, blank: classes - 1, merge: config.merge, time, logs: &logs };
    let (forward, backward) = (lattice.forward(), lattice.backward());
    let states = path.len();
    let total = (0..states).fold(f64::NEG_INFINITY, |sum, u| log_add(sum, forward[u] + backward[u]));
    if total == f64::NEG_INFINITY {
        return (f64::INFINITY, probabilities);
    }
    for (t, row) in probabilities.chunks_exact_mut(classes).enumerate() {
        let mut sums = vec![f64::NEG_INFINITY; classes];
        for (u, &label) in path.iter().enumerate() {
            let at = t * states + u;
            sums[label] = log_add(sums[label], forward[at] + backward[at]);
        }
        row.iter_mut().zip(&sums).for_each(|(p, sum)| *p -= (sum - total).exp());
    }
    (-total, probabilities)
}

/// All alignments of a path with the time steps.
struct Lattice<'a> {
    path: &'a [usize],
    blank: usize,
    merge: bool,
    time: usize,
    /// Logarithm of the probability of each state of the path at each time.
    logs: &'a [f64],
}

impl Lattice<'_> {
    /// Whether a state may follow itself.
    fn stays(&self, u: usize) -> bool {
        self.merge || self.path[u] == self.blank
    }

    /// Whether the step from `u` to `u + 2`, over the blank between two labels, is allowed.
    fn skips(&self, u: usize) -> bool {
        u + 2 < self.path.len() && self.path[u] != self.blank && !(self.merge && self.path[u] == self.path[u + 2])
    }

    /// Logarithms of the probabilities of the beginnings of alignments that end in a state at a time.
    fn forward(&self) -> Vec<f64> {
        let states = self.path.len();
        let mut log = vec![f64::NEG_INFINITY; self.time * states];
        let first = states.min(2);
        log[..first].copy_from_slice(&self.logs[..first]);
        for t in 1..self.time {
            for u in 0..states {
                let before = &log[(t - 1) * states..t * states];
                let mut sum = if self.stays(u) { before[u] } else { f64::NEG_INFINITY };
                if u > 0 {
                    sum = log_add(sum, before[u - 1]);
                }
                if u > 1 && self.skips(u - 2) {
                    sum = log_add(sum, before[u - 2]);
                }
                log[t * states + u] = sum + self.logs[t * states + u];
            }
        }
        log
    }

    /// Logarithms of the probabilities of what follows after a state at a time.
    fn backward(&self) -> Vec<f64> {
        let states = self.path.len();
        let mut log = vec![f64::NEG_INFINITY; self.time * states];
        let end = log.len();
        log[end - states.min(2)..].fill(0.0);
        for t in (0..self.time - 1).rev() {
            for u in 0..states {
                let after = |u: usize| log[(t + 1) * states + u] + self.logs[(t + 1) * states + u];
                let mut sum = if self.stays(u) { after(u) } else { f64::NEG_INFINITY };
                if u + 1 < states {
                    sum = log_add(sum, after(u + 1));
                }
                if self.skips(u) {
                    sum = log_add(sum, after(u + 2));
                }
                log[t * states + u] = sum;
            }
        }
        log
    }
}

/// `ln(exp(a) + exp(b))`.
fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}
