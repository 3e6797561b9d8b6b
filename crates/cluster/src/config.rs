//! The options of a session and of a step.

use crate::ClusterSpec;
use op::{DeviceTypes, Extensions};
use std::time::Duration;

/// The configuration of a session: what is read of TensorFlow's `ConfigProto`, and a few options of sessions in Rust.
#[derive(Clone, Debug, Default)]
pub struct SessionConfig {
    /// Only tasks that match one of these take part; all if empty.
    pub device_filters: Vec<String>,
    /// Place an op on another device if its own does not exist or cannot run it.
    pub soft_placement: bool,
    /// Log the devices of the session and the placement of every node.
    pub log_placement: bool,
    /// Do not share variables and other resources with other sessions.
    pub isolate_state: bool,
    /// The timeout of every step that sets none.
    pub step_timeout: Option<Duration>,
    /// How long a new session in Rust waits for a server that is not up yet. The default is `step_timeout`, or a minute
    /// without one.
    pub connect_timeout: Option<Duration>,
    /// A session in Rust fails its steps after this long without a sign of life from the server; the default is 5 s.
    pub peer_timeout: Option<Duration>,
    /// How many threads run heavy ops; zero for the server's choice.
    pub inter_op_threads: usize,
    /// How many threads one op may use; zero for the server's choice.
    pub intra_op_threads: usize,
    /// How many devices of each type a local session has.
    pub device_count: Vec<(String, usize)>,
    /// The target through which the client reached its master.
    pub target: String,
    /// The cluster, if the client brings its own.
    pub cluster: Option<ClusterSpec>,
    /// Run the graph as it is, without any optimization.
    pub no_rewriting: bool,
    /// Run conditionals that stay on one task as ops that call functions, and not as switches and merges.
    pub functional_conditionals: bool,
    /// Return the cost graph of a step after this many steps of the same signature, and again after as many; zero for
    /// never.
    pub cost_graph_every: i64,
    /// Steps of a signature that are skipped before `cost_graph_every` counts.
    pub cost_graph_after: i64,
    /// The task that leads groups of collective operations, such as `/job:worker/replica:0/task:0`.
    pub collective_group_leader: String,
    /// Values for the kernels in this process, such as file systems. Servers have their own.
    pub extensions: Extensions,
}

impl SessionConfig {
    /// How many CPU devices a session has; one if the configuration does not say.
    pub fn cpu_devices(&self) -> usize {
        self.device_count.iter().find(|(kind, _)| kind == "CPU").map_or(1, |(_, count)| *count)
    }

    /// The values for kernels of a process with this configuration: `extensions`, with as many devices of each registered
    /// type as `device_count` asks for.
    pub fn with_device_counts(&self, extensions: Extensions) -> Extensions {
        match extensions.get_shared::<DeviceTypes>() {
            Some(types) => extensions.with(types.with_counts(&self.device_count)),
            None => extensions,
        }
    }

    /// Completes this configuration with a server's default: switches that either of them sets are on, lists are joined, and
    /// single values are taken from the default where this configuration has none.
    pub fn or_default(mut self, default: &SessionConfig) -> SessionConfig {
        let or = |own: usize, other: usize| if own == 0 { other } else { own };
        self.device_filters.splice(0..0, default.device_filters.iter().cloned());
        for (kind, count) in &default.device_count {
            if self.device_count.iter().all(|(own, _)| own != kind) {
                self.device_count.push((kind.clone(), *count));
            }
        }
        SessionConfig {
            soft_placement: self.soft_placement || default.soft_placement,
            log_placement: self.log_placement || default.log_placement,
            isolate_state: self.isolate_state || default.isolate_state,
            no_rewriting: self.no_rewriting || default.no_rewriting,
            functional_conditionals: self.functional_conditionals || default.functional_conditionals,
            step_timeout: self.step_timeout.or(default.step_timeout),
            inter_op_threads: or(self.inter_op_threads, default.inter_op_threads),
            intra_op_threads: or(self.intra_op_threads, default.intra_op_threads),
            cost_graph_every: if self.cost_graph_every == 0 { default.cost_graph_every } else { self.cost_graph_every },
            cost_graph_after: if self.cost_graph_after == 0 { default.cost_graph_after } else { self.cost_graph_after },
            cluster: self.cluster.or_else(|| default.cluster.clone()),
            collective_group_leader: match self.collective_group_leader.is_empty() {
                true => default.collective_group_leader.clone(),
                false => self.collective_group_leader,
            },
            ..self
        }
    }
}

/// The options of a step.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The step is cancelled after this time.
    pub timeout: Option<Duration>,
    /// Record when every node ran.
    pub trace: bool,
    /// Return the graphs that were run.
    pub partition_graphs: bool,
    /// The key of the graph, if it takes part in collective operations with other programs; zero for TensorFlow's key.
    pub collective_graph_key: i64,
}
