//! The state of one run of a program, as plain data: which nodes are ready, waiting or dead.
//!
//! It knows no threads and runs no kernels; the combiner that owns it does.

use crate::frame::{Frame, Iteration, Values, frame_key};
use crate::program::{Kind, Node, OutEdge, Program};
use op::{Flow, Peek, Run, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// A node whose inputs have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub node: u32,
    pub frame: u32,
    pub iteration: u64,
    /// An input is dead, so the node must not run.
    pub dead: bool,
}

/// The outputs of a node; none for a dead output.
pub(crate) type Produced = SmallVec<[Option<Value>; 2]>;

/// The state of one run.
pub(crate) struct Core {
    program: Arc<Program>,
    frames: Vec<Option<Frame>>,
    free: Vec<u32>,
    children: FxHashMap<(u32, u64, u32), u32>,
    /// Nodes that can run now.
    pub ready: Vec<Ready>,
    /// Nodes that are ready or running.
    pub outstanding: usize,
    /// The arguments, if the program is the body of a function.
    pub args: Vec<Option<Value>>,
    /// The results, if the program is the body of a function.
    pub results: Vec<Option<Value>>,
}

impl Core {
    /// A new run, in which all nodes without inputs are ready.
    pub fn new(program: Arc<Program>, args: Vec<Option<Value>>) -> Core {
        let mut core = Core {
            frames: vec![Some(Frame::new(&program, 0, (0, 0), 0))],
            free: Vec::new(),
            children: FxHashMap::default(),
            ready: Vec::new(),
            outstanding: 0,
            args,
            results: (0..program.results).map(|_| None).collect(),
            program,
        };
        for info in 0..core.program.frames.len() {
            for place in (0..core.program.frames[info].roots.len()).rev() {
                let node = core.program.frames[info].roots[place];
                core.make_ready(node, 0, 0, false);
            }
        }
        core
    }

    /// Keeps the arrays for the next run. The run must have ended without error.
    pub fn retire(&mut self) {
        let Some(Some(root)) = self.frames.first_mut() else { return };
        let Some(iteration) = root.iterations.pop_front() else { return };
        let mut spare = self.program.spare.lock();
        if spare.len() < 4 {
            spare.push(iteration);
        }
    }

    /// The frame of a ready node in rendezvous keys.
    pub fn key(&self, ready: &Ready) -> u64 {
        self.frames[ready.frame as usize].as_ref().map_or(0, |frame| frame.key)
    }

    /// Takes the inputs of a ready node. Of the inputs of a Merge, only the live one is set.
    pub fn take_inputs(&mut self, program: &Program, ready: &Ready) -> SmallVec<[Option<Value>; 4]> {
        let node = &program.nodes[ready.node as usize];
        let iteration = self.frame(ready.frame).iteration(ready.iteration);
        if node.kind == Kind::Merge {
            let live = iteration.states[node.local as usize].live;
            let mut inputs: SmallVec<[Option<Value>; 4]> = (0..node.inputs).map(|_| None).collect();
            if let Some(place) = live.checked_sub(1) {
                inputs[place as usize] = iteration.values.take(program.inputs(node)[place as usize]);
            }
            return inputs;
        }
        program.inputs(node).iter().map(|&slot| iteration.values.take(slot)).collect()
    }

    /// Drops the inputs of a ready node that is dead. The inputs of a dead Merge are dead themselves.
    pub fn leave_inputs(&mut self, program: &Program, ready: &Ready) {
        let node = &program.nodes[ready.node as usize];
        if node.kind != Kind::Merge {
            let values = self.values(ready);
            program.inputs(node).iter().for_each(|&slot| values.leave(slot));
        }
    }

    /// The number of elements of all inputs of a ready node.
    pub fn input_elements(&mut self, program: &Program, ready: &Ready) -> usize {
        let node = &program.nodes[ready.node as usize];
        let values = &self.frame(ready.frame).iteration(ready.iteration).values;
        let elements = |value: &Value| match value {
            Value::Tensor(tensor) => tensor.elements(),
            Value::Ref(variable) => variable.elements(),
            Value::Stored(stored) => stored.shape().elements(),
        };
        program.inputs(node).iter().filter_map(|&slot| values.get(slot)).map(elements).sum()
    }

    /// The number of elements that a ready node will process, according to its kernel.
    pub fn ask(&mut self, program: &Program, ready: &Ready, work: fn(&Peek<'_>) -> usize) -> usize {
        let slots = program.inputs(&program.nodes[ready.node as usize]);
        let values = &self.frame(ready.frame).iteration(ready.iteration).values;
        work(&Peek(&|index| slots.get(index).and_then(|&slot| values.get(slot))))
    }

    /// The values of the iteration that a ready node runs in.
    pub fn values(&mut self, ready: &Ready) -> &mut Values {
        &mut self.frame(ready.frame).iteration(ready.iteration).values
    }

    /// Delivers the outputs of a node that has run.
    pub fn complete(&mut self, program: &Program, ready: Ready, produced: Produced) {
        let node = &program.nodes[ready.node as usize];
        match node.kind {
            Kind::Enter => self.enter(program, ready, produced),
            Kind::Exit => self.exit(program, ready, produced),
            Kind::NextIteration => self.next_iteration(program, ready, produced),
            _ => self.deliver(program, ready.node, (ready.frame, ready.iteration), produced, ready.dead),
        }
        self.retire_op(program, ready);
    }

    /// Delivers the only output of an ordinary node that has run.
    pub fn complete_one(&mut self, program: &Program, ready: Ready, value: Value) {
        let node = &program.nodes[ready.node as usize];
        let to = (ready.frame, ready.iteration);
        self.deliver_output(program, node, 0, to, Some(value));
        self.deliver_control(program, node, to, false);
        self.retire_op(program, ready);
    }

    fn retire_op(&mut self, program: &Program, ready: Ready) {
        self.frame(ready.frame).iteration(ready.iteration).ops -= 1;
        if program.frames.len() > 1 {
            self.tidy(program, ready.frame);
        }
        self.outstanding -= 1;
    }

    fn enter(&mut self, program: &Program, ready: Ready, mut produced: Produced) {
        let Run::Flow(Flow::Enter { frame: name, constant, .. }) = &program.nodes[ready.node as usize].kernel.run
        else {
            return;
        };
        let child = self.child(program, ready, name);
        let value = produced.pop().flatten();
        if *constant {
            let frame = self.frame(child);
            frame.constants.push((ready.node, value.clone()));
            for iteration in frame.first..frame.next() {
                self.deliver_one(program, ready.node, (child, iteration), value.clone());
            }
        } else {
            self.deliver_one(program, ready.node, (child, 0), value);
        }
        self.frame(child).pending_enters -= 1;
        self.tidy(program, child);
    }

    /// The frame that an Enter leads into; created for the first Enter that arrives.
    fn child(&mut self, program: &Program, ready: Ready, name: &str) -> u32 {
        let own = self.frame(ready.frame);
        let (own_info, own_key) = (own.info, own.key);
        let is_it = |info: &crate::program::FrameInfo| info.parent == own_info && info.name == name;
        // The root frame is its own parent, so it must not be found as a child of itself.
        let place = program.frames.iter().skip(1).position(is_it).map_or(0, |place| place + 1);
        let info = place as u32;
        let at = (ready.frame, ready.iteration, info);
        if let Some(&child) = self.children.get(&at) {
            return child;
        }
        let key = frame_key(own_key, ready.iteration, name);
        let frame = Some(Frame::new(program, info, (ready.frame, ready.iteration), key));
        let child = match self.free.pop() {
            Some(place) => {
                self.frames[place as usize] = frame;
                place
            }
            None => {
                self.frames.push(frame);
                self.frames.len() as u32 - 1
            }
        };
        self.children.insert(at, child);
        self.frame(ready.frame).iteration(ready.iteration).frames += 1;
        child
    }

    fn exit(&mut self, program: &Program, ready: Ready, mut produced: Produced) {
        let frame = self.frame(ready.frame);
        if ready.dead {
            if !frame.dead_exits.contains(&ready.node) {
                frame.dead_exits.push(ready.node);
            }
            return;
        }
        frame.live_exits.push(ready.node);
        let parent = frame.parent;
        self.deliver_one(program, ready.node, parent, produced.pop().flatten());
    }

    fn next_iteration(&mut self, program: &Program, ready: Ready, mut produced: Produced) {
        if ready.dead {
            return;
        }
        let value = produced.pop().flatten();
        let frame = self.frame(ready.frame);
        let next = ready.iteration + 1;
        if next == frame.next() {
            if frame.iterations.len() >= program.frames[frame.info as usize].parallel {
                frame.queued.push((ready.node, value));
                return;
            }
            self.begin_iteration(program, ready.frame);
        }
        self.deliver_one(program, ready.node, (ready.frame, next), value);
    }

    /// Starts the next iteration of a frame and delivers the loop constants to it.
    fn begin_iteration(&mut self, program: &Program, frame_id: u32) {
        let frame = self.frame(frame_id);
        let info = &program.frames[frame.info as usize];
        frame.iterations.push_back(Iteration::new(info));
        let (number, constants) = (frame.next() - 1, frame.constants.clone());
        for (node, value) in constants {
            self.deliver_one(program, node, (frame_id, number), value);
        }
    }

    /// Removes iterations that have ended, oldest first, and the frame with the last of them; then the same of the frame
    /// around it.
    fn tidy(&mut self, program: &Program, frame_id: u32) {
        let mut next = Some(frame_id);
        while let Some(frame_id) = next {
            next = match frame_id != 0 && self.tidy_iterations(program, frame_id) {
                true => self.end_frame(program, frame_id),
                false => None,
            };
        }
    }

    /// Removes iterations that have ended; true if no iteration is left.
    fn tidy_iterations(&mut self, program: &Program, frame_id: u32) -> bool {
        loop {
            let Some(frame) = self.frames[frame_id as usize].as_mut() else { return false };
            let Some(oldest) = frame.iterations.front() else { return false };
            let enters_missing = frame.first == 0 && frame.pending_enters > 0;
            if oldest.ops > 0 || oldest.frames > 0 || enters_missing {
                return false;
            }
            // The next iteration must begin before this one is removed, or the frame would look finished.
            if !frame.queued.is_empty() {
                let queued = std::mem::take(&mut frame.queued);
                let next = frame.next();
                self.begin_iteration(program, frame_id);
                for (node, value) in queued {
                    self.deliver_one(program, node, (frame_id, next), value);
                }
            }
            let frame = self.frame(frame_id);
            frame.iterations.pop_front();
            frame.first += 1;
            if frame.iterations.is_empty() {
                return true;
            }
        }
    }

    /// Removes a frame that has ended, and returns the frame around it. Exits that delivered no value deliver a dead one.
    fn end_frame(&mut self, program: &Program, frame_id: u32) -> Option<u32> {
        let frame = self.frames[frame_id as usize].take()?;
        self.free.push(frame_id);
        self.children.remove(&(frame.parent.0, frame.parent.1, frame.info));
        for exit in frame.dead_exits.iter().filter(|exit| !frame.live_exits.contains(exit)) {
            self.deliver(program, *exit, frame.parent, Produced::new(), true);
        }
        self.frame(frame.parent.0).iteration(frame.parent.1).frames -= 1;
        Some(frame.parent.0)
    }

    fn deliver_one(&mut self, program: &Program, node: u32, to: (u32, u64), value: Option<Value>) {
        let dead = value.is_none();
        self.deliver(program, node, to, smallvec::smallvec![value], dead);
    }

    /// Delivers outputs to their consumers in a frame and iteration.
    fn deliver(&mut self, program: &Program, id: u32, to: (u32, u64), mut produced: Produced, dead: bool) {
        let node = &program.nodes[id as usize];
        for index in 0..node.outputs.len() - 1 {
            let value = produced.get_mut(index).and_then(Option::take);
            self.deliver_output(program, node, index, to, value);
        }
        self.deliver_control(program, node, to, dead);
    }

    /// Stores one output for its consumers, and counts it as arrived at each of them.
    #[inline]
    fn deliver_output(&mut self, program: &Program, node: &Node, index: usize, to: (u32, u64), value: Option<Value>) {
        let edges = &program.edges[node.outputs[index] as usize..node.outputs[index + 1] as usize];
        if edges.is_empty() {
            return;
        }
        let (dead, slot) = (value.is_none(), node.first_value + index as u32);
        let mut destination = self.at(to);
        destination.iteration.values.put(slot, value, edges.len() as u32);
        for edge in edges {
            destination.arrive(program, edge, slot, dead, node.kind == Kind::Enter);
        }
    }

    #[inline]
    fn deliver_control(&mut self, program: &Program, node: &Node, to: (u32, u64), dead: bool) {
        let (first, end) = node.control_outputs;
        if first == end {
            return;
        }
        let mut destination = self.at(to);
        for &consumer in &program.control_edges[first as usize..end as usize] {
            destination.arrive_control(program, consumer, dead);
        }
    }

    fn make_ready(&mut self, node: u32, frame: u32, iteration: u64, dead: bool) {
        self.at((frame, iteration)).make_ready(node, dead);
    }

    /// The iteration to which outputs are delivered.
    #[inline]
    fn at(&mut self, to: (u32, u64)) -> Destination<'_> {
        let frame = self.frames[to.0 as usize].as_mut().expect("a frame lives while its ops do");
        Destination { to, iteration: frame.iteration(to.1), ready: &mut self.ready, outstanding: &mut self.outstanding }
    }

    fn frame(&mut self, id: u32) -> &mut Frame {
        self.frames[id as usize].as_mut().expect("a frame lives while its ops do")
    }
}

/// Where outputs are delivered: an iteration of a frame, with the list of ready nodes.
struct Destination<'a> {
    to: (u32, u64),
    iteration: &'a mut Iteration,
    ready: &'a mut Vec<Ready>,
    outstanding: &'a mut usize,
}

impl Destination<'_> {
    /// A data input arrives in a slot, alive or dead.
    #[inline(always)]
    fn arrive(&mut self, program: &Program, edge: &OutEdge, slot: u32, dead: bool, enter: bool) {
        let node = &program.nodes[edge.node as usize];
        let state = &mut self.iteration.states[node.local as usize];
        if node.kind == Kind::Merge {
            if state.fired || (state.live > 0 && !dead) {
                // Another value arrived first.
                self.iteration.values.leave(slot);
                return;
            }
            if dead {
                state.dead += 1;
                if enter {
                    state.dead = state.dead.max(node.inputs);
                }
            } else {
                state.live = edge.input + 1;
            }
        } else {
            state.pending -= 1;
            state.dead |= u32::from(dead);
        }
        if let Some(dead) = fires(node.kind, node.inputs, state) {
            self.make_ready(edge.node, dead);
        }
    }

    fn arrive_control(&mut self, program: &Program, id: u32, dead: bool) {
        let node = &program.nodes[id as usize];
        let state = &mut self.iteration.states[node.local as usize];
        state.pending -= 1;
        if node.kind != Kind::Merge {
            state.dead |= u32::from(dead);
        }
        if let Some(dead) = fires(node.kind, node.inputs, state) {
            self.make_ready(id, dead);
        }
    }

    #[inline(always)]
    fn make_ready(&mut self, node: u32, dead: bool) {
        *self.outstanding += 1;
        self.iteration.ops += 1;
        self.ready.push(Ready { node, frame: self.to.0, iteration: self.to.1, dead });
    }
}

/// None if a node is not ready yet; otherwise whether it is dead.
#[inline]
fn fires(kind: Kind, inputs: u32, state: &mut crate::frame::State) -> Option<bool> {
    if state.fired || state.pending > 0 {
        return None;
    }
    let dead = match kind {
        Kind::Merge if state.live > 0 => false,
        Kind::Merge if state.dead >= inputs => true,
        Kind::Merge => return None,
        Kind::ControlTrigger => false,
        _ => state.dead > 0,
    };
    state.fired = true;
    Some(dead)
}
