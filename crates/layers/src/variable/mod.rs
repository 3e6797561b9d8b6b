//! Variables: state of a device that a graph reads and updates.

mod builder;
mod partitioned;
mod partitioner;
mod record;
mod scope;
mod slice;

pub use builder::{VariableBuilder, VariableCreator};
pub use partitioned::PartitionedVariable;
pub use partitioner::Partitioner;
pub use scope::{Reuse, VariableScope};
pub use slice::SaveSlice;

use graph::{Fetch, Fetchable, Graph, Node, Output, Scope};
use ops::raw;
use ops::state::Update;
use std::ops::Deref;
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape};

/// The representation of a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A handle; reads and writes are nodes of their own.
    #[default]
    Resource,
    /// A reference to a buffer: the kind of TensorFlow's first versions.
    Reference,
}

/// A variable. Cloning it is cheap. It dereferences to its value, so `TensorOps` work on it.
#[derive(Clone)]
pub struct Variable(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    handle: Output,
    value: Output,
    initializer: Node,
    initial_value: Output,
    trainable: bool,
    dtype: DType,
    slice: Option<SaveSlice>,
}

impl Variable {
    /// A trainable variable of float zeros.
    pub fn zeros(scope: &Scope, name: &str, shape: impl Into<Shape>) -> Variable {
        Variable::builder(scope, name).shape(shape).build()
    }

    /// A variable whose initial value is that of a node.
    pub fn new(scope: &Scope, name: &str, initial: &Output) -> Variable {
        Variable::builder(scope, name).value(initial).build()
    }

    /// The settings of a new variable called `name`.
    pub fn builder(scope: &Scope, name: &str) -> VariableBuilder {
        VariableBuilder::new(scope, name)
    }

    /// The reference or handle, which updates and gradients refer to.
    pub fn handle(&self) -> &Output {
        &self.0.handle
    }

    /// The value as read by one node, at some time during the step.
    pub fn value(&self) -> &Output {
        &self.0.value
    }

    /// The value as read by a new node, which runs after the control inputs of `scope`.
    pub fn read(&self, scope: &Scope) -> Output {
        let scope = scope.beside(self.0.handle.node());
        let handle = self.0.handle.seen_from(&scope);
        match self.kind() {
            Kind::Resource => ops::state::read_variable(&handle, self.dtype()),
            Kind::Reference => raw::identity(&handle).named("read").output(),
        }
    }

    /// The node that assigns the initial value.
    pub fn initializer(&self) -> &Node {
        &self.0.initializer
    }

    /// The initial value.
    pub fn initial_value(&self) -> &Output {
        &self.0.initial_value
    }

    /// The name.
    pub fn name(&self) -> String {
        self.0.handle.node().name()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The shape, as far as it is known.
    pub fn shape(&self) -> PartialShape {
        self.0.value.shape()
    }

    /// The representation.
    pub fn kind(&self) -> Kind {
        if self.0.handle.full_dtype() == DType::RESOURCE { Kind::Resource } else { Kind::Reference }
    }

    /// Whether optimizers update it.
    pub fn is_trainable(&self) -> bool {
        self.0.trainable
    }

    /// The part of a larger variable that it is, if it is one.
    pub fn slice(&self) -> Option<&SaveSlice> {
        self.0.slice.as_ref()
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.0.handle.scope().graph()
    }

    /// A node that assigns a value.
    pub fn assign(&self, value: &Output) -> Node {
        let handle = self.seen_beside(value.scope());
        match self.kind() {
            Kind::Resource => ops::state::assign_variable(&handle, value),
            Kind::Reference => ops::state::assign(&handle, value).node().clone(),
        }
    }

    /// A node that adds a value.
    pub fn assign_add(&self, value: &Output) -> Node {
        let handle = self.seen_beside(value.scope());
        match self.kind() {
            Kind::Resource => ops::state::assign_add_variable(&handle, value),
            Kind::Reference => ops::state::assign_add(&handle, value).node().clone(),
        }
    }

    /// A node that subtracts a value.
    pub fn assign_sub(&self, value: &Output) -> Node {
        let handle = self.seen_beside(value.scope());
        match self.kind() {
            Kind::Resource => ops::state::assign_sub_variable(&handle, value),
            Kind::Reference => ops::state::assign_sub(&handle, value).node().clone(),
        }
    }

    /// A node that assigns rows.
    pub fn scatter_update(&self, indices: &Output, rows: &Output) -> Node {
        self.scatter(Update::Assign, indices, rows)
    }

    /// A node that adds to rows.
    pub fn scatter_add(&self, indices: &Output, rows: &Output) -> Node {
        self.scatter(Update::Add, indices, rows)
    }

    /// A node that subtracts from rows.
    pub fn scatter_sub(&self, indices: &Output, rows: &Output) -> Node {
        self.scatter(Update::Sub, indices, rows)
    }

    fn scatter(&self, update: Update, indices: &Output, rows: &Output) -> Node {
        let handle = self.seen_beside(rows.scope());
        match self.kind() {
            Kind::Resource => ops::state::resource_scatter(update, &handle, indices, rows),
            Kind::Reference => ops::state::scatter(update, &handle, indices, rows).node().clone(),
        }
    }

    /// The rows with these indices, read without reading the others.
    pub fn gather(&self, indices: &Output) -> Output {
        let handle = self.seen_beside(indices.scope());
        match self.kind() {
            Kind::Resource => ops::state::resource_gather(&handle, indices, self.dtype()),
            Kind::Reference => ops::array::gather(&handle, indices),
        }
    }

    /// A bool output: whether the variable has a value.
    pub fn is_initialized(&self) -> Output {
        let handle = self.seen_beside(&self.graph().root());
        match self.kind() {
            Kind::Resource => ops::state::var_is_initialized(&handle),
            Kind::Reference => ops::state::is_variable_initialized(&handle),
        }
    }

    /// The handle, whose consumers are created in `scope` and colocated with the variable.
    fn seen_beside(&self, scope: &Scope) -> Output {
        self.0.handle.seen_from(&scope.beside(self.0.handle.node()))
    }
}

impl Deref for Variable {
    type Target = Output;
    fn deref(&self) -> &Output {
        self.value()
    }
}

impl Fetchable for Variable {
    fn fetch(&self) -> Fetch {
        self.value().fetch()
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<Variable '{}' shape={} dtype={}>", self.name(), self.shape(), self.dtype())
    }
}
