//! The bytes sent between the tasks of the demo: as the tasks count them, or estimated for tasks that do not.

use super::worker::{Report, Worker};
use crate::output::print_line;
use crate::table;
use anyhow::Result;
use flowgrid::ops::raw;
use flowgrid::ops::state::read_variable;
use flowgrid::prelude::*;
use flowgrid::{DeviceSpec, Task};
use session::COUNTERS;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of tensors that each task received from others and sent to others since its start. Tasks that do not count,
/// such as TensorFlow's, and lost tasks are missing.
pub type Counts = BTreeMap<Task, [i64; 2]>;

/// The nodes that read the counters of the tasks.
pub struct Counters(Vec<(Task, [Output; 2])>);

/// The time that a task has to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Counters {
    /// Adds the nodes to a graph. The tasks do not count the values of these nodes.
    pub fn new(graph: &Graph, tasks: &[Task]) -> Counters {
        let scope = graph.root().reenter(COUNTERS).named("traffic");
        let of = |task: &Task| {
            let scope = scope.on(&task.to_string()).on("/device:CPU:0");
            (task.clone(), ["bytes_in", "bytes_out"].map(|name| counter(&scope, name)))
        };
        Counters(tasks.iter().map(of).collect())
    }

    /// Reads the counters of each task in a step of its own, so that one without an answer does not affect the others.
    pub fn read(&self, session: &Session) -> Counts {
        let read = |outputs: &[Output; 2]| {
            let options = RunOptions { timeout: Some(TIMEOUT), ..RunOptions::default() };
            session.run_with_options::<Vec<i64>>(&outputs[..], feeds! {}, options).ok()?.0.try_into().ok()
        };
        self.0.iter().filter_map(|(task, outputs)| Some((task.clone(), read(outputs)?))).collect()
    }
}

fn counter(scope: &Scope, name: &str) -> Output {
    let handle = raw::var_handle_op(scope, DType::I64, &PartialShape::scalar())
        .attr("container", COUNTERS)
        .attr("shared_name", name);
    let handle = handle.output();
    read_variable(&handle, DType::I64)
}

/// Prints the bytes sent between two readings. Tasks without counters are estimated.
pub fn print(tasks: &[Task], (before, after): (&Counts, &Counts), worker: &Worker, reports: &[Report]) -> Result<()> {
    let (estimates, mut estimated) = (estimate(tasks, worker, reports), false);
    let row = |task: &Task| {
        let cells = match (before.get(task), after.get(task)) {
            (Some(before), Some(after)) => [0, 1].map(|direction| (after[direction] - before[direction]).to_string()),
            _ => {
                estimated = true;
                let bytes = estimates.get(task).copied().unwrap_or_default();
                [format!("about {bytes}"), format!("about {bytes}")]
            }
        };
        [vec![task.to_string()], cells.to_vec()].concat()
    };
    let rows: Vec<Vec<String>> = tasks.iter().map(row).collect();
    print_line!("\n{} graphs, one for each worker", reports.len())?;
    table::print(&["task", "bytes received", "bytes sent"], &rows)?;
    if estimated {
        print_line!(
            "about: estimated, because the task does not count or is lost; each step sends every weight to its worker, \
             and its gradient back"
        )?;
    }
    print_line!()
}

/// The bytes that each task receives, which equal those it sends, if steps send only weights and gradients.
fn estimate(tasks: &[Task], worker: &Worker, reports: &[Report]) -> BTreeMap<Task, usize> {
    let mut bytes_of: BTreeMap<Task, usize> = BTreeMap::new();
    for variable in trainable_variables(&worker.graph) {
        let bytes = variable.shape().known().map_or(0, |shape| shape.elements() * variable.dtype().size());
        let device = DeviceSpec::parse(&variable.handle().node().def().device).unwrap_or_default();
        if let Some(task) = Task::of_device(&device) {
            *bytes_of.entry(task).or_default() += bytes;
        }
    }
    let weights: usize = bytes_of.values().sum();
    let steps: usize = reports.iter().map(|report| report.losses.len()).sum();
    bytes_of.values_mut().for_each(|bytes| *bytes *= steps);
    let workers = tasks.iter().filter(|task| task.job == "worker").zip(reports);
    bytes_of.extend(workers.map(|(task, report)| (task.clone(), weights * report.losses.len())));
    bytes_of
}
