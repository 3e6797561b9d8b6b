//! Synchronous training: the gradients of several replicas are averaged on the tasks of the variables and applied
//! once.
//!
//! The shared names and the ops are TensorFlow's own, so workers in Rust and in Python can be in one job.

use crate::coordination::QueueRunner;
use crate::{ExponentialMovingAverage, MinimizeOptions, Optimizer, get_global_step};
use graph::{Node, Output, Scope};
use layers::collection::{LOCAL_VARIABLES, global_variables, report_uninitialized, trainable_variables};
use layers::{Queue, ScopeOps, TensorOps, Variable};
use op::{Gradient, Slices};
use ops::data_structures::accumulator::{
    accumulator_apply_gradient, accumulator_set_global_step, accumulator_take_gradient,
    resource_conditional_accumulator, sparse_accumulator_apply_gradient, sparse_accumulator_take_gradient,
    sparse_conditional_accumulator,
};
use ops::raw;
use status::{Result, failed_precondition, invalid};
use tensor::{DType, PartialShape, Tensor};

/// An optimizer of several replicas that step together. Every worker creates one in its own graph;
/// [`apply_gradients`](SyncReplicasOptimizer::apply_gradients) gives the step it runs.
///
/// The gradients of a step go to accumulators on the devices of the variables. Gradients that were computed with
/// variables of an earlier step are dropped there. When `replicas_to_aggregate` gradients have arrived, the chief
/// applies their mean and puts tokens with the new step into a queue; each worker takes one token and continues.
pub struct SyncReplicasOptimizer {
    optimizer: Optimizer,
    replicas_to_aggregate: usize,
    total_num_replicas: usize,
    averages: Option<(ExponentialMovingAverage, Vec<Variable>)>,
    worker: Option<Scope>,
}

/// The nodes that the workers of a synchronous job run.
pub struct SyncReplicas {
    /// The step of a worker: sends its gradients and waits for a token.
    pub train_op: Node,
    /// Run by the chief before its first step: sets the step of the accumulators and its local step.
    pub chief_init_op: Node,
    /// Run by the other workers before their first step: sets the local step.
    pub local_step_init_op: Node,
    /// The names of uninitialized variables. The two nodes above can run when there are none.
    pub ready_for_local_init_op: Output,
    /// Applies the mean of the gradients of each step; for the chief. It may wait for gradients that never arrive, so
    /// close the session after requesting a stop of the coordinator and before joining it.
    pub chief_queue_runner: QueueRunner,
    accumulators: Vec<Accumulator>,
    tokens: Queue,
    step: Variable,
    replicas: (usize, usize),
}

/// The accumulator of the gradients of one variable.
struct Accumulator {
    handle: Output,
    shared_name: String,
    variable: Variable,
}

/// The outcome of gradients that arrive at an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientOutcome {
    /// They became part of a mean.
    Accepted,
    /// They were computed with variables of an earlier step, and dropped.
    Stale,
    /// Their worker had already sent gradients for the same step; only with the server policies `exact` and `shrink`.
    Dropped,
}

impl SyncReplicasOptimizer {
    /// Averages the gradients of this many replicas.
    pub fn new(optimizer: Optimizer, replicas_to_aggregate: usize) -> SyncReplicasOptimizer {
        SyncReplicasOptimizer {
            optimizer,
            replicas_to_aggregate,
            total_num_replicas: replicas_to_aggregate,
            averages: None,
            worker: None,
        }
    }

    /// Sets the number of replicas; the default is the number of gradients that are averaged. With more replicas, the
    /// slowest gradients of each step are dropped. With fewer, replicas send several gradients for each step.
    pub fn total_num_replicas(mut self, total: usize) -> SyncReplicasOptimizer {
        self.total_num_replicas = total;
        self
    }

    /// Updates averages of these variables (of all trainable ones if `of` is empty) after each step.
    pub fn averages(mut self, averages: ExponentialMovingAverage, of: &[Variable]) -> SyncReplicasOptimizer {
        self.averages = Some((averages, of.to_vec()));
        self
    }

    /// Sets the scope of the nodes of this worker; the default is the task of its master.
    pub fn worker(mut self, scope: &Scope) -> SyncReplicasOptimizer {
        self.worker = Some(scope.clone());
        self
    }

    /// The inner optimizer, which has the slot variables.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// The average of a variable, if there is one.
    pub fn average(&self, variable: &Variable) -> Option<Variable> {
        self.averages.as_ref()?.0.average(variable)
    }

    /// A step that minimizes `loss` over all trainable variables. The global step of the graph counts the updates.
    pub fn minimize(&self, loss: &Output) -> Result<SyncReplicas> {
        self.minimize_with(loss, MinimizeOptions::new())
    }

    /// As [`SyncReplicasOptimizer::minimize`], with options: other variables, another step counter.
    pub fn minimize_with(&self, loss: &Output, options: MinimizeOptions) -> Result<SyncReplicas> {
        let gradients = self.optimizer.compute_gradients_with(loss, &options)?;
        self.apply_gradients_with(&gradients, options)
    }

    /// The gradients of this replica. What is done to them before they are applied, such as clipping by norm, is done
    /// for each replica separately.
    pub fn compute_gradients(&self, loss: &Output) -> Result<Vec<(Option<Gradient>, Variable)>> {
        self.optimizer.compute_gradients(loss)
    }

    /// A step that sends the gradients of this replica and waits until the mean of all was applied. The global step of
    /// the graph decides which gradients are stale.
    pub fn apply_gradients(&self, gradients: &[(Option<Gradient>, Variable)]) -> Result<SyncReplicas> {
        self.apply_gradients_with(gradients, MinimizeOptions::new())
    }

    /// As [`SyncReplicasOptimizer::apply_gradients`], with the step counter of the options.
    pub fn apply_gradients_with(
        &self,
        gradients: &[(Option<Gradient>, Variable)],
        options: MinimizeOptions,
    ) -> Result<SyncReplicas> {
        let Some((_, first)) = gradients.first() else {
            return Err(invalid!("Must supply at least one variable"));
        };
        let step = options.step_counter().cloned().or_else(|| get_global_step(first.graph()));
        let step = step.ok_or_else(|| invalid!("Global step is required to check staleness"))?;
        self.synchronized(gradients, &step)
    }

    fn synchronized(&self, gradients: &[(Option<Gradient>, Variable)], step: &Variable) -> Result<SyncReplicas> {
        let graph = step.graph();
        let worker = self.worker.clone().unwrap_or_else(|| graph.root());
        let local_step = local_step(&worker, step.dtype());
        let local_step_init_op = local_step.assign(&step.read(&worker).seen_from(&worker));
        let ready_for_local_init_op = report_uninitialized(&worker, &global_variables(graph));
        let scope = graph.root().named("sync_replicas");
        let parts = Parts { scope: &scope, local_step: &local_step, required: self.replicas_to_aggregate };
        let (mut pushes, mut means, mut accumulators) = (Vec::new(), Vec::new(), Vec::new());
        for (gradient, variable) in gradients {
            let mean = match gradient {
                None => None,
                Some(gradient) => {
                    let (accumulator, push, mean) = parts.accumulate(gradient, variable)?;
                    pushes.push(push);
                    accumulators.push(accumulator);
                    Some(mean)
                }
            };
            means.push((mean, variable.clone()));
        }
        let update = self.optimizer.apply_gradients_with(&means, MinimizeOptions::new().step(step))?;
        let beside = graph.root().beside(step.handle().node());
        let tokens = token_queue(&beside, step.dtype());
        let token = tokens.seen_from(&beside.after(&pushes)).dequeue().remove(0);
        let train_op = local_step.assign(&token.seen_from(&graph.root()));
        let sync_op = self.sync_op(&tokens, &update, step);
        let chief_queue_runner = QueueRunner::new(&dummy_queue(&beside), &[sync_op]);
        let chief_init_op = chief_init_op(&scope, &local_step_init_op, &accumulators, step);
        graph.check()?;
        Ok(SyncReplicas {
            train_op,
            chief_init_op,
            local_step_init_op,
            ready_for_local_init_op,
            chief_queue_runner,
            accumulators,
            tokens,
            step: step.clone(),
            replicas: (self.replicas_to_aggregate, self.total_num_replicas),
        })
    }

    /// What the chief repeats: the update, then tokens for all workers, then the averages.
    fn sync_op(&self, tokens: &Queue, update: &Node, step: &Variable) -> Node {
        let scope = tokens.handle().scope().after([update]);
        let count = self.total_num_replicas.max(self.replicas_to_aggregate);
        let sync_op = put_tokens(&tokens.seen_from(&scope), count, step);
        let averaged = self.averages.as_ref().and_then(|(averages, of)| {
            let scope = tokens.graph().root().after([&sync_op]);
            match of.is_empty() {
                true => averages.apply_in(&scope, &trainable_variables(scope.graph())),
                false => averages.apply_in(&scope, of),
            }
        });
        averaged.unwrap_or(sync_op)
    }
}

impl SyncReplicas {
    /// Puts the first tokens into the queue; for the chief. The default number is that of the gradients that are
    /// averaged: with it, replicas need not wait for each other in the first step. If there are fewer replicas than
    /// gradients, at least the difference is needed.
    pub fn init_tokens_op(&self, tokens: Option<usize>) -> Result<Node> {
        let (aggregate, total) = self.replicas;
        let needed = aggregate.saturating_sub(total);
        let tokens = tokens.unwrap_or(aggregate);
        if tokens < needed {
            return Err(invalid!("Too few tokens to finish the first step: {tokens} (given) vs {needed} (needed)"));
        }
        Ok(match tokens {
            0 => raw::no_op(&self.step.graph().root()).named("no_init_tokens").node(),
            count => put_tokens(&self.tokens, count, &self.step),
        })
    }

    /// The number of gradients with this outcome, for all variables, since the server started. Only Flowgrid servers
    /// count them; on others the step that reads this fails.
    pub fn counter(&self, arrived: GradientOutcome) -> Result<Output> {
        let counts: Vec<Output> = self.accumulators.iter().map(|accumulator| accumulator.counter(arrived)).collect();
        if counts.is_empty() {
            return Err(failed_precondition!("There are no gradients to count"));
        }
        let scope = self.step.graph().root().named("sync_replicas/counter");
        Ok(raw::add_n(&scope, &counts).named(arrived.name()).output())
    }
}

impl GradientOutcome {
    fn name(self) -> &'static str {
        match self {
            GradientOutcome::Accepted => "accepted",
            GradientOutcome::Stale => "stale",
            GradientOutcome::Dropped => "dropped",
        }
    }
}

impl Accumulator {
    /// The server keeps the counts as variables named after the accumulator.
    fn counter(&self, arrived: GradientOutcome) -> Output {
        let node = self.handle.node();
        let scope = node.graph().root().reenter("sync_replicas").beside(self.variable.handle().node());
        let name = format!("{}/{}", self.shared_name, arrived.name());
        let handle = raw::var_handle_op(&scope.after([node]), DType::I64, &PartialShape::scalar());
        let handle = handle.named(arrived.name()).attr("shared_name", name).output();
        ops::state::read_variable(&handle, DType::I64)
    }
}

/// What the accumulators of all variables have in common.
struct Parts<'a> {
    scope: &'a Scope,
    local_step: &'a Variable,
    required: usize,
}

impl Parts<'_> {
    /// An accumulator on the device of a variable, a node that adds the gradient, and the mean.
    fn accumulate(&self, gradient: &Gradient, variable: &Variable) -> Result<(Accumulator, Node, Gradient)> {
        let scope = self.scope.beside(variable.handle().node());
        let shared_name = format!("{}/grad_accum", variable.handle().name());
        let required = i32::try_from(self.required).map_err(|_| invalid!("{} replicas are too many", self.required))?;
        let required = scope.constant(required);
        let step = self.local_step.read(self.scope).seen_from(&scope).cast(DType::I64);
        let (handle, push, mean) = match gradient {
            Gradient::Dense(value) => {
                let dtype = value.dtype();
                let handle = resource_conditional_accumulator(&scope, &shared_name, dtype, &variable.shape());
                let push = accumulator_apply_gradient(&handle, &step, &value.seen_from(&scope));
                let mean = Gradient::Dense(accumulator_take_gradient(&handle, &required, dtype));
                (handle, push, mean)
            }
            Gradient::Sparse(slices) => {
                let handle = sparse_conditional_accumulator(
                    &scope,
                    &shared_name,
                    slices.values.dtype(),
                    &PartialShape::scalar(),
                );
                let push = push_slices((self.scope, &scope), &handle, &step, slices);
                let (indices, values, shape) =
                    sparse_accumulator_take_gradient(&handle, &required, slices.values.dtype());
                (handle, push, Gradient::Sparse(Slices { indices, values, shape: Some(shape) }))
            }
        };
        Ok((Accumulator { handle, shared_name, variable: variable.clone() }, push, mean))
    }
}

/// Adds rows to an accumulator, which needs sorted indices without duplicates.
fn push_slices((own, beside): (&Scope, &Scope), handle: &Output, step: &Output, slices: &Slices) -> Node {
    let indices = slices.indices.seen_from(own).cast(DType::I64);
    let unique = raw::unique(&indices).node();
    let count = raw::size(&unique.output(0)).output();
    let rows = slices.values.seen_from(own);
    let rows = raw::unsorted_segment_sum(&rows, &unique.output(1), &count).output();
    let order = raw::top_kv2(&-unique.output(0), &count).node().output(1);
    let (indices, rows) = (unique.output(0).gather(&order), rows.gather(&order));
    let (shape, known) = match &slices.shape {
        Some(shape) => (shape.seen_from(own).cast(DType::I64), true),
        None => (own.constant(Tensor::vector::<i64>(&[])), false),
    };
    sparse_accumulator_apply_gradient(&handle.seen_from(beside), step, (&indices, &rows), &shape, known)
}

/// The step whose variables this worker computes with, on its own task.
fn local_step(worker: &Scope, dtype: DType) -> Variable {
    let anchor = raw::no_op(worker).node();
    let builder = Variable::builder(&worker.beside(&anchor), "sync_rep_local_step").dtype(dtype).trainable(false);
    builder.collections(&[LOCAL_VARIABLES]).build()
}

fn token_queue(scope: &Scope, dtype: DType) -> Queue {
    let queue = Queue::fifo(scope, &[dtype]).shapes(&[PartialShape::scalar()]);
    queue.name("sync_token_q").shared_name("sync_token_q").build()
}

/// The queue that the runner of the chief closes when it ends. The token queue must stay open: the next job on the
/// same ps finds it under its name, and a closed queue cannot be opened again.
fn dummy_queue(scope: &Scope) -> Queue {
    let queue = Queue::fifo(scope, &[DType::I32]).capacity(1).shapes(&[PartialShape::scalar()]);
    queue.name("dummy_queue").shared_name("dummy_queue").build()
}

/// Puts tokens with the current step into their queue.
fn put_tokens(queue: &Queue, count: usize, step: &Variable) -> Node {
    let scope = queue.handle().scope();
    let dims = scope.constant(Tensor::vector::<i32>(&[count as i32]));
    let tokens = raw::fill(&dims, &step.read(scope)).output();
    queue.enqueue_many(&[tokens])
}

fn chief_init_op(scope: &Scope, local: &Node, accumulators: &[Accumulator], step: &Variable) -> Node {
    let mut nodes = vec![local.clone()];
    for accumulator in accumulators {
        let at = accumulator.handle.scope();
        let now = step.read(scope).seen_from(at).cast(DType::I64);
        nodes.push(accumulator_set_global_step(&accumulator.handle, &now));
    }
    scope.group(&nodes)
}
