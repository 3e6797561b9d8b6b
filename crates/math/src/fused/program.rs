//! A chain of operations, and where in a tile's scratch each value lives.

use super::{Binary, Unary};

/// The number of a value: inputs come first, then what instructions write.
pub type Register = usize;

/// One operation. The first register is written, the others are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A function of one value.
    Unary(Unary, Register, Register),
    /// A function of two values.
    Binary(Binary, Register, Register, Register),
    /// The second value where the first is not zero, the third elsewhere.
    Select(Register, Register, Register, Register),
}

impl Instruction {
    fn written(&self) -> Register {
        match *self {
            Instruction::Unary(_, dst, _) | Instruction::Binary(_, dst, ..) | Instruction::Select(dst, ..) => dst,
        }
    }

    fn read(&self) -> Vec<Register> {
        match *self {
            Instruction::Unary(_, _, a) => vec![a],
            Instruction::Binary(_, _, a, b) => vec![a, b],
            Instruction::Select(_, a, b, c) => vec![a, b, c],
        }
    }

    fn cost(&self) -> f32 {
        match self {
            Instruction::Unary(op, ..) => op.cost(),
            Instruction::Binary(op, ..) => op.cost(),
            Instruction::Select(..) => 0.1,
        }
    }
}

/// Where a value lives while a tile is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In an operand.
    Input(usize),
    /// In a scratch tile.
    Slot(usize),
}

/// A step of the program with its places.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Unary(Unary, usize, Place),
    Binary(Binary, usize, Place, Place),
    Select(usize, Place, Place, Place),
}

/// A checked chain of operations.
///
/// Invariant: every register is written once, before it is read, and no step reads the slot it writes.
#[derive(Clone, Debug)]
pub struct Program {
    inputs: usize,
    steps: Vec<Step>,
    outputs: Vec<Place>,
    slots: usize,
    cost: f32,
}

impl Program {
    /// A program over registers `0..inputs`, whose results are the registers `outputs`.
    pub fn new(inputs: usize, instructions: &[Instruction], outputs: &[Register]) -> Program {
        let registers = inputs + instructions.len();
        let last_reads = last_reads(registers, instructions, outputs);
        let mut places: Vec<Option<Place>> = vec![None; registers];
        (0..inputs).for_each(|i| places[i] = Some(Place::Input(i)));
        let (mut free, mut slots) = (Vec::new(), 0);
        let mut steps = Vec::with_capacity(instructions.len());
        for (time, instruction) in instructions.iter().enumerate() {
            let dst = instruction.written();
            assert!(dst < registers && places[dst].is_none(), "register {dst} is written twice or out of range");
            let slot = free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            });
            steps.push(step(instruction, slot, &places));
            places[dst] = Some(Place::Slot(slot));
            let mut dead: Vec<Register> = instruction.read();
            dead.push(dst);
            dead.sort_unstable();
            dead.dedup();
            for register in dead {
                if let (Some(Place::Slot(slot)), true) = (places[register], last_reads[register] <= time) {
                    free.push(slot);
                }
            }
        }
        let outputs = outputs.iter().map(|&register| place(&places, register)).collect();
        let cost = 0.2 + instructions.iter().map(Instruction::cost).sum::<f32>();
        Program { inputs, steps, outputs, slots, cost }
    }

    /// How many operands a run takes.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// How many results a run writes.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// How many tiles of scratch a thread needs.
    pub fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn output_places(&self) -> &[Place] {
        &self.outputs
    }

    /// Nanoseconds for an element, roughly.
    pub(super) fn cost(&self) -> f32 {
        self.cost
    }
}

fn place(places: &[Option<Place>], register: Register) -> Place {
    match places.get(register) {
        Some(Some(place)) => *place,
        _ => panic!("register {register} is read before it is written"),
    }
}

fn step(instruction: &Instruction, slot: usize, places: &[Option<Place>]) -> Step {
    let at = |register| place(places, register);
    match *instruction {
        Instruction::Unary(op, _, a) => Step::Unary(op, slot, at(a)),
        Instruction::Binary(op, _, a, b) => Step::Binary(op, slot, at(a), at(b)),
        Instruction::Select(_, a, b, c) => Step::Select(slot, at(a), at(b), at(c)),
    }
}

/// When each register is read for the last time; outputs are read after the end.
fn last_reads(registers: usize, instructions: &[Instruction], outputs: &[Register]) -> Vec<usize> {
    let mut last = vec![0; registers];
    for (time, instruction) in instructions.iter().enumerate() {
        for register in instruction.read() {
            assert!(register < registers, "register {register} is out of range");
            last[register] = time;
        }
    }
    for &register in outputs {
        assert!(register < registers, "register {register} is out of range");
        last[register] = usize::MAX;
    }
    last
}
