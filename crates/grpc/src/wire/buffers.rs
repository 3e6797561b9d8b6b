//! Converts requests for buffers of collective ops, and their answers.

use bytes::Bytes;
use cluster::RecvBuf;
use prost::{Message, Name};
use proto::google::protobuf::Any;
use proto::tensorflow as pb;
use status::{Result, internal};

pub(crate) fn recv_buf(request: pb::RecvBufRequest) -> RecvBuf {
    RecvBuf {
        step_id: request.step_id as u64,
        key: request.buf_rendezvous_key,
        device: request.src_device,
        incarnation: request.src_incarnation,
        receiver: request.dst_device,
        num_bytes: request.num_bytes,
        request_id: request.request_id,
    }
}

pub(crate) fn encode_recv_buf(request: RecvBuf) -> pb::RecvBufRequest {
    pb::RecvBufRequest {
        step_id: request.step_id as i64,
        buf_rendezvous_key: request.key,
        num_bytes: request.num_bytes,
        src_device: request.device,
        dst_device: request.receiver,
        src_incarnation: request.incarnation,
        request_id: request.request_id,
        ..pb::RecvBufRequest::default()
    }
}

/// The content of an answer; without a copy if it is in one piece.
pub(crate) fn decode_recv_buf_answer(answer: pb::RecvBufResponse) -> Result<Bytes> {
    let content = answer.transport_options.ok_or_else(|| internal!("the answer of RecvBuf has no content"))?;
    let content = pb::RecvBufRespExtra::decode(content.value);
    let mut chunks =
        content.map_err(|error| internal!("the answer of RecvBuf cannot be read: {error}"))?.tensor_content;
    match chunks.len() {
        1 => Ok(chunks.remove(0)),
        _ => {
            let mut whole = Vec::with_capacity(chunks.iter().map(Bytes::len).sum());
            chunks.iter().for_each(|chunk| whole.extend_from_slice(chunk));
            Ok(whole.into())
        }
    }
}

/// An answer with the content in one piece. TensorFlow sends pieces of 4096 bytes, and accepts any.
pub(crate) fn recv_buf_answer(buffer: Bytes, now_micros: i64) -> pb::RecvBufResponse {
    let content = pb::RecvBufRespExtra { tensor_content: vec![buffer] };
    let content = Any { type_url: pb::RecvBufRespExtra::type_url(), value: content.encode_to_vec().into() };
    pb::RecvBufResponse {
        transport_options: Some(content),
        send_start_micros: now_micros,
        ..pb::RecvBufResponse::default()
    }
}
