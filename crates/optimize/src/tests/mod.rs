//! Optimizers against TensorFlow's own, gradients against differences, averages and schedules.

mod averages;
mod by_name;
mod derivatives;
mod losses;
mod schedules;
mod training_nodes;

use graph::Graph;
use tensor::Tensor;

/// An empty graph of all ops.
fn graph() -> Graph {
    Graph::with_ops(ops::registry())
}

/// Numbers without symmetry, the same as in `fixtures/losses.py`.
fn values(shape: &[usize], scale: f64) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (1..=count).map(|i| (scale * (i as f64 * 2.3).sin()) as f32).collect();
    Tensor::from_slice(shape, &numbers).unwrap()
}
