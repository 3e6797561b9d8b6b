//! The elements of every source and transformation. They follow from TensorFlow's definitions; the order of the shuffle is what
//! `tf.data.Dataset.range(8).shuffle(4, seed=7)` gives.

use super::graph;
use crate::{Compression, CsvOptions, Dataset, PaddedBatchOptions};
use graph::{Graph, Output};
use io::{FileSystems, RecordWriter};
use std::path::PathBuf;
use tensor::{DType, PartialShape, Tensor};

fn range(end: i64) -> Dataset {
    Dataset::range(&graph().root(), 0..end)
}

fn integers(dataset: &Dataset) -> Vec<i64> {
    dataset.values::<i64>().unwrap().collect::<Result<_, _>>().unwrap()
}

/// The numbers of each element, whatever its rank.
fn batches(dataset: &Dataset) -> Vec<Vec<i64>> {
    dataset.iter().unwrap().map(|element| element.unwrap()[0].values::<i64>().unwrap().to_vec()).collect()
}

fn texts(dataset: &Dataset) -> Vec<String> {
    dataset.values::<String>().unwrap().collect::<Result<_, _>>().unwrap()
}

/// A file that is deleted when the test ends.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(std::env::temp_dir().join(format!("flowgrid-input-{name}-{}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "a range that counts down")]
fn sources_in_memory() {
    let graph = graph();
    let scope = graph.root();
    let constant = |values: &[i64]| ops::array::constant(&scope, Tensor::vector(values));
    assert_eq!(integers(&Dataset::range_by(&scope, 5..0, -2)), [5, 3, 1]);
    assert_eq!(batches(&Dataset::from_tensors(constant(&[1, 2]))), [[1, 2]]);
    assert_eq!(integers(&Dataset::from_slices(constant(&[4, 5]))), [4, 5]);
    assert_eq!(batches(&Dataset::from_iterator(&scope, [vec![1i64], vec![2, 3]])), [vec![1], vec![2, 3]]);
    let pairs = Dataset::from_slices((constant(&[1, 2]), constant(&[30, 40])));
    assert_eq!(integers(&pairs.map(|(a, b): (Output, Output)| a + b)), [31, 42]);
}

#[test]
fn records_of_each_compression() {
    let graph = graph();
    for (compression, name) in [(Compression::None, "none"), (Compression::Zlib, "zlib"), (Compression::Gzip, "gzip")] {
        let file = File::new(name);
        let writer = RecordWriter::create_on(&FileSystems::local(), &file.0, compression).unwrap();
        writer.write_all(["one", "two"]).unwrap();
        let records = Dataset::tf_records_with(&graph.root(), [&file.0], compression);
        assert_eq!(texts(&records), ["one", "two"], "{name}");
    }
}

#[test]
fn compressed_lines() {
    // What `gzip` makes of "one\ntwo\n".
    let packed =
        [31u8, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 207, 75, 229, 42, 41, 207, 231, 2, 0, 230, 11, 186, 18, 8, 0, 0, 0];
    let file = File::new("lines");
    std::fs::write(&file.0, packed).unwrap();
    let lines = Dataset::text_lines_with(&graph().root(), [&file.0], Compression::Gzip);
    assert_eq!(texts(&lines), ["one", "two"]);
}

#[test]
fn sources_in_plain_files() {
    let graph = graph();
    let scope = graph.root();
    let file = File::new("plain");
    std::fs::write(&file.0, "1;0.5\n2;\n").unwrap();
    assert_eq!(texts(&Dataset::text_lines(&scope, [&file.0])), ["1;0.5", "2;"]);
    assert_eq!(texts(&Dataset::fixed_length_records(&scope, [&file.0], 3, (2, 1))), ["0.5", "\n2;"]);
    assert_eq!(texts(&Dataset::list_files(&scope, &file.0.to_string_lossy())), [file.0.to_string_lossy()]);
    let defaults = [Tensor::scalar(0i64), Tensor::scalar(-1f32)];
    let rows = Dataset::csv(&scope, [&file.0], &defaults, &CsvOptions { delimiter: ';', ..CsvOptions::default() });
    let rows: Vec<Vec<Tensor>> = rows.iter().unwrap().collect::<Result<_, _>>().unwrap();
    let row = |row: &Vec<Tensor>| (row[0].to_scalar::<i64>().unwrap(), row[1].to_scalar::<f32>().unwrap());
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), [(1, 0.5), (2, -1.0)]);
}

#[test]
fn functions_of_elements() {
    assert_eq!(integers(&range(4).map(|x: Output| &x * &x)), [0, 1, 4, 9]);
    assert_eq!(integers(&range(4).parallel_map(2, |x: Output| &x * &x)), [0, 1, 4, 9]);
    let is_small = |x: Output| x.scope().op("Less").input(&x).input(&x.like(2.0)).output();
    assert_eq!(integers(&range(4).filter(is_small)), [0, 1]);
    let below = |x: Output| {
        let (zero, one) = (x.like(0.0), x.like(1.0));
        let op = x.scope().op("RangeDataset").input(&zero).input(&x).input(&one);
        let op = op.attr("output_types", crate::dataset::type_list(&[DType::I64]));
        let shapes = graph::AttrList { shapes: vec![PartialShape::scalar()], ..graph::AttrList::default() };
        let handle = op.attr("output_shapes", graph::AttrValue::from(shapes)).output();
        Dataset::from_output(handle, vec![DType::I64], vec![PartialShape::scalar()])
    };
    assert_eq!(integers(&range(4).flat_map(below)), [0, 0, 1, 0, 1, 2]);
    assert_eq!(integers(&range(4).interleave(2, 1, below)), [0, 0, 1, 0, 1, 2]);
}

#[test]
fn batches_of_elements() {
    assert_eq!(batches(&range(5).batch(2)), [vec![0, 1], vec![2, 3], vec![4]]);
    assert_eq!(batches(&range(5).full_batches(2)), [[0, 1], [2, 3]]);
    let window = |window: Output| Dataset::from_output(window, vec![DType::I64], vec![PartialShape::scalar()]).batch(9);
    assert_eq!(batches(&range(5).window(3, 2, false).flat_map(window)), [vec![0, 1, 2], vec![2, 3, 4], vec![4]]);
    assert_eq!(batches(&range(5).window(3, 2, true).flat_map(window)), [[0, 1, 2], [2, 3, 4]]);
}

#[test]
fn padded_batches() {
    let rows = Dataset::from_iterator(&graph().root(), [vec![1i64], vec![2, 3], vec![4]]);
    assert_eq!(batches(&rows.padded_batch(2)), [vec![1, 0, 2, 3], vec![4]]);
    let shapes = vec![PartialShape::new(&[3])];
    let options = PaddedBatchOptions { shapes, values: vec![Tensor::scalar(-1i64)], drop_remainder: true };
    let padded = rows.padded_batch_with(2, &options);
    assert_eq!(padded.shapes()[0].to_string(), "[2,3]");
    assert_eq!(batches(&padded), [[1, -1, -1, 2, 3, -1]]);
}

#[test]
fn wrong_options_of_padded_batches_are_named() {
    let error = |options: PaddedBatchOptions| {
        let graph: Graph = graph();
        Dataset::from_iterator(&graph.root(), [vec![1i64, 2]]).padded_batch_with(2, &options);
        graph.check().unwrap_err().message
    };
    let shapes = |dims: &[&[i64]]| PaddedBatchOptions {
        shapes: dims.iter().map(|dims| PartialShape::new(dims)).collect(),
        ..PaddedBatchOptions::default()
    };
    let values = |value: Tensor| PaddedBatchOptions { values: vec![value], ..PaddedBatchOptions::default() };
    let incompatible = "The padded shape [1] is not compatible with the corresponding input component shape [2].";
    assert_eq!(error(shapes(&[&[1]])), incompatible);
    assert_eq!(error(shapes(&[&[2], &[2]])), "A padded batch has 2 shapes for elements with 1 components");
    let mismatched = "Mismatched type between padding value float and input dataset's component type int64.";
    assert_eq!(error(values(Tensor::scalar(0f32))), mismatched);
    assert_eq!(error(values(Tensor::vector(&[0i64]))), "padding_values must be a scalar, but has shape [1]");
}

#[test]
fn order_and_number_of_elements() {
    assert_eq!(integers(&range(8).shuffle(4, Some(7))), SHUFFLED);
    assert_eq!(integers(&range(2).repeat(2)), [0, 1, 0, 1]);
    assert_eq!(integers(&range(2).repeat_forever().take(5)), [0, 1, 0, 1, 0]);
    assert_eq!(integers(&range(5).skip(3)), [3, 4]);
    assert_eq!(integers(&range(5).shard(2, 1)), [1, 3]);
    assert_eq!(integers(&range(3).cache().prefetch(1).repeat(2)), [0, 1, 2, 0, 1, 2]);
    let graph = graph();
    let (a, b) = (Dataset::range(&graph.root(), 0..3), Dataset::range(&graph.root(), 10..12));
    assert_eq!(integers(&a.concatenate(&b)), [0, 1, 2, 10, 11]);
    let zipped = Dataset::zip(&[&a, &b]).map(|(a, b): (Output, Output)| a + b);
    assert_eq!(integers(&zipped), [10, 12]);
}

const SHUFFLED: [i64; 8] = [0, 4, 2, 3, 5, 6, 1, 7];
