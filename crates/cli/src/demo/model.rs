//! The model of the demo: a network with one hidden layer.

use super::digits::PIXELS;
use flowgrid::prelude::*;
use flowgrid::{Task, train};

/// Units of the hidden layer.
const HIDDEN: usize = 64;

/// The inputs and outputs of the model.
pub struct Model {
    pub images: Output,
    pub labels: Output,
    pub loss: Output,
    pub accuracy: Output,
    pub train: Node,
    /// The number of training steps.
    pub step: Variable,
}

impl Model {
    /// Adds the model to a graph. Variables are placed on `servers` parameter servers in turn, everything else on `task`.
    pub fn build(graph: &Graph, task: Option<&Task>, servers: usize, seed: i64, rate: f64) -> Result<Model> {
        let scope = match task {
            Some(task) => {
                let worker = task.to_string();
                replica_device_setter(servers).worker_device(&worker).on(&graph.root().on(&worker))
            }
            None => graph.root(),
        };
        let images = scope.placeholder(DType::F32, &[-1, PIXELS as i64]);
        let labels = scope.placeholder(DType::I32, &[-1]);
        let variables = VariableScope::new(&scope);
        let layer = |units, number| Dense::new(units).kernel(Initializer::glorot_uniform().seeded(seed + number));
        let hidden = layer(HIDDEN, 0).activation(TensorOps::relu).apply(&variables.enter("hidden"), &images);
        let logits = layer(10, 1).apply(&variables.enter("logits"), &hidden);
        let loss = loss::sparse_softmax_cross_entropy(&labels, &logits);
        let correct = logits.argmax(1).cast(DType::I32).equals(&labels);
        let accuracy = correct.cast(DType::F32).mean();
        let step = train::create_global_step_in(&scope)?;
        let train = Optimizer::new(Adam::new(rate)).minimize_with(&loss, MinimizeOptions::new().step(&step))?;
        Ok(Model { images, labels, loss, accuracy, train, step })
    }
}
