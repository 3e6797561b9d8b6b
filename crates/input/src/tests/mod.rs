//! Tests of datasets in Rust programs. Expected elements follow from the definition of each transformation.

mod places;
mod rewrites;
mod snapshot;

mod elements;
#[cfg(feature = "parquet")]
mod parquet;

use crate::{Dataset, DatasetIterator};
use graph::{Graph, Output};
use session::{Session, feeds};
use status::Code;
use tensor::{DType, PartialShape, Tensor};

fn graph() -> Graph {
    Graph::with_ops(data::registry())
}

#[test]
fn functions_capture_outputs_of_the_graph_around_them() {
    let graph = graph();
    let factor = ops::array::placeholder(&graph.root(), DType::I64, PartialShape::scalar());
    let iterator = Dataset::range(&graph.root(), 0..3).map(|x: Output| &factor * x).make_initializable_iterator();
    let next: Output = iterator.next().unwrap();
    let session = Session::local(&graph);
    session.execute_with(iterator.initializer().unwrap(), feeds! { &factor => 10i64 }).unwrap();
    let values: Vec<i64> = (0..3).map(|_| session.run(&next).unwrap()).collect();
    assert_eq!(values, [0, 10, 20]);
    assert_eq!(session.run::<i64>(&next).unwrap_err().code, Code::OutOfRange);
}

#[test]
fn a_wrong_number_of_arguments_is_a_building_error() {
    let graph = graph();
    let _ = Dataset::range(&graph.root(), 0..3).map(|(a, _): (Output, Output)| a);
    let message = graph.check().unwrap_err().message;
    assert_eq!(message, "An element has 1 components where the function takes 2");
}

#[test]
fn a_one_shot_iterator_needs_no_initializer() {
    let graph = graph();
    let scale = ops::array::constant(&graph.root(), Tensor::scalar(3i64));
    let dataset = Dataset::range(&graph.root(), 1..4).map(|x: Output| x * &scale).batch(2);
    let next: Output = dataset.make_one_shot_iterator().next().unwrap();
    let session = Session::local(&graph);
    assert_eq!(session.run::<Vec<i64>>(&next).unwrap(), [3, 6]);
    assert_eq!(session.run::<Vec<i64>>(&next).unwrap(), [9]);
    assert_eq!(session.run::<Vec<i64>>(&next).unwrap_err().code, Code::OutOfRange);
}

#[test]
fn an_iterator_can_begin_another_dataset() {
    let graph = graph();
    let (first, second) = (Dataset::range(&graph.root(), 0..2), Dataset::range(&graph.root(), 5..6));
    let iterator = DatasetIterator::unbound(&graph.root(), first.types(), first.shapes());
    let (begin_first, begin_second) = (iterator.initializer_for(&first), iterator.initializer_for(&second));
    let next: Output = iterator.next().unwrap();
    let session = Session::local(&graph);
    assert_eq!(session.run::<i64>(&next).unwrap_err().code, Code::FailedPrecondition);
    session.execute(&begin_first).unwrap();
    assert_eq!(session.run::<i64>(&next).unwrap(), 0);
    session.execute(&begin_second).unwrap();
    assert_eq!(session.run::<i64>(&next).unwrap(), 5);
}

#[test]
fn a_tensor_of_another_graph_is_named() {
    let (a, b) = (graph(), graph());
    let x = ops::array::constant(&a.root(), Tensor::scalar(1f32));
    let y = ops::array::constant(&b.root(), Tensor::scalar(1f32));
    let _ = &x + &y;
    let message = a.check().unwrap_err().message;
    assert!(message.contains("must be from the same graph as the AddV2 that reads it"), "{message}");
}
