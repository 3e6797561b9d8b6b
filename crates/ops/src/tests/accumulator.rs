//! Accumulators over several steps.

use super::evaluate::{Evaluation, FLOAT, constant, floats, graph, int, refusal};
use crate::data_structures::accumulator::*;
use graph::{Graph, Output};
use tensor::{PartialShape, Tensor};

fn long(g: &Graph, value: i64) -> Output {
    constant(g, Tensor::scalar(value))
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.values::<f32>().unwrap().to_vec()
}

#[test]
fn an_average_waits_for_enough_gradients() {
    let g = graph();
    let accumulator = conditional_accumulator(&g.root(), "", FLOAT, &PartialShape::new(&[2]));
    let session = Evaluation::new();
    let waiting = session.next();
    let taken = waiting.start(accumulator_take_gradient(&accumulator, &int(&g, 2), FLOAT).node());
    session.next().run(&accumulator_apply_gradient(&accumulator, &long(&g, 0), &floats(&g, &[1.0, 2.0]))).unwrap();
    assert!(taken.waits());
    session.next().run(&accumulator_apply_gradient(&accumulator, &long(&g, 0), &floats(&g, &[3.0, 6.0]))).unwrap();
    assert_eq!(numbers(&taken.tensors().unwrap()[0]), [2.0, 4.0]);
    // It has advanced one step: gradients computed in step zero are dropped.
    session.next().run(&accumulator_apply_gradient(&accumulator, &long(&g, 0), &floats(&g, &[9.0, 9.0]))).unwrap();
    let count = accumulator_num_accumulated(&accumulator);
    assert_eq!(session.next().value(&count).unwrap().to_scalar::<i32>().unwrap(), 0);
    session.next().run(&accumulator_apply_gradient(&accumulator, &long(&g, 1), &floats(&g, &[9.0, 9.0]))).unwrap();
    assert_eq!(session.next().value(&count).unwrap().to_scalar::<i32>().unwrap(), 1);
    session.next().run(&accumulator_set_global_step(&accumulator, &long(&g, 7))).unwrap();
    session.next().run(&accumulator_apply_gradient(&accumulator, &long(&g, 6), &floats(&g, &[9.0, 9.0]))).unwrap();
    assert_eq!(session.next().value(&count).unwrap().to_scalar::<i32>().unwrap(), 1);
}

#[test]
fn a_cancelled_take_leaves_the_gradients_to_the_next() {
    let g = graph();
    let accumulator = conditional_accumulator(&g.root(), "", FLOAT, &PartialShape::unknown());
    let session = Evaluation::new();
    let (first, second) = (session.next(), session.next());
    let take = |count| accumulator_take_gradient(&accumulator, &int(&g, count), FLOAT);
    let (given_up, next) = (first.start(take(2).node()), second.start(take(1).node()));
    session.next().run(&accumulator_apply_gradient(&accumulator, &long(&g, 0), &floats(&g, &[4.0]))).unwrap();
    assert!(given_up.waits() && next.waits());
    first.cancel();
    assert_eq!(refusal(given_up.tensors()), "TakeGrad operation was cancelled");
    assert_eq!(numbers(&next.tensors().unwrap()[0]), [4.0]);
    let none = refusal(session.next().value(&take(0)));
    assert_eq!(none, "Argument num_required must be positive, but was 0");
}

#[test]
fn gradients_have_the_accumulators_shape() {
    let g = graph();
    let accumulator = conditional_accumulator(&g.root(), "", FLOAT, &PartialShape::new(&[-1]));
    let session = Evaluation::new();
    let apply = |gradient: &Output| accumulator_apply_gradient(&accumulator, &long(&g, 0), gradient);
    let wrong = refusal(session.next().run(&apply(&constant(&g, Tensor::scalar(1f32)))));
    assert_eq!(wrong, "Shape mismatch: expected [?], got []");
    session.next().run(&apply(&floats(&g, &[1.0]))).unwrap();
    let wrong = refusal(session.next().run(&apply(&floats(&g, &[1.0, 2.0]))));
    assert_eq!(wrong, "Shape mismatch: expected [1], got [2]");
}

#[test]
fn rows_are_averaged_by_how_often_they_came() {
    let g = graph();
    let accumulator = sparse_conditional_accumulator(&g.root(), "", FLOAT, &PartialShape::new(&[4, 2]));
    let session = Evaluation::new();
    let shape = constant(&g, Tensor::vector::<i64>(&[]));
    for (indices, values) in [([0i64, 2], [1f32, 1.0, 2.0, 2.0]), ([2, 3], [4.0, 6.0, 5.0, 5.0])] {
        let values = constant(&g, Tensor::from_slice([2, 2], &values).unwrap());
        let rows = (&constant(&g, Tensor::vector(&indices)), &values);
        let apply = sparse_accumulator_apply_gradient(&accumulator, &long(&g, 0), rows, &shape, false);
        session.next().run(&apply).unwrap();
    }
    let (indices, values, shape) = sparse_accumulator_take_gradient(&accumulator, &int(&g, 2), FLOAT);
    let step = session.next();
    assert_eq!(step.value(&indices).unwrap().values::<i64>().unwrap(), [0, 2, 3]);
    assert_eq!(numbers(&step.value(&values).unwrap()), [1.0, 1.0, 3.0, 4.0, 5.0, 5.0]);
    assert_eq!(step.value(&shape).unwrap().values::<i64>().unwrap(), [4, 2]);
    let rows =
        (&constant(&g, Tensor::vector(&[4i64])), &constant(&g, Tensor::from_slice([1, 2], &[1f32, 1.0]).unwrap()));
    let shape = constant(&g, Tensor::vector(&[4i64, 2]));
    let outside = sparse_accumulator_apply_gradient(&accumulator, &long(&g, 1), rows, &shape, true);
    let outside = refusal(session.next().run(&outside));
    assert_eq!(outside, "Shape mismatch: index of slice 0 exceeded limits of shape; index is 4 exceeded 4");
}
