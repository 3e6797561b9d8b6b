//! A variable: a tensor that lives longer than a step.

use crate::Resource;
use parking_lot::{Mutex, MutexGuard};
use status::{Result, failed_precondition};
use tensor::{DType, Shape, Tensor};

/// A variable of either kind. Reading shares the tensor; whoever updates it afterwards writes to a copy
/// while readers remain, so every read is a consistent snapshot.
#[derive(Debug)]
pub struct Variable {
    name: String,
    dtype: DType,
    shape: Shape,
    value: Mutex<Option<Tensor>>,
}

impl Resource for Variable {
    const TYPE_NAME: &'static str = "N10tensorflow3VarE";
}

impl Variable {
    /// A variable without a value.
    pub fn new(name: &str, dtype: DType) -> Variable {
        Variable { name: name.to_string(), dtype, shape: Shape::scalar(), value: Mutex::new(None) }
    }

    /// The same variable, made for values of this shape.
    pub fn of_shape(mut self, shape: Shape) -> Variable {
        self.shape = shape;
        self
    }

    /// The shape it was made for: what a first value is checked against.
    pub fn made_for(&self) -> &Shape {
        &self.shape
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type of its values.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The value; an error that says so if there is none yet.
    pub fn read(&self) -> Result<Tensor> {
        self.value.lock().clone().ok_or_else(|| self.uninitialized())
    }

    /// Whether it has a value.
    pub fn is_initialized(&self) -> bool {
        self.value.lock().is_some()
    }

    /// Replaces the value.
    pub fn assign(&self, tensor: Tensor) {
        let _old = self.value.lock().replace(tensor);
    }

    /// Exclusive access to the value, which may be none.
    pub fn lock(&self) -> MutexGuard<'_, Option<Tensor>> {
        self.value.lock()
    }

    /// Changes the value in place; an error if there is none yet.
    pub fn update<R>(&self, change: impl FnOnce(&mut Tensor) -> Result<R>) -> Result<R> {
        match self.value.lock().as_mut() {
            Some(tensor) => change(tensor),
            None => Err(self.uninitialized()),
        }
    }

    /// The error for a variable that is used before it has a value; session managers look for the word.
    pub fn uninitialized(&self) -> status::Error {
        failed_precondition!("Attempting to use uninitialized value {}", self.name)
    }
}
