//! Converts requests for buffers of collective ops, and their answers.

use bytes::Bytes;
use cluster::RecvBuf;
use prost::{Message, Name};
use proto::google::protobuf::Any;
use proto::tensorflow as pb;

/// The size of the chunks of a buffer, TensorFlow's `recv_buf_max_chunk`.
const CHUNK: usize = 4096;

pub(crate) fn recv_buf(request: pb::RecvBufRequest) -> RecvBuf {
    RecvBuf {
        step_id: request.step_id as u64,
        key: request.buf_rendezvous_key,
        device: request.src_device,
        incarnation: request.src_incarnation,
        num_bytes: request.num_bytes,
        request_id: request.request_id,
    }
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
