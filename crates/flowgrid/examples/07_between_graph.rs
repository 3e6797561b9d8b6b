//! Between-graph replication: a client for every worker, each with a graph and a session of its own. They share the
//! variables because these have the same names on the same parameter servers.
//!
//! Here the clients are threads of one program and take turns, so that the losses can be compared. Give the targets of
//! both workers to use a cluster that runs already: one with two ps and two workers, ours or TensorFlow's.

use flowgrid::Task;
use flowgrid::prelude::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const STEPS: usize = 100;

/// A batch: points, and what is to be learned of them.
fn batch(step: usize) -> (Tensor, Tensor) {
    let at = |i: usize| ((step * 16 + i) * 7 % 48) as f32 / 24.0 - 1.0;
    let xs: Vec<f32> = (0..16).flat_map(|i| [at(i), at(i + 13)]).collect();
    let ys: Vec<f32> = xs.chunks(2).map(|x| x[0] * x[1]).collect();
    (Tensor::from_slice([16, 2], &xs).expect("16 points"), Tensor::from_slice([16, 1], &ys).expect("16 values"))
}

/// What one client does, from the graph to the last step. A turn is the number of a step; it is handed on.
fn client(task: &Task, target: &str, turns: Receiver<usize>, next: Sender<usize>) -> Result<()> {
    let graph = Graph::new();
    let scope = replica_device_setter(2).worker_device(&task.to_string()).on(&graph.root());
    let x = scope.placeholder(DType::F32, &[-1, 2]);
    let y = scope.placeholder(DType::F32, &[-1, 1]);
    let variables = VariableScope::new(&scope);
    let hidden = Dense::new(8).activation(Formula::tanh).kernel(Initializer::glorot_uniform().seeded(1));
    let hidden = hidden.apply(&variables.enter("hidden"), &x);
    let output = Dense::new(1).kernel(Initializer::glorot_uniform().seeded(2));
    let loss = (output.apply(&variables.enter("output"), &hidden) - &y).square().mean();
    let train = Optimizer::new(Adagrad::new(0.2)).minimize(&loss)?;

    let session = Session::connect(target, &graph)?;
    for step in turns {
        if step == 0 {
            session.execute(&global_variables_initializer(&graph))?; // the chief, before all others
        }
        if step <= STEPS {
            let (xs, ys) = batch(step);
            let (now, ()): (f32, ()) = session.run_with((&loss, &train), feeds! { &x => xs, &y => ys })?;
            if step % 20 < 2 {
                println!("step {step} on {task}: loss {now:.6}");
            }
        }
        // Nobody listens any more after the last step.
        if next.send(step + 1).is_err() || step > STEPS {
            break;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let own = if given.is_empty() { Some(LocalCluster::start(&[("ps", 2), ("worker", 2)])?) } else { None };
    let targets = own.as_ref().map_or(given, |own| own.targets("worker"));
    let [first, second] = &targets[..] else { panic!("this example has two workers, got {} targets", targets.len()) };

    let ((to_first, turns_of_first), (to_second, turns_of_second)) = (channel(), channel());
    to_first.send(0).expect("the first client listens");
    // A client that fails hangs up, which ends the turns of the other.
    let worker = |index| Task { job: "worker".to_string(), index };
    thread::scope(|scope| {
        let other = scope.spawn(move || client(&worker(1), second, turns_of_second, to_first));
        let chief = client(&worker(0), first, turns_of_first, to_second);
        other.join().expect("a client does not panic").and(chief)
    })
}
