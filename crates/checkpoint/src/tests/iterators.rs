//! States of iterators in checkpoints.

use super::{Folder, nodes};
use crate::Saver;
use graph::{Graph, Output, Scope};
use input::{Dataset, DatasetIterator};
use io::{Bundle, FileSystems};
use layers::collection::global_variables_initializer;
use layers::{ScopeOps, Variable};
use session::{Session, feeds};
use status::Code;
use tensor::DType;

fn graph() -> Graph {
    Graph::with_ops(data::registry())
}

/// A pipeline with elements in buffers: shuffled, computed in parallel, computed ahead.
fn pipeline(scope: &Scope) -> DatasetIterator {
    let dataset = Dataset::range(scope, 0..30).shuffle(7, Some(5)).parallel_map(3, |x: Output| &x * &x);
    dataset.batch(4).prefetch(2).make_initializable_iterator()
}

/// The elements that are left.
fn rest(session: &Session, next: &Output) -> Vec<Vec<i64>> {
    let mut found = Vec::new();
    loop {
        match session.run::<Vec<i64>>(next) {
            Ok(batch) => found.push(batch),
            Err(error) => {
                assert_eq!(error.code, Code::OutOfRange, "{error}");
                return found;
            }
        }
    }
}

#[test]
fn a_restored_pipeline_gives_each_remaining_element_once() {
    let folder = Folder::new();
    let graph = graph();
    let iterator = pipeline(&graph.root());
    let next: Output = iterator.next().unwrap();
    let count = Variable::zeros(&graph.root(), "count", [2]);
    let saver = Saver::builder(&graph).iterators([&iterator]).build().unwrap();
    let initializers = [global_variables_initializer(&graph), iterator.initializer().unwrap().clone()];
    let begun = || {
        let session = Session::local(&graph);
        session.execute(&initializers[..]).unwrap();
        session
    };
    let all = rest(&begun(), &next);
    let mut sorted = all.concat();
    sorted.sort();
    assert_eq!(sorted, (0..30).map(|x| x * x).collect::<Vec<i64>>());
    for taken in [0, 3, all.len()] {
        let session = begun();
        let first: Vec<Vec<i64>> = (0..taken).map(|_| session.run(&next).unwrap()).collect();
        let path = saver.save(&session, folder.join("model"), taken as i64).unwrap();
        // Neither the iterator nor the variable was initialized.
        let session = Session::local(&graph);
        saver.restore(&session, &path).unwrap();
        assert_eq!([first, rest(&session, &next)].concat(), all, "after {taken} batches");
        assert_eq!(session.run::<[f32; 2]>(&count).unwrap(), [0.0, 0.0]);
    }
}

/// The file is written by `fixtures/iterator.py`, after two of four batches.
#[test]
fn a_checkpoint_of_tensorflow_continues_at_its_element() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/iterator");
    let graph = graph();
    let iterator = Dataset::range(&graph.root(), 0..10).batch(3).make_initializable_iterator();
    let next: Output = iterator.next().unwrap();
    let saver = Saver::builder(&graph).iterators([&iterator]).build().unwrap();
    let session = Session::local(&graph);
    saver.restore(&session, folder).unwrap();
    assert_eq!(rest(&session, &next), [vec![6, 7, 8], vec![9]]);
}

#[test]
fn states_have_the_names_and_devices_of_tensorflow() {
    let folder = Folder::new();
    let graph = graph();
    let on = |device: &str| Dataset::range(&graph.root().on(device), 0..3).make_initializable_iterator();
    let iterators = [on("/cpu:0"), on("/job:localhost/task:0")];
    let saver = Saver::builder(&graph).iterators(&iterators).sharded(true).build().unwrap();
    let session = Session::local(&graph);
    let initializers = iterators.each_ref().map(|iterator| iterator.initializer().unwrap().clone());
    session.execute(&initializers[..]).unwrap();
    let path = saver.save(&session, folder.join("model"), None).unwrap();
    let bundle = Bundle::open(&FileSystems::local(), &path).unwrap();
    for name in ["IteratorV2:0_STATE", "IteratorV2_1:0_STATE"] {
        assert_eq!(bundle.entry(name).unwrap().dtype, DType::VARIANT, "{name}");
    }
    assert_eq!(nodes(&graph, "save/DeserializeIterator").len(), 2);
}

#[test]
fn an_iterator_that_is_fed_is_not_initialized_by_a_restore() {
    let folder = Folder::new();
    let graph = graph();
    let factor = graph.root().placeholder(DType::I64, &[]);
    let dataset = Dataset::range(&graph.root(), 1..4).map(|x: Output| x * &factor);
    let iterator = dataset.make_initializable_iterator();
    let next: Output = iterator.next().unwrap();
    let saver = Saver::builder(&graph).iterators([&iterator]).build().unwrap();
    let begun = || {
        let session = Session::local(&graph);
        session.execute_with(iterator.initializer().unwrap(), feeds! { &factor => 10i64 }).unwrap();
        session
    };
    let session = begun();
    assert_eq!(session.run::<i64>(&next).unwrap(), 10);
    let path = saver.save(&session, folder.join("model"), None).unwrap();
    assert_eq!(saver.restore(&Session::local(&graph), &path).unwrap_err().code, Code::FailedPrecondition);
    let session = begun();
    saver.restore(&session, &path).unwrap();
    assert_eq!(session.run::<i64>(&next).unwrap(), 20);
}

#[test]
fn an_iterator_is_saved_once() {
    let graph = graph();
    let iterator = Dataset::range(&graph.root(), 0..3).make_initializable_iterator();
    let error = Saver::builder(&graph).iterators([&iterator, &iterator]).build().err().unwrap();
    assert_eq!(error.message, "The same iterator is saved twice: IteratorV2:0");
}
