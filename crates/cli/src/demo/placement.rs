//! The devices of the variables of the demo.

use super::worker::Worker;
use crate::output::print_line;
use crate::table;
use anyhow::Result;
use flowgrid::AttrValue;
use flowgrid::prelude::*;

/// Prints the variables with their devices.
pub fn print(worker: &Worker) -> Result<()> {
    let row = |variable: Variable| {
        let shape = variable.shape();
        let bytes = shape.known().map_or(0, |shape| shape.elements() * variable.dtype().size());
        vec![variable.name(), shape.to_string(), bytes.to_string(), device(&variable)]
    };
    let rows: Vec<Vec<String>> = global_variables(&worker.graph).into_iter().map(row).collect();
    print_line!()?;
    table::print(&["variable", "shape", "bytes", "device"], &rows)
}

/// The device of a variable, or the node with which it is colocated.
fn device(variable: &Variable) -> String {
    let def = variable.handle().node().def();
    match def.attrs.get("_class") {
        Some(AttrValue::List(list)) if def.device.is_empty() && !list.strings.is_empty() => {
            String::from_utf8_lossy(&list.strings[0]).replace("loc:@", "with ")
        }
        _ => def.device.clone(),
    }
}
