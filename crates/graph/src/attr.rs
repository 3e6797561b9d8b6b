//! The value of a node's attribute.

use bytes::Bytes;
use status::Result;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tensor::wire::EncodedTensor;
use tensor::{DType, PartialShape, Tensor};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // each variant is named after its kind
pub enum AttrValue {
    String(Bytes),
    Int(i64),
    Float(f32),
    Bool(bool),
    Type(DType),
    Shape(PartialShape),
    Tensor(TensorAttr),
    List(Box<AttrList>),
    Func(Arc<Function>),
    /// In the body of a function: the value of this attribute of the function.
    Placeholder(String),
    /// The message has the attribute, but no value.
    Nothing,
}

/// A list of attribute values, all of one kind; an empty list has no kind on the wire.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct AttrList {
    pub strings: Vec<Bytes>,
    pub ints: Vec<i64>,
    pub floats: Vec<f32>,
    pub bools: Vec<bool>,
    pub types: Vec<DType>,
    pub shapes: Vec<PartialShape>,
    pub tensors: Vec<TensorAttr>,
    pub funcs: Vec<Arc<Function>>,
}

/// A function by name, with values for its attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// The name in the library.
    pub name: String,
    /// The attributes of the call.
    pub attrs: BTreeMap<String, AttrValue>,
}

/// A tensor in a graph, decoded on demand, so that a graph may contain constants that do not fit into memory.
#[derive(Clone)]
pub struct TensorAttr(Arc<EncodedTensor>);

impl TensorAttr {
    /// The tensor itself.
    pub fn decode(&self) -> Result<Tensor> {
        self.0.decode()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// The encoded message.
    pub fn encoded(&self) -> &EncodedTensor {
        &self.0
    }
}

impl From<EncodedTensor> for TensorAttr {
    fn from(encoded: EncodedTensor) -> TensorAttr {
        TensorAttr(Arc::new(encoded))
    }
}

impl From<Tensor> for TensorAttr {
    fn from(tensor: Tensor) -> TensorAttr {
        TensorAttr(Arc::new(EncodedTensor::from(tensor)))
    }
}

impl PartialEq for TensorAttr {
    fn eq(&self, other: &TensorAttr) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
    }
}

impl fmt::Debug for TensorAttr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<type: {}>", self.dtype())
    }
}

impl AttrList {
    /// The number of values of all kinds.
    pub fn len(&self) -> usize {
        self.strings.len()
            + self.ints.len()
            + self.floats.len()
            + self.bools.len()
            + self.types.len()
            + self.shapes.len()
            + self.tensors.len()
            + self.funcs.len()
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! from {
    ($($rust:ty => |$value:ident| $attr:expr;)*) => {$(
        impl From<$rust> for AttrValue {
            fn from($value: $rust) -> AttrValue { $attr }
        }
    )*};
}

from! {
    &str => |v| AttrValue::String(Bytes::copy_from_slice(v.as_bytes()));
    String => |v| AttrValue::String(Bytes::from(v));
    i64 => |v| AttrValue::Int(v);
    i32 => |v| AttrValue::Int(v.into());
    usize => |v| AttrValue::Int(v as i64);
    f32 => |v| AttrValue::Float(v);
    bool => |v| AttrValue::Bool(v);
    DType => |v| AttrValue::Type(v);
    PartialShape => |v| AttrValue::Shape(v);
    &PartialShape => |v| AttrValue::Shape(v.clone());
    Tensor => |v| AttrValue::Tensor(v.into());
    Function => |v| AttrValue::Func(Arc::new(v));
    AttrList => |v| AttrValue::List(Box::new(v));
    Vec<i64> => |v| AttrValue::from(AttrList { ints: v, ..AttrList::default() });
    &[i64] => |v| AttrValue::from(AttrList { ints: v.to_vec(), ..AttrList::default() });
    Vec<f32> => |v| AttrValue::from(AttrList { floats: v, ..AttrList::default() });
    Vec<DType> => |v| AttrValue::from(AttrList { types: v, ..AttrList::default() });
    Vec<PartialShape> => |v| AttrValue::from(AttrList { shapes: v, ..AttrList::default() });
    Vec<Bytes> => |v| AttrValue::from(AttrList { strings: v, ..AttrList::default() });
}
