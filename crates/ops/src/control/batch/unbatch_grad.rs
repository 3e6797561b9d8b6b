//! UnbatchGrad: gathers the gradients of all steps of a batch in the step that computed it.

use super::split::{concat, rows};
use crate::data_structures::named::{Unnamed, place_name};
use graph::{Output, ShapeQuery};
use op::{Ctx, Done, Grad, Inputs, Kernel, Op, PLAIN, Setup, StepEnv, later, outputs};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use status::{Result, cancelled, internal, invalid};
use std::sync::Arc;
use tensor::{PartialShape, Tensor};

pub(super) const UNBATCH_GRAD: Op = Op {
    def: "UnbatchGrad(original_input: T, batch_index: int64, grad: T, id: int64) -> batched_grad: T; \
          container: string = \"\"; shared_name: string = \"\"; T: type",
    shape: rank_of_gradient,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
};

/// The gradients of all steps of a batch: the batch, the places of the steps, the gradient of this step, its number.
pub(super) fn unbatch_grad(inputs: &[Output; 4], name: &str) -> Output {
    let builder = inputs[2].scope().op("UnbatchGrad");
    inputs.iter().fold(builder, |builder, input| builder.input(input)).attr("shared_name", name).output()
}

fn rank_of_gradient(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[2].rank().map_or(PartialShape::unknown(), PartialShape::of_rank)])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (container, name, _) = place_name(setup, Unnamed::ByNode)?;
    let resources = setup.resources().clone();
    Ok(later(move |ctx, mut inputs, done| {
        let gatherer = resources.get_or_create::<Gatherer>(&container, &name, || Ok(Gatherer::default()));
        match gatherer.and_then(|gatherer| Ok((gatherer, Request::read(&mut inputs)?))) {
            Ok((gatherer, request)) => gatherer.serve(ctx, request, done),
            Err(error) => done(Err(error)),
        }
    }))
}

/// The gradient of a step, and the steps of the batch if this step computed it.
struct Request {
    id: i64,
    gradient: Tensor,
    wanted: Option<Vec<i64>>,
}

impl Request {
    fn read(inputs: &mut Inputs) -> Result<Request> {
        let (data, places) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let (gradient, id) = (inputs.tensor(2)?, inputs.tensor(3)?);
        if id.shape().rank() != 0 {
            return Err(invalid!("Expected `id` to be scalar. Received {id:?}"));
        }
        if gradient.shape().rank() == 0 {
            return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
        }
        let id = id.to_scalar()?;
        if data.elements() == 0 {
            return Ok(Request { id, gradient, wanted: None });
        }
        if places.elements() == 0 {
            return Err(invalid!("batch_index is empty while the tensor isn't."));
        }
        let count = places.shape().first().copied().unwrap_or(0);
        if places.elements() != count * 3 {
            return Err(invalid!("batch_index should contain {} elements. Received {}", count * 3, places.elements()));
        }
        let wanted = places.values::<i64>()?.chunks_exact(3).map(|place| place[0]).collect();
        Ok(Request { id, gradient, wanted: Some(wanted) })
    }
}

/// Gradients that wait for their batch, and batches that wait for gradients.
#[derive(Default)]
struct Gatherer(Mutex<State>);

#[derive(Default)]
struct State {
    gradients: FxHashMap<i64, Tensor>,
    batches: FxHashMap<i64, Batch>,
    /// The batch that waits for the gradient of a step.
    waits: FxHashMap<i64, i64>,
}

struct Batch {
    missing: FxHashSet<i64>,
    wanted: Vec<i64>,
    env: Arc<StepEnv>,
    done: Done,
}

/// A batch whose gradients are there, in order.
type Complete = (Batch, Result<Vec<Tensor>>);

impl Gatherer {
    fn serve(self: &Arc<Self>, ctx: &Ctx<'_>, request: Request, done: Done) {
        let mut state = self.0.lock();
        if state.gradients.contains_key(&request.id) {
            drop(state);
            return done(Err(invalid!("Two runs with the same batch key.")));
        }
        let own = match request.wanted {
            None => Some((done, rows(&request.gradient, 0, 0))),
            Some(wanted) => {
                let (env, missing) = (ctx.env.clone(), FxHashSet::default());
                if let Err((done, error)) = state.add(request.id, Batch { missing, wanted, env, done }) {
                    drop(state);
                    return done(Err(error));
                }
                None
            }
        };
        state.gradients.insert(request.id, request.gradient);
        let complete = state.arrived(request.id);
        if complete.is_none() && own.is_none() {
            self.watch(ctx, request.id);
        }
        drop(state);
        if let Some((done, result)) = own {
            done(result.map(|tensor| outputs![tensor]));
        }
        complete.into_iter().for_each(finish);
    }

    /// Withdraws a batch when its step is cancelled.
    fn watch(self: &Arc<Self>, ctx: &Ctx<'_>, id: i64) {
        let gatherer = Arc::downgrade(self);
        let withdraw = move || {
            let batch = gatherer.upgrade().and_then(|gatherer| gatherer.0.lock().remove(id));
            if let Some(batch) = batch {
                (batch.done)(Err(cancelled!("The step was cancelled while it waited for gradients")));
            }
        };
        let again = withdraw.clone();
        if ctx.env.cancel.register(move |_| withdraw()).is_err() {
            (ctx.env.spawn)(Box::new(again)); // the caller holds the lock
        }
    }
}

impl State {
    fn add(&mut self, id: i64, mut batch: Batch) -> std::result::Result<(), (Done, status::Error)> {
        let missing = |step: &&i64| **step == id || !self.gradients.contains_key(*step);
        batch.missing = batch.wanted.iter().filter(missing).copied().collect();
        if self.batches.contains_key(&id) {
            return Err((batch.done, invalid!("Batch key with valid batch used twice.")));
        }
        if batch.missing.iter().any(|step| self.waits.contains_key(step)) {
            return Err((batch.done, invalid!("Missing tensor wanted by more than one batch.")));
        }
        self.waits.extend(batch.missing.iter().map(|&step| (step, id)));
        self.batches.insert(id, batch);
        Ok(())
    }

    /// The batch that has all gradients now that that of this step is there.
    fn arrived(&mut self, step: i64) -> Option<Complete> {
        let waiting = self.waits.remove(&step);
        let id = waiting.unwrap_or(step);
        let batch = self.batches.get_mut(&id)?;
        batch.missing.remove(&step);
        if !batch.missing.is_empty() {
            return None;
        }
        let batch = self.batches.remove(&id)?;
        let take =
            |step: &i64| self.gradients.remove(step).ok_or_else(|| internal!("bad bookkeeping of available tensors."));
        let gradients = batch.wanted.iter().map(take).collect();
        Some((batch, gradients))
    }

    fn remove(&mut self, id: i64) -> Option<Batch> {
        let batch = self.batches.remove(&id)?;
        batch.missing.iter().for_each(|step| _ = self.waits.remove(step));
        Some(batch)
    }
}

fn finish((batch, gradients): Complete) {
    let Batch { env, done, .. } = batch;
    let spawn = env.spawn.clone();
    spawn(Box::new(move || {
        let ctx = Ctx { env: &env, frame: 0, iteration: 0 };
        done(gradients.and_then(|parts| Ok(outputs![concat(&ctx, &parts)?])));
    }));
}
