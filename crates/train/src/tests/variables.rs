//! Names of variables and slots, reuse, averages.

use super::graph;
use crate::optimizer::{Adam, Momentum};
use crate::{ExponentialMovingAverage, Optimizer};
use layers::collection::{global_variables, global_variables_initializer, trainable_variables};
use layers::{Formula, Formulas, Initializer, Kind, Reuse, Variable, VariableScope};
use session::Session;

fn names(variables: &[Variable]) -> Vec<String> {
    variables.iter().map(Variable::name).collect()
}

#[test]
fn slots_are_named_after_their_variables() {
    for kind in [Kind::Resource, Kind::Reference] {
        let graph = graph();
        let w = Variable::build(&graph.root(), "w").shape([2]).kind(kind).make();
        let train = Optimizer::new(Adam::new(0.1)).minimize(&w.square().sum()).unwrap();
        Optimizer::new(Momentum::new(0.1, 0.9)).minimize(&w.square().sum()).unwrap();
        assert_eq!(train.name(), "Adam");
        let wanted = ["w", "w/Adam", "w/Adam_1", "beta1_power", "beta2_power", "w/Momentum"];
        assert_eq!(names(&global_variables(&graph)), wanted);
        assert_eq!(names(&trainable_variables(&graph)), ["w"]);
    }
}

#[test]
fn a_name_can_be_shared_when_it_is_allowed() {
    let graph = graph();
    let scope = VariableScope::new(&graph.root());
    let layer = scope.enter("layer");
    let first = layer.get("w", [2, 3]);
    let again = scope.enter("layer").reuse(Reuse::Auto).get("w", [2, 3]);
    assert_eq!(first.name(), "layer/w");
    assert_eq!(first.handle(), again.handle());
    // Names belong to the graph: towers on other devices find the same variables.
    let tower = VariableScope::new(&graph.root().on("/job:worker/task:1")).reuse(Reuse::Always).enter("layer");
    let shared = tower.get("w", [2, 3]);
    assert_eq!(shared.handle(), first.handle());
    assert_eq!(shared.square().node().def().device, "/job:worker/task:1");
    graph.check().unwrap();
    layer.get("w", [2, 3]);
    let error = graph.check().unwrap_err();
    assert!(error.message.contains("Variable layer/w already exists, disallowed"), "{error}");
}

#[test]
fn a_shared_name_has_one_shape() {
    let graph = graph();
    let scope = VariableScope::new(&graph.root()).reuse(Reuse::Auto);
    scope.get("w", [2, 3]);
    scope.get("w", [3, 2]);
    let error = graph.check().unwrap_err();
    assert!(error.message.contains("Trying to share variable w, but specified shape [3,2]"), "{error}");
}

#[test]
fn a_name_that_must_be_there_is_missed() {
    let graph = graph();
    VariableScope::new(&graph.root()).reuse(Reuse::Always).get("w", [1]);
    let error = graph.check().unwrap_err();
    assert!(error.message.contains("Variable w does not exist"), "{error}");
}

#[test]
fn variables_change_as_they_are_told() {
    for kind in [Kind::Resource, Kind::Reference] {
        let graph = graph();
        let root = graph.root();
        let first = Initializer::Value([[1f32, 2.], [3., 4.]].into());
        let w = Variable::build(&root, "w").initializer(first).kind(kind).make();
        let session = Session::local(&graph);
        session.execute(&global_variables_initializer(&graph)).unwrap();
        let indices = root.constant([1i32]);
        let row = root.constant([[10f32, 20.]]);
        session.execute(&w.scatter_add(&indices, &row)).unwrap();
        session.execute(&w.assign_sub(&w.ones_like())).unwrap();
        session.execute(&w.scatter_update(&root.constant([0i32]), &row)).unwrap();
        let rows: Vec<[f32; 2]> = session.run(&w).unwrap();
        assert_eq!(rows, [[10., 20.], [12., 23.]]);
        let picked: Vec<[f32; 2]> = session.run(&w.gather(&indices)).unwrap();
        assert_eq!(picked, [[12., 23.]]);
    }
}

#[test]
fn averages_follow() {
    let graph = graph();
    let root = graph.root();
    let w = Variable::build(&root, "w").initializer(Initializer::Constant(10.0)).make();
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
    let a = Variable::build(&on(1), "a").shape([2]).make();
    let b = Variable::build(&on(0), "b").shape([2]).make();
    let step = crate::global_step::get_or_create_global_step(&graph).unwrap();
    let loss = (a.read(&graph.root()) + b.read(&graph.root())).square().sum();
    let first = Optimizer::new(Adam::new(0.1)).minimize(&loss).unwrap();
    let second = Optimizer::new(Momentum::new(0.1, 0.9)).minimize_with(&loss, &[], Some(&step)).unwrap();
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
