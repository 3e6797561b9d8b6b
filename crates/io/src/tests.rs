//! Files that real TensorFlow wrote (see `fixtures/write.py`), and files that somebody damaged.

use crate::{Bundle, EventReader, EventWhat, RecordReader, SavedModel, SummaryValue, Table};
use bytes::Bytes;
use status::{Code, Result};
use std::path::PathBuf;
use tensor::{DType, f16};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap()
}

#[test]
fn checkpoints_hold_their_tensors() {
    let bundle = Bundle::open(fixture("model")).unwrap();
    let names: Vec<&str> = bundle.entries().keys().map(String::as_str).collect();
    assert_eq!(names, ["count", "half", "layer/matrix", "words"]);
    assert_eq!(bundle.shards(), 1);
    let matrix = bundle.read("layer/matrix").unwrap();
    assert_eq!(matrix.shape().dims(), [2, 3]);
    assert_eq!(matrix.values::<f32>().unwrap(), [0., 1., 2., 3., 4., 5.]);
    assert_eq!(bundle.read("count").unwrap().to_scalar::<i64>().unwrap(), 7);
    assert_eq!(bundle.read("half").unwrap().values::<f16>().unwrap(), [f16::from_f32(0.5), f16::from_f32(-2.0)]);
    let words = bundle.read("words").unwrap();
    let lengths: Vec<usize> = words.strings().unwrap().iter().map(Bytes::len).collect();
    assert_eq!(lengths, [0, 3, 280]);
    let error = bundle.read("nothing").unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::NotFound, "Key nothing not found in checkpoint"));
}

#[test]
fn a_checkpoint_that_is_not_there_is_not_found() {
    assert_eq!(Bundle::open(fixture("no-such-model")).err().unwrap().code, Code::NotFound);
}

#[test]
fn records_come_in_order() {
    let records = RecordReader::open(fixture("records")).unwrap().collect::<Result<Vec<Bytes>>>().unwrap();
    let lengths: Vec<usize> = records.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [0, 3, 5120]);
    assert_eq!(&records[1][..], b"one");
}

#[test]
fn damaged_records_are_data_loss() {
    let whole = bytes("records");
    for damage in [3, 9, 14, 20, 40] {
        let mut damaged = whole.clone();
        damaged[damage] ^= 1;
        let error = RecordReader::new(&damaged[..], "damaged").collect::<Result<Vec<_>>>().unwrap_err();
        assert_eq!(error.code, Code::DataLoss, "byte {damage}");
        assert!(error.message.starts_with("corrupted record at "), "{error}");
    }
    for length in [5, 14, 18, 30, whole.len() - 1] {
        let error = RecordReader::new(&whole[..length], "cut").collect::<Result<Vec<_>>>().unwrap_err();
        assert_eq!(error.code, Code::DataLoss, "{length} bytes");
        assert!(error.message.starts_with("truncated record at "), "{error}");
    }
}

#[test]
fn events_tell_steps_and_values() {
    let events = EventReader::open(fixture("events.out.tfevents")).unwrap().collect::<Result<Vec<_>>>().unwrap();
    assert!(matches!(&events[0].what, EventWhat::Version(version) if version == "brain.Event:2"));
    let mut losses = Vec::new();
    for event in &events {
        let EventWhat::Summary(values) = &event.what else { continue };
        let [(tag, SummaryValue::Scalar(value))] = &values[..] else { panic!("{values:?}") };
        losses.push((event.step, tag.as_str(), *value));
    }
    assert_eq!(losses, [(0, "loss", 1.0), (1, "loss", 0.5), (2, "loss", 0.25)]);
}

#[test]
fn saved_models_tell_their_signatures() {
    let model = SavedModel::open(fixture("saved_model")).unwrap();
    assert_eq!(model.meta_graphs.len(), 1);
    let graph = &model.meta_graphs[0];
    assert_eq!(graph.tags, ["serve"]);
    assert!(graph.sizes.0 > 4 && !graph.graph.is_empty());
    assert!(graph.collections.iter().any(|(name, count)| name == "variables" && *count == 4));
    let signature = graph.signatures.iter().find(|signature| signature.name == "serving_default").unwrap();
    let x = &signature.inputs[0];
    assert_eq!((x.name.as_str(), x.tensor.as_str(), x.dtype), ("x", "x:0", DType::F32));
    assert_eq!(x.shape.to_string(), "[?,2]");
    assert_eq!(signature.outputs[0].tensor, "y:0");
}

#[test]
fn damaged_tables_never_panic() {
    let whole = bytes("model.index");
    assert!(Table::new(whole.clone().into()).unwrap().entries().unwrap().len() == 5);
    for place in 0..whole.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[place] ^= change;
            // Padding of the footer may change; whatever else does is found out.
            let _ = Table::new(damaged.into()).and_then(|table| table.entries());
        }
        assert!(Table::new(whole[..place].to_vec().into()).is_err(), "{place} bytes");
    }
}
