//! Variables in the collections of meta graphs.

use super::meta_graph::Saver;
use super::wire;
use bytes::Bytes;
use status::Result;

/// The names of the nodes of a variable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariableDef {
    /// The tensor with its reference or handle.
    pub variable: String,
    /// The op that initializes it.
    pub initializer: String,
    /// The tensor with its value.
    pub snapshot: String,
    /// The tensor with its initial value; may be empty.
    pub initial_value: String,
    /// True if it is a resource variable.
    pub is_resource: bool,
    /// True if optimizers train it.
    pub trainable: bool,
    /// The part of a larger variable that it is, if it is one.
    pub slice: Option<SliceDef>,
}

/// The part of a partitioned variable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceDef {
    /// The name of the partitioned variable.
    pub full_name: String,
    /// The shape of the partitioned variable.
    pub full_shape: Vec<i64>,
    /// The offset of the part.
    pub offset: Vec<i64>,
    /// The shape of the part.
    pub shape: Vec<i64>,
}

impl VariableDef {
    /// Decodes a VariableDef message.
    pub fn read(bytes: Bytes) -> Result<VariableDef> {
        wire::decode_variable(bytes)
    }

    /// Encodes a VariableDef message.
    pub fn to_bytes(&self) -> Bytes {
        wire::encode_variable(self)
    }
}

impl Saver {
    /// Decodes a SaverDef message.
    pub fn read(bytes: Bytes) -> Result<Saver> {
        wire::decode_saver_message(bytes)
    }

    /// Encodes a SaverDef message.
    pub fn to_bytes(&self) -> Bytes {
        wire::encode_saver_message(self)
    }
}
