//! Tasks that wait for others of their batch, the batcher that runs them, and the op Batch.

use super::queue::{Batch, Policy, Queue, padded};
use super::split::{concat, rows, split};
use super::timers::Timers;
use super::unbatch::unbatch;
use crate::data_structures::named::{Unnamed, place_name};
use graph::{AttrValue, Node, Output};
use op::shapes::unknown;
use op::{
    Callable, CancelToken, Ctx, Done, Gradient, Grads, Inputs, Kernel, Op, Outputs, PLAIN, Resources, Setup, StepEnv,
    Value, later,
};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result, cancelled, failed_precondition, internal, invalid};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tensor::{DType, Tensor};

pub(super) const BATCH: Op = Op {
    def: "Batch(in_tensors: [T]) -> batched_tensors: [T], batch_index: int64, id: int64; num_batch_threads: int; \
          max_batch_size: int; max_enqueued_batches: int = 10; batch_timeout_micros: int; \
          allowed_batch_sizes: list(int) = []; grad_timeout_micros: int; container: string = \"\"; \
          shared_name: string = \"\"; batching_queue: string = \"\"; T: list(type) >= 1; distributed",
    shape: unknown,
    grad: op::Grad::Rules(rule),
    kernel,
    facts: PLAIN,
};

/// The gradient of a batch goes back to the steps it came from.
fn rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let count = op.all_inputs().len();
    let timeout = op.attr_int("grad_timeout_micros")?;
    let gradient = |index: usize| {
        let dy = dys.get(index)?.as_ref()?;
        let name = format!("batch_gradient_{}_{index}", op.name());
        let (places, id) = (op.output(count).seen_from(dy.scope()), op.output(count + 1));
        Some(Gradient::Dense(unbatch(dy, &places, &id, timeout, &name)))
    };
    Ok((0..count).map(gradient).collect())
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let place = Place::of(setup, false)?;
    let types = setup.output_types().to_vec();
    Ok(later(move |ctx, mut inputs, done| {
        let request = inputs.tensors_from(0).and_then(|tensors| Ok((place.batcher()?, rows_of(&tensors)?, tensors)));
        match request {
            Ok((_, 0, _)) => done(empty(&types)),
            Ok((batcher, size, inputs)) => {
                let task = Task::new(ctx, inputs, size, Work::Gather, done);
                batcher.submit(&place.queue, vec![task]);
            }
            Err(error) => done(Err(error)),
        }
    }))
}

/// The outputs for a task without rows.
pub(super) fn empty(types: &[DType]) -> Result<Outputs> {
    types.iter().map(|&dtype| Ok(Value::Tensor(Tensor::zeros_of(dtype, [0])?))).collect()
}

/// The number of rows of all inputs of a task.
pub(super) fn rows_of(inputs: &[Tensor]) -> Result<usize> {
    let described = || inputs.iter().map(|input| format!("{}\n", input.shape())).collect::<String>();
    let mut sizes = Vec::with_capacity(inputs.len());
    for input in inputs {
        sizes.push(*input.shape().first().ok_or_else(|| {
            invalid!(
                "Batching input tensors must have at least one dimension.\nBelow are the input tensors: \n{}",
                described()
            )
        })?);
    }
    match sizes.first() {
        Some(&size) if sizes.iter().all(|&other| other == size) => Ok(size),
        _ => Err(invalid!(
            "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size.\nBelow are \
             the input tensors: \n{}",
            described()
        )),
    }
}

/// The batcher and the queue that a node uses.
pub(super) struct Place {
    resources: Arc<Resources>,
    container: String,
    name: String,
    pub queue: String,
    pub policy: Policy,
    timeout: Duration,
}

impl Place {
    /// As the attributes of a node say; `splits` if a large task may become several.
    pub fn of(setup: &Setup<'_>, splits: bool) -> Result<Place> {
        let (container, name, _) = place_name(setup, Unnamed::ByNode)?;
        let timeout = setup.int("batch_timeout_micros")?;
        let timeout =
            u64::try_from(timeout).map_err(|_| invalid!("batch_timeout_micros must be non-negative; was {timeout}"))?;
        let queue = setup.string("batching_queue")?;
        let (policy, timeout) = (policy(setup, splits)?, Duration::from_micros(timeout));
        Ok(Place { resources: setup.resources().clone(), container, name, queue, policy, timeout })
    }

    /// The batcher, created if missing.
    pub fn batcher(&self) -> Result<Arc<Batcher>> {
        self.resources.get_or_create(&self.container, &self.name, || {
            let (policy, timeout) = (self.policy.clone(), self.timeout);
            Ok(Batcher { policy, timeout, queues: Mutex::default(), timers: Timers::default() })
        })
    }
}

fn policy(setup: &Setup<'_>, splits: bool) -> Result<Policy> {
    let positive = |name: &str| {
        let value = setup.int(name)?;
        usize::try_from(value)
            .ok()
            .filter(|&value| value > 0)
            .ok_or_else(|| invalid!("{name} must be positive; was {value}"))
    };
    let is_function = matches!(setup.find("f"), Some(AttrValue::Func(_)));
    let running = match (is_function, setup.int("num_batch_threads")?) {
        (true, ..=0) => 64, // TensorFlow then adapts the number to the load
        _ => positive("num_batch_threads")?,
    };
    let largest_task = positive("max_batch_size")?;
    let sizes = allowed_sizes(setup, splits, largest_task)?;
    let largest_batch =
        if splits { sizes.last().map_or(largest_task, |&last| last.min(largest_task)) } else { largest_task };
    Ok(Policy { largest_task, largest_batch, sizes, most_waiting: positive("max_enqueued_batches")?, running })
}

fn allowed_sizes(setup: &Setup<'_>, splits: bool, largest: usize) -> Result<Vec<usize>> {
    let allowed = setup.ints("allowed_batch_sizes")?;
    if allowed.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(invalid!("allowed_batch_sizes entries must be monotonically increasing"));
    }
    if !splits && allowed.last().is_some_and(|&last| last != largest as i64) {
        let when = if setup.find("f").is_some() { " when enable_large_batch_splitting is False" } else { "" };
        return Err(invalid!("final entry in allowed_batch_sizes must equal max_batch_size{when}"));
    }
    let size = |&size: &i64| usize::try_from(size).ok().filter(|&size| size > 0);
    let sizes = allowed.iter().map(size).collect::<Option<Vec<usize>>>();
    sizes.ok_or_else(|| invalid!("allowed_batch_sizes entries must be positive"))
}

/// What a batch does with its tasks.
#[derive(Clone)]
pub(super) enum Work {
    /// One task gets all inputs, the others none.
    Gather,
    /// A function gets all inputs, and then these tensors; every task gets its part of the results.
    Call(Arc<dyn Callable>, Vec<Tensor>),
}

/// The inputs of one run of a node, which waits for the batch they are in.
pub(super) struct Task {
    id: i64,
    inputs: Vec<Tensor>,
    size: usize,
    work: Work,
    env: Arc<StepEnv>,
    frame: u64,
    iteration: u64,
    token: Option<CancelToken>,
    done: Done,
}

impl Task {
    /// A task that nothing can withdraw yet.
    pub fn new(ctx: &Ctx<'_>, inputs: Vec<Tensor>, size: usize, work: Work, done: Done) -> Task {
        // The state of a hasher is random: no two steps may have one number.
        let id = RandomState::new().hash_one(ctx.env.step_id) as i64;
        let (env, frame, iteration) = (ctx.env.clone(), ctx.frame, ctx.iteration);
        Task { id, inputs, size, work, env, frame, iteration, token: None, done }
    }

    /// Answers on a thread of the task's own step.
    fn answer(self, result: Result<Outputs>) {
        let Task { env, done, .. } = self;
        (env.spawn)(Box::new(move || done(result)));
    }
}

/// Why tasks were not added, and those of them that had been.
type Refused = (Error, Vec<Task>);

/// The queues of a batching resource, and its clock.
pub(super) struct Batcher {
    policy: Policy,
    timeout: Duration,
    queues: Mutex<FxHashMap<String, Queue<Task>>>,
    timers: Timers,
}

impl Batcher {
    /// Adds the tasks of one run of a node: one, or the parts of a large one.
    pub fn submit(self: &Arc<Self>, queue: &str, tasks: Vec<Task>) {
        let mut queues = self.queues.lock();
        let found = queues.entry(queue.to_string()).or_default();
        let size: usize = tasks.iter().map(|task| task.size).sum();
        let mut failed = found.check(&self.policy, size).err().map(|error| (error, Vec::new()));
        let mut tasks = tasks.into_iter();
        while failed.is_none() {
            let Some(task) = tasks.next() else { break };
            failed = self.join(queue, found, task).err();
        }
        let ready = self.ready(found);
        drop(queues);
        self.launch(queue, ready);
        if let Some((error, withdrawn)) = failed {
            tasks.chain(withdrawn).for_each(|task| task.answer(Err(error.clone())));
        }
    }

    /// Adds one task; if its step is cancelled or there is no clock, gives it back.
    fn join(self: &Arc<Self>, name: &str, queue: &mut Queue<Task>, task: Task) -> std::result::Result<(), Refused> {
        let (size, env) = (task.size, task.env.clone());
        let joined = queue.join(&self.policy, size, task);
        let (number, batcher, owned) = (joined.task, Arc::downgrade(self), name.to_string());
        let watched = env.cancel.register(move |_| {
            if let Some(batcher) = batcher.upgrade() {
                batcher.withdraw(&owned, number, size);
            }
        });
        let timed = match joined.opened {
            Some(opened) => self.close_later(name, queue, opened),
            None => Ok(()),
        };
        match (watched, timed) {
            (Ok(token), Ok(())) => {
                if let Some(task) = queue.task_mut(number) {
                    task.token = Some(token);
                }
                Ok(())
            }
            (Err(error), _) | (_, Err(error)) => Err((error, queue.remove(number, size).into_iter().collect())),
        }
    }

    fn close_later(self: &Arc<Self>, name: &str, queue: &mut Queue<Task>, batch: u64) -> Result<()> {
        if self.timeout.is_zero() {
            queue.close(batch);
            return Ok(());
        }
        let (batcher, name) = (Arc::downgrade(self), name.to_string());
        let time = Instant::now().checked_add(self.timeout);
        let Some(time) = time else { return Ok(()) };
        self.timers.at(time, move || {
            if let Some(batcher) = batcher.upgrade() {
                batcher.change(&name, |queue| queue.close(batch));
            }
        })
    }

    /// Changes a queue, and runs what may run then.
    fn change(self: &Arc<Self>, name: &str, change: impl FnOnce(&mut Queue<Task>)) {
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(name) else { return };
        change(queue);
        let ready = self.ready(queue);
        drop(queues);
        self.launch(name, ready);
    }

    fn withdraw(self: &Arc<Self>, name: &str, number: u64, size: usize) {
        let task = self.queues.lock().get_mut(name).and_then(|queue| queue.remove(number, size));
        if let Some(task) = task {
            (task.done)(Err(cancelled!("The step was cancelled while it waited for its batch")));
        }
    }

    fn ready(&self, queue: &mut Queue<Task>) -> Vec<Batch<Task>> {
        std::iter::from_fn(|| queue.start(&self.policy)).collect()
    }

    fn launch(self: &Arc<Self>, name: &str, batches: Vec<Batch<Task>>) {
        for batch in batches {
            let tasks: Vec<Task> = batch.tasks.into_iter().map(|(_, task)| task).collect();
            let Some(spawn) = tasks.last().map(|task| task.env.spawn.clone()) else {
                self.change(name, Queue::ended);
                continue;
            };
            for task in &tasks {
                task.token.map(|token| task.env.cancel.deregister(token));
            }
            let (batcher, name) = (self.clone(), name.to_string());
            spawn(Box::new(move || batcher.run(name, tasks)));
        }
    }

    fn run(self: Arc<Self>, name: String, tasks: Vec<Task>) {
        let Some(last) = tasks.last() else { return };
        let (env, work) = (last.env.clone(), last.work.clone());
        let ctx = Ctx { env: &env, frame: last.frame, iteration: last.iteration };
        let joined = self.joined(&ctx, &tasks);
        let finish = move |tasks: Vec<Task>, results: Result<Vec<Outputs>>| {
            answer(tasks, results);
            self.change(&name, Queue::ended);
        };
        match (joined, work) {
            (Err(error), _) => finish(tasks, Err(error)),
            (Ok(joined), Work::Gather) => {
                let results = gathered(&tasks, joined);
                finish(tasks, results);
            }
            (Ok(joined), Work::Call(function, captured)) => {
                let size = joined.first().map_or(0, |input| input.shape()[0]);
                let inputs: Inputs = joined.into_iter().chain(captured).map(Value::Tensor).collect();
                function.call(
                    &ctx,
                    inputs,
                    Box::new(move |result| {
                        let results = result.and_then(|outputs| parted(&tasks, outputs, size));
                        finish(tasks, results);
                    }),
                );
            }
        }
    }

    /// The inputs of all tasks one after the other, padded with the first row to a size that is allowed.
    fn joined(&self, ctx: &Ctx<'_>, tasks: &[Task]) -> Result<Vec<Tensor>> {
        let count = tasks.first().map_or(0, |task| task.inputs.len());
        if tasks.iter().any(|task| task.inputs.len() != count) {
            return Err(invalid!("Batching inputs must have equal number of edges"));
        }
        let size: usize = tasks.iter().map(|task| task.size).sum();
        let padding = padded(&self.policy, size) - size;
        let input = |index: usize| {
            let mut parts: Vec<Tensor> = tasks.iter().map(|task| task.inputs[index].clone()).collect();
            if padding > 0 {
                let row = rows(&parts[0], 0, 1)?;
                parts.extend(std::iter::repeat_n(row, padding));
            }
            concat(ctx, &parts)
        };
        (0..count).map(input).collect()
    }
}

fn answer(tasks: Vec<Task>, results: Result<Vec<Outputs>>) {
    match results {
        Ok(results) => tasks.into_iter().zip(results).for_each(|(task, outputs)| task.answer(Ok(outputs))),
        Err(error) => tasks.into_iter().for_each(|task| task.answer(Err(error.clone()))),
    }
}

/// The last task gets the batch and the places of all tasks in it; the others get tensors without rows.
fn gathered(tasks: &[Task], joined: Vec<Tensor>) -> Result<Vec<Outputs>> {
    let mut places = Vec::with_capacity(tasks.len() * 3);
    let mut end = 0;
    for task in tasks {
        places.extend([task.id, end, end + task.size as i64]);
        end += task.size as i64;
    }
    let mut results = Vec::with_capacity(tasks.len());
    for (number, task) in tasks.iter().enumerate() {
        let is_last = number + 1 == tasks.len();
        let count = if is_last { tasks.len() } else { 0 };
        let mut outputs = Outputs::new();
        for (input, whole) in task.inputs.iter().zip(&joined) {
            outputs.push(Value::Tensor(if is_last { whole.clone() } else { rows(input, 0, 0)? }));
        }
        outputs.push(Value::Tensor(Tensor::from_slice([count, 3], &places[..count * 3])?));
        outputs.push(Value::Tensor(Tensor::scalar(task.id)));
        results.push(outputs);
    }
    Ok(results)
}

/// The rows of each task of all results.
fn parted(tasks: &[Task], outputs: Outputs, size: usize) -> Result<Vec<Outputs>> {
    let sizes: Vec<usize> = tasks.iter().map(|task| task.size).collect();
    let own: usize = sizes.iter().sum();
    let mut results = vec![Outputs::new(); tasks.len()];
    for output in outputs {
        let output = output.read()?;
        match output.shape().first() {
            None => return Err(failed_precondition!("Batched output tensor has 0 dimensions")),
            Some(&rows) if rows != size => {
                return Err(failed_precondition!(
                    "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the \
                     input tensors. 0th dimension size: {rows}; batch size: {own}; unbatched tasks size: 0; padding \
                     size: {}",
                    size - own
                ));
            }
            Some(_) => {}
        }
        let parts = split(&output, &sizes)?;
        results.iter_mut().zip(parts).for_each(|(result, part)| result.push(Value::Tensor(part)));
    }
    match results.is_empty() {
        true => Err(internal!("Batch size expected to be positive; was 0")),
        false => Ok(results),
    }
}
