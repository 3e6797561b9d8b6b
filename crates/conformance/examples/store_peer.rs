//! The Rust half of `store_test.py`: trains, exports and calls models with all files on a store.

use flowgrid::prelude::*;
use flowgrid::store::{StoreOptions, file_systems};
use flowgrid::train::latest_checkpoint_on;
use flowgrid::train::saved_model::{MetaGraphOptions, SERVING, SavedModelBuilder, load_on, predict_signature};
use flowgrid::{Extensions, FileSystems};
use std::collections::BTreeMap;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let systems = file_systems(&StoreOptions::from_variables(std::env::vars()));
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["train", folder, steps] => train(&systems, folder, steps.parse().unwrap_or(1)),
        ["export", folder] => export(&systems, folder),
        ["call", folder] => call(&systems, folder),
        _ => Err(flowgrid::Error::new(flowgrid::Code::InvalidArgument, format!("cannot do {args:?}"))),
    }
}

/// Sessions in this process whose kernels see these file systems.
fn config(systems: &FileSystems) -> SessionConfig {
    SessionConfig { extensions: Extensions::new().with(systems.clone()), ..SessionConfig::default() }
}

/// Trains up to a step; a checkpoint and summaries every other step.
fn train(systems: &FileSystems, folder: &str, steps: i64) -> Result<()> {
    let graph = Graph::new();
    let w = Variable::zeros(&graph.root(), "w", [2]);
    let loss = (w.value() - 1.0).square().sum();
    summary::scalar("loss", &loss);
    let step = create_global_step(&graph)?;
    let train = Optimizer::new(GradientDescent::new(0.1)).minimize_with(&loss, MinimizeOptions::new().step(&step))?;
    let session = MonitoredTrainingSession::new(&graph)
        .config(config(systems))
        .checkpoint_dir(folder)
        .save_checkpoint(Every::Steps(2))
        .save_in_background(false)
        .save_summaries(Some(Every::Steps(1)))
        .hook(hooks::StopAtStep::last_step(steps))
        .start()?;
    session.until_stop(|session| session.run(&train))?;
    let latest = latest_checkpoint_on(systems, folder)?.unwrap_or_default();
    println!("step {}", latest.rsplit('-').next().unwrap_or_default());
    println!("latest {latest}");
    Ok(())
}

fn export(systems: &FileSystems, folder: &str) -> Result<()> {
    let graph = Graph::new();
    let x = graph.root().placeholder(DType::F32, &[-1, 2]);
    let w = Variable::builder(&graph.root(), "w").initializer(Initializer::Value([[2f32], [3.0]].into())).build();
    let y = x.matmul(&w);
    let init = global_variables_initializer(&graph);
    let session = Session::with_config("", &graph, config(systems))?;
    session.execute(&init)?;
    let signatures = BTreeMap::from([("serving_default".to_string(), predict_signature([("x", &x)], [("y", &y)]))]);
    let mut builder = SavedModelBuilder::on(systems, folder)?;
    let options = MetaGraphOptions { signatures, ..MetaGraphOptions::default() };
    builder.add_meta_graph_and_variables(&session, &[SERVING], options)?;
    builder.save()?;
    Ok(())
}

fn call(systems: &FileSystems, folder: &str) -> Result<()> {
    let graph = Graph::new();
    let model = load_on(systems, &graph, folder, &[SERVING])?;
    let session = Session::with_config("", &graph, config(systems))?;
    model.restore(&session)?;
    for (name, value) in model.call(&session, "", &[("x", [[1f32, 10.0], [2.0, 20.0]].into())])? {
        println!("{name} {:?}", value.values::<f32>()?);
    }
    Ok(())
}
