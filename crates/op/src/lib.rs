//! Defines what an op is: its row in the op table, kernels, contexts, the registry, and the traits that kernels call.
//!
//! The crate contains no ops: `ops` provides the rows, and `exec`, `plan` and `gradient` read them through the
//! [`Registry`]. A row is an [`Op`]: signature, shape function, gradient, kernel and facts. A kernel is built once
//! per node from a [`Setup`], which reads the attributes; it then runs many times with a [`Ctx`].
//!
//! ```
//! use flowgrid_op::{Grad, Op, PLAIN, Registry, shapes, unary};
//! use graph::Signatures;
//!
//! const SAME: Op = Op {
//!     def: "Same(x: float) -> y: float",
//!     shape: shapes::unchanged,
//!     grad: Grad::Stop,
//!     kernel: |_| Ok(unary(|_, x| Ok(x))),
//!     facts: PLAIN,
//! };
//! let registry = Registry::new(&[&[SAME]])?;
//! assert_eq!(registry.signature("Same").map(|signature| signature.inputs.len()), Some(1));
//! # Ok::<(), status::Error>(())
//! ```
#![forbid(unsafe_code)]

mod calls;
mod cancel;
mod collective;
mod ctx;
mod device_type;
mod extensions;
mod facts;
mod function;
mod grad;
mod home;
mod kernel;
mod observer;
mod once_callback;
mod poll_on;
mod registry;
mod rendezvous;
mod resources;
mod setup;
pub mod shapes;
mod stats;
mod tensor_stream;
mod variable;

pub use calls::{Calls, Level};
pub use cancel::{Cancel, CancelToken};
pub use collective::{
    CollectiveKind, CollectiveRequest, CollectiveRuntime, Collectives, GroupRequest, Merge, OnCollective, Subdivisions,
};
pub use ctx::{Ctx, Spawn, StepEnv};
pub use device_type::{CPU, DeviceType, DeviceTypes};
pub use extensions::Extensions;
pub use facts::{Facts, Fusion, PLAIN};
pub use function::{Callable, Forks, Functions, Libraries};
pub use grad::{Grad, Gradient, Grads, IntoGradient, NoGradient, Slices};
pub use home::{Home, Resource, Siblings, handle_of};
pub use kernel::{
    Cost, Done, Elementwise, Flow, Inputs, Kernel, Outputs, Peek, Run, Transfer, Value, binary, later, many, source,
    stored, unary,
};
pub use observer::{VariableKey, VariableObserver};
pub use once_callback::OnceCallback;
pub use poll_on::poll_on;
pub use registry::{Op, Registry};
pub use rendezvous::{Received, Rendezvous};
pub use resources::{ANONYMOUS, COUNTERS, Resources};
pub use setup::Setup;
pub use stats::{NodeStats, Stats};
pub use tensor_stream::{CHUNK, OnOpened, OpenedTensor, RemoteTensor, Stored, TensorStream};
pub use variable::{Locked, ReferenceVariable, Variable};

pub use graph::ShapeQuery;

#[cfg(test)]
mod tests;
