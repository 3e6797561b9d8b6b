//! The state of an accumulator: the sum so far, the number of gradients in it, and the ops that wait for it.

use super::counters::{Counters, Outcome};
use crate::data_structures::arithmetic::add;
use crate::data_structures::waiting::{Answer, Line, Waiter};
use math::function::Number;
use membership::{Member, Quorum};
use op::{Ctx, Resource, StepEnv};
use parking_lot::Mutex;
use status::{Result, cancelled, invalid};
use std::cmp::Ordering;
use std::sync::Arc;
use tensor::{DType, Element, PartialShape, Shape, Tensor, f16};

/// An accumulator of gradients of one type, and of shapes that `shape` accepts.
pub(crate) struct Accumulator {
    pub dtype: DType,
    shape: PartialShape,
    mean: bool,
    sparse: bool,
    counters: Option<Arc<Counters>>,
    state: Mutex<State>,
}

impl Resource for Accumulator {
    const TYPE_NAME: &'static str = "N10tensorflow26ConditionalAccumulatorBaseE";
}

#[derive(Default)]
struct State {
    count: usize,
    global_step: i64,
    sum: Option<Sum>,
    takers: Line<usize>,
    quorum: Quorum,
}

/// A gradient to be added.
pub(crate) enum Gradient {
    Dense(Tensor),
    Sparse { indices: Tensor, values: Tensor, shape: Option<Tensor> },
}

/// A sum of gradients. Rows of a sparse sum are sorted by index; `counts` says how many gradients had each row.
enum Sum {
    Dense(Tensor),
    Sparse { indices: Vec<i64>, counts: Vec<usize>, values: Tensor },
}

/// A sum that was taken, and the number of gradients in it.
struct Taken {
    sum: Sum,
    count: usize,
}

impl Accumulator {
    /// An accumulator without gradients, in step zero.
    pub fn new(dtype: DType, shape: PartialShape, mean: bool, sparse: bool) -> Accumulator {
        Accumulator { dtype, shape, mean, sparse, counters: None, state: Mutex::default() }
    }

    /// The same accumulator. With counters it belongs to synchronous training: it counts the outcomes of gradients, and
    /// distinguishes sessions if the task does.
    pub fn counting(mut self, counters: Option<Arc<Counters>>) -> Accumulator {
        self.counters = counters;
        self
    }

    /// The types of the outputs of a take.
    pub fn output_types(&self) -> Vec<DType> {
        match self.sparse {
            true => vec![DType::I64, self.dtype, DType::I64],
            false => vec![self.dtype],
        }
    }

    /// The number of gradients in the current sum.
    pub fn num_accumulated(&self) -> usize {
        self.state.lock().count
    }

    /// Sets the current step; gradients of earlier steps are dropped from now on.
    pub fn set_global_step(&self, step: i64) {
        self.state.lock().global_step = step;
    }

    /// Adds a gradient. A gradient of an earlier step is dropped, so that a slow replica does not undo the work of the
    /// others. If sessions are distinguished, the second gradient of a session in a step is dropped too.
    pub fn apply(self: &Arc<Self>, ctx: &Ctx<'_>, local_step: i64, gradient: Gradient) -> Result<()> {
        let member = self.counters.as_ref().and_then(|_| ctx.env.extensions.get::<Arc<Member>>());
        if let Some(member) = member {
            self.add_member(member, local_step);
        }
        let settled = {
            let mut state = self.state.lock();
            if local_step < state.global_step {
                self.count(Outcome::Stale);
                return Ok(());
            }
            if member.is_some_and(|member| state.quorum.has_gradient_of(member)) {
                self.count(Outcome::Dropped);
                return Ok(());
            }
            let before = if state.count > 0 { state.sum.take() } else { None };
            let checked = self.check(before.as_ref(), &gradient);
            if let Err(error) = checked {
                state.sum = before;
                return Err(error);
            }
            let sum = joined(ctx, before, gradient);
            state.count = if sum.is_ok() { state.count + 1 } else { 0 };
            state.sum = Some(sum?);
            member.inspect(|member| state.quorum.add_gradient(member));
            self.count(Outcome::Accepted);
            state.serve()
        };
        self.settle(ctx.env, settled);
        Ok(())
    }

    /// Notes that a session takes part. If it dies, the ops that wait may have enough gradients without its own.
    fn add_member(self: &Arc<Self>, member: &Arc<Member>, local_step: i64) {
        member.sent_gradient(local_step);
        if !self.state.lock().quorum.join(member) {
            return;
        }
        let accumulator = Arc::downgrade(self);
        member.on_change(move |_| {
            let Some(accumulator) = accumulator.upgrade() else { return };
            let settled = accumulator.state.lock().serve();
            accumulator.settle(None, settled);
        });
    }

    /// The numbers of accepted, stale and dropped gradients, if they are counted.
    pub fn counts(&self) -> Option<[i64; 3]> {
        self.counters.as_ref().map(|counters| counters.counts())
    }

    fn count(&self, outcome: Outcome) {
        if let Some(counters) = &self.counters {
            counters.count(outcome);
        }
    }

    /// Takes the sum as soon as `required` gradients are in it.
    pub fn take(self: Arc<Self>, env: &Arc<StepEnv>, required: usize, answer: Answer) {
        if env.cancel.is_cancelled() {
            return answer(Err(gave_up()));
        }
        let mut state = self.state.lock();
        let number = state.takers.join(required, Waiter::new(env, answer));
        let settled = state.serve();
        let accumulator = self.clone();
        let too_late = state.takers.watch(number, move || accumulator.give_up(number));
        drop(state);
        self.settle(env, settled);
        if let Some((_, waiter)) = too_late {
            waiter.abandon(gave_up());
        }
    }

    fn give_up(&self, number: u64) {
        let (waiter, settled) = {
            let mut state = self.state.lock();
            (state.takers.remove(number), state.serve())
        };
        let Some((_, waiter)) = waiter else { return };
        let env = waiter.env().clone();
        waiter.abandon(gave_up());
        self.settle(&env, settled);
    }

    fn settle<'a>(&self, here: impl Into<Option<&'a Arc<StepEnv>>>, settled: Vec<(Waiter, Taken)>) {
        let here = here.into();
        for (waiter, taken) in settled {
            let (mean, shape) = (self.mean, self.shape.clone());
            waiter.settle(here, move || taken.result(mean, &shape));
        }
    }

    fn check(&self, before: Option<&Sum>, gradient: &Gradient) -> Result<()> {
        match (gradient, before) {
            (Gradient::Dense(_), _) if self.sparse => Err(invalid!("A sparse accumulator takes no dense gradients")),
            (Gradient::Sparse { .. }, _) if !self.sparse => {
                Err(invalid!("A dense accumulator takes no sparse gradients"))
            }
            (Gradient::Dense(gradient), Some(Sum::Dense(sum))) if sum.shape() != gradient.shape() => {
                Err(invalid!("Shape mismatch: expected {}, got {}", sum.shape(), gradient.shape()))
            }
            (Gradient::Dense(gradient), _) if !self.shape.accepts(gradient.shape()) => {
                Err(invalid!("Shape mismatch: expected {}, got {}", self.shape, gradient.shape()))
            }
            (Gradient::Dense(_), _) => Ok(()),
            (Gradient::Sparse { indices, values, shape }, before) => {
                check_parts(indices, values)?;
                self.check_shape(shape.as_ref())?;
                self.check_indices(indices)?;
                self.check_values(values, before)
            }
        }
    }

    fn check_shape(&self, shape: Option<&Tensor>) -> Result<()> {
        let (Some(shape), Some(dims)) = (shape, self.shape.dims()) else { return Ok(()) };
        let shape = shape.values::<i64>()?;
        if dims.len() > shape.len() {
            return Err(invalid!("Shape mismatch: expected shape rank at least {}, got {}", dims.len(), shape.len()));
        }
        for (i, (&dim, &found)) in dims.iter().zip(shape).enumerate() {
            if dim >= 0 && dim != found {
                return Err(invalid!("Shape mismatch: expected shape dim {i} to be {dim}, got {found}"));
            }
        }
        Ok(())
    }

    fn check_indices(&self, indices: &Tensor) -> Result<()> {
        let Some(limit) = self.shape.dim(0) else { return Ok(()) };
        let outside = |&&index: &&i64| index >= limit as i64;
        match indices.values::<i64>()?.iter().enumerate().find(|(_, index)| outside(index)) {
            Some((i, index)) => Err(invalid!(
                "Shape mismatch: index of slice {i} exceeded limits of shape; index is {index} exceeded {limit}"
            )),
            None => Ok(()),
        }
    }

    fn check_values(&self, values: &Tensor, before: Option<&Sum>) -> Result<()> {
        let found = values.shape();
        let expected: Vec<i64> = match before {
            Some(Sum::Sparse { values: sum, .. }) => {
                let rank = sum.shape().rank();
                if rank != found.rank() {
                    return Err(invalid!("Shape mismatch: expected values rank {rank}, got {}", found.rank()));
                }
                sum.shape().to_i64().to_vec()
            }
            _ => {
                let dims = self.shape.dims().unwrap_or_default();
                if dims.len() > found.rank() {
                    return Err(invalid!(
                        "Shape mismatch: expected values rank at least {}, got {}",
                        dims.len(),
                        found.rank()
                    ));
                }
                dims.to_vec()
            }
        };
        for (i, (&dim, &found)) in expected.iter().zip(found.iter()).enumerate().skip(1) {
            if dim >= 0 && dim != found as i64 {
                return Err(invalid!("Shape mismatch: expected values dim {i} to be {dim}, got {found}"));
            }
        }
        Ok(())
    }
}

impl State {
    /// Removes the ops that can be answered: the first in line, for as long as there are enough gradients.
    fn serve(&mut self) -> Vec<(Waiter, Taken)> {
        let mut served = Vec::new();
        while self.count > 0
            && self.takers.first().is_some_and(|required| self.quorum.is_reached(*required, self.count))
        {
            let Some(sum) = self.sum.take() else { break };
            let Some((_, waiter)) = self.takers.pop() else { break };
            served.push((waiter, Taken { sum, count: self.count }));
            self.count = 0;
            self.quorum.reset();
            self.global_step += 1;
        }
        served
    }
}

impl Taken {
    fn result(self, mean: bool, shape: &PartialShape) -> Result<Vec<Tensor>> {
        match self.sum {
            Sum::Dense(mut sum) => {
                if mean {
                    let counts = [self.count];
                    divide(&mut sum, &counts)?;
                }
                Ok(vec![sum])
            }
            Sum::Sparse { indices, counts, mut values } => {
                if mean {
                    divide(&mut values, &counts)?;
                }
                let mut dims = values.shape().to_i64();
                let rows = shape.dims().and_then(|dims| dims.first()).copied().unwrap_or(-1);
                dims.iter_mut().take(1).for_each(|dim| *dim = rows);
                Ok(vec![Tensor::vector(&indices), values, Tensor::vector::<i64>(&dims)])
            }
        }
    }
}

fn gave_up() -> status::Error {
    cancelled!("TakeGrad operation was cancelled")
}

fn check_parts(indices: &Tensor, values: &Tensor) -> Result<()> {
    if indices.shape().rank() != 1 {
        return Err(invalid!("Input indices should be vector but received shape: {}", indices.shape()));
    }
    match values.shape().first() {
        None => Err(invalid!("Values cannot be 0-dimensional.")),
        Some(&rows) if rows != indices.elements() => {
            Err(invalid!("Expected {} non-empty input values, got {rows}", indices.elements()))
        }
        Some(_) => Ok(()),
    }
}

fn joined(ctx: &Ctx<'_>, before: Option<Sum>, gradient: Gradient) -> Result<Sum> {
    match (before, gradient) {
        (Some(Sum::Dense(sum)), Gradient::Dense(gradient)) => Ok(Sum::Dense(add(ctx, sum, &gradient)?)),
        (_, Gradient::Dense(gradient)) => Ok(Sum::Dense(gradient)),
        (Some(Sum::Sparse { indices, counts, values }), Gradient::Sparse { indices: more, values: rows, .. }) => {
            merged((&indices, &counts, &values), more.values::<i64>()?, &rows)
        }
        (_, Gradient::Sparse { indices, values, .. }) => {
            Ok(Sum::Sparse { indices: indices.values::<i64>()?.to_vec(), counts: vec![1; indices.elements()], values })
        }
    }
}

/// The rows that a row of a merged sum is made of: one of the old sum, one of the new gradient, or both.
type Origin = (Option<usize>, Option<usize>);

/// The sum of two lists of rows, both sorted by row number.
fn merged(sum: (&[i64], &[usize], &Tensor), indices: &[i64], values: &Tensor) -> Result<Sum> {
    let origins = origins(sum.0, indices);
    let (mut numbers, mut counts) = (Vec::with_capacity(origins.len()), Vec::with_capacity(origins.len()));
    for &(old, new) in &origins {
        numbers.push(old.map(|i| sum.0[i]).or(new.map(|j| indices[j])).unwrap_or_default());
        counts.push(old.map_or(0, |i| sum.1[i]) + usize::from(new.is_some()));
    }
    let mut shape = values.shape().clone();
    shape.dims_mut().iter_mut().take(1).for_each(|rows| *rows = origins.len());
    let values = match values.dtype() {
        DType::F32 => add_rows::<f32>(&origins, sum.2, values, shape)?,
        DType::F64 => add_rows::<f64>(&origins, sum.2, values, shape)?,
        _ => add_rows::<f16>(&origins, sum.2, values, shape)?,
    };
    Ok(Sum::Sparse { indices: numbers, counts, values })
}

fn origins(a: &[i64], b: &[i64]) -> Vec<Origin> {
    let (mut i, mut j) = (0, 0);
    let mut origins = Vec::with_capacity(a.len() + b.len());
    while i < a.len() || j < b.len() {
        let order = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => x.cmp(y),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let (old, new) = (order != Ordering::Greater, order != Ordering::Less);
        origins.push((old.then_some(i), new.then_some(j)));
        i += usize::from(old);
        j += usize::from(new);
    }
    origins
}

fn add_rows<T: Element + Number>(origins: &[Origin], sum: &Tensor, values: &Tensor, shape: Shape) -> Result<Tensor> {
    let width = Shape::new(&shape[1..]).elements();
    let mut out = Tensor::scratch::<T>(&shape)?;
    if width == 0 {
        return Ok(out);
    }
    let (sum, values) = (sum.values::<T>()?, values.values::<T>()?);
    let row = |values: &'_ [T], i: usize| -> std::ops::Range<usize> { i * width..((i + 1) * width).min(values.len()) };
    for (dst, origin) in out.values_mut::<T>()?.chunks_mut(width).zip(origins) {
        match *origin {
            (Some(i), Some(j)) => {
                let pairs = values[row(values, j)].iter().zip(&sum[row(sum, i)]);
                dst.iter_mut().zip(pairs).for_each(|(dst, (&x, &y))| *dst = T::add(x, y));
            }
            (Some(i), None) => dst.copy_from_slice(&sum[row(sum, i)]),
            (None, Some(j)) => dst.copy_from_slice(&values[row(values, j)]),
            (None, None) => {}
        }
    }
    Ok(out)
}

/// Divides each of several equal parts of a tensor by its count.
fn divide(tensor: &mut Tensor, counts: &[usize]) -> Result<()> {
    match tensor.dtype() {
        DType::F32 => divide_values::<f32>(tensor, counts, |count| count as f32, |x, n| x / n),
        DType::F64 => divide_values::<f64>(tensor, counts, |count| count as f64, |x, n| x / n),
        _ => divide_values::<f16>(tensor, counts, |count| f16::from_f32(count as f32), |x, n| x / n),
    }
}

fn divide_values<T: Element>(
    tensor: &mut Tensor,
    counts: &[usize],
    number: impl Fn(usize) -> T,
    divide: impl Fn(T, T) -> T,
) -> Result<()> {
    let width = tensor.elements() / counts.len().max(1);
    if width == 0 {
        return Ok(());
    }
    for (part, &count) in tensor.values_mut::<T>()?.chunks_mut(width).zip(counts) {
        let count = number(count);
        part.iter_mut().for_each(|value| *value = divide(*value, count));
    }
    Ok(())
}
