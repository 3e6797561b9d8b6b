//! Buffers of collective ops: provided and asked for in either order, and what becomes of those who wait in vain.

use crate::RecvBuf;
use crate::tests::net::Net;
use crate::worker::buffers::{BufferExchange, Consumer};
use futures_channel::oneshot::{self, Receiver};
use status::{Code, Result, aborted, internal};
use tensor::Bytes;

type Answer = Receiver<Result<Bytes>>;

fn consumer() -> (Consumer, Answer) {
    oneshot::channel()
}

fn ask(exchange: &mut BufferExchange, key: &str) -> Answer {
    let (consumer, answer) = consumer();
    exchange.consume(key, consumer);
    answer
}

/// The answer, if there is one yet.
fn read(answer: &mut Answer) -> Option<Result<Bytes>> {
    answer.try_recv().expect("the consumer is stored or answered")
}

const DATA: Bytes = Bytes::from_static(b"data");

#[test]
fn a_buffer_and_its_consumer_meet_in_either_order() {
    let mut exchange = BufferExchange::default();
    exchange.provide("first", DATA).expect("kept");
    assert_eq!(read(&mut ask(&mut exchange, "first")), Some(Ok(DATA)));
    let mut waiting = ask(&mut exchange, "second");
    assert_eq!(read(&mut waiting), None);
    exchange.provide("other", DATA).expect("kept");
    assert_eq!(read(&mut waiting), None);
    exchange.provide("second", DATA).expect("given");
    assert_eq!(read(&mut waiting), Some(Ok(DATA)));
}

#[test]
fn a_key_is_met_once_at_a_time() {
    let mut exchange = BufferExchange::default();
    let mut first = ask(&mut exchange, "key");
    let second = read(&mut ask(&mut exchange, "key"));
    assert_eq!(second, Some(Err(internal!("Second consumer arrived for key key"))));
    exchange.provide("key", DATA).expect("given to the first");
    assert_eq!(read(&mut first), Some(Ok(DATA)));
    exchange.provide("key", DATA).expect("kept");
    assert_eq!(exchange.provide("key", DATA), Err(internal!("Second provider arrived for key key")));
}

#[test]
fn who_went_away_is_not_waited_for() {
    let mut exchange = BufferExchange::default();
    drop(ask(&mut exchange, "key"));
    let mut second = ask(&mut exchange, "key");
    assert_eq!(read(&mut second), None, "it takes the place of the first");
    drop(second);
    exchange.provide("key", DATA).expect("kept");
    assert_eq!(read(&mut ask(&mut exchange, "key")), Some(Ok(DATA)));
}

#[test]
fn the_end_of_a_step_fails_all_consumers() {
    let mut exchange = BufferExchange::default();
    let mut waiting = ask(&mut exchange, "key");
    let error = aborted!("over");
    exchange.abort(error.clone());
    exchange.abort(internal!("an echo"));
    assert_eq!(read(&mut waiting), Some(Err(error.clone())));
    assert_eq!(read(&mut ask(&mut exchange, "late")), Some(Err(error.clone())));
    assert_eq!(exchange.provide("late", DATA), Err(error));
}

#[test]
fn a_worker_checks_the_device_and_ends_waits_with_their_step() {
    let net = Net::new("worker:0");
    let (worker, client) = (net.worker("worker:0"), net.worker("worker:0").client());
    let own = worker.device_attributes().remove(0);
    let good = RecvBuf {
        step_id: 7,
        key: "1:2:0:0".into(),
        device: own.name.clone(),
        incarnation: own.incarnation,
        ..RecvBuf::default()
    };
    let refused = |request: RecvBuf| net.run(client.recv_buf(request)).expect_err("refused");
    let error = refused(RecvBuf { device: "/job:worker/replica:0/task:1/device:CPU:0".into(), ..good.clone() });
    let text = "/job:worker/replica:0/task:1/device:CPU:0 unknown device.";
    assert_eq!((error.code, &*error.message), (Code::InvalidArgument, text));
    let error = refused(RecvBuf { incarnation: 1, ..good.clone() });
    let text = format!("RecvBuf expects a different device incarnation: 1 vs. {}. ", own.incarnation);
    assert!(error.code == Code::FailedPrecondition && error.message.starts_with(&text), "{error}");
    worker.provide(7, "1:2:0:0", DATA).expect("kept");
    assert_eq!(net.run(client.recv_buf(good.clone())), Ok(DATA));
    let both = futures_util::future::join(client.recv_buf(good.clone()), client.cleanup_graph(7));
    let (waited, cleaned) = net.run(both);
    assert_eq!((waited, cleaned), (Err(internal!("Delete called on non-empty BufRendezvous")), Ok(())));
    assert_eq!(refused(good).code, Code::Aborted, "the step is over");
}
