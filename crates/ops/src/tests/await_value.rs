//! Nodes that wait until a variable has a value: one that is made later, one that is there, one that is given up.

use super::evaluate::{Evaluation, constant, graph};
use crate::state::assign_variable::assign_variable;
use crate::state::await_value::WAIT;
use crate::state::var_handle::{var_handle, var_is_initialized};
use graph::{Graph, Output};
use status::Code;
use tensor::{DType, PartialShape, Tensor};

fn handle(graph: &Graph, name: &str) -> Output {
    var_handle(&graph.root(), name, DType::F32, &PartialShape::scalar())
}

fn wait(handle: &Output) -> Output {
    handle.scope().op("VarIsInitializedOp").input(handle).attr(WAIT, true).output()
}

fn is_set(session: &Evaluation, handle: &Output) -> bool {
    session.next().value(&var_is_initialized(handle)).unwrap().to_scalar().unwrap()
}

#[test]
fn a_waiting_op_answers_when_a_variable_gets_its_first_value() {
    let g = graph();
    let (x, y) = (handle(&g, "x"), handle(&g, "y"));
    let session = Evaluation::new();
    let steps = [session.next(), session.next(), session.next()];
    let started = [&x, &x, &y].map(wait);
    let started: Vec<_> = steps.iter().zip(&started).map(|(step, node)| step.start(node.node())).collect();
    assert!(started.iter().all(|started| started.waits()));
    assert!(!is_set(&session, &x), "who waits makes no variable");
    session.next().run(&assign_variable(&x, &constant(&g, Tensor::scalar(1f32)))).unwrap();
    for started in &started[..2] {
        assert!(started.tensors().unwrap()[0].to_scalar::<bool>().unwrap());
    }
    assert!(started[2].waits(), "another variable");
    let late = session.next();
    assert!(late.start(wait(&x).node()).tensors().is_ok(), "there is a value already");
}

#[test]
fn it_gives_up_with_its_step() {
    let g = graph();
    let x = handle(&g, "x");
    let session = Evaluation::new();
    let step = session.next();
    let started = step.start(wait(&x).node());
    step.cancel();
    assert_eq!(started.tensors().unwrap_err().code, Code::Cancelled);
    session.next().run(&assign_variable(&x, &constant(&g, Tensor::scalar(1f32)))).unwrap();
    assert!(is_set(&session, &x));
}
