//! Concurrent requests for tensors, which one call carries.

use crate::tests::net::Net;
use crate::{RecvTensor, RemoteWorker, WorkerClient};
use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use op::Received;
use status::{Code, Result};
use std::sync::Arc;
use tensor::Tensor;

const STEP: u64 = 1;

/// Tasks that accept batches, and the ps as the worker calls it.
fn cluster() -> (Arc<Net>, Arc<RemoteWorker>) {
    let net = Net::new("worker:0 ps:0");
    net.extend();
    let ps = net.link("worker:0", "ps:0");
    (net, ps)
}

/// The key of a tensor on the ps.
fn key(net: &Net, name: &str) -> String {
    let device = net.worker("ps:0").device_attributes().remove(0);
    let recv_device = "/job:worker/replica:0/task:0/device:CPU:0";
    graph::RendezvousKeyPrefix::new(&device.name, device.incarnation, recv_device, name).root_key()
}

fn send(net: &Net, name: &str, value: i32) {
    net.worker("ps:0").offer(STEP, &key(net, name), Tensor::scalar(value)).expect("sent");
}

async fn recv(net: &Net, ps: &RemoteWorker, name: &str) -> Result<Received> {
    ps.recv_tensor(RecvTensor { step_id: STEP, key: key(net, name), request_id: 0 }).await
}

fn value(received: Result<Received>) -> Result<i32> {
    received.and_then(|(tensor, _)| tensor.to_scalar::<i32>())
}

#[test]
fn requests_of_one_moment_are_one_call() {
    let (net, ps) = cluster();
    (0..10).for_each(|i| send(&net, &format!("x{i}"), i));
    let names: Vec<String> = (0..10).map(|i| format!("x{i}")).collect();
    let received = net.run(join_all(names.iter().map(|name| recv(&net, &ps, name))));
    let values: Vec<_> = received.into_iter().map(value).collect();
    assert_eq!(values, (0..10).map(Ok).collect::<Vec<_>>());
    assert_eq!((net.count("recv_tensors"), net.count("recv_tensor")), (1, 0));
    send(&net, "alone", 7);
    assert_eq!(value(net.run(recv(&net, &ps, "alone"))), Ok(7));
    assert_eq!((net.count("recv_tensors"), net.count("recv_tensor")), (1, 1));
}

#[test]
fn a_task_that_accepts_no_batches_gets_single_calls() {
    let net = Net::new("worker:0 ps:0");
    let ps = net.link("worker:0", "ps:0");
    send(&net, "a", 1);
    send(&net, "b", 2);
    let (a, b) = net.run(join(recv(&net, &ps, "a"), recv(&net, &ps, "b")));
    assert_eq!((value(a), value(b)), (Ok(1), Ok(2)));
    assert_eq!((net.count("recv_tensors"), net.count("recv_tensor")), (0, 2));
}

#[test]
fn each_request_is_answered_as_soon_as_its_tensor_is_there() {
    let (net, ps) = cluster();
    send(&net, "there", 1);
    let mut late = Box::pin(recv(&net, &ps, "late"));
    assert!(late.as_mut().now_or_never().is_none());
    assert_eq!(value(net.run(recv(&net, &ps, "there"))), Ok(1));
    assert_eq!(net.count("recv_tensors"), 1);
    send(&net, "late", 2);
    assert_eq!(value(net.run(late)), Ok(2));
    while net.calls() > 0 {
        std::thread::yield_now(); // the thread of the call ends after the last answer
    }
}

#[test]
fn more_requests_than_one_call_carries_are_several_calls() {
    let (net, ps) = cluster();
    (0..600).for_each(|i| send(&net, &format!("x{i}"), i));
    let names: Vec<String> = (0..600).map(|i| format!("x{i}")).collect();
    let received = net.run(join_all(names.iter().map(|name| recv(&net, &ps, name))));
    assert!(received.into_iter().map(value).eq((0..600).map(Ok)));
    assert_eq!((net.count("recv_tensors"), net.count("recv_tensor")), (3, 0));
}

#[test]
fn all_requests_of_a_call_fail_with_its_link() {
    let (net, ps) = cluster();
    let both = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| net.run(join(recv(&net, &ps, "a"), recv(&net, &ps, "b"))));
        while net.calls() == 0 {
            std::thread::yield_now();
        }
        net.cut("worker:0", "ps:0");
        waiting.join().expect("no panic")
    });
    for received in [both.0, both.1] {
        let error = received.expect_err("the link is cut");
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.message.contains("Task /job:ps/replica:0/task:0"), "{error}");
    }
    assert_eq!((net.count("recv_tensors"), net.count("recv_tensor")), (1, 0));
}

#[test]
fn a_call_is_dropped_with_its_last_receiver_and_not_before() {
    let (net, ps) = cluster();
    let (mut a, mut b) = (Box::pin(recv(&net, &ps, "a")), Box::pin(recv(&net, &ps, "b")));
    assert!(a.as_mut().now_or_never().is_none() && b.as_mut().now_or_never().is_none());
    // The clock moves, and with it the batch, while something else is awaited.
    send(&net, "c", 3);
    assert_eq!(value(net.run(recv(&net, &ps, "c"))), Ok(3));
    assert_eq!((net.count("recv_tensors"), net.calls()), (1, 1));
    drop(a);
    send(&net, "b", 2);
    assert_eq!(value(net.run(b)), Ok(2), "the other receiver gets its tensor");
    let (mut d, mut e) = (Box::pin(recv(&net, &ps, "d")), Box::pin(recv(&net, &ps, "e")));
    assert!(d.as_mut().now_or_never().is_none() && e.as_mut().now_or_never().is_none());
    send(&net, "f", 4);
    assert_eq!(value(net.run(recv(&net, &ps, "f"))), Ok(4));
    drop((d, e));
    while net.calls() > 0 {
        std::thread::yield_now(); // the thread of the call notices that its receivers are gone
    }
}
