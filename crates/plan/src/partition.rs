//! Cuts a step into one graph per task: edges between tasks become a Send and a Recv.

use crate::control_devices::move_control_flow;
use crate::control_loops::{ControlLoops, add_control_loops};
use crate::exchange::{self, Exchange, add_fetches};
use crate::{Device, StepGraph, StepNode};
use graph::builtin_ops::{CONST, IDENTITY, RECV, SEND};
use graph::{AttrValue, Edge, FlatGraph, GraphDef, NodeDef, NodeId};
use rustc_hash::FxHashMap;
use status::Result;
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::{Bytes, DType, Tensor};

/// The part of a step that one task runs.
#[derive(Debug)]
pub struct Part {
    /// The task, `/job:ps/replica:0/task:0`.
    pub task: String,
    /// The graph it runs.
    pub graph: GraphDef,
    /// Feeds of the run: names and rendezvous keys.
    pub feeds: Vec<(String, String)>,
    /// Fetches of the run: names and rendezvous keys.
    pub fetches: Vec<(String, String)>,
}

/// Cuts a step into one graph per participating task.
pub fn partition(mut step: StepGraph, devices: &[Device], graph: &FlatGraph, prefix: &str) -> Result<Vec<Part>> {
    let task_names: Vec<String> = devices.iter().map(|device| device.spec.task_name()).collect();
    let first = |name: &String| task_names.iter().position(|other| other == name).unwrap_or(0) as u32;
    let tasks: Vec<u32> = task_names.iter().map(first).collect();
    let names = devices.iter().map(|device| device.spec.to_string()).collect();
    move_control_flow(&mut step);
    let (feeds, fetches) = (exchange::feeds(&step, devices), add_fetches(&mut step, devices));
    let loops = add_control_loops(&mut step, &tasks, prefix)?;
    let step = &step;
    let mut cut =
        Cut { step, devices, names, tasks, loops, parts: BTreeMap::new(), sent: FxHashMap::default(), prefix };
    for id in 0..step.nodes.len() {
        cut.add(id);
    }
    let (library, versions) = (&*graph.library, &graph.versions);
    let described =
        |nodes| GraphDef { nodes, library: library.clone(), versions: versions.clone(), debug_info: Bytes::new() };
    let Cut { tasks, parts, .. } = cut;
    let exchanged = |list: &[Exchange], task: u32| {
        let here = list.iter().filter(|one| tasks[one.device as usize] == task);
        here.map(|one| (one.name.clone(), one.key.clone())).collect()
    };
    let mut parts: Vec<Part> = parts
        .into_iter()
        .map(|(task, nodes)| Part {
            task: task_names[task as usize].clone(),
            graph: described(nodes),
            feeds: exchanged(&feeds, task),
            fetches: exchanged(&fetches, task),
        })
        .collect();
    parts.sort_by(|a, b| a.task.cmp(&b.task));
    Ok(parts)
}

struct Cut<'a> {
    step: &'a StepGraph,
    devices: &'a [Device],
    names: Vec<String>,
    /// The task of each device: the first device that is on it.
    tasks: Vec<u32>,
    loops: ControlLoops,
    parts: BTreeMap<u32, Vec<Arc<NodeDef>>>,
    /// Transfers that exist: source, output index (`None` for a control edge) and receiving task, to the name of the
    /// Recv there.
    sent: FxHashMap<(NodeId, Option<u32>, u32), String>,
    prefix: &'a str,
}

impl Cut<'_> {
    fn add(&mut self, id: usize) {
        let node = &self.step.nodes[id];
        let task = self.tasks[node.device as usize];
        let mut inputs = Vec::with_capacity(node.inputs.len() + node.controls.len());
        for &edge in &node.inputs {
            inputs.push(match self.is_near(edge.node, task) {
                true => output_name(&self.step.nodes[edge.node as usize], edge.index),
                false => self.receive(edge, node),
            });
        }
        for &control in &node.controls {
            let name = match self.is_near(control, task) {
                true => self.step.nodes[control as usize].def.name.clone(),
                false => self.receive_control(control, node),
            };
            inputs.push(format!("^{name}"));
        }
        let def = NodeDef { inputs, device: self.names[node.device as usize].clone(), ..(*node.def).clone() };
        self.push(task, def);
    }

    fn is_near(&self, source: NodeId, task: u32) -> bool {
        self.tasks[self.step.nodes[source as usize].device as usize] == task
    }

    /// The name under which the reader's task has a value of another task; all readers there share one transfer.
    fn receive(&mut self, edge: Edge, reader: &StepNode) -> String {
        let at = (edge.node, Some(edge.index), self.tasks[reader.device as usize]);
        if let Some(name) = self.sent.get(&at) {
            return name.clone();
        }
        let source = &self.step.nodes[edge.node as usize];
        let dtype = source.output_types[edge.index as usize].base();
        let input = output_name(source, edge.index);
        let name = self.transfer(edge.node, dtype, input, reader);
        self.sent.insert(at, name.clone());
        name
    }

    /// A control edge between tasks is an empty tensor. Its consumers wait for an Identity behind the Recv, because a
    /// Recv fires its control edges even if it received a dead value.
    fn receive_control(&mut self, control: NodeId, reader: &StepNode) -> String {
        let task = self.tasks[reader.device as usize];
        let at = (control, None, task);
        if let Some(name) = self.sent.get(&at) {
            return name.clone();
        }
        let source = &self.step.nodes[control as usize];
        let from = self.tasks[source.device as usize];
        let number = self.sent.len();
        let dummy = format!("{}/ctrl_{}S{number}", source.def.name, self.prefix);
        let attrs = [("dtype", DType::F32.into()), ("value", Tensor::vector::<f32>(&[]).into())];
        let device = self.names[source.device as usize].clone();
        self.push(from, node(&dummy, CONST, vec![format!("^{}", source.def.name)], &device, attrs));
        let received = self.transfer(control, DType::F32, dummy, reader);
        let name = format!("{}/ctrl_{}R{number}", source.def.name, self.prefix);
        let device = self.names[reader.device as usize].clone();
        self.push(task, node(&name, IDENTITY, vec![received], &device, [("T", DType::F32.into())]));
        self.sent.insert(at, name.clone());
        name
    }

    fn transfer(&mut self, from: NodeId, dtype: DType, input: String, reader: &StepNode) -> String {
        let source = &self.step.nodes[from as usize];
        let number = self.sent.len();
        let name = format!("{}/_{}S{number}", source.def.name, self.prefix);
        let (send, recv) = (source.device as usize, reader.device as usize);
        let (send_device, recv_device) = (self.names[send].clone(), self.names[recv].clone());
        let both = |key: &'static str| -> [(&str, AttrValue); 6] {
            [
                (key, dtype.into()),
                ("tensor_name", format!("edge_{number}_{}", source.def.name).into()),
                ("send_device", send_device.as_str().into()),
                ("send_device_incarnation", (self.devices[send].incarnation as i64).into()),
                ("recv_device", recv_device.as_str().into()),
                ("client_terminated", false.into()),
            ]
        };
        let (send_task, recv_task) = (self.tasks[send], self.tasks[recv]);
        let tick = self.loops.tick(from, recv_task).map(|merge| &self.step.nodes[merge as usize].def.name);
        let waits = tick.map(|name| format!("^{name}")).into_iter().collect();
        let sender = node(&name, SEND, vec![input], &send_device, both("T"));
        let receiver = node(&name, RECV, waits, &recv_device, both("tensor_type"));
        self.push(send_task, sender);
        self.push(recv_task, receiver);
        name
    }

    fn push(&mut self, task: u32, def: NodeDef) {
        self.parts.entry(task).or_default().push(Arc::new(def));
    }
}

fn output_name(node: &StepNode, index: u32) -> String {
    match index {
        0 => node.def.name.clone(),
        index => format!("{}:{index}", node.def.name),
    }
}

fn node<const N: usize>(
    name: &str,
    op: &str,
    inputs: Vec<String>,
    device: &str,
    attrs: [(&str, AttrValue); N],
) -> NodeDef {
    let attrs = attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    NodeDef { name: name.to_string(), op: op.to_string(), inputs, device: device.to_string(), attrs, extra: None }
}
