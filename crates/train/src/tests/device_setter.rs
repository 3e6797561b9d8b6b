//! Devices that `tf.train.replica_device_setter` of TensorFlow 2.21 gives to the same nodes.

use super::graph;
use crate::device_setter::{ReplicaDeviceSetter, byte_size_load, greedy, hashed, replica_device_setter};
use graph::Scope;
use session::ClusterSpec;
use tensor::{DType, PartialShape};

fn variable(scope: &Scope, name: &str, shape: &[i64]) -> String {
    let shape = PartialShape::new(shape);
    let node = scope.op("VariableV2").named(name).attr("dtype", DType::F32).attr("shape", shape).node();
    node.def().device.clone()
}

fn other(scope: &Scope) -> String {
    scope.op("NoOp").node().def().device.clone()
}

/// The devices of variables a, b, c on a CPU, d, e on a worker, f on a ps; of two other nodes, the second on a
/// GPU; of one outside of all scopes; and of a last variable.
fn check(setter: ReplicaDeviceSetter, expected: [&str; 10]) {
    let graph = graph();
    let scope = setter.on(&graph.root());
    let found = [
        variable(&scope, "a", &[2]),
        variable(&scope, "b", &[2]),
        variable(&scope.on("/cpu:0"), "c", &[2]),
        variable(&scope, "d", &[2]),
        variable(&scope.on("/job:worker/task:5"), "e", &[2]),
        variable(&scope.on("/job:ps/task:2"), "f", &[2]),
        other(&scope),
        other(&scope.on("/gpu:1")),
        other(&scope.on_any_device()),
        variable(&scope, "h", &[2]),
    ];
    graph.check().unwrap();
    assert_eq!(found, expected);
}

#[test]
fn variables_go_around_the_ps_tasks() {
    check(
        replica_device_setter(3),
        [
            "/job:ps/task:0",
            "/job:ps/task:1",
            "/job:ps/task:2/device:CPU:0",
            "/job:ps/task:0",
            "/job:worker/task:5",
            "/job:ps/task:2",
            "/job:worker",
            "/job:worker/device:GPU:1",
            "",
            "/job:ps/task:2",
        ],
    );
}

#[test]
fn a_cluster_says_how_many_ps_tasks_there_are() {
    let cluster = ClusterSpec::parse("ps=a:1,b:1,c:1;worker=d:1,e:1").unwrap();
    // Numbers that are left out do not count, and neither does it matter which they are.
    let sparse = ClusterSpec::parse("ps=,a:1,,,b:1;worker=d:1").unwrap();
    let devices = |setter: ReplicaDeviceSetter| {
        let graph = graph();
        let scope = setter.on(&graph.root());
        let found = ["a", "b", "c", "d"].map(|name| variable(&scope, name, &[2]));
        graph.check().unwrap();
        found
    };
    let around = |tasks: [u32; 4]| tasks.map(|task| format!("/job:ps/task:{task}"));
    assert_eq!(devices(replica_device_setter(&cluster)), around([0, 1, 2, 0]));
    assert_eq!(devices(replica_device_setter(&sparse)), around([0, 1, 0, 1]));
    let worker = ["0", "1", "0", "1"].map(|task| format!("/job:worker/task:{task}"));
    assert_eq!(devices(replica_device_setter(&cluster).ps_device("/job:worker")), worker);
    for none in ["/job:master", ""] {
        assert_eq!(devices(replica_device_setter(&cluster).ps_device(none)), [""; 4]);
    }
}

#[test]
fn without_merging_a_device_stays_as_it_is() {
    check(
        replica_device_setter(3).merge_devices(false),
        [
            "/job:ps/task:0",
            "/job:ps/task:1",
            "/device:CPU:0",
            "/job:ps/task:2",
            "/job:worker/task:5",
            "/job:ps/task:2",
            "/job:worker",
            "/device:GPU:1",
            "",
            "/job:ps/task:0",
        ],
    );
}

#[test]
fn devices_of_ps_and_worker_can_be_said() {
    check(
        replica_device_setter(2).ps_device("").worker_device("/job:w"),
        [
            "/job:w",
            "/job:w",
            "/job:w/device:CPU:0",
            "/job:w",
            "/job:worker/task:5",
            "/job:ps/task:2",
            "/job:w",
            "/job:w/device:GPU:1",
            "",
            "/job:w",
        ],
    );
    check(
        replica_device_setter(2).ps_device("/job:master/cpu:0").worker_device(""),
        [
            "/job:master/task:0/device:CPU:0",
            "/job:master/task:1/device:CPU:0",
            "/job:master/task:0/device:CPU:0",
            "/job:master/task:1/device:CPU:0",
            "/job:worker/task:5/device:CPU:0",
            "/job:ps/task:2/device:CPU:0",
            "",
            "/device:GPU:1",
            "",
            "/job:master/task:0/device:CPU:0",
        ],
    );
}

#[test]
fn without_ps_tasks_nothing_changes() {
    let graph = graph();
    let scope = replica_device_setter(0).on(&graph.root().on("/job:local"));
    assert_eq!([variable(&scope, "a", &[2]), other(&scope)], ["/job:local", "/job:local"]);
}

#[test]
fn what_the_setter_leaves_open_comes_from_the_scope_around() {
    let graph = graph();
    let scope = replica_device_setter(2).on(&graph.root().on("/job:x/task:7/cpu:3"));
    let found = [variable(&scope, "q", &[2]), other(&scope)];
    assert_eq!(found, ["/job:ps/task:0/device:CPU:3", "/job:worker/task:7/device:CPU:3"]);
}

#[test]
fn the_greedy_fill_up_the_emptiest() {
    let graph = graph();
    let setter = replica_device_setter(2).ps_strategy(greedy(2, byte_size_load));
    let scope = setter.on(&graph.root());
    let sizes: [&[i64]; 5] = [&[100], &[10], &[20, 2], &[60], &[1]];
    let found = sizes.map(|shape| variable(&scope, "v", shape));
    let wanted = ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:0"];
    assert_eq!(found, wanted);
    variable(&scope, "open", &[-1, 2]);
    let error = graph.check().unwrap_err();
    assert!(error.message.contains("is not fully defined"), "{error}");
}

#[test]
fn a_hash_of_the_name_chooses() {
    for (seed, expected) in [(0, [0, 1, 1, 1]), (7, [2, 0, 2, 2])] {
        let graph = graph();
        let scope = replica_device_setter(3).ps_strategy(hashed(3, seed)).on(&graph.root());
        let found = ["w", "layer/kernel", "layer/bias", "a"].map(|name| variable(&scope, name, &[2]));
        assert_eq!(found, expected.map(|task| format!("/job:ps/task:{task}")));
    }
}

#[test]
fn other_ops_can_go_to_the_ps() {
    let graph = graph();
    let scope = replica_device_setter(2).ps_ops(&["NoOp"]).on(&graph.root());
    assert_eq!([variable(&scope, "a", &[2]), other(&scope)], ["/job:worker", "/job:ps/task:0"]);
}
