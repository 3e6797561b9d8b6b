//! Placement; devices and sentences are those of a TensorFlow 2.21 master with two ps tasks and a worker.

use super::text::{devices, graph};
use crate::{Device, place};
use graph::DeviceSpec;
use op::{DeviceType, DeviceTypes};

const CLUSTER: &[&str] = &["worker:0", "ps:0", "ps:1"];
const KNOWN: &str = "/job:ps/replica:0/task:0/device:CPU:0, /job:ps/replica:0/task:1/device:CPU:0, \
                     /job:worker/replica:0/task:0/device:CPU:0";

/// Places the nodes; `expected` gives each `name device`.
fn check(text: &str, soft: bool, expected: &str) {
    let (graph, devices) = (graph(text), devices(CLUSTER));
    let placement = place(&graph, &devices, &[], soft).unwrap();
    let found =
        graph.nodes.iter().zip(placement).map(|(node, at)| format!("{} {}", node.def.name, CLUSTER[at as usize]));
    assert_eq!(found.collect::<Vec<_>>().join("; "), expected);
}

fn check_error(text: &str, soft: bool, cluster: &[&str], expected: &str) {
    let error = place(&graph(text), &devices(cluster), &[], soft).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (status::Code::InvalidArgument, expected));
}

#[test]
fn a_part_of_a_name_is_filled_up() {
    check(
        "a Add b b @/job:ps
         b Neg c @/task:1
         c Neg d
         d Placeholder",
        false,
        "a ps:0; b ps:1; c worker:0; d worker:0",
    );
}

#[test]
fn nodes_go_with_their_data() {
    check(
        "far Neg x @/job:ps/task:0
         x Const
         k Const
         m Mul k k @/job:ps/task:1
         i Identity far
         j Neg i @/job:ps/task:0
         i2 Identity far
         z Neg i2
         k2 Const
         m2 Neg k2 @/job:ps/task:1
         m3 Neg k2
         n Const ^m
         s Shape far",
        false,
        "far ps:0; x ps:0; k ps:1; m ps:1; i ps:0; j ps:0; i2 worker:0; z worker:0; k2 worker:0; m2 ps:1; \
         m3 worker:0; n worker:0; s ps:0",
    );
}

#[test]
fn ops_that_change_a_variable_run_on_its_device() {
    let expected = "v ps:0; one ps:0; u ps:0; h ps:1; r ps:1; two ps:1; a ps:1; i ps:1";
    check(
        "v VariableV2 @/job:ps/task:0
         one Const
         u Assign v one @/job:worker/task:0
         h VarHandleOp @/job:ps/task:1
         r ReadVariableOp h
         two Const
         a AssignVariableOp h two @/job:worker/task:0
         i Identity h T=resource",
        false,
        expected,
    );
}

#[test]
fn a_group_combines_the_requests_of_its_members() {
    check(
        "a Neg b _class=loc:@g
         b Const
         g Neg b @/job:ps
         c Neg b @/task:1 _class=loc:@a",
        false,
        "a ps:1; b ps:1; g ps:1; c ps:1",
    );
    check("a Const _class=loc:@absent\nb Neg a _class=loc:@absent @/job:ps", false, "a ps:0; b ps:0");
}

#[test]
fn incompatible_groups() {
    let text = "
        a Const @/job:ps/task:0
        c Const
        b Identity c @/job:ps/task:1 _class=loc:@a";
    check_error(
        text,
        false,
        CLUSTER,
        "Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge devices with incompatible \
         tasks: '/job:ps/task:1' and '/job:ps/task:0'\n\t [[{{node b}}]]",
    );
    check(text, true, "a ps:0; c ps:1; b ps:1");
    let text = text
        .replace("task:1", "task:0/device:GPU:0")
        .replace("a Const @/job:ps/task:0", "a Const @/job:ps/task:0/device:CPU:0");
    check_error(
        &text,
        false,
        CLUSTER,
        "Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge devices with incompatible \
         types: '/job:ps/task:0/device:GPU:0' and '/job:ps/task:0/device:CPU:0'\n\t [[{{node b}}]]",
    );
    check(&text, true, "a ps:0; c ps:0; b ps:0");
}

#[test]
fn a_variable_is_on_one_device() {
    let text = "
        v VariableV2 @/job:ps/task:0
        w VariableV2 @/job:ps/task:1
        u Assign v w @/job:ps/task:0 _class=loc:@w";
    check_error(
        text,
        false,
        CLUSTER,
        "Cannot colocate nodes {{colocation_node u}} and {{colocation_node w}}: Cannot merge devices with incompatible \
         tasks: '/job:ps/task:0' and '/job:ps/task:1'\n\t [[{{node u}}]]",
    );
}

#[test]
fn a_missing_device() {
    let sentence = |device: &str, known: &str, cure: &str| {
        format!(
            "Cannot assign a device for operation A: {{{{node A}}}} was explicitly assigned to {device} but available \
             devices are [ {known} ]. Make sure the device specification refers to a valid device.{cure}\n\t \
             [[{{{{node A}}}}]]"
        )
    };
    let text = |device: &str| format!("A Const @{device}");
    let cure = " The session's cluster has no such task; device filters may hide it.";
    check_error(&text("/job:ps/task:9"), false, CLUSTER, &sentence("/job:ps/task:9", KNOWN, cure));
    check_error(&text("/job:ps/task:9"), true, CLUSTER, &sentence("/job:ps/task:9", KNOWN, cure));
    let cure = " The session's cluster has the jobs ps, worker; device filters may hide others.";
    check_error(&text("/job:nope/task:0"), false, CLUSTER, &sentence("/job:nope/task:0", KNOWN, cure));
    let cure = " The requested device appears to be a GPU, but CUDA is not enabled. With allow_soft_placement it runs \
                on the CPU.";
    check_error(&text("/device:GPU:0"), false, CLUSTER, &sentence("/device:GPU:0", KNOWN, cure));
    check(&text("/device:GPU:0"), true, "A worker:0");
    let local = "/job:localhost/replica:0/task:0/device:CPU:0";
    let cure = " This session runs in its own process and knows no other task: start a server for each task of the \
                cluster, and give the session the target of one, such as \"grpc://localhost:2222\".";
    check_error(&text("/job:ps/task:9"), false, &["localhost:0"], &sentence("/job:ps/task:9", local, cure));
}

#[test]
fn a_malformed_device_name() {
    check_error(
        "A Const @/jab:x",
        false,
        CLUSTER,
        "Malformed device specification '/jab:x' in node: {{node A}}: '/jab:x' is none of its parts, which are as in \
         /job:worker/replica:0/task:0/device:CPU:0\n\t [[{{node A}}]]",
    );
}

#[test]
fn a_group_that_requests_a_missing_device() {
    check_error(
        "a Neg c _class=loc:@b
         c Const
         b Neg c @/job:ps/task:7",
        false,
        CLUSTER,
        &format!(
            "Cannot assign a device for operation a: Could not satisfy explicit device specification '' because the \
             node {{{{colocation_node a}}}} was colocated with a group of nodes that required incompatible device \
             '/job:ps/task:7'. All available devices [{KNOWN}]. The session's cluster has no such task; device \
             filters may hide it.\n\t [[{{{{node a}}}}]]"
        ),
    );
}

#[test]
fn placed_nodes_keep_their_device_and_their_group_follows() {
    let (graph, devices) = (graph("v VarHandleOp\nr ReadVariableOp v\nn Neg r"), devices(CLUSTER));
    assert_eq!(place(&graph, &devices, &[2], false).unwrap(), [2, 2, 0]);
}

#[test]
fn many_nodes_are_placed_one_by_one() {
    let text: String = (0..20_000).map(|i| format!("c{i} Const\nn{i} Neg c{i} @/job:ps/task:{}\n", i % 2)).collect();
    let placement = place(&graph(&text), &devices(CLUSTER), &[], false).unwrap();
    assert!(placement.chunks(4).all(|four| four == [1, 1, 2, 2]));
}

/// One CPU and one device of type FAKE on ps and worker; FAKE has kernels for Neg and VariableV2 only.
fn with_fake(priority: i32) -> Vec<Device> {
    let fake = DeviceType::new("FAKE").priority(priority).cpu_kernels(&["Neg", "VariableV2", "Assign"]);
    let types = DeviceTypes::new([fake]).unwrap().prefer("ps", "CPU");
    let names = ["worker CPU", "worker FAKE", "ps CPU", "ps FAKE"].map(|name| name.split_once(' ').unwrap());
    let specs = names.map(|(job, kind)| format!("/job:{job}/replica:0/task:0/device:{kind}:0"));
    specs.iter().map(|spec| Device::new(DeviceSpec::parse(spec).unwrap(), 1, &types)).collect()
}

/// Where the nodes of a graph are placed: worker CPU, worker FAKE, ps CPU or ps FAKE.
fn check_fake(text: &str, priority: i32, soft: bool, expected: [u32; 3]) {
    assert_eq!(place(&graph(text), &with_fake(priority), &[], soft).unwrap(), expected, "{text}");
}

#[test]
fn the_supported_type_of_highest_priority_comes_first() {
    // The constant has no kernel on FAKE.
    check_fake("x Const\nn Neg x\nm Mul n n", 210, false, [0, 1, 0]);
    check_fake("x Const\nn Neg x\nm Mul n n", 10, false, [0, 0, 0]);
}

#[test]
fn a_job_prefers_its_type_but_obeys_requests() {
    check_fake("v VariableV2 @/job:ps\nw VariableV2 @/job:ps/device:FAKE:0\nn Neg v", 210, false, [2, 3, 1]);
    check_fake("v VariableV2 @/job:worker\nw VariableV2 @/job:worker\nn Neg v", 10, false, [0, 0, 0]);
}

#[test]
fn a_group_uses_types_that_support_all_its_members() {
    check_fake("x Const\nn Neg x\nm Mul x x _class=loc:@n", 210, false, [0, 0, 0]);
    let text = "x Const @/job:worker/device:CPU:0\nn Neg x @/device:FAKE:0\nm Mul x x _class=loc:@n";
    let error = place(&graph(text), &with_fake(210), &[], false).unwrap_err();
    let expected = "because no supported kernel for FAKE devices is available. With allow_soft_placement it runs on \
                    another device of its task.\nColocation group had the following types and supported devices:\n\
                    Mul: CPU\nNeg: CPU FAKE\n";
    assert!(error.message.contains(expected), "{error}");
    check_fake(text, 210, true, [0, 0, 0]);
}

#[test]
fn types_of_other_tasks_are_used_only_on_request() {
    let specs = ["worker/replica:0/task:0/device:CPU:0", "worker/replica:0/task:1/device:GPU:0"];
    let device = |spec: &str| Device::new(DeviceSpec::parse(spec).unwrap(), 1, &DeviceTypes::default());
    let devices = specs.map(|spec| device(&format!("/job:{spec}")));
    let graph = graph("x Const\nn Neg x\nm Neg x @/device:GPU:0");
    let placed = place(&graph, &devices, &[], false).unwrap();
    assert_eq!(placed, [0, 0, 1]);
}
