//! Transformations of datasets.

use crate::shapes::{common, with_first};
use crate::{Dataset, Structure};
use graph::{AttrList, AttrValue, Function, FunctionBuilder, OpBuilder, Output};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

/// The function of a pipeline with what it captured and what it returns.
struct Built {
    function: Function,
    captured: Vec<Output>,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
}

impl Dataset {
    /// Applies a function to each element.
    pub fn map<A: Structure, B: Structure>(&self, function: impl FnOnce(A) -> B) -> Dataset {
        self.or_failed(
            self.function("map", function)
                .map(|built| self.calling("MapDataset", built, |op| op.attr("preserve_cardinality", true))),
        )
    }

    /// As `map`, with up to `calls` calls at the same time; the order of the elements stays. 0 leaves the number to the
    /// runtime.
    pub fn parallel_map<A: Structure, B: Structure>(&self, calls: usize, function: impl FnOnce(A) -> B) -> Dataset {
        let calls = self.number(if calls == 0 { -1 } else { calls as i64 });
        self.or_failed(self.function("parallel_map", function).map(|built| {
            let (types, shapes) = (built.types, built.shapes);
            Dataset::build(self.scope(), "ParallelMapDatasetV2", types, shapes, |op| {
                let op = op.input(self.handle()).inputs(&built.captured).input(&calls);
                op.attr("f", built.function).attr("preserve_cardinality", true)
            })
        }))
    }

    /// Keeps the elements for which the function returns true.
    pub fn filter<A: Structure>(&self, predicate: impl FnOnce(A) -> Output) -> Dataset {
        self.or_failed(self.function("filter", predicate).and_then(|built| {
            if built.types != [DType::BOOL] {
                return Err(invalid!("The predicate of a filter must return one bool, not {:?}", built.types));
            }
            Ok(self.same("FilterDataset", |op| op.inputs(&built.captured).attr("predicate", built.function)))
        }))
    }

    /// Replaces each element by the elements of the dataset that the function returns.
    pub fn flat_map<A: Structure>(&self, function: impl FnOnce(A) -> Dataset) -> Dataset {
        self.or_failed(
            self.dataset_function("flat_map", function).map(|built| self.calling("FlatMapDataset", built, |op| op)),
        )
    }

    /// Takes elements in turn from the datasets that the function returns for `cycle` elements at a time, `block` from each.
    pub fn interleave<A: Structure>(&self, cycle: usize, block: usize, function: impl FnOnce(A) -> Dataset) -> Dataset {
        let (cycle, block) = (self.number(cycle as i64), self.number(block as i64));
        self.or_failed(self.dataset_function("interleave", function).map(|built| {
            let (types, shapes) = (built.types, built.shapes);
            Dataset::build(self.scope(), "InterleaveDataset", types, shapes, |op| {
                let op = op.input(self.handle()).inputs(&built.captured).input(&cycle).input(&block);
                op.attr("f", built.function)
            })
        }))
    }

    /// Joins `size` consecutive elements along a new first dimension; the last batch may be smaller.
    pub fn batch(&self, size: usize) -> Dataset {
        self.batch_of(size, false)
    }

    /// As `batch`, without a smaller last batch, so that the size is known while the graph is built.
    pub fn full_batches(&self, size: usize) -> Dataset {
        self.batch_of(size, true)
    }

    fn batch_of(&self, size: usize, full: bool) -> Dataset {
        let first = if full { size as i64 } else { -1 };
        let shapes = self.shapes().iter().map(|shape| with_first(shape, first)).collect();
        let (size, full) = (self.number(size as i64), self.constant(Tensor::scalar(full)));
        self.with_shapes("BatchDatasetV2", shapes, |op| op.input(&size).input(&full))
    }

    /// As `batch`, for elements of different sizes: they are padded with zeros or empty strings to the largest of the batch.
    pub fn padded_batch(&self, size: usize) -> Dataset {
        if let Some(shape) = self.shapes().iter().find(|shape| shape.dims().is_none()) {
            return self
                .failed(invalid!("A padded batch needs elements of known rank, but a component has shape {shape}"));
        }
        let dims = |shape: &PartialShape| self.constant(Tensor::vector(shape.dims().unwrap_or_default()));
        let padded: Vec<Output> = self.shapes().iter().map(dims).collect();
        let value = |&dtype: &DType| Tensor::zeros_of(dtype, tensor::Shape::scalar()).map(|zero| self.constant(zero));
        let values = match self.types().iter().map(value).collect::<Result<Vec<Output>>>() {
            Ok(values) => values,
            Err(error) => return self.failed(error),
        };
        let shapes: Vec<PartialShape> = self.shapes().iter().map(|shape| with_first(shape, -1)).collect();
        let (size, full) = (self.number(size as i64), self.constant(Tensor::scalar(false)));
        let list = AttrList { shapes: shapes.clone(), ..AttrList::default() };
        let built = self.scope().op("PaddedBatchDatasetV2").input(self.handle()).input(&size).inputs(&padded);
        let built = built.inputs(&values).input(&full).attr("output_shapes", AttrValue::from(list));
        Dataset::from_output(built.output(), self.types().to_vec(), shapes)
    }

    /// Returns the elements in random order, chosen from a buffer of `buffer` elements, and in another order each time it is
    /// repeated. Equal seeds give equal orders, those of TensorFlow; `None` takes the seed of the graph.
    pub fn shuffle(&self, buffer: usize, seed: Option<i64>) -> Dataset {
        let (seed, seed2) = self.scope().graph().seeds(seed);
        let inputs = [buffer as i64, seed, seed2].map(|value| self.number(value));
        self.same("ShuffleDataset", |op| op.input(&inputs[0]).input(&inputs[1]).input(&inputs[2]))
    }

    /// The elements `count` times.
    pub fn repeat(&self, count: u64) -> Dataset {
        let count = self.number(i64::try_from(count).unwrap_or(i64::MAX));
        self.same("RepeatDataset", |op| op.input(&count))
    }

    /// The elements again and again, without an end.
    pub fn repeat_forever(&self) -> Dataset {
        let count = self.number(-1);
        self.same("RepeatDataset", |op| op.input(&count))
    }

    /// The first `count` elements.
    pub fn take(&self, count: usize) -> Dataset {
        let count = self.number(count as i64);
        self.same("TakeDataset", |op| op.input(&count))
    }

    /// All but the first `count` elements.
    pub fn skip(&self, count: usize) -> Dataset {
        let count = self.number(count as i64);
        self.same("SkipDataset", |op| op.input(&count))
    }

    /// Every `shards`-th element, from the one with number `index` on: the part of one worker.
    pub fn shard(&self, shards: usize, index: usize) -> Dataset {
        let (shards, index) = (self.number(shards as i64), self.number(index as i64));
        self.same("ShardDataset", |op| op.input(&shards).input(&index))
    }

    /// The elements of this dataset, then those of another one with equal types.
    pub fn concatenate(&self, other: &Dataset) -> Dataset {
        let pairs = self.shapes().iter().zip(other.shapes());
        let shapes = pairs.map(|(a, b)| common([a.clone(), b.clone()].into_iter())).collect();
        self.with_shapes("ConcatenateDataset", shapes, |op| op.input(other.handle()))
    }

    /// Elements with the components of one element of each dataset; it ends with the shortest.
    ///
    /// # Panics
    ///
    /// Panics if there are no datasets.
    pub fn zip(datasets: &[&Dataset]) -> Dataset {
        let first = datasets.first().expect("zip needs at least one dataset");
        let handles: Vec<Output> = datasets.iter().map(|dataset| dataset.handle().clone()).collect();
        let types = datasets.iter().flat_map(|dataset| dataset.types().to_vec()).collect();
        let shapes = datasets.iter().flat_map(|dataset| dataset.shapes().to_vec()).collect();
        Dataset::build(first.scope(), "ZipDataset", types, shapes, |op| op.inputs(&handles))
    }

    /// Keeps the elements in memory after the first time.
    pub fn cache(&self) -> Dataset {
        self.cache_in("")
    }

    /// Keeps the elements in files whose names begin with `path` after the first time.
    pub fn cache_in(&self, path: &str) -> Dataset {
        let path = self.constant(Tensor::string(path.to_string()));
        self.same("CacheDataset", |op| op.input(&path))
    }

    /// Computes up to `buffer` elements ahead; 0 leaves the number to the runtime.
    pub fn prefetch(&self, buffer: usize) -> Dataset {
        let buffer = self.number(if buffer == 0 { -1 } else { buffer as i64 });
        self.same("PrefetchDataset", |op| op.input(&buffer))
    }

    /// Windows of `size` consecutive elements, each of which begins `shift` elements after the one before; incomplete windows
    /// are dropped if `full` is set. Each component of a window is a dataset: see [`Dataset::from_output`].
    pub fn window(&self, size: usize, shift: usize, full: bool) -> Dataset {
        let numbers = [size, shift, 1].map(|value| self.number(value as i64));
        let full = self.constant(Tensor::scalar(full));
        let types = vec![DType::VARIANT; self.types().len()];
        let shapes = vec![PartialShape::scalar(); self.types().len()];
        Dataset::build(self.scope(), "WindowDataset", types, shapes, |op| {
            numbers.iter().fold(op.input(self.handle()), OpBuilder::input).input(&full)
        })
    }

    fn calling(&self, op: &str, built: Built, complete: impl FnOnce(OpBuilder) -> OpBuilder) -> Dataset {
        Dataset::build(self.scope(), op, built.types, built.shapes, |op| {
            complete(op.input(self.handle()).inputs(&built.captured).attr("f", built.function))
        })
    }

    fn function<A: Structure, B: Structure>(&self, name: &str, function: impl FnOnce(A) -> B) -> Result<Built> {
        let (body, arguments) = self.begin_function()?;
        let results = function(arguments).unpack();
        let (types, shapes) =
            (results.iter().map(Output::dtype).collect(), results.iter().map(Output::shape).collect());
        let (function, captured) = body.finish(self.scope().graph(), name, &results)?;
        Ok(Built { function, captured, types, shapes })
    }

    fn dataset_function<A: Structure>(&self, name: &str, function: impl FnOnce(A) -> Dataset) -> Result<Built> {
        let (body, arguments) = self.begin_function()?;
        let result = function(arguments);
        let (function, captured) = body.finish(self.scope().graph(), name, &[result.handle().clone()])?;
        Ok(Built { function, captured, types: result.types().to_vec(), shapes: result.shapes().to_vec() })
    }

    fn begin_function<A: Structure>(&self) -> Result<(FunctionBuilder, A)> {
        let mut body = FunctionBuilder::new(self.scope().graph());
        let parts = self.types().iter().zip(self.shapes());
        let arguments = parts.map(|(&dtype, shape)| body.arg(dtype, shape.clone())).collect();
        Ok((body, A::pack(arguments)?))
    }
}
