//! Loops across tasks: every participating task runs a small control loop, so that its Recvs inside the frame run
//! once per iteration.

use crate::{StepGraph, StepNode};
use graph::builtin_ops::{CONST, ENTER, MERGE, NEXT_ITERATION, SWITCH};
use graph::{AttrValue, ControlFlow, Edge, FrameNode, Frames, NodeDef, NodeId, OpFacts};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{DType, Tensor};

/// The control loops of a step.
#[derive(Default)]
pub(crate) struct ControlLoops {
    /// By frame and task, the Merge that fires once per iteration.
    merges: FxHashMap<(u32, u32), NodeId>,
    /// The frame of each node's outputs; empty if there are no loops.
    frames: Vec<u32>,
}

impl ControlLoops {
    /// The node that triggers a Recv of this node's outputs on this task.
    pub fn tick(&self, source: NodeId, task: u32) -> Option<NodeId> {
        let frame = *self.frames.get(source as usize)?;
        self.merges.get(&(frame, task)).copied()
    }
}

/// Adds the control loops that a step needs. `tasks` gives each device's task; `prefix` makes names of different
/// steps distinct.
pub(crate) fn add_control_loops(step: &mut StepGraph, tasks: &[u32], prefix: &str) -> Result<ControlLoops> {
    if !step.nodes.iter().any(|node| node.facts.is(ControlFlow::Enter)) {
        return Ok(ControlLoops::default());
    }
    let found = Frames::find(&step.nodes.iter().map(frame_node).collect::<Vec<_>>())?;
    let loops = ControlLoops { merges: FxHashMap::default(), frames: found.of_outputs.clone() };
    let mut adding = Adding { conditions: conditions(step, &found), step, found, loops, tasks, prefix, count: 0 };
    let crossings = adding.crossings();
    for &(frame, _, reader) in &crossings {
        adding.ensure(frame, reader, reader)?;
    }
    adding.add_for_silent_senders(&crossings)?;
    Ok(adding.loops)
}

/// The LoopCond of each frame.
fn conditions(step: &StepGraph, found: &Frames) -> FxHashMap<u32, NodeId> {
    let nodes = step.nodes.iter().enumerate().filter(|(_, node)| node.facts.is(ControlFlow::LoopCond));
    nodes.map(|(id, _)| (found.of_node[id], id as NodeId)).collect()
}

fn frame_node(node: &StepNode) -> FrameNode<'_> {
    FrameNode { def: &node.def, facts: node.facts, inputs: &node.inputs, controls: &node.controls }
}

struct Adding<'a> {
    step: &'a mut StepGraph,
    found: Frames,
    conditions: FxHashMap<u32, NodeId>,
    loops: ControlLoops,
    tasks: &'a [u32],
    prefix: &'a str,
    count: usize,
}

impl Adding<'_> {
    fn task(&self, id: NodeId) -> u32 {
        self.tasks[self.step.nodes[id as usize].device as usize]
    }

    /// Edges inside frames that go to another task: the frame, the source and the reader.
    fn crossings(&self) -> Vec<(u32, NodeId, NodeId)> {
        let mut crossings = Vec::new();
        for (id, node) in self.step.nodes.iter().enumerate() {
            let id = id as NodeId;
            for source in node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied()) {
                let frame = self.loops.frames[source as usize];
                if frame != Frames::ROOT && self.task(source) != self.task(id) {
                    crossings.push((frame, source, id));
                }
            }
        }
        crossings
    }

    /// A task that only sends also needs a control loop: without it, it would not run the iterations after the first.
    fn add_for_silent_senders(&mut self, crossings: &[(u32, NodeId, NodeId)]) -> Result<()> {
        let nodes = self.step.nodes.iter().enumerate();
        let counting = nodes.filter(|(_, node)| node.facts.is(ControlFlow::NextIteration));
        let counting: FxHashSet<(u32, u32)> =
            counting.map(|(id, _)| (self.loops.frames[id], self.task(id as NodeId))).collect();
        for &(frame, source, _) in crossings {
            if !counting.contains(&(frame, self.task(source))) {
                self.ensure(frame, source, source)?;
            }
        }
        Ok(())
    }

    /// The Merge of the control loop for `frame` on the task of node `at`. Creates it, and those of the enclosing
    /// frames, if missing. `named` provides the name.
    fn ensure(&mut self, frame: u32, at: NodeId, named: NodeId) -> Result<NodeId> {
        let task = self.task(at);
        let (mut frame, mut missing) = (frame, Vec::new());
        let known = loop {
            let merge = self.loops.merges.get(&(frame, task)).copied();
            if frame == Frames::ROOT || merge.is_some() {
                break merge;
            }
            missing.push(frame);
            frame = self.found.all[frame as usize].parent;
        };
        let mut inner = match known {
            Some(merge) => merge,
            None => {
                let attrs = [("dtype", DType::F32.into()), ("value", empty())];
                self.add(named, CONST, &[], Frames::ROOT, &attrs)
            }
        };
        for frame in missing.into_iter().rev() {
            inner = self.add_loop(frame, inner, named)?;
            self.loops.merges.insert((frame, task), inner);
        }
        Ok(inner)
    }

    /// Adds the control loop of one frame, which begins when `outer` has run, and returns its Merge.
    fn add_loop(&mut self, frame: u32, outer: NodeId, named: NodeId) -> Result<NodeId> {
        let info = self.found.all[frame as usize].clone();
        let condition = self.conditions.get(&frame).copied();
        let condition =
            condition.ok_or_else(|| invalid!("A cross-device loop must have a pivot predicate: {}", info.name))?;
        let name = AttrValue::from(info.name.as_str());
        let parallel = AttrValue::from(info.parallel_iterations);
        let dtype = || ("T", DType::F32.into());
        let attrs = [dtype(), ("frame_name", name), ("parallel_iterations", parallel), ("is_constant", false.into())];
        let enter = self.add(named, ENTER, &[(outer, 0)], frame, &attrs);
        let merge = self.add(named, MERGE, &[(enter, 0)], frame, &[dtype(), ("N", 2i64.into())]);
        let switch = self.add(named, SWITCH, &[(merge, 0), (condition, 0)], frame, &[dtype()]);
        let next = self.add(named, NEXT_ITERATION, &[(switch, 1)], frame, &[dtype()]);
        self.step.nodes[merge as usize].inputs.push(Edge { node: next, index: 0 });
        Ok(merge)
    }

    fn add(
        &mut self,
        named: NodeId,
        op: &str,
        inputs: &[(NodeId, u32)],
        frame: u32,
        attrs: &[(&str, AttrValue)],
    ) -> NodeId {
        let lender = &self.step.nodes[named as usize];
        let def = NodeDef {
            name: format!("_cloop{}_{}S{}", lender.def.name, self.prefix, self.count),
            op: op.to_string(),
            attrs: attrs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            ..NodeDef::default()
        };
        let output_types = match op {
            MERGE => smallvec![DType::F32, DType::I32],
            SWITCH => smallvec![DType::F32, DType::F32],
            _ => smallvec![DType::F32],
        };
        // Added after the frames were found and the devices chosen, which is all that the facts are for.
        let (device, facts) = (lender.device, OpFacts::PLAIN);
        let inputs = inputs.iter().map(|&(node, index)| Edge { node, index }).collect();
        let node = StepNode { def: Arc::new(def), inputs, controls: SmallVec::new(), output_types, facts, device };
        self.count += 1;
        self.loops.frames.push(frame);
        self.step.nodes.push(node);
        self.step.nodes.len() as NodeId - 1
    }
}

fn empty() -> AttrValue {
    Tensor::vector::<f32>(&[]).into()
}
