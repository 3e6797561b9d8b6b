//! Elements of variant tensors: serialised data, or an object of this process.

use crate::Tensor;
use bytes::Bytes;
use status::{Result, internal};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A value that only some ops understand.
#[derive(Clone)]
pub enum Variant {
    /// What came over the wire and has met no op that understands it yet.
    Data(Arc<VariantData>),
    /// A living object.
    Object(Arc<dyn VariantObject>),
}

/// A variant as it travels.
#[derive(Clone, Debug, Default)]
pub struct VariantData {
    /// Which decoder understands it: `tensorflow::TensorList`.
    pub type_name: String,
    /// Whatever that type puts there.
    pub metadata: Bytes,
    /// The tensors inside.
    pub tensors: Vec<Tensor>,
}

/// An object that can be an element of a variant tensor.
pub trait VariantObject: Any + Send + Sync + fmt::Debug {
    /// The object as it travels, or an error if it cannot leave this process.
    fn encode(&self) -> Result<VariantData>;
    /// Itself, to be downcast by the ops that know its type.
    fn as_any(&self) -> &dyn Any;

    /// A value like this one with zeros for its numbers; gradients start from it.
    fn zeros_like(&self) -> Result<Variant> {
        Err(internal!(
            "No unary variant unary_op function found for op ZEROS_LIKE Variant: {self:?} for device type: CPU"
        ))
    }

    /// The sum with another value of this type, whose tensors `add` adds; gradients are summed with it.
    fn add(&self, _other: &Variant, _add: &AddTensors<'_>) -> Result<Variant> {
        Err(internal!("No unary variant binary_op function found for op ADD Variant: {self:?} for device type: CPU"))
    }
}

/// Adds two tensors of one type and shape.
pub type AddTensors<'a> = dyn Fn(&Tensor, &Tensor) -> Result<Tensor> + 'a;

impl Variant {
    /// The object inside, if it is one of type `T`.
    pub fn object<T: VariantObject>(&self) -> Option<&T> {
        match self {
            Variant::Object(object) => object.as_any().downcast_ref(),
            Variant::Data(_) => None,
        }
    }

    /// The variant as it travels.
    pub fn encode(&self) -> Result<VariantData> {
        match self {
            Variant::Data(data) => Ok((**data).clone()),
            Variant::Object(object) => object.encode(),
        }
    }
}

impl Default for Variant {
    fn default() -> Variant {
        Variant::Data(Arc::default())
    }
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variant::Data(data) => write!(f, "Variant<type: {}>", data.type_name),
            Variant::Object(object) => write!(f, "{object:?}"),
        }
    }
}
