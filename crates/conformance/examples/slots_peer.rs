//! The Rust half of `slots_test.py`: a worker of a job with two ps tasks, whose optimizer keeps state on both.
//!
//! `slots_peer grpc://host:port TASK OPTIMIZER STEPS` trains and prints the weights.

use flowgrid::prelude::*;
use flowgrid::train::create_global_step_in;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, task, name, steps] = &args[..] else { return Err(wrong(&args)) };
    let steps: usize = steps.parse().map_err(|_| wrong(&args))?;

    let graph = Graph::new();
    let scope = replica_device_setter(2).worker_device(&format!("/job:worker/task:{task}")).on(&graph.root());
    let step = create_global_step_in(&scope)?;
    // The first by name is made last, and is on the other ps.
    let model = scope.named("model");
    let w = Variable::builder(&model, "w").initializer(Initializer::Value([[1f32], [-2.0]].into())).build();
    let b = Variable::zeros(&model, "b", [1]);
    let (x, y) = (scope.constant([[1f32, 2.0], [3.0, -1.0], [0.5, 0.25]]), scope.constant([[1f32], [2.0], [3.0]]));
    let loss = (x.matmul(&w) + &b - &y).square().mean();
    let train = Optimizer::by_name(name, 0.1)?.minimize_with(&loss, MinimizeOptions::new().step(&step))?;

    let mut session = MonitoredTrainingSession::new(&graph).master(target).is_chief(task == "0").start()?;
    for _ in 0..steps {
        session.run::<()>(&train)?;
    }
    let found: Vec<f32> = session.run(&w)?;
    println!("{found:?}");
    session.close()
}

fn wrong(args: &[String]) -> flowgrid::Error {
    flowgrid::Error::new(flowgrid::Code::InvalidArgument, format!("cannot do {args:?}"))
}
