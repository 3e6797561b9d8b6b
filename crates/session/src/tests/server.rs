//! Sessions on servers over a socket: the server's default configuration, and the placement in the metadata.

use crate::{ClusterSpec, LocalCluster, RunOptions, Server, ServerOptions, Session, SessionConfig, feeds};
use ops::array::constant;
use status::Code;
use tensor::Tensor;

const PS: &str = "/job:ps/replica:0/task:0/device:CPU:0";
const WORKER: &str = "/job:worker/replica:0/task:0/device:CPU:0";

fn cluster(default_session_config: SessionConfig) -> LocalCluster {
    let change = |options| ServerOptions {
        inter_op_threads: 1,
        intra_op_threads: 1,
        default_session_config: default_session_config.clone(),
        ..options
    };
    LocalCluster::start_with(&[("ps", 1), ("worker", 1)], change).unwrap()
}

fn only(filter: &str) -> SessionConfig {
    SessionConfig { device_filters: vec![filter.to_string()], ..SessionConfig::default() }
}

#[test]
fn a_session_is_completed_with_the_default_configuration_of_its_server() {
    let cluster = cluster(SessionConfig { log_placement: true, ..only("/job:worker") });
    let graph = super::graph();
    let three = constant(&graph.root(), Tensor::from(3f32));
    let devices = |config: SessionConfig| {
        let session = Session::with_config(&cluster.targets("worker")[0], &graph, config).unwrap();
        let (value, metadata) = session.run_with_options::<f32>(&three, feeds! {}, RunOptions::default()).unwrap();
        assert_eq!((value, metadata.placement()), (3.0, vec![format!("Const: (Const): {WORKER}")]));
        session.list_devices().unwrap().into_iter().map(|device| device.name).collect::<Vec<_>>()
    };
    assert_eq!(devices(SessionConfig::default()), [WORKER]);
    assert_eq!(devices(only("/job:ps")), [WORKER, PS]);
}

#[test]
fn the_placement_is_returned_once() {
    let cluster = cluster(SessionConfig::default());
    let graph = super::graph();
    let ps = graph.root().on("/job:ps");
    let sum = constant(&ps, Tensor::from(3f32)) + 1.0;
    let config = SessionConfig { log_placement: true, ..SessionConfig::default() };
    let session = Session::with_config(&cluster.targets("worker")[0], &graph, config).unwrap();
    let placement = || session.run_with_options::<f32>(&sum, feeds! {}, RunOptions::default()).unwrap().1.placement();
    let first = placement();
    assert!(!first.is_empty() && first.iter().all(|line| line.ends_with(PS)), "{first:?}");
    assert!(placement().is_empty());
}

#[test]
fn a_server_that_is_joined_serves_until_its_end_and_is_gone_then() {
    let cluster = ClusterSpec::parse("worker=127.0.0.1:0").unwrap();
    let own = cluster.task(None, None).unwrap();
    let server = Server::start(ServerOptions::new(cluster, own)).unwrap();
    let graph = super::graph();
    let three = constant(&graph.root(), Tensor::from(3f32));
    let session = Session::connect(server.target(), &graph).unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let joined = std::thread::spawn(move || server.join(async { drop(ended.await) }));
    assert_eq!(session.run(&three), Ok(3f32));
    end.send(()).unwrap();
    joined.join().unwrap();
    let error = session.run::<f32>(&three).unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.message.contains("/job:worker/replica:0/task:0"), "{error}");
}
