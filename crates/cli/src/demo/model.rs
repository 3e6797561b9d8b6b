//! The model of the demo: one hidden layer between pixels and digits.

use super::digits::PIXELS;
use flowgrid::prelude::*;

/// Units of the hidden layer.
const HIDDEN: usize = 64;

/// What a step is given and asked for.
pub struct Model {
    pub images: Output,
    pub labels: Output,
    pub loss: Output,
    pub accuracy: Output,
    pub train: Node,
}

impl Model {
    /// Adds the model to a graph.
    pub fn build(graph: &Graph, seed: i64, rate: f64) -> Result<Model> {
        let scope = graph.root();
        let images = scope.placeholder(DType::F32, &[-1, PIXELS as i64]);
        let labels = scope.placeholder(DType::I32, &[-1]);
        let variables = VariableScope::new(&scope);
        let layer = |units, number| Dense::new(units).kernel(Initializer::glorot_uniform().seeded(seed + number));
        let hidden = layer(HIDDEN, 0).activation(Formula::relu).apply(&variables.enter("hidden"), &images);
        let logits = layer(10, 1).apply(&variables.enter("logits"), &hidden);
        let loss = loss::sparse_softmax_cross_entropy(&labels, &logits);
        let right = logits.argmax(1).cast(DType::I32).equals(&labels);
        let accuracy = right.cast(DType::F32).mean();
        let train = Optimizer::new(Adam::new(rate)).minimize(&loss)?;
        Ok(Model { images, labels, loss, accuracy, train })
    }
}
