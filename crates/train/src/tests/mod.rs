//! Optimizers against TensorFlow's own, gradients against differences, and what is built around them.

mod averages;
mod coordination;
mod derivatives;
mod device_setter;
mod file_systems;
mod file_writer;
mod hook_events;
mod log;
mod losses;
mod meta_graph;
mod metrics;
mod monitored;
mod named;
mod partitioners;
mod recovery;
mod saver;
mod saver_options;
mod saving;
mod scaffold;
mod schedules;
mod session_manager;
mod shared_state;
mod supervised;
mod supervisor;
mod supervisor_files;
mod sync_replicas;
mod told;
mod variables;

use crate::create_global_step;
use graph::{Graph, Node, Output};
use layers::{Formula, Formulas};
use std::sync::atomic::{AtomicU32, Ordering};
use tensor::{DType, Tensor};

fn graph() -> Graph {
    Graph::with_ops(ops::registry())
}

/// A graph whose step adds one to its counter, and gives the square of what the counter was.
fn counting() -> (Graph, Node, Output) {
    let graph = graph();
    let step = create_global_step(&graph).unwrap();
    let square = graph.root().op("Square").named("loss").input(&step.value().cast(DType::F32)).output();
    let next = step.assign_add(&graph.root().after([square.node()]).constant(1i64));
    (graph, next, square)
}

/// Numbers without symmetry, the same as in `fixtures/losses.py`.
fn values(shape: &[usize], scale: f64) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (1..=count).map(|i| (scale * (i as f64 * 2.3).sin()) as f32).collect();
    Tensor::from_slice(shape, &numbers).unwrap()
}

/// The nodes whose names begin with `prefix`, a line for each: op, name, inputs in order, device.
fn nodes(graph: &Graph, prefix: &str) -> Vec<String> {
    let or_none = |text: &str| if text.is_empty() { "-".to_string() } else { text.to_string() };
    let line = |node: &graph::NodeDef| {
        let mut inputs = node.inputs.clone();
        inputs.sort();
        format!("{} {} {} {}", node.op, node.name, or_none(&inputs.join(",")), or_none(&node.device))
    };
    let def = graph.to_def().unwrap();
    def.nodes.iter().filter(|node| node.name.starts_with(prefix)).map(|node| line(node)).collect()
}

/// An empty folder on disk that goes away with the test.
struct Folder(String);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("flowgrid-train-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path.to_string_lossy().into_owned())
    }

    fn join(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
