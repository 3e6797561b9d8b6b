//! What all iterators of one pipeline share.

use crate::limits::{Iterators, check_stages, stages_of};
use crate::{Budget, DatasetRef, Options, Stats};
use math::Pool;
use op::{Calls, Cancel, Extensions, Forks, Home, Level, Received, Rendezvous, Resources, Spawn, StepEnv};
use status::{Error, Result, internal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensor::Tensor;

/// The environment of a running pipeline: threads, the device, and the functions with their state. It outlives the step
/// that created it. A part of a pipeline may have an environment that differs in the limits on its threads.
pub struct Pipeline {
    home: Home,
    spawn: Spawn,
    pool: Arc<Pool>,
    extensions: Extensions,
    cancel: Arc<Cancel>,
    pub(crate) forks: Arc<Forks>,
    rendezvous: Arc<dyn Rendezvous>,
    calls: Arc<AtomicU64>,
    /// How deep calls are where it was created.
    level: Level,
    /// The most iterators that call each other down to those of its dataset.
    stages: usize,
    iterators: Iterators,
    options: Options,
    parallelism: Option<usize>,
    budget: Arc<Budget>,
    stats: Option<Stats>,
}

impl Pipeline {
    /// A pipeline for a dataset, on a device, with the threads of a step and the options of the dataset. Fails if it would be
    /// in functions of too many other pipelines.
    pub fn of(home: &Home, env: &StepEnv, dataset: &DatasetRef) -> Result<Arc<Pipeline>> {
        let options = Options::of(dataset)?;
        let threads = options.private_threadpool_size.filter(|&threads| threads > 0).or(options.cpu_budget);
        let pipeline = Pipeline {
            parallelism: threads,
            level: env.calls.level().in_pipeline()?,
            stages: stages_of(dataset),
            ..Pipeline::with_options(home, env, options.clone())
        };
        Ok(Arc::new(
            options.max_intra_op_parallelism.and_then(|limit| pipeline.limited_pool(limit)).unwrap_or(pipeline),
        ))
    }

    pub(crate) fn with_options(home: &Home, env: &StepEnv, options: Options) -> Pipeline {
        Pipeline {
            home: home.clone(),
            spawn: env.spawn.clone(),
            pool: env.pool.clone(),
            extensions: env.extensions.clone(),
            cancel: Arc::default(),
            forks: Arc::default(),
            rendezvous: Arc::new(NoTransfers),
            calls: Arc::default(),
            level: env.calls.level(),
            stages: 0,
            iterators: Iterators::default(),
            budget: Budget::new(options.ram_budget),
            options,
            parallelism: None,
            stats: None,
        }
    }

    /// The same pipeline with other statistics or threads.
    fn derived(&self) -> Pipeline {
        Pipeline {
            home: self.home.clone(),
            spawn: self.spawn.clone(),
            pool: self.pool.clone(),
            extensions: self.extensions.clone(),
            cancel: self.cancel.clone(),
            forks: self.forks.clone(),
            rendezvous: self.rendezvous.clone(),
            calls: self.calls.clone(),
            level: self.level,
            stages: self.stages,
            iterators: self.iterators.clone(),
            options: self.options.clone(),
            parallelism: self.parallelism,
            budget: self.budget.clone(),
            stats: self.stats.clone(),
        }
    }

    /// The same pipeline, in which at most `count` calls run at once where the user leaves it to us; zero means one for
    /// each core.
    pub fn with_parallelism(&self, count: usize) -> Arc<Pipeline> {
        Arc::new(Pipeline { parallelism: Some(count).filter(|&count| count > 0), ..self.derived() })
    }

    /// The same pipeline with other budgets, where there are any.
    pub fn with_budgets(&self, cpu: Option<usize>, ram: Option<u64>) -> Arc<Pipeline> {
        let budget = ram.map_or_else(|| self.budget.clone(), |bytes| Budget::new(Some(bytes)));
        Arc::new(Pipeline { parallelism: cpu.or(self.parallelism), budget, ..self.derived() })
    }

    /// The same pipeline, in which loops are split over at most `threads` threads; zero means one for each core.
    pub fn with_max_intra_op_parallelism(&self, threads: usize) -> Arc<Pipeline> {
        Arc::new(self.limited_pool(threads).unwrap_or_else(|| self.derived()))
    }

    /// Loops run on one thread, or on all: a pool for each pipeline would cost more than it saves.
    fn limited_pool(&self, threads: usize) -> Option<Pipeline> {
        (threads == 1 && self.pool.threads() > 1).then(|| Pipeline { pool: Arc::new(Pool::new(1)), ..self.derived() })
    }

    /// The same pipeline, whose stages report to an aggregator.
    pub fn with_stats(&self, stats: Stats) -> Arc<Pipeline> {
        Arc::new(Pipeline { stats: Some(stats), ..self.derived() })
    }

    /// The same pipeline for a dataset with that number of stages that one of its functions returned: its iterators are called by
    /// those of this pipeline. Fails if too many would call each other.
    pub(crate) fn nested(&self, stages: usize) -> Result<Arc<Pipeline>> {
        let stages = self.stages + 1 + stages;
        check_stages(stages)?;
        Ok(Arc::new(Pipeline { stages, ..self.derived() }))
    }

    /// The iterators that exist.
    pub(crate) fn iterators(&self) -> &Iterators {
        &self.iterators
    }

    /// Where stages report statistics, if anywhere.
    pub fn stats(&self) -> Option<&Stats> {
        self.stats.as_ref()
    }

    /// The options of its dataset.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The account of the bytes in the buffers of all stages.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The device.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Runs work on another thread.
    pub fn spawn(&self) -> &Spawn {
        &self.spawn
    }

    /// Threads over which loops are split.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Notifies what waits when the pipeline ends.
    pub fn cancel(&self) -> &Arc<Cancel> {
        &self.cancel
    }

    /// True if the options allow stages to return elements in the order in which they are computed.
    pub fn may_reorder(&self) -> bool {
        self.options.deterministic == Some(false)
    }

    /// The number of calls or files that are worked on at once if the user leaves it to us.
    pub fn parallelism(&self) -> usize {
        self.parallelism.unwrap_or(self.pool.threads()).max(1)
    }

    /// The environment of one call of a function. Its resources and its cancellation end with the call.
    pub(crate) fn call_env(&self) -> Arc<StepEnv> {
        Arc::new(StepEnv {
            step_id: self.calls.fetch_add(1, Ordering::Relaxed),
            pool: self.pool.clone(),
            step_resources: Arc::new(Resources::new("__per_call")),
            rendezvous: self.rendezvous.clone(),
            cancel: Arc::default(),
            spawn: self.spawn.clone(),
            extensions: self.extensions.clone(),
            stats: None,
            calls: Calls::at(self.level),
        })
    }
}

/// The rendezvous of functions in a pipeline, which run on one device.
struct NoTransfers;

impl Rendezvous for NoTransfers {
    fn send(&self, key: &str, _: Tensor, _: bool) -> Result<()> {
        Err(internal!("{key} cannot be sent from a function of an input pipeline"))
    }

    fn recv(&self, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>) {
        done(Err(internal!("{key} cannot be received in a function of an input pipeline")));
    }

    fn abort(&self, _: Error) {}
}
