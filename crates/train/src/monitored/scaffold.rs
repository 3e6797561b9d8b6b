//! The nodes around a model that every training program needs: found in collections, or created where they are
//! missing.

use crate::ready::{local_variables_initializer, report_uninitialized, report_uninitialized_variables};
use checkpoint::saver::{Progress, ProgressFn, Saver, log_progress};
use graph::{Graph, Node, Output, TensorName};
use io::FileSystems;
pub use layers::collection::{INIT_OP, LOCAL_INIT_OP, READY_FOR_LOCAL_INIT_OP, READY_OP, SUMMARY_OP};
use layers::collection::{SAVED_MODEL_INITIALIZERS, TABLE_INITIALIZERS, global_variables, nodes};
use layers::{ScopeOps, collection};
use session::{Feeds, Session};
use status::{Result, failed_precondition, invalid};
use std::sync::{Arc, OnceLock};

/// A function that initializes a model after the init op.
pub type InitFn = Box<dyn Fn(&Session) -> Result<()> + Send + Sync>;

/// The nodes around a model. Nodes that are not set are found in the collections of the graph, or created before the
/// session.
#[derive(Default)]
pub struct Scaffold {
    init_op: Option<Node>,
    init_feeds: Feeds,
    init_fn: Option<InitFn>,
    ready_op: Option<Output>,
    ready_for_local_init_op: Option<Output>,
    local_init_op: Option<Node>,
    local_init_feeds: Feeds,
    summary_op: Option<Output>,
    no_summaries: bool,
    saver: Option<Arc<Saver>>,
    progress: Option<ProgressFn>,
    scaffold_nodes: OnceLock<ScaffoldNodes>,
}

/// The nodes of a finalized scaffold.
pub struct ScaffoldNodes {
    /// Initializes the global variables.
    pub init_op: Node,
    /// Gives the names of uninitialized variables.
    pub ready_op: Output,
    /// Gives the names of uninitialized global variables.
    pub ready_for_local_init_op: Output,
    /// Initializes the variables and tables of this process.
    pub local_init_op: Node,
    /// All summaries, if there are any.
    pub summary_op: Option<Output>,
    /// The saver.
    pub saver: Arc<Saver>,
}

impl Scaffold {
    /// A scaffold without settings.
    pub fn new() -> Scaffold {
        Scaffold::default()
    }

    /// Sets the node that initializes the model, with its feeds.
    pub fn init_op(mut self, op: &Node, feeds: Feeds) -> Scaffold {
        (self.init_op, self.init_feeds) = (Some(op.clone()), feeds);
        self
    }

    /// Sets a function that is called after the init op.
    pub fn init_fn(mut self, function: impl Fn(&Session) -> Result<()> + Send + Sync + 'static) -> Scaffold {
        self.init_fn = Some(Box::new(function));
        self
    }

    /// Sets the output that gives the names of uninitialized variables.
    pub fn ready_op(mut self, op: &Output) -> Scaffold {
        self.ready_op = Some(op.clone());
        self
    }

    /// Sets the output that gives the names of the variables that local variables depend on and that are
    /// uninitialized.
    pub fn ready_for_local_init_op(mut self, op: &Output) -> Scaffold {
        self.ready_for_local_init_op = Some(op.clone());
        self
    }

    /// Sets the node that initializes the variables of this process, with its feeds.
    pub fn local_init_op(mut self, op: &Node, feeds: Feeds) -> Scaffold {
        (self.local_init_op, self.local_init_feeds) = (Some(op.clone()), feeds);
        self
    }

    /// Sets the output with the summaries.
    pub fn summary_op(mut self, op: &Output) -> Scaffold {
        self.summary_op = Some(op.clone());
        self
    }

    /// Ignores the summaries of the graph.
    pub(crate) fn without_summaries(mut self) -> Scaffold {
        self.no_summaries = true;
        self
    }

    /// Sets the saver.
    pub fn saver(mut self, saver: Arc<Saver>) -> Scaffold {
        self.saver = Some(saver);
        self
    }

    /// Sets a function that gets the progress of saves and restores, in place of a line in the log every five
    /// seconds; see [`SaverBuilder::progress`](checkpoint::saver::SaverBuilder::progress). It concerns a saver that
    /// the scaffold creates; one that was set has its own.
    pub fn progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Scaffold {
        self.progress = Some(Arc::new(tell));
        self
    }

    /// Creates the missing nodes and finalizes the graph.
    pub fn finalize(&self, graph: &Graph) -> Result<&ScaffoldNodes> {
        self.finalize_on(&FileSystems::local(), graph)
    }

    /// As [`Scaffold::finalize`]; a saver that is created uses these file systems.
    pub fn finalize_on(&self, systems: &FileSystems, graph: &Graph) -> Result<&ScaffoldNodes> {
        if let Some(scaffold_nodes) = self.scaffold_nodes.get() {
            return Ok(scaffold_nodes);
        }
        let scaffold_nodes = ScaffoldNodes {
            init_op: given_or(graph, &self.init_op, INIT_OP, default_init)?,
            ready_op: output_or(graph, &self.ready_op, READY_OP, report_uninitialized_variables)?,
            ready_for_local_init_op: output_or(
                graph,
                &self.ready_for_local_init_op,
                READY_FOR_LOCAL_INIT_OP,
                |graph| report_uninitialized(graph, &global_variables(graph)),
            )?,
            local_init_op: given_or(graph, &self.local_init_op, LOCAL_INIT_OP, default_local_init)?,
            summary_op: match &self.summary_op {
                Some(op) => Some(op.clone()),
                None if self.no_summaries => None,
                None => found(graph, SUMMARY_OP)?.or_else(|| merged_summaries(graph)),
            },
            saver: match &self.saver {
                Some(saver) => saver.clone(),
                None => {
                    let report = self.progress.clone().unwrap_or_else(log_progress);
                    Arc::new(Saver::of_graph_with_progress(graph, report)?.with_file_systems(systems))
                }
            },
        };
        scaffold_nodes.saver.prepare_snapshots();
        graph.check()?;
        graph.finalize();
        Ok(self.scaffold_nodes.get_or_init(|| scaffold_nodes))
    }

    /// Finalizes the graph and gives the nodes.
    pub(crate) fn into_nodes(self, systems: &FileSystems, graph: &Graph) -> Result<ScaffoldNodes> {
        self.finalize_on(systems, graph)?;
        self.scaffold_nodes.into_inner().ok_or_else(|| failed_precondition!("the scaffold is not finalized"))
    }

    /// The nodes; an error before the scaffold was finalized.
    pub fn nodes(&self) -> Result<&ScaffoldNodes> {
        self.scaffold_nodes
            .get()
            .ok_or_else(|| failed_precondition!("the scaffold is not finalized; it is when the session is created"))
    }

    pub(crate) fn init_feeds(&self) -> Feeds {
        self.init_feeds.clone()
    }

    pub(crate) fn init_function(&self) -> Option<&InitFn> {
        self.init_fn.as_ref()
    }

    pub(crate) fn local_init_feeds(&self) -> Feeds {
        self.local_init_feeds.clone()
    }
}

fn default_init(graph: &Graph) -> Node {
    let mut initializers = vec![collection::global_variables_initializer(graph)];
    initializers.extend(nodes(graph, SAVED_MODEL_INITIALIZERS));
    graph.root().group(&initializers)
}

fn default_local_init(graph: &Graph) -> Node {
    let mut initializers = vec![local_variables_initializer(graph)];
    initializers.extend(nodes(graph, TABLE_INITIALIZERS));
    graph.root().group(&initializers)
}

/// All summaries of a graph merged, if it has any.
fn merged_summaries(graph: &Graph) -> Option<Output> {
    let merged = layers::summary::merge_all(graph)?;
    graph.add_to_collection(SUMMARY_OP, merged.name());
    Some(merged)
}

/// The given node, else that of the collection, else a new one, which is added to the collection.
fn given_or(graph: &Graph, given: &Option<Node>, name: &str, make: impl Fn(&Graph) -> Node) -> Result<Node> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    if let Some(found) = found(graph, name)? {
        return Ok(found.node().clone());
    }
    let made = make(graph);
    graph.add_to_collection(name, made.name());
    Ok(made)
}

fn output_or(graph: &Graph, given: &Option<Output>, name: &str, make: impl Fn(&Graph) -> Output) -> Result<Output> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    if let Some(found) = found(graph, name)? {
        return Ok(found);
    }
    let made = make(graph);
    graph.add_to_collection(name, made.name());
    Ok(made)
}

/// The single value of a collection, as an output of a node.
fn found(graph: &Graph, name: &str) -> Result<Option<Output>> {
    let names = graph.collection(name);
    let text = match &names[..] {
        [] => return Ok(None),
        [graph::AttrValue::String(text)] => String::from_utf8_lossy(text).into_owned(),
        [_] => return Err(invalid!("The value of collection \"{name}\" is not the name of a node")),
        _ => {
            return Err(invalid!(
                "More than one item in the collection \"{name}\". Please indicate which one to use by giving it to the \
                 scaffold"
            ));
        }
    };
    let parsed = TensorName::parse(&text);
    let node = Node::find(&graph.root(), parsed.node);
    let node = node.ok_or_else(|| invalid!("Collection \"{name}\" names {text}, which is not in the graph"))?;
    Ok(Some(node.output(parsed.index.unwrap_or(0) as usize)))
}
