//! The Rust client on three runtimes: in its own process, on our server, on a real TensorFlow server.

use super::real::TensorFlowServer;
use flowgrid::prelude::*;
use flowgrid::{ClusterSpec, Code, Task};

/// Runs a check on every runtime.
fn everywhere(check: fn(target: &str)) {
    check("");
    let cluster = ClusterSpec::parse("worker=127.0.0.1:0").unwrap();
    let ours = Server::start(ServerOptions::new(cluster, Task { job: "worker".to_string(), index: 0 })).unwrap();
    check(ours.target());
    let theirs = TensorFlowServer::start();
    check(&theirs.target);
}

fn open(target: &str, graph: &Graph) -> Session {
    Session::with_config(target, graph, SessionConfig::default()).unwrap()
}

#[test]
fn values_go_in_and_come_out() {
    everywhere(|target| {
        let graph = Graph::new();
        let x = graph.root().placeholder(DType::F32, &[-1, 2]);
        let y = x.matmul(&graph.root().constant([[1f32], [10.]])) + 0.5;
        let text = graph.root().constant(["a", "bc"]);
        let session = open(target, &graph);
        let (rows, words): (Vec<[f32; 1]>, Vec<String>) =
            session.run_with((&y, &text), feeds! { &x => [[1f32, 2.], [3., 4.]] }).unwrap();
        assert_eq!(rows, [[21.5], [43.5]], "{target}");
        assert_eq!(words, ["a", "bc"], "{target}");
        // Nodes that were added after the first step are sent to the server with the next one.
        let total = y.sum();
        let total: f32 = session.run_with(&total, feeds! { &x => [[1f32, 1.]] }).unwrap();
        assert_eq!(total, 11.5, "{target}");
        assert!(session.list_devices().unwrap().iter().any(|device| device.name.ends_with("/device:CPU:0")));
    });
}

#[test]
fn models_learn_the_same_everywhere() {
    everywhere(|target| {
        let near = losses("");
        let far = losses(target);
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * a.abs();
        assert!(near.iter().zip(&far).all(close), "{target}: {far:?} instead of {near:?}");
        assert!(near.last() < near.first(), "{near:?}");
    });
}

fn losses(target: &str) -> Vec<f32> {
    let graph = Graph::new();
    let root = graph.root();
    let variables = VariableScope::new(&root);
    let x = root.constant([[0f32, 0.], [0., 1.], [1., 0.], [1., 1.]]);
    let labels = root.constant([0i32, 1, 1, 0]);
    let layer = |units, seed| Dense::new(units).kernel(Initializer::glorot_uniform().seeded(seed));
    let hidden = layer(8, 1).activation(TensorOps::tanh).apply(&variables.enter("hidden"), &x);
    // One layer of each kind of variable.
    let logits = layer(2, 2).apply(&variables.enter("logits").kind(Kind::Reference), &hidden);
    let loss = loss::sparse_softmax_cross_entropy(&labels, &logits);
    let step = create_global_step(&graph).unwrap();
    let train = Optimizer::new(Adam::new(0.05)).minimize_with(&loss, MinimizeOptions::new().step(&step)).unwrap();
    let session = open(target, &graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    let next = |_| session.run::<(f32, ())>((&loss, &train)).unwrap().0;
    let losses = (0..20).map(next).collect();
    assert_eq!(session.run::<i64>(&step).unwrap(), 20);
    losses
}

#[test]
fn errors_have_their_code_and_their_node() {
    everywhere(|target| {
        let graph = Graph::new();
        let x = graph.root().placeholder(DType::F32, &[-1, -1]);
        let product = graph.root().op("MatMul").named("product").input(&x).input(&x).output();
        let session = open(target, &graph);
        let error = session.run_with::<Tensor>(&product, feeds! { &x => [[1f32, 2.]] }).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{target}: {error}");
        assert!(error.message.contains("{{node product}}"), "{target}: {error}");
        // The session is still usable.
        let rows: Vec<[f32; 1]> = session.run_with(&product, feeds! { &x => [[3f32]] }).unwrap();
        assert_eq!(rows, [[9.0]], "{target}");
    });
}

#[test]
fn steps_can_be_prepared_and_run_in_pieces() {
    everywhere(|target| {
        let graph = Graph::new();
        let (a, b) = (graph.root().placeholder(DType::F32, &[]), graph.root().placeholder(DType::F32, &[]));
        let sum = &a + 1.0;
        let product = &sum * &b;
        let session = open(target, &graph);
        let callable = session.make_callable(&product, &[&b, &a]).unwrap();
        let value: f32 = callable.call(vec![5f32.into(), 2f32.into()]).unwrap();
        assert_eq!(value, 15.0, "{target}");
        let partial = session.partial_run((&sum, &product), &[&a, &b]).unwrap();
        let first: f32 = partial.run_with(&sum, feeds! { &a => 1f32 }).unwrap();
        let second: f32 = partial.run_with(&product, feeds! { &b => first * 3.0 }).unwrap();
        assert_eq!((first, second), (2.0, 12.0), "{target}");
    });
}
