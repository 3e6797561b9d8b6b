//! Programs of tutorials on distributed TensorFlow, in Rust, and the errors of common mistakes in them.

use flowgrid::prelude::*;
use flowgrid::{ClusterSpec, Code, Task, TfConfig};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::sync::Mutex;
use tracing_subscriber::EnvFilter;

fn text(error: &Error) -> String {
    error.to_string()
}

fn assert_says(error: &Error, parts: &[&str]) {
    for part in parts {
        assert!(text(error).contains(part), "'{part}' is not in: {}", text(error));
    }
}

#[test]
fn servers_of_one_process_make_a_cluster() {
    let mut cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let (ps, workers) = (cluster.targets("ps"), cluster.targets("worker"));
    assert_eq!((ps.len(), workers.len()), (1, 2));
    let graph = Graph::new();
    let total = Variable::zeros(&graph.root().on("/job:ps/task:0"), "total", []);
    let one = graph.root().on("/job:worker/task:1").constant(1.0f32);
    let add = total.assign_add(&one);
    for (round, target) in workers.iter().enumerate() {
        let session = Session::connect(target, &graph).unwrap();
        if round == 0 {
            session.execute(&global_variables_initializer(&graph)).unwrap();
        }
        session.execute(&add).unwrap();
        let value: f32 = session.run(&total).unwrap();
        assert_eq!(value, round as f32 + 1.0);
    }
    let session = Session::connect(&workers[0], &graph).unwrap();
    let _: f32 = session.run(&total).unwrap();
    cluster.stop("worker", 1);
    let error = session.execute(&add).unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{}", text(&error));
    assert_says(&error, &["/job:worker/replica:0/task:1"]);
    let value: f32 = session.run(&total).unwrap(); // what does not touch the lost task goes on
    assert_eq!(value, 2.0);
}

#[test]
fn variables_alternate_between_the_ps_tasks() {
    let cluster = LocalCluster::start(&[("ps", 3), ("worker", 1)]).unwrap();
    let graph = Graph::new();
    let scope = replica_device_setter(3).on(&graph.root());
    let ones = |name: &str, dims: &[usize]| {
        let values = vec![1.0f32; dims.iter().product()];
        let initial = Initializer::Value(Tensor::from_slice(dims, &values).unwrap());
        Variable::builder(&scope, name).initializer(initial).build()
    };
    let (w_0, b_0, w_1, b_1) = (ones("w_0", &[2, 3]), ones("b_0", &[3]), ones("w_1", &[3, 1]), ones("b_1", &[1]));
    let devices = [&w_0, &b_0, &w_1, &b_1].map(|variable| variable.handle().node().def().device.clone());
    assert_eq!(devices, ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:2", "/job:ps/task:0"]);
    let input_data = scope.placeholder(DType::F32, &[-1, 2]);
    let layer_0 = input_data.matmul(&w_0) + &b_0;
    let layer_1 = layer_0.matmul(&w_1) + &b_1;
    let session = Session::connect(&cluster.targets("worker")[0], &graph).unwrap();
    session.execute(&global_variables_initializer(&graph)).unwrap();
    let value: Vec<[f32; 1]> = session.run_with(&layer_1, feeds! { &input_data => [[1.0f32, 2.0]] }).unwrap();
    assert_eq!(value, [[13.0]]);
}

/// Parameters on two ps tasks, the rest on `/job:worker/task:7`. Returns logits, loss and the update.
fn on_the_eighth_worker(graph: &Graph) -> (Output, Output, Node) {
    let filled = |scope: &Scope, name: &str, dims: &[usize], value: f32| {
        let values = vec![value; dims.iter().product()];
        let initial = Initializer::Value(Tensor::from_slice(dims, &values).unwrap());
        Variable::builder(scope, name).initializer(initial).build()
    };
    let (ps_0, ps_1) = (graph.root().on("/job:ps/task:0"), graph.root().on("/job:ps/task:1"));
    let (weights_1, biases_1) = (filled(&ps_0, "weights_1", &[4, 3], 0.5), filled(&ps_0, "biases_1", &[3], 0.0));
    let (weights_2, biases_2) = (filled(&ps_1, "weights_2", &[3, 2], 0.25), filled(&ps_1, "biases_2", &[2], 1.0));
    let worker = graph.root().on("/job:worker/task:7");
    let input = worker.constant(Tensor::from_slice([5, 4], &[1f32; 20]).unwrap());
    let layer_1 = (input.matmul(&weights_1) + &biases_1).relu();
    let logits = (layer_1.matmul(&weights_2) + &biases_2).relu();
    let loss = logits.square().mean();
    let train_op = Optimizer::new(GradientDescent::new(0.01)).minimize(&loss).unwrap();
    (logits, loss, train_op)
}

#[test]
fn parameters_on_two_ps_and_products_on_the_eighth_worker() {
    let cluster = LocalCluster::start(&[("ps", 2), ("worker", 8)]).unwrap();
    let graph = Graph::new();
    let (logits, loss, train_op) = on_the_eighth_worker(&graph);
    let session = Session::connect(&cluster.targets("worker")[7], &graph).unwrap();
    session.execute(&global_variables_initializer(&graph)).unwrap();
    let value: Vec<[f32; 2]> = session.run(&logits).unwrap();
    assert_eq!(value, [[2.5, 2.5]; 5]);
    let losses: Vec<f32> = (0..10).map(|_| session.run::<(f32, ())>((&loss, &train_op)).unwrap().0).collect();
    assert_eq!(losses[0], 6.25);
    assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{losses:?}");
}

/// The program above on the cluster of the same tutorial.
#[test]
fn the_eighth_of_three_workers_does_not_exist() {
    let cluster = LocalCluster::start(&[("ps", 2), ("worker", 3)]).unwrap();
    let graph = Graph::new();
    let (logits, ..) = on_the_eighth_worker(&graph);
    let session = Session::connect(&cluster.targets("worker")[0], &graph).unwrap();
    let error = session.run::<Tensor>(&logits).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_says(&error, &["/job:worker/task:7", "The session's cluster has no such task"]);
    for (job, tasks) in [("ps", 2), ("worker", 3)] {
        (0..tasks).for_each(|task| assert_says(&error, &[&format!("/job:{job}/replica:0/task:{task}/device:CPU:0")]));
    }
}

#[test]
fn a_replica_of_each_worker_shares_what_is_on_the_ps() {
    let cluster = LocalCluster::start(&[("ps", 2), ("worker", 2)]).unwrap();
    for (task_index, target) in cluster.targets("worker").iter().enumerate() {
        let graph = Graph::new();
        let worker = format!("/job:worker/task:{task_index}");
        let scope = replica_device_setter(cluster.targets("ps").len()).worker_device(&worker).on(&graph.root());
        let total = Variable::zeros(&scope, "total", []);
        let add = total.assign_add(&scope.constant(task_index as f32 + 1.0));
        let session = Session::connect(target, &graph).unwrap();
        if task_index == 0 {
            session.execute(&global_variables_initializer(&graph)).unwrap();
        }
        session.execute(&add).unwrap();
        let value: f32 = session.run(&total).unwrap();
        assert_eq!(value, [1.0, 3.0][task_index]);
    }
}

/// `log_device_placement` of a session in this process and of one on a cluster.
#[test]
fn placement_is_logged_by_the_master() {
    let path = std::env::temp_dir().join(format!("flowgrid-placement-{}.log", std::process::id()));
    let placement = tracing_subscriber::fmt().with_env_filter(EnvFilter::new("off,placement=info"));
    placement.with_ansi(false).with_writer(Mutex::new(fs::File::create(&path).unwrap())).init();
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)]).unwrap();
    for (target, device) in [("", ""), (cluster.targets("worker")[0].as_str(), "/job:ps/task:0")] {
        let graph = Graph::new();
        let scope = if device.is_empty() { graph.root() } else { graph.root().on(device) };
        let weights = Variable::zeros(&scope, if device.is_empty() { "near" } else { "far" }, [2]);
        let config = SessionConfig { log_placement: true, ..SessionConfig::default() };
        let session = Session::with_config(target, &graph, config).unwrap();
        session.execute(&global_variables_initializer(&graph)).unwrap();
        let _: Tensor = session.run(&weights).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    for line in [
        "near: (VarHandleOp): /job:localhost/replica:0/task:0/device:CPU:0",
        "far: (VarHandleOp): /job:ps/replica:0/task:0/device:CPU:0",
    ] {
        assert!(text.contains(line), "'{line}' is not in: {text}");
    }
}

/// A tutorial's client that has no target, with `x` on a worker and `w` on a ps.
fn client(graph: &Graph) -> (Output, Output) {
    let w = Variable::builder(&graph.root().on("/job:ps/task:0"), "w")
        .initializer(Initializer::Value([[1.0f32, 2.0], [3.0, 4.0]].into()))
        .build();
    let x = graph.root().on("/job:worker/task:0").placeholder(DType::F32, &[1, 2]);
    let product = x.matmul(&w);
    (x, product)
}

#[test]
fn a_session_without_a_target_says_that_it_needs_one() {
    let graph = Graph::new();
    client(&graph);
    let error = Session::local(&graph).execute(&global_variables_initializer(&graph)).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_says(&error, &["/job:ps/task:0", "/job:localhost/replica:0/task:0/device:CPU:0", "grpc://localhost:2222"]);
}

#[test]
fn a_target_may_leave_out_its_scheme() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)]).unwrap();
    let target = cluster.targets("worker")[0].clone();
    for target in [target.as_str(), target.trim_start_matches("grpc://")] {
        let graph = Graph::new();
        let (x, product) = client(&graph);
        let session = Session::connect(target, &graph).unwrap();
        session.execute(&global_variables_initializer(&graph)).unwrap();
        let value: Vec<[f32; 2]> = session.run_with(&product, feeds! { &x => [[1.0f32, 1.0]] }).unwrap();
        assert_eq!(value, [[4.0, 6.0]]);
        let error = session.run::<Tensor>(&product).unwrap_err();
        assert_says(&error, &["You must feed a value for placeholder"]);
    }
    for target in ["http://127.0.0.1:2222", "worker0", "local"] {
        let error = Session::connect(target, &Graph::new()).err().expect("no such target");
        assert_eq!(error.code, Code::NotFound);
        assert_says(&error, &[target, "grpc://host:port"]);
    }
    // The first is from a tutorial; the others are similar to valid targets.
    for target in ["worker0.example.com:port", "grpc:/127.0.0.1:1", "grpc://127.0.0.1", "grpc://host:99999"] {
        let error = Session::connect(target, &Graph::new()).err().expect("no such address");
        assert_eq!(error.code, Code::InvalidArgument);
        let address = target.trim_start_matches("grpc://");
        let text = format!("Could not interpret \"{address}\" as a host-port pair.");
        assert_says(&error, &[&text, "grpc://127.0.0.1:2222"]);
    }
}

#[test]
fn mistakes_in_clusters_and_devices_are_named() {
    let spec = ClusterSpec::parse("ps=127.0.0.1:0;worker=127.0.0.1:0").unwrap();
    let task = Task { job: "current_job_name".to_string(), index: 0 };
    let error = Server::start(ServerOptions::new(spec, task)).err().expect("no such job");
    assert_says(&error, &["current_job_name", "/job:ps/replica:0/task:0, /job:worker/replica:0/task:0"]);

    let graph = Graph::new();
    replica_device_setter(1).worker_device("/job:worker/task:").on(&graph.root());
    let error = Session::local(&graph).execute(&graph.root().op("NoOp").node()).unwrap_err();
    let cure = "Malformed device specification '/job:worker/task:': '/task:' needs a number, such as /task:0";
    assert_says(&error, &[cure]);

    for (text, part) in [
        ("{", "not JSON"),
        ("[1]", "expected an object"),
        (r#"{"cluster": {"ps": 3}}"#, "ps"),
        (r#"{"cluster": {"ps": ["h"]}}"#, "host:port"),
        (r#"{"cluster": {"ps": ["grpc://h:1"]}}"#, "leave out grpc://"),
        (r#"{"task": "ps"}"#, "'task'"),
        (r#"{"task": {"type": 3}}"#, "'type'"),
        (r#"{"task": {"index": "x"}}"#, "'index'"),
        (r#"{"task": {"index": -1}}"#, "'index'"),
    ] {
        assert_says(&TfConfig::parse(text).unwrap_err(), &["TF_CONFIG", part]);
    }
    assert_says(&ClusterSpec::parse("ps=a:0;ps=b:1").unwrap_err(), &["'ps' twice"]);
}

#[test]
fn a_tf_config_is_read_and_written() {
    let spec = ClusterSpec::parse("ps=h0:1,h1:2").unwrap().with_task("worker", 3, "h2:3").unwrap();
    let task = Task { job: "worker".to_string(), index: 3 };
    let config = TfConfig::parse(&flowgrid::tf_config(&spec, &task)).unwrap();
    assert_eq!((config.cluster, config.job.as_deref(), config.index), (Some(spec), Some("worker"), Some(3)));
    let python = r#"{"cluster": {"chief": ["a:1"], "ps": ["b:2", "c:3"]}, "task": {"type": "ps", "index": "1"}}"#;
    let config = TfConfig::parse(python).unwrap();
    assert_eq!(config.cluster, Some(ClusterSpec::parse("chief=a:1;ps=b:2,c:3").unwrap()));
    assert_eq!((config.job.as_deref(), config.index), (Some("ps"), Some(1)));
}

/// The number of tensors and of bytes that each task received in a traced step.
fn received(metadata: &flowgrid::RunMetadata) -> BTreeMap<String, (usize, usize)> {
    let mut found: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (device, nodes) in &metadata.stats {
        let task = device.split("/device:").next().unwrap_or(device).replace("/replica:0", "");
        for node in nodes.iter().filter(|node| node.op.as_ref() == "_Recv" && !node.name.starts_with("_recv_")) {
            let entry = found.entry(task.clone()).or_default();
            entry.0 += 1;
            entry.1 += node.outputs.iter().map(|(dtype, shape)| shape.elements() * dtype.size()).sum::<usize>();
        }
    }
    found
}

/// A layer of 100 x 10 weights on the first ps and of 10 x 1 on the second, as in docs/parameter-update.md.
fn layers(variables: &VariableScope, x: &Output) -> Output {
    let hidden = Dense::new(10).bias(None).activation(TensorOps::tanh).apply(&variables.enter("hidden"), x);
    Dense::new(1).bias(None).apply(&variables.enter("output"), &hidden).square().mean()
}

fn traced(target: &str, graph: &Graph, train: &Node) -> BTreeMap<String, (usize, usize)> {
    let session = Session::connect(target, graph).unwrap();
    session.execute(&global_variables_initializer(graph)).unwrap();
    let options = RunOptions { trace: true, ..RunOptions::default() };
    let ((), metadata) = session.run_with_options(train, feeds! {}, options).unwrap();
    received(&metadata)
}

/// The numbers on the pages about replication.
#[test]
fn traffic_matches_the_documentation() {
    let cluster = LocalCluster::start(&[("ps", 2), ("worker", 3)]).unwrap();
    let target = &cluster.targets("worker")[0];
    let ones = |scope: &Scope| scope.constant(Tensor::from_slice([32, 100], &[1f32; 3200]).unwrap());
    let at = |tasks: &[(&str, usize, usize)]| -> BTreeMap<String, (usize, usize)> {
        tasks.iter().map(|&(task, count, bytes)| (format!("/job:{task}"), (count, bytes))).collect()
    };

    let graph = Graph::new();
    let scope = replica_device_setter(2).worker_device("/job:worker/task:0").on(&graph.root());
    let loss = layers(&VariableScope::new(&scope), &ones(&scope));
    let train = Optimizer::new(GradientDescent::new(0.1)).minimize(&loss).unwrap();
    let between = at(&[("worker/task:0", 4, 4040), ("ps/task:0", 1, 4000), ("ps/task:1", 1, 40)]);
    assert_eq!(traced(target, &graph, &train), between);

    let graph = Graph::new();
    let tower = |worker: usize| {
        let worker = format!("/job:worker/task:{worker}");
        let scope = replica_device_setter(2).worker_device(&worker).on(&graph.root());
        layers(&VariableScope::new(&scope).reuse(Reuse::Auto), &ones(&scope))
    };
    let loss = tower(0) + tower(1) + tower(2);
    let train = Optimizer::new(GradientDescent::new(0.1)).colocate_gradients().minimize(&loss).unwrap();
    let in_graph = at(&[
        ("worker/task:0", 10, 12_128),
        ("worker/task:1", 3, 4044),
        ("worker/task:2", 3, 4044),
        ("ps/task:0", 1, 4000),
        ("ps/task:1", 1, 40),
    ]);
    assert_eq!(traced(target, &graph, &train), in_graph);
}

/// `tf.train.Server(cluster, job_name, task_index)` three times in one program, each at its address in the cluster.
#[test]
fn three_servers_of_one_program() {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let [ps, first, second] = addresses;
    let cluster = ClusterSpec::parse(&format!("worker={first},{second};ps={ps}")).unwrap();
    let mut listeners = listeners.into_iter();
    let servers = [("ps", 0), ("worker", 0), ("worker", 1)].map(|(job, index)| {
        let task = Task { job: job.to_string(), index };
        Server::start_on(ServerOptions::new(cluster.clone(), task), listeners.next().unwrap()).unwrap()
    });
    assert_eq!(servers.each_ref().map(Server::target), addresses.map(|address| format!("grpc://{address}")));
    let graph = Graph::new();
    let total = Variable::zeros(&graph.root().on("/job:ps/task:0"), "total", []);
    let give = |worker: u32| {
        let scope = graph.root().on(&format!("/job:worker/task:{worker}"));
        total.assign_add(&scope.constant(worker as f32 + 1.0))
    };
    let given = [give(0), give(1)];
    let init = global_variables_initializer(&graph);
    // Each of them is a master that uses the others.
    for server in &servers {
        let session = Session::connect(server.target(), &graph).unwrap();
        session.execute(&init).unwrap();
        given.iter().for_each(|add| session.execute(add).unwrap());
        assert_eq!(session.run::<f32>(&total).unwrap(), 3.0);
    }
}
