//! ShardDataset: every n-th element.

use super::random_access::check_index;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::dataset::{PendingElement, only};
use crate::iterate::IndexMapper;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, failed_precondition, invalid, out_of_range};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "ShardDataset(input_dataset: variant, num_shards: int64, index: int64) -> handle: variant; \
          require_non_empty: bool = false; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
          metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

/// The number of shards that asks a distribution strategy to choose the shard.
pub(crate) const SHARD_HINT: i64 = -1;

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let requires_elements = setup.bool("require_non_empty")?;
    dataset_kernel(setup, move |_, inputs| {
        let (shards, index): (i64, i64) = (scalar(inputs, 1, "num_shards")?, scalar(inputs, 2, "index")?);
        if shards <= 0 && shards != SHARD_HINT {
            return Err(invalid!("Number of shards must be greater than zero (currently num_shards = {shards})."));
        }
        if shards != SHARD_HINT && !(0..shards).contains(&index) {
            return Err(invalid!("Index must be between 0 and {} (currently index = {index}).", shards - 1));
        }
        let choice = (shards != SHARD_HINT).then_some(Choice { shards: shards as u64, index: index as u64 });
        Ok(Shard { input: input_dataset(inputs, 0)?, choice, requires_elements })
    })
}

/// The kind of shards that a distribution strategy has to choose.
pub(crate) const UNCHOSEN: &str = "ShardHint";

/// A shard of a dataset.
pub(crate) fn shard(input: DatasetRef, shards: u64, index: u64, requires_elements: bool) -> DatasetRef {
    Arc::new(Shard { input, choice: Some(Choice { shards, index }), requires_elements })
}

#[derive(Clone)]
pub(crate) struct Shard {
    input: DatasetRef,
    /// None: a distribution strategy has to choose.
    choice: Option<Choice>,
    requires_elements: bool,
}

/// The positions of a shard: those which are `index` modulo `shards`.
#[derive(Clone, Copy)]
struct Choice {
    /// Positive.
    shards: u64,
    /// Less than `shards`.
    index: u64,
}

impl Shard {
    /// True if it has the elements of its input.
    pub(crate) fn is_whole(&self) -> bool {
        self.choice.is_some_and(|choice| choice.shards == 1)
    }
}

impl Dataset for Shard {
    fn kind(&self) -> &'static str {
        if self.choice.is_some() { "Shard" } else { UNCHOSEN }
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Shard { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let choice = self.choice.ok_or_else(|| {
            failed_precondition!(
                "`tf.data.Dataset.shard(SHARD_HINT, ...)` can only be used in \
                 `tf.distribute.Strategy.experimental_distribute_dataset()` with \
                 `tf.data.experimental.AutoShardPolicy.HINT` policy, or tf.data service with \
                 `tf.data.experimental.service.ShardingPolicy.HINT` processing mode."
            )
        })?;
        Ok(Box::new(ShardIterator {
            input: place.input(&self.input)?,
            choice,
            requires_elements: self.requires_elements,
            next: 0,
            held: None,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        let Some(Choice { shards, index }) = self.choice else { return Cardinality::Unknown };
        self.input.cardinality().map(|count| count / shards + u64::from(index < count % shards))
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Shard", index)?;
        let choice = self.choice.ok_or_else(|| {
            failed_precondition!("num_shards is SHARD_HINT, which no sharding policy has replaced by a number")
        })?;
        self.input.element_at(pipeline, choice.index as usize + choice.shards as usize * index)
    }
}

struct ShardIterator {
    input: Input,
    choice: Choice,
    requires_elements: bool,
    /// The position of the next element of the input.
    next: u64,
    /// The first element, while the input is checked for enough elements for all shards.
    held: Option<Element>,
    prefix: Arc<str>,
}

impl ShardIterator {
    fn poll_mapped(&mut self, ctx: &mut PollContext<'_>, map: IndexMapper) -> Next {
        let Choice { shards, index } = self.choice;
        let mapper: IndexMapper = Arc::new(move |position| {
            let position = (map(position)? as u64).checked_mul(shards).and_then(|first| first.checked_add(index));
            position.map(|position| position as usize).ok_or_else(|| out_of_range!("No such element"))
        });
        let mut inner = PollContext { index_mapper: Some(mapper), ..PollContext::new(ctx.pipeline, ctx.waker) };
        let next = ready!(self.input.poll_next(&mut inner));
        if matches!(next, Ok(None)) && self.requires_elements && self.next == 0 {
            return Poll::Ready(Err(invalid!(
                "Could not apply FILE based sharding: The dataset does not have enough file(s) for the required \
                 {shards} shards/workers. {ADVICE}"
            )));
        }
        self.next += 1;
        Poll::Ready(next)
    }

    /// The next element of the shard, if none is held.
    fn poll_element(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            let is_chosen = self.next % self.choice.shards == self.choice.index;
            let Some(element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            self.next += 1;
            if is_chosen {
                return Poll::Ready(Ok(Some(element)));
            }
        }
    }

    /// An error if there are fewer elements than shards.
    fn poll_enough(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        while self.next < self.choice.shards {
            if ready!(self.input.poll_next(ctx))?.is_none() {
                return Poll::Ready(Err(invalid!(
                    "Could not apply FILE based sharding: the dataset only has {} file(s), which is not enough for the \
                     required {} shards/workers. {ADVICE}",
                    self.choice.index + 1, // as TensorFlow counts
                    self.choice.shards
                )));
            }
            self.next += 1;
        }
        Poll::Ready(Ok(()))
    }
}

const ADVICE: &str = "If you are using datasets with distribution strategy, consider setting the auto sharding policy \
                      to either DATA or OFF using the `experimental_distribute.auto_shard_policy` option of \
                      `tf.data.Options()`. Or, split your input files into a larger number of small files such that \
                      number of files is greater than number of shards/workers.";

impl Iterate for ShardIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if let Some(map) = ctx.index_mapper.clone() {
            return self.poll_mapped(ctx, map);
        }
        if self.held.is_none() {
            self.held = ready!(self.poll_element(ctx))?;
        }
        if self.held.is_some()
            && self.requires_elements
            && let Err(error) = ready!(self.poll_enough(ctx))
        {
            self.held = None;
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(self.held.take()))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "next_index", self.next as i64);
        self.input.save(writer, &self.prefix, "input_impl_empty")
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.input.restore(reader, &self.prefix, "input_impl_empty")?;
        if !self.input.has_ended() {
            self.next = reader.count(&self.prefix, "next_index")? as u64;
        }
        Ok(())
    }
}
