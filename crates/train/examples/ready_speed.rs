//! How long after the chief has initialized the variables another worker's session can be used.
//!
//! `cargo run --release -p flowgrid-train --example ready_speed`

use flowgrid_train as train;
use graph::Graph;
use layers::Variable;
use layers::collection::global_variables_initializer;
use session::{LocalCluster, Session, SessionConfig};
use status::Result;
use std::time::{Duration, Instant};
use train::{SessionManager, replica_device_setter, report_uninitialized_variables};

/// Variables, in turn on two ps tasks.
const VARIABLES: usize = 50;
/// How often the time is measured.
const ROUNDS: usize = 10;

fn model(worker: usize) -> Graph {
    let graph = Graph::with_ops(ops::registry());
    let scope = replica_device_setter(2).worker_device(&format!("/job:worker/task:{worker}")).on(&graph.root());
    for number in 0..VARIABLES {
        Variable::zeros(&scope, &format!("w{number}"), [1000]);
    }
    graph
}

fn main() -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(round()?.as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("ready after {:.1} ms (median of {ROUNDS}; {:.1} at worst)", times[ROUNDS / 2], times[ROUNDS - 1]);
    Ok(())
}

/// The time between the end of the chief's initialization and the end of the first step of the other worker.
fn round() -> Result<Duration> {
    let cluster = LocalCluster::start(&[("ps", 2), ("worker", 2)])?;
    let targets = cluster.targets("worker");
    let (chief, other) = (model(0), model(1));
    let ready = report_uninitialized_variables(&other);
    let manager = SessionManager::new(&other).ready_op(Some(&ready));
    let session = Session::connect(&targets[0], &chief)?;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| -> Result<Instant> {
            let session = manager.wait_for_session(&targets[1], &SessionConfig::default(), None)?;
            session.run::<Vec<f32>>("w0/Read/ReadVariableOp:0")?;
            Ok(Instant::now())
        });
        // Long enough for the other one to find nothing and to wait.
        std::thread::sleep(Duration::from_millis(500));
        session.execute(&global_variables_initializer(&chief))?;
        let initialized = Instant::now();
        let usable = waiting.join().map_err(|_| status::internal!("the worker's thread panicked"))??;
        Ok(usable.saturating_duration_since(initialized))
    })
}
