//! What a client may ask of a session and of a step.

use crate::ClusterSpec;
use op::Given;
use std::time::Duration;

/// What a client may ask of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionConfig {
    /// Only tasks that match one of these take part; all if empty.
    pub device_filters: Vec<String>,
    /// A device that does not exist or cannot run an op is replaced by one that can.
    pub soft_placement: bool,
    /// Log where every node went.
    pub log_placement: bool,
    /// Resources of this session are its own.
    pub isolate_state: bool,
    /// Limit of every step that sets none.
    pub step_timeout: Option<Duration>,
    /// How long a new session in Rust waits for a server that is not up yet; as long as `step_timeout` if this says
    /// nothing, and a minute if neither does.
    pub connect_timeout: Option<Duration>,
    /// After this long without a sign of life a session in Rust takes its server for dead; 5 s if nothing is said.
    pub peer_timeout: Option<Duration>,
    /// Threads that run heavy ops; zero means the server's choice.
    pub inter_op_threads: usize,
    /// Threads over which one op splits its loops; zero means the server's choice.
    pub intra_op_threads: usize,
    /// How many devices of each kind a local session has.
    pub device_count: Vec<(String, usize)>,
    /// What the client called to reach its master.
    pub target: String,
    /// The cluster, if the client brings its own.
    pub cluster: Option<ClusterSpec>,
    /// Run the ops of the graph as they stand: no folding, no merging.
    pub no_rewriting: bool,
    /// What kernels in this process find, such as file systems; not for servers, which have their own.
    pub given: Given,
}

/// What a client may ask of a step.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// After this long the step is cancelled.
    pub timeout: Option<Duration>,
    /// Note when every node ran.
    pub trace: bool,
    /// Return the graphs that were run.
    pub partition_graphs: bool,
}
