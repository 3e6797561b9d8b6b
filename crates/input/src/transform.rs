//! Transformations of datasets.

use crate::shapes::{common, with_first};
use crate::{Dataset, Feature, PaddedBatchOptions, Structure, parse_example};
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
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::{Graph, Output};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..3);
    /// let squares = numbers.map(|x: Output| &x * &x);
    /// assert_eq!(squares.values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1, 4]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn map<A: Structure, B: Structure>(&self, function: impl FnOnce(A) -> B) -> Dataset {
        self.or_failed(
            self.function("map", |element| Ok(function(element)))
                .map(|built| self.calling("MapDataset", built, |op| op.attr("preserve_cardinality", true))),
        )
    }

    /// As `map`, with up to `calls` calls at the same time; the order of the elements stays. 0 leaves the number to the
    /// runtime.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::{Graph, Output};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..3);
    /// let squares = numbers.parallel_map(2, |x: Output| &x * &x);
    /// assert_eq!(squares.values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1, 4]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn parallel_map<A: Structure, B: Structure>(&self, calls: usize, function: impl FnOnce(A) -> B) -> Dataset {
        let calls = self.number(if calls == 0 { -1 } else { calls as i64 });
        let function = |element| Ok(function(element));
        self.or_failed(self.function("parallel_map", function).map(|built| {
            let (types, shapes) = (built.types, built.shapes);
            Dataset::build(self.scope(), "ParallelMapDatasetV2", types, shapes, |op| {
                let op = op.input(self.handle()).inputs(&built.captured).input(&calls);
                op.attr("f", built.function).attr("preserve_cardinality", true)
            })
        }))
    }

    /// Parses Example messages, as TFRecord files hold them. An element has the components of each feature, in the order of
    /// the list: one of a fixed feature or a sequence, three of a sparse feature, two of a ragged one.
    ///
    /// ```
    /// use flowgrid_input::{Dataset, Feature};
    /// use graph::{Graph, Output};
    /// use io::example::Example;
    /// use tensor::DType;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let records = [2i64, 3].map(|n| String::from_utf8_lossy(&Example::new().with("n", n).encode()).into_owned());
    /// let parsed = Dataset::from_iterator(&graph.root(), records).parse_example(&[("n", Feature::fixed(DType::I64, &[]))]);
    /// let squares = parsed.map(|n: Output| &n * &n);
    /// assert_eq!(squares.values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [4, 9]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn parse_example(&self, features: &[(&str, Feature)]) -> Dataset {
        let parse = |record: Output| -> Result<Vec<Output>> {
            let mut parsed = parse_example(&record, features)?;
            Ok(features.iter().flat_map(|(name, _)| parsed.take(name)).collect())
        };
        self.or_failed(
            self.function("parse_example", parse)
                .map(|built| self.calling("MapDataset", built, |op| op.attr("preserve_cardinality", true))),
        )
    }

    /// Keeps the elements for which the function returns true.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::{Graph, Output};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..4);
    /// let small = numbers.filter(|x: Output| ops::raw::less(&x, &x.like(2.0)).output());
    /// assert_eq!(small.values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn filter<A: Structure>(&self, predicate: impl FnOnce(A) -> Output) -> Dataset {
        let predicate = |element| Ok(predicate(element));
        self.or_failed(self.function("filter", predicate).and_then(|built| {
            if built.types != [DType::BOOL] {
                return Err(invalid!("The predicate of a filter must return one bool, not {:?}", built.types));
            }
            Ok(self.same("FilterDataset", |op| op.inputs(&built.captured).attr("predicate", built.function)))
        }))
    }

    /// Replaces each element by the elements of the dataset that the function returns.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::{Graph, Output};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..4);
    /// let pairs = numbers.batch(2).flat_map(|pair: Output| Dataset::from_slices(pair).repeat(2));
    /// assert_eq!(pairs.values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1, 0, 1, 2, 3, 2, 3]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn flat_map<A: Structure>(&self, function: impl FnOnce(A) -> Dataset) -> Dataset {
        self.or_failed(
            self.dataset_function("flat_map", function).map(|built| self.calling("FlatMapDataset", built, |op| op)),
        )
    }

    /// Takes elements in turn from the datasets that the function returns for `cycle` elements at a time, `block` from each.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::{Graph, Output};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..4);
    /// let mixed = numbers.batch(2).interleave(2, 1, |pair: Output| Dataset::from_slices(pair));
    /// assert_eq!(mixed.values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 2, 1, 3]);
    /// # Ok::<(), status::Error>(())
    /// ```
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
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..3);
    /// assert_eq!(numbers.batch(2).values::<Vec<i64>>()?.collect::<Result<Vec<_>, _>>()?, [vec![0, 1], vec![2]]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn batch(&self, size: usize) -> Dataset {
        self.batch_of(size, false)
    }

    /// As `batch`, without a smaller last batch, so that the size is known while the graph is built.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..3);
    /// assert_eq!(numbers.full_batches(2).values::<Vec<i64>>()?.collect::<Result<Vec<_>, _>>()?, [[0, 1]]);
    /// # Ok::<(), status::Error>(())
    /// ```
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
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let rows = Dataset::from_iterator(&graph.root(), [vec![1i64], vec![2, 3]]);
    /// let batches: Vec<Vec<[i64; 2]>> = rows.padded_batch(2).values()?.collect::<Result<_, _>>()?;
    /// assert_eq!(batches, [[[1, 0], [2, 3]]]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn padded_batch(&self, size: usize) -> Dataset {
        self.padded_batch_with(size, &PaddedBatchOptions::default())
    }

    /// As `padded_batch`, with options.
    pub fn padded_batch_with(&self, size: usize, options: &PaddedBatchOptions) -> Dataset {
        self.or_failed(self.padded(size, options))
    }

    fn padded(&self, size: usize, options: &PaddedBatchOptions) -> Result<Dataset> {
        let shapes = options.padded_shapes(self.shapes())?;
        let dims = |shape: &PartialShape| self.constant(Tensor::vector(shape.dims().unwrap_or_default()));
        let padded: Vec<Output> = shapes.iter().map(dims).collect();
        let values = options.padding_values(self.types())?;
        let values: Vec<Output> = values.into_iter().map(|value| self.constant(value)).collect();
        let first = if options.drop_remainder { size as i64 } else { -1 };
        let shapes: Vec<PartialShape> = shapes.iter().map(|shape| with_first(shape, first)).collect();
        let (size, full) = (self.number(size as i64), self.constant(Tensor::scalar(options.drop_remainder)));
        let list = AttrList { shapes: shapes.clone(), ..AttrList::default() };
        let built = self.scope().op("PaddedBatchDatasetV2").input(self.handle()).input(&size).inputs(&padded);
        let built = built.inputs(&values).input(&full).attr("output_shapes", AttrValue::from(list));
        Ok(Dataset::from_output(built.output(), self.types().to_vec(), shapes))
    }

    /// Returns the elements in random order, chosen from a buffer of `buffer` elements, and in another order each time it is
    /// repeated. Equal seeds give equal orders, those of TensorFlow; `None` takes the seed of the graph.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..8);
    /// assert_eq!(numbers.shuffle(4, Some(7)).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 4, 2, 3, 5, 6, 1, 7]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn shuffle(&self, buffer: usize, seed: Option<i64>) -> Dataset {
        let (seed, seed2) = self.scope().graph().seeds(seed);
        let inputs = [buffer as i64, seed, seed2].map(|value| self.number(value));
        self.same("ShuffleDataset", |op| op.input(&inputs[0]).input(&inputs[1]).input(&inputs[2]))
    }

    /// The elements `count` times.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..2);
    /// assert_eq!(numbers.repeat(2).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1, 0, 1]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn repeat(&self, count: u64) -> Dataset {
        let count = self.number(i64::try_from(count).unwrap_or(i64::MAX));
        self.same("RepeatDataset", |op| op.input(&count))
    }

    /// The elements again and again, without an end.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..2);
    /// assert_eq!(numbers.repeat_forever().take(3).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1, 0]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn repeat_forever(&self) -> Dataset {
        let count = self.number(-1);
        self.same("RepeatDataset", |op| op.input(&count))
    }

    /// The first `count` elements.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..5);
    /// assert_eq!(numbers.take(2).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn take(&self, count: usize) -> Dataset {
        let count = self.number(count as i64);
        self.same("TakeDataset", |op| op.input(&count))
    }

    /// All but the first `count` elements.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..5);
    /// assert_eq!(numbers.skip(3).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [3, 4]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn skip(&self, count: usize) -> Dataset {
        let count = self.number(count as i64);
        self.same("SkipDataset", |op| op.input(&count))
    }

    /// Every `shards`-th element, from the one with number `index` on: the part of one worker.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..5);
    /// assert_eq!(numbers.shard(2, 1).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [1, 3]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn shard(&self, shards: usize, index: usize) -> Dataset {
        let (shards, index) = (self.number(shards as i64), self.number(index as i64));
        self.same("ShardDataset", |op| op.input(&shards).input(&index))
    }

    /// The elements of this dataset, then those of another one with equal types.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..2);
    /// assert_eq!(numbers.concatenate(&numbers).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1, 0, 1]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn concatenate(&self, other: &Dataset) -> Dataset {
        let pairs = self.shapes().iter().zip(other.shapes());
        let shapes = pairs.map(|(a, b)| common([a.clone(), b.clone()].into_iter())).collect();
        self.with_shapes("ConcatenateDataset", shapes, |op| op.input(other.handle()))
    }

    /// Elements with the components of one element of each dataset; it ends with the shortest.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::{Graph, Output};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..3);
    /// let sums = Dataset::zip(&[&numbers, &numbers.skip(1)]).map(|(a, b): (Output, Output)| a + b);
    /// assert_eq!(sums.values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [1, 3]);
    /// # Ok::<(), status::Error>(())
    /// ```
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
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..2);
    /// assert_eq!(numbers.cache().repeat(2).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1, 0, 1]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn cache(&self) -> Dataset {
        self.cache_in("")
    }

    /// Keeps the elements in files whose names begin with `path` after the first time.
    pub fn cache_in(&self, path: &str) -> Dataset {
        let path = self.constant(Tensor::string(path.to_string()));
        self.same("CacheDataset", |op| op.input(&path))
    }

    /// Computes up to `buffer` elements ahead; 0 leaves the number to the runtime.
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::Graph;
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..2);
    /// assert_eq!(numbers.prefetch(1).values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [0, 1]);
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn prefetch(&self, buffer: usize) -> Dataset {
        let buffer = self.number(if buffer == 0 { -1 } else { buffer as i64 });
        self.same("PrefetchDataset", |op| op.input(&buffer))
    }

    /// Windows of `size` consecutive elements, each of which begins `shift` elements after the one before; incomplete windows
    /// are dropped if `full` is set. Each component of a window is a dataset: see [`Dataset::from_output`].
    ///
    /// ```
    /// use flowgrid_input::Dataset;
    /// use graph::{Graph, Output};
    /// use tensor::{DType, PartialShape};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let numbers = Dataset::range(&graph.root(), 0..4);
    /// let whole = |window: Output| Dataset::from_output(window, vec![DType::I64], vec![PartialShape::scalar()]).batch(3);
    /// let windows = numbers.window(3, 1, true).flat_map(whole);
    /// assert_eq!(windows.values::<Vec<i64>>()?.collect::<Result<Vec<_>, _>>()?, [[0, 1, 2], [1, 2, 3]]);
    /// # Ok::<(), status::Error>(())
    /// ```
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

    fn function<A: Structure, B: Structure>(&self, name: &str, function: impl FnOnce(A) -> Result<B>) -> Result<Built> {
        let (body, arguments) = self.begin_function()?;
        let results = function(arguments)?.unpack();
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
