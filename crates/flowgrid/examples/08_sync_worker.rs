//! Two workers that step together: each step applies the mean of their gradients once.
//!
//! usage: `08_sync_worker grpc://WORKER:PORT TASK` is one worker of a job that is already running. The other may be
//! this program too, or its Python twin. Without arguments it starts a cluster and runs both workers.

use flowgrid::prelude::*;
use flowgrid::train::{SyncReplicasOptimizer, hooks::Synchronous};
use flowgrid::{LocalCluster, SyncPolicy};

const WORKERS: usize = 2;
const STEPS: usize = 10;

/// The examples of a worker in a step: two points on the line `y = 2 x - 1`.
fn examples(step: usize, worker: usize) -> ([[f32; 1]; 2], [[f32; 1]; 2]) {
    let xs = [0, 1].map(|i| [((step * 4 + worker * 2 + i) % 7) as f32 / 4.0]);
    (xs, xs.map(|[x]| [2.0 * x - 1.0]))
}

fn work(target: &str, worker: usize) -> Result<[f32; 2]> {
    let graph = Graph::new();
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{worker}")).on(&graph.root());
    create_global_step_in(&scope)?;
    let (x, y) = (scope.placeholder(DType::F32, &[-1, 1]), scope.placeholder(DType::F32, &[-1, 1]));
    let (w, b) = (Variable::zeros(&scope, "w", [1, 1]), Variable::zeros(&scope, "b", [1]));
    let loss = (x.matmul(&w) + &b - &y).square().mean();
    let optimizer = SyncReplicasOptimizer::new(Optimizer::new(GradientDescent::new(0.1)), WORKERS).worker(&scope);
    let sync = optimizer.minimize(&loss)?;
    let hook = if worker == 0 { Synchronous::chief(&sync)? } else { Synchronous::worker(&sync) };

    // The chief initializes the variables and applies the gradients; the other worker waits for it.
    let session = MonitoredTrainingSession::new(&graph).master(target).is_chief(worker == 0).hook(hook);
    let mut session = session.start()?;
    for step in 0..STEPS {
        let (xs, ys) = examples(step, worker);
        session.execute_with(&sync.train_op, feeds! { &x => xs, &y => ys })?;
    }
    let (w, b): (Vec<[f32; 1]>, [f32; 1]) = session.run((&w, &b))?;
    session.close()?;
    Ok([w[0][0], b[0]])
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
    std::thread::scope(|scope| {
        let other = scope.spawn(|| work(&targets[1], 1));
        let [w, b] = work(&targets[0], 0)?;
        println!("w {w:.7} b {b:.7}, and for the other {:?}", other.join().expect("the other worker does not panic")?);
        Ok(())
    })
}
