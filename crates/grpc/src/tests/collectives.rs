//! Requests about collective operations, and their answers, arrive as they were sent.

use crate::wire::{buffers, collectives};
use bytes::Bytes;
use cluster::{CompleteGroup, CompleteInstance, CompletedGroup, DeviceAttributes, RecvBuf};
use prost::{Message, Name};
use proto::google::protobuf::Any;
use proto::tensorflow as pb;
use tensor::{DType, Shape};

fn device() -> DeviceAttributes {
    DeviceAttributes { name: "/job:a/task:1".into(), kind: "CPU".into(), memory_limit: 2, incarnation: 3 }
}

#[test]
fn groups_and_operations_arrive_as_they_were_sent() {
    let request = CompleteGroup { group_key: 4, group_size: 5, device_type: "CPU".into(), device: device() };
    assert_eq!(collectives::complete_group(collectives::encode_complete_group(request.clone())), request);
    let group = CompletedGroup { group_key: 4, device_type: "CPU".into(), num_tasks: 1, devices: vec![device()] };
    assert_eq!(collectives::decode_completed_group(collectives::completed_group(group.clone())), group);
    let request = CompleteInstance {
        name: "op: Reduce(Add,Id)".into(),
        kind: 1,
        dtype: DType::BF16,
        shape: Shape::new(&[0, 7]),
        group_key: -4,
        group_size: 2,
        instance_key: 6,
        device_type: "CPU".into(),
        subdiv_offsets: vec![0, -1],
        device: "/job:a/task:1".into(),
        is_source: true,
        step_id: 8,
    };
    let message = collectives::encode_complete_instance(request.clone());
    assert_eq!(collectives::complete_instance(message), Ok(request));
    let steps = vec![(-1, 7), (2, (1 << 57) - 1)];
    assert_eq!(collectives::decode_step_sequence(collectives::step_sequence(steps.clone())), steps);
}

#[test]
fn buffers_arrive_in_one_piece_or_in_several() {
    let request = RecvBuf {
        step_id: 9,
        key: "1:2:0:0:0:1:2".into(),
        device: "from".into(),
        receiver: "to".into(),
        incarnation: u64::MAX,
        num_bytes: 6,
        request_id: 7,
    };
    let arrived = buffers::recv_buf(buffers::encode_recv_buf(request.clone()));
    assert_eq!(format!("{arrived:?}"), format!("{request:?}"));
    for content in [Bytes::new(), Bytes::from_static(b"abcdef")] {
        assert_eq!(buffers::decode_recv_buf_answer(buffers::recv_buf_answer(content.clone(), 0)), Ok(content));
    }
    let pieces = pb::RecvBufRespExtra { tensor_content: vec![Bytes::from_static(b"abcd"), Bytes::from_static(b"ef")] };
    let content = Any { type_url: pb::RecvBufRespExtra::type_url(), value: pieces.encode_to_vec().into() };
    let answer = pb::RecvBufResponse { transport_options: Some(content), ..pb::RecvBufResponse::default() };
    assert_eq!(buffers::decode_recv_buf_answer(answer), Ok(Bytes::from_static(b"abcdef")));
    assert!(buffers::decode_recv_buf_answer(pb::RecvBufResponse::default()).is_err());
}
