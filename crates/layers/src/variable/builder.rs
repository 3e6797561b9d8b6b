//! A variable in the making.

use super::{Inner, Kind, SaveSlice, Variable};
use crate::Initializer;
use crate::collection::{GLOBAL_VARIABLES, TRAINABLE_VARIABLES};
use graph::{Node, Output, Scope};
use ops::raw;
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape};

/// A variable in the making; float zeros, trainable, a resource, unless said otherwise.
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
}

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
        }
    }

    /// Its shape.
    pub fn shape(mut self, shape: impl Into<Shape>) -> VariableBuilder {
        self.shape = shape.into();
        self
    }

    /// Its element type.
    pub fn dtype(mut self, dtype: DType) -> VariableBuilder {
        self.dtype = dtype;
        self
    }

    /// How it gets its first value.
    pub fn initializer(mut self, initializer: Initializer) -> VariableBuilder {
        if let Initializer::Value(value) = &initializer {
            (self.shape, self.dtype) = (value.shape().clone(), value.dtype());
        }
        self.initializer = initializer;
        self
    }

    /// Its first value, which also says its type and shape.
    pub fn value(mut self, initial: &Output) -> VariableBuilder {
        self.value = Some(initial.clone());
        self
    }

    /// How it is represented.
    pub fn kind(mut self, kind: Kind) -> VariableBuilder {
        self.kind = kind;
        self
    }

    /// Whether optimizers change it.
    pub fn trainable(mut self, trainable: bool) -> VariableBuilder {
        self.trainable = trainable;
        self
    }

    /// The collections it goes to, besides that of trainable ones; that of all variables unless said otherwise.
    pub fn collections(mut self, names: &[&str]) -> VariableBuilder {
        self.collections = names.iter().map(|name| name.to_string()).collect();
        self
    }

    /// What an optimizer keeps for this variable: if that is a part of a larger one, so is this.
    pub fn slot_of(mut self, primary: &Variable) -> VariableBuilder {
        self.slot_of = Some(primary.clone());
        self
    }

    /// Makes it.
    pub fn make(self) -> Variable {
        let (dtype, shape) = match &self.value {
            Some(value) => (value.dtype(), value.shape()),
            None => (self.dtype, PartialShape::from(&self.shape)),
        };
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

    /// Which part of a larger slot this is: the same as its variable is of the larger variable.
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
            // Handles with the same shared name mean the same variable: the node's own name is nobody else's.
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
