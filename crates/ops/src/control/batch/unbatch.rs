//! Unbatch: hands each step its rows of what one step computed for a batch.

use super::split::split;
use super::timers::Timers;
use super::unbatch_grad::unbatch_grad;
use crate::data_structures::named::{Unnamed, place_name};
use graph::{Node, Output, ShapeQuery};
use op::{
    CancelToken, Ctx, Done, Grad, Grads, Inputs, Kernel, NoGradient, Op, PLAIN, Setup, StepEnv, grads, later, outputs,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Code, Error, Result, already_exists, cancelled, invalid};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tensor::{PartialShape, Tensor};

pub(super) const UNBATCH: Op = Op {
    def: "Unbatch(batched_tensor: T, batch_index: int64, id: int64) -> unbatched_tensor: T; timeout_micros: int; \
          container: string = \"\"; shared_name: string = \"\"; T: type",
    shape: rows_unknown,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
};

/// The rows of this step of a tensor that was computed for a batch.
pub(super) fn unbatch(batched: &Output, places: &Output, id: &Output, timeout_micros: i64, name: &str) -> Output {
    let builder = batched.scope().op("Unbatch").input(batched).input(places).input(id);
    builder.attr("timeout_micros", timeout_micros).attr("shared_name", name).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let name = format!("unbatch_gradient_{}", op.name());
    let inputs = [op.input(0).seen_from(dy.scope()), op.input(1), dy.clone(), op.input(2)];
    Ok(grads![unbatch_grad(&inputs, &name), NoGradient, NoGradient])
}

fn rows_unknown(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    match dims.split_first() {
        Some((_, rest)) => Ok(vec![PartialShape::new(&[&[-1], rest].concat())]),
        None => Err(invalid!("Shape must be at least rank 1 but is rank 0")),
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (container, name, _) = place_name(setup, Unnamed::ByNode)?;
    let resources = setup.resources().clone();
    let timeout = Duration::from_micros(u64::try_from(setup.int("timeout_micros")?).unwrap_or(0));
    Ok(later(move |ctx, mut inputs, done| {
        let make = || Ok(Unbatcher { timeout, state: Mutex::default(), timers: Timers::default() });
        let unbatcher = resources.get_or_create::<Unbatcher>(&container, &name, make);
        match unbatcher.and_then(|unbatcher| Ok((unbatcher, Request::read(&mut inputs)?))) {
            Ok((unbatcher, request)) => unbatcher.serve(ctx, request, done),
            Err(error) => done(Err(error)),
        }
    }))
}

/// The number of a step, and the rows of all steps of a batch if this step has them.
struct Request {
    id: i64,
    parts: Vec<(i64, Tensor)>,
}

impl Request {
    fn read(inputs: &mut Inputs) -> Result<Request> {
        let (data, places, id) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let Some(&rows) = data.shape().first() else {
            return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
        };
        let &[count, width] = places.shape().dims() else {
            return Err(invalid!("Shape must be rank 2 but is rank {}", places.shape().rank()));
        };
        if count > rows {
            return Err(invalid!(
                "Wrong shape for index tensor. Expected 0th dimension size to be no greater than {rows}; Got: {count}."
            ));
        }
        if width != 3 {
            return Err(invalid!("Wrong shape for index tensor. Expected 1st dimension size to be 3 ; Got: {width}."));
        }
        if id.shape().rank() != 0 {
            return Err(invalid!("Input id should be scalar; Got: {id:?}."));
        }
        let places = places.values::<i64>()?;
        let sizes = places.chunks_exact(3).map(|place| place[2].checked_sub(place[1]));
        let sizes = sizes.map(|size| usize::try_from(size?).ok().filter(|&size| size <= rows));
        let sizes = sizes.collect::<Option<Vec<usize>>>();
        let sizes = sizes.ok_or_else(|| invalid!("The rows in batch_index are not rows of the batch"))?;
        if sizes.iter().sum::<usize>() > rows {
            return Err(invalid!("The sizes in batch_index exceed the {rows} rows of the batch"));
        }
        let ids = places.chunks_exact(3).map(|place| place[0]);
        Ok(Request { id: id.to_scalar()?, parts: ids.zip(split(&data, &sizes)?).collect() })
    }
}

/// Rows that wait for their steps, and steps that wait for their rows.
struct Unbatcher {
    timeout: Duration,
    state: Mutex<State>,
    timers: Timers,
}

#[derive(Default)]
struct State {
    rows: FxHashMap<i64, (Instant, Tensor)>,
    steps: FxHashMap<i64, Step>,
}

struct Step {
    deadline: Instant,
    env: Arc<StepEnv>,
    token: Option<CancelToken>,
    done: Done,
}

impl Step {
    /// Answers on a thread of the step.
    fn answer(self, result: Result<Tensor>) {
        if let Some(token) = self.token {
            self.env.cancel.deregister(token);
        }
        let Step { env, done, .. } = self;
        (env.spawn)(Box::new(move || done(result.map(|tensor| outputs![tensor]))));
    }
}

impl Unbatcher {
    fn serve(self: &Arc<Self>, ctx: &Ctx<'_>, request: Request, done: Done) {
        let deadline = Instant::now() + self.timeout;
        let unbatcher = Arc::downgrade(self);
        let expire = move || {
            if let Some(unbatcher) = unbatcher.upgrade() {
                unbatcher.expire();
            }
        };
        if let Err(error) = self.timers.at(deadline, expire) {
            return done(Err(error));
        }
        let mut state = self.state.lock();
        if let Some((_, tensor)) = state.rows.remove(&request.id) {
            drop(state);
            return done(Ok(outputs![tensor]));
        }
        if state.steps.contains_key(&request.id) {
            drop(state);
            return done(Err(already_exists!("Multiple session runs with the same batch key.")));
        }
        let id = request.id;
        state.steps.insert(id, Step { deadline, env: ctx.env.clone(), token: None, done });
        let mut answers = Vec::new();
        for (id, tensor) in request.parts {
            match state.steps.remove(&id) {
                Some(step) => answers.push((step, Ok(tensor))),
                None => _ = state.rows.insert(id, (deadline, tensor)),
            }
        }
        answers.extend(self.watch(ctx, id, &mut state));
        drop(state);
        answers.into_iter().for_each(|(step, result)| step.answer(result));
    }

    /// Withdraws the step when it is cancelled; at once if it is.
    fn watch(self: &Arc<Self>, ctx: &Ctx<'_>, id: i64, state: &mut State) -> Option<(Step, Result<Tensor>)> {
        state.steps.get(&id)?;
        let unbatcher = Arc::downgrade(self);
        let watched = ctx.env.cancel.register(move |_| {
            let step = unbatcher.upgrade().and_then(|unbatcher| unbatcher.state.lock().steps.remove(&id));
            if let Some(step) = step {
                (step.done)(Err(cancelled!("The step was cancelled while it waited for its rows")));
            }
        });
        match watched {
            Ok(token) => {
                state.steps.get_mut(&id)?.token = Some(token);
                None
            }
            Err(error) => state.steps.remove(&id).map(|step| (step, Err(error))),
        }
    }

    fn expire(&self) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.rows.retain(|_, (deadline, _)| *deadline > now);
        let late: Vec<Step> = state.steps.extract_if(|_, step| step.deadline <= now).map(|(_, step)| step).collect();
        drop(state);
        let error = Error::new(Code::DeadlineExceeded, "Batched data did not arrive within timeout window.");
        late.into_iter().for_each(|step| step.answer(Err(error.clone())));
    }
}
