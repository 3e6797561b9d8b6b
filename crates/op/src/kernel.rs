//! A kernel: a function from tensors to tensors, ready to run for one node.

use crate::{Ctx, RemoteTensor, Stored, Variable};
use graph::RendezvousKeyPrefix;
use smallvec::SmallVec;
use status::{Result, internal};
use std::sync::Arc;
use tensor::{DType, Shape, Tensor};

/// The value on an edge of the graph.
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
    /// Returns the tensor, the current value of the variable, or the contents of the file.
    pub fn read(self) -> Result<Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Ref(variable) => variable.read(),
            Value::Stored(stored) => stored.read(),
        }
    }
}

/// A kernel with its cost.
pub struct Kernel {
    /// The function to run.
    pub run: Run,
    /// How much work it is.
    pub cost: Cost,
    /// What it does to each 32-bit float, if it works element by element: such kernels can be fused.
    pub elementwise: Option<Elementwise>,
    /// The first of the inputs that it can read in chunks: those that other tasks send are passed to it as
    /// `RemoteTensor`.
    pub streams_from: Option<usize>,
}

/// An op on single 32-bit floats, applied to every element with broadcasting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elementwise {
    /// Applied to one number.
    Unary(math::fused::Unary),
    /// Applied to two numbers.
    Binary(math::fused::Binary),
}

/// How much work a kernel is: the executor runs light kernels on the thread that finds them ready.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// Hardly any work, whatever its inputs are: never worth another thread.
    Free,
    /// Work in proportion to the number of input elements.
    ByInput,
    /// The number of elements that this function returns for the inputs, for kernels that read only a part of them.
    Computed(fn(&Peek<'_>) -> usize),
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

    /// The shape of input `index`; none for a variable that is locked.
    pub fn shape(&self, index: usize) -> Option<Shape> {
        match (self.0)(index)? {
            Value::Tensor(tensor) => Some(tensor.shape().clone()),
            Value::Ref(variable) => variable.try_shape(),
            Value::Stored(stored) => Some(stored.shape().clone()),
        }
    }
}

/// The function of a kernel. Inputs are passed by value, so that the last owner may write in place.
pub enum Run {
    /// No inputs, one output.
    Source(Box<dyn Fn(&Ctx<'_>) -> Result<Tensor> + Send + Sync>),
    /// One input, one output.
    Unary(Box<dyn Fn(&Ctx<'_>, Tensor) -> Result<Tensor> + Send + Sync>),
    /// Two inputs, one output.
    Binary(Box<dyn Fn(&Ctx<'_>, Tensor, Tensor) -> Result<Tensor> + Send + Sync>),
    /// Any number of inputs and outputs.
    Many(Box<dyn Fn(&Ctx<'_>, Inputs) -> Result<Outputs> + Send + Sync>),
    /// Any number of inputs, and outputs that are tensors in files. Outputs that only other tasks need are not read here.
    Stored(Box<dyn Fn(&Ctx<'_>, Inputs) -> Result<Vec<Arc<dyn Stored>>> + Send + Sync>),
    /// For ops that wait: the kernel returns at once and calls `Done` later, so that no thread is blocked.
    Later(Box<dyn Fn(&Ctx<'_>, Inputs, Done) + Send + Sync>),
    /// Control flow and transfers, which the executor itself runs.
    Flow(Flow),
}

/// The ops that the executor itself runs.
#[derive(Clone, Debug)]
pub enum Flow {
    /// Passes its first input to one of two outputs; the other is dead.
    Switch,
    /// Passes its first input to one of `count` outputs; the others are dead.
    SwitchN(usize),
    /// Passes on the first live input, and its index.
    Merge,
    /// Passes a value into a loop.
    Enter {
        /// Name of the loop's frame.
        frame: String,
        /// True if every iteration gets the same value.
        constant: bool,
        /// How many iterations may run at once.
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
    /// Sends a value under a rendezvous key.
    Send(Transfer),
    /// Receives the value with a rendezvous key.
    Recv(Transfer),
    /// An argument of the function call: its index and type.
    Arg(usize, DType),
    /// A result of the function call: its index.
    Ret(usize),
}

/// What a Send and its Recv have in common.
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
    /// The number of inputs, including those that were taken.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if the node has no inputs.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds an input at the end.
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

    /// Borrows input `index`, a tensor.
    pub fn look(&self, index: usize) -> Result<&Tensor> {
        match self.values.get(index) {
            Some(Some(Value::Tensor(tensor))) => Ok(tensor),
            _ => Err(missing(index)),
        }
    }

    /// Borrows input `index`, a tensor, mutably.
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

    /// Takes input `index`, a value of any kind.
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
    internal!("input {index} is missing or was taken before")
}

impl From<SmallVec<[Option<Value>; 4]>> for Inputs {
    /// Inputs from the slots of the executor; none is missing.
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

/// A kernel whose outputs are tensors in files.
pub fn stored(run: impl Fn(&Ctx<'_>, Inputs) -> Result<Vec<Arc<dyn Stored>>> + Send + Sync + 'static) -> Kernel {
    Kernel { run: Run::Stored(Box::new(run)), cost: Cost::Heavy, elementwise: None, streams_from: None }
}

/// A kernel that waits.
pub fn later(run: impl Fn(&Ctx<'_>, Inputs, Done) + Send + Sync + 'static) -> Kernel {
    Kernel { run: Run::Later(Box::new(run)), cost: Cost::Free, elementwise: None, streams_from: None }
}

impl Kernel {
    /// A kernel that the executor itself runs.
    pub fn flow(flow: Flow) -> Kernel {
        Kernel { run: Run::Flow(flow), cost: Cost::Free, elementwise: None, streams_from: None }
    }

    /// The same kernel, which reads the inputs from `first` on in chunks if other tasks send them.
    pub fn streaming_from(mut self, first: usize) -> Kernel {
        self.streams_from = Some(first);
        self
    }

    /// The same kernel, always run on the thread that finds it ready.
    pub fn free(mut self) -> Kernel {
        self.cost = Cost::Free;
        self
    }

    /// The same kernel with a function that computes how much work it is.
    pub fn with_work(mut self, work: fn(&Peek<'_>) -> usize) -> Kernel {
        self.cost = Cost::Computed(work);
        self
    }

    /// The same kernel, run on a thread of its own while other ops are ready.
    pub fn heavy(mut self) -> Kernel {
        self.cost = Cost::Heavy;
        self
    }
}
