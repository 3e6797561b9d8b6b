//! ParallelMapDataset in both versions: applies a function to several elements at once.

use super::determinism::Determinism;
use super::map::{function_end, in_function};
use super::parallel_calls::{ParallelCalls, parallel_calls};
use super::random_access::{check_index, mapped};
use super::saved::{read_input, read_list, write_input, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::dataset::{PendingElement, only};
use crate::function::{Function, FunctionRun};
use crate::iterate::settle_all;
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::Result;
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ParallelMapDataset(input_dataset: variant, other_arguments: [Targuments], num_parallel_calls: int32) -> \
              handle: variant; f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; use_inter_op_parallelism: bool = true; sloppy: bool = false; \
              preserve_cardinality: bool = false; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, ParallelMap::FIRST_KIND, Determinism::of_sloppy(setup)?),
        facts: DATASET,
    },
    Op {
        def: "ParallelMapDatasetV2(input_dataset: variant, other_arguments: [Targuments], num_parallel_calls: int64) -> \
              handle: variant; f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; use_inter_op_parallelism: bool = true; \
              deterministic: string = \"default\"; preserve_cardinality: bool = false; \
              use_unbounded_threadpool: bool = false; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, ParallelMap::KIND, Determinism::of(setup)?),
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>, kind: &'static str, determinism: Determinism) -> Result<Kernel> {
    let (spec, function) = (spec(setup)?, Function::of(setup, "f")?);
    let preserves_cardinality = setup.bool("preserve_cardinality")?;
    let is_unbounded = kind == ParallelMap::KIND && setup.bool("use_unbounded_threadpool")?;
    dataset_kernel(setup, move |_, inputs| {
        let last = inputs.len() - 1;
        let number = match scalar::<i32>(inputs, last, "num_parallel_calls") {
            Ok(number) => i64::from(number),
            Err(_) => scalar(inputs, last, "num_parallel_calls")?,
        };
        let calls = parallel_calls(number)?;
        let input = input_dataset(inputs, 0)?;
        let function = function.capture(inputs.tensors(1, last - 1)?);
        let spec = spec.clone();
        Ok(ParallelMap { kind, input, function, calls, determinism, preserves_cardinality, is_unbounded, spec })
    })
}

#[derive(Clone)]
pub(crate) struct ParallelMap {
    pub kind: &'static str,
    pub input: DatasetRef,
    pub function: Function,
    pub calls: Option<usize>,
    pub determinism: Determinism,
    pub preserves_cardinality: bool,
    /// TensorFlow calls the function on threads of its own.
    pub is_unbounded: bool,
    pub spec: Spec,
}

impl ParallelMap {
    /// The kind of the first version of the op.
    pub(crate) const FIRST_KIND: &str = "ParallelMap";
    /// The kind of the second version.
    pub(crate) const KIND: &str = "ParallelMapV2";

    /// True if it may be joined with another one.
    pub(crate) fn is_fusible(&self) -> bool {
        self.kind == ParallelMap::KIND && self.calls.is_none() && !self.is_unbounded
    }

    /// True unless the op says that the order is free.
    pub(crate) fn may_keep_order(&self) -> bool {
        self.determinism != Determinism::Free
    }
}

impl Dataset for ParallelMap {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(ParallelMap { input, ..self.clone() }) })
    }

    fn functions(&self) -> Vec<&Function> {
        vec![&self.function]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let keeps_order = self.determinism.keeps_order(&place.pipeline);
        Ok(Box::new(ParallelMapIterator {
            input: place.input(&self.input)?.kept(),
            function: self.function.in_pipeline(&place.pipeline)?,
            calls: ParallelCalls::new(&place.pipeline, self.calls, keeps_order),
            is_chosen: self.calls.is_none(),
            preserves_cardinality: self.preserves_cardinality,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        if self.preserves_cardinality { self.input.cardinality() } else { Cardinality::Unknown }
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "ParallelMap", index)?;
        mapped(pipeline, &self.function, self.input.element_at(pipeline, index)?)
    }
}

struct ParallelMapIterator {
    input: Input,
    function: FunctionRun,
    calls: ParallelCalls<()>,
    /// The number of calls at once is ours to choose.
    is_chosen: bool,
    preserves_cardinality: bool,
    prefix: Arc<str>,
}

impl ParallelMapIterator {
    /// True if the next call may be made on this thread, one at a time: others would not make a short function faster.
    fn may_call_here(&self) -> bool {
        self.is_chosen && self.calls.is_empty() && !self.input.has_ended() && self.function.is_short()
    }

    /// Makes one call; if it does not end at once, others may follow it.
    fn poll_here(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let Some(element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
        let mut call = self.function.call_soon(element);
        match call.poll(ctx) {
            Poll::Ready(result) => {
                let result = result.map_err(|error| in_function(error, "ParallelMapDataset", &self.prefix));
                Poll::Ready(function_end(result, self.preserves_cardinality))
            }
            Poll::Pending => {
                self.calls.push((), call);
                self.poll_next(ctx)
            }
        }
    }

    /// Begins calls for the elements that the input has now.
    fn begin_calls(&mut self, ctx: &mut PollContext<'_>) {
        while self.calls.has_room() && !self.input.has_ended() {
            if self.poll_begin(ctx) != Poll::Ready(true) {
                return;
            }
        }
    }

    /// Begins the call for the next element; false if there is none.
    fn poll_begin(&mut self, ctx: &mut PollContext<'_>) -> Poll<bool> {
        Poll::Ready(match ready!(self.input.poll_next(ctx)) {
            Ok(Some(element)) => {
                self.calls.push((), self.function.call_soon(element));
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.calls.push_ended((), Err(error));
                false
            }
        })
    }
}

impl Iterate for ParallelMapIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.may_call_here() {
            return self.poll_here(ctx);
        }
        self.begin_calls(ctx);
        if self.calls.is_empty() {
            return if self.input.has_ended() { Poll::Ready(Ok(None)) } else { Poll::Pending };
        }
        let describe = |error| in_function(error, "ParallelMapDataset", &self.prefix);
        let Some((_, result)) = ready!(self.calls.poll_next(ctx, &describe)) else { return Poll::Ready(Ok(None)) };
        Poll::Ready(function_end(result, self.preserves_cardinality))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        if self.input.is_reading() {
            ready!(self.poll_begin(ctx));
        }
        let describe = |error| in_function(error, "ParallelMapDataset", &self.prefix);
        ready!(self.calls.poll_all(ctx, &describe));
        settle_all(self.input.as_list(), ctx)
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        write_input(writer, &self.prefix, &self.input)?;
        writer.int(&self.prefix, "invocation_results_size", self.calls.len() as i64);
        for (index, (_, result)) in self.calls.results().enumerate() {
            let prefix = result_prefix(&self.prefix, index);
            writer.status(&prefix, "_code", "_error_message", result);
            let element = result.as_deref().unwrap_or_default();
            writer.int(&prefix, "size", element.len() as i64);
            write_list(writer, &prefix, "", element);
            writer.int(&prefix, "end_of_input", 0);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        read_input(reader, &self.prefix, &mut self.input)?;
        for index in 0..reader.count(&self.prefix, "invocation_results_size")? {
            let prefix = result_prefix(&self.prefix, index);
            let status = reader.status(&prefix, "_code", "_error_message")?;
            if status.is_ok() && reader.int(&prefix, "end_of_input")? != 0 {
                continue; // TensorFlow's calls at the end of the input
            }
            let count = reader.count(&prefix, "size")?;
            let element = read_list(reader, &prefix, "", count)?;
            self.calls.push_ended((), status.map(|()| element));
        }
        Ok(())
    }
}

fn result_prefix(prefix: &str, index: usize) -> String {
    format!("{prefix}_invocation_results[{index}]")
}
