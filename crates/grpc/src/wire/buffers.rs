//! Buffers of collective ops.

use bytes::Bytes;
use cluster::RecvBuf;
use prost::{Message, Name};
use proto::google::protobuf::Any;
use proto::tensorflow as pb;

/// A buffer travels in chunks of this size, TensorFlow's `recv_buf_max_chunk`.
const CHUNK: usize = 4096;

pub(crate) fn recv_buf(request: pb::RecvBufRequest) -> RecvBuf {
    RecvBuf {
        step_id: request.step_id as u64,
        key: request.buf_rendezvous_key,
        device: request.src_device,
        incarnation: request.src_incarnation,
    }
}

/// What tells a request from others, in the form TensorFlow prints messages.
pub(crate) fn describe(request: &pb::RecvBufRequest) -> String {
    let (step, key, id) = (request.step_id, &request.buf_rendezvous_key, request.request_id);
    format!("step_id: {step} buf_rendezvous_key: \"{key}\" num_bytes: {} request_id: {id}", request.num_bytes)
}

pub(crate) fn recv_buf_answer(mut buffer: Bytes, now_micros: i64) -> pb::RecvBufResponse {
    let mut chunks = Vec::with_capacity(buffer.len().div_ceil(CHUNK));
    while !buffer.is_empty() {
        chunks.push(buffer.split_to(buffer.len().min(CHUNK)));
    }
    let content = pb::RecvBufRespExtra { tensor_content: chunks };
    let content = Any { type_url: pb::RecvBufRespExtra::type_url(), value: content.encode_to_vec().into() };
    pb::RecvBufResponse {
        transport_options: Some(content),
        send_start_micros: now_micros,
        ..pb::RecvBufResponse::default()
    }
}
