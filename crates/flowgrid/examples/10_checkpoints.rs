//! Variables in files: saved, restored, and read with the graph that belongs to them.

use flowgrid::prelude::*;
use flowgrid::train::import_meta_graph;

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("flowgrid-checkpoints-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("model");

    let graph = Graph::new();
    let scope = graph.root();
    let w = Variable::builder(&scope, "w").initializer(Initializer::Value([1.0f32, 2.0].into())).build();
    let doubled = w.assign(&(w.value() * 2.0));
    scope.op("Identity").named("answer").input(&w.sum()).output();
    let saver = Saver::new(&graph)?;

    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph))?;
    for step in 1..=7 {
        session.execute(&doubled)?;
        saver.save(&session, &path, step)?;
    }
    // The newest five are kept; any of them can be restored.
    saver.restore(&session, folder.join("model-3"))?;
    let values: Vec<f32> = session.run(&w)?;
    println!("after step 3: {values:?}");
    assert_eq!(values, [8.0, 16.0]);

    // Another program needs nothing but the files. TensorFlow reads them too.
    let newest = latest_checkpoint(&folder)?.unwrap_or_default();
    let other = Graph::new();
    let saver = import_meta_graph(&other, format!("{newest}.meta"))?;
    let session = Session::local(&other);
    if let Some(saver) = saver {
        saver.restore(&session, &newest)?;
    }
    let answer: f32 = session.run("answer:0")?;
    println!("the newest gives {answer}");
    assert_eq!(answer, 384.0);
    Ok(std::fs::remove_dir_all(&folder)?)
}
