//! Sessions inside async programs: awaited by any executor, blocking on a thread of a runtime, and dropped there.

use super::graph;
use crate::block::block_on;
use crate::{ClusterSpec, LocalCluster, RunOptions, Server, ServerOptions, Session, Task, feeds};
use graph::{AttrValue, Graph, Node, Output};
use ops::array::constant;
use status::Code;
use std::future::poll_fn;
use std::net::TcpListener;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tensor::{DType, Tensor};

fn small(options: ServerOptions) -> ServerOptions {
    ServerOptions { inter_op_threads: 1, intra_op_threads: 1, ..options }
}

fn cluster() -> LocalCluster {
    LocalCluster::start_with(&[("ps", 1), ("worker", 1)], small).unwrap()
}

/// A sum of a number on the ps and one on the worker.
fn sum_over_two_tasks(graph: &Graph) -> Output {
    let (ps, worker) = (graph.root().on("/job:ps"), graph.root().on("/job:worker"));
    let three = constant(&ps, Tensor::from(3f32));
    worker.op("AddV2").input(&three).input(&constant(&worker, Tensor::from(4f32))).output()
}

/// A session in this process, on a server over its socket, and on the same server without it.
fn sessions(cluster: &LocalCluster, graph: &Graph) -> [Session; 3] {
    let target = &cluster.targets("worker")[0];
    [Session::local(graph), Session::connect(target, graph).unwrap(), cluster.session("worker", 0, graph).unwrap()]
}

#[test]
fn steps_are_awaited_without_any_runtime() {
    let cluster = cluster();
    let graph = graph();
    let seven = constant(&graph.root(), Tensor::from(7f32));
    for session in sessions(&cluster, &graph) {
        assert_eq!(block_on(session.run_async(&seven)), Ok(7f32));
        assert_eq!(block_on(session.close_async()), Ok(()));
        let error = block_on(session.run_async::<f32>(&seven)).unwrap_err();
        assert_eq!(error.code, Code::FailedPrecondition, "{error}");
    }
}

#[tokio::test]
async fn steps_are_awaited_on_a_runtime_of_one_thread() {
    let cluster = cluster();
    let graph = graph();
    let sum = sum_over_two_tasks(&graph);
    let target = &cluster.targets("worker")[0];
    for session in [Session::connect(target, &graph).unwrap(), cluster.session("worker", 0, &graph).unwrap()] {
        for _ in 0..100 {
            assert_eq!(session.run_async(&sum).await, Ok(7f32));
        }
        let callable = session.make_callable_async(&sum, &[]).await.unwrap();
        assert_eq!(callable.call_async(Vec::new()).await, Ok(7f32));
        session.execute_async(&sum).await.unwrap();
        assert_eq!(session.list_devices_async().await.unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_are_awaited_by_spawned_tasks() {
    let cluster = cluster();
    let graph = graph();
    let sum = sum_over_two_tasks(&graph);
    let session = std::sync::Arc::new(cluster.session("worker", 0, &graph).unwrap());
    let steps = (0..20).map(|_| {
        let (session, sum) = (session.clone(), sum.clone());
        tokio::spawn(async move { session.run_async::<f32>(&sum).await })
    });
    for step in steps.collect::<Vec<_>>() {
        assert_eq!(step.await.unwrap(), Ok(7f32));
    }
}

/// More steps than a task of tokio may poll its futures before it must give way to others.
fn run_blocking(cluster: &LocalCluster) {
    let graph = graph();
    let seven = constant(&graph.root(), Tensor::from(7f32));
    for session in sessions(cluster, &graph) {
        for _ in 0..300 {
            assert_eq!(session.run(&seven), Ok(7f32));
        }
        let options = RunOptions { timeout: Some(Duration::from_secs(100)), ..RunOptions::default() };
        assert_eq!(session.run_with_options::<f32>(&seven, feeds! {}, options).unwrap().0, 7f32);
        // Both callable and session end here, in the middle of the runtime.
        session.make_callable(&seven, &[]).unwrap().call::<f32>(Vec::new()).unwrap();
    }
}

#[tokio::test]
async fn a_blocking_step_is_no_panic_on_a_runtime_of_one_thread() {
    run_blocking(&cluster());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_blocking_step_is_no_panic_on_a_thread_of_many() {
    tokio::spawn(async { run_blocking(&cluster()) }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_is_joined_inside_a_runtime() {
    let cluster = ClusterSpec::parse("worker=127.0.0.1:0").unwrap();
    let own = cluster.task(None, None).unwrap();
    let server = Server::start(small(ServerOptions::new(cluster, own))).unwrap();
    server.join(async {});
}

fn queue(graph: &Graph) -> (Output, Node, Output, Output) {
    let root = graph.root();
    let types = || AttrValue::from(vec![DType::F32]);
    let queue = root.op("FIFOQueueV2").attr("component_types", types()).output();
    let one = constant(&root, Tensor::from(1f32));
    let enqueue = root.op("QueueEnqueueV2").input(&queue).inputs([&one]).node();
    let dequeue = root.op("QueueDequeueV2").input(&queue).attr("component_types", types()).output();
    let size = root.op("QueueSizeV2").input(&queue).output();
    (queue, enqueue, dequeue, size)
}

#[test]
fn a_step_is_cancelled_when_its_future_is_dropped() {
    let graph = graph();
    let (_, enqueue, dequeue, size) = queue(&graph);
    let session = Session::local(&graph);
    {
        let mut waiting = pin!(session.run_async::<f32>(&dequeue));
        block_on(poll_fn(|context| {
            assert!(waiting.as_mut().poll(context).is_pending(), "the queue is empty");
            Poll::Ready(())
        }));
    }
    session.execute(&enqueue).unwrap();
    assert_eq!(session.run(&size), Ok(1i32), "the step that was dropped took the element");
}

#[test]
fn a_step_whose_future_is_dropped_leaves_the_session_usable() {
    // The socket is there, but no server answers until the first step was given up.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let graph = graph();
    let seven = constant(&graph.root(), Tensor::from(7f32));
    let session = Session::connect(&address, &graph).unwrap();
    {
        let mut waiting = pin!(session.run_async::<f32>(&seven));
        block_on(poll_fn(|context| {
            assert!(waiting.as_mut().poll(context).is_pending(), "there is no server");
            Poll::Ready(())
        }));
    }
    let eight = &seven + 1.0;
    let cluster = ClusterSpec::new().with_task("worker", 0, &address).unwrap();
    let task = Task { job: "worker".to_string(), index: 0 };
    let _server = Server::start_on(small(ServerOptions::new(cluster, task)), listener).unwrap();
    assert_eq!(session.run((&seven, &eight)), Ok((7f32, 8f32)));
}

#[test]
fn an_awaited_step_ends_when_its_time_is_over() {
    let cluster = cluster();
    let graph = graph();
    let (_, _, dequeue, size) = queue(&graph);
    for session in sessions(&cluster, &graph) {
        assert_eq!(session.run(&size), Ok(0i32));
        let options = RunOptions { timeout: Some(Duration::from_millis(50)), ..RunOptions::default() };
        let error = block_on(session.run_with_options_async::<f32>(&dequeue, feeds! {}, options)).err().unwrap();
        assert_eq!(error.code, Code::DeadlineExceeded, "{error}");
    }
}
