//! The kernels of the ops on tensor arrays.

use super::slots::TensorArray;
use crate::data_structures::arithmetic::{joined, row};
use crate::data_structures::step_resource::{announce, find, key_of};
use graph::AttrValue;
use op::shapes::integers;
use op::{Ctx, Inputs, Kernel, Resource, Setup, many, outputs};
use status::{Result, invalid, unimplemented_op};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensor::{DType, PartialShape, Shape, Tensor};

const KIND: &str = "_tensor_arrays";
const GRADIENTS: &str = "_tensor_array_grads";
const HANDLE: &str = "Tensor array handle must be 2-element vector";

fn find_array(ctx: &Ctx<'_>, inputs: &mut Inputs) -> Result<Arc<TensorArray>> {
    find(ctx, inputs, HANDLE)
}

pub(crate) fn make_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (dtype, element_shape) = (setup.dtype("dtype")?, setup.shape("element_shape")?);
    let (dynamic_size, clear_after_read) = (setup.bool("dynamic_size")?, setup.bool("clear_after_read")?);
    let identical_element_shapes = setup.find("identical_element_shapes") == Some(&AttrValue::Bool(true));
    let name = match setup.string("tensor_array_name")? {
        name if name.is_empty() => setup.name().to_string(),
        name => name,
    };
    let (forms, device) = (setup.output_types().to_vec(), setup.device().to_string());
    Ok(many(move |ctx, mut inputs| {
        let size = size_of(&inputs.tensor(0)?)?;
        let name = format!("{name}_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut array = TensorArray::new(name.clone(), dtype, size, element_shape.clone(), dynamic_size);
        array.clear_after_read = clear_after_read;
        array.identical_element_shapes = identical_element_shapes;
        ctx.step_resources().create("", &format!("{KIND}{name}"), Arc::new(array))?;
        create_array(ctx, &forms, &device, KIND, &name)
    })
    .free())
}

/// The handle of a new array and, in the form of today, its flow.
fn create_array(ctx: &Ctx<'_>, forms: &[DType], device: &str, kind: &str, name: &str) -> Result<op::Outputs> {
    let mut outputs = outputs![announce::<TensorArray>(ctx, forms[0], device, kind, name)?];
    if forms.len() > 1 {
        outputs.push(Tensor::scalar(0f32).into());
    }
    Ok(outputs)
}

fn size_of(size: &Tensor) -> Result<usize> {
    if size.shape().rank() != 0 {
        return Err(invalid!("TensorArray size must be scalar, but had shape: {}", size.shape()));
    }
    usize::try_from(size.to_scalar::<i32>()?).map_err(|_| invalid!("Size should be >= 0."))
}

pub(crate) fn gradients_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let source = setup.string("source")?;
    let (forms, device) = (setup.output_types().to_vec(), setup.device().to_string());
    let with_shape = setup.input_types().len() > 2;
    Ok(many(move |ctx, mut inputs| {
        let key = key_of::<TensorArray>(&inputs.tensor(0)?, HANDLE)?;
        let Some(forward) = key.strip_prefix(KIND) else { return Err(invalid!("Wrong input container. {key}")) };
        let prepend = if with_shape { prefix_of(&inputs.tensor(2)?)? } else { Shape::scalar() };
        let name = format!("{forward}@{source}");
        let array = ctx.step_resources().find::<TensorArray>("", &key, TensorArray::TYPE_NAME)?;
        let make = || array.gradients(name.clone(), &prepend, with_shape);
        ctx.step_resources().get_or_create("", &format!("{GRADIENTS}{name}"), make)?;
        create_array(ctx, &forms, &device, GRADIENTS, &name)
    })
    .free())
}

fn prefix_of(shape: &Tensor) -> Result<Shape> {
    if shape.shape().rank() != 1 {
        return Err(invalid!("shape must be a vector of {{int32,int64}}, got shape {}", shape.shape()));
    }
    Shape::checked(&integers(shape)?)
}

fn index_of(index: &Tensor) -> Result<i32> {
    match index.shape().rank() {
        0 => index.to_scalar::<i32>(),
        _ => Err(invalid!("TensorArray index must be scalar, but had shape: {}", index.shape())),
    }
}

fn indices_of(indices: &Tensor) -> Result<&[i32]> {
    match indices.shape().rank() {
        1 => indices.values::<i32>(),
        _ => Err(invalid!("Expected indices to be a vector, but received shape: {}", indices.shape())),
    }
}

fn check_written(array: &TensorArray, dtype: DType) -> Result<()> {
    match array.dtype == dtype {
        true => Ok(()),
        false => Err(invalid!("TensorArray dtype is {} but Op is trying to write dtype {dtype}.", array.dtype)),
    }
}

fn check_read(array: &TensorArray, dtype: DType) -> Result<()> {
    match array.dtype == dtype {
        true => Ok(()),
        false => Err(invalid!("TensorArray dtype is {} but Op requested dtype {dtype}.", array.dtype)),
    }
}

pub(crate) fn write_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let index = index_of(&inputs.tensor(1)?)?;
        let (array, value) = (find_array(ctx, &mut inputs)?, inputs.tensor(2)?);
        check_written(&array, value.dtype())?;
        array.write(ctx, [(index, value)])?;
        Ok(outputs![inputs.tensor(3)?])
    })
    .free())
}

pub(crate) fn read_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("dtype")?;
    Ok(many(move |ctx, mut inputs| {
        let index = index_of(&inputs.tensor(1)?)?;
        let array = find_array(ctx, &mut inputs)?;
        check_read(&array, dtype)?;
        Ok(array.read([index])?.into_iter().map(Into::into).collect())
    })
    .free())
}

pub(crate) fn gather_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, element_shape) = (setup.dtype("dtype")?, setup.shape("element_shape")?);
    Ok(many(move |ctx, mut inputs| {
        let array = find_array(ctx, &mut inputs)?;
        check_read(&array, dtype)?;
        array.merge_element_shape(&element_shape)?;
        let indices = inputs.tensor(1)?;
        let values = array.read(indices_of(&indices)?.iter().copied())?;
        Ok(outputs![stacked(dtype, &element_shape, &values)?])
    })
    .heavy())
}

/// As gather, for all elements.
pub(crate) fn pack_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, element_shape) = (setup.dtype("dtype")?, setup.shape("element_shape")?);
    Ok(many(move |ctx, mut inputs| {
        let array = find_array(ctx, &mut inputs)?;
        check_read(&array, dtype)?;
        array.merge_element_shape(&element_shape)?;
        let values = array.read(0..i32::try_from(array.concat_size()?).unwrap_or(i32::MAX))?;
        Ok(outputs![stacked(dtype, &element_shape, &values)?])
    })
    .heavy())
}

/// Tensors of one shape as rows of one.
fn stacked(dtype: DType, element_shape: &PartialShape, values: &[Tensor]) -> Result<Tensor> {
    let Some(first) = values.first() else {
        let shape = element_shape.known().ok_or_else(|| {
            unimplemented_op!(
                "TensorArray has size zero, but element shape {element_shape} is not fully defined. Currently only \
                 static shapes are supported when packing zero-size TensorArrays."
            )
        })?;
        return Tensor::zeros_of(dtype, with_rows(0, &shape));
    };
    let shape = first.shape();
    if !element_shape.accepts(shape) {
        return Err(invalid!(
            "TensorArray was passed element_shape {element_shape} which does not match the Tensor at index 0: {shape}"
        ));
    }
    if let Some(i) = values.iter().position(|value| value.shape() != shape) {
        return Err(invalid!(
            "TensorArray has inconsistent shapes.  Index 0 has shape: {shape} but index {i} has shape: {}",
            values[i].shape()
        ));
    }
    joined(dtype, with_rows(values.len(), shape), values)
}

fn with_rows(rows: usize, shape: &Shape) -> Shape {
    std::iter::once(rows).chain(shape.iter().copied()).collect()
}

pub(crate) fn scatter_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let array = find_array(ctx, &mut inputs)?;
        let (indices, value) = (inputs.tensor(1)?, inputs.tensor(2)?);
        check_written(&array, value.dtype())?;
        let rows = rows_of(&value)?;
        let indices = indices_of(&indices)?;
        if indices.len() != rows {
            return Err(invalid!("Expected len(indices) == values.shape[0], but saw: {} vs. {rows}", indices.len()));
        }
        let (highest, size) = (indices.iter().copied().max().unwrap_or(-1), array.size()?);
        if !array.has_dynamic_size() && usize::try_from(highest).is_ok_and(|highest| highest >= size) {
            return Err(invalid!("Max scatter index must be < array size ({highest} vs. {size})"));
        }
        let values: Result<Vec<Tensor>> = (0..rows).map(|i| row(&value, i)).collect();
        array.write(ctx, indices.iter().copied().zip(values?))?;
        Ok(outputs![inputs.tensor(3)?])
    }))
}

fn rows_of(value: &Tensor) -> Result<usize> {
    let shape = value.shape();
    let rows = shape.first().copied();
    rows.ok_or_else(|| invalid!("Input value for unpack must be at least a vector but received shape: {shape}"))
}

/// As scatter, for all elements in order.
pub(crate) fn unpack_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let (array, value) = (find_array(ctx, &mut inputs)?, inputs.tensor(1)?);
        check_written(&array, value.dtype())?;
        let (rows, size) = (rows_of(&value)?, array.size()?);
        let size = if array.has_dynamic_size() { size.max(rows) } else { size };
        if size != rows {
            return Err(invalid!("Input value must have first dimension equal to the array size ({rows} vs. {size})"));
        }
        array.mark_size(size)?;
        let values: Result<Vec<Tensor>> = (0..rows).map(|i| row(&value, i)).collect();
        array.write(ctx, (0..).zip(values?))?;
        Ok(outputs![inputs.tensor(2)?])
    }))
}

pub(crate) fn concat_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, except0) = (setup.dtype("dtype")?, setup.shape("element_shape_except0")?);
    Ok(many(move |ctx, mut inputs| {
        let array = find_array(ctx, &mut inputs)?;
        check_read(&array, dtype)?;
        let size = i32::try_from(array.concat_size()?).unwrap_or(i32::MAX);
        if size == 0 {
            let shape = except0.known().ok_or_else(|| {
                unimplemented_op!(
                    "TensorArray has size zero, but element_shape_except0 {except0} is not fully defined. Currently \
                     only static shapes are supported when concatenating zero-size TensorArrays."
                )
            })?;
            return Ok(outputs![Tensor::zeros_of(dtype, with_rows(0, &shape))?, Tensor::vector::<i64>(&[])]);
        }
        let values = array.read(0..size)?;
        let (shape, lengths) = concatenated(&values, &except0)?;
        Ok(outputs![joined(dtype, shape, &values)?, Tensor::vector(&lengths)])
    })
    .heavy())
}

/// The shape of tensors put one after the other, and how many rows each has.
fn concatenated(values: &[Tensor], except0: &PartialShape) -> Result<(Shape, Vec<i64>)> {
    let mut lengths = Vec::with_capacity(values.len());
    let mut inner: Option<Shape> = None;
    for (i, value) in values.iter().enumerate() {
        let Some((&rows, rest)) = value.shape().split_first() else {
            return Err(invalid!(
                "Concat saw a scalar shape at index {i} but requires at least vectors.  Did you mean to call pack?"
            ));
        };
        let rest = Shape::new(rest);
        lengths.push(rows as i64);
        match &inner {
            None if !except0.accepts(&rest) => {
                return Err(invalid!(
                    "TensorArray was passed element_shape_except0 {except0} but index 0 has (excepting dimension 0) \
                     shape: {rest} which does not match."
                ));
            }
            None => inner = Some(rest),
            Some(first) if *first != rest => {
                return Err(invalid!(
                    "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: {first} but \
                     index {i} has (excepting dimension 0) shape: {rest}"
                ));
            }
            Some(_) => {}
        }
    }
    let rows = lengths.iter().sum::<i64>();
    Ok((with_rows(rows as usize, &inner.unwrap_or_default()), lengths))
}

pub(crate) fn split_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let array = find_array(ctx, &mut inputs)?;
        let (value, lengths) = (inputs.tensor(1)?, inputs.tensor(2)?);
        if lengths.shape().rank() != 1 {
            return Err(invalid!("Expected lengths to be a vector, received shape: {}", lengths.shape()));
        }
        let parts = parts_of(&value, lengths.values::<i64>()?)?;
        let (count, size) = (parts.len(), array.size()?);
        let size = if array.has_dynamic_size() { size.max(count) } else { size };
        if size != count {
            return Err(invalid!(
                "TensorArray's size is not equal to the size of lengths ({size} vs. {count}), and the TensorArray is \
                 not marked as dynamically resizeable"
            ));
        }
        check_written(&array, value.dtype())?;
        array.mark_size(size)?;
        array.write(ctx, (0..).zip(parts))?;
        Ok(outputs![inputs.tensor(3)?])
    }))
}

/// Splits a tensor into parts with these numbers of rows.
fn parts_of(value: &Tensor, lengths: &[i64]) -> Result<Vec<Tensor>> {
    let Some((&rows, rest)) = value.shape().split_first() else {
        return Err(invalid!("Expected value to be at least a vector, but received shape: {}", value.shape()));
    };
    let total = lengths.iter().try_fold(0i64, |sum, &length| sum.checked_add(length));
    if total != Some(rows as i64) || lengths.iter().any(|&length| length < 0) {
        return Err(invalid!(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {} and value's shape is: {}",
            total.unwrap_or(-1),
            value.shape()
        ));
    }
    let width: usize = rest.iter().product();
    let mut start = 0;
    let cut = lengths.iter().map(|&length| {
        let part = value.slice_elements(start * width, with_rows(length as usize, &Shape::new(rest)));
        start += length as usize;
        part
    });
    cut.collect()
}

pub(crate) fn size_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| Ok(outputs![Tensor::scalar(find_array(ctx, &mut inputs)?.size()? as i32)])).free())
}

pub(crate) fn close_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        find_array(ctx, &mut inputs)?.close();
        Ok(outputs![])
    }))
}
