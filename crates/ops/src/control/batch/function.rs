//! BatchFunction: one call of a function does the work of several steps.

use super::split::{concat, split};
use super::task::{Place, Task, Work, empty, rows_of};
use op::shapes::unknown;
use op::{Callable, Ctx, Done, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, StepEnv, Value, later};
use parking_lot::Mutex;
use status::{Error, Result, invalid};
use std::sync::Arc;
use tensor::{DType, Tensor};

pub(super) const BATCH_FUNCTION: Op = Op {
    def: "BatchFunction(in_tensors: [Tin], captured_tensors: [Tcaptured]) -> out_tensors: [Tout]; f: func; \
          num_batch_threads: int; max_batch_size: int; batch_timeout_micros: int; max_enqueued_batches: int = 10; \
          allowed_batch_sizes: list(int) = []; container: string = \"\"; shared_name: string = \"\"; \
          batching_queue: string = \"\"; low_priority_max_batch_size: int = 0; \
          low_priority_batch_timeout_micros: int = 0; low_priority_allowed_batch_sizes: list(int) = []; \
          low_priority_max_enqueued_batches: int = 0; \
          mixed_priority_policy: {\"low_priority_padding_with_max_batch_size\", \
          \"low_priority_padding_with_next_allowed_batch_size\", \"priority_isolation\", \"priority_merge\"} = \
          \"low_priority_padding_with_max_batch_size\"; \
          batch_padding_policy: {\"PAD_UP\", \"BATCH_DOWN\", \"MINIMIZE_TPU_COST_PER_REQUEST\"} = \"PAD_UP\"; \
          Tin: list(type) >= 1; Tcaptured: list(type) >= 0; Tout: list(type) >= 1; \
          enable_large_batch_splitting: bool = false; distributed",
    shape: unknown,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
};

struct Form {
    place: Place,
    function: Arc<dyn Callable>,
    /// How many inputs are batched; the others are the same for all.
    batched: usize,
    splits: bool,
    types: Vec<DType>,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let splits = setup.bool("enable_large_batch_splitting")?;
    let batched = setup.types("Tin")?.len();
    if let Some(input) = setup.input_types().iter().take(batched).position(|&dtype| dtype == DType::RESOURCE) {
        return Err(invalid!("BatchFunction cannot take resource inputs but input {input} is a resource."));
    }
    let (place, function) = (Place::of(setup, splits)?, setup.function("f")?);
    let form = Form { place, function, batched, splits, types: setup.output_types().to_vec() };
    Ok(later(move |ctx, inputs, done| start(&form, ctx, inputs, done)))
}

fn start(form: &Form, ctx: &Ctx<'_>, mut inputs: Inputs, done: Done) {
    let request = inputs.tensors_from(0).and_then(|mut tensors| {
        let captured = tensors.split_off(form.batched.min(tensors.len()));
        Ok((form.place.batcher()?, rows_of(&tensors)?, tensors, captured))
    });
    let (batcher, size, inputs, captured) = match request {
        Ok(request) => request,
        Err(error) => return done(Err(error)),
    };
    if size == 0 {
        return done(empty(&form.types));
    }
    let work = Work::Call(form.function.clone(), captured);
    let policy = &form.place.policy;
    let whole = !form.splits || size <= policy.largest_batch || size > policy.largest_task;
    let tasks = match whole {
        true => Ok(vec![Task::new(ctx, inputs, size, work, done)]),
        false => pieces(ctx, &inputs, sizes(size, policy.largest_batch), &work, done),
    };
    match tasks {
        Ok(tasks) => batcher.submit(&form.place.queue, tasks),
        Err((error, done)) => done(Err(error)),
    }
}

fn sizes(size: usize, largest: usize) -> Vec<usize> {
    let mut sizes = vec![largest; size / largest];
    sizes.extend(Some(size % largest).filter(|&rest| rest > 0));
    sizes
}

/// Tasks of these sizes whose results together are those of one.
fn pieces(
    ctx: &Ctx<'_>,
    inputs: &[Tensor],
    sizes: Vec<usize>,
    work: &Work,
    done: Done,
) -> std::result::Result<Vec<Task>, (Error, Done)> {
    let mut parts: Vec<Vec<Tensor>> = vec![Vec::new(); sizes.len()];
    for input in inputs {
        match split(input, &sizes) {
            Ok(found) => parts.iter_mut().zip(found).for_each(|(part, piece)| part.push(piece)),
            Err(error) => return Err((error, done)),
        }
    }
    let state = State { results: vec![None; sizes.len()], left: sizes.len(), failure: None, done: Some(done) };
    let whole = Arc::new(Whole { env: ctx.env.clone(), state: Mutex::new(state) });
    let task = |(index, (inputs, size))| {
        let whole = whole.clone();
        Task::new(ctx, inputs, size, work.clone(), Box::new(move |result| whole.ended(index, result)))
    };
    Ok(parts.into_iter().zip(sizes).enumerate().map(task).collect())
}

/// A large task of which several batches do a part.
struct Whole {
    env: Arc<StepEnv>,
    state: Mutex<State>,
}

struct State {
    results: Vec<Option<Outputs>>,
    left: usize,
    failure: Option<Error>,
    done: Option<Done>,
}

impl Whole {
    fn ended(&self, index: usize, result: Result<Outputs>) {
        let mut state = self.state.lock();
        state.left -= 1;
        match result {
            Ok(outputs) => state.results[index] = Some(outputs),
            Err(error) => _ = state.failure.get_or_insert(error),
        }
        if state.left > 0 {
            return;
        }
        let (done, failure, results) = (state.done.take(), state.failure.take(), std::mem::take(&mut state.results));
        drop(state);
        let Some(done) = done else { return };
        done(match failure {
            Some(error) => Err(error),
            None => self.together(results),
        });
    }

    fn together(&self, results: Vec<Option<Outputs>>) -> Result<Outputs> {
        let ctx = Ctx { env: &self.env, frame: 0, iteration: 0 };
        let mut columns: Vec<Vec<Tensor>> = Vec::new();
        for outputs in results {
            for (index, output) in outputs.unwrap_or_default().into_iter().enumerate() {
                if columns.len() <= index {
                    columns.push(Vec::new());
                }
                columns[index].push(output.read()?);
            }
        }
        columns.iter().map(|parts| Ok(Value::Tensor(concat(&ctx, parts)?))).collect()
    }
}
