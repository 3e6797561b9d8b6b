//! Frames and iterations: the state of loops while they run.

use crate::program::{FrameInfo, Program};
use op::Value;
use status::{Result, internal};
use std::collections::VecDeque;
use tensor::Tensor;

/// A loop that is running, or the whole graph.
pub(crate) struct Frame {
    /// Which loop, in the program.
    pub info: u32,
    /// The frame and iteration around it; the root frame is its own parent.
    pub parent: (u32, u64),
    /// The frame in rendezvous keys.
    pub key: u64,
    /// Number of the oldest iteration that is alive.
    pub first: u64,
    /// Iterations that are alive, oldest first.
    pub iterations: VecDeque<Iteration>,
    /// Enter nodes that have not arrived.
    pub pending_enters: u32,
    /// Values that every iteration gets: the Enter node, and its value unless it is dead.
    pub constants: Vec<(u32, Option<Value>)>,
    /// NextIteration nodes that wait until fewer iterations are alive.
    pub queued: Vec<(u32, Option<Value>)>,
    /// Exit nodes that were dead in some iteration.
    pub dead_exits: Vec<u32>,
    /// Exit nodes that delivered a value.
    pub live_exits: Vec<u32>,
}

/// One iteration of a frame.
#[derive(Default)]
pub(crate) struct Iteration {
    pub states: Vec<State>,
    pub values: Values,
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
    /// One more than the input at which a live value has arrived, if this is a Merge; zero if none has.
    pub live: u32,
    /// True once the node was made ready.
    pub fired: bool,
}

/// Values that consumers in the iteration have not taken yet. A value is stored once for all its consumers, so that an
/// output with thousands of consumers needs no more memory than any other.
#[derive(Default)]
pub(crate) struct Values {
    slots: Vec<Option<Value>>,
    /// How many consumers have not taken each value yet.
    takers: Vec<u32>,
}

impl Values {
    fn new(count: u32) -> Values {
        Values { slots: (0..count).map(|_| None).collect(), takers: vec![0; count as usize] }
    }

    /// Stores a value that `takers` consumers will take; none if it is dead.
    #[inline]
    pub fn put(&mut self, slot: u32, value: Option<Value>, takers: u32) {
        self.slots[slot as usize] = value;
        self.takers[slot as usize] = takers;
    }

    /// The value in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Value> {
        self.slots[slot as usize].as_ref()
    }

    /// Takes a value; none if it is dead. The last consumer gets the value itself, the others a shared copy.
    #[inline]
    pub fn take(&mut self, slot: u32) -> Option<Value> {
        let (value, takers) = (&mut self.slots[slot as usize], &mut self.takers[slot as usize]);
        debug_assert!(*takers > 0, "a value has more consumers than were announced");
        *takers = takers.saturating_sub(1);
        if *takers == 0 { value.take() } else { value.clone() }
    }

    /// Like `take`, but reads the current value of a variable or a file.
    #[inline]
    pub fn read(&mut self, slot: u32) -> Result<Tensor> {
        let (value, takers) = (&mut self.slots[slot as usize], &mut self.takers[slot as usize]);
        debug_assert!(*takers > 0, "a value has more consumers than were announced");
        *takers = takers.saturating_sub(1);
        match value {
            Some(value) if *takers > 0 => match value {
                Value::Tensor(tensor) => Ok(tensor.clone()),
                Value::Ref(variable) => variable.read(),
                Value::Stored(stored) => stored.read(),
            },
            value => value.take().ok_or_else(|| internal!("an input is missing"))?.read(),
        }
    }

    /// Counts a value as taken without taking it.
    #[inline]
    pub fn leave(&mut self, slot: u32) {
        let takers = &mut self.takers[slot as usize];
        debug_assert!(*takers > 0, "a value has more consumers than were announced");
        *takers = takers.saturating_sub(1);
        if *takers == 0 {
            self.slots[slot as usize] = None;
        }
    }
}

impl Iteration {
    /// An iteration in which nothing has arrived.
    pub fn new(info: &FrameInfo) -> Iteration {
        Iteration { states: info.states.clone(), values: Values::new(info.values), ops: 0, frames: 0 }
    }

    /// The same arrays for another run. A slot is read only after a value was put there in the same run.
    pub fn renew(mut self, info: &FrameInfo) -> Iteration {
        self.states.clone_from(&info.states);
        self
    }
}

impl Frame {
    /// A frame with its first iteration.
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

    /// The number of the iteration after the latest one.
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
