//! What the demo shows besides its accuracy: where the variables lie, and what travelled.

use super::worker::{Report, Worker};
use crate::table;
use flowgrid::AttrValue;
use flowgrid::prelude::*;
use std::collections::BTreeMap;

/// The variables and their devices.
pub fn placement(worker: &Worker) {
    let row = |variable: Variable| {
        let shape = variable.shape();
        let bytes = shape.known().map_or(0, |shape| shape.elements() * variable.dtype().size());
        vec![variable.name(), shape.to_string(), bytes.to_string(), place(&variable)]
    };
    let rows: Vec<Vec<String>> = global_variables(&worker.graph).into_iter().map(row).collect();
    println!();
    table::print(&["variable", "shape", "bytes", "device"], &rows);
}

/// The device of a variable, or the node beside which it lies.
fn place(variable: &Variable) -> String {
    let def = variable.handle().node().def();
    match def.attrs.get("_class") {
        Some(AttrValue::List(list)) if def.device.is_empty() && !list.strings.is_empty() => {
            String::from_utf8_lossy(&list.strings[0]).replace("loc:@", "with ")
        }
        _ => def.device.clone(),
    }
}

/// The bytes each task receives in a forward and backward pass, as the trace of one shows them.
pub fn traffic(workers: &[Worker], reports: &[Report]) {
    let mut received: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for report in reports.iter().filter(|report| report.error.is_none()) {
        for (device, nodes) in &report.trace.stats {
            let task = device.split("/device:").next().unwrap_or(device).to_string();
            let crossing = nodes.iter().filter(|node| node.op.as_ref() == "_Recv" && !node.name.starts_with("_recv_"));
            let bytes: usize =
                crossing.flat_map(|node| &node.outputs).map(|(dtype, shape)| shape.elements() * dtype.size()).sum();
            let entry = received.entry(task).or_default();
            entry.0 += bytes;
            entry.1 += bytes * report.losses.len();
        }
    }
    let row = |(task, (step, all)): (String, (usize, usize))| vec![task, step.to_string(), all.to_string()];
    let rows: Vec<Vec<String>> = received.into_iter().map(row).collect();
    println!("\n{} graphs, one for each worker", workers.len());
    table::print(&["task", "bytes received in a pass", "in all"], &rows);
    println!();
}
