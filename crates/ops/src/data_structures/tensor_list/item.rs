//! Ops that create lists of tensors, and read or write single elements.

use super::{TensorList, merged};
use crate::data_structures::arithmetic::scalar_variant;
use graph::{Node, Output, Scope, ShapeQuery};
use op::shapes::{integers, scalar, unknown};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, many, outputs, unary};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "EmptyTensorList(element_shape: shape_type, max_num_elements: int32) -> handle: variant; \
              element_dtype: type; shape_type: {int32, int64}",
        shape: scalar,
        grad: Grad::Stop,
        kernel: empty_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListReserve(element_shape: shape_type, num_elements: int32) -> handle: variant; element_dtype: \
              type; shape_type: {int32, int64}",
        shape: scalar,
        grad: Grad::Stop,
        kernel: reserve_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListPushBack(input_handle: variant, tensor: element_dtype) -> output_handle: variant; \
              element_dtype: type",
        shape: scalar,
        grad: Grad::Rule(push_rule),
        kernel: push_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListPopBack(input_handle: variant, element_shape: int32) -> output_handle: variant, tensor: \
              element_dtype; element_dtype: type",
        shape: popped,
        grad: Grad::Rules(pop_rule),
        kernel: pop_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListGetItem(input_handle: variant, index: int32, element_shape: Tshape) -> item: element_dtype; \
              element_dtype: type; Tshape: {int32, int64} = int32",
        shape: unknown,
        grad: Grad::Rule(get_rule),
        kernel: get_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) -> output_handle: \
              variant; element_dtype: type; resize_if_index_out_of_bounds: bool = false",
        shape: scalar,
        grad: Grad::Rule(set_rule),
        kernel: set_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListLength(input_handle: variant) -> length: int32",
        shape: scalar,
        grad: Grad::Stop,
        kernel: length_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListResize(input_handle: variant, size: int32) -> output_handle: variant",
        shape: scalar,
        grad: Grad::Rule(resize_rule),
        kernel: resize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListElementShape(input_handle: variant) -> element_shape: shape_type; shape_type: {int32, \
              int64}",
        shape: unknown,
        grad: Grad::Stop,
        kernel: element_shape_kernel,
        facts: PLAIN,
    },
];

/// An empty list for elements of this type. `element_shape` is their shape, with -1 for unknown dimensions.
pub fn empty_tensor_list(element_shape: &Output, max_num_elements: &Output, dtype: DType) -> Output {
    let op = element_shape.scope().op("EmptyTensorList").input(element_shape).input(max_num_elements);
    op.attr("element_dtype", dtype).output()
}

/// A list of `num_elements` places that are empty yet.
pub fn tensor_list_reserve(element_shape: &Output, num_elements: &Output, dtype: DType) -> Output {
    let op = element_shape.scope().op("TensorListReserve").input(element_shape).input(num_elements);
    op.attr("element_dtype", dtype).output()
}

/// The list with a tensor more.
pub fn tensor_list_push_back(list: &Output, tensor: &Output) -> Output {
    list.scope().op("TensorListPushBack").input(list).input(tensor).output()
}

/// The list without its last tensor, and that tensor.
pub fn tensor_list_pop_back(list: &Output, element_shape: &Output, dtype: DType) -> (Output, Output) {
    let op = list.scope().op("TensorListPopBack").input(list).input(element_shape);
    let node = op.attr("element_dtype", dtype).node();
    (node.output(0), node.output(1))
}

/// The tensor at a place.
pub fn tensor_list_get_item(list: &Output, index: &Output, element_shape: &Output, dtype: DType) -> Output {
    let op = list.scope().op("TensorListGetItem").input(list).input(index).input(element_shape);
    op.attr("element_dtype", dtype).output()
}

/// The list with another tensor at a place.
pub fn tensor_list_set_item(list: &Output, index: &Output, item: &Output) -> Output {
    list.scope().op("TensorListSetItem").input(list).input(index).input(item).output()
}

/// How many places a list has.
pub fn tensor_list_length(list: &Output) -> Output {
    list.scope().op("TensorListLength").input(list).output()
}

/// The list with `size` places.
pub fn tensor_list_resize(list: &Output, size: &Output) -> Output {
    list.scope().op("TensorListResize").input(list).input(size).output()
}

/// The known shape of a list's elements, as integers.
pub fn tensor_list_element_shape(list: &Output) -> Output {
    list.scope().op("TensorListElementShape").input(list).attr("shape_type", DType::I32).output()
}

/// The shape of a tensor, as a node.
pub(crate) fn shape_of(tensor: &Output, scope: &Scope) -> Output {
    scope.op("Shape").input(tensor).output()
}

pub(crate) fn zeros(tensor: &Output, scope: &Scope) -> Output {
    scope.op("ZerosLike").input(tensor).output()
}

fn push_rule(op: &Node, dlist: &Output) -> Result<Grads> {
    let shape = shape_of(&op.input(1), dlist.scope());
    let (list, tensor) = tensor_list_pop_back(dlist, &shape, op.attr_type("element_dtype")?);
    Ok(grads![list, tensor])
}

fn pop_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let Some(scope) = dys.iter().flatten().next().map(|dy| dy.scope().clone()) else {
        return Ok(grads![NoGradient, NoGradient]);
    };
    let dtype = op.attr_type("element_dtype")?;
    let list = match dys.first() {
        Some(Some(list)) => list.clone(),
        _ => {
            let shape = tensor_list_element_shape(&op.output(0).seen_from(&scope));
            let none = scope.op("Const").attr("value", Tensor::scalar(-1i32)).attr("dtype", DType::I32).output();
            empty_tensor_list(&shape, &none, dtype)
        }
    };
    let element = match dys.get(1) {
        Some(Some(element)) => element.clone(),
        _ => zeros(&op.output(1), &scope),
    };
    Ok(grads![tensor_list_push_back(&list, &element), NoGradient])
}

fn get_rule(op: &Node, ditem: &Output) -> Result<Grads> {
    let list = op.input(0).seen_from(ditem.scope());
    let reserved = tensor_list_reserve(&tensor_list_element_shape(&list), &tensor_list_length(&list), ditem.dtype());
    Ok(grads![tensor_list_set_item(&reserved, &op.input(1), ditem), NoGradient, NoGradient])
}

fn set_rule(op: &Node, dlist: &Output) -> Result<Grads> {
    let (index, item) = (op.input(1), op.input(2));
    let mut list = tensor_list_set_item(dlist, &index, &zeros(&item, dlist.scope()));
    if op.attr_bool("resize_if_index_out_of_bounds")? {
        list = tensor_list_resize(&list, &tensor_list_length(&op.input(0).seen_from(dlist.scope())));
    }
    let element = tensor_list_get_item(dlist, &index, &shape_of(&item, dlist.scope()), item.dtype());
    Ok(grads![list, NoGradient, element])
}

fn resize_rule(op: &Node, dlist: &Output) -> Result<Grads> {
    let length = tensor_list_length(&op.input(0).seen_from(dlist.scope()));
    Ok(grads![tensor_list_resize(dlist, &length), NoGradient])
}

fn popped(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::scalar(), PartialShape::unknown()])
}

/// The shape in a tensor of dimensions; a scalar -1 means an unknown rank.
pub(crate) fn partial_shape(tensor: &Tensor) -> Result<PartialShape> {
    let dims = integers(tensor)?;
    match (tensor.shape().rank(), &dims[..]) {
        (0, [-1]) => Ok(PartialShape::unknown()),
        (0, _) => Err(invalid!("The only valid scalar shape tensor is the fully unknown shape specified as -1.")),
        (1, dims) => match dims.iter().find(|&&dim| dim < -1) {
            Some(dim) => Err(invalid!("Dimension {dim} must be >= -1")),
            None => Ok(PartialShape::new(dims)),
        },
        (rank, _) => Err(invalid!("Shape must be at most rank 1 but is rank {rank}")),
    }
}

/// The shape of an element as far as a tensor and the list determine it.
pub(crate) fn element_shape(list: &TensorList, tensor: &Tensor) -> Result<PartialShape> {
    merged(&partial_shape(tensor)?, &list.element_shape)
}

fn number(tensor: &Tensor, refusal: impl FnOnce(&Tensor) -> status::Error) -> Result<i32> {
    if tensor.shape().rank() == 0 { tensor.to_scalar::<i32>() } else { Err(refusal(tensor)) }
}

fn empty_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    Ok(binary(move |_, shape, max_num_elements| {
        let max_num_elements = number(&max_num_elements, |tensor| {
            invalid!("max_num_elements expected to be a scalar but got shape: {}", tensor.shape())
        })?;
        let mut list = TensorList::new(dtype, partial_shape(&shape)?);
        list.max_num_elements = max_num_elements;
        scalar_variant(list)
    })
    .free())
}

fn reserve_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    Ok(binary(move |_, shape, num_elements| {
        let mut list = TensorList::new(dtype, partial_shape(&shape)?);
        let count = number(&num_elements, |tensor| {
            invalid!("The num_elements to reserve must be a tensor size 1, but got {}", tensor.shape())
        })?;
        list.resize(
            usize::try_from(count)
                .map_err(|_| invalid!("The num_elements to reserve must be a non negative number, but got {count}"))?,
        )?;
        scalar_variant(list)
    })
    .free())
}

fn push_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    Ok(binary(move |_, list, tensor| {
        if tensor.dtype() != dtype {
            return Err(invalid!("Invalid data types; list elements {dtype} but tried to append {}", tensor.dtype()));
        }
        let mut list = TensorList::take(list)?;
        if !list.element_shape.accepts(tensor.shape()) {
            return Err(invalid!(
                "Tried to append a tensor with incompatible shape to a list. Op element shape: {} list shape: {}",
                tensor.shape(),
                list.element_shape
            ));
        }
        if list.dtype != dtype {
            return Err(invalid!("Invalid data types; op elements {dtype} but list elements {}", list.dtype));
        }
        let len = list.tensors().len();
        if list.max_num_elements != -1 && len as i64 >= i64::from(list.max_num_elements) {
            return Err(invalid!(
                "Tried to push item into a full list list size: {len} max_num_elements: {}",
                list.max_num_elements
            ));
        }
        list.push(tensor);
        scalar_variant(list)
    })
    .free())
}

fn pop_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    Ok(many(move |_, mut inputs| {
        let mut list = TensorList::take_typed(inputs.tensor(0)?, dtype)?;
        if list.tensors().is_empty() {
            return Err(invalid!("Trying to pop from an empty list."));
        }
        let shape = element_shape(&list, &inputs.tensor(1)?);
        let tensor = match list.pop() {
            Some(tensor) => tensor,
            None => {
                let shape = shape?;
                Tensor::zeros_of(
                    dtype,
                    shape.known().ok_or_else(|| {
                        invalid!(
                            "Trying to read an uninitialized tensor but element_shape is not fully defined.{shape}"
                        )
                    })?,
                )?
            }
        };
        Ok(outputs![scalar_variant(list)?, tensor])
    })
    .free())
}

fn get_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    Ok(many(move |_, mut inputs| {
        let list = TensorList::take_typed(inputs.tensor(0)?, dtype)?;
        let index =
            number(&inputs.tensor(1)?, |tensor| invalid!("Expected argument 1 to be a scalar. Received{tensor:?}"))?;
        let len = list.tensors().len();
        let place = usize::try_from(index).ok().filter(|&place| place < len);
        let place = place.ok_or_else(|| invalid!("Trying to access element {index} in a list with {len} elements."))?;
        if let Some(tensor) = &list.tensors()[place] {
            return Ok(outputs![tensor.clone()]);
        }
        let mut shape = element_shape(&list, &inputs.tensor(2)?)?;
        if shape.known().is_none() {
            shape = list.shape_of_all(shape)?;
        }
        let known = shape.known().ok_or_else(|| {
            invalid!(
                "Trying to read an uninitialized tensor but element_shape is not fully defined: {shape} and no list \
                 element is set."
            )
        })?;
        Ok(outputs![Tensor::zeros_of(dtype, known)?])
    })
    .free())
}

fn set_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, resize) = (setup.dtype("element_dtype")?, setup.bool("resize_if_index_out_of_bounds")?);
    Ok(many(move |_, mut inputs| {
        let mut list = TensorList::take_typed(inputs.tensor(0)?, dtype)?;
        let index =
            number(&inputs.tensor(1)?, |tensor| invalid!("Expected argument 1 to be a scalar. Received{tensor:?}"))?;
        let item = inputs.tensor(2)?;
        if !list.element_shape.accepts(item.shape()) {
            return Err(invalid!(
                "Tried to set a tensor with incompatible shape at a list index. Item element shape: {} list shape: {}",
                item.shape(),
                list.element_shape
            ));
        }
        let len = list.tensors().len();
        let place = usize::try_from(index).ok().filter(|&place| resize || place < len);
        let place = place.ok_or_else(|| invalid!("Trying to modify element {index} in a list with {len} elements."))?;
        if place >= len {
            list.resize(place + 1)?;
        }
        list.set(place, item);
        Ok(outputs![scalar_variant(list)?])
    })
    .free())
}

fn length_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, list| Ok(Tensor::scalar(TensorList::take(list)?.tensors().len() as i32))).free())
}

fn resize_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, list, size| {
        let mut list = TensorList::take(list)?;
        let size = number(&size, |_| invalid!("size must be a scalar"))?;
        list.resize(
            usize::try_from(size)
                .map_err(|_| invalid!("TensorListSlice expects size to be non-negative. Got: {size}"))?,
        )?;
        scalar_variant(list)
    })
    .free())
}

fn element_shape_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wide = setup.dtype("shape_type")? == DType::I64;
    Ok(unary(move |_, list| {
        let shape = TensorList::take(list)?.element_shape;
        Ok(match (shape.dims(), wide) {
            (None, true) => Tensor::scalar(-1i64),
            (None, false) => Tensor::scalar(-1i32),
            (Some(dims), true) => Tensor::vector(dims),
            (Some(dims), false) => Tensor::vector(&dims.iter().map(|&dim| dim as i32).collect::<Vec<_>>()),
        })
    })
    .free())
}
