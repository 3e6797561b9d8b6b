//! A connection that is watched: whoever waits for a task learns soon when it stops answering.
//!
//! HTTP/2 pings would do the same, but a TensorFlow server closes connections that ping more than once in five
//! minutes. So the task is asked for its status instead, on the same connection, while anybody waits in silence.

use crate::client::failure;
use crate::client::together::Together;
use crate::wire;
use parking_lot::Mutex;
use proto::tensorflow::worker_service_client::WorkerServiceClient;
use status::{Error, Result, unavailable};
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

/// How long a task may be silent while somebody waits for it, unless another time is set.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// No time that is set is shorter: nobody answers that fast all the time.
pub(crate) const LEAST_PATIENCE: Duration = Duration::from_millis(100);

/// Pauses between attempts to reach a task that is not up yet: the first, and the longest, which is TensorFlow's.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// Meanwhile the log tells who is waited for, after the first second and then this often.
const REPORT: Duration = Duration::from_secs(10);

/// Makes a connection.
pub(crate) type Dial = Box<dyn Fn() -> Result<Channel> + Send + Sync>;

/// The way to one task.
pub(crate) struct Link {
    /// Its name; who was given an address alone learns it when the task first answers.
    task: OnceLock<String>,
    pub address: String,
    service: &'static str,
    /// After this long without a sign of life the task is taken for dead.
    patience: Duration,
    dial: Dial,
    line: Mutex<Option<Arc<Line>>>,
}

/// One connection, until it is given up.
pub(crate) struct Line {
    pub channel: Channel,
    heard: Mutex<Instant>,
    /// When it was last asked for a sign of life for the first time.
    asked: Mutex<Instant>,
    /// Held by the one who asks on behalf of all who wait.
    asking: tokio::sync::Mutex<()>,
    lost: OnceLock<String>,
    /// Tensors that are asked for at the same moment.
    pub together: Together,
}

impl Line {
    /// The task gave a sign of life.
    pub fn hear(&self) {
        *self.heard.lock() = Instant::now();
    }

    /// How long it has given none to somebody who waits since `begin`: silence before that means nothing.
    fn silence(&self, begin: Instant) -> Duration {
        begin.max(*self.heard.lock()).elapsed()
    }

    /// Since when the task owes a sign of life to somebody who waits since `begin`: since now, unless another who asked has
    /// gone away without it.
    fn with_work(&self, begin: Instant) -> Instant {
        let heard = *self.heard.lock();
        let mut asked = self.asked.lock();
        if *asked < begin.max(heard) {
            *asked = Instant::now();
        }
        *asked
    }
}

impl Link {
    /// The way to a task's worker.
    pub fn to_worker(task: String, address: String, patience: Duration, dial: Dial) -> Link {
        Link { task: task.into(), ..Link::new("WorkerService", address, patience, dial) }
    }

    /// The way to the master of whatever task is at an address.
    pub fn to_master(address: String, patience: Duration, dial: Dial) -> Link {
        Link::new("MasterService", address, patience, dial)
    }

    fn new(service: &'static str, address: String, patience: Duration, dial: Dial) -> Link {
        Link { task: OnceLock::new(), address, service, patience, dial, line: Mutex::new(None) }
    }

    /// The task, or where it is.
    pub fn name(&self) -> &str {
        self.task.get().unwrap_or(&self.address)
    }

    /// Waits for a task that may not be up yet, no longer than `limit`.
    pub async fn ready(&self, limit: Duration, method: &str) -> Result<()> {
        let (begin, mut pause, mut report) = (Instant::now(), PAUSES.0, PAUSES.1);
        loop {
            let line = self.line()?;
            let left = limit.saturating_sub(begin.elapsed());
            let why = match ask(&line, Instant::now(), self.patience.min(left.max(LEAST_PATIENCE))).await {
                Ok(task) => {
                    if let Some(task) = task {
                        let _ = self.task.set(task); // unless it is known
                    }
                    return Ok(());
                }
                Err(why) => why,
            };
            self.give_up(&line, &why);
            let waited = begin.elapsed();
            if waited + pause >= limit {
                return Err(self.silent(&format!("{why} (tried for {limit:?})"), method));
            }
            if waited >= report {
                tracing::info!("still waiting for the server at {}: {why}", self.address);
                report = waited + REPORT;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Calls the task, and fails when it stops answering.
    pub async fn call<T, F>(&self, method: &str, call: impl FnOnce(Arc<Line>) -> F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, Status>>,
    {
        let line = self.line()?;
        self.wait(&line, method, call(line.clone())).await
    }

    /// Waits for something of a call that is under way, and fails when the task stops answering.
    pub async fn wait<T, F>(&self, line: &Arc<Line>, method: &str, answer: F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, Status>>,
    {
        tokio::select! {
            biased;
            answer = answer => answer.inspect(|_| line.hear()).map_err(|status| self.error(line, status, method)),
            why = self.watch(line) => Err(self.silent(&why, method)),
        }
    }

    /// The connection, made if there is none.
    pub fn line(&self) -> Result<Arc<Line>> {
        let mut line = self.line.lock();
        if let Some(line) = &*line {
            return Ok(line.clone());
        }
        let fresh = Arc::new(Line {
            channel: (self.dial)()?,
            heard: Mutex::new(Instant::now()),
            asked: Mutex::new(Instant::now()),
            asking: tokio::sync::Mutex::default(),
            lost: OnceLock::new(),
            together: Together::default(),
        });
        Ok(line.insert(fresh).clone())
    }

    /// Ends when the task is taken for dead; gives the reason.
    async fn watch(&self, line: &Arc<Line>) -> String {
        let (quiet, answer) = (self.patience * 2 / 5, self.patience * 3 / 5);
        let begin = Instant::now();
        loop {
            tokio::time::sleep(quiet.saturating_sub(line.silence(begin)).max(quiet / 8)).await;
            let _turn = line.asking.lock().await;
            if let Some(why) = line.lost.get() {
                return why.clone();
            }
            if line.silence(begin) < quiet {
                continue;
            }
            if let Err(why) = ask(line, begin, answer).await {
                self.give_up(line, &why);
                return why;
            }
        }
    }

    /// Later calls get a new connection.
    fn give_up(&self, line: &Arc<Line>, why: &str) {
        let _ = line.lost.set(why.to_string());
        let mut present = self.line.lock();
        if present.as_ref().is_some_and(|present| Arc::ptr_eq(present, line)) {
            *present = None;
        }
    }

    fn error(&self, line: &Line, status: Status, method: &str) -> Error {
        match failure::of_transport(&status) {
            Some(why) => self.silent(&why, method),
            None => {
                line.hear(); // an error of its own is an answer
                wire::error(status)
            }
        }
    }

    fn silent(&self, why: &str, method: &str) -> Error {
        let who = match self.task.get() {
            Some(task) => format!("Task {task}"),
            None => "The server".to_string(),
        };
        unavailable!(
            "{who} at {} does not answer: {why}\nAdditional GRPC error information from remote target {} while calling \
             /tensorflow.{}/{method}:\n:{why}",
            self.address,
            self.name(),
            self.service
        )
    }
}

/// Asks for a sign of life on behalf of somebody who waits since `begin`; gives the task's name, if the answer tells it.
/// Data of other calls on the same connection is a sign as well.
async fn ask(line: &Line, begin: Instant, patience: Duration) -> std::result::Result<Option<String>, String> {
    let mut client = WorkerServiceClient::new(line.channel.clone());
    let mut answer = std::pin::pin!(client.get_status(wire::get_status()));
    let asked = line.with_work(begin);
    let task = loop {
        match tokio::time::timeout(patience.saturating_sub(line.silence(asked)), &mut answer).await {
            Ok(Err(status)) => {
                if let Some(why) = failure::of_transport(&status) {
                    return Err(why);
                }
                break None;
            }
            Ok(Ok(answer)) => break wire::answering_task(answer.into_inner()),
            Err(_) if line.silence(asked) < patience => continue,
            Err(_) => return Err(format!("no sign of life for {} ms", line.silence(begin).as_millis())),
        }
    };
    line.hear();
    Ok(task)
}
