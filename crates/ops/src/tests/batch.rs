//! Batching across steps. Tasks are put together when a batch is full; the clock matters only where nothing else ends
//! the waiting.

use super::evaluate::{Evaluation, constant, graph, refusal};
use graph::{Graph, Output};
use status::Code;
use std::time::Duration;
use tensor::Tensor;

const LONG: i64 = 3_600_000_000;

fn batch(g: &Graph, input: &Output, largest: i64, sizes: Vec<i64>) -> graph::Node {
    let node = g.root().op("Batch").input(input).attr("num_batch_threads", 1i64).attr("max_batch_size", largest);
    let node = node.attr("batch_timeout_micros", LONG).attr("grad_timeout_micros", LONG).attr("shared_name", "batcher");
    node.attr("allowed_batch_sizes", sizes).node()
}

fn column(g: &Graph, values: &[f32]) -> Output {
    constant(g, Tensor::vector(values))
}

fn floats(tensor: &Tensor) -> &[f32] {
    tensor.values::<f32>().unwrap()
}

#[test]
fn a_full_batch_goes_to_the_last_step_and_its_parts_go_back() {
    let g = graph();
    let (first, second) = (batch(&g, &column(&g, &[1., 2.]), 3, vec![]), batch(&g, &column(&g, &[3.]), 3, vec![]));
    let one = Evaluation::new();
    let other = one.next();
    let waiting = one.start(&first);
    assert!(waiting.waits());
    let last = other.start(&second).tensors().unwrap();
    let early = waiting.tensors().unwrap();
    assert_eq!(floats(&last[0]), [1., 2., 3.]);
    assert_eq!((floats(&early[0]).len(), early[1].shape().dims()), (0, &[0, 3][..]));
    let (early_id, last_id) = (early[2].to_scalar::<i64>().unwrap(), last[2].to_scalar::<i64>().unwrap());
    assert_eq!(last[1].values::<i64>().unwrap(), [early_id, 0, 2, last_id, 2, 3]);

    let unbatch = |outputs: &[Tensor]| {
        let [data, places, id] = [0, 1, 2].map(|index| constant(&g, outputs[index].clone()));
        let node = g.root().op("Unbatch").input(&data).input(&places).input(&id).attr("timeout_micros", LONG);
        node.attr("shared_name", "unbatcher").node()
    };
    let part = one.next().start(&unbatch(&early));
    assert!(part.waits());
    assert_eq!(floats(&other.next().start(&unbatch(&last)).tensors().unwrap()[0]), [3.]);
    assert_eq!(floats(&part.tensors().unwrap()[0]), [1., 2.]);

    let gather = |outputs: &[Tensor], gradient: &[f32]| {
        let [data, places, id] = [0, 1, 2].map(|index| constant(&g, outputs[index].clone()));
        let gradient = column(&g, gradient);
        let node = g.root().op("UnbatchGrad").input(&data).input(&places).input(&gradient).input(&id);
        node.attr("shared_name", "gatherer").node()
    };
    let whole = other.next().start(&gather(&last, &[30.]));
    assert!(whole.waits());
    assert_eq!(floats(&one.next().start(&gather(&early, &[10., 20.])).tensors().unwrap()[0]).len(), 0);
    assert_eq!(floats(&whole.tensors().unwrap()[0]), [10., 20., 30.]);
}

#[test]
fn a_batch_is_padded_to_a_size_that_is_allowed() {
    let g = graph();
    let step = Evaluation::new();
    let first = step.start(&batch(&g, &column(&g, &[7., 8., 9.]), 4, vec![2, 4]));
    assert!(first.waits());
    // Two rows have no room any more: the first batch is closed and padded.
    let second = step.next().start(&batch(&g, &column(&g, &[1., 2.]), 4, vec![2, 4]));
    assert_eq!(floats(&first.tensors().unwrap()[0]), [7., 8., 9., 7.]);
    assert!(second.waits());
}

#[test]
fn a_cancelled_step_leaves_its_batch() {
    let g = graph();
    let one = Evaluation::new();
    let gone = one.start(&batch(&g, &column(&g, &[1., 2.]), 3, vec![]));
    let other = one.next();
    one.cancel();
    assert_eq!(gone.tensors().unwrap_err().code, Code::Cancelled);
    let alone = other.start(&batch(&g, &column(&g, &[3., 4., 5.]), 3, vec![])).tensors().unwrap();
    assert_eq!(floats(&alone[0]), [3., 4., 5.]);
    let late = one.start(&batch(&g, &column(&g, &[1.]), 3, vec![]));
    assert_eq!(late.tensors().unwrap_err().code, Code::Cancelled);
}

#[test]
fn wrong_tasks_are_refused() {
    let g = graph();
    let step = Evaluation::new();
    let start = |values: Tensor| step.next().start(&batch(&g, &constant(&g, values), 3, vec![])).tensors();
    let text = "Task size 4 is larger than maximum input batch size 3";
    assert_eq!(refusal(start(Tensor::vector(&[0f32; 4]))), text);
    assert!(
        refusal(start(Tensor::scalar(1f32))).starts_with("Batching input tensors must have at least one dimension.")
    );
    assert_eq!(start(Tensor::vector::<f32>(&[])).unwrap()[0].elements(), 0);
    let refused = |sizes, text: &str| {
        let node = batch(&g, &column(&g, &[1.]), 3, sizes);
        assert!(refusal(step.next().start(&node).tensors()).starts_with(text));
    };
    refused(vec![2], "final entry in allowed_batch_sizes must equal max_batch_size");
    refused(vec![2, 2, 3], "allowed_batch_sizes entries must be monotonically increasing");
}

#[test]
fn rows_that_do_not_arrive_in_time_are_an_error() {
    let g = graph();
    let [data, places, id] = [
        constant(&g, Tensor::vector::<f32>(&[])),
        constant(&g, Tensor::from_slice::<i64>([0, 3], &[]).unwrap()),
        constant(&g, Tensor::scalar(5i64)),
    ];
    let node = g.root().op("Unbatch").input(&data).input(&places).input(&id).attr("timeout_micros", 1i64).node();
    let step = Evaluation::new();
    let started = step.start(&node);
    let error = started.wait(Duration::from_secs(60)).unwrap_err();
    assert_eq!(error.code, Code::DeadlineExceeded);
    assert_eq!(error.message, "Batched data did not arrive within timeout window.");
}
