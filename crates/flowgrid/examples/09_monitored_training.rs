//! Training in a monitored session: it stops by itself, saves checkpoints, and continues from the newest one when it is
//! started again.

use flowgrid::prelude::*;
use std::path::Path;

/// Learns a line for this many more steps; gives its slope.
fn learn(folder: &Path, steps: i64) -> Result<f32> {
    let graph = Graph::new();
    let scope = graph.root();
    let x = scope.constant([[0.0f32], [1.0], [2.0], [3.0]]);
    let y = scope.constant([[1.0f32], [3.0], [5.0], [7.0]]);
    let w = Variable::zeros(&scope, "w", [1, 1]);
    let b = Variable::zeros(&scope, "b", [1]);
    let loss = (x.matmul(&w) + &b - &y).square().mean();
    let step = create_global_step(&graph)?;
    let train = Optimizer::new(GradientDescent::new(0.1)).minimize_with(&loss, MinimizeOptions::new().step(&step))?;

    let session = MonitoredTrainingSession::new(&graph)
        .checkpoint_dir(folder)
        .save_checkpoint(Every::Steps(50))
        .hook(hooks::StopAtStep::num_steps(steps))
        .hook(hooks::NanTensor::new(&loss))
        .hook(hooks::LoggingTensor::new([("loss", &loss)], Every::Steps(50)).sink(|line| println!("{line}")))
        .start()?;
    let mut slope = 0.0;
    session.until_stop(|session| {
        ((), slope) = session.run((&train, &w))?;
        Ok(())
    })?;
    Ok(slope)
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("flowgrid-monitored-{}", std::process::id()));
    println!("after 100 steps the slope is {:.3}", learn(&folder, 100)?);
    // A second program finds the checkpoint of the first.
    let slope = learn(&folder, 100)?;
    println!("after 200 steps the slope is {slope:.3}");
    assert!(latest_checkpoint(&folder)?.is_some_and(|path| path.ends_with("model.ckpt-200")));
    assert!((slope - 2.0).abs() < 0.01);
    Ok(std::fs::remove_dir_all(&folder)?)
}
