//! What of a session's configuration is read, and what is ignored with a reason.

use crate::wire::session_options::ignored;
use crate::wire::{encode_session_config, session_config, stats};
use cluster::{CostNode, RunMetadata, SessionConfig};
use proto::tensorflow as pb;
use tensor::{DType, Shape};

fn fields(config: &pb::ConfigProto) -> Vec<&'static str> {
    ignored(config).into_iter().map(|(field, _)| field).collect()
}

#[test]
fn fields_that_are_read_are_not_ignored() {
    let config = pb::ConfigProto {
        allow_soft_placement: true,
        log_device_placement: true,
        gpu_options: Some(pb::GpuOptions::default()),
        graph_options: Some(pb::GraphOptions {
            build_cost_model: 2,
            build_cost_model_after: 3,
            optimizer_options: Some(pb::OptimizerOptions { opt_level: -1, ..Default::default() }),
            rewrite_options: Some(pb::RewriterConfig { disable_meta_optimizer: true, ..Default::default() }),
            ..Default::default()
        }),
        rpc_options: Some(pb::RpcOptions::default()),
        experimental: Some(pb::config_proto::Experimental {
            share_session_state_in_clusterspec_propagation: true,
            ..Default::default()
        }),
        ..pb::ConfigProto::default()
    };
    assert_eq!(fields(&config), Vec::<&str>::new());
    let read = session_config(config, String::new()).expect("a configuration");
    assert_eq!((read.cost_graph_every, read.cost_graph_after, read.no_rewriting), (2, 3, true));
    let sent = encode_session_config(&read).graph_options.expect("graph options");
    assert_eq!((sent.build_cost_model, sent.build_cost_model_after), (2, 3));
    assert_eq!(encode_session_config(&SessionConfig::default()).graph_options, None);
}

#[test]
fn fields_without_an_effect_are_named() {
    let config = pb::ConfigProto {
        placement_period: 1,
        use_per_session_threads: true,
        gpu_options: Some(pb::GpuOptions { allow_growth: true, ..Default::default() }),
        graph_options: Some(pb::GraphOptions {
            infer_shapes: true,
            optimizer_options: Some(pb::OptimizerOptions { do_function_inlining: true, ..Default::default() }),
            rewrite_options: Some(pb::RewriterConfig { remapping: 2, ..Default::default() }),
            ..Default::default()
        }),
        rpc_options: Some(pb::RpcOptions { compression_algorithm: "gzip".into(), ..Default::default() }),
        ..pb::ConfigProto::default()
    };
    let expected = [
        "placement_period",
        "gpu_options",
        "use_per_session_threads",
        "graph_options.optimizer_options",
        "graph_options.infer_shapes",
        "graph_options.rewrite_options",
        "rpc_options.compression_algorithm",
    ];
    assert_eq!(fields(&config), expected);
}

#[test]
fn a_cost_graph_crosses_the_wire_unchanged() {
    let node = |name: &str, id| CostNode { name: name.into(), device: "/cpu:0".into(), id, ..CostNode::default() };
    let sum = CostNode {
        inputs: vec![(0, 0), (0, 1)],
        control_inputs: vec![0],
        outputs: vec![(DType::F32, Shape::new(&[3, 2]))],
        compute_cost: 17,
        ..node("sum", 1)
    };
    let cost_graph = vec![node("a", 0), sum, CostNode { is_final: true, ..node("send", 2) }];
    let message = stats::run_metadata(RunMetadata { cost_graph: cost_graph.clone(), ..RunMetadata::default() });
    let output = &message.cost_graph.as_ref().expect("a cost graph").node[1].output_info[0];
    assert_eq!((output.size, output.alias_input_port), (24, -1));
    assert_eq!(stats::decode_run_metadata(message).expect("metadata").cost_graph, cost_graph);
    assert_eq!(stats::run_metadata(RunMetadata::default()).cost_graph, None);
}
