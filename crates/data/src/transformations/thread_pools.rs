//! Datasets that set on how many threads their inputs run: MaxIntraOpParallelismDataset, PrivateThreadPoolDataset,
//! ThreadPoolDataset, and ThreadPoolHandle.

use super::pass_through::{Pass, PassThrough};
use crate::Pipeline;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use op::shapes;
use op::{Grad, Home, Kernel, Op, PLAIN, Resource, Setup, handle_of};
use ops::data_structures::named::{Unnamed, maker};
use status::{Result, invalid};
use std::sync::Arc;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MaxIntraOpParallelismDataset(input_dataset: variant, max_intra_op_parallelism: int64) -> \
              handle: variant; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: max_intra_op_kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalMaxIntraOpParallelismDataset(input_dataset: variant, max_intra_op_parallelism: int64) -> \
              handle: variant; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: max_intra_op_kernel,
        facts: DATASET,
    },
    Op {
        def: "PrivateThreadPoolDataset(input_dataset: variant, num_threads: int64) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: private_kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalPrivateThreadPoolDataset(input_dataset: variant, num_threads: int64) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: private_kernel,
        facts: DATASET,
    },
    Op {
        def: "ThreadPoolDataset(input_dataset: variant, thread_pool: resource) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: shared_kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalThreadPoolDataset(input_dataset: variant, thread_pool: resource) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: shared_kernel,
        facts: DATASET,
    },
    Op {
        def: "ThreadPoolHandle() -> handle: resource; num_threads: int; max_intra_op_parallelism: int = 1; \
              display_name: string; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: handle_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExperimentalThreadPoolHandle() -> handle: resource; num_threads: int; \
              max_intra_op_parallelism: int = 1; display_name: string; container: string = \"\"; \
              shared_name: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: handle_kernel,
        facts: PLAIN,
    },
];

#[derive(Clone)]
struct MaxIntraOp(usize);

impl Pass for MaxIntraOp {
    const KIND: &'static str = "MaxIntraOpParallelism";

    fn environment(&self, pipeline: &Arc<Pipeline>) -> Arc<Pipeline> {
        pipeline.with_max_intra_op_parallelism(self.0)
    }
}

fn max_intra_op_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let threads: i64 = scalar(inputs, 1, "max_intra_op_parallelism")?;
        let threads = usize::try_from(threads).map_err(|_| invalid!("`max_intra_op_parallelism` must be >= 0"))?;
        Ok(PassThrough { input, spec: spec.clone(), pass: MaxIntraOp(threads) })
    })
}

#[derive(Clone)]
struct Private(usize);

impl Pass for Private {
    const KIND: &'static str = "PrivateThreadPool";

    fn environment(&self, pipeline: &Arc<Pipeline>) -> Arc<Pipeline> {
        pipeline.with_parallelism(self.0)
    }
}

fn private_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let threads = threads(scalar(inputs, 1, "num_threads")?)?;
        Ok(PassThrough { input, spec: spec.clone(), pass: Private(threads) })
    })
}

/// Threads of TensorFlow's pools are limited in number.
fn threads(count: i64) -> Result<usize> {
    const LIMIT: i64 = 65536;
    match count {
        ..0 => Err(invalid!("`num_threads` must be >= 0")),
        0..LIMIT => Ok(count as usize),
        _ => Err(invalid!("`num_threads` must be < {LIMIT}")),
    }
}

/// The limits that a handle stands for: the threads are those of the task.
struct ThreadPool {
    threads: usize,
    max_intra_op_parallelism: Option<usize>,
}

impl Resource for ThreadPool {
    const TYPE_NAME: &'static str = "N10tensorflow4data12experimental18ThreadPoolResourceE";
}

fn handle_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let threads = threads(setup.int("num_threads")?)?;
    let max_intra_op_parallelism = usize::try_from(setup.int("max_intra_op_parallelism")?).ok();
    maker(setup, Unnamed::Private, move |_| Ok(ThreadPool { threads, max_intra_op_parallelism }), |_| Ok(()))
}

#[derive(Clone)]
struct Shared(Arc<ThreadPool>);

impl Pass for Shared {
    const KIND: &'static str = "ThreadPool";

    fn environment(&self, pipeline: &Arc<Pipeline>) -> Arc<Pipeline> {
        let limited = pipeline.with_parallelism(self.0.threads);
        self.0
            .max_intra_op_parallelism
            .map_or(limited.clone(), |threads| limited.with_max_intra_op_parallelism(threads))
    }
}

fn shared_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, spec) = (Home::of(setup), spec(setup)?);
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let pool = home.find::<ThreadPool>(handle_of(inputs.look(1)?)?)?;
        Ok(PassThrough { input, spec: spec.clone(), pass: Shared(pool) })
    })
}
