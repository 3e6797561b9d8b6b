//! Optimizers against TensorFlow's own, gradients against differences, and what is built around them.

mod coordination;
mod derivatives;
mod device_setter;
mod file_writer;
mod losses;
mod schedules;
mod sync_replicas;
mod variables;

use graph::Graph;
use tensor::Tensor;

fn graph() -> Graph {
    Graph::with_ops(ops::registry())
}

/// Numbers without symmetry, the same as in `fixtures/losses.py`.
fn values(shape: &[usize], scale: f64) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (1..=count).map(|i| (scale * (i as f64 * 2.3).sin()) as f32).collect();
    Tensor::from_slice(shape, &numbers).unwrap()
}
