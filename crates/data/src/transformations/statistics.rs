//! Datasets that report to an aggregator of statistics: LatencyStatsDataset, BytesProducedStatsDataset and
//! SetStatsAggregatorDataset.

use super::assert_cardinality::scalar_of_scalar;
use super::pass_through::{Observer, Pass, PassThrough};
use super::stats_aggregator::{Aggregator, Stats};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec, string_scalar};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Home, Kernel, Op, Setup, handle_of};
use status::Result;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Instant;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "LatencyStatsDataset(input_dataset: variant, tag: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: scalar_of_scalar,
        grad: Grad::Stop,
        kernel: latency_kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalLatencyStatsDataset(input_dataset: variant, tag: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: scalar_of_scalar,
        grad: Grad::Stop,
        kernel: latency_kernel,
        facts: DATASET,
    },
    Op {
        def: "BytesProducedStatsDataset(input_dataset: variant, tag: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: scalar_of_scalar,
        grad: Grad::Stop,
        kernel: bytes_kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalBytesProducedStatsDataset(input_dataset: variant, tag: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: scalar_of_scalar,
        grad: Grad::Stop,
        kernel: bytes_kernel,
        facts: DATASET,
    },
    Op {
        def: "SetStatsAggregatorDataset(input_dataset: variant, stats_aggregator: resource, tag: string, \
              counter_prefix: string) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: aggregator_kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalSetStatsAggregatorDataset(input_dataset: variant, stats_aggregator: resource, tag: string, \
              counter_prefix: string) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: aggregator_kernel,
        facts: DATASET,
    },
];

#[derive(Clone)]
struct SetAggregator(Stats);

impl Pass for SetAggregator {
    const KIND: &'static str = "SetStatsAggregator";

    fn environment(&self, pipeline: &Arc<Pipeline>) -> Arc<Pipeline> {
        pipeline.with_stats(self.0.clone())
    }
}

/// The prefix is that of counters in TensorFlow's process, which nothing here reads.
fn aggregator_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, spec) = (Home::of(setup), spec(setup)?);
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let aggregator = home.find::<Aggregator>(handle_of(inputs.look(1)?)?)?;
        let tag = string_scalar(inputs, 2, "tag")?;
        string_scalar(inputs, 3, "counter_prefix")?;
        Ok(PassThrough { input, spec: spec.clone(), pass: SetAggregator(Stats { aggregator, tag }) })
    })
}

#[derive(Clone)]
struct Bytes(String);

impl Pass for Bytes {
    const KIND: &'static str = "BytesProducedStats";

    fn observer(&self, pipeline: &Arc<Pipeline>) -> Option<Observer> {
        let (stats, tag) = (pipeline.stats()?.clone(), self.0.clone());
        Some(Box::new(move |element: &Element, step| {
            let bytes: usize = element.iter().map(Tensor::byte_size).sum();
            stats.add_to_histogram(&tag, bytes as f64, step);
        }))
    }
}

fn bytes_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let (input, tag) = (input_dataset(inputs, 0)?, string_scalar(inputs, 1, "tag")?);
        Ok(PassThrough { input, spec: spec.clone(), pass: Bytes(tag) })
    })
}

struct Latency {
    input: DatasetRef,
    tag: String,
    spec: Spec,
}

fn latency_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let (input, tag) = (input_dataset(inputs, 0)?, string_scalar(inputs, 1, "tag")?);
        Ok(Latency { input, tag, spec: spec.clone() })
    })
}

impl Dataset for Latency {
    fn kind(&self) -> &'static str {
        "LatencyStats"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let (input, stats) = (place.input(&self.input)?, place.pipeline.stats().cloned());
        Ok(Box::new(LatencyIterator { input, stats, tag: self.tag.clone(), started: None, elements: 0 }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

struct LatencyIterator {
    input: Input,
    stats: Option<Stats>,
    tag: String,
    /// When the next element was requested.
    started: Option<Instant>,
    elements: u64,
}

impl Iterate for LatencyIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let started = *self.started.get_or_insert_with(Instant::now);
        let next = ready!(self.input.poll_kept(ctx));
        self.started = None;
        if let (Some(stats), Ok(Some(_))) = (&self.stats, &next) {
            stats.add_to_histogram(&self.tag, started.elapsed().as_micros() as f64, self.elements);
            self.elements += 1;
        }
        Poll::Ready(next)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        self.input.save_present(writer)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.input.restore_present(reader)
    }
}
