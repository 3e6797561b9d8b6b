//! Ops on images with channels first return the transposes of their results with channels last. There are no cases for
//! them, because TensorFlow's CPU kernels support channels last only.

use super::evaluate::{Evaluation, constant, graph};
use graph::{Graph, OpBuilder, Output};
use tensor::Tensor;

/// Numbers without order, the same in every run.
fn numbers(graph: &Graph, dims: [usize; 4], seed: usize) -> Output {
    let count: usize = dims.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 500.0 - 1.0).collect();
    constant(graph, Tensor::from_slice(dims, &values).unwrap())
}

fn moved(x: &Output, order: [i32; 4]) -> Output {
    let order = constant(x.scope().graph(), Tensor::vector(&order));
    x.scope().op("Transpose").input(x).input(&order).output()
}

fn first(x: &Output) -> Output {
    moved(x, [0, 3, 1, 2])
}

fn last(x: &Output) -> Output {
    moved(x, [0, 2, 3, 1])
}

fn assert_same(a: &Output, b: &Output) {
    let evaluation = Evaluation::new();
    let (a, b) = (evaluation.value(a).unwrap(), evaluation.value(b).unwrap());
    assert_eq!(a.shape(), b.shape());
    for (x, y) in a.values::<f32>().unwrap().iter().zip(b.values::<f32>().unwrap()) {
        assert!((x - y).abs() <= 1e-5 * (1.0 + x.abs()), "{x} and {y}");
    }
}

/// Strides, and a window if there is one, in both orders.
fn walked(builder: OpBuilder, first: bool, window: Option<[i64; 2]>) -> OpBuilder {
    let all = |[rows, cols]: [i64; 2]| if first { vec![1, 1, rows, cols] } else { vec![1, rows, cols, 1] };
    let builder = builder.attr("strides", all([2, 1])).attr("padding", "SAME");
    let builder = builder.attr("data_format", if first { "NCHW" } else { "NHWC" });
    match window {
        Some(window) => builder.attr("ksize", all(window)),
        None => builder,
    }
}

#[test]
fn convolutions() {
    let graph = graph();
    let (x, filter) = (numbers(&graph, [2, 5, 6, 3], 1), numbers(&graph, [3, 2, 3, 4], 2));
    let conv = |x: &Output, first| walked(x.scope().op("Conv2D").input(x).input(&filter), first, None).output();
    let y = conv(&x, false);
    assert_same(&y, &last(&conv(&first(&x), true)));
    let dy = numbers(&graph, [2, 3, 6, 4], 3);
    let sizes = |x: &Output| x.scope().op("Shape").input(x).output();
    let by_input = |x: &Output, dy: &Output, first| {
        let builder = x.scope().op("Conv2DBackpropInput").input(&sizes(x)).input(&filter).input(dy);
        walked(builder, first, None).output()
    };
    assert_same(&by_input(&x, &dy, false), &last(&by_input(&first(&x), &first(&dy), true)));
    let by_filter = |x: &Output, dy: &Output, first| {
        let builder = x.scope().op("Conv2DBackpropFilter").input(x).input(&sizes(&filter)).input(dy);
        walked(builder, first, None).output()
    };
    assert_same(&by_filter(&x, &dy, false), &by_filter(&first(&x), &first(&dy), true));
}

#[test]
fn poolings() {
    let graph = graph();
    let x = numbers(&graph, [2, 5, 6, 3], 1);
    for op in ["MaxPool", "AvgPool"] {
        let pool = |x: &Output, first| walked(x.scope().op(op).input(x), first, Some([2, 3])).output();
        assert_same(&pool(&x, false), &last(&pool(&first(&x), true)));
    }
    let dy = numbers(&graph, [2, 3, 6, 3], 2);
    let pool = |x: &Output, first| walked(x.scope().op("MaxPool").input(x), first, Some([2, 3])).output();
    let grad = |x: &Output, dy: &Output, first| {
        let builder = x.scope().op("MaxPoolGrad").input(x).input(&pool(x, first)).input(dy);
        walked(builder, first, Some([2, 3])).output()
    };
    assert_same(&grad(&x, &dy, false), &last(&grad(&first(&x), &first(&dy), true)));
}

/// For inference the moments are inputs; the reserved outputs are not compared.
#[test]
fn batch_normalisation_without_training() {
    let graph = graph();
    let x = numbers(&graph, [2, 3, 2, 3], 1);
    let vector = |values: [f32; 3]| constant(&graph, Tensor::vector(&values));
    let (scale, offset) = (vector([1.0, 2.0, 0.5]), vector([0.0, 1.0, -1.0]));
    let (mean, variance) = (vector([0.5, 0.0, -0.5]), vector([1.0, 3.0, 0.25]));
    let norm = |x: &Output, format: &str| {
        let builder = x.scope().op("FusedBatchNormV3").input(x).input(&scale).input(&offset);
        let builder = builder.input(&mean).input(&variance).attr("is_training", false);
        builder.attr("data_format", format).attr("epsilon", 0.25f32).output()
    };
    let formula = (&x - &mean) * (&scale / graph_sqrt(&(&variance + 0.25))) + &offset;
    assert_same(&norm(&x, "NHWC"), &formula);
    assert_same(&formula, &last(&norm(&first(&x), "NCHW")));
}

fn graph_sqrt(x: &Output) -> Output {
    x.scope().op("Sqrt").input(x).output()
}
