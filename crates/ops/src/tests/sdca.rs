//! Dual coordinate ascent on several examples, whose order is random: after enough steps the primal and the dual loss are
//! equal, whatever the order was.

use super::evaluate::{Evaluation, constant, graph};
use tensor::Tensor;

const L2: f64 = 0.5;
const LABELS: [f32; 4] = [1., 0., 1., 1.];
const FEATURES: [f32; 8] = [1., 0.5, -0.3, 2., 0.7, -1., 0.2, 0.1];

struct State {
    weights: Vec<f32>,
    examples: Vec<f32>,
}

/// One step: all examples share a sparse feature and have two dense ones.
fn step(state: &State, loss: &str, adaptive: bool) -> State {
    let g = graph();
    let vector = |values: &[f32]| constant(&g, Tensor::vector(values));
    let matrix = |values: &[f32]| constant(&g, Tensor::from_slice([4, values.len() / 4], values).unwrap());
    let indices = |values: &[i64]| constant(&g, Tensor::vector(values));
    let op = g.root().op("SdcaOptimizerV2").inputs([&indices(&[0, 1, 2, 3])]).inputs([&indices(&[9; 4])]).inputs([]);
    let op = op.inputs([&matrix(&FEATURES)]).input(&vector(&[1.; 4])).input(&vector(&LABELS));
    let op = op.inputs([&indices(&[9])]).inputs([&vector(&state.weights[..1])]).inputs([&vector(&state.weights[1..])]);
    let op = op.input(&matrix(&state.examples)).attr("loss_type", loss).attr("adaptive", adaptive);
    let op = op.attr("num_sparse_features", 1).attr("num_sparse_features_with_values", 0);
    let op = op.attr("num_dense_features", 1).attr("l1", 0f32).attr("l2", L2 as f32);
    let node = op.attr("num_loss_partitions", 1).attr("num_inner_iterations", 1).node();
    let run = Evaluation::new();
    let read = |index: usize| run.value(&node.output(index)).unwrap().values::<f32>().unwrap().to_vec();
    let deltas = [read(1), read(2)].concat();
    State {
        weights: state.weights.iter().zip(deltas).map(|(weight, delta)| weight + delta).collect(),
        examples: read(0),
    }
}

/// The primal loss minus the dual one.
fn gap(state: &State) -> f64 {
    let losses: f64 = state.examples.chunks(4).map(|example| f64::from(example[1]) + f64::from(example[2])).sum();
    losses + L2 * state.weights.iter().map(|&weight| f64::from(weight).powi(2)).sum::<f64>()
}

#[test]
fn steps_close_the_gap_between_primal_and_dual_loss() {
    for loss in ["logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"] {
        for adaptive in [false, true] {
            let mut state = State { weights: vec![0.; 3], examples: vec![0.; 16] };
            for _ in 0..60 {
                state = step(&state, loss, adaptive);
            }
            assert!(gap(&state).abs() < 0.01, "{loss} {adaptive}: {}", gap(&state));
        }
    }
}
