//! The trace of a step is JSON with the rows, slices and arrows that it should have.

use crate::{ClusterSpec, RunMetadata, RunOptions, Server, ServerOptions, Session, Task, chrome_trace, feeds};
use cluster::NodeStats;
use serde_json::Value;
use std::collections::HashMap;
use std::net::TcpListener;

fn parse(metadata: &RunMetadata) -> Vec<Value> {
    let trace: Value = serde_json::from_str(&chrome_trace(metadata)).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

fn of_phase<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == phase).collect()
}

fn node(name: &str, op: &str, start: u64, end: u64) -> NodeStats {
    NodeStats {
        name: name.into(),
        op: op.into(),
        device: "".into(),
        scheduled: start,
        start,
        end,
        outputs: Vec::new(),
        thread: 0,
    }
}

#[test]
fn ops_that_overlap_get_rows_of_their_own() {
    let nodes = vec![node("a", "Add", 1000, 5000), node("b", "Mul", 2000, 3000), node("c", "Sub", 5000, 6000)];
    let device = "/job:worker/replica:0/task:3/device:CPU:0".to_string();
    let events = parse(&RunMetadata { stats: vec![(device, nodes)], ..RunMetadata::default() });
    let names: Vec<&str> = of_phase(&events, "M").iter().map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["/job:worker/replica:0/task:3", "CPU:0", "CPU:0 (2)"]);
    let slices: Vec<(&str, u64, f64, f64)> = of_phase(&events, "X")
        .iter()
        .map(|event| {
            let number = |key: &str| event[key].as_f64().unwrap();
            (event["args"]["name"].as_str().unwrap(), event["tid"].as_u64().unwrap(), number("ts"), number("dur"))
        })
        .collect();
    assert_eq!(slices, [("a", 0, 0.0, 4.0), ("b", 1, 1.0, 1.0), ("c", 0, 4.0, 1.0)]);
}

#[test]
fn names_with_quotes_are_still_json() {
    let device = "no \"device\"\n".to_string();
    let events =
        parse(&RunMetadata { stats: vec![(device, vec![node("\"\\", "Op", 0, 1)])], ..RunMetadata::default() });
    assert_eq!(of_phase(&events, "X")[0]["args"]["name"], "\"\\");
}

/// Two tasks and a tensor that goes from one to the other and back.
fn traced() -> RunMetadata {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = listeners.map(|listener| listener.local_addr().unwrap().to_string());
    let cluster = ClusterSpec::parse(&format!("worker={}", addresses.join(","))).unwrap();
    let start = |index| Server::start(ServerOptions::new(cluster.clone(), Task { job: "worker".to_string(), index }));
    let servers = [start(0).unwrap(), start(1).unwrap()];
    let graph = super::graph();
    let (here, there) = (graph.root().on("/job:worker/task:0"), graph.root().on("/job:worker/task:1"));
    let x = ops::array::placeholder(&here, tensor::DType::F32, tensor::PartialShape::scalar());
    let y = there.op("Neg").input(&x).output();
    let z = here.op("Exp").input(&y).output();
    let session = Session::connect(servers[0].target(), &graph).unwrap();
    let options = RunOptions { trace: true, ..RunOptions::default() };
    let (value, metadata): (f32, _) = session.run_with_options(&z, feeds! { &x => 0.0f32 }, options).unwrap();
    assert_eq!(value, 1.0);
    metadata
}

#[test]
fn transfers_between_tasks_are_arrows_and_rows() {
    let metadata = traced();
    let mut ways: Vec<(&str, &str, u64)> =
        metadata.transfers.iter().map(|one| (&*one.send_device, &*one.recv_device, one.bytes)).collect();
    ways.sort_unstable();
    let [first, second] = [0, 1].map(|task| format!("/job:worker/replica:0/task:{task}/device:CPU:0"));
    assert_eq!(ways, [(&*first, &*second, 4), (&*second, &*first, 4)]);
    let events = parse(&metadata);
    let received: Vec<&Value> = events.iter().filter(|event| event["name"] == "RecvTensor").collect();
    assert_eq!(received.len(), 2, "{events:?}");
    let names: Vec<&str> = of_phase(&events, "M")
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert!(names.iter().any(|name| name.ends_with("task:0")), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("task:1")), "{names:?}");
    let ends: HashMap<u64, &Value> =
        of_phase(&events, "f").into_iter().map(|event| (event["id"].as_u64().unwrap(), event)).collect();
    let starts = of_phase(&events, "s");
    assert!(starts.len() >= 2, "{starts:?}");
    for start in starts {
        let end = ends[&start["id"].as_u64().unwrap()];
        assert_ne!(start["pid"], end["pid"]);
        for arrow in [start, end] {
            let inside = of_phase(&events, "X").iter().any(|slice| {
                let (ts, begin) = (arrow["ts"].as_f64().unwrap(), slice["ts"].as_f64().unwrap());
                let same_row = slice["pid"] == arrow["pid"] && slice["tid"] == arrow["tid"];
                same_row && begin <= ts && ts <= begin + slice["dur"].as_f64().unwrap()
            });
            assert!(inside, "{arrow} is in no slice");
        }
    }
}
