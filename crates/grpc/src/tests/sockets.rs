//! Real sockets: what is said of an address at which no task of ours listens.

use crate::{GrpcTransport, TokioRuntime};
use cluster::{Runtime, Task, Transport};
use status::{Code, Error};
use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;
use tokio::runtime::Handle;

async fn failure(address: &str) -> Error {
    let transport = GrpcTransport::new(Handle::current());
    let client = transport.connect(&Task { job: "ps".into(), index: 1 }, address).expect("an address");
    client.get_status().await.expect_err("no task is there")
}

#[track_caller]
fn check(error: Error, address: &str, why: &str) {
    let text = format!("Task /job:ps/replica:0/task:1 at {address} does not answer: {why}");
    assert!(error.code == Code::Unavailable && error.message.starts_with(&text), "{error}");
}

#[tokio::test]
async fn a_port_without_a_listener() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("its address").to_string()
    };
    check(failure(&address).await, &address, "connection refused");
}

#[tokio::test]
async fn a_server_of_another_protocol_is_named() {
    for greeting in ["SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.write_all(greeting.as_bytes()).expect("sent");
            stream
        });
        let error = failure(&address).await;
        // Whether the greeting or the end of the connection is noticed first depends on the sockets.
        let closed = error.message.contains("does not answer: connection closed");
        check(error, &address, if closed { "connection closed" } else { "it speaks another protocol" });
        drop(other.join());
    }
}

#[tokio::test]
async fn a_name_does_not_resolve() {
    check(failure("no-such-host.invalid:2222").await, "no-such-host.invalid:2222", "its name does not resolve");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_move_while_long_work_is_done() {
    let runtime = TokioRuntime::new(Handle::current());
    let (say, hear) = std::sync::mpsc::channel();
    let long = tokio::spawn(async move {
        let message = tokio::spawn(async move { say.send(()) });
        runtime.run_long(&mut || hear.recv_timeout(Duration::from_secs(20)).expect("another task of the thread ran"));
        message.await.expect("it ran").expect("it was heard");
    });
    long.await.expect("no panic");
}
