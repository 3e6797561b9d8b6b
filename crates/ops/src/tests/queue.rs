//! Queues over several steps: waiting, closing, giving up; texts and values are TensorFlow's.

use super::evaluate::{Evaluation, FLOAT, constant, floats, graph, int, refusal};
use crate::data_structures::queue::access::*;
use crate::data_structures::queue::*;
use graph::{Graph, Output};
use status::Code;
use tensor::{DType, PartialShape, Tensor};

fn scalars() -> [PartialShape; 1] {
    [PartialShape::scalar()]
}

fn fifo(g: &Graph, capacity: i64) -> Output {
    fifo_queue(&g.root(), "q", capacity, &[FLOAT], &scalars())
}

fn float(g: &Graph, value: f32) -> Output {
    constant(g, Tensor::scalar(value))
}

fn numbers(tensors: &[Tensor]) -> Vec<f32> {
    tensors[0].values::<f32>().unwrap().to_vec()
}

#[test]
fn elements_leave_as_they_came() {
    let g = graph();
    let queue = fifo(&g, 10);
    let session = Evaluation::new();
    session.next().run(&queue_enqueue_many(&queue, &[floats(&g, &[1.0, 2.0, 3.0])])).unwrap();
    let first = queue_dequeue(&queue, &[FLOAT]);
    assert_eq!(numbers(&[session.next().value(&first[0]).unwrap()]), [1.0]);
    let rest = queue_dequeue_many(&queue, &int(&g, 2), &[FLOAT]);
    assert_eq!(numbers(&[session.next().value(&rest[0]).unwrap()]), [2.0, 3.0]);
    assert_eq!(session.next().value(&queue_size(&queue)).unwrap().to_scalar::<i32>().unwrap(), 0);
}

#[test]
fn a_full_queue_lets_in_what_waits_in_order() {
    let g = graph();
    let queue = fifo(&g, 1);
    let session = Evaluation::new();
    let steps: Vec<Evaluation> = (0..3).map(|_| session.next()).collect();
    let puts: Vec<_> = (0..3).map(|i| queue_enqueue(&queue, &[float(&g, i as f32)])).collect();
    let started: Vec<_> = steps.iter().zip(&puts).map(|(step, put)| step.start(put)).collect();
    assert!(!started[0].waits());
    assert!(started[1].waits() && started[2].waits());
    let take = queue_dequeue(&queue, &[FLOAT]);
    for i in 0..3 {
        assert_eq!(numbers(&[session.next().value(&take[0]).unwrap()]), [i as f32]);
    }
    assert!(started[1].tensors().is_ok() && started[2].tensors().is_ok());
}

#[test]
fn a_batch_waits_until_it_is_whole() {
    let g = graph();
    let queue = fifo(&g, 2);
    let session = Evaluation::new();
    let take = queue_dequeue_many(&queue, &int(&g, 3), &[FLOAT]);
    let waiting = session.next();
    let started = waiting.start(take[0].node());
    session.next().run(&queue_enqueue_many(&queue, &[floats(&g, &[1.0, 2.0])])).unwrap();
    assert!(started.waits());
    session.next().run(&queue_enqueue(&queue, &[float(&g, 3.0)])).unwrap();
    assert_eq!(numbers(&started.tensors().unwrap()), [1.0, 2.0, 3.0]);
}

#[test]
fn a_closed_queue_gives_what_it_has() {
    let g = graph();
    let queue = fifo(&g, 10);
    let session = Evaluation::new();
    session.next().run(&queue_enqueue_many(&queue, &[floats(&g, &[1.0, 2.0])])).unwrap();
    let waiting = session.next();
    let up_to = queue_dequeue_up_to(&queue, &int(&g, 3), &[FLOAT]);
    let started = waiting.start(up_to[0].node());
    assert!(started.waits());
    session.next().run(&queue_close(&queue, false)).unwrap();
    assert_eq!(numbers(&started.tensors().unwrap()), [1.0, 2.0]);
    let empty = session.next().value(&queue_dequeue(&queue, &[FLOAT])[0]).unwrap_err();
    assert_eq!(empty.code, Code::OutOfRange);
    assert!(
        empty
            .message
            .starts_with("FIFOQueue '_0_q' is closed and has insufficient elements (requested 1, current size 0)"),
        "{}",
        empty.message
    );
    let closed = session.next().run(&queue_enqueue(&queue, &[float(&g, 1.0)])).unwrap_err();
    assert_eq!((closed.code, closed.message.as_str()), (Code::Cancelled, "FIFOQueue '_0_q' is closed."));
    let again = refusal(session.next().run(&queue_close(&queue, false)));
    assert_eq!(again, "Queue '_0_q' is already closed.");
    assert!(session.next().value(&queue_is_closed(&queue)).unwrap().to_scalar::<bool>().unwrap());
}

#[test]
fn closing_waits_behind_what_came_before() {
    let g = graph();
    let queue = fifo(&g, 1);
    let session = Evaluation::new();
    session.next().run(&queue_enqueue(&queue, &[float(&g, 1.0)])).unwrap();
    let (first, second) = (session.next(), session.next());
    let put = first.start(&queue_enqueue(&queue, &[float(&g, 2.0)]));
    let close = second.start(&queue_close(&queue, false));
    assert!(put.waits() && close.waits());
    session.next().run(queue_dequeue(&queue, &[FLOAT])[0].node()).unwrap();
    assert!(put.tensors().is_ok() && close.tensors().is_ok());
    let third = session.next();
    let late = third.start(&queue_enqueue(&queue, &[float(&g, 3.0)]));
    assert_eq!(refusal(late.tensors()), "FIFOQueue '_0_q' is closed.");
}

#[test]
fn closing_can_send_away_what_waits() {
    let g = graph();
    let queue = fifo(&g, 1);
    let session = Evaluation::new();
    session.next().run(&queue_enqueue(&queue, &[float(&g, 1.0)])).unwrap();
    let waiting = session.next();
    let put = waiting.start(&queue_enqueue(&queue, &[float(&g, 2.0)]));
    session.next().run(&queue_close(&queue, true)).unwrap();
    let error = put.tensors().unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::Cancelled, "Enqueue operation was cancelled"));
    assert_eq!(session.next().value(&queue_size(&queue)).unwrap().to_scalar::<i32>().unwrap(), 1);
}

#[test]
fn a_cancelled_step_gives_up_its_place() {
    let g = graph();
    let queue = fifo(&g, 2);
    let session = Evaluation::new();
    let take = queue_dequeue_many(&queue, &int(&g, 2), &[FLOAT]);
    let (first, second) = (session.next(), session.next());
    let given_up = first.start(take[0].node());
    let next = second.start(queue_dequeue(&queue, &[FLOAT])[0].node());
    session.next().run(&queue_enqueue(&queue, &[float(&g, 7.0)])).unwrap();
    assert!(given_up.waits() && next.waits());
    first.cancel();
    assert_eq!(refusal(given_up.tensors()), "Dequeue operation was cancelled");
    assert_eq!(numbers(&next.tensors().unwrap()), [7.0]); // what the first took has gone back
    let late = first.start(queue_dequeue(&queue, &[FLOAT])[0].node());
    assert_eq!(refusal(late.tensors()), "Dequeue operation was cancelled");
}

#[test]
fn elements_are_of_the_queues_types_and_shapes() {
    let g = graph();
    let queue = fifo(&g, 10);
    let session = Evaluation::new();
    let shape = refusal(session.next().run(&queue_enqueue(&queue, &[floats(&g, &[1.0])])));
    assert_eq!(shape, "Shape mismatch in tuple component 0. Expected [], got [1]");
    let rows = refusal(session.next().run(&queue_enqueue_many(&queue, &[float(&g, 1.0)])));
    assert_eq!(rows, "Component 0 of a batch of elements has no 0th dimension");
    let dtype = refusal(session.next().run(&queue_enqueue(&queue, &[int(&g, 1)])));
    assert_eq!(dtype, "Signature mismatch, have: resource, int32-> expected: resource, float->");
    let negative = constant(&g, Tensor::scalar(-1i32));
    let take = g.root().op("QueueDequeueUpToV2").input(&queue).input(&negative);
    let take = take.attr("component_types", type_list(&[FLOAT])).node();
    assert_eq!(refusal(session.next().run(&take)), "DequeueUpToOp requested -1 < 0 elements");
}

#[test]
fn batches_are_filled_up() {
    let g = graph();
    let queue = padding_fifo_queue(&g.root(), "q", 10, &[FLOAT], &[PartialShape::new(&[-1, 2])]);
    let session = Evaluation::new();
    for rows in [1, 3] {
        let values: Vec<f32> = (0..rows * 2).map(|i| i as f32 + 1.0).collect();
        let element = constant(&g, Tensor::from_slice([rows, 2], &values).unwrap());
        session.next().run(&queue_enqueue(&queue, &[element])).unwrap();
    }
    let batch = session.next().value(&queue_dequeue_many(&queue, &int(&g, 2), &[FLOAT])[0]).unwrap();
    assert_eq!(batch.shape().dims(), [2, 3, 2]);
    assert_eq!(numbers(&[batch]), [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let empty = session.next().value(&queue_dequeue_many(&queue, &int(&g, 0), &[FLOAT])[0]).unwrap();
    assert_eq!(empty.shape().dims(), [0, 0, 2]);
}

#[test]
fn small_numbers_leave_first() {
    let g = graph();
    let queue = priority_queue(&g.root(), "q", 10, &[FLOAT], &scalars());
    let session = Evaluation::new();
    let priorities = constant(&g, Tensor::vector(&[2i64, 1, 2, 1, 2, 1, 1, 2, 1]));
    let values = floats(&g, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    session.next().run(&queue_enqueue_many(&queue, &[priorities, values])).unwrap();
    let step = session.next();
    let batch = queue_dequeue_many(&queue, &int(&g, 9), &[DType::I64, FLOAT]);
    assert_eq!(step.value(&batch[0]).unwrap().values::<i64>().unwrap(), [1, 1, 1, 1, 1, 2, 2, 2, 2]);
    // Elements of equal priority leave in TensorFlow's order.
    assert_eq!(numbers(&[step.value(&batch[1]).unwrap()]), [1.0, 5.0, 6.0, 3.0, 8.0, 0.0, 2.0, 4.0, 7.0]);
}

#[test]
fn seeds_decide_the_order() {
    let g = graph();
    let queue = random_shuffle_queue(&g.root(), "q", (10, 2), &[FLOAT], &scalars(), (7, 11));
    let session = Evaluation::new();
    session.next().run(&queue_enqueue_many(&queue, &[floats(&g, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])])).unwrap();
    let six = queue_dequeue_many(&queue, &int(&g, 6), &[FLOAT]);
    assert_eq!(numbers(&[session.next().value(&six[0]).unwrap()]), SHUFFLED);
    let waiting = session.next();
    let one = waiting.start(queue_dequeue(&queue, &[FLOAT])[0].node());
    assert!(one.waits()); // two stay while the queue is open
    session.next().run(&queue_close(&queue, false)).unwrap();
    assert!(one.tensors().is_ok());
}

/// Six of 0 to 7, as TensorFlow takes them with seeds 7 and 11.
const SHUFFLED: [f32; 6] = [5.0, 2.0, 3.0, 6.0, 7.0, 1.0];
