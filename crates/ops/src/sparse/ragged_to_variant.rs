//! RaggedTensorToVariant and back: a ragged tensor as one variant, or one for each row, so that loops can pass rows of
//! any length.

use super::ragged_variant::{Ragged, check_splits, split_tensor};
use crate::array::args::to_shape;
use crate::array::nodes;
use crate::data_structures::arithmetic::{joined, scalar_variant};
use graph::{AttrValue, Node, Output, ShapeQuery};
use op::shapes::{integers, shape_from_input};
use op::{Grad, Gradient, Grads, Inputs, Kernel, Op, Outputs, PLAIN, Setup, Value, many, outputs};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape, Tensor, Variant};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RaggedTensorToVariant(rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues) -> \
              encoded_ragged: variant; RAGGED_RANK: int >= 0; Tvalues: type; Tsplits: {int32, int64} = int64; \
              batched_input: bool",
        shape: encoded_shape,
        grad: Grad::Rule(to_variant_rule),
        kernel: to_variant_kernel,
        facts: PLAIN,
    },
    Op {
        def: "RaggedTensorFromVariant(encoded_ragged: variant) -> output_nested_splits: output_ragged_rank * Tsplits, \
              output_dense_values: Tvalues; input_ragged_rank: int >= -1; output_ragged_rank: int >= 0; Tvalues: type; \
              Tsplits: {int32, int64} = int64",
        shape: decoded_shapes,
        grad: Grad::Rules(from_variant_rule),
        kernel: from_variant_kernel,
        facts: PLAIN,
    },
    Op {
        def: "RaggedTensorToVariantGradient(encoded_ragged_grad: variant, row_splits: Tsplits, \
              dense_values_shape: int32) -> dense_values_grad: Tvalues; Tvalues: type; Tsplits: {int32, int64} = int64",
        shape: |query| Ok(vec![shape_from_input(query, 2)]),
        grad: Grad::Unknown,
        kernel: gradient_kernel,
        facts: PLAIN,
    },
];

/// A ragged tensor as a scalar variant; `batched`, as a vector of its rows.
pub fn ragged_tensor_to_variant(splits: &[Output], values: &Output, batched: bool) -> Output {
    let builder = values.scope().op("RaggedTensorToVariant").inputs(splits).input(values);
    builder.attr("batched_input", batched).output()
}

/// The splits of `depth` levels and the values of a ragged tensor whose elements are variants of `inner` levels; -1 if
/// that follows from their shape.
pub fn ragged_tensor_from_variant(encoded: &Output, inner: i64, depth: i64, dtype: DType) -> Vec<Output> {
    let builder = encoded.scope().op("RaggedTensorFromVariant").input(encoded).attr("input_ragged_rank", inner);
    builder.attr("output_ragged_rank", depth).attr("Tvalues", dtype).node().outputs()
}

fn encoded_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let batched = matches!(query.attr("batched_input")?, AttrValue::Bool(true));
    if !batched {
        return Ok(vec![PartialShape::scalar()]);
    }
    let first = query.inputs[0].dims().and_then(|dims| dims.first().copied()).filter(|&size| size >= 0);
    let splits = query.inputs.len() > 1;
    Ok(vec![PartialShape::new(&[first.map_or(-1, |size| if splits { (size - 1).max(0) } else { size })])])
}

fn decoded_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let int = |name| match query.attr(name)? {
        AttrValue::Int(value) => Ok(*value),
        other => Err(invalid!("attr '{name}' must be an int, got {other:?}")),
    };
    let (inner, depth) = (int("input_ragged_rank")?, int("output_ragged_rank")?);
    if let (Some(found), true) = (query.inputs[0].rank(), inner >= 0)
        && found as i64 != depth - inner
    {
        return Err(invalid!("Shape must be rank {} but is rank {found}", depth - inner));
    }
    let mut shapes = vec![PartialShape::of_rank(1); query.outputs - 1];
    shapes.push(PartialShape::unknown());
    Ok(shapes)
}

fn to_variant_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let inputs = op.all_inputs();
    let (values, depth) = (&inputs[inputs.len() - 1], inputs.len() - 1);
    let splits = if depth == 0 { nodes::int(dy.scope(), 0) } else { inputs[0].clone() };
    let builder = dy.scope().op("RaggedTensorToVariantGradient").input(dy).input(&splits);
    let gradient = builder.input(&nodes::shape(values, DType::I32)).attr("Tvalues", values.dtype()).output();
    let mut grads: Grads = vec![None; depth];
    grads.push(Some(Gradient::Dense(gradient)));
    Ok(grads)
}

fn from_variant_rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let Some(Some(dy)) = dy.last() else { return Ok(vec![None]) };
    let batched = match op.input(0).shape().rank() {
        Some(rank @ (0 | 1)) => rank == 1,
        None => op.attr_int("output_ragged_rank")? > 0,
        Some(_) => {
            return Err(invalid!(
                "Unable to compute gradient: RaggedTensorToVariant can currently only generate 0D or 1D output."
            ));
        }
    };
    let splits = &op.outputs()[..op.num_outputs() - 1];
    Ok(vec![Some(Gradient::Dense(ragged_tensor_to_variant(splits, dy, batched)))])
}

fn to_variant_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (depth, batched) = (setup.int("RAGGED_RANK")? as usize, setup.bool("batched_input")?);
    if setup.dtype("Tvalues")? == DType::VARIANT {
        return Err(invalid!("RaggedTensorToVariant has no kernel for values of type variant"));
    }
    Ok(many(move |_, mut inputs| {
        let ragged = Ragged { splits: inputs.tensors(0, depth)?, values: inputs.tensor(depth)? };
        ragged.check()?;
        if !batched {
            return Ok(outputs![scalar_variant(ragged)?]);
        }
        let rows: Vec<Variant> = ragged.rows()?.into_iter().map(|row| Variant::Object(Arc::new(row))).collect();
        Ok(outputs![Tensor::from_variants([rows.len()], rows)?])
    }))
}

fn from_variant_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (inner, depth) = (setup.int("input_ragged_rank")?, setup.int("output_ragged_rank")?);
    let (values, splits) = (setup.dtype("Tvalues")?, setup.dtype("Tsplits")?);
    Ok(many(move |_, mut inputs| {
        let encoded = inputs.tensor(0)?;
        let inner = inner_rank(inner, depth, encoded.shape().rank() as i64)?;
        let mut parts = decoded(&encoded, inner, depth as usize, (values, splits))?;
        let whole = match encoded.shape().dims() {
            [] => parts.swap_remove(0),
            _ if depth == 0 => stacked_dense(&parts, values)?,
            sizes => stacked(&parts, sizes, inner, (values, splits))?,
        };
        let tensors = whole.splits.into_iter().chain([whole.values]);
        Ok(tensors.map(Value::Tensor).collect::<Outputs>())
    }))
}

/// The number of ragged levels of the elements: the attribute, or the levels that are missing to the rank of the
/// whole.
fn inner_rank(said: i64, depth: i64, outer: i64) -> Result<usize> {
    let inner = match said {
        -1 if depth == 0 => (depth - outer).max(0),
        -1 => depth - outer,
        said => said,
    };
    if inner < 0 {
        return Err(invalid!(
            "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, found \
             output_ragged_rank: {depth}, encoded_variant.dims(): {outer}, inferred input_ragged_rank: {inner}"
        ));
    }
    if (depth, inner) != (0, 0) && depth != outer + inner {
        return Err(invalid!(
            "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: \
             {depth}, input_ragged_rank: {inner}, encoded_variant.dims(): {outer}."
        ));
    }
    Ok(inner as usize)
}

fn decoded(encoded: &Tensor, inner: usize, depth: usize, types: (DType, DType)) -> Result<Vec<Ragged>> {
    let mut parts = Vec::new();
    for (i, variant) in encoded.variants()?.iter().enumerate() {
        let part = Ragged::from_variant(variant).ok_or_else(|| {
            invalid!("Input Variant element at index {i} doesn't hold a RaggedTensorVariant: {variant:?}")
        })?;
        part.check_kind(i, inner, depth, types)?;
        parts.push(part);
    }
    Ok(parts)
}

/// Elements that are not ragged, under a new first dimension.
fn stacked_dense(parts: &[Ragged], dtype: DType) -> Result<Ragged> {
    let Some(first) = parts.first() else {
        return Ok(Ragged { splits: Vec::new(), values: Tensor::zeros_of(dtype, [0])? });
    };
    let shape = first.values.shape();
    if let Some((i, part)) = parts.iter().enumerate().find(|(_, part)| part.values.shape() != shape) {
        return Err(invalid!(
            "All flat_values must have compatible shapes.  Shape at index 0: {shape}.  Shape at index {i}: {}",
            part.values.shape()
        ));
    }
    let dims = [&[parts.len()], &shape[..]].concat();
    let values: Vec<Tensor> = parts.iter().map(|part| part.values.clone()).collect();
    Ok(Ragged { splits: Vec::new(), values: joined(dtype, Shape::from(dims), &values)? })
}

/// Elements under outer dimensions of these sizes: uniform rows, then a row for each element, then the elements' own
/// rows.
fn stacked(parts: &[Ragged], sizes: &[usize], inner: usize, (dtype, splits): (DType, DType)) -> Result<Ragged> {
    let mut nested = sizes.windows(2).map(|pair| even(pair[0], pair[1], splits)).collect::<Result<Vec<_>>>()?;
    nested.push(split_tensor(&running(parts.iter().map(Ragged::len)), splits));
    for level in 0..inner {
        let mut all = vec![0];
        for part in parts {
            let base = all[all.len() - 1];
            all.extend(integers(&part.splits[level])?.iter().skip(1).map(|split| base + split));
        }
        nested.push(split_tensor(&all, splits));
    }
    let inner_shape = |part: &Ragged| Shape::new(&part.values.shape()[1..]);
    let shape = parts.first().map(inner_shape).unwrap_or_default();
    for (i, part) in parts.iter().enumerate() {
        check_values(i, &parts[0], part, &shape, &inner_shape(part))?;
    }
    let rows = parts.iter().map(|part| part.values.shape()[0]).sum::<usize>();
    let values: Vec<Tensor> = parts.iter().map(|part| part.values.clone()).collect();
    let values = joined(dtype, Shape::from([&[rows], &shape[..]].concat()), &values)?;
    Ok(Ragged { splits: nested, values })
}

fn check_values(i: usize, first: &Ragged, part: &Ragged, expected: &Shape, found: &Shape) -> Result<()> {
    if first.values.shape().rank() != part.values.shape().rank() {
        return Err(invalid!(
            "Rank of values must match for all components; values shape at index 0: {}, values shape at index {i}: {}",
            first.values.shape(),
            part.values.shape()
        ));
    }
    if expected != found {
        return Err(invalid!(
            "All flat_values must have compatible shapes.  Shape at index 0: {expected}.  Shape at index {i}: \
             {found}.  If you are using tf.map_fn, then you may need to specify an explicit fn_output_signature with \
             appropriate ragged_rank, and/or convert output tensors to RaggedTensors."
        ));
    }
    Ok(())
}

/// Splits of `rows` rows of `width` each. A dimension may be of any size where another is 0, so there may be no room.
fn even(rows: usize, width: usize, dtype: DType) -> Result<Tensor> {
    let mut splits = Tensor::zeros_of(dtype, [rows + 1])?;
    let place = |row: usize| row.wrapping_mul(width);
    match dtype {
        DType::I32 => {
            splits.values_mut::<i32>()?.iter_mut().enumerate().for_each(|(i, split)| *split = place(i) as i32)
        }
        _ => splits.values_mut::<i64>()?.iter_mut().enumerate().for_each(|(i, split)| *split = place(i) as i64),
    }
    Ok(splits)
}

fn running(lengths: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut splits = vec![0];
    lengths.for_each(|length| splits.push(splits[splits.len() - 1] + length));
    splits
}

fn gradient_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("Tvalues")?;
    Ok(many(move |_, inputs| run_gradient(inputs, dtype)))
}

/// The values of all elements; one that is missing had no part in the result, so its gradient is zero.
fn run_gradient(mut inputs: Inputs, dtype: DType) -> Result<Outputs> {
    let (encoded, splits, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, to_shape(&inputs.tensor(2)?)?);
    if splits.shape().rank() > 0 {
        check_splits(&splits, None)?;
    }
    let splits = integers(&splits)?;
    let mut parts = Vec::new();
    for (i, variant) in encoded.variants()?.iter().enumerate() {
        let values = match (Ragged::from_variant(variant), splits.get(i..i + 2), shape.is_empty()) {
            (Some(ragged), ..) => ragged.values,
            (None, Some(&[start, end]), false) => {
                let mut piece = shape.clone();
                piece.dims_mut()[0] = (end - start) as usize;
                Tensor::zeros_of(dtype, piece)?
            }
            _ => return Err(invalid!("Invalid ragged splits: there is no row {i} in {splits:?}")),
        };
        parts.push(values);
    }
    if let Some(part) = parts.iter().find(|part| part.dtype() != dtype) {
        return Err(invalid!("Expected values Tensor dtype: {dtype}, found: {}", part.dtype()));
    }
    match parts.len() {
        1 => Ok(outputs![parts.swap_remove(0)]),
        _ => Ok(outputs![joined(dtype, shape, &parts)?]),
    }
}
