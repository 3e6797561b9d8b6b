//! The control flow frame of every node: a frame is an activation of a loop, or the graph outside all loops.

use crate::{AttrValue, ControlFlow, Edge, NodeDef, NodeId, OpFacts};
use rustc_hash::FxHashMap;
use status::{Result, invalid};

/// How many iterations of a loop may run at once if its Enter nodes do not say.
const DEFAULT_PARALLEL_ITERATIONS: i64 = 10;

/// What finding the frames needs to know about a node.
pub struct FrameNode<'a> {
    /// Its description.
    pub def: &'a NodeDef,
    /// Facts about its op.
    pub facts: OpFacts,
    /// Its data inputs.
    pub inputs: &'a [Edge],
    /// Its control inputs.
    pub controls: &'a [NodeId],
}

impl FrameNode<'_> {
    fn sources(&self) -> impl Iterator<Item = NodeId> {
        self.inputs.iter().map(|edge| edge.node).chain(self.controls.iter().copied())
    }
}

/// The frames of a graph. An Enter node belongs to the frame it comes from, an Exit node to the frame it leaves.
pub struct Frames {
    /// All frames; the first is the root frame.
    pub all: Vec<Frame>,
    /// The frame of each node.
    pub of_node: Vec<u32>,
    /// The frame of each node's outputs.
    pub of_outputs: Vec<u32>,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name that its Enter nodes have in common; empty for the root frame.
    pub name: String,
    /// The frame around it; the root frame is its own parent.
    pub parent: u32,
    /// How many of its iterations may run at once.
    pub parallel_iterations: i64,
    /// How many Enter nodes lead into it.
    pub enters: usize,
}

impl Frames {
    /// The frame outside all loops.
    pub const ROOT: u32 = 0;

    /// Follows edges from the nodes without inputs: Enter leads into a frame, Exit out of it. Fails if a node has
    /// inputs from different frames.
    pub fn find(nodes: &[FrameNode<'_>]) -> Result<Frames> {
        let root = Frame { name: String::new(), parent: Frames::ROOT, parallel_iterations: 1, enters: 0 };
        let none = vec![Frames::ROOT; nodes.len()];
        let mut frames = Frames { all: vec![root], of_node: none.clone(), of_outputs: none };
        if nodes.iter().any(|node| node.facts.is(ControlFlow::Enter)) {
            frames.walk(nodes)?;
        }
        Ok(frames)
    }

    fn walk(&mut self, nodes: &[FrameNode<'_>]) -> Result<()> {
        let consumers = consumers(nodes);
        let mut by_name: FxHashMap<(u32, String), u32> = FxHashMap::default();
        let mut found = vec![false; nodes.len()];
        let mut queue: Vec<usize> = (0..nodes.len()).filter(|&id| nodes[id].sources().next().is_none()).collect();
        queue.iter().for_each(|&id| found[id] = true);
        while let Some(id) = queue.pop() {
            let frame = self.output_frame(&nodes[id], self.of_node[id], &mut by_name)?;
            self.of_outputs[id] = frame;
            for &consumer in &consumers[id] {
                let consumer = consumer as usize;
                if !std::mem::replace(&mut found[consumer], true) {
                    self.of_node[consumer] = frame;
                    queue.push(consumer);
                } else if self.of_node[consumer] != frame {
                    return Err(self.different_frames(nodes[consumer].def, self.of_node[consumer], frame));
                }
            }
        }
        Ok(())
    }

    fn output_frame(
        &mut self,
        node: &FrameNode<'_>,
        own: u32,
        by_name: &mut FxHashMap<(u32, String), u32>,
    ) -> Result<u32> {
        match node.facts.control_flow {
            Some(ControlFlow::Exit) => Ok(self.all[own as usize].parent),
            Some(ControlFlow::Enter) => {
                let name = frame_name(node.def)?;
                let frame = *by_name.entry((own, name.clone())).or_insert_with(|| {
                    let parallel_iterations = parallel_iterations(node.def);
                    self.all.push(Frame { name, parent: own, parallel_iterations, enters: 0 });
                    self.all.len() as u32 - 1
                });
                self.all[frame as usize].enters += 1;
                Ok(frame)
            }
            _ => Ok(own),
        }
    }

    fn different_frames(&self, consumer: &NodeDef, known: u32, found: u32) -> status::Error {
        let name = &consumer.name;
        invalid!(
            "{{{{node {name}}}}} has inputs from different frames. The input is in frame '{}', another in frame '{}'.",
            self.all[found as usize].name,
            self.all[known as usize].name
        )
        .at_node(name)
    }
}

fn frame_name(def: &NodeDef) -> Result<String> {
    match def.attrs.get("frame_name") {
        Some(AttrValue::String(name)) => Ok(String::from_utf8_lossy(name).into_owned()),
        _ => Err(invalid!("Enter without a frame name").at_node(&def.name)),
    }
}

fn parallel_iterations(def: &NodeDef) -> i64 {
    match def.attrs.get("parallel_iterations") {
        Some(AttrValue::Int(count)) => *count,
        _ => DEFAULT_PARALLEL_ITERATIONS,
    }
}

fn consumers(nodes: &[FrameNode<'_>]) -> Vec<Vec<NodeId>> {
    let mut consumers: Vec<Vec<NodeId>> = vec![Vec::new(); nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        node.sources().for_each(|source| consumers[source as usize].push(id as NodeId));
    }
    consumers
}
