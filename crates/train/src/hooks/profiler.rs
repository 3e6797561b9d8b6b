//! Writes when every node of a step ran, every so often.

use super::{Every, Timer, read_step, stale_step, step_of};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use graph::{Graph, Output};
use io::FileSystems;
use io::fs::path;
use session::{NodeStats, RunOptions};
use status::Result;

/// Writes `timeline-<step>.json` every so often, which Chrome shows at `chrome://tracing`.
pub struct Profiler {
    systems: FileSystems,
    folder: String,
    timer: Timer,
    counter: Option<Output>,
    next: Option<i64>,
    asked: bool,
}

impl Profiler {
    /// Writes to `folder`.
    pub fn new(folder: &str, every: Every) -> Profiler {
        Profiler {
            systems: FileSystems::local(),
            folder: folder.to_string(),
            timer: Timer::new(every),
            counter: None,
            next: None,
            asked: false,
        }
    }
}

impl SessionRunHook for Profiler {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "ProfilerHook")?);
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        self.asked = self.next.is_some_and(|next| self.timer.is_due(next));
        let args = self.counter.as_ref().map_or_else(RunArgs::nothing, RunArgs::fetch);
        Ok(args.options(RunOptions { trace: self.asked, ..RunOptions::default() }))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let Some(counter) = &self.counter else { return Ok(()) };
        let stale = stale_step(values)?;
        if self.next.is_none() {
            self.timer.done(stale);
        }
        let mut step = stale + 1;
        if self.asked {
            step = read_step(context.session(), counter)?;
            self.timer.done(step);
            self.systems.create_dirs(&self.folder)?;
            let file = path::join(&self.folder, &format!("timeline-{step}.json"));
            self.systems.write(&file, timeline(&values.metadata().stats).as_bytes())?;
        }
        self.next = Some(step + 1);
        Ok(())
    }
}

/// A trace in Chrome's format: a process for each device, a row for each of its threads.
fn timeline(devices: &[(String, Vec<NodeStats>)]) -> String {
    let mut events = Vec::new();
    for (number, (device, nodes)) in devices.iter().enumerate() {
        let name = quoted(&format!("{device} Compute"));
        events.push(format!(r#"{{"name":"process_name","ph":"M","pid":{number},"args":{{"name":{name}}}}}"#));
        events.extend(nodes.iter().map(|node| ran(number, node)));
    }
    format!("{{\"traceEvents\":[{}]}}", events.join(","))
}

fn ran(device: usize, node: &NodeStats) -> String {
    let (begin, length) = (node.start / 1000, node.end.saturating_sub(node.start) / 1000);
    let (name, op, thread) = (quoted(&node.name), quoted(&node.op), node.thread);
    format!(
        r#"{{"ph":"X","cat":"Op","name":{op},"pid":{device},"tid":{thread},"ts":{begin},"dur":{length},"args":{{"name":{name},"op":{op}}}}}"#
    )
}

fn quoted(text: &str) -> String {
    let escaped: String = text.chars().flat_map(escape).collect();
    format!("\"{escaped}\"")
}

fn escape(c: char) -> Vec<char> {
    match c {
        '"' | '\\' => vec!['\\', c],
        c if c < ' ' => format!("\\u{:04x}", c as u32).chars().collect(),
        c => vec![c],
    }
}
