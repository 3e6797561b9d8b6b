//! A kernel: a function from tensors to tensors, ready to run for one node.

use crate::{Ctx, RemoteTensor, Stored, Variable};
use graph::RendezvousKeyPrefix;
use smallvec::SmallVec;
use status::{Result, internal};
use std::sync::Arc;
use tensor::{DType, Shape, Tensor};

/// What flows along an edge.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// A reference to a variable.
    Ref(Arc<Variable>),
    /// A tensor in a file, on its way to another task.
    Stored(Arc<dyn Stored>),
}

impl Value {
    /// The tensor itself, the current value of the variable, or what is in the file.
    pub fn read(self) -> Result<Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Ref(variable) => variable.read(),
            Value::Stored(stored) => stored.read(),
        }
    }
}

/// A kernel and how much work it is.
pub struct Kernel {
    /// What to do.
    pub run: Run,
    /// How much work.
    pub cost: Cost,
    /// What it does to single numbers, if that is all it does: such kernels can be fused.
    pub elementwise: Option<Elementwise>,
    /// The first of the inputs that it can read in chunks: those that other tasks send are passed to it as
    /// `RemoteTensor`.
    pub streams_from: Option<usize>,
}

/// An op on single 32-bit floats, applied to every element with broadcasting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elementwise {
    /// Of one number.
    Unary(math::fused::Unary),
    /// Of two numbers.
    Binary(math::fused::Binary),
}

/// How much work a kernel is: the executor runs light ones on the spot.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// Hardly anything, whatever its inputs: never worth another thread.
    Free,
    /// As much as its inputs are long.
    ByInput,
    /// As much as it says when it looks at its inputs, in elements: it may read little of them.
    Asked(fn(&Peek<'_>) -> usize),
    /// May take long even on small inputs.
    Heavy,
}

/// Inputs of a kernel that has not run yet.
pub struct Peek<'a>(pub &'a dyn Fn(usize) -> Option<&'a Value>);

impl Peek<'_> {
    /// Input `index`, if it is a tensor.
    pub fn tensor(&self, index: usize) -> Option<&Tensor> {
        match (self.0)(index) {
            Some(Value::Tensor(tensor)) => Some(tensor),
            _ => None,
        }
    }

    /// The shape of input `index`, unless it is a variable that somebody is changing.
    pub fn shape(&self, index: usize) -> Option<Shape> {
        match (self.0)(index)? {
            Value::Tensor(tensor) => Some(tensor.shape().clone()),
            Value::Ref(variable) => variable.try_shape(),
            Value::Stored(stored) => Some(stored.shape().clone()),
        }
    }
}

/// What a kernel does. Inputs come by value, so that the last owner writes in place.
pub enum Run {
    /// Nothing to one tensor.
    Source(Box<dyn Fn(&Ctx<'_>) -> Result<Tensor> + Send + Sync>),
    /// One tensor to one.
    Unary(Box<dyn Fn(&Ctx<'_>, Tensor) -> Result<Tensor> + Send + Sync>),
    /// Two tensors to one.
    Binary(Box<dyn Fn(&Ctx<'_>, Tensor, Tensor) -> Result<Tensor> + Send + Sync>),
    /// Any number of values to any number.
    Many(Box<dyn Fn(&Ctx<'_>, Inputs) -> Result<Outputs> + Send + Sync>),
    /// Any number of values to tensors in files. Those that only other tasks want are not read here.
    Stored(Box<dyn Fn(&Ctx<'_>, Inputs) -> Result<Vec<Arc<dyn Stored>>> + Send + Sync>),
    /// For ops that wait: they call `Done` when they have something, and block no thread.
    Later(Box<dyn Fn(&Ctx<'_>, Inputs, Done) + Send + Sync>),
    /// What only the executor can do.
    Flow(Flow),
}

/// Ops whose meaning is the executor's.
#[derive(Clone, Debug)]
pub enum Flow {
    /// Passes its first input to one of two outputs; the other is dead.
    Switch,
    /// Passes its first input to one of `count` outputs; the others are dead.
    SwitchN(usize),
    /// Passes on the first live input, and which one it was.
    Merge,
    /// Passes a value into a loop.
    Enter {
        /// Name of the loop's frame.
        frame: String,
        /// The same value in every iteration.
        constant: bool,
        /// How many iterations may be alive at once.
        parallel: usize,
    },
    /// Passes a value out of a loop.
    Exit,
    /// Passes a value to the next iteration.
    NextIteration,
    /// Passes its input on unchanged.
    Identity,
    /// Runs even if its inputs are dead.
    ControlTrigger,
    /// Gives a value to whoever asks for it under a key.
    Send(Transfer),
    /// Waits for the value under a key.
    Recv(Transfer),
    /// Gives an argument of the function that runs.
    Arg(usize, DType),
    /// Takes a result of the function that runs.
    Ret(usize),
}

/// What a Send and its Recv agree on.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The rendezvous key without its frame and iteration.
    pub key_prefix: RendezvousKeyPrefix,
    /// Whether the other end is the client: a feed arrives with the request of the run and a fetch leaves with its
    /// reply, so no other task asks for it.
    pub client_terminated: bool,
}

impl Transfer {
    /// The rendezvous key in a frame and an iteration.
    pub fn key(&self, frame: u64, iteration: u64) -> String {
        self.key_prefix.key(frame, iteration)
    }
}

/// Called once, with the outputs or the error of an op that waited.
pub type Done = Box<dyn FnOnce(Result<Outputs>) + Send>;

/// A node's outputs, in order.
pub type Outputs = SmallVec<[Value; 2]>;

/// A node's inputs, each to be taken once.
#[derive(Default)]
pub struct Inputs {
    values: SmallVec<[Option<Value>; 4]>,
    /// Inputs that other tasks still hold, by index; their values are `None`.
    remote: Vec<(usize, RemoteTensor)>,
}

impl Inputs {
    /// How many.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds one at the end.
    pub fn push(&mut self, value: Value) {
        self.values.push(Some(value));
    }

    /// Inserts an input that another task still holds at `index`, and moves the inputs from there on back by one.
    pub fn insert_remote(&mut self, index: usize, tensor: RemoteTensor) {
        self.values.insert(index, None);
        self.remote.push((index, tensor));
    }

    /// Takes input `index` if another task still holds it.
    pub fn remote(&mut self, index: usize) -> Option<RemoteTensor> {
        let found = self.remote.iter().position(|(place, _)| *place == index)?;
        Some(self.remote.swap_remove(found).1)
    }

    /// Takes input `index`, a tensor.
    pub fn tensor(&mut self, index: usize) -> Result<Tensor> {
        self.take(index)?.read()
    }

    /// Looks at input `index`, a tensor, and leaves it there.
    pub fn look(&self, index: usize) -> Result<&Tensor> {
        match self.values.get(index) {
            Some(Some(Value::Tensor(tensor))) => Ok(tensor),
            _ => Err(missing(index)),
        }
    }

    /// As `look`, where it may be changed.
    pub fn look_mut(&mut self, index: usize) -> Result<&mut Tensor> {
        match self.values.get_mut(index) {
            Some(Some(Value::Tensor(tensor))) => Ok(tensor),
            _ => Err(missing(index)),
        }
    }

    /// Takes input `index`, a reference to a variable.
    pub fn variable(&mut self, index: usize) -> Result<Arc<Variable>> {
        match self.take(index)? {
            Value::Ref(variable) => Ok(variable),
            _ => Err(internal!("input {index} is not a reference")),
        }
    }

    /// Takes input `index`, whatever it is.
    pub fn take(&mut self, index: usize) -> Result<Value> {
        let slot = self.values.get_mut(index).and_then(Option::take);
        slot.ok_or_else(|| missing(index))
    }

    /// Takes all inputs from `first` on, tensors.
    pub fn tensors_from(&mut self, first: usize) -> Result<Vec<Tensor>> {
        (first..self.len()).map(|index| self.tensor(index)).collect()
    }

    /// Takes `count` inputs from `first` on, tensors.
    pub fn tensors(&mut self, first: usize, count: usize) -> Result<Vec<Tensor>> {
        (first..first + count).map(|index| self.tensor(index)).collect()
    }
}

fn missing(index: usize) -> status::Error {
    internal!("input {index} is not there, or was taken before")
}

impl From<SmallVec<[Option<Value>; 4]>> for Inputs {
    /// Inputs from where they wait; all are there.
    fn from(values: SmallVec<[Option<Value>; 4]>) -> Inputs {
        Inputs { values, remote: Vec::new() }
    }
}

impl FromIterator<Value> for Inputs {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Inputs {
        Inputs { values: values.into_iter().map(Some).collect(), remote: Vec::new() }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

/// Outputs from tensors, in order.
#[macro_export]
macro_rules! outputs {
    ($($tensor:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut outputs = $crate::Outputs::new();
        $(outputs.push($crate::Value::from($tensor));)*
        outputs
    }};
}

/// A kernel without inputs.
pub fn source(run: impl Fn(&Ctx<'_>) -> Result<Tensor> + Send + Sync + 'static) -> Kernel {
    Kernel { run: Run::Source(Box::new(run)), cost: Cost::ByInput, elementwise: None, streams_from: None }
}

/// A kernel of one tensor.
pub fn unary(run: impl Fn(&Ctx<'_>, Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Kernel {
    Kernel { run: Run::Unary(Box::new(run)), cost: Cost::ByInput, elementwise: None, streams_from: None }
}

/// A kernel of two tensors.
pub fn binary(run: impl Fn(&Ctx<'_>, Tensor, Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Kernel {
    Kernel { run: Run::Binary(Box::new(run)), cost: Cost::ByInput, elementwise: None, streams_from: None }
}

/// A kernel of any number of values.
pub fn many(run: impl Fn(&Ctx<'_>, Inputs) -> Result<Outputs> + Send + Sync + 'static) -> Kernel {
    Kernel { run: Run::Many(Box::new(run)), cost: Cost::ByInput, elementwise: None, streams_from: None }
}

/// A kernel that finds tensors in files.
pub fn stored(run: impl Fn(&Ctx<'_>, Inputs) -> Result<Vec<Arc<dyn Stored>>> + Send + Sync + 'static) -> Kernel {
    Kernel { run: Run::Stored(Box::new(run)), cost: Cost::Heavy, elementwise: None, streams_from: None }
}

/// A kernel that waits.
pub fn later(run: impl Fn(&Ctx<'_>, Inputs, Done) + Send + Sync + 'static) -> Kernel {
    Kernel { run: Run::Later(Box::new(run)), cost: Cost::Free, elementwise: None, streams_from: None }
}

impl Kernel {
    /// A kernel only the executor can run.
    pub fn flow(flow: Flow) -> Kernel {
        Kernel { run: Run::Flow(flow), cost: Cost::Free, elementwise: None, streams_from: None }
    }

    /// The same kernel, which reads the inputs from `first` on in chunks if other tasks send them.
    pub fn streaming_from(mut self, first: usize) -> Kernel {
        self.streams_from = Some(first);
        self
    }

    /// The same kernel, always run on the spot.
    pub fn free(mut self) -> Kernel {
        self.cost = Cost::Free;
        self
    }

    /// The same kernel, which says how much work it is.
    pub fn asked(mut self, work: fn(&Peek<'_>) -> usize) -> Kernel {
        self.cost = Cost::Asked(work);
        self
    }

    /// The same kernel, never run on the spot while others wait.
    pub fn heavy(mut self) -> Kernel {
        self.cost = Cost::Heavy;
        self
    }
}
