//! One model over three tasks: each layer's parameters on a parameter server of its own, the products on a worker.
//!
//! Give the target of a worker (`grpc://host:port`) to use a cluster that runs already: one with two ps and a worker,
//! ours or TensorFlow's.

use flowgrid::prelude::*;

fn main() -> Result<()> {
    let given = std::env::args().nth(1);
    let own = if given.is_none() { Some(LocalCluster::start(&[("ps", 2), ("worker", 1)])?) } else { None };
    let target = given.unwrap_or_else(|| own.iter().flat_map(|own| own.targets("worker")).collect());

    let graph = Graph::new();
    let scope = graph.root();
    let (first, second, worker) =
        (scope.on("/job:ps/task:0"), scope.on("/job:ps/task:1"), scope.on("/job:worker/task:0"));
    let weights_1 = Variable::builder(&first, "weights_1")
        .initializer(Initializer::Value([[0.5f32, -0.25, 1.0], [0.75, 0.5, -1.0]].into()))
        .build();
    let biases_1 = Variable::zeros(&first, "biases_1", [3]);
    let weights_2 = Variable::builder(&second, "weights_2")
        .initializer(Initializer::Value([[1.0f32], [-0.5], [0.25]].into()))
        .build();
    let biases_2 = Variable::zeros(&second, "biases_2", [1]);

    let x = worker.placeholder(DType::F32, &[-1, 2]);
    let layer_1 = (x.matmul(&weights_1) + &biases_1).relu();
    let y = layer_1.matmul(&weights_2) + &biases_2;
    let loss = (&y - &worker.constant([[2.0f32], [1.0], [0.0]])).square().mean();
    let train = Optimizer::new(GradientDescent::new(0.05)).colocate_gradients().minimize(&loss)?;

    let session = Session::connect(&target, &graph)?;
    session.execute(&global_variables_initializer(&graph))?;
    let points = [[1.0f32, 1.0], [2.0, -1.0], [-1.0, 0.5]];
    for step in 0..=40 {
        let (now, ()): (f32, ()) = session.run_with((&loss, &train), feeds! { &x => points })?;
        if step % 10 == 0 {
            println!("step {step}: loss {now:.6}");
        }
    }
    Ok(())
}
