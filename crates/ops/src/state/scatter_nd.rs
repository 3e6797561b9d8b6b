//! Updates slices of a variable, selected by coordinates.

use super::scatter::{Update, apply_of, place_in};
use super::target::Target;
use graph::{Node, Output};
use op::shapes::{integers, none, unchanged};
use op::{Grad, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ScatterNdUpdate(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: type; \
              Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Assign),
        facts: PLAIN,
    },
    Op {
        def: "ScatterNdAdd(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Add),
        facts: PLAIN,
    },
    Op {
        def: "ScatterNdSub(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Sub),
        facts: PLAIN,
    },
    Op {
        def: "ScatterNdMax(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Max),
        facts: PLAIN,
    },
    Op {
        def: "ScatterNdMin(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T); T: numbertype; \
              Tindices: {int32, int64}; use_locking: bool = false; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Min),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterNdUpdate(ref: resource, indices: Tindices, updates: T); T: type; \
              Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = \"\"; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Assign),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterNdAdd(ref: resource, indices: Tindices, updates: T); T: type; \
              Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = \"\"; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Add),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterNdSub(ref: resource, indices: Tindices, updates: T); T: type; \
              Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = \"\"; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Sub),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterNdMax(ref: resource, indices: Tindices, updates: T); T: type; \
              Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = \"\"; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Max),
        facts: PLAIN,
    },
    Op {
        def: "ResourceScatterNdMin(ref: resource, indices: Tindices, updates: T); T: type; \
              Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = \"\"; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| scatter_nd_kernel(setup, Update::Min),
        facts: PLAIN,
    },
];

/// Replaces slices of a variable; passes the reference on.
pub fn scatter_nd_update(variable: &Output, indices: &Output, updates: &Output) -> Output {
    variable.scope().op("ScatterNdUpdate").input(variable).input(indices).input(updates).output()
}

/// Adds to slices of a variable; passes the reference on.
pub fn scatter_nd_add(variable: &Output, indices: &Output, updates: &Output) -> Output {
    variable.scope().op("ScatterNdAdd").input(variable).input(indices).input(updates).output()
}

/// Replaces slices of the variable behind a handle.
pub fn resource_scatter_nd_update(handle: &Output, indices: &Output, updates: &Output) -> Node {
    handle.scope().op("ResourceScatterNdUpdate").input(handle).input(indices).input(updates).node()
}

/// Adds to slices of the variable behind a handle.
pub fn resource_scatter_nd_add(handle: &Output, indices: &Output, updates: &Output) -> Node {
    handle.scope().op("ResourceScatterNdAdd").input(handle).input(indices).input(updates).node()
}

/// How coordinates outside the variable are treated.
#[derive(Clone, Copy, PartialEq)]
enum BadIndices {
    Error,
    Ignore,
}

fn bad_indices(setup: &Setup<'_>) -> Result<BadIndices> {
    match setup.string("bad_indices_policy")?.as_str() {
        "" | "DEFAULT" | "ERROR" => Ok(BadIndices::Error),
        "IGNORE" => Ok(BadIndices::Ignore),
        other => Err(invalid!("Unknown bad indices handling attribute: {other}")),
    }
}

fn scatter_nd_kernel(setup: &Setup<'_>, update: Update) -> Result<Kernel> {
    let (target, policy) = (Target::of(setup), bad_indices(setup)?);
    let apply = apply_of(setup, setup.dtype("T")?, update)?;
    Ok(many(move |ctx, mut inputs| {
        let variable = target.take(&mut inputs, 0)?;
        let (indices, updates) = (inputs.tensor(1)?, inputs.tensor(2)?);
        if variable.dtype() != updates.dtype() {
            return Err(invalid!("DType of scatter resource and updates does not match."));
        }
        variable.update(|params| {
            let slices = Slices::of(params.shape(), &indices, updates.shape())?;
            if params.elements() == 0 || slices.count == 0 {
                return Ok(());
            }
            if !(1..=7).contains(&slices.depth) {
                return Err(invalid!(
                    "Only indices.shape[-1] values between 1 and 5 are currently supported.  Requested rank: {}",
                    slices.depth
                ));
            }
            let (rows, kept) = slices.rows(params.shape(), &indices, policy)?;
            match kept {
                None => apply(ctx, params, &updates, &rows, slices.width),
                Some(kept) => apply(ctx, params, &pick(&updates, &kept, slices.width)?, &rows, slices.width),
            }
        })?;
        Ok(target.outputs(variable))
    }))
}

/// The updates whose coordinates are inside. Only for plain elements; others are applied one by one.
fn pick(updates: &Tensor, kept: &[usize], width: usize) -> Result<Tensor> {
    let parts: Result<Vec<Tensor>> = kept.iter().map(|&i| updates.slice_elements(i * width, [1, width])).collect();
    let mut picked = Tensor::zeros_of(updates.dtype(), [kept.len(), width])?;
    let size = updates.dtype().size() * width;
    if size == 0 {
        let strings: Vec<_> = parts?.iter().flat_map(|part| part.strings().unwrap_or_default().to_vec()).collect();
        return Tensor::from_strings([kept.len(), width], strings);
    }
    for (place, part) in picked.bytes_mut()?.chunks_exact_mut(size).zip(parts?) {
        place.copy_from_slice(part.buffer().map(|buffer| buffer.bytes()).unwrap_or_default());
    }
    Ok(picked)
}

/// How indices cut a tensor into slices.
struct Slices {
    /// How many coordinates name a slice.
    depth: usize,
    /// How many slices are named.
    count: usize,
    /// How many elements a slice has.
    width: usize,
}

impl Slices {
    fn of(params: &Shape, indices: &Tensor, updates: &Shape) -> Result<Slices> {
        let at = indices.shape();
        if params.rank() == 0 {
            return Err(invalid!("Output must be at least 1-D, got shape: {params}"));
        }
        if at.rank() == 0 || updates.rank() == 0 {
            return Err(invalid!("Indices and updates must be at least 1-D, got shapes {at} and {updates}"));
        }
        let (empty, none) = (at.elements() == 0, updates.elements() == 0);
        if !(empty && none) && (empty || none || params.elements() == 0) {
            return Err(invalid!("Indices and updates specified for empty output.  indices shape: {at}"));
        }
        if updates[0] != at[0] {
            return Err(invalid!(
                "Dimensions [0,1) of indices[shape={at}] = {} must match dimensions [0,1) of updates[shape={updates}] = {}",
                at[0],
                updates[0]
            ));
        }
        let (depth, batch) = if at.rank() > 1 { (at[at.rank() - 1], at.rank() - 1) } else { (1, 1) };
        check_shapes(params, at, updates, depth, batch)?;
        let width = params[depth..].iter().product();
        Ok(Slices { depth, count: at.elements() / depth.max(1), width })
    }

    /// The row of each slice, and the slices that are inside if some are not.
    fn rows(&self, params: &Shape, indices: &Tensor, policy: BadIndices) -> Result<(Vec<usize>, Option<Vec<usize>>)> {
        let coordinates = integers(indices)?;
        let mut rows = Vec::with_capacity(self.count);
        let mut kept = Vec::new();
        for (i, at) in coordinates.chunks_exact(self.depth).enumerate() {
            match row_of(params, at) {
                Some(row) => {
                    rows.push(row);
                    kept.push(i);
                }
                None if policy == BadIndices::Ignore => {}
                None => return Err(outside(params, indices.shape(), at, i)),
            }
        }
        let all = kept.len() == self.count;
        Ok((rows, (!all).then_some(kept)))
    }
}

fn row_of(params: &Shape, at: &[i64]) -> Option<usize> {
    at.iter().zip(params.iter()).try_fold(0, |row, (&index, &dim)| {
        let index = usize::try_from(index).ok().filter(|&index| index < dim)?;
        Some(row * dim + index)
    })
}

fn outside(params: &Shape, indices: &Shape, at: &[i64], i: usize) -> status::Error {
    let batch = Shape::new(&indices[..indices.rank() - 1]);
    let at: Vec<String> = at.iter().map(i64::to_string).collect();
    invalid!("indices{} = [{}] does not index into shape {params}", place_in(&batch, i), at.join(", "))
}

fn check_shapes(params: &Shape, at: &Shape, updates: &Shape, depth: usize, batch: usize) -> Result<()> {
    let before = || {
        invalid!(
            "Dimensions [0,{batch}) of indices[shape={at}] must match dimensions [0,{batch}) of updates[shape={updates}]"
        )
    };
    let after = || {
        invalid!(
            "Dimensions [{depth},{}) of input[shape={params}] must match dimensions [{depth},{}) of updates[shape={updates}]",
            params.rank(),
            updates.rank()
        )
    };
    if updates.rank() < batch {
        return Err(before());
    }
    if depth > params.rank() || updates.rank() - batch != params.rank() - depth {
        return Err(after());
    }
    if updates[..batch] != at[..batch] {
        return Err(before());
    }
    if updates[batch..] != params[depth..] {
        return Err(after());
    }
    Ok(())
}
