//! Aggregators of the statistics of pipelines: StatsAggregatorHandle, StatsAggregatorHandleV2, StatsAggregatorSummary
//! and StatsAggregatorSetSummaryWriter.

use io::event::{SummaryData, SummaryValue, summary_event, write_summary};
use op::shapes;
use op::{Grad, Home, Kernel, Op, PLAIN, Resource, Setup, handle_of, many, outputs};
use ops::data_structures::named::{Unnamed, maker};
use ops::summary::SummaryWriter;
use ops::summary::Tally;
use parking_lot::Mutex;
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StatsAggregatorHandle() -> handle: resource; container: string = \"\"; shared_name: string = \"\"; \
              stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Report::OnRequest),
        facts: PLAIN,
    },
    Op {
        def: "ExperimentalStatsAggregatorHandle() -> handle: resource; container: string = \"\"; \
              shared_name: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Report::OnRequest),
        facts: PLAIN,
    },
    Op {
        def: "StatsAggregatorHandleV2() -> handle: resource; container: string = \"\"; shared_name: string = \"\"; \
              stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Report::ToWriter),
        facts: PLAIN,
    },
    Op {
        def: "StatsAggregatorSummary(iterator: resource) -> summary: string; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: summary_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExperimentalStatsAggregatorSummary(iterator: resource) -> summary: string; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: summary_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatsAggregatorSetSummaryWriter(stats_aggregator: resource, summary: resource); stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: writer_kernel,
        facts: PLAIN,
    },
];

/// How an aggregator reports what it has collected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    /// As a summary, when it is asked for one.
    OnRequest,
    /// To a summary writer, each time it collects something.
    ToWriter,
}

/// Collects the statistics of pipelines.
pub struct Aggregator {
    report: Report,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    histograms: BTreeMap<String, Tally>,
    writer: Option<Arc<SummaryWriter>>,
}

impl Resource for Aggregator {
    const TYPE_NAME: &'static str = "N10tensorflow4data23StatsAggregatorResourceE";
}

/// The most names that an aggregator collects: each takes some memory.
const MOST_NAMES: usize = 10_000;

impl Aggregator {
    fn add_to_histogram(&self, name: String, value: f64, step: u64) {
        let mut state = self.state.lock();
        if state.histograms.len() >= MOST_NAMES && !state.histograms.contains_key(&name) {
            return;
        }
        let tally = state.histograms.entry(name.clone()).or_default();
        tally.add(value);
        let data = SummaryData::Histogram(tally.histogram());
        let Some(writer) = state.writer.clone() else { return };
        drop(state);
        let written = write_summary(&[SummaryValue { tag: name, data, ..SummaryValue::default() }])
            .and_then(|summary| writer.write(summary_event(now(), step as i64, &summary)));
        if let Err(error) = written {
            tracing::warn!("statistics of an input pipeline were not written: {}", error.message);
        }
    }

    fn summary(&self) -> Result<Bytes> {
        if self.report == Report::ToWriter {
            return Ok(Bytes::new());
        }
        let value = |(tag, tally): (&String, &Tally)| {
            let data = SummaryData::Histogram(tally.histogram());
            SummaryValue { tag: tag.clone(), data, ..SummaryValue::default() }
        };
        let values: Vec<SummaryValue> = self.state.lock().histograms.iter().map(value).collect();
        write_summary(&values)
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// Where the stages of a pipeline report, and what they put in front of names.
#[derive(Clone)]
pub struct Stats {
    pub(crate) aggregator: Arc<Aggregator>,
    pub(crate) tag: String,
}

impl Stats {
    /// Adds a number to the histogram of a name.
    pub fn add_to_histogram(&self, name: &str, value: f64, step: u64) {
        let name = if self.tag.is_empty() { name.to_string() } else { format!("{}::{name}", self.tag) };
        self.aggregator.add_to_histogram(name, value, step);
    }
}

fn kernel(setup: &Setup<'_>, report: Report) -> Result<Kernel> {
    maker(setup, Unnamed::Private, move |_| Ok(Aggregator { report, state: Mutex::default() }), |_| Ok(()))
}

fn aggregator(home: &Home, handle: &Tensor) -> Result<Arc<Aggregator>> {
    if handle.shape().rank() != 0 {
        return Err(invalid!("resource_handle must be a scalar"));
    }
    home.find(handle_of(handle)?)
}

fn summary_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(op::unary(move |_, handle| Ok(Tensor::string(aggregator(&home, &handle)?.summary()?))))
}

fn writer_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, inputs| {
        let aggregator = aggregator(&home, inputs.look(0)?)?;
        let handle = inputs.look(1)?;
        if handle.shape().rank() != 0 {
            return Err(invalid!("resource_handle must be a scalar"));
        }
        let writer = home.find::<SummaryWriter>(handle_of(handle)?)?;
        if aggregator.report == Report::ToWriter {
            aggregator.state.lock().writer = Some(writer);
        }
        Ok(outputs![])
    }))
}
