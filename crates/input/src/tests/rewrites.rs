//! Pipelines are rewritten when an iterator begins: the stages change as in TensorFlow, and the elements do not.

use super::graph;
use crate::Dataset;
use graph::{Graph, Output};
use ops::array::constant;
use session::Session;
use tensor::{DType, Tensor};

/// The numbers of the options in TensorFlow's OptimizationOptions.
const FILTER_FUSION: u8 = 6;
const MAP_AND_BATCH_FUSION: u8 = 9;
const MAP_AND_FILTER_FUSION: u8 = 10;
const MAP_FUSION: u8 = 11;
const MAP_PARALLELIZATION: u8 = 12;
const NOOP_ELIMINATION: u8 = 14;
const SHUFFLE_AND_REPEAT_FUSION: u8 = 17;
const FILTER_PARALLELIZATION: u8 = 18;

/// The dataset with these optimizations and no others.
fn with_options(dataset: &Dataset, optimizations: &[u8]) -> Dataset {
    let mut optimization = vec![1 << 3, 0]; // apply_default_optimizations = false
    for field in optimizations {
        let tag = u32::from(*field) << 3;
        if tag >= 128 {
            optimization.push((tag & 127) as u8 | 128);
            optimization.push((tag >> 7) as u8);
        } else {
            optimization.push(tag as u8);
        }
        optimization.push(1);
    }
    let mut options = vec![3 << 3 | 2, optimization.len() as u8];
    options.extend(optimization);
    same(dataset, "OptionsDataset", &[], Some(options))
}

fn same(dataset: &Dataset, op: &str, inputs: &[Output], options: Option<Vec<u8>>) -> Dataset {
    let builder = dataset.handle().scope().op(op).input(dataset.handle());
    let mut builder = inputs.iter().fold(builder, |builder, input| builder.input(input));
    if let Some(options) = options {
        builder = builder.attr("serialized_options", graph::AttrValue::String(options.into()));
    }
    let types = dataset.types().to_vec();
    let builder = builder.attr("output_types", types.clone()).attr("output_shapes", dataset.shapes().to_vec());
    Dataset::from_output(builder.output(), types, dataset.shapes().to_vec())
}

/// An error unless these stages follow in the pipeline, the next one first.
fn assert_next(dataset: &Dataset, names: &[&str]) -> Dataset {
    let texts = names.iter().map(|name| name.to_string().into()).collect();
    let names = Tensor::from_strings(tensor::Shape::new(&[names.len()]), texts).unwrap();
    let names = constant(dataset.handle().scope(), names);
    same(dataset, "AssertNextDataset", &[names], None)
}

/// Elements with their types and values, or the message of the error.
fn elements(dataset: &Dataset) -> Vec<String> {
    match dataset.iter() {
        Ok(elements) => elements.map(|element| format!("{element:?}")).collect(),
        Err(error) => vec![error.message],
    }
}

/// Checks the stages that follow ten numbers, and that rewrites keep the elements.
fn check(optimizations: &[u8], names: &[&str], build: impl Fn(&Dataset) -> Dataset) {
    let graph = graph();
    let numbers = Dataset::range(&graph.root(), 0..10);
    let rewritten = with_options(&build(&assert_next(&numbers, names)), optimizations);
    let found = elements(&rewritten);
    assert!(found.iter().all(|element| element.starts_with("Ok")), "{found:?}");
    assert_eq!(found, elements(&with_options(&build(&numbers), &[])));
    assert!(!found.is_empty());
    let unchanged = elements(&with_options(&build(&assert_next(&numbers, names)), &[]));
    assert!(unchanged[0].contains("Asserted"), "the pipeline has these stages without the rewrite: {unchanged:?}");
}

fn number(dataset: &Dataset, value: i64) -> Output {
    constant(dataset.handle().scope(), Tensor::scalar(value))
}

fn is_less(x: &Output, bound: i64) -> Output {
    ops::raw::less(x, &constant(x.scope(), Tensor::scalar(bound))).output()
}

#[test]
fn stages_that_change_nothing_are_removed() {
    check(&[NOOP_ELIMINATION], &["FiniteTake", "Root"], |dataset| {
        let none_skipped = same(&dataset.repeat(1), "SkipDataset", &[number(dataset, 0)], None);
        let all = same(&none_skipped, "TakeDataset", &[number(dataset, -1)], None);
        let whole = same(&all, "ShardDataset", &[number(dataset, 1), number(dataset, 0)], None);
        whole.map(|x: Output| ops::array::identity(&x)).parallel_map(2, |x: Output| x).take(7)
    });
}

#[test]
fn shuffles_repeat_their_input_in_the_same_order() {
    for buffer in [1, 4, 10, 25] {
        check(&[SHUFFLE_AND_REPEAT_FUSION], &["ShuffleAndRepeat", "Root"], |dataset| {
            dataset.shuffle(buffer, Some(7)).repeat(3)
        });
    }
    check(&[SHUFFLE_AND_REPEAT_FUSION], &["ShuffleAndRepeat", "FiniteTake", "Root"], |dataset| {
        dataset.shuffle(4, Some(7)).repeat_forever().take(33)
    });
}

#[test]
fn maps_are_parallel_and_keep_the_order() {
    check(&[MAP_PARALLELIZATION], &["ParallelMap", "Root"], |dataset| dataset.map(|x: Output| &x * &x));
    check(&[FILTER_PARALLELIZATION], &["ParallelFilter", "Root"], |dataset| {
        dataset.filter(|x: Output| is_less(&(&x * &x), 30))
    });
}

#[test]
fn a_map_with_state_is_not_parallel() {
    let graph = graph();
    let numbers = assert_next(&Dataset::range(&graph.root(), 0..3), &["Map", "Root"]);
    let random = numbers.map(|x: Output| {
        let shape = constant(x.scope(), Tensor::vector(&[2i32]));
        ops::raw::random_uniform(&shape, DType::F32).output()
    });
    let found = elements(&with_options(&random, &[MAP_PARALLELIZATION]));
    assert!(found.len() == 3 && found[0].starts_with("Ok"), "{found:?}");
}

#[test]
fn maps_of_maps_are_one() {
    check(&[MAP_FUSION], &["Map", "Root"], |dataset| {
        let chain = |dataset: Dataset, _| dataset.map(|x: Output| &x + &x);
        (0..40).fold(dataset.clone(), chain)
    });
    let pairs = |x: Output| (&x + &x, x);
    check(&[MAP_FUSION, MAP_PARALLELIZATION], &["ParallelMap", "Root"], |dataset| {
        dataset.parallel_map(0, pairs).map(|(a, b): (Output, Output)| a * b)
    });
}

#[test]
fn filters_of_filters_are_one() {
    check(&[FILTER_FUSION], &["Filter", "Root"], |dataset| {
        let bounds = [9, 8, 7];
        bounds.into_iter().fold(dataset.clone(), |dataset, bound| dataset.filter(|x: Output| is_less(&x, bound)))
    });
}

#[test]
fn predicates_are_called_with_the_map_before_them() {
    check(&[MAP_AND_FILTER_FUSION], &["Map", "Filter", "Map", "Root"], |dataset| {
        dataset.map(|x: Output| (&x * &x, x)).filter(|(square, _): (Output, Output)| is_less(&square, 30))
    });
}

#[test]
fn maps_and_batches_are_one_stage() {
    for dropping in [false, true] {
        check(&[MAP_AND_BATCH_FUSION], &["MapAndBatch", "Root"], |dataset| {
            let mapped = dataset.map(|x: Output| &x * &x);
            let inputs = [number(dataset, 3), constant(mapped.handle().scope(), Tensor::scalar(dropping))];
            let handle = mapped.handle().scope().op("BatchDatasetV2").input(mapped.handle());
            let shapes = vec![tensor::PartialShape::new(&[-1])];
            let handle = handle
                .input(&inputs[0])
                .input(&inputs[1])
                .attr("output_types", vec![DType::I64])
                .attr("output_shapes", shapes.clone());
            Dataset::from_output(handle.output(), vec![DType::I64], shapes)
        });
    }
}

#[test]
fn functions_that_captured_values_are_not_joined() {
    let graph = graph();
    let factor = constant(&graph.root(), Tensor::scalar(3i64));
    let numbers = assert_next(&Dataset::range(&graph.root(), 0..3), &["Map", "Map", "Root"]);
    let products = numbers.map(|x: Output| &x * &factor).map(|x: Output| &x + &x);
    let products = with_options(&products, &[MAP_FUSION]);
    assert_eq!(products.values::<i64>().unwrap().collect::<Result<Vec<_>, _>>().unwrap(), [0, 6, 12]);
}

#[test]
fn a_pipeline_has_the_rewrites_that_tensorflow_makes_by_default() {
    let graph: Graph = graph();
    let numbers = assert_next(&Dataset::range(&graph.root(), 0..4), &["MapAndBatch", "Root"]);
    let next: Output = numbers.skip(0).map(|x: Output| &x * &x).batch(4).make_one_shot_iterator().next().unwrap();
    assert_eq!(Session::local(&graph).run::<Vec<i64>>(&next).unwrap(), [0, 1, 4, 9]);
}
