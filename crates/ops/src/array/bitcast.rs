//! Bitcast: the same bytes as another type.

use graph::{AttrValue, Output, ShapeQuery};
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, internal, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Bitcast(input: T) -> output: type; T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, \
          uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}; type: {bfloat16, half, \
          float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, \
          quint8, qint16, quint16, qint32}",
    shape: bitcast_shape,
    grad: Grad::Unknown,
    kernel: bitcast_kernel,
    facts: PLAIN,
}];

/// The bytes of `input` read as another type. Narrower elements add an axis, wider ones use the last one up.
pub fn bitcast(input: &Output, dtype: DType) -> Output {
    input.scope().op("Bitcast").input(input).attr("type", dtype).output()
}

fn bitcast_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (AttrValue::Type(from), AttrValue::Type(to)) = (query.attr("T")?, query.attr("type")?) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let mut dims = dims.to_vec();
    if from.size() > to.size() {
        dims.push((from.size() / to.size().max(1)) as i64);
    } else if from.size() < to.size() {
        let Some(last) = dims.pop() else {
            return Err(invalid!("Cannot bitcast from {from} to {to} a scalar: it needs more than one element"));
        };
        if last >= 0 && last as usize * from.size() != to.size() {
            return Err(invalid!("Cannot bitcast due to shape. {last} does not match {}", to.size() / from.size()));
        }
    }
    Ok(vec![PartialShape::new(&dims)])
}

fn bitcast_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (from, to) = (setup.dtype("T")?, setup.dtype("type")?);
    if from.size() == 0 || to.size() == 0 {
        return Err(setup.no_kernel());
    }
    Ok(unary(move |_, input| run_bitcast(input, to)).free())
}

fn run_bitcast(input: Tensor, to: DType) -> Result<Tensor> {
    let (from, mut shape) = (input.dtype(), input.shape().clone());
    if from.size() > to.size() {
        shape.dims_mut().push(from.size() / to.size());
    } else if from.size() < to.size() {
        let ratio = to.size() / from.size();
        if shape.last() != Some(&ratio) {
            return Err(invalid!("Cannot bitcast from {} to {}", from.number(), to.number()));
        }
        shape.dims_mut().pop();
    }
    let buffer = input.buffer().ok_or_else(|| internal!("elements of type {from} have no raw bytes"))?;
    let bytes = buffer.bytes();
    // A view into another tensor may lie where the wider type cannot.
    if (bytes.as_ptr() as usize).is_multiple_of(to.size()) {
        return Tensor::from_buffer(to, shape, buffer.clone());
    }
    let mut out = Tensor::scratch_of(to, shape)?;
    out.bytes_mut()?.copy_from_slice(bytes);
    Ok(out)
}
