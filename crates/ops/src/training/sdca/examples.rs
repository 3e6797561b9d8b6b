//! The examples of a step: their features, labels and weights.

use super::model::{Model, Regularization};
use crate::array::index::joined;
use rustc_hash::FxHashSet;
use status::{Result, invalid};
use std::ops::Range;
use tensor::Tensor;

/// The sparse features of one group, sorted by example.
struct Sparse<'a> {
    /// The features of each example.
    ranges: Vec<Range<usize>>,
    /// The place of each feature among the weights.
    places: Vec<usize>,
    values: Option<&'a [f32]>,
}

impl Sparse<'_> {
    /// The places of an example's features, and their values.
    fn features(&self, example: usize) -> impl Iterator<Item = (usize, f64)> {
        let value = |feature: usize| self.values.map_or(1.0, |values| f64::from(values[feature]));
        self.ranges[example].clone().map(move |feature| (self.places[feature], value(feature)))
    }
}

/// The dense features of one group, `width` of each example.
struct Dense<'a> {
    values: &'a [f32],
    width: usize,
}

impl Dense<'_> {
    fn row(&self, example: usize) -> &[f32] {
        &self.values[example * self.width..][..self.width]
    }
}

/// All examples of a step, checked against the model.
pub(super) struct Examples<'a> {
    pub weights: &'a [f32],
    pub labels: &'a [f32],
    /// The squared norm of each example.
    pub norms: Vec<f64>,
    sparse: Vec<Sparse<'a>>,
    dense: Vec<Dense<'a>>,
}

impl<'a> Examples<'a> {
    /// `features` are the examples of sparse features, the features themselves, their values, and dense features.
    pub fn new(
        features: &'a [Vec<Tensor>; 4],
        weights: &'a Tensor,
        labels: &'a Tensor,
        model: &Model<'_>,
    ) -> Result<Examples<'a>> {
        let (weights, labels) = (weights.values::<f32>()?, labels.values::<f32>()?);
        let count = weights.len();
        if labels.len() != count {
            return Err(invalid!("Expected {count} example labels but got {}", labels.len()));
        }
        let [of, indices, values, dense] = features;
        check_ranks(dense)?;
        let sparse = (0..of.len()).map(|group| sparse(group, [&of[group], &indices[group]], values, count, model));
        let sparse = sparse.collect::<Result<Vec<_>>>()?;
        let dense = (0..dense.len()).map(|group| self::dense(group, &dense[group], count, model));
        let mut examples =
            Examples { weights, labels, norms: Vec::new(), sparse, dense: dense.collect::<Result<_>>()? };
        examples.norms = (0..count).map(|example| examples.norm(example)).collect::<Result<_>>()?;
        Ok(examples)
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    fn norm(&self, example: usize) -> Result<f64> {
        let mut sum = 0.0;
        let mut seen = FxHashSet::default();
        for group in &self.sparse {
            seen.clear();
            for (place, value) in group.features(example) {
                if !seen.insert(place) {
                    return Err(invalid!("Duplicate index in sparse vector."));
                }
                sum += value * value;
            }
        }
        for group in &self.dense {
            sum += f64::from(group.row(example).iter().map(|value| value * value).sum::<f32>());
        }
        Ok(sum)
    }

    /// What the model predicts for an example with the changes of its weights, `partitions` times, and without.
    pub fn predictions(
        &self,
        model: &Model<'_>,
        example: usize,
        partitions: f32,
        regularization: &Regularization,
    ) -> (f64, f64) {
        let (mut now, mut before) = (0.0, 0.0);
        for (group, weights) in self.sparse.iter().zip(&model.sparse) {
            for (place, value) in group.features(example) {
                let weight = weights.values[place];
                now += value * regularization.shrink((weight + weights.deltas[place] * partitions).into());
                before += value * regularization.shrink(weight.into());
            }
        }
        for (group, weights) in self.dense.iter().zip(&model.dense) {
            let (mut sum, mut sum_before) = (0.0, 0.0);
            for ((value, weight), delta) in group.row(example).iter().zip(weights.values).zip(&weights.deltas) {
                sum += value * regularization.shrink_single(weight + delta * partitions);
                sum_before += value * regularization.shrink_single(*weight);
            }
            now += f64::from(sum);
            before += f64::from(sum_before);
        }
        (now, before)
    }

    /// Adds `factor` times the features of an example to the changes of the weights.
    pub fn add_to(&self, model: &mut Model<'_>, example: usize, factor: f64) {
        for (group, weights) in self.sparse.iter().zip(&mut model.sparse) {
            for (place, value) in group.features(example) {
                weights.deltas[place] = (f64::from(weights.deltas[place]) + value * factor) as f32;
            }
        }
        for (group, weights) in self.dense.iter().zip(&mut model.dense) {
            for (delta, value) in weights.deltas.iter_mut().zip(group.row(example)) {
                *delta += value * factor as f32;
            }
        }
    }
}

fn check_ranks(dense: &[Tensor]) -> Result<()> {
    match dense.iter().position(|features| features.shape().rank() != 2) {
        Some(group) => {
            Err(invalid!("Dense features at index {group} must be rank 2 but is rank {}", dense[group].shape().rank()))
        }
        None => Ok(()),
    }
}

fn sparse<'a>(
    group: usize,
    [of, indices]: [&Tensor; 2],
    values: &'a [Tensor],
    count: usize,
    model: &Model<'_>,
) -> Result<Sparse<'a>> {
    let (of, indices) = (of.values::<i64>()?, indices.values::<i64>()?);
    if of.len() != indices.len() {
        return Err(invalid!(
            "Found mismatched example_indices and feature_indices [{}] vs [{}]",
            joined(&of[..of.len().min(16)], " "),
            joined(&indices[..indices.len().min(16)], " ")
        ));
    }
    let values = values.get(group).map(Tensor::values::<f32>).transpose()?;
    if values.is_some_and(|values| values.len() < indices.len()) {
        return Err(invalid!("sparse_feature_values has too few values for {} features", indices.len()));
    }
    let ranges = ranges(of, count);
    let used = ranges.last().map_or(0, |range| range.end);
    let places = indices[..used].iter().map(|&feature| model.place(group, feature)).collect::<Result<_>>()?;
    Ok(Sparse { ranges, places, values })
}

/// The features of each example; features are sorted by example, and those after a gap in the order do not count.
fn ranges(of: &[i64], count: usize) -> Vec<Range<usize>> {
    let mut end = 0;
    let range = |example: usize| {
        let start = end;
        end += of[start..].iter().take_while(|&&of| of == example as i64).count();
        start..end
    };
    (0..count).map(range).collect()
}

fn dense<'a>(group: usize, features: &'a Tensor, count: usize, model: &Model<'_>) -> Result<Dense<'a>> {
    let (rows, width) = (features.shape()[0], features.shape()[1]);
    let weights = model.dense.get(group).map_or(0, |weights| weights.values.len());
    if width == 0 || width > weights {
        return Err(invalid!("More dense features than we have parameters for: {width}"));
    }
    if width != weights || rows < count {
        return Err(invalid!(
            "Dense features at index {group} have shape {} for {count} examples and {weights} weights",
            features.shape()
        ));
    }
    Ok(Dense { values: features.values()?, width })
}
