//! Waits until servers report that variables have values.

use graph::{AttrValue, Graph, GraphDef, ImportOptions, Output, StateRole};
use ops::state::WAIT;
use session::{Feeds, RunOptions, Session, SessionConfig};
use status::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tensor::Tensor;

/// The outcome of waiting.
pub(crate) enum WaitOutcome {
    /// All variables have values.
    Ready,
    /// The time limit was reached.
    TimedOut,
    /// The servers do not report it, as those of TensorFlow; no time has passed.
    Unsupported,
}

/// Waits until all variables that `ready` is computed from have values, but no longer than `limit`.
pub(crate) fn wait(ready: &Output, master: &str, config: &SessionConfig, limit: Duration) -> Result<WaitOutcome> {
    let waiting = waiting_graph(ready)?;
    let session = Session::with_config(master, &waiting, config.clone())?;
    let begin = Instant::now();
    let options = RunOptions { timeout: Some(limit), ..RunOptions::default() };
    match session.run_with_options::<Tensor>(ready.name().as_str(), Feeds::new(), options) {
        Ok((names, _)) if names.elements() == 0 => Ok(WaitOutcome::Ready),
        Ok(_) => Ok(WaitOutcome::Unsupported),
        // Servers report a timeout with different codes.
        Err(_) if begin.elapsed() >= limit => Ok(WaitOutcome::TimedOut),
        Err(error) => Err(error),
    }
}

/// The nodes from which `ready` is computed, changed so that they wait until the variables have values.
fn waiting_graph(ready: &Output) -> Result<Graph> {
    let needed = ready.node().with_ancestors();
    let mut def = GraphDef { nodes: Vec::new(), ..ready.node().graph().to_def()? };
    for node in &needed {
        let mut described = node.def();
        let own = Arc::make_mut(&mut described);
        // The node that it is colocated with may be missing here.
        own.device = node.device();
        own.attrs.remove("_class");
        if node.graph().ops().op_facts(&own.op).state_role == Some(StateRole::ChecksInitialized) {
            own.attrs.insert(WAIT.to_string(), AttrValue::Bool(true));
        }
        def.nodes.push(described);
    }
    let waiting = Graph::with_ops(ready.node().graph().ops().clone());
    waiting.import(&def, &ImportOptions::default())?;
    Ok(waiting)
}
