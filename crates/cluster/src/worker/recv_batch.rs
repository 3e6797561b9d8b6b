//! Batches concurrent RecvTensor calls to one task.
//!
//! A step starts with a RecvTensor for every variable that its task reads, and a ps starts with one for every gradient.
//! For small tensors the call costs more than the transfer. Tasks that accept batches, which they say in their answers,
//! receive all requests of a moment in one call and answer each as soon as its tensor is there.

use crate::Runtime;
use crate::api::{RecvTensor, WorkerClient};
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use op::Received;
use parking_lot::Mutex;
use status::{Result, internal};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The largest number of requests in one call.
const MAX_BATCH: usize = 256;

/// Requests to one task that are sent together.
pub(crate) struct RecvBatch {
    client: Arc<dyn WorkerClient>,
    runtime: Arc<dyn Runtime>,
    waiting: Mutex<Vec<Waiting>>,
}

/// A request that is not sent yet, or not answered.
struct Waiting {
    request: RecvTensor,
    answer: oneshot::Sender<Result<Received>>,
}

impl RecvBatch {
    pub fn new(client: Arc<dyn WorkerClient>, runtime: Arc<dyn Runtime>) -> Arc<RecvBatch> {
        Arc::new(RecvBatch { client, runtime, waiting: Mutex::default() })
    }

    /// Requests a tensor, together with other requests of the same moment if the task accepts that, and waits for it.
    pub async fn recv_tensor(self: &Arc<Self>, request: RecvTensor) -> Result<Received> {
        if !self.client.features().recv_batches {
            return self.client.recv_tensor(request).await;
        }
        let (answer, wait) = oneshot::channel();
        let is_first = {
            let mut waiting = self.waiting.lock();
            waiting.push(Waiting { request, answer });
            waiting.len() == 1
        };
        if is_first {
            // Not part of this future, which may be dropped before the other requests of the batch are answered.
            self.runtime.spawn(Box::pin(self.clone().send_next()));
        }
        wait.await.unwrap_or_else(|_| Err(internal!("an answer to RecvTensor was lost")))
    }

    /// Sends what waits after all tasks that are ready now had the chance to add their requests.
    async fn send_next(self: Arc<Self>) {
        self.runtime.yield_now().await;
        let mut waiting = std::mem::take(&mut *self.waiting.lock());
        while waiting.len() > MAX_BATCH {
            let batch = waiting.split_off(waiting.len() - MAX_BATCH);
            self.runtime.spawn(Box::pin(self.clone().send(batch)));
        }
        self.send(waiting).await;
    }

    /// Sends requests and passes on the answers. Drops the call when no receiver is left.
    async fn send(self: Arc<Self>, mut batch: Vec<Waiting>) {
        if batch.len() > 1 {
            return self.send_batch(batch).await;
        }
        let Some(Waiting { request, mut answer }) = batch.pop() else { return };
        let received = match select(self.client.recv_tensor(request), answer.cancellation()).await {
            Either::Left((received, _)) => received,
            Either::Right(_) => return,
        };
        let _ = answer.send(received);
    }

    async fn send_batch(self: Arc<Self>, batch: Vec<Waiting>) {
        let (requests, answers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.request, Some(waiting.answer))).unzip();
        let answers = Arc::new(Mutex::new(Answers(answers)));
        let deliver = {
            let answers = answers.clone();
            Box::new(move |index: usize, received| answers.lock().deliver(index, received))
        };
        let abandoned = pin!(poll_fn(|cx| answers.lock().poll_abandoned(cx)));
        let result = match select(self.client.recv_tensors(requests, deliver), abandoned).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => return,
        };
        let missing = result.and_then(|()| Err(internal!("the other task sent no answer to RecvTensor")));
        answers.lock().fail(&missing);
    }
}

/// The receivers of a batch, in the order of its requests; `None` when a request is answered.
struct Answers(Vec<Option<oneshot::Sender<Result<Received>>>>);

impl Answers {
    fn deliver(&mut self, index: usize, received: Result<Received>) {
        if let Some(answer) = self.0.get_mut(index).and_then(Option::take) {
            let _ = answer.send(received);
        }
    }

    /// Ready when requests are left and their receivers are all gone. After the last answer the call is not dropped:
    /// its end is on the way.
    fn poll_abandoned(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut left = self.0.iter_mut().flatten().peekable();
        if left.peek().is_none() {
            return Poll::Pending;
        }
        // Every receiver must register its waker, so all of them are polled.
        let waiting = left.filter_map(|answer| answer.poll_canceled(cx).is_pending().then_some(())).count();
        if waiting == 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    fn fail(&mut self, result: &Result<Received>) {
        for answer in self.0.iter_mut().filter_map(Option::take) {
            let _ = answer.send(result.clone());
        }
    }
}
