//! The Rust half of `sync_test.py`: a worker of a synchronous job that trains rows of a table.
//!
//! `sync_peer grpc://host:port TASK STEPS SCALE ROW…` says `ready`, trains, and prints the table.

use flowgrid::prelude::*;
use flowgrid::train::hooks::Synchronous;
use flowgrid::train::{SyncReplicasOptimizer, create_global_step_in};
use std::time::Duration;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, numbers @ ..] = &args[..] else { return Err(wrong(&args)) };
    let numbers: Vec<i32> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let [task, steps, scale, rows @ ..] = &numbers[..] else { return Err(wrong(&args)) };

    let graph = Graph::new();
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{task}")).on(&graph.root());
    create_global_step_in(&scope)?;
    let table = Variable::zeros(&scope.named("model"), "w", [4, 1]);
    let loss = table.gather(&scope.constant(rows)).sum() * f64::from(*scale);
    let optimizer = SyncReplicasOptimizer::new(Optimizer::new(GradientDescent::new(1.0)), 2);
    let sync = optimizer.worker(&scope).minimize(&loss)?;
    let hook = match task {
        0 => Synchronous::chief_with_tokens(&sync, 0)?,
        _ => Synchronous::worker(&sync),
    };
    let session = MonitoredTrainingSession::new(&graph).master(target).is_chief(*task == 0).hook(hook);
    let mut session = session.recovery_wait(Duration::from_millis(50)).start()?;
    println!("ready");
    for _ in 0..*steps {
        session.run::<()>(&sync.train_op)?;
    }
    let found: Vec<f32> = session.run(&table)?;
    println!("{found:?}");
    session.close()
}

fn wrong(args: &[String]) -> flowgrid::Error {
    flowgrid::Error::new(flowgrid::Code::InvalidArgument, format!("cannot do {args:?}"))
}
