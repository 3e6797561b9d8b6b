//! One worker of between-graph replication. Every worker runs this program, with a graph and a session of its own; they
//! share the variables, because these have the same names on the same parameter servers. Worker 0 is the chief: it
//! initializes the variables, and the others wait for it.
//!
//! usage: `07_between_graph grpc://WORKER:PORT TASK`, for each worker of a cluster of two ps and two workers. The
//! servers may be ours or TensorFlow's, and the other worker may be the Python twin.

use flowgrid::prelude::*;

/// A batch: points, and the products of their coordinates, which the model learns.
fn batch(number: usize) -> (Vec<[f32; 2]>, Vec<[f32; 1]>) {
    let at = |i: usize| ((number * 16 + i) * 7 % 48) as f32 / 24.0 - 1.0;
    let xs: Vec<[f32; 2]> = (0..16).map(|i| [at(i), at(i + 13)]).collect();
    let ys = xs.iter().map(|[a, b]| [a * b]).collect();
    (xs, ys)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, task] = &args[..] else { panic!("usage: 07_between_graph grpc://WORKER:PORT TASK") };
    let task: usize = task.parse().expect("TASK is a number");

    let graph = Graph::new();
    let scope = replica_device_setter(2).worker_device(&format!("/job:worker/task:{task}")).on(&graph.root());
    let step = create_global_step_in(&scope)?;
    let (x, y) = (scope.placeholder(DType::F32, &[-1, 2]), scope.placeholder(DType::F32, &[-1, 1]));
    let weights = |seed| Initializer::glorot_uniform().seeded(seed);
    let hidden = Dense::new(8).activation(TensorOps::tanh).kernel(weights(1));
    let model = Sequential::new().add_named("hidden", hidden).add_named("output", Dense::new(1).kernel(weights(2)));
    let loss = (model.apply(&VariableScope::new(&scope), &x) - &y).square().mean();
    let train = Optimizer::new(Adagrad::new(0.2)).minimize_with(&loss, MinimizeOptions::new().step(&step))?;

    let stop = hooks::StopAtStep::num_steps(51);
    let session = MonitoredTrainingSession::new(&graph).master(target).is_chief(task == 0).hook(stop).start()?;
    let mut number = task;
    session.until_stop(|session| {
        let (xs, ys) = batch(number);
        let (loss, ()): (f32, ()) = session.run_with((&loss, &train), feeds! { &x => xs, &y => ys })?;
        if number % 20 == task {
            println!("batch {number} on worker {task}: loss {loss:.6}");
        }
        number += 2; // the batches in between are those of the other worker
        Ok(())
    })
}
