//! The model of the demo: one hidden layer between pixels and digits.

use super::digits::PIXELS;
use flowgrid::prelude::*;
use flowgrid::{Task, gradients, train};

/// Units of the hidden layer.
const HIDDEN: usize = 64;

/// What a step is given and asked for.
pub struct Model {
    pub images: Output,
    pub labels: Output,
    pub loss: Output,
    pub accuracy: Output,
    /// The gradients of the variables, where the variables are.
    pub gradients: Vec<Output>,
    pub train: Node,
}

impl Model {
    /// Adds the model to a graph: layers in turn on `servers`, everything else on `task`.
    pub fn build(graph: &Graph, task: Option<&Task>, servers: &[Task], seed: i64, rate: f64) -> Result<Model> {
        let root = graph.root();
        let scope = task.map_or(root.clone(), |task| root.on(&task.to_string()));
        let images = scope.placeholder(DType::F32, &[-1, PIXELS as i64]);
        let labels = scope.placeholder(DType::I32, &[-1]);
        let place = |layer: usize| match servers {
            [] => scope.clone(),
            servers => root.on(&servers[layer % servers.len()].to_string()),
        };
        let layer = |units, number| Dense::new(units).kernel(Initializer::glorot_uniform().seeded(seed + number));
        let hidden = VariableScope::new(&place(0)).enter("hidden");
        let hidden = layer(HIDDEN, 0).activation(Formula::relu).apply(&hidden, &images);
        let logits = layer(10, 1).apply(&VariableScope::new(&place(1)).enter("logits"), &hidden);
        let loss = loss::sparse_softmax_cross_entropy(&labels, &logits);
        let right = logits.argmax(1).cast(DType::I32).equals(&labels);
        let accuracy = right.cast(DType::F32).mean();
        let train = Optimizer::new(Adam::new(rate)).minimize(&loss)?;
        let gradients = placed_gradients(graph, &loss)?;
        Ok(Model { images, labels, loss, accuracy, gradients, train })
    }
}

/// The gradients as the parameter servers get them.
fn placed_gradients(graph: &Graph, loss: &Output) -> Result<Vec<Output>> {
    let variables = trainable_variables(graph);
    let values: Vec<&Output> = variables.iter().map(Variable::value).collect();
    let found = gradients(&[loss], &values)?;
    let placed = variables.iter().zip(found).filter_map(|(variable, gradient)| {
        let gradient = train::clip::dense(&gradient?);
        Some(gradient.scope().beside(variable.handle().node()).op("Identity").input(&gradient).output())
    });
    Ok(placed.collect())
}
