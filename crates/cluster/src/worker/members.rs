//! Watches the masters of sessions that take part in synchronous training.

use crate::Task;
use crate::api::WorkerClient;
use crate::worker::Worker;
use crate::worker::session::WorkerSession;
use graph::DeviceSpec;
use membership::Member;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The time between two calls that check whether a master answers.
const PERIOD: Duration = Duration::from_millis(500);

/// Watches the master of a session that takes part in synchronous training, until the session ends. A master that does
/// not answer, or has restarted, will send no more gradients.
pub(crate) fn watch(worker: &Arc<Worker>, session: &Arc<WorkerSession>) {
    let Some(member) = &session.member else { return };
    let task = DeviceSpec::parse(&session.master_task).ok().and_then(|spec| Task::of_device(&spec));
    let Some(task) = task.filter(|task| *task != worker.task) else { return };
    let cluster = session.cluster.as_ref().map_or_else(|| worker.cluster(), |(cluster, _)| cluster.clone());
    match worker.link(&cluster, &task) {
        Ok(master) => {
            let watcher = Watcher {
                worker: Arc::downgrade(worker),
                session: Arc::downgrade(session),
                incarnation: session.master_incarnation as u64,
                master,
            };
            worker.runtime.spawn(Box::pin(watcher.run(member.clone())));
        }
        Err(error) => tracing::warn!("{task} is not watched: {error}"),
    }
}

struct Watcher {
    worker: Weak<Worker>,
    session: Weak<WorkerSession>,
    incarnation: u64,
    master: Arc<dyn WorkerClient>,
}

impl Watcher {
    async fn run(self, member: Arc<Member>) {
        loop {
            let Some(pause) = self.worker.upgrade().map(|worker| worker.runtime.sleep(PERIOD)) else { return };
            pause.await;
            if self.session.strong_count() == 0 || member.has_ended() {
                return;
            }
            let is_alive = match self.master.get_status().await {
                Ok(devices) => devices.iter().any(|device| device.incarnation == self.incarnation),
                Err(_) => false,
            };
            if member.is_alive() && !is_alive {
                tracing::warn!("{} does not answer: no gradients of its session are expected", member.task());
            }
            member.set_alive(is_alive);
        }
    }
}
