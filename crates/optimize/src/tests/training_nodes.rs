//! Nodes and variables that optimizers and averages add to a graph.

use super::graph;
use crate::{Adam, ExponentialMovingAverage, MinimizeOptions, Momentum, Optimizer};
use layers::collection::{global_variables, global_variables_initializer, trainable_variables};
use layers::{Initializer, Kind, ScopeOps, TensorOps, Variable};
use session::Session;

fn names(variables: &[Variable]) -> Vec<String> {
    variables.iter().map(Variable::name).collect()
}

#[test]
fn slots_are_named_after_their_variables() {
    for kind in [Kind::Resource, Kind::Reference] {
        let graph = graph();
        let w = Variable::builder(&graph.root(), "w").shape([2]).kind(kind).build();
        let train = Optimizer::new(Adam::new(0.1)).minimize(&w.square().sum()).unwrap();
        Optimizer::new(Momentum::new(0.1, 0.9)).minimize(&w.square().sum()).unwrap();
        assert_eq!(train.name(), "Adam");
        let wanted = ["w", "w/Adam", "w/Adam_1", "beta1_power", "beta2_power", "w/Momentum"];
        assert_eq!(names(&global_variables(&graph)), wanted);
        assert_eq!(names(&trainable_variables(&graph)), ["w"]);
    }
}

#[test]
fn averages_follow() {
    let graph = graph();
    let root = graph.root();
    let w = Variable::builder(&root, "w").initializer(Initializer::Constant(10.0)).build();
    let averages = ExponentialMovingAverage::new(0.9);
    let follow = averages.apply(std::slice::from_ref(&w)).unwrap();
    let average = averages.average(&w).unwrap();
    assert_eq!(average.name(), "w/ExponentialMovingAverage");
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    session.execute(&w.assign(&root.constant(20f32))).unwrap();
    session.execute(&follow).unwrap();
    session.execute(&follow).unwrap();
    let found: f32 = session.run(&average).unwrap();
    assert!((found - 11.9).abs() < 1e-5, "{found}");
}

#[test]
fn a_loss_without_variables_is_refused() {
    let graph = graph();
    let x = graph.root().constant(1f32);
    let error = Optimizer::new(Adam::new(0.1)).minimize(&x).err().unwrap();
    assert!(error.message.contains("No variables to optimize"), "{error}");
    let w = Variable::zeros(&graph.root(), "w", []);
    let error = Optimizer::new(Adam::new(0.1)).minimize(&x).err().unwrap();
    assert!(error.message.contains("No gradients provided for any variable"), "{error}");
    assert!(error.message.contains("'w'"), "{error} {w:?}");
}

/// As TensorFlow 2.21 fills the collection and names the nodes for the same program.
#[test]
fn training_nodes_are_collected_and_grouped_by_device() {
    let graph = graph();
    let on = |task: usize| graph.root().on(&format!("/job:ps/task:{task}"));
    let a = Variable::builder(&on(1), "a").shape([2]).build();
    let b = Variable::builder(&on(0), "b").shape([2]).build();
    let step = crate::get_or_create_global_step(&graph).unwrap();
    let loss = (a.read(&graph.root()) + b.read(&graph.root())).square().sum();
    let first = Optimizer::new(Adam::new(0.1)).minimize(&loss).unwrap();
    let second =
        Optimizer::new(Momentum::new(0.1, 0.9)).minimize_with(&loss, MinimizeOptions::new().step(&step)).unwrap();
    assert_eq!(layers::collection::nodes(&graph, layers::collection::TRAIN_OP), [first, second]);
    let def = graph.to_def().unwrap();
    let waits = |name: &str| {
        let node = def.nodes.iter().find(|node| node.name == name).unwrap();
        format!("{} {}", node.device, node.inputs.join(" "))
    };
    assert_eq!(waits("Adam"), " ^Adam/NoOp ^Adam/NoOp_1");
    assert!(waits("Adam/NoOp").starts_with("/job:ps/task:0 ^Adam/update_b/"), "{}", waits("Adam/NoOp"));
    assert_eq!(waits("Momentum/update"), " ^Momentum/update/NoOp ^Momentum/update/NoOp_1");
    assert!(waits("Momentum/update/NoOp_1").starts_with("/job:ps/task:1 ^Momentum/update_a/"));
}
