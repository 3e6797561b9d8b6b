//! Variables as collections of meta graphs hold them.

use super::meta_graph::Saver;
use super::wire;
use bytes::Bytes;
use status::Result;

/// The names of the nodes a variable is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariableDef {
    /// The tensor that is its reference or handle.
    pub variable: String,
    /// The op that gives it its initial value.
    pub initializer: String,
    /// The tensor that is its value.
    pub snapshot: String,
    /// The tensor that is its initial value; may be empty.
    pub initial_value: String,
    /// Whether it is a handle.
    pub is_resource: bool,
    /// Whether optimizers change it.
    pub trainable: bool,
    /// Which part of a larger variable it is.
    pub slice: Option<SliceDef>,
}

/// Which part of a larger variable a variable is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceDef {
    /// The name of the larger variable.
    pub full_name: String,
    /// Its shape.
    pub full_shape: Vec<i64>,
    /// Where the part begins.
    pub offset: Vec<i64>,
    /// The shape of the part.
    pub shape: Vec<i64>,
}

impl VariableDef {
    /// The variable in a VariableDef message.
    pub fn read(bytes: Bytes) -> Result<VariableDef> {
        wire::decode_variable(bytes)
    }

    /// The variable as a VariableDef message.
    pub fn to_bytes(&self) -> Bytes {
        wire::encode_variable(self)
    }
}

impl Saver {
    /// The saver in a SaverDef message.
    pub fn read(bytes: Bytes) -> Result<Saver> {
        wire::decode_saver_message(bytes)
    }

    /// The saver as a SaverDef message.
    pub fn to_bytes(&self) -> Bytes {
        wire::encode_saver_message(self)
    }
}
