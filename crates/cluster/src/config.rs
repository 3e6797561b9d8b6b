//! What a client may ask of a session and of a step.

use crate::ClusterSpec;
use op::{DeviceTypes, Extensions};
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
    /// Values for the kernels in this process, such as file systems. Servers have their own.
    pub extensions: Extensions,
}

impl SessionConfig {
    /// How many CPU devices it asks for; one if it says nothing.
    pub fn cpu_devices(&self) -> usize {
        self.device_count.iter().find(|(kind, _)| kind == "CPU").map_or(1, |(_, count)| *count)
    }

    /// What kernels of a process with this configuration find: `extensions`, with as many devices of each registered type
    /// as `device_count` asks for.
    pub fn with_device_counts(&self, extensions: Extensions) -> Extensions {
        match extensions.get_shared::<DeviceTypes>() {
            Some(types) => extensions.with(types.with_counts(&self.device_count)),
            None => extensions,
        }
    }

    /// This configuration laid over a server's own: what either of them asks for is asked for, and where only one thing
    /// can be, what this one says counts.
    pub fn laid_over(mut self, under: &SessionConfig) -> SessionConfig {
        let or = |own: usize, other: usize| if own == 0 { other } else { own };
        self.device_filters.splice(0..0, under.device_filters.iter().cloned());
        for (kind, count) in &under.device_count {
            if self.device_count.iter().all(|(own, _)| own != kind) {
                self.device_count.push((kind.clone(), *count));
            }
        }
        SessionConfig {
            soft_placement: self.soft_placement || under.soft_placement,
            log_placement: self.log_placement || under.log_placement,
            isolate_state: self.isolate_state || under.isolate_state,
            no_rewriting: self.no_rewriting || under.no_rewriting,
            step_timeout: self.step_timeout.or(under.step_timeout),
            inter_op_threads: or(self.inter_op_threads, under.inter_op_threads),
            intra_op_threads: or(self.intra_op_threads, under.intra_op_threads),
            cluster: self.cluster.or_else(|| under.cluster.clone()),
            ..self
        }
    }
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
