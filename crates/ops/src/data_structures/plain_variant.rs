//! A single number as an element of a variant tensor.

use crate::string::number_text::general;
use status::{Result, internal};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tensor::{AddTensors, Variant, VariantData, VariantObject};

/// A number of one of the types that TensorFlow stores in variants.
#[derive(Clone, Copy, PartialEq)]
pub enum Plain {
    /// An int.
    Int(i32),
    /// A float.
    Float(f32),
    /// A double.
    Double(f64),
    /// A bool.
    Bool(bool),
}

impl Plain {
    /// A number as it travelled; none if the data is something else.
    pub fn decode(data: &VariantData) -> Option<Plain> {
        let bytes = &data.metadata[..];
        Some(match data.type_name.as_str() {
            "int" => Plain::Int(i32::from_le_bytes(bytes.try_into().ok()?)),
            "float" => Plain::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
            "double" => Plain::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            "bool" => Plain::Bool(<[u8; 1]>::try_from(bytes).ok()? != [0]),
            _ => return None,
        })
    }

    fn of(variant: &Variant) -> Option<Plain> {
        match variant {
            Variant::Data(data) => Plain::decode(data),
            Variant::Object(_) => variant.object::<Plain>().copied(),
        }
    }

    fn type_name(self) -> &'static str {
        match self {
            Plain::Int(_) => "int",
            Plain::Float(_) => "float",
            Plain::Double(_) => "double",
            Plain::Bool(_) => "bool",
        }
    }
}

impl VariantObject for Plain {
    fn encode(&self) -> Result<VariantData> {
        let metadata = match *self {
            Plain::Int(value) => value.to_le_bytes().to_vec(),
            Plain::Float(value) => value.to_le_bytes().to_vec(),
            Plain::Double(value) => value.to_le_bytes().to_vec(),
            Plain::Bool(value) => vec![u8::from(value)],
        };
        Ok(VariantData { type_name: self.type_name().to_string(), metadata: metadata.into(), tensors: Vec::new() })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn zeros_like(&self) -> Result<Variant> {
        Ok(Variant::Object(Arc::new(match self {
            Plain::Int(_) => Plain::Int(0),
            Plain::Float(_) => Plain::Float(0.0),
            Plain::Double(_) => Plain::Double(0.0),
            Plain::Bool(_) => Plain::Bool(false),
        })))
    }

    fn add(&self, other: &Variant, _: &AddTensors<'_>) -> Result<Variant> {
        Ok(Variant::Object(Arc::new(match (*self, Plain::of(other)) {
            (Plain::Int(a), Some(Plain::Int(b))) => Plain::Int(a.wrapping_add(b)),
            (Plain::Float(a), Some(Plain::Float(b))) => Plain::Float(a + b),
            (Plain::Double(a), Some(Plain::Double(b))) => Plain::Double(a + b),
            (Plain::Bool(a), Some(Plain::Bool(b))) => Plain::Bool(a | b),
            _ => {
                return Err(internal!(
                    "BinaryOpVariants: Variants a and b have different type ids.  Type names: '{}' vs. '{}'",
                    self.type_name(),
                    other.encode()?.type_name
                ));
            }
        })))
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Plain::Int(value) => write!(f, "{value}"),
            Plain::Float(value) => f.write_str(&general(value.into(), 6)),
            Plain::Double(value) => f.write_str(&general(value, 6)),
            Plain::Bool(value) => write!(f, "{}", u8::from(value)),
        }
    }
}
