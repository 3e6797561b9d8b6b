//! A connection that is watched: calls fail soon after the task stops answering.
//!
//! HTTP/2 pings would do the same, but a TensorFlow server closes connections that ping more than once in five minutes.
//! So GetStatus is called instead, on the same connection, while a call waits and nothing is received.

use crate::client::failure;
use crate::wire;
use parking_lot::Mutex;
use proto::tensorflow::worker_service_client::WorkerServiceClient;
use status::{Error, Result, unavailable};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

/// How long a task may be silent while a call waits for it, unless another time is set.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The shortest time that can be set: no task always answers faster.
pub(crate) const LEAST_PATIENCE: Duration = Duration::from_millis(100);

/// The first and the longest pause between attempts to reach a task that is not up yet; the longest is TensorFlow's.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// The time between log messages that say which task is awaited; the first one follows after `PAUSES.1`.
const REPORT: Duration = Duration::from_secs(10);

/// Makes a connection.
pub(crate) type Dial = Box<dyn Fn() -> Result<Channel> + Send + Sync>;

/// The connection to one task, which is made again when it is lost.
pub(crate) struct Link {
    /// Its name. If only the address is known, the first answer of the task contains it.
    task: OnceLock<String>,
    pub address: String,
    service: &'static str,
    /// Calls fail after this time without a sign of life from the task.
    patience: Duration,
    dial: Dial,
    connection: Mutex<Option<Arc<Connection>>>,
    pub accepts_batches: Arc<AtomicBool>,
}

/// One connection.
pub(crate) struct Connection {
    pub channel: Channel,
    /// When something was last received.
    last_activity: Mutex<Instant>,
    /// When the present series of GetStatus calls began.
    probe_start: Mutex<Instant>,
    /// Held by the call that asks for the status on behalf of all calls.
    asking: tokio::sync::Mutex<()>,
    lost: OnceLock<String>,
    /// Shared with the link: whether the task accepts batches of requests for tensors, as its last answer says.
    pub accepts_batches: Arc<AtomicBool>,
}

impl Connection {
    /// Records a sign of life from the task.
    pub fn record_activity(&self) {
        *self.last_activity.lock() = Instant::now();
    }

    /// How long a call that waits since `begin` has seen no sign of life. Silence before that means nothing.
    fn idle_time(&self, begin: Instant) -> Duration {
        begin.max(*self.last_activity.lock()).elapsed()
    }

    /// Since when a call that waits since `begin` has been asking for the status: since now, unless another call asked
    /// before and was dropped without an answer.
    fn probe_started(&self, begin: Instant) -> Instant {
        let last_activity = *self.last_activity.lock();
        let mut start = self.probe_start.lock();
        if *start < begin.max(last_activity) {
            *start = Instant::now();
        }
        *start
    }
}

impl Link {
    /// A connection to the worker of a task.
    pub fn to_worker(task: String, address: String, patience: Duration, dial: Dial) -> Link {
        Link { task: task.into(), ..Link::new("WorkerService", address, patience, dial) }
    }

    /// A connection to the master of the task at an address.
    pub fn to_master(address: String, patience: Duration, dial: Dial) -> Link {
        Link::new("MasterService", address, patience, dial)
    }

    fn new(service: &'static str, address: String, patience: Duration, dial: Dial) -> Link {
        Link {
            task: OnceLock::new(),
            address,
            service,
            patience,
            dial,
            connection: Mutex::new(None),
            accepts_batches: Arc::default(),
        }
    }

    /// The name of the task, or its address.
    pub fn name(&self) -> &str {
        self.task.get().unwrap_or(&self.address)
    }

    /// Waits for a task that may not be up yet, no longer than `limit`.
    pub async fn ready(&self, limit: Duration, method: &str) -> Result<()> {
        let (begin, mut pause, mut report) = (Instant::now(), PAUSES.0, PAUSES.1);
        loop {
            let connection = self.connection()?;
            let left = limit.saturating_sub(begin.elapsed());
            let why = match ask(&connection, Instant::now(), self.patience.min(left.max(LEAST_PATIENCE))).await {
                Ok(task) => {
                    if let Some(task) = task {
                        let _ = self.task.set(task); // unless it is known
                    }
                    return Ok(());
                }
                Err(why) => why,
            };
            self.give_up(&connection, &why);
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

    /// Calls the task; fails when it stops answering.
    pub async fn call<T, F>(&self, method: &str, call: impl FnOnce(Arc<Connection>) -> F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, Status>>,
    {
        let connection = self.connection()?;
        self.wait(&connection, method, call(connection.clone())).await
    }

    /// Waits for a part of an answer; fails when the task stops answering.
    pub async fn wait<T, F>(&self, connection: &Arc<Connection>, method: &str, answer: F) -> Result<T>
    where
        F: Future<Output = std::result::Result<T, Status>>,
    {
        tokio::select! {
            biased;
            answer = answer => answer.inspect(|_| connection.record_activity()).map_err(|status| self.error(connection, status, method)),
            why = self.watch(connection) => Err(self.silent(&why, method)),
        }
    }

    /// The connection, made if there is none.
    pub fn connection(&self) -> Result<Arc<Connection>> {
        let mut connection = self.connection.lock();
        if let Some(connection) = &*connection {
            return Ok(connection.clone());
        }
        self.accepts_batches.store(false, Ordering::Relaxed); // another program may run at the address now
        let fresh = Arc::new(Connection {
            channel: (self.dial)()?,
            last_activity: Mutex::new(Instant::now()),
            probe_start: Mutex::new(Instant::now()),
            asking: tokio::sync::Mutex::default(),
            lost: OnceLock::new(),
            accepts_batches: self.accepts_batches.clone(),
        });
        Ok(connection.insert(fresh).clone())
    }

    /// Completes when the task has stopped answering; returns the reason.
    async fn watch(&self, connection: &Arc<Connection>) -> String {
        let (quiet, answer) = (self.patience * 2 / 5, self.patience * 3 / 5);
        let begin = Instant::now();
        loop {
            tokio::time::sleep(quiet.saturating_sub(connection.idle_time(begin)).max(quiet / 8)).await;
            let _turn = connection.asking.lock().await;
            if let Some(why) = connection.lost.get() {
                return why.clone();
            }
            if connection.idle_time(begin) < quiet {
                continue;
            }
            if let Err(why) = ask(connection, begin, answer).await {
                self.give_up(connection, &why);
                return why;
            }
        }
    }

    /// Later calls get a new connection.
    fn give_up(&self, connection: &Arc<Connection>, why: &str) {
        let _ = connection.lost.set(why.to_string());
        let mut present = self.connection.lock();
        if present.as_ref().is_some_and(|present| Arc::ptr_eq(present, connection)) {
            *present = None;
        }
    }

    fn error(&self, connection: &Connection, status: Status, method: &str) -> Error {
        match failure::of_transport(&status) {
            Some(why) => self.silent(&why, method),
            None => {
                connection.record_activity(); // an error of the task is an answer
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

/// Asks for the status on behalf of a call that waits since `begin`; returns the name of the task, if the answer has it.
/// Data of other calls on the same connection is a sign of life too.
async fn ask(
    connection: &Connection,
    begin: Instant,
    patience: Duration,
) -> std::result::Result<Option<String>, String> {
    let mut client = WorkerServiceClient::new(connection.channel.clone());
    let mut answer = std::pin::pin!(client.get_status(wire::get_status()));
    let started = connection.probe_started(begin);
    let task = loop {
        match tokio::time::timeout(patience.saturating_sub(connection.idle_time(started)), &mut answer).await {
            Ok(Err(status)) => {
                if let Some(why) = failure::of_transport(&status) {
                    return Err(why);
                }
                break None;
            }
            Ok(Ok(answer)) => break wire::answering_task(answer.into_inner()),
            Err(_) if connection.idle_time(started) < patience => continue,
            Err(_) => return Err(format!("no sign of life for {} ms", connection.idle_time(begin).as_millis())),
        }
    };
    connection.record_activity();
    Ok(task)
}
