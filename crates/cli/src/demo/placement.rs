//! Where the variables of the demo lie.

use super::worker::Worker;
use crate::table;
use flowgrid::AttrValue;
use flowgrid::prelude::*;

/// The variables and their devices.
pub fn print(worker: &Worker) {
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
