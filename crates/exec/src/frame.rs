//! Frames and iterations: the state of loops while they run.

use crate::program::{FrameInfo, Program};
use op::Value;
use std::collections::VecDeque;

/// A loop that is running, or the whole graph.
pub(crate) struct Frame {
    /// Which loop, in the program.
    pub info: u32,
    /// The frame and iteration around it; the root frame is its own parent.
    pub parent: (u32, u64),
    /// The frame as it stands in rendezvous keys.
    pub key: u64,
    /// Number of the oldest iteration that is alive.
    pub first: u64,
    /// Iterations that are alive, oldest first.
    pub iterations: VecDeque<Iteration>,
    /// Enter nodes that have not arrived.
    pub pending_enters: u32,
    /// Values that every iteration gets: the Enter node, and its value unless it is dead.
    pub constants: Vec<(u32, Option<Value>)>,
    /// NextIteration nodes that wait for room.
    pub queued: Vec<(u32, Option<Value>)>,
    /// Exit nodes that were dead in some iteration.
    pub dead_exits: Vec<u32>,
    /// Exit nodes that passed a value on.
    pub live_exits: Vec<u32>,
}

/// One iteration of a frame.
#[derive(Default)]
pub(crate) struct Iteration {
    pub states: Vec<State>,
    pub slots: Vec<Option<Value>>,
    /// Ops that are ready or running.
    pub ops: usize,
    /// Inner frames that are alive.
    pub frames: usize,
}

/// What a node still waits for in one iteration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// Inputs that have not arrived; of a Merge, control inputs only.
    pub pending: u32,
    /// Data inputs of a Merge that arrived dead; of others, whether any input did.
    pub dead: u32,
    /// A live value has arrived at this Merge.
    pub live: bool,
    /// It was made ready.
    pub fired: bool,
}

impl Iteration {
    /// Nothing has arrived yet.
    pub fn new(info: &FrameInfo) -> Iteration {
        let slots = (0..info.slots).map(|_| None).collect();
        Iteration { states: info.states.clone(), slots, ops: 0, frames: 0 }
    }

    /// The same arrays for another run. Every slot must be empty, as it is after a run without error.
    pub fn renew(mut self, info: &FrameInfo) -> Iteration {
        self.states.clone_from(&info.states);
        self
    }
}

impl Frame {
    /// A frame whose first iteration is about to begin.
    pub fn new(program: &Program, info: u32, parent: (u32, u64), key: u64) -> Frame {
        let static_info = &program.frames[info as usize];
        let spare = if info == 0 { program.spare.lock().pop() } else { None };
        let iteration = match spare {
            Some(spare) => spare.renew(static_info),
            None => Iteration::new(static_info),
        };
        Frame {
            info,
            parent,
            key,
            first: 0,
            iterations: VecDeque::from([iteration]),
            pending_enters: static_info.enters,
            constants: Vec::new(),
            queued: Vec::new(),
            dead_exits: Vec::new(),
            live_exits: Vec::new(),
        }
    }

    /// The iteration with this number, which must be alive.
    pub fn iteration(&mut self, number: u64) -> &mut Iteration {
        &mut self.iterations[(number - self.first) as usize]
    }

    /// The number after the youngest iteration's.
    pub fn next(&self) -> u64 {
        self.first + self.iterations.len() as u64
    }
}

/// The key of an inner frame, as TensorFlow computes it: part of rendezvous keys inside loops.
pub(crate) fn frame_key(parent: u64, iteration: u64, name: &str) -> u64 {
    combine(parent, combine(iteration, graph::hash64(name.as_bytes())))
}

fn combine(a: u64, b: u64) -> u64 {
    a ^ b.wrapping_add(0x9e37_79b9_7f4a_7800).wrapping_add(a << 10).wrapping_add(a >> 4)
}
