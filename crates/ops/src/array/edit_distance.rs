//! EditDistance: the number of edits that turn one sequence into another.

use super::index::joined;
use super::keys::keys;
use crate::sparse::coo::Coo;
use graph::Output;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use std::collections::BTreeMap;
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "EditDistance(hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, \
          truth_values: T, truth_shape: int64) -> output: float; normalize: bool = true; T: type",
    shape: distance_shape,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

/// The Levenshtein distance between sequences of two sparse tensors, each given as indices, values and shape; over the
/// length of the truth if `normalize`.
pub fn edit_distance(hypothesis: [&Output; 3], truth: [&Output; 3], normalize: bool) -> Output {
    let builder = truth[1].scope().op("EditDistance").input(hypothesis[0]).input(hypothesis[1]).input(hypothesis[2]);
    builder.input(truth[0]).input(truth[1]).input(truth[2]).attr("normalize", normalize).output()
}

fn distance_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let dims = |input: usize| query.constants[input].as_ref().and_then(|dims| dims.values::<i64>().ok());
    let (Some(a), Some(b)) = (dims(2), dims(5)) else { return Ok(vec![PartialShape::unknown()]) };
    if a.len() != b.len() || a.is_empty() {
        return Err(invalid!("The rank of hypothesis_shape and truth_shape must match and not be zero"));
    }
    let sizes: Vec<i64> = a.iter().zip(b).take(a.len() - 1).map(|(&a, &b)| a.max(b)).collect();
    Ok(vec![PartialShape::new(&sizes)])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let normalize = setup.bool("normalize")?;
    Ok(many(move |_, inputs| run(inputs, normalize)))
}

fn run(mut inputs: Inputs, normalize: bool) -> Result<Outputs> {
    let [hi, hv, hs, ti, tv, ts] = inputs.tensors(0, 6)?.try_into().map_err(|_| invalid!("6 inputs"))?;
    check([&hi, &hv, &hs], [&ti, &tv, &ts])?;
    let (hypothesis, truth) = (Coo::new(&hi, &hv, &hs)?, Coo::new(&ti, &tv, &ts)?);
    let (first, second) = (hypothesis.shape()?, truth.shape()?);
    let groups = first.rank() - 1;
    let shape: Shape = (0..groups).map(|axis| first[axis].max(second[axis])).collect();
    if shape.checked_elements()? == 0 {
        return Err(invalid!("Got output shape {shape} which has 0 elements"));
    }
    let mut names = FxHashMap::default();
    let (left, right) = (keys(&hv, 0, &mut names)?, keys(&tv, hv.elements(), &mut names)?);
    let mut sequences: BTreeMap<usize, [Vec<u64>; 2]> = BTreeMap::new();
    for (side, (coo, keys)) in [(&hypothesis, &left), (&truth, &right)].into_iter().enumerate() {
        for (index, &key) in coo.each_index().zip(keys) {
            sequences.entry(place(&index[..groups], &shape)?).or_default()[side].push(key);
        }
    }
    let mut output = Tensor::zeros::<f32>(shape)?;
    let distances = output.values_mut::<f32>()?;
    for (place, [hypothesis, truth]) in sequences {
        distances[place] = distance(&hypothesis, &truth, normalize);
    }
    Ok(outputs![output])
}

fn place(index: &[i64], shape: &Shape) -> Result<usize> {
    let mut place = 0;
    for (&at, &dim) in index.iter().zip(shape.iter()) {
        match usize::try_from(at) {
            Ok(at) if at < dim => place = place * dim + at,
            _ => return Err(invalid!("Sequence [{}] lies outside of shape {shape}", joined(index, ","))),
        }
    }
    Ok(place)
}

fn distance(hypothesis: &[u64], truth: &[u64], normalize: bool) -> f32 {
    match (hypothesis, truth) {
        ([], _) if normalize => 1.0,
        (_, []) if normalize => f32::INFINITY,
        _ if normalize => levenshtein(hypothesis, truth) as f32 / truth.len() as f32,
        _ => levenshtein(hypothesis, truth) as f32,
    }
}

/// Insertions, deletions and substitutions, one row of the table at a time.
fn levenshtein(a: &[u64], b: &[u64]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

fn check(hypothesis: [&Tensor; 3], truth: [&Tensor; 3]) -> Result<()> {
    let both = [("hypothesis", hypothesis), ("truth", truth)];
    for (part, name, rank) in [(0, "indices", 2), (1, "values", 1), (2, "shape", 1)] {
        for (side, tensors) in both {
            if tensors[part].shape().rank() != rank {
                let form = if rank == 2 { "matrix" } else { "vector" };
                return Err(invalid!("{side}_{name} should be a {form}, but got shape: {}", tensors[part].shape()));
            }
        }
    }
    for (side, [indices, values, shape]) in both {
        if values.elements() != indices.shape()[0] {
            return Err(invalid!(
                "Expected {side}_values.NumElements == #rows({side}_indices), their shapes are: {} and {}",
                values.shape(),
                indices.shape()
            ));
        }
        if shape.elements() != indices.shape()[1] {
            return Err(invalid!(
                "Expected {side}_shape.NumElements == #cols({side}_indices), their shapes are: {} and {}",
                shape.shape(),
                indices.shape()
            ));
        }
        if side == "hypothesis" && truth[2].elements() < 2 {
            return Err(invalid!(
                "Input SparseTensors must have rank at least 2, but truth_shape rank is: {}",
                truth[2].elements()
            ));
        }
    }
    if truth[2].elements() != hypothesis[2].elements() {
        return Err(invalid!(
            "Expected truth and hypothesis to have matching ranks, but their shapes are: {} and {}",
            truth[2].shape(),
            hypothesis[2].shape()
        ));
    }
    Ok(())
}
