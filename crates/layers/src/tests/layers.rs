//! Layers one by one and in a row.

use super::{graph, names};
use crate::collection::{UPDATE_OPS, global_variables, global_variables_initializer, nodes, trainable_variables};
use crate::{
    AvgPool2d, BatchNorm, Conv2d, Dense, Dropout, Initializer, Layer, MaxPool2d, Phase, Reuse, ScopeOps, Sequential,
    TensorOps, VariableScope, flatten,
};
use graph::{Graph, Output};
use session::Session;
use tensor::{DType, Tensor};

/// What a layer makes of a value, in a graph of its own.
fn applied(layer: &impl Layer, phase: Phase, x: impl Into<Tensor>) -> Vec<f32> {
    let graph = graph();
    let y = layer.forward(&VariableScope::new(&graph.root()), &graph.root().constant(x), phase);
    graph.check().unwrap();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    session.run::<Tensor>(&y).unwrap().values::<f32>().unwrap().to_vec()
}

fn image() -> Tensor {
    Tensor::from_slice([1, 2, 2, 1], &[1f32, 2.0, 3.0, 6.0]).unwrap()
}

#[test]
fn dense_multiplies_and_adds() {
    let layer = Dense::new(2).kernel(Initializer::Value([[1f32, 2.0], [3.0, -4.0]].into()));
    let layer = layer.bias(Some(Initializer::Value([0.5f32, 0.0].into())));
    assert_eq!(applied(&layer, Phase::Training, [[1f32, 2.0]]), [7.5, -6.0]);
    assert_eq!(applied(&layer.activation(TensorOps::relu), Phase::Inference, [[1f32, 2.0]]), [7.5, 0.0]);
}

#[test]
fn images_are_convolved_and_pooled() {
    let ones = Conv2d::new(1, [2, 2]).kernel(Initializer::Ones);
    assert_eq!(applied(&ones, Phase::Training, image()), [12.0]);
    assert_eq!(applied(&ones.clone().same_padding(), Phase::Training, image()), [12.0, 8.0, 9.0, 6.0]);
    assert_eq!(applied(&MaxPool2d::new([2, 2], [2, 2]), Phase::Training, image()), [6.0]);
    assert_eq!(applied(&AvgPool2d::new([2, 2], [2, 2]), Phase::Training, image()), [3.0]);
}

#[test]
fn batch_norm_uses_the_batch_or_the_averages() {
    let layer = BatchNorm::new(0.9, 0.0);
    assert_eq!(applied(&layer, Phase::Training, [[1f32], [3.0]]), [-1.0, 1.0]);
    // The averages start with mean 0 and variance 1.
    assert_eq!(applied(&layer, Phase::Inference, [[1f32], [3.0]]), [1.0, 3.0]);
    let graph = graph();
    let x = graph.root().constant([[1f32], [3.0]]);
    layer.forward(&VariableScope::new(&graph.root()), &x, Phase::Training);
    assert_eq!(nodes(&graph, UPDATE_OPS).len(), 2);
    assert_eq!(names(&trainable_variables(&graph)), ["gamma", "beta"]);
}

#[test]
fn dropout_is_active_in_training_only() {
    let layer = Dropout::new(0.5).seed(7);
    let ones = [1f32; 64];
    assert_eq!(applied(&layer, Phase::Inference, ones), ones);
    let trained = applied(&layer, Phase::Training, ones);
    assert!(trained.iter().all(|value| [0.0, 2.0].contains(value)), "{trained:?}");
    assert!(trained.contains(&0.0) && trained.contains(&2.0), "{trained:?}");
}

fn model() -> Sequential {
    Sequential::new()
        .add(Conv2d::new(2, [2, 2]))
        .add(flatten)
        .add(Dense::new(3).activation(TensorOps::tanh))
        .add(Dropout::new(0.5))
        .add(BatchNorm::default())
        .add_named("logits", Dense::new(1))
        .add(Dense::new(1))
}

fn placeholder(graph: &Graph) -> Output {
    graph.root().placeholder(DType::F32, &[-1, 2, 2, 1])
}

#[test]
fn a_sequence_names_its_layers_by_kind() {
    let graph = graph();
    let y = model().apply(&VariableScope::new(&graph.root()).enter("net"), &placeholder(&graph));
    graph.check().unwrap();
    assert_eq!(y.shape().dims(), Some(&[-1, 1][..]));
    let wanted = [
        "net/conv2d/kernel",
        "net/conv2d/bias",
        "net/dense/kernel",
        "net/dense/bias",
        "net/batch_normalization/gamma",
        "net/batch_normalization/beta",
        "net/batch_normalization/moving_mean",
        "net/batch_normalization/moving_variance",
        "net/logits/kernel",
        "net/logits/bias",
        "net/dense_1/kernel",
        "net/dense_1/bias",
    ];
    assert_eq!(names(&global_variables(&graph)), wanted);
}

#[test]
fn a_sequence_is_trained_and_used_with_the_same_variables() {
    let graph = graph();
    let variables = VariableScope::new(&graph.root()).reuse(Reuse::Auto);
    let x = placeholder(&graph);
    let trained = model().forward(&variables, &x, Phase::Training);
    let count = global_variables(&graph).len();
    let used = model().forward(&variables, &x, Phase::Inference);
    graph.check().unwrap();
    assert_eq!(global_variables(&graph).len(), count);
    assert_ne!(trained, used);
}

#[test]
fn a_layer_that_needs_a_shape_says_so() {
    let graph = graph();
    let x = graph.root().placeholder(DType::F32, &[-1, -1]);
    Dense::new(2).apply(&VariableScope::new(&graph.root()), &x);
    let error = graph.check().unwrap_err();
    assert!(error.message.contains("The last dimension of the inputs to Dense should be defined"), "{error}");
}
