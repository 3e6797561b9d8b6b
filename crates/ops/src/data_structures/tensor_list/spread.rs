//! Ops that split a tensor into a list: rows, parts, scattered elements.

use super::TensorList;
use super::item::{partial_shape, zeros};
use super::join::{inner_shape, tensor_list_gather, tensor_list_stack};
use crate::data_structures::arithmetic::{row, scalar_variant};
use graph::{Node, Output};
use op::shapes::{scalar, unchanged};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, many, outputs};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape, Tensor, Variant};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) -> output_handle: variant; \
              element_dtype: type; shape_type: {int32, int64}",
        shape: scalar,
        grad: Grad::Rule(from_tensor_rule),
        kernel: from_tensor_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) -> output_handle: \
              variant; element_dtype: type; shape_type: {int32, int64}",
        shape: scalar,
        grad: Grad::Rule(split_rule),
        kernel: split_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListScatter(tensor: element_dtype, indices: int32, element_shape: shape_type) -> output_handle: \
              variant; element_dtype: type; shape_type: {int32, int64}",
        shape: scalar,
        grad: Grad::Rule(scatter_rule),
        kernel: scatter_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: \
              int32) -> output_handle: variant; element_dtype: type; shape_type: {int32, int64}",
        shape: scalar,
        grad: Grad::Rule(scatter_rule),
        kernel: scatter_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListScatterIntoExistingList(input_handle: variant, tensor: element_dtype, indices: int32) -> \
              output_handle: variant; element_dtype: type",
        shape: scalar,
        grad: Grad::Rule(scatter_into_rule),
        kernel: scatter_into_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListPushBackBatch(input_handles: variant, tensor: element_dtype) -> output_handles: variant; \
              element_dtype: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: push_batch_kernel,
        facts: PLAIN,
    },
];

/// The rows of a tensor as a list.
pub fn tensor_list_from_tensor(tensor: &Output, element_shape: &Output) -> Output {
    tensor.scope().op("TensorListFromTensor").input(tensor).input(element_shape).output()
}

/// Splits a tensor into parts with these numbers of rows, as a list.
pub fn tensor_list_split(tensor: &Output, element_shape: &Output, lengths: &Output) -> Output {
    tensor.scope().op("TensorListSplit").input(tensor).input(element_shape).input(lengths).output()
}

/// A list of `num_elements` places (-1: as many as needed) with the rows of a tensor at some of them.
pub fn tensor_list_scatter(tensor: &Output, indices: &Output, element_shape: &Output, num_elements: &Output) -> Output {
    let op = tensor.scope().op("TensorListScatterV2").input(tensor).input(indices).input(element_shape);
    op.input(num_elements).output()
}

fn from_tensor_rule(op: &Node, dlist: &Output) -> Result<Grads> {
    let tensor = op.input(0).seen_from(dlist.scope());
    let rows = tensor.shape().dim(0).map(|rows| rows as i64);
    Ok(grads![tensor_list_stack(dlist, &inner_shape(&tensor), tensor.dtype(), rows), NoGradient])
}

fn split_rule(op: &Node, dlist: &Output) -> Result<Grads> {
    let scope = dlist.scope();
    let tensor = op.input(0).seen_from(scope);
    let constant = |value: Tensor| scope.op("Const").attr("value", value).attr("dtype", DType::I32).output();
    let parts = [constant(Tensor::vector(&[-1i32])), inner_shape(&tensor)];
    let shape = scope.op("ConcatV2").inputs(&parts).input(&constant(Tensor::scalar(0i32))).output();
    let concat = scope.op("TensorListConcatV2").input(dlist).input(&shape).input(&op.input(2));
    Ok(grads![concat.attr("element_dtype", tensor.dtype()).output(), NoGradient, NoGradient])
}

fn scatter_rule(op: &Node, dlist: &Output) -> Result<Grads> {
    let tensor = op.input(0).seen_from(dlist.scope());
    let gathered = tensor_list_gather(dlist, &op.input(1), &inner_shape(&tensor), tensor.dtype());
    let mut all: Grads = vec![None; op.all_inputs().len()];
    all[0] = Some(op::Gradient::Dense(gathered));
    Ok(all)
}

fn scatter_into_rule(op: &Node, dlist: &Output) -> Result<Grads> {
    let scope = dlist.scope();
    let (tensor, indices) = (op.input(1).seen_from(scope), op.input(2));
    let gathered = tensor_list_gather(dlist, &indices, &inner_shape(&tensor), tensor.dtype());
    let into = scope.op("TensorListScatterIntoExistingList").input(dlist);
    let list = into.input(&zeros(&tensor, scope)).input(&indices).output();
    Ok(grads![list, gathered, NoGradient])
}

/// How many rows a tensor has, and the shape of a row.
fn rows_of(tensor: &Tensor) -> Result<(usize, Shape)> {
    match tensor.shape().split_first() {
        Some((&rows, inner)) => Ok((rows, Shape::new(inner))),
        None => Err(invalid!("Tensor must be at least a vector, but saw shape: {}", tensor.shape())),
    }
}

fn checked_shape(op: &str, shape: &Tensor) -> Result<PartialShape> {
    if shape.shape().rank() > 1 {
        return Err(invalid!("{op}: element_shape must be at most rank 1 but has the shape of {}", shape.shape()));
    }
    partial_shape(shape)
}

fn check_rows(element_shape: &PartialShape, inner: &Shape) -> Result<()> {
    match element_shape.accepts(inner) {
        true => Ok(()),
        false => Err(invalid!("Specified a list with shape {element_shape} from a tensor with shape {inner}")),
    }
}

fn from_tensor_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, tensor, shape| {
        let element_shape = checked_shape("TensorListFromTensor", &shape)?;
        let (rows, inner) = rows_of(&tensor)?;
        check_rows(&element_shape, &inner)?;
        let mut list = TensorList::new(tensor.dtype(), element_shape);
        list.resize(rows)?;
        for place in 0..rows {
            list.set(place, row(&tensor, place)?);
        }
        scalar_variant(list)
    }))
}

fn split_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let (tensor, shape, lengths) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let element_shape = partial_shape(&shape)?;
        if element_shape.rank() == Some(0) {
            return Err(invalid!(
                "TensorListSplit requires element_shape to be at least of rank 1, but saw: {element_shape}"
            ));
        }
        let (rows, inner) = rows_of(&tensor)?;
        if element_shape.dims().is_some_and(|dims| !PartialShape::new(&dims[1..]).accepts(&inner)) {
            return Err(invalid!(
                "tensor shape {} is not compatible with element_shape {element_shape}",
                tensor.shape()
            ));
        }
        if lengths.shape().rank() != 1 {
            return Err(invalid!("Expected lengths to be a vector, received shape: {}", lengths.shape()));
        }
        let parts = cut(&tensor, rows, &inner, lengths.values::<i64>()?)?;
        Ok(outputs![scalar_variant(TensorList::of(tensor.dtype(), element_shape, parts))?])
    }))
}

fn cut(tensor: &Tensor, rows: usize, inner: &Shape, lengths: &[i64]) -> Result<Vec<Option<Tensor>>> {
    let (width, mut start) = (inner.elements(), 0usize);
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let count = usize::try_from(length).map_err(|_| invalid!("Invalid value in lengths: {length}"))?;
        let end = start.checked_add(count).filter(|&end| end <= rows).ok_or_else(|| {
            invalid!("Attempting to slice [{start}, {}] from tensor with length {rows}", start.saturating_add(count))
        })?;
        let shape: Shape = std::iter::once(count).chain(inner.iter().copied()).collect();
        parts.push(Some(tensor.slice_elements(start * width, shape)?));
        start = end;
    }
    match start == rows {
        true => Ok(parts),
        false => Err(invalid!("Unused values in tensor. Length of tensor: {rows} Values used: {start}")),
    }
}

fn scatter_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let (tensor, indices, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let element_shape = checked_shape("TensorListScatter", &shape)?;
        let num_elements = if inputs.len() > 3 { count_of(&inputs.tensor(3)?)? } else { -1 };
        let (rows, inner) = rows_of(&tensor)?;
        check_rows(&element_shape, &inner)?;
        let indices = indices.values::<i32>()?;
        if indices.len() != rows {
            return Err(invalid!("Invalid number of rows in input tensor. Expected: {} Actual: {rows}", indices.len()));
        }
        for &index in indices {
            if index < 0 {
                return Err(invalid!("Indices in TensorListScatter must all be non-negative."));
            }
            if num_elements != -1 && index >= num_elements {
                return Err(invalid!(
                    "TensorListScatter: Trying to scatter at index {index} in list with size {num_elements}"
                ));
            }
        }
        let highest = indices.iter().copied().max().unwrap_or(-1);
        let mut list = TensorList::new(tensor.dtype(), element_shape);
        list.resize((i64::from(highest) + 1).max(num_elements.into()).max(0) as usize)?;
        spread(&mut list, &tensor, indices)?;
        Ok(outputs![scalar_variant(list)?])
    }))
}

fn count_of(num_elements: &Tensor) -> Result<i32> {
    if num_elements.shape().rank() != 0 {
        return Err(invalid!("num_elements must be a scalar"));
    }
    match num_elements.to_scalar::<i32>()? {
        count if count < -1 => Err(invalid!("TensorListScatter expects num_elements >= -1, found: {count}")),
        count => Ok(count),
    }
}

/// Scatters rows of a tensor to existing elements.
fn spread(list: &mut TensorList, tensor: &Tensor, indices: &[i32]) -> Result<()> {
    for (i, &index) in indices.iter().enumerate() {
        let element = row(tensor, i)?;
        if !usize::try_from(index).is_ok_and(|place| list.set(place, element)) {
            return Err(invalid!("Trying to scatter at index {index} in a list"));
        }
    }
    Ok(())
}

fn scatter_into_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let mut list = TensorList::take(inputs.tensor(0)?)?;
        let (tensor, indices) = (inputs.tensor(1)?, inputs.tensor(2)?);
        if tensor.dtype() != list.dtype {
            return Err(invalid!(
                "Invalid data types; input tensor type: {} list element_type: {}",
                tensor.dtype(),
                list.dtype
            ));
        }
        let (rows, _) = rows_of(&tensor)?;
        if indices.shape().rank() != 1 {
            return Err(invalid!("Expected indices to be a vector, but received shape: {}", indices.shape()));
        }
        let indices = indices.values::<i32>()?;
        if indices.len() != rows {
            return Err(invalid!("Expected len(indices) == tensor.shape[0], but saw: {} vs. {rows}", indices.len()));
        }
        let needed = (i64::from(indices.iter().copied().max().unwrap_or(-1)) + 1).max(0) as usize;
        if needed > list.tensors().len() {
            list.resize(needed)?;
        }
        spread(&mut list, &tensor, indices)?;
        Ok(outputs![scalar_variant(list)?])
    }))
}

fn push_batch_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    Ok(binary(move |_, lists, tensor| {
        if tensor.dtype() != dtype {
            return Err(invalid!("Invalid data types; list elements {dtype} but tried to append {}", tensor.dtype()));
        }
        let Some((&rows, inner)) = tensor.shape().split_first() else {
            return Err(invalid!("Expected tensor to be at least a vector, but saw shape: {}", tensor.shape()));
        };
        if lists.shape().rank() != 1 {
            return Err(invalid!("Expected input_handles to be a vector, but saw shape: {}", lists.shape()));
        }
        if lists.elements() != rows {
            return Err(invalid!(
                "Expected tensor.shape[0] == input_handles.size, but saw {rows} vs. {}",
                lists.elements()
            ));
        }
        let inner = Shape::new(inner);
        let longer: Result<Vec<Variant>> =
            lists.variants()?.iter().enumerate().map(|(i, list)| pushed(list, i, row(&tensor, i)?, &inner)).collect();
        Tensor::from_variants([rows], longer?)
    }))
}

fn pushed(variant: &Variant, i: usize, element: Tensor, inner: &Shape) -> Result<Variant> {
    let mut list = TensorList::from_variant(variant)
        .ok_or_else(|| invalid!("Input handle at index {i} is not a list. Saw: '{variant:?}'"))??;
    if !list.element_shape.accepts(inner) {
        return Err(invalid!(
            "Tried to append a tensor with incompatible shape to a list at index {i}. Op element shape: {inner} list \
             shape: {}",
            list.element_shape
        ));
    }
    if list.dtype != element.dtype() {
        return Err(invalid!(
            "Invalid data type at index {i}; op elements {} but list elements {}",
            element.dtype(),
            list.dtype
        ));
    }
    list.push(element);
    Ok(Variant::Object(Arc::new(list)))
}
