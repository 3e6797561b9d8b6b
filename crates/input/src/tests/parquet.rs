//! Datasets of Parquet files, which `io` writes.

use crate::{Dataset, Feature};
use graph::{Graph, Output};
use io::FileSystems;
use io::rows::{Cell, RowFile, Schema};
use tensor::{DType, Tensor};

/// Three rows: a number, a float that is missing once, a list, and a text that nothing reads.
fn file() -> FileSystems {
    let systems = FileSystems::local();
    let row = |id: i64, x: Option<f64>, list: &[i64]| {
        vec![
            ("id".to_string(), Cell::Int(id)),
            ("x".to_string(), x.map_or(Cell::Missing, Cell::Float)),
            ("list".to_string(), Cell::List(list.iter().map(|&value| Cell::Int(value)).collect())),
            ("text".to_string(), Cell::Bytes(format!("row {id}").into())),
        ]
    };
    let rows = [row(1, Some(0.5), &[7]), row(2, None, &[8, 9]), row(3, Some(1.5), &[])];
    let file = RowFile::named(&systems, "ram://input/rows.parquet").unwrap();
    let mut writer = file.writer(&Schema::guess(&rows)).unwrap();
    rows.into_iter().for_each(|row| writer.write(row).unwrap());
    writer.close().unwrap();
    systems
}

fn dataset(graph: &Graph, columns: &[(&str, Feature)]) -> Dataset {
    Dataset::parquet_on(&file(), &graph.root(), "ram://input/rows.parquet", columns)
}

#[test]
fn columns_are_typed_components() {
    let graph = Graph::with_ops(data::registry());
    let columns = [
        ("x", Feature::fixed(DType::F32, &[]).or(Tensor::scalar(-1f32))),
        ("list", Feature::sequence(DType::I64)),
        ("id", Feature::fixed(DType::F32, &[])),
        ("text", Feature::fixed(DType::STRING, &[])),
    ];
    let rows = dataset(&graph, &columns);
    assert_eq!(rows.types(), [DType::F32, DType::I64, DType::F32, DType::STRING]);
    let sums = rows.map(|[x, list, id, text]: [Output; 4]| [x + id, list, text]).padded_batch(3);
    let batch = sums.iter().unwrap().next().unwrap().unwrap();
    assert_eq!(batch[0].values::<f32>().unwrap(), [1.5, 1.0, 4.5]);
    assert_eq!(batch[1].values::<i64>().unwrap(), [7, 0, 8, 9, 0, 0]);
    assert_eq!(batch[2].strings().unwrap(), ["row 1", "row 2", "row 3"]);
}

#[test]
fn a_column_of_another_type_is_named() {
    let graph = Graph::with_ops(data::registry());
    dataset(&graph, &[("text", Feature::fixed(DType::I64, &[]))]);
    let message = graph.check().unwrap_err().message;
    assert!(message.starts_with("ram://input/rows.parquet: row 0, column 'text': Bytes("), "{message}");
    assert!(message.ends_with("is not an integer"), "{message}");
}
