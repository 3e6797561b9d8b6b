//! Device types that a program registers: a second CPU-like type, alone and in a cluster.

use crate::{DeviceType, DeviceTypes, Extensions, LocalCluster, RunMetadata, RunOptions, ServerOptions, Session};
use crate::{SessionConfig, feeds};
use graph::{Graph, Output};
use op::unary;
use ops::array::constant;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensor::{DType, Tensor};

const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";
const FAKE: &str = "/job:localhost/replica:0/task:0/device:FAKE:0";

/// A type with a kernel of its own for Neg, which counts its calls, and with the CPU's kernels of some other ops.
fn fake(calls: &Arc<AtomicUsize>) -> DeviceType {
    let calls = calls.clone();
    let neg = move |_: &op::Setup<'_>| {
        let calls = calls.clone();
        Ok(unary(move |_, x: Tensor| {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok(Tensor::scalar(-x.to_scalar::<f32>()?))
        }))
    };
    DeviceType::new("FAKE").memory_limit(1 << 30).kernel("Neg", neg).cpu_kernels(&[
        "AddN",
        "Const",
        "Mul",
        "VariableV2",
        "Assign",
    ])
}

fn config(types: DeviceTypes) -> SessionConfig {
    SessionConfig { extensions: Extensions::new().with(types), ..SessionConfig::default() }
}

/// The value of a node and the devices on which nodes ran, by name of the node.
fn run(session: &Session, fetch: &Output, feed: Option<&Output>) -> (f32, Vec<(String, String)>) {
    let feeds = feed.map_or_else(|| feeds! {}, |x| feeds! { x => 3f32 });
    let options = RunOptions { trace: true, ..RunOptions::default() };
    let (value, RunMetadata { stats, .. }) = session.run_with_options::<f32>(fetch, feeds, options).unwrap();
    let nodes =
        stats.iter().flat_map(|(device, nodes)| nodes.iter().map(|node| (node.name.to_string(), device.clone())));
    (value, nodes.collect())
}

fn device_of<'a>(devices: &'a [(String, String)], node: &str) -> &'a str {
    &devices.iter().find(|(name, _)| name == node).unwrap().1
}

fn neg(name: &str, x: &Output, device: &str) -> Output {
    x.scope().op("Neg").named(name).on(device).input(x).output()
}

#[test]
fn a_node_runs_on_the_registered_device_it_names() {
    let calls = Arc::new(AtomicUsize::new(0));
    let graph = super::graph();
    let x = super::scalar(&graph, "x");
    let (near, far) = (neg("near", &x, ""), neg("far", &x, "/device:FAKE:0"));
    let sum = graph.root().op("AddN").named("sum").on("/device:FAKE:0").inputs(&[near, far]).output();
    let session = Session::with_config("", &graph, config(DeviceTypes::new([fake(&calls)]).unwrap())).unwrap();
    let (value, devices) = run(&session, &sum, Some(&x));
    assert_eq!((value, calls.load(Ordering::Relaxed)), (-6.0, 1));
    let placed = ["near", "far", "sum"].map(|node| device_of(&devices, node));
    assert_eq!(placed, [CPU, FAKE, FAKE]);
    let known: Vec<_> = session.list_devices().unwrap();
    let known: Vec<_> = known.iter().map(|own| (&*own.name, &*own.kind, own.memory_limit)).collect();
    assert_eq!(known, [(CPU, "CPU", 256 << 20), (FAKE, "FAKE", 1 << 30)]);
}

#[test]
fn constants_are_not_folded_past_a_kernel_of_the_device() {
    let calls = Arc::new(AtomicUsize::new(0));
    let graph = super::graph();
    let minus = neg("minus", &constant(&graph.root(), Tensor::from(2f32)), "/device:FAKE:0");
    let session = Session::with_config("", &graph, config(DeviceTypes::new([fake(&calls)]).unwrap())).unwrap();
    assert_eq!(session.run::<f32>(&minus), Ok(-2.0));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn the_type_of_highest_priority_is_preferred() {
    for (priority, expected) in [(210, FAKE), (10, CPU)] {
        let graph = super::graph();
        let x = super::scalar(&graph, "x");
        let y = neg("y", &x, "");
        let z = graph.root().op("L2Loss").named("z").input(&y).output();
        let types = DeviceTypes::new([fake(&Arc::default()).priority(priority)]).unwrap();
        let session = Session::with_config("", &graph, config(types)).unwrap();
        let (value, devices) = run(&session, &z, Some(&x));
        assert_eq!((value, device_of(&devices, "y")), (4.5, expected));
        // The type has no kernel for L2Loss.
        assert_eq!(device_of(&devices, "z"), CPU);
    }
}

#[test]
fn a_device_without_a_kernel_of_the_op_is_an_error_unless_placement_is_soft() {
    let square = |config: SessionConfig| {
        let graph = super::graph();
        let x = constant(&graph.root(), Tensor::from(4f32));
        let y = graph.root().op("Square").named("y").on("/device:FAKE:0").input(&x).output();
        Session::with_config("", &graph, config).unwrap().run::<f32>(&y)
    };
    let hard = config(DeviceTypes::new([fake(&Arc::default())]).unwrap());
    let soft = SessionConfig { soft_placement: true, ..hard.clone() };
    assert_eq!(
        square(hard).unwrap_err().message,
        "Cannot assign a device for operation y: Could not satisfy explicit device specification '/device:FAKE:0' \
         because no supported kernel for FAKE devices is available. With allow_soft_placement it runs on another \
         device of its task.\nOp: Square\nNode attrs: T=DT_FLOAT\nRegistered kernels:\n  device='CPU'\n\n\t \
         [[{{node y}}]]"
    );
    assert_eq!(square(soft), Ok(16.0));
}

#[test]
fn a_gpu_that_is_not_there_is_an_error_that_says_what_is() {
    let run = |config: SessionConfig| {
        let graph = super::graph();
        let x = graph.root().op("Const").named("x").on("/gpu:0").attr("value", Tensor::from(4f32));
        let x = x.attr("dtype", DType::F32).output();
        Session::with_config("", &graph, config).unwrap().run::<f32>(&x)
    };
    let hard = config(DeviceTypes::new([fake(&Arc::default())]).unwrap());
    let soft = SessionConfig { soft_placement: true, ..hard.clone() };
    let message = run(hard).unwrap_err().message;
    let device = message.split("assigned to ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(device.to_lowercase().replace("/device:", "/"), "/gpu:0");
    let expected = format!(
        "available devices are [ {CPU}, {FAKE} ]. Make sure the device specification refers to a valid device. The \
         requested device appears to be a GPU, but CUDA is not enabled. With allow_soft_placement it runs on the CPU."
    );
    assert!(message.contains(&expected), "{message}");
    assert_eq!(run(soft), Ok(4.0));
}

#[test]
fn the_configuration_sets_the_number_of_devices() {
    let names = |count: usize| {
        let types = DeviceTypes::new([fake(&Arc::default())]).unwrap();
        let config = SessionConfig { device_count: vec![("FAKE".to_string(), count)], ..config(types) };
        let session = Session::with_config("", &super::graph(), config).unwrap();
        session.list_devices().unwrap().into_iter().map(|device| device.name).collect::<Vec<_>>()
    };
    assert_eq!(names(0), [CPU]);
    assert_eq!(names(2), [CPU.to_string(), FAKE.to_string(), FAKE.replace(":0/device:FAKE:0", ":0/device:FAKE:1")]);
}

#[test]
fn bad_types_are_refused() {
    let error = |types: [DeviceType; 2]| DeviceTypes::new(types).unwrap_err().message;
    let fake = || DeviceType::new("FAKE");
    assert_eq!(error([fake(), fake()]), "device type FAKE is registered already");
    assert_eq!(error([fake(), DeviceType::new("cpu")]), "device type cpu is registered already");
    let text = "'a:b' is not the name of a device type; expected a letter, then letters, digits and underscores";
    assert_eq!(error([fake(), DeviceType::new("a:b")]), text);
}

#[test]
fn a_job_prefers_a_type_in_a_cluster() {
    let types = || {
        let fake = DeviceType::new("FAKE").priority(210).all_cpu_kernels();
        Extensions::new().with(DeviceTypes::new([fake]).unwrap().prefer("ps", "CPU"))
    };
    let change = |options| ServerOptions { extensions: types(), inter_op_threads: 1, intra_op_threads: 1, ..options };
    let cluster = LocalCluster::start_with(&[("ps", 1), ("worker", 1)], change).unwrap();
    let graph = super::graph();
    let x = super::scalar(&graph, "x");
    let kept = variable(&graph, "kept", "/job:ps");
    let moved = variable(&graph, "moved", "/job:ps/device:FAKE:0");
    let sum = graph.root().op("AddN").named("sum").inputs(&[kept.clone(), moved.clone(), x.clone()]).output();
    let session = Session::connect(&cluster.targets("worker")[0], &graph).unwrap();
    let (value, devices) = run(&session, &sum, Some(&x));
    let device = |node: &str| device_of(&devices, node).replace("/replica:0/task:0/device:", " ");
    assert_eq!(value, 13.0);
    assert_eq!(["kept", "moved", "sum"].map(device), ["/job:ps CPU:0", "/job:ps FAKE:0", "/job:worker FAKE:0"]);
    let kinds: Vec<String> = session.list_devices().unwrap().into_iter().map(|device| device.kind).collect();
    assert_eq!(kinds, ["CPU", "FAKE", "CPU", "FAKE"]);
}

/// The value of a variable after 5 was assigned to it.
fn variable(graph: &Graph, name: &str, device: &str) -> Output {
    let scope = graph.root().on(device);
    let shape = tensor::PartialShape::scalar();
    let variable = scope.op("VariableV2").named(name).attr("dtype", DType::F32).attr("shape", shape).output();
    scope.op("Assign").input(&variable).input(&constant(&graph.root(), Tensor::from(5f32))).output()
}
