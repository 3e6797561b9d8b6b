//! Shared by all optimizer ops: finds the variables, checks shapes and scalars, locks in one order, runs one pass.

use crate::state::target::Target;
use graph::{OpBuilder, Output};
use math::optimizer::{Field, Stored};
use op::{Ctx, Gradient, Inputs, Kernel, Locked, Setup, Variable, many};
use status::{Result, internal, invalid};
use std::sync::Arc;
use tensor::{DType, Element, Shape, Tensor};

/// The inputs of an optimizer op, by name and in order: first the variables, then the rest, among it `grad` or
/// `delta`, and `indices` if only some rows change. A mark after a name is about TensorFlow's words when the input is
/// not a scalar: see `no_scalar`; `indices[]` has other words for a row that is not there.
pub(crate) struct Layout<const K: usize> {
    pub variables: [&'static str; K],
    pub rest: &'static [&'static str],
}

/// A variable and its slots, locked, with the gradient to change them by.
pub(crate) struct Slots<'a, T, const K: usize> {
    ctx: &'a Ctx<'a>,
    values: [&'a mut [T]; K],
    gradient: &'a [T],
    rows: Option<&'a [usize]>,
    width: usize,
}

impl<T: Stored, const K: usize> Slots<'_, T, K> {
    /// Changes the elements, all of them or those of the rows that have a gradient.
    pub fn run(self, rule: impl Fn([T::Compute; K], T::Compute) -> [T::Compute; K] + Copy + Send + Sync) -> Result<()> {
        match self.rows {
            None => math::optimizer::dense(self.ctx.pool(), self.values, self.gradient, rule),
            Some(rows) => {
                math::optimizer::sparse(self.ctx.pool(), self.values, self.width, rows, self.gradient, rule);
            }
        }
        Ok(())
    }
}

/// The kernel of an optimizer op with `K` variables and `N` numbers: `step` gets the numbers in the order of the
/// layout, and the locked variables.
pub(crate) fn apply<T: Stored + Element, const K: usize, const N: usize>(
    setup: &Setup<'_>,
    layout: &'static Layout<K>,
    step: impl Fn([T::Compute; N], Slots<'_, T, K>) -> Result<()> + Send + Sync + 'static,
) -> Result<Kernel> {
    let target = Target::of(setup);
    Ok(many(move |ctx, mut inputs| {
        let variables = variables(&target, &mut inputs, layout)?;
        let rest = Rest::<T>::take(&mut inputs, layout)?;
        let numbers: [T::Compute; N] = rest
            .numbers
            .try_into()
            .map_err(|_| internal!("an optimizer op has another number of inputs than {N} and its variables"))?;
        let order = locking_order(&variables)?;
        let mut guards = lock(&variables, order);
        let shape = check_shapes(&variables, &guards, layout, rest.gradient_name, &rest.gradient, &rest.indices)?;
        let other_words = layout.rest.contains(&"indices[]");
        let rows = rest.indices.as_ref().map(|indices| match other_words {
            true => crate::state::scatter::row_numbers(indices, shape[0]),
            false => row_numbers(indices, shape[0]),
        });
        let rows = rows.transpose()?;
        let values = values::<T, K>(&variables, &mut guards)?;
        let slots = Slots {
            ctx,
            values,
            gradient: rest.gradient.values::<T>()?,
            rows: rows.as_deref(),
            width: shape.get(1..).map_or(1, |dims| dims.iter().product()),
        };
        step(numbers, slots)?;
        if let Some(rows) = &rows {
            guards.iter_mut().flatten().for_each(|guard| guard.only_rows(rows));
        }
        drop(guards);
        let [first, ..] = &variables[..] else { return Err(internal!("an optimizer op without a variable")) };
        Ok(target.outputs(first.clone()))
    }))
}

fn variables<const K: usize>(target: &Target, inputs: &mut Inputs, _: &Layout<K>) -> Result<[Arc<Variable>; K]> {
    let variables: Result<Vec<_>> = (0..K).map(|index| target.take(inputs, index)).collect();
    variables?.try_into().map_err(|_| internal!("an optimizer op has other than {K} variables"))
}

/// The inputs of an op besides its variables.
struct Rest<T: Stored> {
    numbers: Vec<T::Compute>,
    gradient: Tensor,
    gradient_name: &'static str,
    indices: Option<Tensor>,
}

impl<T: Stored + Element> Rest<T> {
    fn take<const K: usize>(inputs: &mut Inputs, layout: &Layout<K>) -> Result<Rest<T>> {
        let mut rest = Rest {
            numbers: Vec::with_capacity(layout.rest.len()),
            gradient: Tensor::scalar(0f32),
            gradient_name: "grad",
            indices: None,
        };
        for (i, &name) in layout.rest.iter().enumerate() {
            let tensor = inputs.tensor(K + i)?;
            match name {
                "grad" | "delta" => (rest.gradient, rest.gradient_name) = (tensor, name),
                "indices" | "indices[]" => rest.indices = Some(tensor),
                number if tensor.shape().rank() != 0 => return Err(no_scalar(number, tensor.shape())),
                "global_step" => rest.numbers.push(T::Compute::from_integer(tensor.to_scalar::<i64>()?)),
                _ => rest.numbers.push(tensor.to_scalar::<T>()?.load()),
            }
        }
        Ok(rest)
    }
}

fn no_scalar(name: &str, shape: &Shape) -> status::Error {
    match name {
        "l1" | "l2" => invalid!("{name} regularization strength is not a scalar: {shape}"),
        "l2_shrinkage" => invalid!("l2 shrinkage regularization strength is not a scalar: {shape}"),
        "lr_power" => invalid!("lr_power is not a scalar{shape}"),
        "lr " => invalid!("lr is not a scalar : {shape}"),
        "lr+" => invalid!("lr is not a positive scalar: {shape}"),
        "lr+0" => invalid!("lr is not a positive scalar (or zero if multiply_linear_by_lr is set): {shape}"),
        "l1+" => invalid!("l1 regularization strength is not a non-negative scalar: {shape}"),
        "l2+" => invalid!("l2 regularization strength is not a non-negative scalar: {shape}"),
        "l2_shrinkage+" => {
            invalid!("l2 shrinkage regularization strength is not a non-negative scalar: {shape}")
        }
        "lr_power-" => invalid!("lr_power is not a non-positive scalar: {shape}"),
        name => invalid!("{name} is not a scalar: {shape}"),
    }
}

/// Two ops may use the same variables in different order; all lock them in the order of their addresses.
fn locking_order<const K: usize>(variables: &[Arc<Variable>; K]) -> Result<[usize; K]> {
    let mut order: [usize; K] = std::array::from_fn(|k| k);
    order.sort_unstable_by_key(|&k| Arc::as_ptr(&variables[k]));
    match order.windows(2).find(|pair| Arc::ptr_eq(&variables[pair[0]], &variables[pair[1]])) {
        Some(pair) => Err(invalid!("Variable {} is given twice", variables[pair[0]].name())),
        None => Ok(order),
    }
}

type Guard<'a> = Locked<'a>;

fn lock<const K: usize>(variables: &[Arc<Variable>; K], order: [usize; K]) -> [Option<Guard<'_>>; K] {
    let mut guards = [const { None }; K];
    for k in order {
        guards[k] = Some(variables[k].lock());
    }
    guards
}

fn held<'a>(variable: &Variable, guard: &'a Option<Guard<'_>>) -> Result<&'a Tensor> {
    guard.as_ref().and_then(|guard| guard.as_ref()).ok_or_else(|| variable.uninitialized())
}

fn check_shapes<const K: usize>(
    variables: &[Arc<Variable>; K],
    guards: &[Option<Guard<'_>>; K],
    layout: &Layout<K>,
    gradient_name: &str,
    gradient: &Tensor,
    indices: &Option<Tensor>,
) -> Result<Shape> {
    let first = held(&variables[0], &guards[0])?.shape();
    for k in 1..K {
        let other = held(&variables[k], &guards[k])?.shape();
        if other != first {
            return Err(invalid!("var and {} do not have the same shape{first} {other}", layout.variables[k]));
        }
    }
    match indices {
        Some(indices) => check_rows(first, gradient.shape(), indices.shape())?,
        None if gradient.shape() != first => {
            return Err(invalid!("var and {gradient_name} do not have the same shape{first} {}", gradient.shape()));
        }
        None => {}
    }
    Ok(first.clone())
}

fn check_rows(var: &Shape, gradient: &Shape, indices: &Shape) -> Result<()> {
    if var.rank() == 0 {
        return Err(invalid!("var must be at least 1 dimensional"));
    }
    if indices.rank() != 1 {
        return Err(invalid!("indices must be one-dimensional"));
    }
    for axis in 1..var.rank() {
        if gradient.get(axis) != Some(&var[axis]) {
            return Err(invalid!("var and grad must match in dimension {axis}"));
        }
    }
    if gradient.rank() != var.rank() || gradient[0] != indices[0] {
        return Err(invalid!("grad must be the same size as indices in the first dimension."));
    }
    if var[1..].contains(&0) {
        return Err(invalid!("Inner dimension should be greater than zero."));
    }
    Ok(())
}

fn row_numbers(indices: &Tensor, limit: usize) -> Result<Vec<usize>> {
    let inside = |(i, index): (usize, i64)| match usize::try_from(index) {
        Ok(row) if row < limit => Ok(row),
        _ => Err(invalid!("Index {index} at offset {i} in indices is out of range")),
    };
    match indices.dtype() {
        DType::I32 => indices.values::<i32>()?.iter().map(|&index| index.into()).enumerate().map(inside).collect(),
        _ => indices.values::<i64>()?.iter().copied().enumerate().map(inside).collect(),
    }
}

fn values<'a, T: Element, const K: usize>(
    variables: &[Arc<Variable>; K],
    guards: &'a mut [Option<Guard<'_>>; K],
) -> Result<[&'a mut [T]; K]> {
    let mut values = Vec::with_capacity(K);
    for (variable, guard) in variables.iter().zip(guards) {
        let tensor = guard.as_mut().and_then(|guard| guard.as_mut()).ok_or_else(|| variable.uninitialized())?;
        if !T::stores(tensor.dtype()) {
            return Err(invalid!(
                "Trying to use variable with wrong dtype. Expected {} got {}",
                T::DTYPE,
                tensor.dtype()
            ));
        }
        values.push(tensor.values_mut::<T>()?);
    }
    values.try_into().map_err(|_| internal!("an optimizer op has other than {K} variables"))
}

/// Dispatches on attribute `T` over the floats, and the complex numbers where TensorFlow takes them.
macro_rules! for_fields {
    ($setup:expr, real $T:ident => $kernel:expr) => {
        for_floats!($setup, $setup.dtype("T")?, $T => $kernel)
    };
    ($setup:expr, $T:ident => $kernel:expr) => {
        for_types!(
            $setup, $setup.dtype("T")?,
            [f32, f64, tensor::f16, tensor::bf16, tensor::Complex32, tensor::Complex64],
            $T => $kernel
        )
    };
}
pub(crate) use for_fields;

/// A node of optimizer `name` that changes these variables: the op for references or handles, for a gradient of every
/// element or of some rows.
pub(crate) fn step_node(
    name: &str,
    variables: &[&Output],
    before: &[&Output],
    gradient: &Gradient,
    after: &[&Output],
) -> OpBuilder {
    let resource = if variables[0].full_dtype() == DType::RESOURCE { "Resource" } else { "" };
    let (sparse, gradients) = match gradient {
        Gradient::Dense(gradient) => ("", vec![gradient]),
        Gradient::Sparse(slices) => ("Sparse", vec![&slices.values, &slices.indices]),
    };
    let op = variables[0].scope().op(&format!("{resource}{sparse}Apply{name}"));
    let inputs = variables.iter().chain(before).copied().chain(gradients).chain(after.iter().copied());
    inputs.fold(op, |op, input| op.input(input))
}
