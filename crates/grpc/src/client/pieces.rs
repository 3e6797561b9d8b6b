//! RecvTensor for a reader who takes the content piece by piece: what he has not asked for stays with the other task,
//! but for the window of the connection.

use crate::client::bulk::check_end;
use crate::client::link::{Line, Link};
use crate::client::transfer::{ask, request};
use crate::client::worker::acknowledge;
use crate::server::PATH;
use crate::wire::pieces::{Content, FROM, Large, Start, start};
use crate::wire::transfer::Incoming;
use bytes::{Bytes, BytesMut};
use cluster::{Arriving, Future, RecvTensor, Stream};
use http_body_util::BodyExt;
use status::Result;
use std::collections::VecDeque;
use std::sync::Arc;
use tensor::{DType, Shape};
use tonic::body::Body;

const METHOD: &str = "RecvTensor";
/// Frames are put together to pieces of this size.
const PIECE: usize = 1 << 20;
/// So many pieces may be with the reader before memory is asked for again.
const BUFFERS: usize = 4;

/// Asks for a tensor and waits for its beginning.
pub(crate) async fn open_tensor(link: Arc<Link>, id: i64, call: RecvTensor) -> Result<Arriving> {
    let line = link.line()?;
    let question = request(id, call)?;
    let (raw, body) = link.wait(&line, METHOD, ask(&line, PATH, question)).await?;
    let mut answer = Answer { link, line, body, id };
    let mut head = BytesMut::new();
    loop {
        match start(&head, raw, FROM) {
            Start::Large(large) => return answer.into_pieces(large, head.freeze()),
            Start::Ordinary => break,
            Start::Unknown => {}
        }
        match answer.frame().await? {
            Some(bytes) => head.extend_from_slice(&bytes),
            None => return whole(answer, raw, &head, true).await,
        }
    }
    whole(answer, raw, &head, false).await
}

/// The rest of an answer that has no pieces. `ended` says that all of it is here.
async fn whole(mut answer: Answer, raw: Option<usize>, head: &[u8], ended: bool) -> Result<Arriving> {
    let mut incoming = Incoming::new(raw)?;
    incoming.push(head)?;
    if !ended {
        while let Some(bytes) = answer.frame().await? {
            incoming.push(&bytes)?;
        }
    }
    let received = incoming.finish()?;
    if received.require_ack {
        acknowledge(&answer.link, answer.id).await;
    }
    Ok(Arriving::Whole(received.tensor, received.is_dead))
}

/// An answer under way.
struct Answer {
    link: Arc<Link>,
    line: Arc<Line>,
    body: Body,
    id: i64,
}

impl Answer {
    /// The next bytes; none when the other task said that this was all.
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
        self.link.wait(&self.line, METHOD, next).await
    }

    fn into_pieces(self, large: Large, mut bytes: Bytes) -> Result<Arriving> {
        let Large { dtype, shape, require_ack, mut content, head } = large;
        let mut ready = VecDeque::new();
        content.push(bytes.split_off(head), &mut ready)?;
        Ok(Arriving::Pieces(Box::new(Coming {
            answer: self,
            dtype,
            shape,
            require_ack,
            content,
            ready,
            buffers: (0..BUFFERS).map(|_| BytesMut::new()).collect(),
        })))
    }
}

/// A tensor whose content is coming.
struct Coming {
    answer: Answer,
    dtype: DType,
    shape: Shape,
    require_ack: bool,
    content: Content,
    /// Content that is here.
    ready: VecDeque<Bytes>,
    buffers: VecDeque<BytesMut>,
}

impl Coming {
    /// The next bytes of the content, however many came at once.
    async fn some(&mut self) -> Result<Option<Bytes>> {
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

    /// The next bytes, many together. By now the piece of some turns before is gone, and its memory serves again.
    async fn piece(&mut self) -> Result<Option<Bytes>> {
        self.buffers.rotate_left(1);
        let mut buffer = std::mem::take(&mut self.buffers[0]);
        buffer.reserve(PIECE);
        while buffer.len() < PIECE && !(self.ready.is_empty() && self.content.is_complete()) {
            let Some(mut bytes) = self.some().await? else { break };
            let room = PIECE - buffer.len();
            if bytes.len() > room {
                self.ready.push_front(bytes.split_off(room));
            }
            buffer.extend_from_slice(&bytes);
        }
        let piece = buffer.split().freeze();
        self.buffers[0] = buffer;
        match piece.is_empty() {
            false => Ok(Some(piece)),
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

impl Stream for Coming {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn next(&mut self) -> Future<'_, Option<Bytes>> {
        Box::pin(self.piece())
    }
}
