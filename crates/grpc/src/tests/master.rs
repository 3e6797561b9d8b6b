//! Masters as clients in Rust see them: not up yet, in trouble, gone.

use crate::tests::wires::{Cable, End, FakeWorker, PATIENCE, master, server, socket};
use crate::{GrpcMaster, GrpcMasterOptions};
use cluster::{MasterClient, RunStep, SessionConfig};
use graph::GraphDef;
use status::{Code, Error};
use std::net::TcpListener;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

#[track_caller]
fn check(error: Error, text: &str) {
    assert!(error.code == Code::Unavailable && error.message.starts_with(text), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_master_that_comes_late_is_waited_for() {
    for first in [End::Refused, End::Silent(Vec::new())] {
        let socket = socket(first);
        let far = master(&socket);
        let begin = Instant::now();
        let late = async {
            tokio::time::sleep(MINUTE / 2).await;
            *socket.end.lock() = server(FakeWorker::new());
        };
        let (ready, ()) = tokio::join!(far.ready(MINUTE, "CreateSession"), late);
        assert_eq!(ready, Ok(()));
        assert!(begin.elapsed() <= MINUTE / 2 + PATIENCE + Duration::from_secs(1), "{:?}", begin.elapsed());
        let answer = far.create_session(GraphDef::default(), &SessionConfig::default()).await;
        assert_eq!(answer.map_err(|error| error.code), Err(Code::Unimplemented), "it is a worker alone");
    }
}

#[tokio::test(start_paused = true)]
async fn a_master_that_never_comes_is_named_with_the_reason() {
    for (end, why) in [(End::Refused, "connection refused"), (End::Silent(Vec::new()), "no sign of life for")] {
        let begin = Instant::now();
        let error = master(&socket(end)).ready(MINUTE, "CreateSession").await.expect_err("there is no server");
        assert!(begin.elapsed() <= MINUTE + Duration::from_millis(100), "{:?}", begin.elapsed());
        assert!(error.message.contains("(tried for 60s)"), "{error}");
        check(error, &format!("The server at 10.0.0.2:2222 does not answer: {why}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_master_that_stops_during_a_step_is_named_by_its_task() {
    let socket = socket(server(FakeWorker::of_device("/job:worker/replica:0/task:3/device:CPU:0")));
    let far = master(&socket);
    assert_eq!(far.ready(MINUTE, "CreateSession").await, Ok(()));
    socket.cable.send_replace(Cable::Cut);
    let begin = Instant::now();
    let error = far.run_step("session", RunStep::default()).await.expect_err("there is no answer");
    assert!(begin.elapsed() <= PATIENCE + Duration::from_millis(10), "{:?}", begin.elapsed());
    check(error, "Task /job:worker/replica:0/task:3 at 10.0.0.2:2222 does not answer: ");
}

/// The error for an address without a gRPC server.
async fn failure(address: &str) -> Error {
    let far = GrpcMaster::new(address, Handle::current(), GrpcMasterOptions::default()).expect("an address");
    far.ready(Duration::from_millis(200), "CreateSession").await.expect_err("no server is there")
}

#[tokio::test]
async fn reasons_of_real_sockets_are_told() {
    let unresolved = "no-such-host.invalid:2222";
    let text = format!("The server at {unresolved} does not answer: its name does not resolve");
    check(failure(unresolved).await, &text);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    drop(listener);
    check(failure(&address).await, &format!("The server at {address} does not answer: connection refused"));
}

#[tokio::test]
async fn a_server_of_another_protocol_is_told() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    let other = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n").await;
            open.push(stream);
        }
    });
    let error = failure(&address).await;
    other.abort();
    // Whether the greeting or the end of the connection is noticed first depends on the sockets.
    let closed = error.message.contains("does not answer: connection closed");
    let why = if closed { "connection closed" } else { "it speaks another protocol" };
    check(error, &format!("The server at {address} does not answer: {why}"));
}
