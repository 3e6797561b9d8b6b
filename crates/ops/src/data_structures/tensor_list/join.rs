//! Ops that combine a list of tensors into one tensor: stack, gather, concat.

use super::item::{element_shape, shape_of, tensor_list_element_shape, tensor_list_length, tensor_list_reserve};
use super::{TensorList, merged};
use crate::data_structures::arithmetic::{joined, scalar_variant};
use graph::{AttrValue, Node, Output, ShapeQuery};
use op::shapes::{scalar, shape_from_input, unknown};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor, Variant};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TensorListStack(input_handle: variant, element_shape: int32) -> tensor: element_dtype; element_dtype: \
              type; num_elements: int = -1",
        shape: stacked,
        grad: Grad::Rule(stack_rule),
        kernel: stack_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListGather(input_handle: variant, indices: int32, element_shape: int32) -> values: \
              element_dtype; element_dtype: type",
        shape: gathered,
        grad: Grad::Rule(gather_rule),
        kernel: gather_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListConcat(input_handle: variant) -> tensor: element_dtype, lengths: int64; element_dtype: \
              type; element_shape: shape = ?",
        shape: concatenated,
        grad: Grad::Rules(concat_rule),
        kernel: concat_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListConcatV2(input_handle: variant, element_shape: shape_type, leading_dims: int64) -> tensor: \
              element_dtype, lengths: int64; element_dtype: type; shape_type: {int32, int64}",
        shape: concatenated,
        grad: Grad::Rules(concat_rule),
        kernel: concat_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorListConcatLists(input_a: variant, input_b: variant) -> output: variant; element_dtype: type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: concat_lists_kernel,
        facts: PLAIN,
    },
];

/// The tensors of a list as rows of one.
pub fn tensor_list_stack(list: &Output, element_shape: &Output, dtype: DType, num_elements: Option<i64>) -> Output {
    let op = list.scope().op("TensorListStack").input(list).input(element_shape).attr("element_dtype", dtype);
    op.attr("num_elements", num_elements.unwrap_or(-1)).output()
}

/// The tensors at some places as rows of one.
pub fn tensor_list_gather(list: &Output, indices: &Output, element_shape: &Output, dtype: DType) -> Output {
    let op = list.scope().op("TensorListGather").input(list).input(indices).input(element_shape);
    op.attr("element_dtype", dtype).output()
}

fn stack_rule(_: &Node, dy: &Output) -> Result<Grads> {
    let scope = dy.scope();
    let shape = inner_shape(dy);
    let list = scope.op("TensorListFromTensor").input(dy).input(&shape).output();
    Ok(grads![list, NoGradient])
}

/// The shape of a tensor without its first dimension, as a node.
pub(crate) fn inner_shape(tensor: &Output) -> Output {
    let scope = tensor.scope();
    let int = |value: i32| {
        let value = Tensor::vector(&[value]);
        scope.op("Const").attr("value", value).attr("dtype", DType::I32).output()
    };
    scope.op("Slice").input(&shape_of(tensor, scope)).input(&int(1)).input(&int(-1)).output()
}

fn gather_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let list = op.input(0).seen_from(dy.scope());
    let reserved = tensor_list_reserve(&tensor_list_element_shape(&list), &tensor_list_length(&list), dy.dtype());
    let scatter = dy.scope().op("TensorListScatterIntoExistingList").input(&reserved).input(dy).input(&op.input(1));
    Ok(grads![scatter.output(), NoGradient, NoGradient])
}

fn concat_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let mut all: Grads = vec![None; op.all_inputs().len()];
    if let Some(Some(dy)) = dys.first() {
        let shape = tensor_list_element_shape(&op.input(0).seen_from(dy.scope()));
        let split = dy.scope().op("TensorListSplit").input(dy).input(&shape).input(&op.output(1)).output();
        all[0] = Some(op::Gradient::Dense(split));
    }
    Ok(all)
}

fn stacked(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rows = match query.attr("num_elements")? {
        AttrValue::Int(rows) => *rows,
        _ => -1,
    };
    Ok(vec![rows_of(query, 1, rows)])
}

fn gathered(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rows = query.inputs[1].dim(0).map_or(-1, |rows| rows as i64);
    Ok(vec![rows_of(query, 2, rows)])
}

/// The shape of a number of rows, each of the shape in an input.
fn rows_of(query: &ShapeQuery<'_>, input: usize, rows: i64) -> PartialShape {
    let whole = query.inputs[input].rank() == Some(0);
    match shape_from_input(query, input).dims() {
        Some(dims) if !whole => PartialShape::new(&[&[rows], dims].concat()),
        _ => PartialShape::unknown(),
    }
}

fn concatenated(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![unknown(query)?[0].clone(), PartialShape::of_rank(1)])
}

fn with_rows(rows: usize, shape: &Shape) -> Shape {
    std::iter::once(rows).chain(shape.iter().copied()).collect()
}

/// These elements as rows of one tensor, zeros for empty places.
fn rows(dtype: DType, shape: Shape, elements: &[&Option<Tensor>]) -> Result<Tensor> {
    let whole = with_rows(elements.len(), &shape);
    if whole.checked_elements()? == 0 {
        return Tensor::zeros_of(dtype, whole);
    }
    let zeros = if elements.iter().any(|element| element.is_none()) {
        Tensor::zeros_of(dtype, &shape)?
    } else {
        Tensor::scalar(0f32)
    };
    let parts: Vec<Tensor> = elements.iter().map(|element| element.as_ref().unwrap_or(&zeros).clone()).collect();
    if let Some(part) = parts.iter().find(|part| *part.shape() != shape) {
        return Err(invalid!("PartialTensorShape: Incompatible shapes during merge: {shape} vs. {}", part.shape()));
    }
    joined(dtype, whole, &parts)
}

fn stack_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, num_elements) = (setup.dtype("element_dtype")?, setup.int("num_elements")?);
    Ok(binary(move |_, list, shape| {
        let list = TensorList::take_typed(list, dtype)?;
        let len = list.tensors().len();
        if num_elements != -1 && len as i64 != num_elements {
            return Err(invalid!(
                "Operation expected a list with {num_elements} elements but got a list with {len} elements."
            ));
        }
        let mut shape = element_shape(&list, &shape)?;
        if shape.known().is_none() && len == 0 {
            return Err(invalid!(
                "Tried to stack elements of an empty list with non-fully-defined element_shape: {shape}"
            ));
        }
        if list.element_shape.known().is_none() {
            shape = list.shape_of_all(shape)?;
        }
        let known = shape.known().ok_or_else(|| {
            invalid!(
                "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined \
                 element_shape: {shape}"
            )
        })?;
        rows(dtype, known, &list.tensors().iter().collect::<Vec<_>>())
    })
    .heavy())
}

fn gather_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    Ok(many(move |_, mut inputs| {
        let list = TensorList::take_typed(inputs.tensor(0)?, dtype)?;
        let (indices, shape) = (inputs.tensor(1)?, inputs.tensor(2)?);
        let mut shape = element_shape(&list, &shape)?;
        let indices = indices.values::<i32>()?;
        if shape.known().is_none() && indices.is_empty() {
            return Err(invalid!("Tried to gather 0-elements from a list with non-fully-defined shape: {shape}"));
        }
        let elements = indices.iter().map(|&index| place(&list, index)).collect::<Result<Vec<_>>>()?;
        if list.element_shape.known().is_none() {
            for tensor in elements.iter().copied().flatten() {
                shape = merged(&shape, &tensor.shape().into())?;
            }
        }
        let known = shape.known().ok_or_else(|| {
            invalid!("Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: {shape}")
        })?;
        Ok(outputs![rows(dtype, known, &elements)?])
    })
    .heavy())
}

fn place(list: &TensorList, index: i32) -> Result<&Option<Tensor>> {
    let len = list.tensors().len();
    let found = usize::try_from(index).ok().and_then(|index| list.tensors().get(index));
    found.ok_or_else(|| match list.element_shape.known() {
        None => invalid!("Trying to gather element {index} in a list with {len} elements."),
        Some(_) => invalid!("Index {index} out o range; list only has {len} elements."),
    })
}

fn concat_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    let fixed = match setup.find("element_shape") {
        Some(AttrValue::Shape(shape)) => shape.clone(),
        _ => PartialShape::unknown(),
    };
    Ok(many(move |_, mut inputs| {
        let list = TensorList::take_typed(inputs.tensor(0)?, dtype)?;
        let (mut shape, mut leading) = (fixed.clone(), None);
        if inputs.len() > 1 {
            shape = element_shape(&list, &inputs.tensor(1)?)?;
            leading = Some(inputs.tensor(2)?);
        } else if shape.rank() == Some(0) {
            return Err(invalid!("element_shape must not be empty"));
        }
        let leading = leading.as_ref().map(|leading| leading.values::<i64>()).transpose()?;
        let (inner, lengths) = Concat::of(&list, &shape)?.lengths(&list, leading)?;
        let total = lengths.iter().try_fold(0i64, |sum, &length| sum.checked_add(length).filter(|_| length >= 0));
        let total = total.ok_or_else(|| invalid!("Invalid value in leading_dims of a TensorListConcat"))?;
        let whole = with_rows(total as usize, &inner);
        whole.checked_elements()?;
        let part = |(tensor, &length): (&Option<Tensor>, &i64)| match tensor {
            Some(tensor) => Ok(tensor.clone()),
            None => Tensor::zeros_of(dtype, with_rows(length as usize, &inner)),
        };
        let parts: Result<Vec<Tensor>> = list.tensors().iter().zip(&lengths).map(part).collect();
        Ok(outputs![joined(dtype, whole, &parts?)?, Tensor::vector(&lengths)])
    })
    .heavy())
}

/// The known sizes of elements that are concatenated: the number of rows of each, and the shape of a row.
struct Concat {
    rows: Option<i64>,
    inner: PartialShape,
}

impl Concat {
    fn of(list: &TensorList, shape: &PartialShape) -> Result<Concat> {
        let mut concat = match shape.dims() {
            Some([]) => {
                return Err(invalid!("Concat requires elements to be at least vectors, found scalars instead."));
            }
            Some([rows, inner @ ..]) => Concat { rows: (*rows >= 0).then_some(*rows), inner: PartialShape::new(inner) },
            None => Concat { rows: None, inner: PartialShape::unknown() },
        };
        if list.tensors().is_empty() && concat.inner.known().is_none() {
            return Err(invalid!(
                "All except the first dimension must be fully defined when concating an empty tensor list. \
                 element_shape: {}",
                concat.inner
            ));
        }
        if list.element_shape.known().is_none() {
            concat.learn(list)?;
        }
        Ok(concat)
    }

    /// Merges the shapes of the elements that are set.
    fn learn(&mut self, list: &TensorList) -> Result<()> {
        let mut seen: Option<i64> = None;
        let mut same = true;
        for (i, tensor) in list.tensors().iter().enumerate() {
            let Some(tensor) = tensor else { continue };
            let Some((&rows, inner)) = tensor.shape().split_first() else {
                return Err(invalid!("Concat saw a scalar shape at index {i} but requires at least vectors."));
            };
            self.inner = merged(&self.inner, &Shape::new(inner).into())?;
            match self.rows {
                Some(wanted) if wanted != rows as i64 => {
                    return Err(invalid!(
                        "First entry of element_shape input does not match the first dim of list element at index: \
                         {i} Expected: {wanted} Actual: {rows}"
                    ));
                }
                _ => same &= *seen.get_or_insert(rows as i64) == rows as i64,
            }
        }
        self.rows = self.rows.or(seen.filter(|_| same));
        Ok(())
    }

    /// The shape of a row, and how many rows each element has.
    fn lengths(&self, list: &TensorList, leading: Option<&[i64]>) -> Result<(Shape, Vec<i64>)> {
        let inner = self.inner.known().ok_or_else(|| {
            invalid!(
                "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is not \
                 fully defined: {}",
                self.inner
            )
        })?;
        let length = |(i, tensor): (usize, &Option<Tensor>)| {
            let given = leading.and_then(|leading| leading.get(i).copied());
            match (tensor, given, self.rows) {
                (Some(tensor), _, _) if tensor.shape().get(1..) == Some(inner.dims()) => Ok(tensor.shape()[0] as i64),
                (Some(tensor), _, _) => Err(invalid!(
                    "PartialTensorShape: Incompatible shapes during merge: {inner} vs. {}",
                    tensor.shape()
                )),
                (None, Some(length), _) => Ok(length),
                (None, None, Some(rows)) => Ok(rows),
                (None, None, None) => Err(match leading {
                    None => invalid!(
                        "Concating lists with uninitialized tensors is not supported in this version of \
                         TensorListConcat. Consider updating your GraphDef to run the newer version."
                    ),
                    Some(leading) => invalid!(
                        "List contains uninitialized tensor at index {i} but leading_dims has only {} elements.",
                        leading.len()
                    ),
                }),
            }
        };
        let lengths: Result<Vec<i64>> = list.tensors().iter().enumerate().map(length).collect();
        Ok((inner.clone(), lengths?))
    }
}

fn concat_lists_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("element_dtype")?;
    Ok(binary(move |_, a, b| {
        if a.shape() != b.shape() {
            return Err(invalid!("Incompatible input TensorList tensor shapes: {} vs. {}", a.shape(), b.shape()));
        }
        let shape = a.shape().clone();
        if shape.rank() == 0 {
            let (a, b) =
                (list_at(&a.variants()?[0], "input_a", 0, dtype)?, list_at(&b.variants()?[0], "input_b", 0, dtype)?);
            return scalar_variant(add_elements(a, b, 0)?);
        }
        let pairs = a.variants()?.iter().zip(b.variants()?).enumerate();
        let lists: Result<Vec<Variant>> = pairs
            .map(|(i, (a, b))| {
                let list = add_elements(list_at(a, "input_a", i, dtype)?, list_at(b, "input_b", i, dtype)?, i)?;
                Ok(Variant::Object(std::sync::Arc::new(list)))
            })
            .collect();
        Tensor::from_variants(shape, lists?)
    }))
}

fn list_at(variant: &Variant, name: &str, i: usize, dtype: DType) -> Result<TensorList> {
    let list = TensorList::from_variant(variant)
        .ok_or_else(|| invalid!("{name} is not a TensorList at index {i}.  Saw: '{variant:?}'"))??;
    match list.dtype == dtype {
        true => Ok(list),
        false => Err(invalid!("{name}[{i}].dtype != element_dtype.  Saw: {} vs. {dtype}", list.dtype)),
    }
}

fn add_elements(mut a: TensorList, b: TensorList, i: usize) -> Result<TensorList> {
    if a.element_shape != b.element_shape {
        return Err(invalid!(
            "input_a and input_b TensorList element shapes are not identical at index {i}.  Saw {} vs. {}",
            a.element_shape,
            b.element_shape
        ));
    }
    a.extend(&b);
    Ok(a)
}
