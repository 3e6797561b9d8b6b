//! The nodes around a model: given, found in collections, or made.

use super::graph;
use crate::monitored::{INIT_OP, LOCAL_INIT_OP, READY_FOR_LOCAL_INIT_OP, READY_OP, SUMMARY_OP, Scaffold};
use crate::{MonitoredTrainingSession, get_or_create_global_step, local_variables_initializer};
use graph::{AttrValue, Graph, Output};
use layers::collection::LOCAL_VARIABLES;
use layers::{ScopeOps, Variable};
use session::feeds;
use tensor::DType;

/// A variable whose first value is fed, and what feeds it.
fn fed(graph: &Graph, name: &str, collections: &[&str]) -> (Variable, Output) {
    let first = graph.root().placeholder(DType::F32, &[]);
    (Variable::builder(&graph.root(), name).value(&first).collections(collections).build(), first)
}

fn read(graph: &Graph, scaffold: Scaffold, variable: &Variable) -> Result<f32, String> {
    let session = MonitoredTrainingSession::new(graph).scaffold(scaffold).start();
    session.and_then(|mut session| session.run::<f32>(variable)).map_err(|error| error.message)
}

#[test]
fn a_model_is_initialized_with_what_is_given() {
    let model = || {
        let graph = graph();
        let (v, first) = fed(&graph, "v", &["variables"]);
        let init = layers::collection::global_variables_initializer(&graph);
        let double = v.assign_add(v.value());
        (graph, v, first, init, double)
    };
    let (graph, v, first, init, _) = model();
    assert_eq!(read(&graph, Scaffold::new().init_op(&init, feeds! { &first => 3f32 }), &v), Ok(3.0));
    // The function comes after the node.
    let (graph, v, first, init, double) = model();
    let scaffold = Scaffold::new().init_op(&init, feeds! { &first => 3f32 });
    let scaffold = scaffold.init_fn(move |session| session.execute(&double));
    assert_eq!(read(&graph, scaffold, &v), Ok(6.0));
}

#[test]
fn local_variables_are_initialized_with_what_is_given() {
    let graph = graph();
    let (v, first) = fed(&graph, "v", &[LOCAL_VARIABLES]);
    let init = local_variables_initializer(&graph);
    assert_eq!(read(&graph, Scaffold::new().local_init_op(&init, feeds! { &first => 4f32 }), &v), Ok(4.0));
}

#[test]
fn a_model_is_ready_when_what_is_given_says_so() {
    for (missing, wanted) in [("", Ok(1.0)), ("x y", Err("Variables not initialized: x, y"))] {
        let graph = graph();
        let v = Variable::builder(&graph.root(), "v").value(&graph.root().constant(1f32)).build();
        let missing: Vec<String> = missing.split_whitespace().map(str::to_string).collect();
        let names = graph.root().constant(missing);
        match (read(&graph, Scaffold::new().ready_op(&names), &v), wanted) {
            (Err(found), Err(wanted)) => assert!(found.ends_with(wanted), "{found}"),
            (found, wanted) => assert_eq!(found, wanted.map_err(str::to_string)),
        }
    }
}

/// The names in a collection.
fn names(graph: &Graph, collection: &str) -> Vec<String> {
    let name = |value: &AttrValue| match value {
        AttrValue::String(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?}"),
    };
    graph.collection(collection).iter().map(name).collect()
}

#[test]
fn pieces_are_found_in_collections() {
    let graph = graph();
    get_or_create_global_step(&graph).unwrap();
    let root = graph.root();
    let nodes = [INIT_OP, LOCAL_INIT_OP].map(|name| root.op("NoOp").named(&format!("my_{name}")).node());
    let outputs = [READY_OP, READY_FOR_LOCAL_INIT_OP, SUMMARY_OP].map(|_| root.constant("text"));
    for (name, node) in [INIT_OP, LOCAL_INIT_OP].iter().zip(&nodes) {
        graph.add_to_collection(name, node.name());
    }
    for (name, output) in [READY_OP, READY_FOR_LOCAL_INIT_OP, SUMMARY_OP].iter().zip(&outputs) {
        graph.add_to_collection(name, output.name());
    }
    let scaffold = Scaffold::new();
    let pieces = scaffold.finalize(&graph).unwrap();
    assert_eq!([pieces.init_op.name(), pieces.local_init_op.name()], nodes.map(|node| node.name()));
    let found = [&pieces.ready_op, &pieces.ready_for_local_init_op, pieces.summary_op.as_ref().unwrap()];
    assert_eq!(found.map(|output| output.name()), outputs.map(|output| output.name()));
}

#[test]
fn pieces_that_are_made_are_in_collections() {
    let graph = graph();
    let step = get_or_create_global_step(&graph).unwrap();
    assert_eq!(get_or_create_global_step(&graph).unwrap().name(), step.name());
    let scaffold = Scaffold::new();
    let pieces = scaffold.finalize(&graph).unwrap();
    assert_eq!(names(&graph, INIT_OP), [pieces.init_op.name()]);
    assert_eq!(names(&graph, LOCAL_INIT_OP), [pieces.local_init_op.name()]);
    assert_eq!(names(&graph, READY_OP), [pieces.ready_op.name()]);
    assert_eq!(names(&graph, READY_FOR_LOCAL_INIT_OP), [pieces.ready_for_local_init_op.name()]);
    assert!(pieces.summary_op.is_none() && names(&graph, SUMMARY_OP).is_empty());
}

#[test]
fn a_collection_has_one_piece() {
    let graph = graph();
    for _ in 0..2 {
        graph.add_to_collection(READY_OP, graph.root().constant("text").name());
    }
    let error = Scaffold::new().finalize(&graph).err().unwrap();
    assert!(error.message.starts_with("More than one item in the collection \"ready_op\"."), "{error}");
}
