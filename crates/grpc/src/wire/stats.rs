//! Converts the statistics of a step: when nodes ran, and which tensors were sent between tasks.

use cluster::{CostNode, Logging, RunMetadata, StepStats, TransferStats};
use proto::tensorflow as pb;
use status::Result;
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::wire::{decode_shape, encode_shape};

/// The name of a transfer among the nodes of its device.
const TRANSFER: &str = "RecvTensor";

pub(crate) fn decode_run_metadata(metadata: pb::RunMetadata) -> Result<RunMetadata> {
    let mut stats = metadata.step_stats.unwrap_or_default();
    let transfers = take_transfers(&mut stats);
    let costs = metadata.cost_graph.unwrap_or_default().node;
    Ok(RunMetadata {
        cost_graph: costs.into_iter().map(decode_cost).collect(),
        stats: decode_stats(stats),
        transfers,
        partition_graphs: metadata
            .partition_graphs
            .into_iter()
            .map(graph::wire::decode_graph)
            .collect::<Result<_>>()?,
    })
}

pub(crate) fn run_metadata(metadata: RunMetadata) -> pb::RunMetadata {
    let mut stats = encode_transfers(metadata.transfers);
    stats.dev_stats.extend(encode_stats(metadata.stats).dev_stats);
    pb::RunMetadata {
        step_stats: (!stats.dev_stats.is_empty()).then_some(stats),
        cost_graph: (!metadata.cost_graph.is_empty()).then(|| pb::CostGraphDef {
            node: metadata.cost_graph.into_iter().map(encode_cost).collect(),
            cost: Vec::new(),
        }),
        partition_graphs: metadata.partition_graphs.iter().map(graph::wire::encode_graph).collect(),
        ..pb::RunMetadata::default()
    }
}

fn encode_cost(cost: CostNode) -> pb::cost_graph_def::Node {
    use pb::cost_graph_def::node::{InputInfo, OutputInfo};
    let output = |((dtype, shape), size): (&(tensor::DType, tensor::Shape), i64)| OutputInfo {
        size,
        alias_input_port: -1, // none: which outputs share memory with an input is not recorded
        shape: Some(encode_shape(shape)),
        dtype: dtype.number(),
    };
    let input = |&(preceding_node, preceding_port): &(i32, i32)| InputInfo { preceding_node, preceding_port };
    pb::cost_graph_def::Node {
        id: cost.id,
        input_info: cost.inputs.iter().map(input).collect(),
        output_info: cost.outputs.iter().zip(cost.output_sizes()).map(output).collect(),
        control_input: cost.control_inputs,
        compute_cost: cost.compute_cost,
        is_final: cost.is_final,
        name: cost.name,
        device: cost.device,
        ..Default::default()
    }
}

fn decode_cost(node: pb::cost_graph_def::Node) -> CostNode {
    // TensorFlow does not know the shapes of outputs that no step has made.
    let output = |output: pb::cost_graph_def::node::OutputInfo| {
        Some((tensor::DType::from_number(output.dtype), decode_shape(output.shape.as_ref()).ok()?))
    };
    CostNode {
        name: node.name,
        device: node.device,
        id: node.id,
        inputs: node.input_info.into_iter().map(|input| (input.preceding_node, input.preceding_port)).collect(),
        control_inputs: node.control_input,
        outputs: node.output_info.into_iter().filter_map(output).collect(),
        compute_cost: node.compute_cost,
        is_final: node.is_final,
    }
}

pub(crate) fn encode_stats(stats: StepStats) -> pb::StepStats {
    let device = |(device, nodes): (String, Vec<cluster::NodeStats>)| pb::DeviceStepStats {
        device,
        node_stats: nodes.into_iter().map(node_stats).collect(),
        ..pb::DeviceStepStats::default()
    };
    pb::StepStats { dev_stats: stats.into_iter().map(device).collect() }
}

fn node_stats(node: cluster::NodeStats) -> pb::NodeExecStats {
    let (start, end) = (node.start, node.end.max(node.start));
    let output = |(slot, (dtype, shape)): (usize, &(tensor::DType, tensor::Shape))| pb::NodeOutput {
        slot: slot as i32,
        tensor_description: Some(pb::TensorDescription {
            dtype: dtype.number(),
            shape: Some(encode_shape(shape)),
            allocation_description: Some(allocation(shape.elements().saturating_mul(dtype.size()) as u64)),
        }),
    };
    pb::NodeExecStats {
        node_name: node.name.to_string(),
        all_start_micros: (start / 1000) as i64,
        op_end_rel_micros: ((end - start) / 1000) as i64,
        all_end_rel_micros: ((end - start) / 1000) as i64,
        all_start_nanos: start as i64,
        op_end_rel_nanos: (end - start) as i64,
        all_end_rel_nanos: (end - start) as i64,
        scheduled_micros: (node.scheduled / 1000) as i64,
        scheduled_nanos: node.scheduled as i64,
        timeline_label: format!("{} = {}()", node.name, node.op),
        thread_id: node.thread,
        output: node.outputs.iter().enumerate().map(output).collect(),
        ..pb::NodeExecStats::default()
    }
}

/// A description of `bytes` bytes of CPU memory.
fn allocation(bytes: u64) -> pb::AllocationDescription {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let name = "cpu".to_string();
    pb::AllocationDescription {
        requested_bytes: bytes,
        allocated_bytes: bytes,
        allocator_name: name,
        ..Default::default()
    }
}

/// The type and shape of an output, if it has both.
fn described(output: &pb::NodeOutput) -> Option<(tensor::DType, tensor::Shape)> {
    let description = output.tensor_description.as_ref()?;
    let dims: Vec<i64> = description.shape.as_ref()?.dim.iter().map(|dim| dim.size).collect();
    Some((tensor::DType::from_number(description.dtype), tensor::Shape::checked(&dims).ok()?))
}

pub(crate) fn decode_stats(stats: pb::StepStats) -> StepStats {
    let node = |node: pb::NodeExecStats, device: &Arc<str>| {
        let op = node.timeline_label.split(" = ").nth(1).and_then(|rest| rest.split('(').next()).unwrap_or("");
        cluster::NodeStats {
            op: op.into(),
            name: node.node_name.as_str().into(),
            device: device.clone(),
            scheduled: node.scheduled_nanos as u64,
            start: node.all_start_nanos as u64,
            end: node.all_start_nanos.wrapping_add(node.all_end_rel_nanos) as u64,
            outputs: node.output.iter().filter_map(described).collect(),
            thread: node.thread_id,
        }
    };
    let device = |stats: pb::DeviceStepStats| {
        let name: Arc<str> = stats.device.as_str().into();
        (stats.device, stats.node_stats.into_iter().map(|stats| node(stats, &name)).collect())
    };
    stats.dev_stats.into_iter().map(device).collect()
}

pub(crate) fn logging(request: pb::LoggingRequest) -> Logging {
    Logging {
        enable: request.enable_rpc_logging,
        // Old masters disable the log with an empty request.
        disable: request.disable_rpc_logging || (!request.enable_rpc_logging && request.fetch_step_id.is_empty()),
        clear: request.clear,
        steps: request.fetch_step_id.into_iter().map(|step| step as u64).collect(),
    }
}

pub(crate) fn logging_answer(steps: Vec<(u64, Vec<TransferStats>)>) -> pb::LoggingResponse {
    let step = |(step_id, transfers): (u64, Vec<TransferStats>)| pb::LabeledStepStats {
        step_id: step_id as i64,
        step_stats: Some(encode_transfers(transfers)),
    };
    pb::LoggingResponse { step: steps.into_iter().map(step).collect() }
}

pub(crate) fn encode_logging(request: Logging) -> pb::LoggingRequest {
    pb::LoggingRequest {
        enable_rpc_logging: request.enable,
        disable_rpc_logging: request.disable,
        clear: request.clear,
        fetch_step_id: request.steps.into_iter().map(|step| step as i64).collect(),
    }
}

pub(crate) fn decode_logging_answer(answer: pb::LoggingResponse) -> Vec<(u64, Vec<TransferStats>)> {
    let step =
        |step: pb::LabeledStepStats| (step.step_id as u64, take_transfers(&mut step.step_stats.unwrap_or_default()));
    answer.step.into_iter().map(step).collect()
}

/// Encodes transfers by the device that received them.
fn encode_transfers(transfers: Vec<TransferStats>) -> pb::StepStats {
    let mut devices: BTreeMap<String, pb::DeviceStepStats> = BTreeMap::new();
    for transfer in transfers {
        let device = transfer.recv_device.clone();
        let fresh = || pb::DeviceStepStats { device: device.clone(), ..Default::default() };
        devices.entry(device.clone()).or_insert_with(fresh).node_stats.push(transfer_stats(transfer));
    }
    pb::StepStats { dev_stats: devices.into_values().collect() }
}

/// Removes the transfers from the statistics, and devices that have nothing else.
fn take_transfers(stats: &mut pb::StepStats) -> Vec<TransferStats> {
    let mut transfers = Vec::new();
    stats.dev_stats.retain_mut(|device| {
        let before = device.node_stats.len();
        device.node_stats.retain(|node| match decode_transfer(node) {
            Some(transfer) => {
                transfers.push(transfer);
                false
            }
            None => true,
        });
        device.node_stats.len() == before || !device.node_stats.is_empty()
    });
    transfers
}

/// Parses `[4000B] [11.2Mb/s] edge_4_v from DEVICE to DEVICE`: only the label says what was sent where.
fn decode_transfer(node: &pb::NodeExecStats) -> Option<TransferStats> {
    let label = node.timeline_label.strip_prefix('[').filter(|_| node.node_name == TRANSFER)?;
    let (_, label) = label.split_once("] [")?;
    let (_, label) = label.split_once("] ")?;
    let (label, recv_device) = label.rsplit_once(" to ")?;
    let (tensor, send_device) = label.rsplit_once(" from ")?;
    let size = |output: &pb::NodeOutput| output.tensor_description.as_ref()?.allocation_description.as_ref().cloned();
    let start = node.all_start_micros as u64;
    Some(TransferStats {
        tensor: tensor.to_string(),
        send_device: send_device.to_string(),
        recv_device: recv_device.to_string(),
        bytes: node.output.first().and_then(size).map_or(0, |size| size.requested_bytes as u64),
        start,
        end: start.saturating_add(node.op_end_rel_micros.max(0) as u64),
    })
}

/// A transfer as TensorFlow's timelines show it.
fn transfer_stats(transfer: TransferStats) -> pb::NodeExecStats {
    let (bytes, micros) = (transfer.bytes as f64, transfer.end.saturating_sub(transfer.start));
    let size = match bytes >= 0.1 * 1_048_576.0 {
        true => format!("{:.1}MB", bytes / 1_048_576.0),
        false => format!("{}B", transfer.bytes),
    };
    let megabits = 8.0 * bytes / micros.max(1) as f64;
    let rate = match megabits >= 1000.0 {
        true => format!("{:.1}Gb/s", megabits / 1000.0),
        false => format!("{megabits:.6}Mb/s"),
    };
    let TransferStats { tensor, send_device, recv_device, .. } = &transfer;
    pb::NodeExecStats {
        node_name: TRANSFER.to_string(),
        timeline_label: format!("[{size}] [{rate}] {tensor} from {send_device} to {recv_device}"),
        all_start_micros: transfer.start as i64,
        op_end_rel_micros: micros as i64,
        all_end_rel_micros: micros as i64,
        output: vec![pb::NodeOutput {
            slot: 0,
            tensor_description: Some(pb::TensorDescription {
                allocation_description: Some(allocation(transfer.bytes)),
                ..Default::default()
            }),
        }],
        ..pb::NodeExecStats::default()
    }
}
