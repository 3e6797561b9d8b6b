//! Serialized tensors: SerializeTensor, ParseTensor.

use crate::string::base64::encoded;
use graph::{Output, ShapeQuery};
use op::shapes::{scalar, unknown};
use op::{Kernel, Op, Setup, unary};
use status::{Result, invalid};
use tensor::wire::{tensor_from_bytes, tensor_to_spelled_bytes};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "SerializeTensor(tensor: T) -> serialized: string; T: type", scalar, serialize_kernel;
    "ParseTensor(serialized: string) -> output: out_type; out_type: type", parsed_shape, parse_kernel;
};

/// A tensor as a TensorProto message.
pub fn serialize_tensor(tensor: &Output) -> Output {
    tensor.scope().op("SerializeTensor").input(tensor).output()
}

/// The tensor in a TensorProto message.
pub fn parse_tensor(serialized: &Output, dtype: DType) -> Output {
    serialized.scope().op("ParseTensor").input(serialized).attr("out_type", dtype).output()
}

fn parsed_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    query.inputs[0].merge(&PartialShape::scalar())?;
    unknown(query)
}

fn serialize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("T")? {
        DType::STRING | DType::VARIANT | DType::RESOURCE => {}
        dtype => for_plain!(setup, dtype, _T => Ok(()))?,
    }
    Ok(unary(|_, tensor| Ok(Tensor::string(tensor_to_spelled_bytes(&tensor)?))))
}

fn parse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("out_type")?;
    Ok(unary(move |_, serialized| {
        if serialized.shape().rank() != 0 {
            return Err(invalid!("Expected `serialized` to be a scalar, got shape: {}", serialized.shape()));
        }
        let bytes = serialized.to_string_scalar()?;
        let tensor = tensor_from_bytes(&bytes).map_err(|_| unreadable(&bytes))?;
        if tensor.dtype() != dtype {
            return Err(invalid!("Type mismatch between parsed tensor ({}) and dtype ({dtype})", tensor.dtype()));
        }
        Ok(tensor)
    }))
}

/// The error for bytes that are not a serialized tensor; it shows them in base64.
fn unreadable(bytes: &[u8]) -> status::Error {
    let letters = String::from_utf8_lossy(&encoded(bytes, true)).replace('-', "+").replace('_', "/");
    invalid!("Could not parse `serialized` as TensorProto, base64: {letters}")
}
