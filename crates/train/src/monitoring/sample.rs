//! The counters at one moment, and the scalars that follow from two of them.

use session::{GradientCounts, Task, TaskCounts};
use std::time::Duration;

/// The counters at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub tasks: Vec<(Task, TaskCounts)>,
    pub gradients: Vec<GradientCounts>,
    pub queues: Vec<(String, i64)>,
}

/// Tags and values.
pub(crate) type Scalars = Vec<(String, f64)>;

impl Sample {
    /// The totals, and the rates since `before`, which was `time` ago.
    pub fn scalars(&self, before: Option<(&Sample, Duration)>) -> Scalars {
        let mut scalars = Scalars::new();
        for (task, now) in &self.tasks {
            let last = before.and_then(|(before, time)| Some((find(&before.tasks, task)?, time)));
            task_scalars(&mut scalars, task, now, last);
        }
        for now in &self.gradients {
            let last = before.and_then(|(before, _)| before.gradients.iter().find(|last| last.name == now.name));
            gradient_scalars(&mut scalars, now, last);
        }
        scalars
            .extend(self.queues.iter().map(|(name, length)| (format!("cluster/queue/{}", tag(name)), *length as f64)));
        scalars
    }
}

fn find<'a>(tasks: &'a [(Task, TaskCounts)], task: &Task) -> Option<&'a TaskCounts> {
    tasks.iter().find_map(|(known, counts)| (known == task).then_some(counts))
}

fn task_scalars(scalars: &mut Scalars, task: &Task, now: &TaskCounts, last: Option<(&TaskCounts, Duration)>) {
    let fields = |counts: &TaskCounts| [counts.steps, counts.bytes_in, counts.bytes_out];
    for (place, (name, now)) in TaskCounts::NAMES.iter().zip(fields(now)).enumerate() {
        let tag = format!("cluster/{}/{}/{name}", task.job, task.index);
        if let Some((last, time)) = last {
            scalars.push((format!("{tag}_per_sec"), per_second(since(now, fields(last)[place]), time)));
        }
        scalars.push((tag, now as f64));
    }
}

fn gradient_scalars(scalars: &mut Scalars, now: &GradientCounts, last: Option<&GradientCounts>) {
    let (name, none) = (tag(&now.name), GradientCounts::default());
    let last = last.unwrap_or(&none);
    let pairs = [(now.accepted, last.accepted), (now.stale, last.stale), (now.dropped, last.dropped)];
    for (fate, (now, _)) in ["accepted", "stale", "dropped"].iter().zip(pairs) {
        scalars.push((format!("cluster/gradients/{name}/{fate}"), now as f64));
    }
    let [accepted, stale, dropped] = pairs.map(|(now, last)| since(now, last));
    let came = accepted + stale + dropped;
    if came > 0 {
        scalars.push((format!("cluster/staleness/{name}"), (stale + dropped) as f64 / came as f64));
    }
}

/// The increase of a counter. A counter that is smaller than before was reset with its task.
fn since(now: i64, last: i64) -> i64 {
    if now >= last { now.wrapping_sub(last) } else { now }
}

/// A rate.
pub(crate) fn per_second(count: i64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// A name as a part of a tag, with the characters that TensorFlow allows there.
fn tag(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}
