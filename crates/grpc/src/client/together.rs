//! Tensors that are asked for at the same moment are asked for in one call.
//!
//! A step begins with a RecvTensor for every variable its task reads, and a ps with one for every gradient. As calls of
//! their own they cost more than the small ones among them weigh. Tasks of ours, which say so in their answers, take
//! several at once, and send each as soon as it is there.

use crate::client::bulk::check_end;
use crate::client::link::Line;
use crate::client::transfer;
use crate::server::TOGETHER;
use crate::wire;
use crate::wire::together::Reader;
use crate::wire::transfer::Received;
use cluster::RecvTensor;
use futures_util::future::{Either, join_all, select};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;
use tonic::{Code, Status};

/// As many go into one call.
const MOST: usize = 256;

type Answer = Result<Received, Status>;

/// What is asked for next on a connection.
#[derive(Default)]
pub(crate) struct Together {
    /// The other task takes several at once.
    understood: AtomicBool,
    waiting: Mutex<Vec<Asked>>,
}

struct Asked {
    id: i64,
    call: RecvTensor,
    answer: oneshot::Sender<Answer>,
}

impl Together {
    /// Whether the other task said that it takes several at once.
    pub fn is_understood(&self, understood: bool) {
        self.understood.store(understood, Ordering::Relaxed);
    }
}

/// Asks for a tensor and waits for it, however long that takes.
pub(crate) async fn recv_tensor(line: Arc<Line>, id: i64, call: RecvTensor) -> Answer {
    if !line.together.understood.load(Ordering::Relaxed) {
        return transfer::recv_tensor(line, id, call).await;
    }
    let (answer, wait) = oneshot::channel();
    let is_first = {
        let mut waiting = line.together.waiting.lock();
        waiting.push(Asked { id, call, answer });
        waiting.len() == 1
    };
    if is_first {
        // Not part of this call: who waits with it must not be lost with it. It ends when nobody waits any more.
        tokio::spawn(ask_next(line));
    }
    wait.await.unwrap_or_else(|_| Err(Status::internal("an answer of RecvTensor was lost")))
}

/// Asks for what waits when all who are ready now have said what they want.
async fn ask_next(line: Arc<Line>) {
    tokio::task::yield_now().await;
    let mut waiting = std::mem::take(&mut *line.together.waiting.lock());
    while waiting.len() > MOST {
        tokio::spawn(ask(line.clone(), waiting.split_off(waiting.len() - MOST)));
    }
    ask(line, waiting).await;
}

async fn ask(line: Arc<Line>, mut asked: Vec<Asked>) {
    if asked.len() > 1 {
        return ask_together(line, asked).await;
    }
    let Some(Asked { id, call, mut answer }) = asked.pop() else { return };
    let received = match select(pin!(transfer::recv_tensor(line, id, call)), pin!(answer.closed())).await {
        Either::Left((received, _)) => received,
        Either::Right(_) => return,
    };
    let _ = answer.send(received);
}

async fn ask_together(line: Arc<Line>, asked: Vec<Asked>) {
    let mut request = Vec::new();
    let mut answers = Vec::with_capacity(asked.len());
    for Asked { id, call, answer } in asked {
        match transfer::request(id, call) {
            Ok(bytes) => {
                request.extend_from_slice(&bytes);
                answers.push(Some(answer));
            }
            Err(error) => drop(answer.send(Err(wire::status(error)))),
        }
    }
    let mut reader = Reader::new(answers.len());
    let result = receive(&line, request, &mut reader, &mut answers).await.map_err(|status| match status.code() {
        // Another program answers at this address now; it was told nothing of this step either.
        Code::Unimplemented => {
            line.together.is_understood(false);
            Status::unavailable(status.message())
        }
        _ => status,
    });
    let missing = || Err(Status::internal("the other task sent no answer to RecvTensor"));
    for answer in answers.into_iter().flatten() {
        let _ = answer.send(result.clone().and_then(|()| missing()));
    }
}

/// Gives out answers as they come, until none is missing or nobody waits.
async fn receive(
    line: &Line,
    request: Vec<u8>,
    reader: &mut Reader,
    answers: &mut [Option<oneshot::Sender<Answer>>],
) -> Result<(), Status> {
    let (_, mut body) = {
        let nobody_waits = join_all(answers.iter_mut().flatten().map(oneshot::Sender::closed));
        match select(pin!(transfer::ask(line, TOGETHER, request.into())), nobody_waits).await {
            Either::Left((answer, _)) => answer?,
            Either::Right(_) => return Ok(()),
        }
    };
    loop {
        // After the last answer nobody waits, and the end of the call is on its way.
        let frame = if answers.iter().all(Option::is_none) {
            body.frame().await
        } else {
            let nobody_waits = join_all(answers.iter_mut().flatten().map(oneshot::Sender::closed));
            match select(pin!(body.frame()), nobody_waits).await {
                Either::Left((frame, _)) => frame,
                Either::Right(_) => return Ok(()),
            }
        };
        let Some(frame) = frame else { return check_end(None) };
        match frame?.into_data() {
            Ok(data) => {
                line.hear();
                let give = |place: usize, answer: status::Result<Received>| {
                    if let Some(waiting) = answers.get_mut(place).and_then(Option::take) {
                        let _ = waiting.send(answer.map_err(wire::status));
                    }
                };
                reader.push(&data, give).map_err(wire::status)?;
            }
            Err(frame) => return check_end(frame.into_trailers().ok().as_ref()),
        }
    }
}
