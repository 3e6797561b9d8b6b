//! Reinterprets the bytes of strings as numbers: DecodeRaw, DecodePaddedRaw.

use graph::{Output, ShapeQuery};
use op::shapes::integers;
use op::{Grad, Kernel, Op, PLAIN, Setup, binary, unary};
use status::{Result, invalid};
use tensor::{Bytes, DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DecodeRaw(bytes: string) -> output: out_type; out_type: {half, float, double, int32, uint16, uint8, \
              int16, int8, int64, complex64, complex128, bool, bfloat16}; little_endian: bool = true",
        shape: raw_shape,
        grad: Grad::Stop,
        kernel: raw_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DecodePaddedRaw(input_bytes: string, fixed_length: int32) -> output: out_type; out_type: {half, float, \
              double, int32, uint16, uint8, int16, int8, int64, bfloat16}; little_endian: bool = true",
        shape: raw_shape,
        grad: Grad::Stop,
        kernel: padded_kernel,
        facts: PLAIN,
    },
];

/// The bytes of each string read as numbers of this type, along a new last axis.
pub fn decode_raw(bytes: &Output, dtype: DType) -> Output {
    bytes.scope().op("DecodeRaw").input(bytes).attr("out_type", dtype).output()
}

fn raw_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    Ok(vec![PartialShape::new(&[dims, &[-1]].concat())])
}

fn raw_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, swap) = (setup.dtype("out_type")?, !setup.bool("little_endian")?);
    Ok(unary(move |_, input| {
        let strings = input.strings()?;
        let length = strings.first().map_or(0, Bytes::len);
        if let Some(index) = strings.iter().position(|string| string.len() != length) {
            return Err(invalid!(
                "DecodeRaw requires input strings to all be the same size, but element {index} has size {length} != {}",
                strings[index].len()
            ));
        }
        if !length.is_multiple_of(dtype.size()) {
            return Err(invalid!(
                "Input to DecodeRaw has length {length} that is not a multiple of {}, the size of {dtype}",
                dtype.size()
            ));
        }
        numbers(dtype, &input, length, swap)
    }))
}

fn padded_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, swap) = (setup.dtype("out_type")?, !setup.bool("little_endian")?);
    Ok(binary(move |_, input, length| {
        if length.shape().rank() != 0 {
            return Err(invalid!("k must be scalar, got shape {}", length.shape()));
        }
        let (length, size) = (integers(&length)?[0], dtype.size() as i64);
        if length % size != 0 {
            return Err(invalid!("fixed_length ({length}) must be a multiple of the size of out_type ({size})"));
        }
        if length <= 0 {
            return Err(invalid!("fixed_length ({length}) must be greater than zero."));
        }
        numbers(dtype, &input, length as usize, swap)
    }))
}

/// The first `length` bytes of each string, zeros where it is shorter, as numbers.
fn numbers(dtype: DType, input: &Tensor, length: usize, swap: bool) -> Result<Tensor> {
    let mut shape: Shape = input.shape().clone();
    shape.dims_mut().push(length / dtype.size());
    shape.checked_elements()?;
    let stored = if dtype == DType::BOOL { DType::U8 } else { dtype };
    let mut out = Tensor::zeros_of(stored, shape)?;
    if length > 0 {
        // The parts of a complex number are numbers of their own.
        let unit = if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() };
        for (row, string) in out.bytes_mut()?.chunks_mut(length).zip(input.strings()?) {
            let count = string.len().min(length);
            row[..count].copy_from_slice(&string[..count]);
            if swap {
                row.chunks_mut(unit).for_each(<[u8]>::reverse);
            }
        }
    }
    if dtype != DType::BOOL {
        return Ok(out);
    }
    let truths: Vec<bool> = out.values::<u8>()?.iter().map(|&byte| byte != 0).collect();
    Tensor::from_slice(out.shape(), &truths)
}
