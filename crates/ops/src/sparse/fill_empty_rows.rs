//! SparseFillEmptyRows and RaggedFillEmptyRows, which insert a default value into empty rows, and their gradients.

use crate::array::index::integer;
use crate::array::units::Unit;
use graph::{Node, Output};
use math::function::Number;
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, exhausted, invalid};
use tensor::{Complex32, Complex64, Element, PartialShape, Shape, Tensor};

macro_rules! grad_row {
    ($name:literal) => {
        Op {
            def: concat!($name, "(reverse_index_map: int64, grad_values: T) -> d_values: T, d_default_value: T; T: type"),
            shape: grad_shape,
            grad: Grad::Unknown,
            kernel: |setup| for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(many(|_, inputs| run_grad::<T>(inputs)))), facts: PLAIN }
    };
}

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SparseFillEmptyRows(indices: int64, values: T, dense_shape: int64, default_value: T) -> output_indices: int64, \
              output_values: T, empty_row_indicator: bool, reverse_index_map: int64; T: type",
        shape: fill_shape,
        grad: Grad::Rules(|op, dys| fill_rule(op, dys, "SparseFillEmptyRowsGrad")),
        kernel: sparse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "RaggedFillEmptyRows(value_rowids: int64, values: T, nrows: int64, default_value: T) -> \
              output_value_rowids: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64; T: type",
        shape: fill_shape,
        grad: Grad::Rules(|op, dys| fill_rule(op, dys, "RaggedFillEmptyRowsGrad")),
        kernel: ragged_kernel,
        facts: PLAIN,
    },
    grad_row!("SparseFillEmptyRowsGrad"),
    grad_row!("RaggedFillEmptyRowsGrad"),
];

/// A sparse tensor, given as indices, values and shape, with `default` in its rows without values: indices, values,
/// which rows were empty, and the new position of each value.
pub fn sparse_fill_empty_rows(a: [&Output; 3], default: &Output) -> [Output; 4] {
    let builder = a[1].scope().op("SparseFillEmptyRows").input(a[0]).input(a[1]).input(a[2]);
    let node = builder.input(default).node();
    [0, 1, 2, 3].map(|index| node.output(index))
}

fn fill_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let values = query.inputs[1].merge(&PartialShape::of_rank(1))?;
    let indices = match query.inputs[0].dims() {
        Some([_, rank]) => PartialShape::new(&[-1, *rank]),
        Some([_]) => PartialShape::of_rank(1),
        _ => PartialShape::unknown(),
    };
    Ok(vec![indices, PartialShape::of_rank(1), PartialShape::of_rank(1), values])
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[0].merge(&PartialShape::of_rank(1))?, PartialShape::scalar()])
}

fn fill_rule(op: &Node, dys: &[Option<Output>], name: &str) -> Result<Grads> {
    let Some(dy) = &dys[1] else { return Ok(grads![NoGradient, NoGradient, NoGradient, NoGradient]) };
    let node = dy.scope().op(name).input(&op.output(3)).input(dy).node();
    Ok(grads![NoGradient, node.output(0), NoGradient, node.output(1)])
}

fn sparse_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let [indices, values, shape, default] = inputs.tensors(0, 4)?.try_into().map_err(|_| invalid!("4 inputs"))?;
        let rows = check_sparse(&indices, &values, &shape, &default)?;
        fill(indices, values, &default, rows)
    }))
}

fn check_sparse(indices: &Tensor, values: &Tensor, shape: &Tensor, default: &Tensor) -> Result<i64> {
    if shape.shape().rank() != 1 {
        return Err(invalid!("dense_shape must be a vector, saw: {}", shape.shape()));
    }
    let &[count, rank] = indices.shape().dims() else {
        return Err(invalid!("indices must be a matrix, saw: {}", indices.shape()));
    };
    check_values(count, values)?;
    if rank != shape.elements() {
        return Err(invalid!(
            "The length of `dense_shape` ({}) must match the second dimension of `indices` ({rank}).",
            shape.elements()
        ));
    }
    check_default(default)?;
    shape.values::<i64>()?.first().copied().ok_or_else(|| invalid!("Dense shape cannot be empty."))
}

fn check_values(count: usize, values: &Tensor) -> Result<()> {
    if values.shape().rank() != 1 {
        return Err(invalid!("values must be a vector, saw: {}", values.shape()));
    }
    if values.elements() != count {
        return Err(invalid!(
            "The length of `values` ({}) must match the first dimension of `indices` ({count}).",
            values.elements()
        ));
    }
    Ok(())
}

fn check_default(default: &Tensor) -> Result<()> {
    match default.shape().rank() {
        0 => Ok(()),
        _ => Err(invalid!("default_value must be a scalar, saw: {}", default.shape())),
    }
}

fn ragged_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let [rows, values, count, default] = inputs.tensors(0, 4)?.try_into().map_err(|_| invalid!("4 inputs"))?;
        let count = integer(&count, || invalid!("nrows must be a scalar, saw: {}", count.shape()))?;
        if rows.shape().rank() != 1 {
            return Err(invalid!("value_rowids must be a vector, saw: {}", rows.shape()));
        }
        check_values(rows.elements(), &values)?;
        check_default(&default)?;
        fill(rows, values, &default, count)
    }))
}

/// `indices` are rows of coordinates of which the first is the row, or only that.
fn fill(indices: Tensor, values: Tensor, default: &Tensor, rows: i64) -> Result<Outputs> {
    let (count, rank) = (values.elements(), indices.shape().get(1).copied().unwrap_or(1));
    let rows = Shape::checked(&[rows])?.elements();
    if rows == 0 && count > 0 {
        return Err(invalid!("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {count}"));
    }
    let all = indices.values::<i64>()?;
    let row_of = |number: usize| all[number * rank];
    let mut empty = Tensor::zeros::<bool>([rows])?;
    let mut starts: Vec<usize> = Vec::new();
    let out_of_memory = |_| exhausted!("OOM when allocating tensor with shape[{rows}] and type int64");
    starts.try_reserve_exact(rows).map_err(out_of_memory)?;
    starts.resize(rows, 0);
    for number in 0..count {
        match usize::try_from(row_of(number)).ok().and_then(|row| starts.get_mut(row)) {
            Some(slot) => *slot += 1,
            None => return Err(invalid!("indices({number}, 0) is invalid: {} >= {rows}", row_of(number))),
        }
    }
    let ordered = (1..count).all(|number| row_of(number - 1) <= row_of(number));
    let full = starts.iter().all(|&members| members > 0);
    empty.values_mut::<bool>()?.iter_mut().zip(&starts).for_each(|(empty, &members)| *empty = members == 0);
    let mut total = 0;
    for start in &mut starts {
        total += std::mem::replace(start, total).max(1);
    }
    let mut next: Vec<usize> = Vec::new();
    next.try_reserve_exact(rows).map_err(out_of_memory)?;
    next.extend_from_slice(&starts);
    let mut places = Vec::with_capacity(count);
    for number in 0..count {
        let slot = &mut next[row_of(number) as usize];
        places.push(*slot);
        *slot += 1;
    }
    let reverse = crate::array::index::from_places(&places, [count], tensor::DType::I64)?;
    if full && ordered {
        return Ok(outputs![indices, values, empty, reverse]);
    }
    let mut shape = indices.shape().clone();
    shape.dims_mut()[0] = total;
    let mut filled = Tensor::zeros::<i64>(shape)?;
    let coordinates = filled.values_mut::<i64>()?;
    starts.iter().enumerate().for_each(|(row, &start)| coordinates[start * rank] = row as i64);
    for (number, &place) in places.iter().enumerate() {
        coordinates[place * rank..][..rank].copy_from_slice(&all[number * rank..][..rank]);
    }
    let mut output = Tensor::scratch_of(values.dtype(), [total])?;
    for_units!(values.dtype(), E => spread(E::of(&values)?, &places, E::of(default)?, E::of_mut(&mut output)?));
    Ok(outputs![filled, output, empty, reverse])
}

fn spread<E: Unit>(values: &[E], places: &[usize], default: &[E], output: &mut [E]) {
    output.fill(default[0].clone());
    places.iter().zip(values).for_each(|(&place, value)| output[place] = value.clone());
}

/// Each value gets the gradient of its new position; the default value gets the sum of the others.
fn run_grad<T: Element + Number>(mut inputs: Inputs) -> Result<Outputs> {
    let (reverse, grad) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if reverse.shape().rank() != 1 {
        return Err(invalid!("reverse_index_map must be a vector, saw: {}", reverse.shape()));
    }
    if grad.shape().rank() != 1 {
        return Err(invalid!("grad_values must be a vector, saw: {}", grad.shape()));
    }
    let all = grad.values::<T>()?;
    let mut visited = vec![false; all.len()];
    let mut back = Tensor::scratch::<T>([reverse.elements()])?;
    for (to, &place) in back.values_mut::<T>()?.iter_mut().zip(reverse.values::<i64>()?) {
        let Some(source) = usize::try_from(place).ok().filter(|&place| place < all.len()) else {
            return Err(invalid!("Elements in reverse index must be in [0, {}) but got {place}", all.len()));
        };
        *to = all[source];
        visited[source] = true;
    }
    let rest = all.iter().zip(&visited).filter(|(_, visited)| !**visited);
    Ok(outputs![back, Tensor::scalar(rest.fold(T::ZERO, |sum, (&value, _)| sum.add(value)))])
}
