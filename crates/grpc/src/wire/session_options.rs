//! The fields of a session's `ConfigProto` that have no effect here, with the reason of each.

use proto::tensorflow as pb;

/// A field that is set and has no effect, and why.
type Ignored = (&'static str, &'static str);

/// Fields that TensorFlow's Python client sets in every session. To warn of them would only hide the other warnings.
const SET_BY_DEFAULT: [&str; 3] = ["gpu_options", "pluggable_device_options", "experimental"];

/// Warns of every field that a client has set and that has no effect. A session with such a field is not refused:
/// TensorFlow's clients set many of them for devices and runtimes that a cluster may not have.
pub(crate) fn warn_of_ignored(config: &pb::ConfigProto) {
    for (field, reason) in ignored(config) {
        if SET_BY_DEFAULT.contains(&field) {
            tracing::debug!("ConfigProto.{field} is ignored: {reason}");
        } else {
            tracing::warn!("ConfigProto.{field} is ignored: {reason}");
        }
    }
}

pub(crate) fn ignored(config: &pb::ConfigProto) -> Vec<Ignored> {
    let mut found = Vec::new();
    let mut check = |is_set: bool, field: &'static str, reason: &'static str| {
        if is_set {
            found.push((field, reason));
        }
    };
    check(config.placement_period != 0, "placement_period", "nodes are placed once, when the graph is extended");
    check(config.gpu_options.as_ref().is_some_and(is_changed), "gpu_options", "no task has a GPU");
    check(
        config.pluggable_device_options.as_ref().is_some_and(is_changed),
        "pluggable_device_options",
        "no task has \
        a pluggable device",
    );
    check(config.use_per_session_threads, "use_per_session_threads", "sessions share the threads of their task");
    check(
        !config.session_inter_op_thread_pool.is_empty(),
        "session_inter_op_thread_pool",
        "sessions share the threads \
        of their task",
    );
    check(
        config.share_cluster_devices_in_session,
        "share_cluster_devices_in_session",
        "a session has the devices of \
        its cluster anyway",
    );
    check(
        config.experimental.clone().is_some_and(|mut options| {
            options.share_session_state_in_clusterspec_propagation = false; // these three are read
            options.executor_type.clear();
            options.collective_group_leader.clear();
            is_changed(&options)
        }),
        "experimental",
        "only share_session_state_in_clusterspec_propagation, executor_type and collective_group_leader are read",
    );
    found.extend(config.graph_options.iter().flat_map(ignored_of_graph));
    found.extend(config.rpc_options.iter().flat_map(ignored_of_rpc));
    found
}

fn ignored_of_graph(options: &pb::GraphOptions) -> Vec<Ignored> {
    let optimizer = options.optimizer_options.unwrap_or_default();
    let rewrite = options.rewrite_options.clone().unwrap_or_default();
    let passes = "there are no single passes to choose; opt_level L0 with rewrite_options.disable_meta_optimizer runs \
                  the graph as it is";
    let all = [
        (
            options.enable_recv_scheduling,
            "graph_options.enable_recv_scheduling",
            "tensors are sent when they are ready",
        ),
        (is_changed(&pb::OptimizerOptions { opt_level: 0, ..optimizer }), "graph_options.optimizer_options", passes),
        (options.infer_shapes, "graph_options.infer_shapes", "nodes keep the shapes that their client gave them"),
        (options.place_pruned_graph, "graph_options.place_pruned_graph", "the whole graph is placed"),
        (
            options.enable_bfloat16_sendrecv,
            "graph_options.enable_bfloat16_sendrecv",
            "tensors are sent with full precision",
        ),
        (
            options.timeline_step != 0,
            "graph_options.timeline_step",
            "no timeline is published; RunOptions.trace_level asks for that of a step",
        ),
        (
            is_changed(&pb::RewriterConfig { disable_meta_optimizer: false, ..rewrite }),
            "graph_options.rewrite_options",
            passes,
        ),
    ];
    all.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, field, reason)| (field, reason)).collect()
}

fn ignored_of_rpc(options: &pb::RpcOptions) -> Vec<Ignored> {
    let plain = "messages are sent without compression; compressed ones are accepted";
    let all = [
        (
            options.use_rpc_for_inprocess_master,
            "rpc_options.use_rpc_for_inprocess_master",
            "the client decides how it reaches a master of its own process",
        ),
        (!options.compression_algorithm.is_empty(), "rpc_options.compression_algorithm", plain),
        (options.compression_level != 0, "rpc_options.compression_level", plain),
        (options.cache_rpc_response, "rpc_options.cache_rpc_response", "a call that failed is not repeated"),
        (
            options.disable_session_connection_sharing,
            "rpc_options.disable_session_connection_sharing",
            "sessions share the connections of their task",
        ),
        (
            options.num_channels_per_target > 1,
            "rpc_options.num_channels_per_target",
            "a task has one connection for steps and one for tensors that are read piece by piece",
        ),
    ];
    all.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, field, reason)| (field, reason)).collect()
}

fn is_changed<T: Default + PartialEq>(message: &T) -> bool {
    *message != T::default()
}
