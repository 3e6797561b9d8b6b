//! Elements of variant tensors: serialised data, or an object of this process.

use crate::Tensor;
use bytes::Bytes;
use status::{Result, internal};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The most variants inside each other: a variant is dropped, encoded and added on one stack with those inside it.
pub const MOST_NESTED: usize = 1000;

/// A value that only some ops understand.
#[derive(Clone)]
pub enum Variant {
    /// Data received from the wire that was not decoded yet.
    Data(Arc<VariantData>),
    /// An object of this process.
    Object(Arc<dyn VariantObject>),
}

/// The serialised form of a variant.
#[derive(Clone, Debug, Default)]
pub struct VariantData {
    /// Selects the decoder, for instance `tensorflow::TensorList`.
    pub type_name: String,
    /// Type-specific metadata.
    pub metadata: Bytes,
    /// The tensors inside.
    pub tensors: Vec<Tensor>,
}

/// An object that can be an element of a variant tensor.
pub trait VariantObject: Any + Send + Sync + fmt::Debug {
    /// The serialised form, or an error if the object cannot leave this process.
    fn encode(&self) -> Result<VariantData>;
    /// The object itself, for downcasting.
    fn as_any(&self) -> &dyn Any;

    /// How many variants are inside each other here, this one included. A type that holds tensors counts those in them
    /// with `nesting_of` when it is made: asking again and again must cost nothing.
    fn nesting(&self) -> usize {
        1
    }

    /// As `nesting`, in the serialised form, which may be flatter.
    fn encoded_nesting(&self) -> usize {
        self.nesting()
    }

    /// A value of the same structure with all numbers zero, used as the initial gradient.
    fn zeros_like(&self) -> Result<Variant> {
        Err(internal!(
            "No unary variant unary_op function found for op ZEROS_LIKE Variant: {self:?} for device type: CPU"
        ))
    }

    /// The sum with another value of this type; `add` adds the tensors inside. Used to accumulate gradients.
    fn add(&self, _other: &Variant, _add: &AddTensors<'_>) -> Result<Variant> {
        Err(internal!("No unary variant binary_op function found for op ADD Variant: {self:?} for device type: CPU"))
    }
}

/// The nesting of a variant that holds these tensors.
pub fn nesting_of<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> usize {
    1 + tensors.into_iter().map(Tensor::nesting).max().unwrap_or(0)
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

    /// How many variants are inside each other here, this one included.
    pub fn nesting(&self) -> usize {
        match self {
            Variant::Data(data) => nesting_of(&data.tensors),
            Variant::Object(object) => object.nesting(),
        }
    }

    /// As `nesting`, in the serialised form.
    pub fn encoded_nesting(&self) -> usize {
        match self {
            Variant::Data(data) => nesting_of(&data.tensors),
            Variant::Object(object) => object.encoded_nesting(),
        }
    }

    /// The serialised form.
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
