//! Input pipelines: ops that TensorFlow has no kernel for, and requests that do not end by themselves.

use super::graph;
use crate::{RunOptions, Session, feeds};
use graph::{AttrValue, Graph, Node, Output};
use ops::array::constant;
use status::Code;
use std::sync::Arc;
use std::time::Duration;
use tensor::{DType, PartialShape, Tensor, Variant, VariantData};

fn number(graph: &Graph, value: i64) -> Output {
    constant(&graph.root(), Tensor::from(value))
}

/// A dataset, or an iterator, whose elements have these types, as scalars.
fn dataset(graph: &Graph, op: &str, inputs: &[Output], types: &[DType]) -> Output {
    let shapes = vec![PartialShape::scalar(); types.len()];
    let mut builder = graph.root().op(op).attr("output_types", types.to_vec()).attr("output_shapes", shapes);
    for input in inputs {
        builder = builder.input(input);
    }
    builder.output()
}

fn numbers(graph: &Graph, op: &str, inputs: &[Output]) -> Output {
    dataset(graph, op, inputs, &[DType::I64])
}

fn range(graph: &Graph, stop: i64) -> Output {
    numbers(graph, "RangeDataset", &[number(graph, 0), number(graph, stop), number(graph, 1)])
}

fn iterator(graph: &Graph) -> Output {
    graph
        .root()
        .op("IteratorV2")
        .attr("shared_name", "")
        .attr("container", "")
        .attr("output_types", vec![DType::I64])
        .attr("output_shapes", AttrValue::from(vec![PartialShape::scalar()]))
        .output()
}

fn begin(graph: &Graph, dataset: &Output, iterator: &Output) -> Node {
    graph.root().op("MakeIterator").input(dataset).input(iterator).node()
}

#[test]
fn the_last_component_selects_the_elements() {
    let graph = graph();
    let slices = |values: Tensor| {
        let types = vec![values.dtype()];
        let values = constant(&graph.root(), values);
        let slices = graph.root().op("TensorSliceDataset").inputs(&[values]).attr("Toutput_types", types);
        slices.attr("output_shapes", vec![PartialShape::scalar()]).output()
    };
    let parts = [slices(Tensor::vector(&[1i64, 2, 3])), slices(Tensor::vector(&[true, false, true]))];
    let pairs = graph.root().op("ZipDataset").inputs(&parts);
    let pairs = pairs.attr("output_types", vec![DType::I64, DType::BOOL]);
    let pairs = pairs.attr("output_shapes", vec![PartialShape::scalar(); 2]).output();
    let chosen = numbers(&graph, "FilterByLastComponentDataset", &[pairs]);
    let iterator = iterator(&graph);
    let (begin, next) =
        (begin(&graph, &chosen, &iterator), numbers(&graph, "IteratorGetNext", std::slice::from_ref(&iterator)));
    let session = Session::local(&graph);
    session.execute(&begin).unwrap();
    assert_eq!((session.run(&next), session.run(&next)), (Ok(1i64), Ok(3i64)));
    assert_eq!(session.run::<i64>(&next).unwrap_err().code, Code::OutOfRange);
}

/// A request for an element of `endless` runs into its time limit; then the iterator begins another dataset.
fn gives_up(graph: &Graph, endless: &Output) {
    let iterator = iterator(graph);
    let (first, second) = (begin(graph, endless, &iterator), begin(graph, &range(graph, 3), &iterator));
    let next = numbers(graph, "IteratorGetNext", std::slice::from_ref(&iterator));
    let session = Session::local(graph);
    session.execute(&first).unwrap();
    let options = RunOptions { timeout: Some(Duration::from_millis(50)), ..RunOptions::default() };
    let error = session.run_with_options::<i64>(&next, feeds! {}, options).err().unwrap();
    assert_eq!(error.code, Code::DeadlineExceeded, "{error}");
    session.execute(&second).unwrap();
    assert_eq!(session.run(&next), Ok(0i64));
}

#[test]
fn an_iterator_that_never_finds_an_element_can_begin_another_dataset() {
    let graph = graph();
    let endless = numbers(&graph, "RepeatDataset", &[range(&graph, 1), number(&graph, -1)]);
    gives_up(&graph, &numbers(&graph, "SkipDataset", &[endless, number(&graph, i64::MAX)]));
    let often = numbers(&graph, "RepeatDataset", &[range(&graph, 0), number(&graph, i64::MAX)]);
    gives_up(&graph, &often);
}

#[test]
fn an_iterator_that_sleeps_can_begin_another_dataset() {
    let graph = graph();
    for microseconds in [3_600_000_000, i64::MAX] {
        gives_up(&graph, &numbers(&graph, "SleepDataset", &[range(&graph, 3), number(&graph, microseconds)]));
    }
}

#[test]
fn sizes_that_no_memory_can_hold_are_errors_before_anything_is_read() {
    let graph = graph();
    let input = numbers(&graph, "RepeatDataset", &[range(&graph, 1), number(&graph, -1)]);
    let (size, seed, one) = (number(&graph, 1 << 62), number(&graph, 7), number(&graph, 1));
    let no = constant(&graph.root(), Tensor::from(false));
    let cases: [(&str, &[&Output]); 6] = [
        ("BatchDataset", &[&input, &size]),
        ("BatchDatasetV2", &[&input, &size, &no]),
        ("ParallelBatchDataset", &[&input, &size, &one, &no]),
        ("ShuffleDataset", &[&input, &size, &seed, &seed]),
        ("ShuffleAndRepeatDataset", &[&input, &size, &seed, &seed, &one]),
        ("WindowDataset", &[&input, &size, &one, &one, &no]),
    ];
    for (op, inputs) in cases {
        let inputs: Vec<Output> = inputs.iter().map(|&input| input.clone()).collect();
        let large = numbers(&graph, op, &inputs);
        let begin = begin(&graph, &large, &iterator(&graph));
        let error = Session::local(&graph).execute(&begin).unwrap_err();
        assert_eq!(error.code, Code::ResourceExhausted, "{error}");
        assert!(error.message.contains(&format!("OOM in {op}: 4611686018427387904 elements of at least ")), "{error}");
    }
}

#[test]
fn a_large_size_over_few_elements_is_no_error() {
    let graph = graph();
    let (size, seed) = (number(&graph, 1 << 62), number(&graph, 7));
    let shuffled = numbers(&graph, "ShuffleDataset", &[range(&graph, 3), size.clone(), seed.clone(), seed.clone()]);
    let iterator = iterator(&graph);
    let begin = begin(&graph, &shuffled, &iterator);
    let next = numbers(&graph, "IteratorGetNext", &[iterator]);
    let session = Session::local(&graph);
    session.execute(&begin).unwrap();
    let mut values: Vec<i64> = (0..3).map(|_| session.run(&next).unwrap()).collect();
    values.sort_unstable();
    assert_eq!(values, [0, 1, 2]);
    let nothing = [range(&graph, 0), size.clone(), seed.clone(), seed, size];
    let empty = numbers(&graph, "ShuffleAndRepeatDataset", &nothing);
    session_ends(&graph, &empty);
}

#[test]
fn a_window_over_an_input_that_only_returns_errors_ends() {
    let graph = graph();
    let text = |value: &'static str| constant(&graph.root(), Tensor::string(value));
    let lines = graph.root().op("TextLineDataset").input(&text("/no/such/file")).input(&text(""));
    let lines = lines.input(&number(&graph, 0)).output();
    let (size, no) = (number(&graph, 1 << 62), constant(&graph.root(), Tensor::from(false)));
    let types = [DType::VARIANT];
    let windows = dataset(&graph, "WindowDataset", &[lines, size.clone(), size, number(&graph, 1), no], &types);
    let iterator = graph.root().op("IteratorV2").attr("shared_name", "").attr("container", "");
    let iterator = iterator.attr("output_types", types.to_vec()).attr("output_shapes", vec![PartialShape::scalar()]);
    let iterator = iterator.output();
    let begin = begin(&graph, &windows, &iterator);
    let next = dataset(&graph, "IteratorGetNext", &[iterator], &types);
    let session = Session::local(&graph);
    session.execute(&begin).unwrap();
    assert_eq!(session.run::<Tensor>(&next).unwrap_err().code, Code::NotFound);
}

/// A dataset has no elements.
fn session_ends(graph: &Graph, dataset: &Output) {
    let iterator = iterator(graph);
    let begin = begin(graph, dataset, &iterator);
    let next = numbers(graph, "IteratorGetNext", &[iterator]);
    let session = Session::local(graph);
    session.execute(&begin).unwrap();
    assert_eq!(session.run::<i64>(&next).unwrap_err().code, Code::OutOfRange);
}

/// The state of a cache in files claims that it was saved very often.
#[test]
fn a_saved_state_with_a_wrong_number_of_files_is_an_error() {
    let folder = std::env::temp_dir().join(format!("flowgrid-cache-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let graph = graph();
    let name = constant(&graph.root(), Tensor::string(folder.join("cache").display().to_string()));
    let cache = numbers(&graph, "CacheDataset", &[range(&graph, 2), name]);
    let iterator = iterator(&graph);
    let begin = begin(&graph, &cache, &iterator);
    let state = graph.root().op("SerializeIterator").input(&iterator).output();
    let saved = graph.root().op("Placeholder").attr("dtype", DType::VARIANT).output();
    let restore = graph.root().op("DeserializeIterator").input(&iterator).input(&saved).node();
    let next = numbers(&graph, "IteratorGetNext", &[iterator]);
    let session = Session::local(&graph);
    session.execute(&begin).unwrap();
    let mut values = session.run::<Tensor>(&state).unwrap().variants().unwrap().to_vec();
    values.push(Variant::Data(Arc::new(VariantData {
        type_name: "tensorflow::Iterator".to_string(),
        metadata: "Iterator::Root::Prefetch::FileCacheImpl@@cur_index@@shard_id".into(),
        tensors: vec![Tensor::scalar(0i64), Tensor::scalar(1i64 << 40)],
    })));
    let values = Tensor::from_variants([values.len()], values).unwrap();
    session.execute_with(&restore, feeds! { &saved => values }).unwrap();
    assert_eq!((session.run(&next), session.run(&next)), (Ok(0i64), Ok(1i64)));
    let error = session.run::<i64>(&next).unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
    assert!(error.message.contains("consists of 1099511627777 files"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
