//! The cost graph of a step: what its nodes cost in time and memory, for `RunMetadata`.

use exec::NodeStats;
use graph::builtin_ops::SEND;
use graph::{GraphDef, TensorName};
use rustc_hash::FxHashMap;
use tensor::{DType, Shape};

/// A node of a step with its cost, as in TensorFlow's `CostGraphDef`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostNode {
    /// The name of the node.
    pub name: String,
    /// Its device.
    pub device: String,
    /// Its number in the cost graph.
    pub id: i32,
    /// The number of the node behind each input, and which of its outputs it is.
    pub inputs: Vec<(i32, i32)>,
    /// The numbers of the nodes that must run before.
    pub control_inputs: Vec<i32>,
    /// Type and shape of each output. Where the node ran several times, those of the largest value.
    pub outputs: Vec<(DType, Shape)>,
    /// How long it ran, in microseconds; the longest time where it ran several times.
    pub compute_cost: i64,
    /// It sends a tensor to another task.
    pub is_final: bool,
}

/// The cost graph of partition graphs, from when their nodes ran. Nodes that the executor left out cost nothing.
pub(crate) fn cost_graph(graphs: &[GraphDef], stats: &[(String, Vec<NodeStats>)]) -> Vec<CostNode> {
    // By device too: the two ends of a transfer have the same name.
    let mut runs: FxHashMap<(&str, &str), Vec<&NodeStats>> = FxHashMap::default();
    for (device, nodes) in stats {
        nodes.iter().for_each(|node| runs.entry((device, &node.name)).or_default().push(node));
    }
    let mut costs = Vec::new();
    for graph in graphs {
        let first = costs.len();
        let numbered = graph.nodes.iter().enumerate();
        let ids: FxHashMap<&str, i32> = numbered.map(|(id, node)| (&*node.name, (first + id) as i32)).collect();
        for node in &graph.nodes {
            let mut cost = CostNode {
                name: node.name.clone(),
                device: node.device.clone(),
                id: costs.len() as i32,
                is_final: node.op == SEND,
                ..CostNode::default()
            };
            for input in node.inputs.iter().map(|input| TensorName::parse(input)) {
                match (ids.get(input.node), input.index) {
                    (Some(&id), Some(port)) => cost.inputs.push((id, port as i32)),
                    (Some(&id), None) => cost.control_inputs.push(id),
                    (None, _) => {} // not in the graph: the worker has refused such a graph already
                }
            }
            runs.get(&(&*node.device, &*node.name)).into_iter().flatten().for_each(|run| cost.add(run));
            costs.push(cost);
        }
    }
    costs
}

impl CostNode {
    /// Adds a run of the node.
    fn add(&mut self, run: &NodeStats) {
        self.compute_cost = self.compute_cost.max((run.end.saturating_sub(run.start) / 1000) as i64);
        for (place, output) in run.outputs.iter().enumerate() {
            match self.outputs.get_mut(place) {
                None => self.outputs.push(output.clone()),
                Some(known) if bytes(known) < bytes(output) => *known = output.clone(),
                Some(_) => {}
            }
        }
    }

    /// The size of each output in bytes.
    pub fn output_sizes(&self) -> impl Iterator<Item = i64> {
        self.outputs.iter().map(|output| i64::try_from(bytes(output)).unwrap_or(i64::MAX))
    }
}

fn bytes((dtype, shape): &(DType, Shape)) -> usize {
    shape.elements().saturating_mul(dtype.size())
}
