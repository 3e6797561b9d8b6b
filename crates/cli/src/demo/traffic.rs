//! What travelled between the tasks: as they count it, or estimated of those that do not count.

use super::worker::{Report, Worker};
use crate::table;
use flowgrid::ops::raw;
use flowgrid::ops::state::read_variable::read_variable;
use flowgrid::prelude::*;
use flowgrid::{DeviceSpec, Task};
use session::COUNTERS;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of tensors that each task received from others and sent to others since it was started. A task that does not
/// count, such as TensorFlow's, is not there, nor is one that is lost.
pub type Counts = BTreeMap<Task, [i64; 2]>;

/// Nodes that read what the tasks count.
pub struct Counters(Vec<(Task, [Output; 2])>);

/// How long a task may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Counters {
    /// Adds the nodes to a graph. What is asked of them is not counted.
    pub fn new(graph: &Graph, tasks: &[Task]) -> Counters {
        let scope = graph.root().reenter(COUNTERS).named("traffic");
        let of = |task: &Task| {
            let scope = scope.on(&task.to_string()).on("/device:CPU:0");
            (task.clone(), ["bytes_in", "bytes_out"].map(|name| counter(&scope, name)))
        };
        Counters(tasks.iter().map(of).collect())
    }

    /// Asks every task in a step of its own: one that does not answer takes nothing from the others.
    pub fn read(&self, session: &Session) -> Counts {
        let ask = |outputs: &[Output; 2]| {
            let options = RunOptions { timeout: Some(PATIENCE), ..RunOptions::default() };
            session.run_with_options::<Vec<i64>>(&outputs[..], feeds! {}, options).ok()?.0.try_into().ok()
        };
        self.0.iter().filter_map(|(task, outputs)| Some((task.clone(), ask(outputs)?))).collect()
    }
}

fn counter(scope: &Scope, name: &str) -> Output {
    let handle = raw::var_handle_op(scope, DType::I64, &PartialShape::scalar())
        .attr("container", COUNTERS)
        .attr("shared_name", name);
    let handle = handle.output();
    read_variable(&handle, DType::I64)
}

/// Prints what travelled since `before`. `tasks` are all there are; those that do not tell are estimated.
pub fn print(tasks: &[Task], (before, after): (&Counts, &Counts), worker: &Worker, reports: &[Report]) {
    let (estimates, mut estimated) = (estimate(tasks, worker, reports), false);
    let row = |task: &Task| {
        let cells = match (before.get(task), after.get(task)) {
            (Some(before), Some(after)) => [0, 1].map(|way| (after[way] - before[way]).to_string()),
            _ => {
                estimated = true;
                let bytes = estimates.get(task).copied().unwrap_or_default();
                [format!("about {bytes}"), format!("about {bytes}")]
            }
        };
        [vec![task.to_string()], cells.to_vec()].concat()
    };
    let rows: Vec<Vec<String>> = tasks.iter().map(row).collect();
    println!("\n{} graphs, one for each worker", reports.len());
    table::print(&["task", "bytes received", "bytes sent"], &rows);
    if estimated {
        println!(
            "about: estimated, of a task that does not count or is lost; a step brings every weight to its worker, \
             and its gradient back"
        );
    }
    println!();
}

/// The bytes that each task receives, and as many that it sends, if its steps move weights and gradients and nothing
/// else.
fn estimate(tasks: &[Task], worker: &Worker, reports: &[Report]) -> BTreeMap<Task, usize> {
    let mut moved: BTreeMap<Task, usize> = BTreeMap::new();
    for variable in trainable_variables(&worker.graph) {
        let bytes = variable.shape().known().map_or(0, |shape| shape.elements() * variable.dtype().size());
        let device = DeviceSpec::parse(&variable.handle().node().def().device).unwrap_or_default();
        if let Some(task) = Task::of_device(&device) {
            *moved.entry(task).or_default() += bytes;
        }
    }
    let weights: usize = moved.values().sum();
    let steps: usize = reports.iter().map(|report| report.losses.len()).sum();
    moved.values_mut().for_each(|bytes| *bytes *= steps);
    let workers = tasks.iter().filter(|task| task.job == "worker").zip(reports);
    moved.extend(workers.map(|(task, report)| (task.clone(), weights * report.losses.len())));
    moved
}
