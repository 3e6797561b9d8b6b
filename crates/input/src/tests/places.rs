//! Errors name the iterator and the position of the element that failed.

use super::graph;
use crate::Dataset;
use graph::Output;
use session::Session;
use tensor::Tensor;

/// The part of an error's message that says where in the pipeline it arose, once for each time that it is there.
fn places(message: &str) -> Vec<&str> {
    message.split("\n\t ").filter(|part| part.starts_with("[[element ")).collect()
}

/// The place in the error that follows after `count` elements.
fn place_after(count: usize, build: impl FnOnce(&graph::Graph) -> Dataset) -> String {
    let graph = graph();
    let next: Output = build(&graph).make_one_shot_iterator().next().unwrap();
    let session = Session::local(&graph);
    for _ in 0..count {
        session.execute(next.node()).unwrap();
    }
    let message = session.execute(next.node()).unwrap_err().message;
    let [place] = places(&message)[..] else { panic!("{message}") };
    place.to_string()
}

/// Vectors of the lengths 1, 1, 1, 1, 2: the third batch of two is of the fifth element and of another shape.
fn vectors(graph: &graph::Graph) -> Dataset {
    let long = ops::array::constant(&graph.root(), Tensor::vector(&[0i64, 0]));
    let short = ops::array::constant(&graph.root(), Tensor::vector(&[0i64]));
    let shorts = Dataset::from_tensors(short).repeat(4);
    let mixed = shorts.concatenate(&Dataset::from_tensors(long)).concatenate(&shorts);
    let unknown = vec![tensor::PartialShape::new(&[-1])];
    Dataset::from_output(mixed.handle().clone(), mixed.types().to_vec(), unknown)
}

#[test]
fn batches_say_which_one_failed() {
    let place = place_after(2, |graph| vectors(graph).batch(2));
    assert_eq!(place, "[[element 2 of iterator Iterator::Root::Prefetch::BatchV2]]");
}

#[test]
fn an_error_names_the_innermost_iterator_only() {
    let decoded = |graph: &graph::Graph| {
        let texts = Tensor::from_strings(tensor::Shape::new(&[3]), vec!["1".into(), "2".into(), "x".into()]).unwrap();
        let texts = Dataset::from_slices(ops::array::constant(&graph.root(), texts));
        texts.map(|text: Output| ops::raw::string_to_number(&text).output()).batch(2).batch(1)
    };
    let place = place_after(1, decoded);
    assert_eq!(place, "[[element 2 of iterator Iterator::Root::Prefetch::BatchV2::MapAndBatch]]");
}
