//! SerializeSparse and DeserializeSparse: sparse tensors as elements of dense ones, strings or variants.

use super::stack::{Parts, check_parts, check_vectors, rows, stacked};
use graph::Output;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::wire::{tensor_from_bytes, tensor_to_bytes};
use tensor::{DType, PartialShape, Shape, Tensor, Variant, VariantData};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SerializeSparse(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> serialized_sparse: out_type; \
              T: type; out_type: {string, variant} = string",
        shape: |_| Ok(vec![PartialShape::new(&[3])]),
        grad: Grad::Unknown,
        kernel: serialize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SerializeManySparse(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> \
              serialized_sparse: out_type; T: type; out_type: {string, variant} = string",
        shape: |_| Ok(vec![PartialShape::new(&[-1, 3])]),
        grad: Grad::Unknown,
        kernel: serialize_many_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DeserializeSparse(serialized_sparse: Tserialized) -> sparse_indices: int64, sparse_values: dtype, \
              sparse_shape: int64; dtype: type; Tserialized: {string, variant} = string",
        shape: deserialized_shape,
        grad: Grad::Unknown,
        kernel: deserialize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DeserializeManySparse(serialized_sparse: string) -> sparse_indices: int64, sparse_values: dtype, \
              sparse_shape: int64; dtype: type",
        shape: deserialized_shape,
        grad: Grad::Unknown,
        kernel: deserialize_kernel,
        facts: PLAIN,
    },
];

/// A sparse tensor as a vector of three strings.
pub fn serialize_sparse(a: [&Output; 3]) -> Output {
    a[1].scope().op("SerializeSparse").input(a[0]).input(a[1]).input(a[2]).output()
}

/// Sparse tensors from strings or variants, as one with more axes: indices, values, shape.
pub fn deserialize_sparse(serialized: &Output, dtype: DType) -> (Output, Output, Output) {
    let node = serialized.scope().op("DeserializeSparse").input(serialized).attr("dtype", dtype).node();
    (node.output(0), node.output(1), node.output(2))
}

fn deserialized_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)])
}

fn serialize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let variants = setup.dtype("out_type")? == DType::VARIANT;
    Ok(many(move |_, mut inputs| {
        let [indices, values, shape] = [inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?];
        if indices.shape().rank() != 2 {
            return Err(invalid!("Input indices should be a matrix but received shape {}", indices.shape()));
        }
        check_vectors(&values, &shape)?;
        Ok(outputs![packed(&[[indices, values, shape]], Shape::from([3]), variants)?])
    }))
}

fn serialize_many_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let variants = setup.dtype("out_type")? == DType::VARIANT;
    Ok(many(move |_, mut inputs| {
        let [indices, values, shape] = [inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?];
        let rows = rows(&indices, &values, &shape)?;
        Ok(outputs![packed(&rows, Shape::from([rows.len(), 3]), variants)?])
    }))
}

fn packed(rows: &[Parts], shape: Shape, variants: bool) -> Result<Tensor> {
    let all = rows.iter().flatten();
    match variants {
        true => Tensor::from_variants(shape, all.map(boxed).collect()),
        false => Tensor::from_strings(shape, all.map(tensor_to_bytes).collect::<Result<_>>()?),
    }
}

/// Sparse tensors as variants: indices, values and shape of each.
pub(crate) fn boxed_rows(rows: &[[Tensor; 3]], shape: Shape) -> Result<Tensor> {
    packed(rows, shape, true)
}

/// TensorFlow's name of a tensor inside a variant.
const TENSOR: &str = "tensorflow::Tensor";

fn boxed(tensor: &Tensor) -> Variant {
    let data = VariantData { type_name: TENSOR.to_string(), tensors: vec![tensor.clone()], ..VariantData::default() };
    Variant::Data(Arc::new(data))
}

fn deserialize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("dtype")?;
    Ok(many(move |_, inputs| run_deserialize(inputs, dtype)))
}

fn run_deserialize(mut inputs: Inputs, dtype: DType) -> Result<Outputs> {
    let serialized = inputs.tensor(0)?;
    let shape = serialized.shape();
    let Some((&last, outer)) = shape.split_last() else {
        return Err(invalid!("Serialized sparse should have non-zero rank {shape}"));
    };
    if last != 3 {
        return Err(invalid!("Serialized sparse should have 3 as the last dimension {shape}"));
    }
    let parts = unpacked(&serialized)?;
    if parts.is_empty() {
        return Err(invalid!(
            "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension {shape}"
        ));
    }
    for (index, part) in parts.iter().enumerate() {
        check_parts(part, index, dtype)?;
    }
    stacked(&parts, outer, dtype, "shape", 0)
}

fn unpacked(serialized: &Tensor) -> Result<Vec<Parts>> {
    let tensors: Vec<Tensor> = match serialized.dtype() {
        DType::VARIANT => serialized.variants()?.iter().enumerate().map(unboxed).collect::<Result<_>>()?,
        _ => serialized.strings()?.iter().map(tensor_from_bytes).collect::<Result<_>>()?,
    };
    Ok(tensors.chunks_exact(3).map(|part| [part[0].clone(), part[1].clone(), part[2].clone()]).collect())
}

fn unboxed((place, variant): (usize, &Variant)) -> Result<Tensor> {
    let data = variant.encode()?;
    match (data.type_name.as_str(), &data.tensors[..]) {
        (TENSOR, [tensor]) => Ok(tensor.clone()),
        _ => Err(invalid!("Could not get a tensor from serialized_sparse[{}, {}]", place / 3, place % 3)),
    }
}
