//! Sessions: steps, partial runs, callables, errors, and a model that is trained.

mod async_programs;
mod datasets;
mod device_types;
mod in_process;
mod learning;
mod server;
mod target;
mod tf_config;
mod trace;

use crate::{ClusterSpec, RunOptions, Server, ServerOptions, Session, SessionConfig, Task, feeds};
use graph::{AttrValue, Graph, Output};
use ops::array::{constant, placeholder};
use status::Code;
use std::collections::{BTreeMap, HashMap};
use std::net::TcpListener;
use std::time::Duration;
use tensor::{DType, PartialShape, Tensor};

fn graph() -> Graph {
    Graph::with_ops(data::registry())
}

fn scalar(graph: &Graph, name: &str) -> Output {
    graph.root().op("Placeholder").named(name).attr("dtype", DType::F32).attr("shape", PartialShape::scalar()).output()
}

#[test]
fn a_formula_gives_its_value() {
    let graph = graph();
    let (x, y) = (scalar(&graph, "x"), scalar(&graph, "y"));
    let z = (&x + &y) * 2.0 - &x / &y;
    let session = Session::local(&graph);
    let value: f32 = session.run_with(&z, feeds! { &x => 6.0f32, &y => 2.0f32 }).unwrap();
    assert_eq!(value, 13.0);
}

#[test]
fn values_have_the_types_that_the_caller_names() {
    let graph = graph();
    let a = constant(&graph.root(), Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]));
    let b = constant(&graph.root(), Tensor::from(7i64));
    let text = constant(&graph.root(), Tensor::from("hello"));
    let nothing = graph.root().op("NoOp").node();
    let session = Session::local(&graph);
    let (rows, number, (text, ())): (Vec<[f32; 2]>, i64, (String, ())) =
        session.run((&a, &b, (&text, &nothing))).unwrap();
    assert_eq!((rows, number, text.as_str()), (vec![[1.0, 2.0], [3.0, 4.0]], 7, "hello"));
    let twice: [Tensor; 2] = session.run([&a, &a]).unwrap();
    assert_eq!(twice[1].shape().dims(), [2, 2]);
    let list: Vec<i64> = session.run(vec![&b, &b, &b]).unwrap();
    assert_eq!(list, [7, 7, 7]);
    session.execute((&a, &nothing)).unwrap();
}

#[test]
fn wrong_types_are_errors() {
    let graph = graph();
    let b = constant(&graph.root(), Tensor::from(7i64));
    let nothing = graph.root().op("NoOp").node();
    let session = Session::local(&graph);
    let error = session.run::<f32>(&b).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    let error = session.run::<f32>(&nothing).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}

#[test]
fn a_server_may_be_started_after_its_client() {
    // The socket listens, but no server answers on it before the session waits for one.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let graph = graph();
    let seven = constant(&graph.root(), Tensor::from(7i64));
    let impatient = SessionConfig { connect_timeout: Some(Duration::from_millis(200)), ..SessionConfig::default() };
    let session = Session::with_config(&address, &graph, impatient).unwrap();
    let error = session.run::<i64>(&seven).unwrap_err();
    let text = format!("The server at {address} does not answer: no sign of life for ");
    assert!(error.code == Code::Unavailable && error.message.starts_with(&text), "{error}");
    let session = Session::connect(&format!("grpc://{address}"), &graph).unwrap();
    let value = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| session.run::<i64>(&seven));
        let cluster = ClusterSpec::new().with_task("worker", 0, &address).unwrap();
        let task = Task { job: "worker".to_string(), index: 0 };
        let _server = Server::start_on(ServerOptions::new(cluster, task), listener).unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(value, Ok(7));
}

#[test]
fn a_server_listens_on_the_chosen_interface() {
    let start = |address: &str, bind: Option<&str>| {
        let task = Task { job: "worker".to_string(), index: 0 };
        let cluster = ClusterSpec::new().with_task("worker", 0, address).unwrap();
        Server::start(ServerOptions { bind: bind.map(str::to_string), ..ServerOptions::new(cluster, task) })
    };
    // The name that other tasks know is not one of this machine.
    let server = start("outside.invalid:0", Some("0.0.0.0")).unwrap();
    let port = server.target().strip_prefix("grpc://outside.invalid:").unwrap();
    let graph = graph();
    let seven = constant(&graph.root(), Tensor::from(7i64));
    for host in ["127.0.0.1", "127.0.0.2"] {
        let session = Session::connect(&format!("grpc://{host}:{port}"), &graph).unwrap();
        assert_eq!(session.run::<i64>(&seven), Ok(7), "{host}");
    }
    for (address, bind, place) in [
        ("outside.invalid:7", None, "outside.invalid:7"),
        ("127.0.0.1:0", Some("outside.invalid"), "outside.invalid:0"),
        ("127.0.0.1:0", Some("2001:db8::1"), "[2001:db8::1]:0"), // reserved for documentation, so no machine has it
    ] {
        let error = start(address, bind).err().unwrap();
        assert!(error.message.starts_with(&format!("Cannot listen on {place}: ")), "{error}");
    }
}

#[test]
fn a_fed_tensor_can_be_fetched() {
    let graph = graph();
    let x = scalar(&graph, "x");
    let y = &x + 1.0;
    let values: [f32; 2] = Session::local(&graph).run_with([&x, &y], feeds! { &x => 4f32 }).unwrap();
    assert_eq!(values, [4.0, 5.0]);
}

#[test]
fn nodes_added_between_steps_are_run() {
    let graph = graph();
    let x = scalar(&graph, "x");
    let session = Session::local(&graph);
    let y = &x + 1.0;
    assert_eq!(session.run_with::<f32>(&y, feeds! { &x => 1.0f32 }).unwrap(), 2.0);
    let z = &y * 10.0;
    assert_eq!(session.run_with::<f32>(&z, feeds! { &x => 1.0f32 }).unwrap(), 20.0);
}

#[test]
fn run_returns_the_error_of_building_the_graph() {
    let graph = graph();
    let bad = graph.root().op("NoSuchOp").output();
    let error = Session::local(&graph).run::<Tensor>(&bad).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(error.message.contains("NoSuchOp"), "{error}");
}

#[test]
fn a_closed_session_runs_nothing() {
    let graph = graph();
    let b = constant(&graph.root(), Tensor::from(7i64));
    let session = Session::local(&graph);
    assert_eq!(session.run::<i64>(&b).unwrap(), 7);
    session.close().unwrap();
    let error = session.run::<i64>(&b).unwrap_err();
    assert!(error.message.contains("Attempted to use a closed Session."), "{error}");
}

#[test]
fn callables_take_feeds_by_place() {
    let graph = graph();
    let (x, y) = (scalar(&graph, "x"), scalar(&graph, "y"));
    let difference = &x - &y;
    let session = Session::local(&graph);
    let sum = &x + &y;
    let callable = session.make_callable((&difference, &sum), &[&y, &x]).unwrap();
    let (difference, sum): (f32, f32) = callable.call(vec![1f32.into(), 5f32.into()]).unwrap();
    assert_eq!((difference, sum), (4.0, 6.0));
}

#[test]
fn a_step_runs_in_several_parts() {
    let graph = graph();
    let (a, b, c) = (scalar(&graph, "a"), scalar(&graph, "b"), scalar(&graph, "c"));
    let first = &a + &b;
    let second = &first * &c;
    let session = Session::local(&graph);
    let partial = session.partial_run((&first, &second), &[&a, &b, &c]).unwrap();
    let sum: f32 = partial.run_with(&first, feeds! { &a => 1f32, &b => 2f32 }).unwrap();
    let product: f32 = partial.run_with(&second, feeds! { &c => sum * 17.0 }).unwrap();
    assert_eq!((sum, product), (3.0, 153.0));
}

#[test]
fn devices_are_as_many_as_configured() {
    let config = SessionConfig { device_count: vec![("CPU".to_string(), 3)], ..SessionConfig::default() };
    let graph = graph();
    let session = Session::with_config("", &graph, config).unwrap();
    let names: Vec<String> = session.list_devices().unwrap().into_iter().map(|device| device.name).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(names[2], "/job:localhost/replica:0/task:0/device:CPU:2");
}

#[test]
fn a_step_over_its_time_is_ended() {
    let graph = graph();
    // The tensor that this waits for is never sent.
    let device = "/job:localhost/replica:0/task:0/device:CPU:0";
    let never = graph
        .root()
        .op("_Recv")
        .attr("tensor_type", DType::F32)
        .attr("tensor_name", "never")
        .attr("send_device", device)
        .attr("recv_device", device)
        .attr("send_device_incarnation", 1i64)
        .output();
    let session = Session::local(&graph);
    let options = RunOptions { timeout: Some(Duration::from_millis(20)), ..RunOptions::default() };
    let error = session.run_with_options::<f32>(&never, feeds! {}, options).err().unwrap();
    assert_eq!(error.code, Code::DeadlineExceeded, "{error}");
}

#[test]
fn traces_name_the_nodes_that_ran() {
    let graph = graph();
    let x = scalar(&graph, "x");
    let y = graph.root().op("Square").named("y").input(&x).output();
    let session = Session::local(&graph);
    let options = RunOptions { trace: true, ..RunOptions::default() };
    let (value, metadata): (f32, _) = session.run_with_options(&y, feeds! { &x => 3f32 }, options).unwrap();
    assert_eq!(value, 9.0);
    assert!(metadata.stats.iter().any(|(_, nodes)| nodes.iter().any(|node| *node.name == *"y")));
}

#[test]
fn functions_have_gradients() {
    let graph = graph();
    let cube = graph::FunctionDef {
        signature: graph::Signature::parse("Cube(x: float) -> y: float").unwrap(),
        attrs: Default::default(),
        nodes: vec![
            std::sync::Arc::new(node("square", "Mul", &["x", "x"])),
            std::sync::Arc::new(node("cube", "Mul", &["square:z:0", "x"])),
        ],
        ret: [("y".to_string(), "cube:z:0".to_string())].into(),
        control_ret: Default::default(),
        arg_attrs: Default::default(),
        resource_arg_unique_id: Default::default(),
        encoded: Default::default(),
    };
    graph.add_function(cube);
    let x = scalar(&graph, "x");
    let y = graph.root().op("Cube").input(&x).output();
    let dx = gradient::gradients(&data::registry(), std::slice::from_ref(&y), std::slice::from_ref(&x))
        .unwrap()
        .remove(0)
        .unwrap();
    let dx = gradient::densify(&dx);
    let session = Session::local(&graph);
    let (y, dx): (f32, f32) = session.run_with((&y, &dx), feeds! { &x => 2f32 }).unwrap();
    assert_eq!((y, dx), (8.0, 12.0));
}

fn node(name: &str, op: &str, inputs: &[&str]) -> graph::NodeDef {
    graph::NodeDef {
        name: name.to_string(),
        op: op.to_string(),
        inputs: inputs.iter().map(|input| input.to_string()).collect(),
        attrs: [("T".to_string(), AttrValue::Type(DType::F32))].into(),
        ..graph::NodeDef::default()
    }
}

#[test]
fn placeholders_are_checked() {
    let graph = graph();
    let x = placeholder(&graph.root(), DType::F32, PartialShape::new(&[2]));
    let y = &x * 2.0;
    let session = Session::local(&graph);
    let error = session.run::<Tensor>(&y).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    assert!(error.message.contains("You must feed a value for placeholder tensor"), "{error}");
}

#[test]
fn a_product_gives_the_same_alone_and_with_what_follows_it() {
    let graph = graph();
    let root = graph.root();
    let x = placeholder(&root, DType::F32, PartialShape::new(&[-1, 3]));
    let image = placeholder(&root, DType::F32, PartialShape::new(&[-1, 4, 4, 1]));
    let w = constant(&root, Tensor::from([[1.0f32, -2.0], [0.5, 3.0], [-1.0, 0.25]]));
    let bias = constant(&root, Tensor::from([0.5f32, -0.75]));
    let filter = constant(&root, Tensor::from_slice([1, 2, 1, 2], &[1.0f32, -1.0, 0.5, 2.0]).unwrap());
    let strides = AttrValue::from(vec![1i64, 1, 1, 1]);
    let products = [
        root.op("MatMul").input(&x).input(&w).output(),
        root.op("Conv2D").input(&image).input(&filter).attr("strides", strides).attr("padding", "SAME").output(),
    ];
    let session = Session::local(&graph);
    let rows = [[1.0f32, 2.0, 3.0], [-1.0, 0.5, 2.0]];
    let pixels: Vec<f32> = (0..16).map(|i| i as f32 / 4.0 - 2.0).collect();
    let pixels = Tensor::from_slice([1, 4, 4, 1], &pixels).unwrap();
    let feeds = || feeds! { &x => rows, &image => pixels.clone() };
    for product in products {
        let shifted = root.op("BiasAdd").input(&product).input(&bias).output();
        for activation in ["Relu", "Relu6", "Elu", "Tanh", "Sigmoid", "LeakyRelu"] {
            let result = root.op(activation).input(&shifted).output();
            let alone: Tensor = session.run_with(&result, feeds()).unwrap();
            // The values in between are fetched too, so that no ops are joined.
            let (apart, _, _): (Tensor, Tensor, Tensor) =
                session.run_with((&result, &shifted, &product), feeds()).unwrap();
            let (alone, apart) = (alone.values::<f32>().unwrap(), apart.values::<f32>().unwrap());
            assert_eq!(alone, apart, "{activation}");
        }
    }
}

#[test]
fn fetches_of_any_number_and_from_maps() {
    let graph = graph();
    let scope = graph.root();
    let numbers: Vec<Output> = (0..20).map(|i| constant(&scope, Tensor::from(i as f32))).collect();
    let session = Session::local(&graph);

    let all: Vec<f32> = session.run(&numbers[..]).unwrap();
    assert_eq!(all, (0..20).map(|i| i as f32).collect::<Vec<_>>());
    let some: Vec<f32> = session.run(&[&numbers[3], &numbers[1]][..]).unwrap();
    assert_eq!(some, [3.0, 1.0]);
    let n = &numbers;
    let fetches = (&n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8], &n[9], &n[10], &n[11]);
    let (first, .., last): (f32, (), (), (), (), (), (), (), (), (), (), f32) = session.run(fetches).unwrap();
    assert_eq!((first, last), (0.0, 11.0));

    let named: HashMap<String, &Output> = numbers.iter().map(|number| (number.name(), number)).collect();
    let found: HashMap<String, f32> = session.run(named).unwrap();
    assert_eq!(found.len(), 20);
    assert!(numbers.iter().zip(0..).all(|(number, i)| found[&number.name()] == i as f32));
    let pairs = BTreeMap::from([("a", (&n[1], &n[2])), ("b", (&n[3], &n[4]))]);
    let found: BTreeMap<&str, (f32, f32)> = session.run(pairs).unwrap();
    assert_eq!(found, BTreeMap::from([("a", (1.0, 2.0)), ("b", (3.0, 4.0))]));
}
