//! Waiting to be told that variables have values.

use graph::{AttrValue, Graph, GraphDef, ImportOptions, Output};
use ops::names::IS_INITIALIZED;
use ops::state::await_value::WAIT;
use session::{Feeds, RunOptions, Session, SessionConfig};
use status::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tensor::Tensor;

/// What became of waiting.
pub(crate) enum Told {
    /// All variables have values.
    Ready,
    /// The time is over.
    NotYet,
    /// Nobody tells, as on servers of TensorFlow; no time has passed.
    Nothing,
}

/// Waits at most so long until all variables that `ready` asks for have values.
pub(crate) fn wait(ready: &Output, master: &str, config: &SessionConfig, limit: Duration) -> Result<Told> {
    let waiting = waiting_graph(ready)?;
    let session = Session::with_config(master, &waiting, config.clone())?;
    let begin = Instant::now();
    let options = RunOptions { timeout: Some(limit), ..RunOptions::default() };
    match session.run_with_options::<Tensor>(ready.name().as_str(), Feeds::new(), options) {
        Ok((names, _)) if names.elements() == 0 => Ok(Told::Ready),
        Ok(_) => Ok(Told::Nothing),
        // However the wire says that the time is over.
        Err(_) if begin.elapsed() >= limit => Ok(Told::NotYet),
        Err(error) => Err(error),
    }
}

/// What `ready` is computed from, with nodes that wait until they can answer yes.
fn waiting_graph(ready: &Output) -> Result<Graph> {
    let needed = ready.node().with_ancestors();
    let mut def = GraphDef { nodes: Vec::new(), ..ready.node().graph().to_def()? };
    for node in &needed {
        let mut described = node.def();
        let own = Arc::make_mut(&mut described);
        // What it was put beside need not be here.
        own.device = node.device();
        own.attrs.remove("_class");
        if IS_INITIALIZED.contains(&own.op.as_str()) {
            own.attrs.insert(WAIT.to_string(), AttrValue::Bool(true));
        }
        def.nodes.push(described);
    }
    let waiting = Graph::with_ops(ready.node().graph().ops().clone());
    waiting.import(&def, &ImportOptions::default())?;
    Ok(waiting)
}
