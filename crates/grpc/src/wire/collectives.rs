//! Converts requests about the groups and operations of collectives, and their answers.

use crate::wire::{decode_device, device_attributes};
use cluster::{CompleteGroup, CompleteInstance, CompletedGroup};
use proto::tensorflow as pb;
use status::Result;
use tensor::DType;
use tensor::wire::{decode_shape, encode_shape};

pub(crate) fn complete_group(request: pb::CompleteGroupRequest) -> CompleteGroup {
    CompleteGroup {
        group_key: request.group_key,
        group_size: request.group_size,
        device_type: request.device_type,
        device: decode_device(request.device_attributes.unwrap_or_default()),
    }
}

pub(crate) fn encode_complete_group(request: CompleteGroup) -> pb::CompleteGroupRequest {
    pb::CompleteGroupRequest {
        group_key: request.group_key,
        group_size: request.group_size,
        device_type: request.device_type,
        device_attributes: Some(device_attributes(request.device)),
        ..pb::CompleteGroupRequest::default()
    }
}

pub(crate) fn completed_group(group: CompletedGroup) -> pb::CompleteGroupResponse {
    pb::CompleteGroupResponse {
        group_key: group.group_key,
        group_size: group.devices.len() as i32,
        device_type: group.device_type,
        num_tasks: group.num_tasks,
        device_attributes: group.devices.into_iter().map(device_attributes).collect(),
        ..pb::CompleteGroupResponse::default()
    }
}

pub(crate) fn decode_completed_group(answer: pb::CompleteGroupResponse) -> CompletedGroup {
    CompletedGroup {
        group_key: answer.group_key,
        device_type: answer.device_type,
        num_tasks: answer.num_tasks,
        devices: answer.device_attributes.into_iter().map(decode_device).collect(),
    }
}

pub(crate) fn complete_instance(request: pb::CompleteInstanceRequest) -> Result<CompleteInstance> {
    Ok(CompleteInstance {
        name: request.name,
        kind: request.r#type,
        dtype: DType::from_number(request.data_type),
        shape: decode_shape(request.shape.as_ref())?,
        group_key: request.group_key,
        group_size: request.group_size,
        instance_key: request.instance_key,
        device_type: request.device_type,
        subdiv_offsets: request.subdiv_offset,
        device: request.device,
        is_source: request.is_source,
        step_id: request.step_id,
    })
}

pub(crate) fn encode_complete_instance(request: CompleteInstance) -> pb::CompleteInstanceRequest {
    pb::CompleteInstanceRequest {
        name: request.name,
        r#type: request.kind,
        data_type: request.dtype.number(),
        shape: Some(encode_shape(&request.shape)),
        group_key: request.group_key,
        group_size: request.group_size,
        instance_key: request.instance_key,
        device_type: request.device_type,
        subdiv_offset: request.subdiv_offsets,
        device: request.device,
        is_source: request.is_source,
        step_id: request.step_id,
    }
}

pub(crate) fn step_sequence(steps: Vec<(i64, u64)>) -> pb::GetStepSequenceResponse {
    let step = |(graph_key, next): (i64, u64)| pb::StepSequence { graph_key, next_step_id: next as i64 };
    pb::GetStepSequenceResponse { step_sequence: steps.into_iter().map(step).collect() }
}

pub(crate) fn decode_step_sequence(answer: pb::GetStepSequenceResponse) -> Vec<(i64, u64)> {
    answer.step_sequence.into_iter().map(|step| (step.graph_key, step.next_step_id as u64)).collect()
}
