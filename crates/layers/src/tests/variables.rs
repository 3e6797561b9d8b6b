//! Variables by name, and how they change.

use super::graph;
use crate::collection::global_variables_initializer;
use crate::{Initializer, Kind, Reuse, ScopeOps, TensorOps, Variable, VariableScope};
use session::Session;

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
        let w = Variable::builder(&root, "w").initializer(first).kind(kind).build();
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
