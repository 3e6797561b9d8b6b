//! What the master of a session knows of its graph, and how it learns of new nodes.

use cluster::{MasterClient, SessionConfig};
use graph::Graph;
use status::{Result, failed_precondition};
use std::pin::Pin;
use std::sync::Arc;

/// The graph as the master has it. Only one caller at a time may update it.
#[derive(Default)]
pub(crate) struct Registration {
    known: Option<Known>,
    /// An update that has begun. If its caller drops the call, it stays here, and the next caller completes it: an incomplete
    /// update would leave the session and its master with different versions of the graph.
    update: Option<Update>,
    closed: bool,
}

type Update = Pin<Box<dyn Future<Output = Result<Known>> + Send>>;

/// The part of the graph that the master has.
#[derive(Clone)]
struct Known {
    handle: Arc<str>,
    version: i64,
    nodes: usize,
    functions: usize,
}

impl Registration {
    /// The handle of the session, once the master has all nodes that exist now.
    pub async fn handle(
        &mut self,
        graph: &Graph,
        master: &Arc<dyn MasterClient>,
        config: &SessionConfig,
    ) -> Result<Arc<str>> {
        if self.closed {
            return Err(failed_precondition!("Attempted to use a closed Session."));
        }
        loop {
            if let Some(update) = &mut self.update {
                let known = update.await;
                self.update = None;
                self.known = Some(known?);
            }
            match &self.known {
                None => self.update = Some(create(graph, master.clone(), config.clone())),
                Some(known) => match extend(known, graph, master) {
                    None => return Ok(known.handle.clone()),
                    update => self.update = update,
                },
            }
        }
    }

    /// No more steps; gives the handle of the session, if it was created.
    pub fn close(&mut self) -> Option<Arc<str>> {
        self.closed = true;
        self.update = None;
        self.known.take().map(|known| known.handle)
    }
}

/// Creates the session with the whole graph.
fn create(graph: &Graph, master: Arc<dyn MasterClient>, config: SessionConfig) -> Update {
    let def = graph.def_from(0);
    Box::pin(async move {
        let (nodes, functions) = (def.nodes.len(), def.library.functions.len());
        let (handle, version) = master.create_session(def, &config).await?;
        Ok(Known { handle: handle.into(), version, nodes, functions })
    })
}

/// Sends the new nodes and functions, if there are any.
fn extend(known: &Known, graph: &Graph, master: &Arc<dyn MasterClient>) -> Option<Update> {
    let mut new = graph.def_from(known.nodes);
    let functions = new.library.functions.len();
    if new.nodes.is_empty() && functions <= known.functions {
        return None;
    }
    if functions == known.functions {
        new.library = Default::default();
    }
    let (known, master) = (known.clone(), master.clone());
    Some(Box::pin(async move {
        let nodes = known.nodes + new.nodes.len();
        let version = master.extend_session(&known.handle, new, known.version).await?;
        Ok(Known { version, nodes, functions, ..known })
    }))
}
