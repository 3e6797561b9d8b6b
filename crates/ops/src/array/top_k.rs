//! TopK: the largest elements of each row, and their indices.

use super::index::{from_places, integer, largest, product};
use super::nodes;
use super::order::compare;
use super::scatter_nd::scatter_nd;
use super::units::Unit;
use graph::{AttrValue, Node, Output};
use math::parallel::split_rows_mut;
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Shape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TopK(input: T) -> values: T, indices: int32; k: int >= 0; sorted: bool = true; T: realnumbertype",
        shape: top_k_shape,
        grad: Grad::Rules(top_k_rule),
        kernel: top_k_kernel,
        facts: PLAIN.removed_in(7, "Use TopKV2 instead"),
    },
    Op {
        def: "TopKV2(input: T, k: Tk) -> values: T, indices: index_type; sorted: bool = true; T: realnumbertype; \
              Tk: {int16, int32, int64} = int32; index_type: {int16, int32, int64} = int32",
        shape: top_k_shape,
        grad: Grad::Rules(top_k_rule),
        kernel: top_k_kernel,
        facts: PLAIN,
    },
];

/// The `k` largest elements of each row in descending order, and their indices; of equal elements the one with the
/// lower index comes first.
pub fn top_k(input: &Output, k: i32) -> (Output, Output) {
    let k = nodes::int(input.scope(), k);
    let node = input.scope().op("TopKV2").input(input).input(&k).node();
    (node.output(0), node.output(1))
}

fn top_k_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let k = match query.inputs.len() {
        1 => match query.attr("k")? {
            AttrValue::Int(k) => Some(*k),
            _ => None,
        },
        _ => query.constants[1].as_ref().and_then(|k| integer(k, || invalid!("k must be scalar")).ok()),
    };
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown(); 2]) };
    let Some((&last, batch)) = dims.split_last() else {
        return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
    };
    if let Some(k) = k.filter(|&k| last >= 0 && k > last) {
        return Err(invalid!("input must have last dimension >= k = {k} but is {last}"));
    }
    Ok(vec![PartialShape::new(&[batch, &[k.unwrap_or(-1)]].concat()); 2])
}

/// The gradients go back to where the elements stood.
fn top_k_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let (input, places) = (op.input(0), op.output(1));
    let scope = input.scope();
    let mut results: Grads = op.all_inputs().iter().map(|_| None).collect();
    let Some(dy) = &dys[0] else { return Ok(results) };
    let dims = nodes::shape(&input, DType::I32);
    let width = nodes::element(&dims, -1);
    let k = nodes::element(&nodes::shape(&places, DType::I32), -1);
    let one = nodes::ints(scope, &[1]);
    let rows = nodes::product(&nodes::part(&dims, 0, Some(-1)));
    let matrix = nodes::concat(&[&nodes::reshape(&rows, &one), &nodes::reshape(&k, &one)]);
    let starts = nodes::expand(&(nodes::range(&rows) * &width), -1);
    let flat = nodes::flat(&(nodes::reshape(&nodes::cast(&places, DType::I32), &matrix) + starts));
    let total = nodes::reshape(&(&rows * &width), &one);
    let back = scatter_nd(&nodes::expand(&flat, -1), &nodes::flat(dy), &total);
    results[0] = grads![nodes::reshape(&back, &dims)].remove(0);
    Ok(results)
}

fn top_k_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let k = match setup.find("k") {
        Some(_) => Some(setup.int("k")?),
        None => None,
    };
    let index_type = setup.output_types()[1];
    let kernel = many(move |ctx, mut inputs| {
        let input = inputs.tensor(0)?;
        let k = match k {
            Some(k) => k,
            None => {
                let k = inputs.tensor(1)?;
                integer(&k, || invalid!("k must be scalar, got shape {}", k.shape()))?
            }
        };
        run(ctx, &input, k, index_type)
    });
    Ok(kernel.heavy())
}

fn run(ctx: &Ctx<'_>, input: &Tensor, k: i64, index_type: DType) -> Result<Outputs> {
    let Ok(k) = usize::try_from(k) else { return Err(invalid!("Need k >= 0, got {k}")) };
    let Some((&width, batch)) = input.shape().split_last() else {
        return Err(invalid!("input must be >= 1-D, got shape {}", input.shape()));
    };
    if width < k {
        return Err(invalid!("input must have at least k columns. Had {width}, needed {k}"));
    }
    let (rows, highest) = (product(batch), largest(index_type) as usize);
    for (name, size) in [("First", rows), ("Second", width)] {
        if size > highest {
            return Err(invalid!("{name} dimension of flattened input must be <= {highest}, got {size}"));
        }
    }
    let shape: Shape = batch.iter().copied().chain([k]).collect();
    let places = best_places(ctx, input, width, k, shape.elements())?;
    let mut top = Tensor::scratch_of(input.dtype(), &shape)?;
    for_units!(input.dtype(), E => pick(E::of(input)?, &places, (width, k), E::of_mut(&mut top)?));
    let indices = from_places(&places, shape, index_type)?;
    Ok(outputs![top, indices])
}

/// Narrow numbers are compared as wider ones: the order is the same.
fn best_places(ctx: &Ctx<'_>, input: &Tensor, width: usize, k: usize, count: usize) -> Result<Vec<usize>> {
    match input.dtype() {
        DType::F32 => Ok(row_places(ctx, input.values::<f32>()?, width, k, count)),
        DType::F64 => Ok(row_places(ctx, input.values::<f64>()?, width, k, count)),
        DType::U64 => Ok(row_places(ctx, input.values::<u64>()?, width, k, count)),
        DType::F16 => {
            let wide: Vec<f32> = input.values::<f16>()?.iter().map(|value| value.to_f32()).collect();
            Ok(row_places(ctx, &wide, width, k, count))
        }
        DType::BF16 => {
            let wide: Vec<f32> = input.values::<bf16>()?.iter().map(|value| value.to_f32()).collect();
            Ok(row_places(ctx, &wide, width, k, count))
        }
        _ => Ok(row_places(ctx, &op::shapes::integers(input)?, width, k, count)),
    }
}

fn row_places<T: Element + PartialOrd>(
    ctx: &Ctx<'_>,
    values: &[T],
    width: usize,
    k: usize,
    count: usize,
) -> Vec<usize> {
    let mut places = vec![0_usize; count];
    if k > 0 {
        let cost = width as f32 * 2.0 + k as f32 * 20.0;
        split_rows_mut(ctx.pool(), cost, &mut places, k, |first, part| {
            let mut candidates = Vec::new();
            for (number, places) in part.chunks_exact_mut(k).enumerate() {
                best(&values[(first + number) * width..][..width], k, &mut candidates);
                places.iter_mut().zip(&candidates).for_each(|(place, candidate)| *place = candidate.1 as usize);
            }
        });
    }
    places
}

fn pick<E: Unit>(values: &[E], places: &[usize], (width, k): (usize, usize), top: &mut [E]) {
    let rows = top.chunks_exact_mut(k.max(1)).zip(places.chunks_exact(k.max(1)));
    for (row, (top, places)) in rows.enumerate() {
        top.iter_mut().zip(places).for_each(|(top, &place)| *top = values[row * width + place].clone());
    }
}

/// The `k` largest elements of a row, in order. Candidates are collected in a list a few times as long, which is cut
/// to `k` whenever it is full. Most elements are then rejected by one comparison.
fn best<T: Element + PartialOrd>(row: &[T], k: usize, candidates: &mut Vec<(T, u32)>) {
    let better = |a: &(T, u32), b: &(T, u32)| compare(&b.0, &a.0).then(a.1.cmp(&b.1));
    let limit = if k < row.len() { (k * 2).max(k + 32) } else { usize::MAX };
    candidates.clear();
    candidates.reserve(limit.min(row.len()));
    let mut worst = None;
    for (place, &value) in row.iter().enumerate() {
        if worst.is_some_and(|worst| value <= worst) {
            continue;
        }
        candidates.push((value, place as u32));
        if candidates.len() == limit {
            candidates.select_nth_unstable_by(k - 1, better);
            candidates.truncate(k);
            worst = Some(candidates[k - 1].0);
        }
    }
    if candidates.len() > k {
        candidates.select_nth_unstable_by(k - 1, better);
        candidates.truncate(k);
    }
    candidates.sort_unstable_by(better);
}
