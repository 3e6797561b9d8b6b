//! The order in which a step looks at its examples.

use super::Options;
use super::examples::Examples;
use super::model::Model;
use crate::random::stream::entropy;
use crate::random::unigram::Fixed;
use crate::random::words::Words;
use math::philox::{self, Philox};
use status::Result;

/// All examples in random order; with adaptive sampling those that can improve most come first, some of them repeatedly.
pub(super) fn order(
    options: &Options,
    model: &Model<'_>,
    examples: &Examples<'_>,
    state: &[f32],
) -> Result<Vec<usize>> {
    let random = Philox::from_seeds(entropy(), entropy());
    if options.adaptive {
        return adaptive(options, model, examples, state, &random);
    }
    let mut order: Vec<usize> = (0..examples.len()).collect();
    if order.len() > 1 {
        philox::shuffle(&random, order.len(), |i, j| order.swap(i, j));
    }
    Ok(order)
}

/// Examples are drawn by how much they can improve; one that was drawn n times already is kept once in `10^n` draws.
fn adaptive(
    options: &Options,
    model: &Model<'_>,
    examples: &Examples<'_>,
    state: &[f32],
    random: &Philox,
) -> Result<Vec<usize>> {
    let count = examples.len();
    let chances = (0..count).map(|example| chance(options, model, examples, state, example));
    let chances: Vec<f32> = chances.collect::<Result<_>>()?;
    let (sampler, mut words) = (Fixed::of_weights(chances.clone()), Words::new(random.words(0)));
    let (mut order, mut drawn, mut rejected) = (Vec::with_capacity(count), vec![0; count], 0);
    while order.len() < count && rejected < count {
        let example = sampler.sample(&mut words) as usize;
        if words.double() > 0.1f64.powi(drawn[example]) {
            rejected += 1;
            continue;
        }
        drawn[example] += 1;
        order.push(example);
    }
    let mut rest: Vec<usize> = (0..count).filter(|&example| drawn[example] == 0).collect();
    rest.sort_by(|&a, &b| chances[b].total_cmp(&chances[a]));
    order.extend(rest.into_iter().take(count - order.len()));
    Ok(order)
}

/// How much an example can improve: how far its dual variable is from the slope of its loss.
fn chance(options: &Options, model: &Model<'_>, examples: &Examples<'_>, state: &[f32], example: usize) -> Result<f32> {
    let label = options.loss.label(examples.labels[example])?;
    let (predicted, _) = options.predictions(model, examples, example);
    let residue = f64::from(state[example * 4]) + options.loss.slope(label, predicted);
    let size = (examples.norms[example] + options.regularization.l2() * options.loss.smoothness()).sqrt();
    Ok((f64::from(examples.weights[example]) * size * residue.abs()) as f32)
}
