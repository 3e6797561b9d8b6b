//! Two workers that step together: each step applies the mean of their gradients once.
//!
//! Give a target (`grpc://host:port`) and a task number to be one worker of a job that runs already. The other may be
//! this program again, or its Python twin.

use flowgrid::prelude::*;
use flowgrid::train::{Coordinator, SyncReplicasOptimizer};
use flowgrid::{LocalCluster, SyncPolicy};
use std::sync::Arc;
use std::time::Duration;

const WORKERS: usize = 2;
const STEPS: usize = 10;

/// What a worker learns from in a step: two points on the line `y = 2 x - 1`.
fn examples(step: usize, worker: usize) -> ([[f32; 1]; 2], [[f32; 1]; 2]) {
    let xs = [0, 1].map(|i| [((step * 4 + worker * 2 + i) % 7) as f32 / 4.0]);
    (xs, xs.map(|[x]| [2.0 * x - 1.0]))
}

fn work(target: &str, worker: usize) -> Result<[f32; 2]> {
    let graph = Graph::new();
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{worker}")).on(&graph.root());
    let step = Variable::build(&scope, "global_step").dtype(DType::I64).trainable(false).make();
    let (x, y) = (scope.placeholder(DType::F32, &[-1, 1]), scope.placeholder(DType::F32, &[-1, 1]));
    let (w, b) = (Variable::zeros(&scope, "w", [1, 1]), Variable::zeros(&scope, "b", [1]));
    let loss = (x.matmul(&w) + &b - &y).square().mean();
    let optimizer = SyncReplicasOptimizer::new(Optimizer::new(GradientDescent::new(0.1)), WORKERS);
    let sync = optimizer.worker(&scope).minimize(&loss, &step)?;
    let (init, tokens) = (global_variables_initializer(&graph), sync.init_tokens_op(None)?);

    let session = Arc::new(Session::connect(target, &graph)?);
    let coordinator = Coordinator::new();
    if worker == 0 {
        session.execute(&init)?;
        session.execute(&sync.chief_init_op)?;
        session.execute(&tokens)?;
        sync.chief_queue_runner.start(&session, &coordinator)?;
    } else {
        while !session.run::<Vec<String>>(&sync.ready_for_local_init_op)?.is_empty() {
            std::thread::sleep(Duration::from_millis(50));
        }
        session.execute(&sync.local_step_init_op)?;
    }
    for step in 0..STEPS {
        let (xs, ys) = examples(step, worker);
        session.execute_with(&sync.train_op, feeds! { &x => xs, &y => ys })?;
    }
    let (w, b): (Vec<f32>, f32) = session.run((&w, &b.reshape(&[])))?;
    coordinator.request_stop();
    session.close()?;
    coordinator.join()?;
    Ok([w[0], b])
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [target, worker] = &args[..] {
        let [w, b] = work(target, worker.parse().unwrap_or_default())?;
        println!("w {w:.7} b {b:.7}");
        return Ok(());
    }
    // One gradient of each worker for each step, however fast one of them is.
    let exact = |options| ServerOptions { sync_policy: SyncPolicy::Exact, ..options };
    let cluster = LocalCluster::start_with(&[("ps", 1), ("worker", WORKERS)], exact)?;
    let targets = cluster.targets("worker");
    let other = std::thread::spawn({
        let target = targets[1].clone();
        move || work(&target, 1)
    });
    let [w, b] = work(&targets[0], 0)?;
    println!("w {w:.7} b {b:.7}, and for the other {:?}", other.join().expect("the other worker ends")?);
    Ok(())
}
