//! Losses against numbers worked out by hand.

use super::graph;
use crate::collection::{LOSSES, nodes, total_loss};
use crate::loss::{self, Reduction};
use crate::{ScopeOps, TensorOps};
use graph::Output;
use session::Session;

fn value(loss: &Output) -> f32 {
    Session::local(loss.scope().graph()).run(loss).unwrap()
}

#[test]
fn means_of_errors() {
    let graph = graph();
    let constant = |values: [f32; 3]| graph.root().constant(values);
    let (labels, found) = (constant([1.0, 2.0, 3.0]), constant([1.0, 4.0, 6.0]));
    assert_eq!(value(&loss::mean_squared_error(&labels, &found)), 13.0 / 3.0);
    assert_eq!(value(&loss::absolute_difference(&labels, &found)), 5.0 / 3.0);
    assert_eq!(nodes(&graph, LOSSES).len(), 2);
    assert_eq!(value(&total_loss(&graph).unwrap()), 6.0);
}

#[test]
fn cross_entropy_of_equal_scores_is_the_logarithm_of_their_number() {
    let graph = graph();
    let logits = graph.root().constant([[0f32; 4]; 2]);
    let labels = graph.root().constant([1i32, 3]);
    assert!((value(&loss::sparse_softmax_cross_entropy(&labels, &logits)) - 4f32.ln()).abs() < 1e-6);
    let zero = graph.root().constant([0f32]);
    assert!((value(&loss::sigmoid_cross_entropy(&zero.ones_like(), &zero)) - 2f32.ln()).abs() < 1e-6);
}

#[test]
fn weights_choose_the_divisor() {
    let graph = graph();
    let (losses, weights) = (graph.root().constant([3f32, 5.0, 7.0]), graph.root().constant([2f32, 0.0, 1.0]));
    let of = |reduction| value(&loss::weighted(&losses, Some(&weights), reduction));
    assert_eq!(of(Reduction::Sum), 13.0);
    assert_eq!(of(Reduction::Mean), 13.0 / 3.0);
    assert_eq!(of(Reduction::MeanOfNonzero), 6.5);
}
