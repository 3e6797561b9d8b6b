//! The control flow frame of every node of a step.

use crate::StepGraph;
use graph::{AttrValue, NodeDef, NodeId};
use rustc_hash::FxHashMap;
use status::{Result, invalid};

/// The frame outside all loops.
pub(crate) const ROOT: u32 = 0;

/// The frames of a step. An Enter node belongs to the frame it comes from, an Exit node to the frame it leaves.
pub(crate) struct Frames {
    /// All frames; the first is the root frame.
    pub all: Vec<Frame>,
    /// The frame of each node.
    pub of: Vec<u32>,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub name: String,
    pub parent: u32,
    pub parallel_iterations: i64,
}

impl Frames {
    /// Follows edges from the nodes without inputs: Enter leads into a frame, Exit out of it.
    pub fn find(step: &StepGraph) -> Result<Frames> {
        let root = Frame { name: String::new(), parent: ROOT, parallel_iterations: 1 };
        let mut found = Finding { step, all: vec![root], by_name: FxHashMap::default() };
        let consumers = consumers(step);
        let mut of: Vec<Option<u32>> = vec![None; step.nodes.len()];
        let roots = step.nodes.iter().enumerate().filter(|(_, n)| n.inputs.is_empty() && n.controls.is_empty());
        let mut queue: Vec<usize> = roots.map(|(id, _)| id).collect();
        queue.iter().for_each(|&id| of[id] = Some(ROOT));
        while let Some(id) = queue.pop() {
            let frame = found.value_frame(id, of[id].unwrap_or(ROOT))?;
            for &consumer in &consumers[id] {
                match of[consumer as usize] {
                    None => {
                        of[consumer as usize] = Some(frame);
                        queue.push(consumer as usize);
                    }
                    Some(known) if known != frame => return Err(found.mixed(consumer, known, frame)),
                    Some(_) => {}
                }
            }
        }
        Ok(Frames { all: found.all, of: of.into_iter().map(|frame| frame.unwrap_or(ROOT)).collect() })
    }

    /// The frame of the outputs of a node.
    pub fn of_value(&self, step: &StepGraph, id: NodeId) -> u32 {
        let (own, def) = (self.of[id as usize], &step.nodes[id as usize].def);
        match def.op.as_str() {
            "Enter" | "RefEnter" => {
                let name = frame_name(def).unwrap_or_default();
                let inner = self.all.iter().position(|frame| frame.parent == own && frame.name == name);
                inner.map_or(own, |inner| inner as u32)
            }
            "Exit" | "RefExit" => self.all[own as usize].parent,
            _ => own,
        }
    }
}

struct Finding<'a> {
    step: &'a StepGraph,
    all: Vec<Frame>,
    by_name: FxHashMap<(u32, String), u32>,
}

impl Finding<'_> {
    fn value_frame(&mut self, id: usize, own: u32) -> Result<u32> {
        let def = &self.step.nodes[id].def;
        match def.op.as_str() {
            "Enter" | "RefEnter" => self.enter(def, own),
            "Exit" | "RefExit" => Ok(self.all[own as usize].parent),
            _ => Ok(own),
        }
    }

    fn enter(&mut self, def: &NodeDef, parent: u32) -> Result<u32> {
        let name = frame_name(def).ok_or_else(|| invalid!("Enter without a frame name").at_node(&def.name))?;
        let parallel_iterations = match def.attrs.get("parallel_iterations") {
            Some(AttrValue::Int(count)) => *count,
            _ => 10,
        };
        let all = &mut self.all;
        Ok(*self.by_name.entry((parent, name.clone())).or_insert_with(|| {
            all.push(Frame { name, parent, parallel_iterations });
            all.len() as u32 - 1
        }))
    }

    fn mixed(&self, consumer: NodeId, known: u32, found: u32) -> status::Error {
        let name = &self.step.nodes[consumer as usize].def.name;
        invalid!(
            "{{{{node {name}}}}} has inputs from different frames. The input is in frame '{}', another in frame '{}'.",
            self.all[found as usize].name,
            self.all[known as usize].name
        )
        .at_node(name)
    }
}

fn frame_name(def: &NodeDef) -> Option<String> {
    match def.attrs.get("frame_name") {
        Some(AttrValue::String(name)) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    }
}

fn consumers(step: &StepGraph) -> Vec<Vec<NodeId>> {
    let mut consumers: Vec<Vec<NodeId>> = vec![Vec::new(); step.nodes.len()];
    for (id, node) in step.nodes.iter().enumerate() {
        for source in node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied()) {
            consumers[source as usize].push(id as NodeId);
        }
    }
    consumers
}
