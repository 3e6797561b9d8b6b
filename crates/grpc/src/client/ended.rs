//! Ends of steps travel with the next step.
//!
//! A master tells every task that took part in a step when it is over. As a call of its own that would be a third of what
//! a short step costs. Tasks of ours, which say so in their answers, hear it in the headers of the next run; if none
//! follows soon, in calls for many at once.

use crate::client::link::Link;
use crate::client::worker::cleanup_graph;
use http::HeaderValue;
use parking_lot::Mutex;
use status::Code;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// So long the end of a step may wait for the next one.
const WAIT: Duration = Duration::from_millis(20);
/// As many go into one header, which must stay short.
const MOST: usize = 64;

/// So many are kept for a task that does not answer.
const KEPT: usize = 4096;

/// Steps that are over, of which a task has not heard.
#[derive(Default)]
pub(crate) struct Ended {
    /// The task takes them with a run.
    understood: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    steps: Vec<u64>,
    /// Somebody waits who will tell what is left.
    watched: bool,
}

/// What became of a step that was to be added.
pub(crate) enum Added {
    /// The task must be told by a call of its own.
    Refused,
    /// It is in the list, and nobody waits yet who will tell what is left.
    First,
    /// It is in the list.
    Next,
}

impl Ended {
    /// Adds a step, if the task is known to take it with the next.
    pub fn add(&self, step_id: u64) -> Added {
        if !self.understood.load(Ordering::Relaxed) {
            return Added::Refused;
        }
        let mut list = self.list.lock();
        if list.steps.len() == KEPT {
            list.steps.remove(0); // the task has not answered for long
        }
        list.steps.push(step_id);
        match std::mem::replace(&mut list.watched, true) {
            true => Added::Next,
            false => Added::First,
        }
    }

    /// The step that was added last; if there is none, who asks need not wait any more.
    fn newest(&self) -> Option<u64> {
        let mut list = self.list.lock();
        list.watched = !list.steps.is_empty();
        list.steps.last().copied()
    }

    fn holds(&self, step_id: u64) -> bool {
        self.list.lock().steps.contains(&step_id)
    }

    /// Takes what fits into one header.
    pub fn take(self: &Arc<Self>) -> Telling {
        let mut list = self.list.lock();
        let rest = list.steps.len().saturating_sub(MOST);
        Telling { steps: list.steps.split_off(rest), ended: self.clone() }
    }
}

/// Steps of which the task is being told; if it does not answer, they go back to the list.
pub(crate) struct Telling {
    ended: Arc<Ended>,
    steps: Vec<u64>,
}

impl Telling {
    /// The steps as a header has them; none if there are none.
    pub fn steps(&self) -> Option<HeaderValue> {
        let steps: Vec<String> = self.steps.iter().map(u64::to_string).collect();
        let mut header = HeaderValue::from_str(&steps.join(",")).ok().filter(|header| !header.is_empty())?;
        // It never comes again: the connection need not remember it, and forget other headers for it.
        header.set_sensitive(true);
        Some(header)
    }

    /// The task answered, and says whether it takes ended steps with a run. If it does not, as one that took the place of
    /// another, it knows nothing of them either.
    pub fn are_told(&mut self, understood: bool) {
        self.steps.clear();
        self.ended.understood.store(understood, Ordering::Relaxed);
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if !self.steps.is_empty() {
            self.ended.list.lock().steps.append(&mut self.steps);
        }
    }
}

/// Tells what no run has told for a while, and ends when nothing is left, or when the task does not answer: then the next
/// run tells it, or the one who waits for the next step that ends.
pub(crate) async fn tell_in_time(link: Arc<Link>, ended: Arc<Ended>) {
    while let Some(newest) = ended.newest() {
        tokio::time::sleep(WAIT).await;
        while ended.holds(newest) {
            if !tell(&link, ended.take()).await {
                ended.list.lock().watched = false;
                return;
            }
        }
    }
}

/// Tells all there is to tell now, if the task answers.
pub(crate) async fn tell_all(link: &Link, ended: &Arc<Ended>) {
    loop {
        let telling = ended.take();
        if telling.steps.is_empty() || !tell(link, telling).await {
            return;
        }
    }
}

/// Tells a task of some steps by a call of its own; whether it answers.
async fn tell(link: &Link, mut telling: Telling) -> bool {
    let Some(last) = telling.steps.pop() else { return true };
    let others = telling.steps();
    let told = cleanup_graph(link, last, others).await;
    match &told {
        Err(error) if error.code == Code::Unavailable => {
            tracing::debug!("{} was not told that steps are over: {error}", link.name());
            telling.steps.push(last);
        }
        _ => telling.steps.clear(),
    }
    telling.steps.is_empty()
}
