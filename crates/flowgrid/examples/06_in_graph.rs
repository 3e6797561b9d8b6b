//! In-graph replication: one client, one graph, one session. Every worker has a copy of the model (a tower) and gets
//! a part of each batch; the parameter servers hold the variables, which all towers share.
//!
//! Give the target of a worker to use a cluster that runs already: one with two ps and three workers, ours or
//! TensorFlow's.

use flowgrid::ops::array::split;
use flowgrid::prelude::*;

const WORKERS: usize = 3;

/// The mean square error of a small network on one part of the batch. The first tower makes the variables.
fn tower(variables: &VariableScope, x: &Output, y: &Output) -> Output {
    let hidden = Dense::new(8).activation(TensorOps::tanh).kernel(Initializer::glorot_uniform().seeded(1));
    let hidden = hidden.apply(&variables.enter("hidden"), x);
    let output = Dense::new(1).kernel(Initializer::glorot_uniform().seeded(2));
    (output.apply(&variables.enter("output"), &hidden) - y).square().mean()
}

/// A batch: points, and the values that the model learns to predict for them.
fn batch(step: usize) -> (Tensor, Tensor) {
    let at = |i: usize| ((step * 24 + i) * 7 % 48) as f32 / 24.0 - 1.0;
    let xs: Vec<f32> = (0..24).flat_map(|i| [at(i), at(i + 13)]).collect();
    let ys: Vec<f32> = xs.chunks(2).map(|x| x[0] * x[1]).collect();
    (Tensor::from_slice([24, 2], &xs).expect("24 points"), Tensor::from_slice([24, 1], &ys).expect("24 values"))
}

fn main() -> Result<()> {
    let given = std::env::args().nth(1);
    let own = if given.is_none() { Some(LocalCluster::start(&[("ps", 2), ("worker", WORKERS)])?) } else { None };
    let target = given.unwrap_or_else(|| own.iter().flat_map(|own| own.targets("worker")).take(1).collect());

    let graph = Graph::new();
    let scope = graph.root();
    let x = scope.placeholder(DType::F32, &[24, 2]);
    let y = scope.placeholder(DType::F32, &[24, 1]);
    let (xs, ys) = (split(&x, 0, WORKERS), split(&y, 0, WORKERS));
    let towers: Vec<Output> = (0..WORKERS)
        .map(|worker| {
            // Variables in turn on both ps; everything else on the tower's worker.
            let place = replica_device_setter(2).worker_device(&format!("/job:worker/task:{worker}")).on(&scope);
            tower(&VariableScope::new(&place).reuse(Reuse::Auto), &xs[worker], &ys[worker])
        })
        .collect();
    let loss = towers.into_iter().reduce(|sum, tower| sum + tower).expect("three towers") / WORKERS as f64;
    let train = Optimizer::new(Momentum::new(0.1, 0.9)).colocate_gradients().minimize(&loss)?;

    let session = Session::connect(&target, &graph)?;
    session.execute(&global_variables_initializer(&graph))?;
    for step in 0..=100 {
        let (xs, ys) = batch(step);
        let (now, ()): (f32, ()) = session.run_with((&loss, &train), feeds! { &x => xs, &y => ys })?;
        if step % 20 == 0 {
            println!("step {step}: loss {now:.6}");
        }
    }
    Ok(())
}
