//! Groups: one `NoOp` for each device and a root, with the names that TensorFlow 2.21 uses.

use super::evaluate::graph;
use crate::control::no_op::{group, group_in};
use graph::{Graph, Node};

/// Each `NoOp` of a graph: its name, its device, and the nodes it waits for.
fn no_ops(graph: &Graph) -> Vec<String> {
    let def = graph.to_def().unwrap();
    let nodes = def.nodes.iter().filter(|node| node.op == "NoOp");
    nodes.map(|node| format!("{} '{}' {}", node.name, node.device, node.inputs.join(" "))).collect()
}

fn constant(graph: &Graph, name: &str, device: &str) -> Node {
    let tensor = tensor::Tensor::scalar(1f32);
    graph.root().on(device).op("Const").named(name).attr("dtype", tensor.dtype()).attr("value", tensor).node()
}

#[test]
fn a_group_has_one_node_for_each_device_and_a_root() {
    let graph = graph();
    let root = graph.root();
    let a = constant(&graph, "a", "/job:ps/task:1");
    let b = constant(&graph, "b", "/job:ps/task:0");
    let c = constant(&graph, "c", "");
    group(&root, [&a, &b, &c]);
    group(&root, [&a]);
    group(&root, [&a, &b]);
    group(&root, []);
    group(&root, [&c]);
    group_in(&root.named("gg"), [&a, &b]);
    let scope = root.named("s").on("/job:worker");
    group(&scope, [&a, &c]);
    group(&scope, [&c]);
    let expected = [
        "group_deps/NoOp '' ^c",
        "group_deps/NoOp_1 '/job:ps/task:0' ^b",
        "group_deps/NoOp_2 '/job:ps/task:1' ^a",
        "group_deps '' ^group_deps/NoOp ^group_deps/NoOp_1 ^group_deps/NoOp_2",
        "group_deps_1 '/job:ps/task:1' ^a",
        "group_deps_2/NoOp '/job:ps/task:0' ^b",
        "group_deps_2/NoOp_1 '/job:ps/task:1' ^a",
        "group_deps_2 '' ^group_deps_2/NoOp ^group_deps_2/NoOp_1",
        "group_deps_3 '' ",
        "group_deps_4 '' ^c",
        "gg/NoOp '/job:ps/task:0' ^b",
        "gg/NoOp_1 '/job:ps/task:1' ^a",
        "gg '' ^gg/NoOp ^gg/NoOp_1",
        "s/group_deps/NoOp '/job:worker' ^c",
        "s/group_deps/NoOp_1 '/job:ps/task:1' ^a",
        "s/group_deps '/job:worker' ^s/group_deps/NoOp ^s/group_deps/NoOp_1",
        "s/group_deps_1 '/job:worker' ^c",
    ];
    assert_eq!(no_ops(&graph), expected);
}

#[test]
fn a_colocated_node_counts_for_the_device_of_its_group() {
    let graph = graph();
    let a = constant(&graph, "a", "/job:ps/task:1");
    let beside = graph.root().beside(&a).op("NoOp").named("x").node();
    group(&graph.root(), [&a, &beside]);
    assert_eq!(no_ops(&graph)[1..], ["group_deps '/job:ps/task:1' ^a ^x"]);
}
