//! Sessions on servers of this process, which need no connection.

use super::{graph, scalar};
use crate::{LocalCluster, Server, ServerOptions, Session, SessionConfig, Task, feeds};
use cluster::ClusterSpec;
use ops::array::constant;
use status::Code;
use std::time::Duration;
use tensor::Tensor;

/// A server that no client can reach at its target: the name does not resolve.
fn unreachable() -> Server {
    let task = Task { job: "worker".to_string(), index: 0 };
    let cluster = ClusterSpec::new().with_task("worker", 0, "nowhere.invalid:0").unwrap();
    let options = ServerOptions { inter_op_threads: 1, intra_op_threads: 1, ..ServerOptions::new(cluster, task) };
    Server::start(ServerOptions { bind: Some("127.0.0.1".to_string()), ..options }).unwrap()
}

#[test]
fn a_session_on_a_server_makes_no_connection() {
    let server = unreachable();
    let graph = graph();
    let x = scalar(&graph, "x");
    let y = &x + 1.0;
    let short = SessionConfig { connect_timeout: Some(Duration::from_millis(100)), ..SessionConfig::default() };
    let connected = Session::with_config(server.target(), &graph, short).unwrap();
    let error = connected.run_with::<f32>(&y, feeds! { &x => 1f32 }).unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    let session = server.session(&graph);
    assert_eq!(session.run_with(&y, feeds! { &x => 1f32 }), Ok(2f32));
    assert_eq!(session.list_devices().unwrap()[0].name, "/job:worker/replica:0/task:0/device:CPU:0");
}

#[test]
fn tensors_are_shared_with_a_server_of_this_process() {
    let server = unreachable();
    let graph = graph();
    let x = ops::array::placeholder(&graph.root(), tensor::DType::F32, tensor::PartialShape::new(&[1000]));
    let same = graph.root().op("Identity").input(&x).output();
    let fed = Tensor::vector(&[1f32; 1000]);
    let fetched: Tensor = server.session(&graph).run_with(&same, feeds! { &x => fed.clone() }).unwrap();
    assert_eq!(fetched.values::<f32>().unwrap().as_ptr(), fed.values::<f32>().unwrap().as_ptr());
}

#[test]
fn a_session_on_a_server_shares_its_variables_and_its_end() {
    let server = unreachable();
    let graph = graph();
    let never = {
        let queue = graph.root().op("FIFOQueueV2").attr("component_types", vec![tensor::DType::F32]).output();
        graph.root().op("QueueDequeueV2").input(&queue).attr("component_types", vec![tensor::DType::F32]).output()
    };
    let seven = constant(&graph.root(), Tensor::from(7f32));
    let session = server.session(&graph);
    assert_eq!(session.run(&seven), Ok(7f32));
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| session.run::<f32>(&never));
        drop(server);
        waiting.join().unwrap().unwrap_err()
    });
    assert_eq!(waiting.code, Code::Unavailable, "{waiting}");
    let error = session.run::<f32>(&seven).unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert_eq!(error.message, "The server of /job:worker/replica:0/task:0 in this process has stopped");
}

#[test]
fn a_session_on_a_task_of_a_local_cluster_reaches_the_others() {
    let mut cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let graph = graph();
    let three = constant(&graph.root().on("/job:ps"), Tensor::from(3f32));
    let sum = graph.root().on("/job:worker/task:1").op("AddV2").input(&three).input(&three).output();
    let session = cluster.session("worker", 0, &graph).unwrap();
    assert_eq!(session.run(&sum), Ok(6f32));
    cluster.stop("worker", 0);
    let error = cluster.session("worker", 0, &graph).err().unwrap();
    assert_eq!(error.message, "The cluster has no running task 0 in job 'worker'");
}

#[test]
fn a_node_knows_the_version_of_its_graph() {
    let built = graph();
    built.root().op("GraphDefVersion").output();
    let mut def = built.to_def().unwrap();
    def.versions.producer = 1500;
    let imported = graph();
    imported.import(&def, &::graph::ImportOptions::default()).unwrap();
    let version = Session::local(&imported).run::<i32>("GraphDefVersion:0");
    assert_eq!(version, Ok(1500));
}
