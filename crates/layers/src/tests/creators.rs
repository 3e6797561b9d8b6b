//! Creators of variables.

use super::{graph, names};
use crate::collection::{GLOBAL_VARIABLES, global_variables, trainable_variables};
use crate::{Dense, Initializer, Partitioner, Reuse, ScopeOps, Variable, VariableScope};
use std::sync::{Arc, Mutex};
use tensor::DType;

#[test]
fn a_creator_sees_what_is_asked_for() {
    let graph = graph();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let variables = VariableScope::new(&graph.root()).creator(move |settings| {
        let (shape, dtype) = (settings.get_shape(), settings.get_dtype());
        let line = format!("{} {shape} {dtype} {}", settings.get_name(), settings.is_trainable());
        log.lock().unwrap().push(format!("{line} {:?}", settings.get_initializer()));
        settings.build()
    });
    variables.enter("layer").get_with("w", [2, 3], Initializer::Zeros, true);
    variables.dtype(DType::F64).get_with("b", [3], Initializer::Ones, false);
    assert_eq!(*seen.lock().unwrap(), ["w [2,3] float true Zeros", "b [3] double false Ones"]);
    assert_eq!(names(&global_variables(&graph)), ["layer/w", "b"]);
}

#[test]
fn the_last_creator_is_the_first_to_be_called() {
    let graph = graph();
    let calls: Arc<Mutex<Vec<&str>>> = Arc::default();
    let (first, second) = (calls.clone(), calls.clone());
    let variables = VariableScope::new(&graph.root())
        .creator(move |settings| {
            first.lock().unwrap().push("added first");
            settings.trainable(false).build()
        })
        .creator(move |settings| {
            second.lock().unwrap().push("added second");
            settings.build()
        });
    Dense::new(2).bias(None).apply(&variables, &graph.root().constant([[1f32, 2.0]]));
    assert_eq!(*calls.lock().unwrap(), ["added second", "added first"]);
    assert_eq!(names(&global_variables(&graph)), ["kernel"]);
    assert_eq!(names(&trainable_variables(&graph)), Vec::<String>::new());
}

#[test]
fn a_creator_may_place_a_variable_or_return_another() {
    let graph = graph();
    let root = graph.root();
    let mirror = Variable::builder(&root, "mirror").shape([2]).build();
    let other = mirror.clone();
    let variables = VariableScope::new(&root).creator(move |settings| match settings.get_name() {
        "w" => other.clone(),
        _ => {
            let place = settings.get_scope().on("/job:ps/task:1");
            settings.scope(&place).collections(&[GLOBAL_VARIABLES, "mine"]).build()
        }
    });
    assert_eq!(variables.get("w", [2]).name(), "mirror");
    let b = variables.get("b", [2]);
    assert_eq!(b.handle().node().device(), "/job:ps/task:1");
    assert_eq!(graph.collection("mine").len(), 1);
}

#[test]
fn variables_that_exist_are_found_without_a_creator() {
    let graph = graph();
    let count: Arc<Mutex<usize>> = Arc::default();
    let counted = count.clone();
    let variables = VariableScope::new(&graph.root()).reuse(Reuse::Auto).creator(move |settings| {
        *counted.lock().unwrap() += 1;
        settings.build()
    });
    let (first, again) = (variables.get("w", [2]), variables.get("w", [2]));
    assert_eq!(first.handle(), again.handle());
    assert_eq!(*count.lock().unwrap(), 1);
    // Each part of a variable is one.
    variables.partitioner(Partitioner::fixed(3)).get_partitioned("table", [6, 2]);
    assert_eq!(*count.lock().unwrap(), 4);
}
