//! The few ops that TensorFlow itself cannot run on CPUs, or only with a crash. The expected values follow from their
//! definitions. `conformance/cases/uncovered.txt` lists them.

use super::evaluate::{Evaluation, constant, graph, ints, refusal};
use tensor::Tensor;

#[test]
fn the_gradient_of_tile_sums_the_copies() {
    let g = graph();
    let x = constant(&g, Tensor::from_slice([2, 4], &[1f32, 2., 3., 4., 5., 6., 7., 8.]).unwrap());
    let grad = |multiples: &[i32]| g.root().op("TileGrad").input(&x).input(&ints(&g, multiples)).output();
    let sum = |multiples: &[i32]| Evaluation::new().value(&grad(multiples)).unwrap();
    assert_eq!(sum(&[2, 2]).values::<f32>().unwrap(), [1. + 3. + 5. + 7., 2. + 4. + 6. + 8.]);
    assert_eq!(sum(&[1, 4]).values::<f32>().unwrap(), [10., 26.]);
    assert_eq!(sum(&[1, 1]).values::<f32>().unwrap(), [1., 2., 3., 4., 5., 6., 7., 8.]);
    for multiples in [&[2, 3][..], &[0, 1], &[-1, 1], &[2]] {
        assert!(!refusal(Evaluation::new().value(&grad(multiples))).is_empty());
    }
}

/// The derivative of a pooling's gradient by the incoming gradient: the values at the positions of the maxima.
#[test]
fn the_second_gradient_of_pooling_takes_what_the_windows_took() {
    let g = graph();
    let x = constant(&g, Tensor::from_slice([1, 2, 4, 1], &[0f32; 8]).unwrap());
    let dy = constant(&g, Tensor::from_slice([1, 2, 4, 1], &[10f32, 11., 12., 13., 14., 15., 16., 17.]).unwrap());
    let places = constant(&g, Tensor::from_slice([1, 1, 2, 1], &[5i64, 2]).unwrap());
    let node = g.root().op("MaxPoolGradGradWithArgmax").input(&x).input(&dy).input(&places);
    let node = node.attr("ksize", vec![1i64, 2, 2, 1]).attr("strides", vec![1i64, 2, 2, 1]).attr("padding", "VALID");
    assert_eq!(Evaluation::new().value(&node.output()).unwrap().values::<f32>().unwrap(), [15., 12.]);
}

/// TensorFlow's op ends the process it runs in.
#[test]
fn abort_ends_the_step_and_not_the_server() {
    let g = graph();
    let abort = g.root().op("Abort").attr("error_msg", "enough").node();
    assert_eq!(refusal(Evaluation::new().run(&abort)), "Abort_op intentional failure; enough");
    let silent = g.root().op("Abort").attr("exit_without_error", true).node();
    Evaluation::new().run(&silent).unwrap();
}

#[test]
fn summaries_go_to_no_database() {
    let g = graph();
    let writer = g.root().op("SummaryWriter").output();
    let text = constant(&g, Tensor::string("x"));
    let mut node = g.root().op("CreateSummaryDbWriter").input(&writer);
    for _ in 0..4 {
        node = node.input(&text);
    }
    assert_eq!(
        refusal(Evaluation::new().run(&node.node())),
        "Summaries are written to event files here, not to databases"
    );
}
