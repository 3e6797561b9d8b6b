//! RecvTensor for a reader that pulls the content in chunks: what it has not pulled stays with the other task, except
//! for the flow-control window of the connection.

use crate::client::call::check_end;
use crate::client::link::{Connection, Link};
use crate::client::recv_tensor::{encode, send};
use crate::client::worker::acknowledge;
use crate::wire::extensions::RECV_TENSOR;
use crate::wire::recv_tensor::Incoming;
use crate::wire::tensor_stream::{Content, Head, LargeTensor, STREAM_FROM, parse_head};
use bytes::{Bytes, BytesMut};
use cluster::{OpenedTensor, RecvTensor, TensorStream};
use futures_util::StreamExt;
use futures_util::stream;
use http_body_util::BodyExt;
use status::{Result, internal};
use std::collections::VecDeque;
use std::sync::Arc;
use tonic::body::Body;

const METHOD: &str = "RecvTensor";
/// HTTP/2 frames are combined into chunks of this size.
const CHUNK: usize = 1 << 20;
/// How many buffers are reused in turn: the reader may still hold the chunks in the other ones.
const BUFFERS: usize = 4;

/// Requests a tensor and waits for the beginning of the answer.
pub(super) async fn open_tensor(link: Arc<Link>, request: RecvTensor) -> Result<OpenedTensor> {
    let connection = link.connection()?;
    let (id, message) = (request.request_id, encode(request)?);
    let (raw, body) = link.wait(&connection, METHOD, send(&connection, RECV_TENSOR, message)).await?;
    let mut answer = Answer { link, connection, body, id };
    let mut bytes = BytesMut::new();
    loop {
        match parse_head(&bytes, raw, STREAM_FROM) {
            Head::Large(large) => return answer.into_stream(large, bytes.freeze()).map(OpenedTensor::Stream),
            Head::Ordinary => break,
            Head::Incomplete => {}
        }
        match answer.frame().await? {
            Some(frame) => bytes.extend_from_slice(&frame),
            None => return whole(answer, raw, &bytes, true).await,
        }
    }
    whole(answer, raw, &bytes, false).await
}

/// Reads the rest of an answer that is not streamed. `ended` says that all of it is in `bytes`.
async fn whole(mut answer: Answer, raw: Option<usize>, bytes: &[u8], ended: bool) -> Result<OpenedTensor> {
    let mut incoming = Incoming::new(raw)?;
    incoming.push(bytes)?;
    if !ended {
        while let Some(bytes) = answer.frame().await? {
            incoming.push(&bytes)?;
        }
    }
    let received = incoming.finish()?;
    if received.require_ack {
        acknowledge(&answer.link, answer.id).await;
    }
    Ok(OpenedTensor::Whole((received.tensor, received.is_dead)))
}

/// An answer that is being received.
struct Answer {
    link: Arc<Link>,
    connection: Arc<Connection>,
    body: Body,
    id: i64,
}

impl Answer {
    /// The next bytes; `None` when the other task has ended the answer.
    async fn frame(&mut self) -> Result<Option<Bytes>> {
        let body = &mut self.body;
        let next = async {
            let mut trailers = None;
            while let Some(frame) = body.frame().await {
                match frame?.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    Err(frame) => trailers = frame.into_trailers().ok(),
                }
            }
            check_end(trailers.as_ref()).map(|()| None)
        };
        self.link.wait(&self.connection, METHOD, next).await
    }

    /// The content of the tensor as a stream; `bytes` are those of the answer that are here.
    fn into_stream(self, large: LargeTensor, mut bytes: Bytes) -> Result<TensorStream> {
        let LargeTensor { dtype, shape, require_ack, mut content, head } = large;
        let mut ready = VecDeque::new();
        content.push(bytes.split_off(head), &mut ready)?;
        let buffers = (0..BUFFERS).map(|_| BytesMut::new()).collect();
        let incoming = IncomingContent { answer: self, require_ack, content, ready, buffers };
        let mut chunks = Box::pin(stream::unfold(incoming, |mut incoming| async move {
            let chunk = incoming.chunk().await;
            Some((chunk, incoming))
        }));
        Ok(TensorStream::new(dtype, shape, move |cx| {
            let lost = || Err(internal!("the answer to RecvTensor was read after its end"));
            chunks.poll_next_unpin(cx).map(|chunk| chunk.unwrap_or_else(lost))
        }))
    }
}

/// The content of a tensor that is being received.
struct IncomingContent {
    answer: Answer,
    require_ack: bool,
    content: Content,
    /// Content that is here.
    ready: VecDeque<Bytes>,
    buffers: VecDeque<BytesMut>,
}

impl IncomingContent {
    /// The next bytes of the content, as many as arrived at once.
    async fn part(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Ok(Some(bytes));
            }
            match self.answer.frame().await? {
                Some(bytes) => self.content.push(bytes, &mut self.ready)?,
                None => return self.content.finish().map(|()| None),
            }
        }
    }

    /// The next `CHUNK` bytes. By now the reader has dropped the chunk that was in the buffer before, so its memory is
    /// used again.
    async fn chunk(&mut self) -> Result<Option<Bytes>> {
        self.buffers.rotate_left(1);
        let mut buffer = std::mem::take(&mut self.buffers[0]);
        buffer.reserve(CHUNK);
        while buffer.len() < CHUNK && !(self.ready.is_empty() && self.content.is_complete()) {
            let Some(mut bytes) = self.part().await? else { break };
            let room = CHUNK - buffer.len();
            if bytes.len() > room {
                self.ready.push_front(bytes.split_off(room));
            }
            buffer.extend_from_slice(&bytes);
        }
        let chunk = buffer.split().freeze();
        self.buffers[0] = buffer;
        match chunk.is_empty() {
            false => Ok(Some(chunk)),
            true => self.end().await.map(|()| None),
        }
    }

    /// Waits for the end of the answer.
    async fn end(&mut self) -> Result<()> {
        while let Some(bytes) = self.answer.frame().await? {
            self.content.push(bytes, &mut self.ready)?;
        }
        self.content.finish()?;
        if std::mem::take(&mut self.require_ack) {
            acknowledge(&self.answer.link, self.answer.id).await;
        }
        Ok(())
    }
}
