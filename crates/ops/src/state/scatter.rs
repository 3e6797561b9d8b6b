//! Updates rows of a variable, selected by index.

use super::target::Target;
use graph::{Node, Output};
use math::function::{Number, Ordered};
use op::shapes::{integers, none, unchanged};
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, Element, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ScatterUpdate(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: type; \
              Tindices: {int32, int64}; use_locking: bool = true",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "T", Update::Assign),
        facts: PLAIN,
    },
    Op {
        def: "ScatterAdd(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "T", Update::Add),
        facts: PLAIN,
    },
    Op {
        def: "ScatterSub(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "T", Update::Sub),
        facts: PLAIN,
    },
    Op {
        def: "ScatterMul(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "T", Update::Mul),
        facts: PLAIN,
    },
    Op {
        def: "ScatterDiv(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "T", Update::Div),
        facts: PLAIN,
    },
    Op {
        def: "ScatterMin(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); \
              T: {half, bfloat16, float, double, int32, int64}; Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "T", Update::Min),
        facts: PLAIN,
    },
    Op {
        def: "ScatterMax(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); \
              T: {half, bfloat16, float, double, int32, int64}; Tindices: {int32, int64}; use_locking: bool = false",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "T", Update::Max),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterUpdate(resource: resource, indices: Tindices, updates: dtype); dtype: type; \
              Tindices: {int32, int64}; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "dtype", Update::Assign),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterAdd(resource: resource, indices: Tindices, updates: dtype); dtype: numbertype; \
              Tindices: {int32, int64}; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "dtype", Update::Add),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterSub(resource: resource, indices: Tindices, updates: dtype); dtype: numbertype; \
              Tindices: {int32, int64}; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "dtype", Update::Sub),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterMul(resource: resource, indices: Tindices, updates: dtype); dtype: numbertype; \
              Tindices: {int32, int64}; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "dtype", Update::Mul),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterDiv(resource: resource, indices: Tindices, updates: dtype); dtype: numbertype; \
              Tindices: {int32, int64}; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "dtype", Update::Div),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterMin(resource: resource, indices: Tindices, updates: dtype); dtype: numbertype; \
              Tindices: {int32, int64}; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "dtype", Update::Min),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterMax(resource: resource, indices: Tindices, updates: dtype); dtype: numbertype; \
              Tindices: {int32, int64}; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_kernel(setup, "dtype", Update::Max),
        facts: PLAIN,
    },
];

/// How an update is combined with an element of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The update replaces the value.
    Assign,
    /// The update is added.
    Add,
    /// The update is subtracted.
    Sub,
    /// It is multiplied by the update.
    Mul,
    /// It is divided by the update.
    Div,
    /// The smaller of the two.
    Min,
    /// The larger of the two.
    Max,
}

impl Update {
    fn name(self) -> &'static str {
        match self {
            Update::Assign => "Update",
            Update::Add => "Add",
            Update::Sub => "Sub",
            Update::Mul => "Mul",
            Update::Div => "Div",
            Update::Min => "Min",
            Update::Max => "Max",
        }
    }
}

/// Updates rows `indices` of a variable; passes the reference on.
pub fn scatter(update: Update, variable: &Output, indices: &Output, updates: &Output) -> Output {
    let op = format!("Scatter{}", update.name());
    variable.scope().op(&op).input(variable).input(indices).input(updates).output()
}

/// Updates rows `indices` of the variable behind a handle.
pub fn resource_scatter(update: Update, handle: &Output, indices: &Output, updates: &Output) -> Node {
    let op = format!("ResourceScatter{}", update.name());
    handle.scope().op(&op).input(handle).input(indices).input(updates).node()
}

/// Changes the rows of a tensor that the numbers pick, by the rows of another: `width` elements each.
pub(crate) type Apply = fn(&Ctx<'_>, &mut Tensor, &Tensor, &[usize], usize) -> Result<()>;

/// The function that does `update` on elements of this type.
pub(crate) fn apply_of(setup: &Setup<'_>, dtype: DType, update: Update) -> Result<Apply> {
    match update {
        Update::Assign => Ok(replace),
        Update::Add => match dtype {
            DType::BOOL => {
                Ok(|ctx, params, updates, rows, width| each::<bool>(ctx, params, updates, rows, width, |p, u| p | u))
            }
            _ => for_numbers!(setup, dtype, T => Ok(|ctx, params, updates, rows, width| {
                each::<T>(ctx, params, updates, rows, width, T::add)
            })),
        },
        Update::Sub => match dtype {
            DType::BOOL => {
                Ok(|ctx, params, updates, rows, width| each::<bool>(ctx, params, updates, rows, width, |p, u| p ^ u))
            }
            _ => for_numbers!(setup, dtype, T => Ok(|ctx, params, updates, rows, width| {
                each::<T>(ctx, params, updates, rows, width, T::sub)
            })),
        },
        Update::Mul => for_numbers!(setup, dtype, T => Ok(|ctx, params, updates, rows, width| {
            each::<T>(ctx, params, updates, rows, width, T::mul)
        })),
        Update::Div => for_numbers!(setup, dtype, T => Ok(divide::<T>)),
        Update::Min => for_reals!(setup, dtype, T => Ok(|ctx, params, updates, rows, width| {
            each::<T>(ctx, params, updates, rows, width, T::smaller)
        })),
        Update::Max => for_reals!(setup, dtype, T => Ok(|ctx, params, updates, rows, width| {
            each::<T>(ctx, params, updates, rows, width, T::larger)
        })),
    }
}

fn each<T: Element>(
    ctx: &Ctx<'_>,
    params: &mut Tensor,
    updates: &Tensor,
    rows: &[usize],
    width: usize,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<()> {
    let one = filled::<T>(updates, rows, width)?;
    let updates = one.as_deref().map_or_else(|| updates.values::<T>(), Ok)?;
    math::scatter(ctx.pool(), params.values_mut::<T>()?, width, rows, updates, |params, updates| {
        for (param, &update) in params.iter_mut().zip(updates) {
            *param = f(*param, update);
        }
    });
    Ok(())
}

/// A row of one number, if there is one update for whole rows.
fn filled<T: Element>(updates: &Tensor, rows: &[usize], width: usize) -> Result<Option<Vec<T>>> {
    match updates.values::<T>()? {
        [value] if updates.shape().rank() == 0 && rows.len() * width != 1 => Ok(Some(vec![*value; width])),
        _ => Ok(None),
    }
}

fn divide<T: Element + Number>(
    ctx: &Ctx<'_>,
    params: &mut Tensor,
    updates: &Tensor,
    rows: &[usize],
    width: usize,
) -> Result<()> {
    // TensorFlow returns this error for handles; for references to integers it would abort the process.
    if updates.dtype().is_integer() && updates.values::<T>()?.contains(&T::ZERO) {
        return Err(invalid!("updates must not contain 0"));
    }
    each::<T>(ctx, params, updates, rows, width, T::div)
}

/// Assignment needs no arithmetic, so it takes elements of any type.
fn replace(ctx: &Ctx<'_>, params: &mut Tensor, updates: &Tensor, rows: &[usize], width: usize) -> Result<()> {
    let one = updates.shape().rank() == 0;
    let from = |i: usize| if one { 0 } else { i * width };
    let step = usize::from(!one);
    match params.dtype() {
        DType::STRING => {
            let (params, updates) = (params.strings_mut()?, updates.strings()?);
            for (i, &row) in rows.iter().enumerate() {
                for column in 0..width {
                    params[row * width + column] = updates[from(i) + column * step].clone();
                }
            }
            Ok(())
        }
        DType::VARIANT | DType::RESOURCE => replace_objects(params, updates, rows, width, one),
        dtype => replace_bytes(ctx, params, updates, rows, (width, dtype.size())),
    }
}

fn replace_bytes(
    ctx: &Ctx<'_>,
    params: &mut Tensor,
    updates: &Tensor,
    rows: &[usize],
    (width, size): (usize, usize),
) -> Result<()> {
    let bytes = updates.buffer().map(|buffer| buffer.bytes()).unwrap_or_default();
    let one = (updates.shape().rank() == 0 && rows.len() * width != 1).then(|| bytes.repeat(width));
    let updates = one.as_deref().unwrap_or(bytes);
    math::scatter(ctx.pool(), params.bytes_mut()?, width * size, rows, updates, |params, updates| {
        params.copy_from_slice(updates);
    });
    Ok(())
}

fn replace_objects(params: &mut Tensor, updates: &Tensor, rows: &[usize], width: usize, one: bool) -> Result<()> {
    let shape = params.shape().clone();
    let places = rows.iter().enumerate().flat_map(|(i, &row)| {
        (0..width).map(move |column| (row * width + column, if one { 0 } else { i * width + column }))
    });
    *params = match params.dtype() {
        DType::VARIANT => {
            let mut values = params.variants()?.to_vec();
            places.for_each(|(to, from)| values[to] = updates.variants().unwrap_or_default()[from].clone());
            Tensor::from_variants(shape, values)?
        }
        _ => {
            let mut values = params.handles()?.to_vec();
            places.for_each(|(to, from)| values[to] = updates.handles().unwrap_or_default()[from].clone());
            Tensor::from_handles(shape, values)?
        }
    };
    Ok(())
}

fn scatter_kernel(setup: &Setup<'_>, type_attr: &str, update: Update) -> Result<Kernel> {
    let dtype = setup.dtype(type_attr)?;
    let (apply, target) = (apply_of(setup, dtype, update)?, Target::of(setup));
    Ok(many(move |ctx, mut inputs| {
        let variable = target.take(&mut inputs, 0)?;
        let (indices, updates) = (inputs.tensor(1)?, inputs.tensor(2)?);
        if variable.dtype() != updates.dtype() {
            return Err(invalid!("DType of scatter resource and updates does not match."));
        }
        let scatter = |params: &mut Tensor| {
            check(&target, params, &indices, &updates)?;
            if !target.is_ref() && update == Update::Div {
                no_zeros(&updates)?;
            }
            let rows = row_numbers(&indices, params.shape()[0])?;
            if !rows.is_empty() {
                let width = params.elements() / params.shape()[0];
                apply(ctx, params, &updates, &rows, width)?;
            }
            Ok(rows)
        };
        variable.update_rows(scatter)?;
        Ok(target.outputs(variable))
    }))
}

fn no_zeros(updates: &Tensor) -> Result<()> {
    let size = updates.dtype().size().max(1);
    let bytes = updates.buffer().map(|buffer| buffer.bytes()).unwrap_or_default();
    match bytes.chunks_exact(size).any(|element| element.iter().all(|&byte| byte == 0)) {
        true => Err(invalid!("updates must not contain 0")),
        false => Ok(()),
    }
}

/// `updates` has one row for each index, or is one number for all of them.
fn check(target: &Target, params: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<()> {
    let (shape, wanted) = (params.shape(), indices.shape());
    if shape.rank() == 0 {
        return Err(invalid!("params must be at least 1-D, got shape {shape}"));
    }
    let rows: Shape = wanted.iter().chain(&shape[1..]).copied().collect();
    if updates.shape().rank() == 0 || *updates.shape() == rows {
        return Ok(());
    }
    let same_rank = updates.shape().rank() == rows.rank();
    if !target.is_ref() && same_rank && updates.shape()[..wanted.rank()] != wanted[..] {
        return Err(invalid!(
            "The shape of indices ({wanted}) must be a prefix of the shape of updates ({})",
            updates.shape()
        ));
    }
    Err(invalid!(
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape {}, \
         indices.shape {wanted}, params.shape {shape}",
        updates.shape()
    ))
}

/// The indices as row numbers, each below `limit`.
pub(crate) fn row_numbers(indices: &Tensor, limit: usize) -> Result<Vec<usize>> {
    let inside = |index: i64| usize::try_from(index).ok().filter(|&row| row < limit);
    let rows: Option<Vec<usize>> = match indices.dtype() {
        DType::I32 => indices.values::<i32>()?.iter().map(|&index| inside(index.into())).collect(),
        _ => indices.values::<i64>()?.iter().map(|&index| inside(index)).collect(),
    };
    rows.ok_or_else(|| out_of_bounds(indices, limit))
}

fn out_of_bounds(indices: &Tensor, limit: usize) -> status::Error {
    let values = integers(indices).unwrap_or_default();
    let bad = values.iter().position(|&index| usize::try_from(index).is_err() || index as usize >= limit);
    let bad = bad.unwrap_or(0);
    let place = place_in(indices.shape(), bad);
    invalid!("indices{place} = {} is not in [0, {limit})", values.get(bad).copied().unwrap_or(0))
}

/// `[i,j]` of an element, as TensorFlow's messages name it; nothing for the one element of a scalar.
pub(crate) fn place_in(shape: &Shape, mut element: usize) -> String {
    let mut places = Vec::new();
    for &dim in shape.iter().rev() {
        places.push((element % dim.max(1)).to_string());
        element /= dim.max(1);
    }
    places.reverse();
    match places.is_empty() {
        true => String::new(),
        false => format!("[{}]", places.join(",")),
    }
}
