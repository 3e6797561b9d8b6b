//! The collections of a graph, by TensorFlow's names, after everything that fills one was used.

use crate::layers::Queue;
use crate::layers::collection;
use crate::prelude::*;
use crate::train::QueueRunner;
use graph::AttrValue;
use ops::data_structures::lookup::initialize_table;

/// How many values each collection has after a model was built and a scaffold finished its graph.
const EXPECTED: &[(&str, usize)] = &[
    ("global_step", 1),
    ("init_op", 1),
    ("local_init_op", 1),
    ("local_variables", 1),
    ("losses", 1),
    ("queue_runners", 1),
    ("ready_for_local_init_op", 1),
    ("ready_op", 1),
    ("savers", 1),
    ("summaries", 1),
    ("summary_op", 1),
    ("table_initializer", 1),
    ("train_op", 1),
    ("trainable_variables", 4),
    ("update_ops", 2),
    ("variables", 7),
];

/// A dense layer, batch normalization, a loss and an optimizer with a step counter.
fn model(graph: &Graph) -> Result<Node> {
    let variables = VariableScope::new(&graph.root());
    let x = graph.root().placeholder(DType::F32, &[-1, 3]);
    let hidden = Dense::new(2).apply(&variables.enter("dense"), &x);
    let y = BatchNorm::default().apply(&variables.enter("norm"), &hidden, Phase::Training);
    let loss = loss::mean_squared_error(&hidden, &y);
    summary::scalar("loss", &loss);
    create_global_step(graph)?;
    Optimizer::new(GradientDescent::new(0.1)).minimize(&loss)
}

/// A table, a queue with its runner and a variable of this process.
fn input(graph: &Graph) {
    let root = graph.root();
    let table = root.op("HashTableV2").attr("key_dtype", DType::I64).attr("value_dtype", DType::I64).output();
    let numbers = root.constant([1i64, 2]);
    initialize_table(&table, &numbers, &numbers);
    let queue = Queue::fifo(&root, &[DType::I64]).build();
    QueueRunner::new(&queue, &[queue.enqueue(&[root.constant(1i64)])]).register();
    Variable::builder(&root, "count").trainable(false).collections(&[collection::LOCAL_VARIABLES]).build();
}

#[test]
fn collections_are_filled_where_tensorflow_fills_them() -> Result<()> {
    let graph = Graph::new();
    let train = model(&graph)?;
    input(&graph);
    let scaffold = Scaffold::new();
    let pieces = scaffold.finalize(&graph)?;
    let found: Vec<(String, usize)> =
        graph.collections().into_iter().map(|name| (name.clone(), graph.collection(&name).len())).collect();
    let mut expected: Vec<(String, usize)> = EXPECTED.iter().map(|&(name, count)| (name.to_string(), count)).collect();
    expected.sort();
    assert_eq!(found, expected);
    let text = |name: &str| match &graph.collection(name)[..] {
        [AttrValue::String(text)] => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{name} holds {other:?}"),
    };
    assert_eq!(text(collection::TRAIN_OP), train.name());
    assert_eq!(text(collection::INIT_OP), pieces.init_op.name());
    assert_eq!(text(collection::READY_OP), pieces.ready_op.name());
    graph.check()
}

#[test]
fn constants_are_spelled_as_in_tensorflow() {
    let names = [
        (collection::GLOBAL_VARIABLES, "variables"),
        (collection::TRAINABLE_VARIABLES, "trainable_variables"),
        (collection::LOCAL_VARIABLES, "local_variables"),
        (collection::MODEL_VARIABLES, "model_variables"),
        (collection::METRIC_VARIABLES, "metric_variables"),
        (collection::MOVING_AVERAGE_VARIABLES, "moving_average_variables"),
        (collection::REGULARIZATION_LOSSES, "regularization_losses"),
        (collection::TABLE_INITIALIZERS, "table_initializer"),
        (collection::SAVEABLE_OBJECTS, "saveable_objects"),
        (collection::ACTIVATIONS, "activations"),
        (collection::WEIGHTS, "weights"),
        (collection::BIASES, "biases"),
        (collection::ASSET_FILEPATHS, "asset_filepaths"),
        (collection::EVAL_STEP, "eval_step"),
    ];
    for (constant, expected) in names {
        assert_eq!(constant, expected);
    }
}

#[test]
fn averaged_variables_are_in_their_collection() -> Result<()> {
    let graph = Graph::new();
    let weight = Variable::zeros(&graph.root(), "weight", [2]);
    ExponentialMovingAverage::new(0.9).apply(&[weight]);
    assert_eq!(graph.collection(collection::MOVING_AVERAGE_VARIABLES).len(), 1);
    graph.check()
}
