//! What a training reports of itself: an event file for TensorBoard, and the trace of one step.
//!
//! Give a folder to keep them: `tensorboard --logdir <folder>`, and `ui.perfetto.dev` for `trace.json`.

use flowgrid::chrome_trace;
use flowgrid::prelude::*;

fn main() -> Result<()> {
    let given = std::env::args().nth(1);
    let folder = given.unwrap_or_else(|| {
        let own = format!("flowgrid-summaries-{}", std::process::id());
        std::env::temp_dir().join(own).to_string_lossy().into_owned()
    });

    let graph = Graph::new();
    let scope = graph.root().on("/cpu:0");
    let x = scope.placeholder(DType::F32, &[-1, 2]);
    let y = scope.placeholder(DType::F32, &[-1, 1]);
    let w = Variable::zeros(&scope, "w", [2, 1]);
    let error = &x.matmul(&w) - &y;
    let loss = (&error * &error).mean();
    let train = Optimizer::new(GradientDescent::new(0.1)).minimize(&loss)?;

    summary::scalar("loss", &loss);
    summary::histogram("weights", &w);
    summary::image("error", &error.reshape(&[1, 2, 2, 1]), 1);
    summary::text("about", &scope.constant("a plane through four points"));
    let merged = summary::merge_all(&graph).expect("there are four");

    let writer = FileWriter::new(&folder)?;
    writer.add_graph(&graph)?;
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph))?;
    let points = [[0.0f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
    let heights = [[0.0f32], [3.0], [2.0], [5.0]];
    let mut last = f32::INFINITY;
    for step in 0..20 {
        let options = RunOptions { trace: step == 10, ..RunOptions::default() };
        let ((value, report), metadata): ((f32, Tensor), _) =
            session.run_with_options((&loss, &merged), feeds! { &x => points, &y => heights }, options)?;
        writer.add_summary(report.to_string_scalar()?, step)?;
        session.execute_with(&train, feeds! { &x => points, &y => heights })?;
        if step == 10 {
            writer.add_run_metadata(&metadata, "step 10", step)?;
            std::fs::write(format!("{folder}/trace.json"), chrome_trace(&metadata)).expect("the folder is there");
        }
        last = value;
    }
    writer.close()?;
    println!("loss {last:.4}, see {}", writer.path());
    assert!(last < 1.0);
    Ok(())
}
