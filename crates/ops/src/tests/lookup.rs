//! Lookup tables over several steps; values and texts are TensorFlow's.

use super::evaluate::{Evaluation, FLOAT, constant, floats, graph, refusal};
use crate::data_structures::lookup::access::*;
use crate::data_structures::lookup::table::*;
use graph::{Graph, Node, Output};
use status::Code;
use tensor::{Bytes, DType, PartialShape, Tensor};

fn strings(g: &Graph, values: &[&str]) -> Output {
    let values = values.iter().map(|value| Bytes::copy_from_slice(value.as_bytes())).collect::<Vec<_>>();
    constant(g, Tensor::from_strings([values.len()], values).unwrap())
}

fn longs(g: &Graph, values: &[i64]) -> Output {
    constant(g, Tensor::vector(values))
}

fn long(g: &Graph, value: i64) -> Output {
    constant(g, Tensor::scalar(value))
}

#[test]
fn a_table_is_filled_once() {
    let g = graph();
    let table = hash_table(&g.root(), "", DType::STRING, DType::I64);
    let session = Evaluation::new();
    let find = lookup_table_find(&table, &strings(&g, &["b", "x", "a"]), &long(&g, -1));
    let early = session.next().value(&find).unwrap_err();
    assert_eq!((early.code, early.message.as_str()), (Code::FailedPrecondition, "Table not initialized."));
    let fill = |keys: &[&str], values: &[i64]| initialize_table(&table, &strings(&g, keys), &longs(&g, values));
    let twice = refusal(session.next().run(&fill(&["a", "a"], &[1, 2])));
    assert_eq!(twice, "HashTable has different value for same key. Key a has 1 and trying to add value 2");
    session.next().run(&fill(&["a", "b"], &[10, 20])).unwrap();
    assert_eq!(session.next().value(&find).unwrap().values::<i64>().unwrap(), [20, -1, 10]);
    session.next().run(&fill(&["c", "d"], &[1, 2])).unwrap(); // as many: TensorFlow takes it for the same
    let other = refusal(session.next().run(&fill(&["c"], &[1])));
    assert_eq!(other, "Table was already initialized with different data.");
    let insert = refusal(session.next().run(&lookup_table_insert(&table, &strings(&g, &["c"]), &longs(&g, &[1]))));
    assert_eq!(insert, "Insert not supported by InitializableLookupTable implementations");
}

#[test]
fn keys_come_and_go() {
    let g = graph();
    let table = mutable_hash_table(&g.root(), "", DType::I64, FLOAT);
    let session = Evaluation::new();
    let insert = |keys: &[i64], values: &[f32]| lookup_table_insert(&table, &longs(&g, keys), &floats(&g, values));
    session.next().run(&insert(&[1, 2, 3], &[1.0, 2.0, 3.0])).unwrap();
    session.next().run(&lookup_table_remove(&table, &longs(&g, &[2, 9]))).unwrap();
    session.next().run(&insert(&[4, 1], &[4.0, 1.5])).unwrap();
    let default = constant(&g, Tensor::scalar(-1f32));
    let found = session.next().value(&lookup_table_find(&table, &longs(&g, &[1, 2, 3, 4]), &default)).unwrap();
    assert_eq!(found.values::<f32>().unwrap(), [1.5, -1.0, 3.0, 4.0]);
    let each = lookup_table_find(&table, &longs(&g, &[7, 3]), &floats(&g, &[0.5, 0.25]));
    assert_eq!(session.next().value(&each).unwrap().values::<f32>().unwrap(), [0.5, 3.0]);
    assert_eq!(session.next().value(&lookup_table_size(&table)).unwrap().to_scalar::<i64>().unwrap(), 3);
    let wrong = refusal(session.next().run(&insert(&[1, 2], &[1.0])));
    assert_eq!(wrong, "Expected shape [2] for value, got [1]");
}

fn dense(g: &Graph, empty: &Output, deleted: &Output, buckets: i64) -> Output {
    let op = g.root().op("MutableDenseHashTableV2").input(empty).input(deleted).attr("value_dtype", DType::I64);
    op.attr("initial_num_buckets", buckets).attr("value_shape", PartialShape::scalar()).output()
}

fn buckets(session: &Evaluation, table: &Output, key: DType) -> (Tensor, Tensor) {
    let (keys, values) = lookup_table_export(table, key, DType::I64);
    let step = session.next();
    (step.value(&keys).unwrap(), step.value(&values).unwrap())
}

#[test]
fn buckets_are_where_tensorflow_has_them() {
    let g = graph();
    let session = Evaluation::new();
    let table = dense(&g, &long(&g, 0), &long(&g, -1), 8);
    let insert: Node = lookup_table_insert(&table, &longs(&g, &[11, 12, 19, 27]), &longs(&g, &[0, 1, 2, 3]));
    session.next().run(&insert).unwrap();
    session.next().run(&lookup_table_remove(&table, &longs(&g, &[12]))).unwrap();
    let (keys, values) = buckets(&session, &table, DType::I64);
    assert_eq!(keys.values::<i64>().unwrap(), INT_KEYS);
    assert_eq!(values.values::<i64>().unwrap(), INT_VALUES);
    let bad = refusal(session.next().run(&lookup_table_insert(&table, &longs(&g, &[0]), &longs(&g, &[0]))));
    assert_eq!(bad, "Using the empty_key as a table key is not allowed");
    let pairs = dense(&g, &strings(&g, &["", ""]), &strings(&g, &["-", ""]), 4);
    let key = constant(&g, Tensor::from_strings([2, 2], ["a", "b", "c", "d"].map(Bytes::from).to_vec()).unwrap());
    session.next().run(&lookup_table_insert(&pairs, &key, &longs(&g, &[5, 6]))).unwrap();
    let (keys, values) = buckets(&session, &pairs, DType::STRING);
    assert_eq!(keys.strings().unwrap(), PAIRS.map(Bytes::from));
    assert_eq!(values.values::<i64>().unwrap(), PAIR_VALUES);
}

const INT_KEYS: [i64; 8] = [0, 27, 0, 11, -1, 0, 19, 0];
const INT_VALUES: [i64; 8] = [0, 3, 0, 0, 1, 0, 2, 0];
const PAIRS: [&str; 8] = ["", "", "a", "b", "", "", "c", "d"];
const PAIR_VALUES: [i64; 4] = [0, 5, 0, 6];
