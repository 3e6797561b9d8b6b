//! Settings of a new variable, and its nodes.

use super::{Inner, Kind, SaveSlice, Variable};
use crate::Initializer;
use crate::collection::{GLOBAL_VARIABLES, TRAINABLE_VARIABLES};
use graph::{Node, Output, Scope};
use ops::raw;
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape};

/// The settings of a new variable. By default it is a trainable scalar of type float, initialized with zeros, and of
/// the kind [`Kind::Resource`].
#[derive(Clone)]
pub struct VariableBuilder {
    pub(super) scope: Scope,
    pub(super) name: String,
    pub(super) shape: Shape,
    dtype: DType,
    kind: Kind,
    pub(super) initializer: Initializer,
    pub(super) value: Option<Output>,
    trainable: bool,
    collections: Vec<String>,
    pub(super) slice: Option<SaveSlice>,
    slot_of: Option<Variable>,
    creators: Vec<VariableCreator>,
}

/// A function that creates variables in place of [`VariableBuilder::build`]; see [`VariableScope::creator`].
///
/// [`VariableScope::creator`]: super::VariableScope::creator
pub type VariableCreator = Arc<dyn Fn(VariableBuilder) -> Variable + Send + Sync>;

impl VariableBuilder {
    pub(crate) fn new(scope: &Scope, name: &str) -> VariableBuilder {
        VariableBuilder {
            scope: scope.without_controls(),
            name: name.to_string(),
            shape: Shape::scalar(),
            dtype: DType::F32,
            kind: Kind::default(),
            initializer: Initializer::Zeros,
            value: None,
            trainable: true,
            collections: vec![GLOBAL_VARIABLES.to_string()],
            slice: None,
            slot_of: None,
            creators: Vec::new(),
        }
    }

    /// Sets the shape.
    pub fn shape(mut self, shape: impl Into<Shape>) -> VariableBuilder {
        self.shape = shape.into();
        self
    }

    /// Sets the element type.
    pub fn dtype(mut self, dtype: DType) -> VariableBuilder {
        self.dtype = dtype;
        self
    }

    /// Sets the initializer. A value also sets shape and element type.
    pub fn initializer(mut self, initializer: Initializer) -> VariableBuilder {
        if let Initializer::Value(value) = &initializer {
            (self.shape, self.dtype) = (value.shape().clone(), value.dtype());
        }
        self.initializer = initializer;
        self
    }

    /// Sets the initial value to that of a node, which also sets shape and element type.
    pub fn value(mut self, initial: &Output) -> VariableBuilder {
        self.value = Some(initial.clone());
        self
    }

    /// Sets the representation.
    pub fn kind(mut self, kind: Kind) -> VariableBuilder {
        self.kind = kind;
        self
    }

    /// Sets whether optimizers update it.
    pub fn trainable(mut self, trainable: bool) -> VariableBuilder {
        self.trainable = trainable;
        self
    }

    /// Sets the collections that list it, besides that of trainable variables. The default is
    /// [`GLOBAL_VARIABLES`].
    pub fn collections(mut self, names: &[&str]) -> VariableBuilder {
        self.collections = names.iter().map(|name| name.to_string()).collect();
        self
    }

    /// Declares it a slot of `primary`: if that is a part of a larger variable, the slot is a part of a larger slot.
    pub fn slot_of(mut self, primary: &Variable) -> VariableBuilder {
        self.slot_of = Some(primary.clone());
        self
    }

    /// Adds a function that creates the variable in place of [`VariableBuilder::build`]; see
    /// [`VariableScope::creator`](super::VariableScope::creator).
    pub fn creator(mut self, creator: VariableCreator) -> VariableBuilder {
        self.creators.push(creator);
        self
    }

    /// The scope in which the variable is created.
    pub fn get_scope(&self) -> &Scope {
        &self.scope
    }

    /// The name within the scope.
    pub fn get_name(&self) -> &str {
        &self.name
    }

    /// The shape, as far as it is known.
    pub fn get_shape(&self) -> PartialShape {
        self.value.as_ref().map_or_else(|| PartialShape::from(&self.shape), Output::shape)
    }

    /// The element type.
    pub fn get_dtype(&self) -> DType {
        self.value.as_ref().map_or(self.dtype, Output::dtype)
    }

    /// The initializer; it has no effect if there is an initial value.
    pub fn get_initializer(&self) -> &Initializer {
        &self.initializer
    }

    /// The initial value, if one was set.
    pub fn get_value(&self) -> Option<&Output> {
        self.value.as_ref()
    }

    /// Whether optimizers update the variable.
    pub fn is_trainable(&self) -> bool {
        self.trainable
    }

    /// The same settings in another scope, for example on another device.
    pub fn scope(mut self, scope: &Scope) -> VariableBuilder {
        self.scope = scope.without_controls();
        self
    }

    /// Creates the variable: calls the creator that was added last, if there is one, else adds the nodes.
    pub fn build(mut self) -> Variable {
        match self.creators.pop() {
            // The creator builds with what is left, so its own call of `build` reaches the next creator.
            Some(creator) => creator(self),
            None => self.build_nodes(),
        }
    }

    fn build_nodes(self) -> Variable {
        let (dtype, shape) = (self.get_dtype(), self.get_shape());
        let inside = self.scope.named(&self.name);
        let handle = self.handle(&inside, dtype, &shape);
        let initial_value = match &self.value {
            Some(value) => value.clone(),
            None => self.initializer.build(&inside.named("Initializer"), dtype, &self.shape),
        };
        let beside = inside.beside(handle.node());
        let (initializer, value) = self.attach(&beside, &handle, &initial_value, dtype);
        let (trainable, slice) = (self.trainable, self.slice.clone().or_else(|| self.slot_slice(&handle)));
        let inner = Inner { handle, value, initializer, initial_value, trainable, dtype, slice };
        let variable = Variable(Arc::new(inner));
        self.register(&variable);
        variable
    }

    /// The part of a larger slot that this is: the same as its variable is of the larger variable.
    fn slot_slice(&self, handle: &Output) -> Option<SaveSlice> {
        let primary = self.slot_of.as_ref()?;
        let slice = primary.slice()?;
        let name = handle.node().name();
        let slot = name.strip_prefix(&format!("{}/", primary.name()))?;
        Some(SaveSlice { full_name: format!("{}/{slot}", slice.full_name), ..slice.clone() })
    }

    fn handle(&self, inside: &Scope, dtype: DType, shape: &PartialShape) -> Output {
        let handle = match self.kind {
            Kind::Reference => raw::variable_v2(inside, shape, dtype),
            // Handles with the same shared name are the same variable, and no other node has this name.
            Kind::Resource => {
                raw::var_handle_op(inside, dtype, shape).attr("shared_name", inside.prefix().trim_end_matches('/'))
            }
        };
        let handle = handle.named_as_scope().output();
        handle.seen_from(&self.scope)
    }

    fn attach(&self, scope: &Scope, handle: &Output, initial: &Output, dtype: DType) -> (Node, Output) {
        let handle = handle.seen_from(scope);
        match self.kind {
            Kind::Reference => {
                let assign = raw::assign(&handle, initial).node();
                (assign, raw::identity(&handle).named("read").output().seen_from(&self.scope))
            }
            Kind::Resource => {
                let assign = raw::assign_variable_op(&handle, initial).named("Assign").node();
                let read = raw::read_variable_op(&handle, dtype).named("Read/ReadVariableOp");
                (assign, read.output().seen_from(&self.scope))
            }
        }
    }

    fn register(&self, variable: &Variable) {
        let graph = self.scope.graph();
        let record = variable.to_record();
        for collection in &self.collections {
            graph.add_to_collection(collection, record.clone());
        }
        if self.trainable {
            graph.add_to_collection(TRAINABLE_VARIABLES, record);
        }
    }
}
