//! Snapshots: a second run of an equal pipeline reads what the first one wrote.

use super::graph;
use crate::Dataset;
use graph::Output;
use session::Session;
use std::path::PathBuf;
use tensor::{Bytes, DType, Tensor};

/// A folder with a file of records.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Files {
        let folder = std::env::temp_dir().join(format!("flowgrid-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Files(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }

    fn write_records(&self, records: &[&str]) {
        io::RecordWriter::create(self.path("records")).unwrap().write_all(records).unwrap();
    }

    /// The number of snapshots.
    fn snapshots(&self) -> usize {
        std::fs::read_dir(self.0.join("snapshots")).unwrap().count()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The elements of a dataset of batches of numbers, which is built and run in a graph and a session of its own.
fn run(build: impl FnOnce(&graph::Graph) -> Dataset, files: &Files) -> Vec<Vec<f32>> {
    let graph = graph();
    let dataset = build(&graph);
    let path = ops::array::constant(&graph.root(), Tensor::string(Bytes::from(files.path("snapshots"))));
    let (types, shapes) = (dataset.types().to_vec(), dataset.shapes().to_vec());
    let handle = data::raw::snapshot_dataset(dataset.handle(), &path, &types, &shapes).output();
    let next: Output = Dataset::from_output(handle, types, shapes).make_one_shot_iterator().next().unwrap();
    let session = Session::local(&graph);
    std::iter::from_fn(|| session.run::<Vec<f32>>(&next).ok()).collect()
}

/// Records to numbers, to which `added` is added; then batches in random order.
fn batches(graph: &graph::Graph, files: &Files, added: f32) -> Dataset {
    let number = |record: Output| {
        let added = ops::array::constant(record.scope(), Tensor::scalar(added));
        ops::raw::string_to_number(&record).attr("out_type", DType::F32).output() + added
    };
    Dataset::tf_records(&graph.root(), [files.path("records")]).map(number).batch(2).shuffle(3, Some(7))
}

#[test]
fn a_second_session_reads_the_snapshot_of_the_first() {
    let files = Files::new("snapshot-reused");
    files.write_records(&["1", "2", "3", "4", "5"]);
    let first = run(|graph| batches(graph, &files, 10.0), &files);
    let mut numbers = first.concat();
    numbers.sort_by(f32::total_cmp);
    assert_eq!(numbers, [11.0, 12.0, 13.0, 14.0, 15.0]);
    files.write_records(&["6"]); // a pipeline that reads its source again would return this
    assert_eq!(run(|graph| batches(graph, &files, 10.0), &files), first);
    assert_eq!(files.snapshots(), 1);
}

#[test]
fn another_function_writes_another_snapshot() {
    let files = Files::new("snapshot-changed");
    files.write_records(&["1", "2"]);
    assert_eq!(run(|graph| batches(graph, &files, 10.0), &files), [[11.0, 12.0]]);
    assert_eq!(run(|graph| batches(graph, &files, 20.0), &files), [[21.0, 22.0]]);
    assert_eq!(files.snapshots(), 2);
}

/// TensorFlow leaves seeds of shuffles out of the description of a pipeline.
#[test]
fn the_seed_of_a_shuffle_does_not_count() {
    let files = Files::new("snapshot-seeds");
    let shuffled = |seed| run(|graph| numbers(graph).shuffle(50, seed), &files);
    let first = shuffled(Some(1));
    assert_eq!(shuffled(Some(2)), first);
    assert_eq!(shuffled(None), first);
    assert_eq!(files.snapshots(), 1);
}

fn numbers(graph: &graph::Graph) -> Dataset {
    let rows: Vec<f32> = (0..50).map(|value| value as f32).collect();
    Dataset::from_slices(ops::array::constant(&graph.root(), Tensor::vector(&rows))).batch(1)
}

#[test]
fn captured_values_count() {
    let files = Files::new("snapshot-captured");
    let scaled = |factor: f32| {
        let build = |graph: &graph::Graph| {
            let factor = ops::array::constant(&graph.root(), Tensor::scalar(factor));
            numbers(graph).take(1).map(|x: Output| x * &factor + &factor)
        };
        run(build, &files)
    };
    assert_eq!(scaled(2.0), [[2.0]]);
    assert_eq!(scaled(3.0), [[3.0]]);
    assert_eq!(scaled(2.0), [[2.0]]);
    assert_eq!(files.snapshots(), 2);
}
