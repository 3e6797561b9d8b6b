//! A small network learns exclusive or: variables, gradients and updates of one step fit together.

use super::graph;
use crate::Session;
use gradient::{Gradient, gradients};
use graph::{Node, Output, Scope};
use ops::array::constant;
use tensor::{DType, PartialShape, Tensor};

fn variable(scope: &Scope, name: &str, dims: &[usize], first: f32) -> (Output, Node) {
    let shape = PartialShape::from(&tensor::Shape::new(dims));
    let handle = ops::state::var_handle(scope, name, DType::F32, &shape);
    let count: usize = dims.iter().product();
    // Any values without symmetry do.
    let values: Vec<f32> = (0..count).map(|i| first * ((i as f32 + 1.0) * 2.3).sin()).collect();
    let initial = constant(scope, Tensor::from_slice(dims, &values).unwrap());
    let initializer = ops::state::assign_variable(&handle, &initial);
    (handle, initializer)
}

#[test]
fn exclusive_or_is_learned() {
    let graph = graph();
    let root = graph.root();
    let (w1, init1) = variable(&root, "w1", &[2, 8], 1.0);
    let (b1, init2) = variable(&root, "b1", &[8], 0.3);
    let (w2, init3) = variable(&root, "w2", &[8, 1], 1.0);
    let read = |handle: &Output| ops::state::read_variable(handle, DType::F32);
    let x = constant(&root, Tensor::from([[0f32, 0.], [0., 1.], [1., 0.], [1., 1.]]));
    let wanted = constant(&root, Tensor::from([[0f32], [1.], [1.], [0.]]));
    let matmul = |a: &Output, b: &Output| root.op("MatMul").input(a).input(b).output();
    let hidden = root.op("Tanh").input(&(matmul(&x, &read(&w1)) + read(&b1))).output();
    let answer = matmul(&hidden, &read(&w2));
    let loss = ops::nn::l2_loss(&(&answer - &wanted));
    let rate = loss.like(0.1);
    let variables = [w1, b1, w2];
    let found = gradients(&data::registry(), std::slice::from_ref(&loss), &variables).unwrap();
    let updates: Vec<Node> = variables
        .iter()
        .zip(found)
        .map(|(variable, gradient)| match gradient {
            Some(gradient @ Gradient::Dense(_)) => ops::training::apply_gradient_descent(variable, &rate, &gradient),
            other => panic!("{variable:?} has gradient {other:?}"),
        })
        .collect();
    let session = Session::local(&graph);
    session.execute((&init1, &init2, &init3)).unwrap();
    let before: f32 = session.run(&loss).unwrap();
    for _ in 0..800 {
        session.execute(updates.iter().collect::<Vec<_>>()).unwrap();
    }
    let (after, answers): (f32, Vec<f32>) = session.run((&loss, &answer)).unwrap();
    assert!(before > 0.2 && after < 0.01, "loss went from {before} to {after}");
    let rounded: Vec<f32> = answers.iter().map(|answer| answer.round() + 0.0).collect();
    assert_eq!(rounded, [0.0, 1.0, 1.0, 0.0]);
}
