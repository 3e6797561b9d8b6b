//! Files that real TensorFlow writes while the test runs, and files of ours that it reads. Only where FLOWGRID_PYTHON
//! names a Python that has it; `cargo xtask test` sets it.

use super::{Folder, bytes, fixture};
use crate::bundle::{MergeOptions, merge_bundles};
use crate::event::{Histogram, SessionLog, SessionStatus, SummaryData, SummaryMetadata, SummaryValue};
use crate::saved_model::variables_prefix;
use crate::state::STATE_FILE;
use crate::{
    Bundle, BundleWriter, CheckpointState, Compression, Event, EventWhat, EventWriter, FileSystems, MetaGraph,
    RecordReader, RecordWriter, SavedModel, TensorSlice, TensorSliceReader, TensorSliceWriter,
};
use bytes::Bytes;
use std::process::Command;
use tensor::{Complex32, Complex64, Element, Shape, Tensor, bf16, f16};

/// Runs the script; whether there is a Python to run it.
fn script(what: &str, folder: &str) -> bool {
    let Some(python) = std::env::var_os("FLOWGRID_PYTHON") else { return false };
    let script = format!("{}/../conformance/python/files.py", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(python).args([&script, what, folder]).env("TF_CPP_MIN_LOG_LEVEL", "2").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

#[test]
fn tensorflow_files_are_read() {
    let (systems, folder) = (FileSystems::local(), Folder::new());
    if !script("write", &folder.0) {
        return;
    }
    let bundle = Bundle::open(&systems, &folder.join("many")).unwrap();
    assert_eq!(bundle.entries().len(), 5001);
    let mut writer = BundleWriter::create(&systems, &folder.join("again")).unwrap();
    for number in 0..5000 {
        let name = format!("layer_{number}/weights");
        let tensor = bundle.read(&name).unwrap();
        assert_eq!(tensor.values::<i32>().unwrap(), [number]);
        writer.add(&name, &tensor).unwrap();
    }
    let large = bundle.read("large").unwrap();
    assert!(large.values::<i32>().unwrap().iter().copied().eq(0..3 << 20));
    writer.add("large", &large).unwrap();
    writer.finish().unwrap();
    for file in ["index", "data-00000-of-00001"] {
        let [ours, theirs] =
            ["again", "many"].map(|name| systems.read(&folder.join(&format!("{name}.{file}"))).unwrap());
        assert!(ours == theirs, "{file}");
    }
    first_format_is_read(&systems, &folder);
    let records = RecordReader::open_on(&systems, folder.join("many_records"), Compression::Gzip).unwrap();
    for (number, record) in records.enumerate() {
        assert_eq!(record.unwrap(), vec![number as u8; number]);
    }
}

fn first_format_is_read(systems: &FileSystems, folder: &Folder) {
    let first = TensorSliceReader::open(systems, &folder.join("many_first")).unwrap();
    let mut writer = TensorSliceWriter::new(systems, &folder.join("again_first"));
    for name in first.tensors().keys() {
        writer.add(name, &first.read(name).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let [ours, theirs] = ["again_first", "many_first"].map(|name| systems.read(&folder.join(name)).unwrap());
    assert!(ours == theirs);
}

#[test]
fn our_files_are_read_by_tensorflow() {
    let (systems, folder) = (FileSystems::local(), Folder::new());
    write_model(&systems, &folder.join("model"));
    write_slices(&systems, &folder);
    write_many(&systems, &folder.join("many"));
    write_first_format(&systems, &folder);
    write_records(&systems, &folder);
    write_events(&systems, &folder.join("logs"));
    write_saved(&systems, &folder);
    script("check", &folder.0);
}

fn count<T: Element>(writer: &mut BundleWriter, name: &str, convert: fn(u8) -> T) {
    let values: Vec<T> = (0..6).map(convert).collect();
    writer.add(name, &Tensor::from_slice([2, 3], &values).unwrap()).unwrap();
}

fn write_model(systems: &FileSystems, prefix: &str) {
    let mut writer = BundleWriter::create(systems, prefix).unwrap();
    count(&mut writer, "float32", f32::from);
    count(&mut writer, "float64", f64::from);
    count(&mut writer, "float16", f16::from);
    count(&mut writer, "bfloat16", bf16::from);
    count(&mut writer, "int8", |v| v as i8);
    count(&mut writer, "int16", i16::from);
    count(&mut writer, "int32", i32::from);
    count(&mut writer, "int64", i64::from);
    count(&mut writer, "uint8", |v| v);
    count(&mut writer, "uint16", u16::from);
    count(&mut writer, "uint32", u32::from);
    count(&mut writer, "uint64", u64::from);
    count(&mut writer, "bool", |v| v != 0);
    count(&mut writer, "complex64", |v| Complex32::new(v.into(), 0.0));
    count(&mut writer, "complex128", |v| Complex64::new(v.into(), 0.0));
    let strings = vec![Bytes::new(), Bytes::from_static(b"\x00\xff"), b"long".repeat(1000).into()];
    writer.add("string", &Tensor::from_strings([3], strings).unwrap()).unwrap();
    writer.add("scalar", &Tensor::scalar(7i32)).unwrap();
    writer.add("empty", &Tensor::zeros::<f32>([0, 4]).unwrap()).unwrap();
    writer.finish().unwrap();
}

fn rows(from: usize, count: usize) -> (TensorSlice, Tensor) {
    let values: Vec<f32> = (2 * from..2 * (from + count)).map(|value| value as f32).collect();
    let slice = TensorSlice::parse(&format!("{from},{count}:-")).unwrap();
    (slice, Tensor::from_slice([count, 2], &values).unwrap())
}

fn write_slices(systems: &FileSystems, folder: &Folder) {
    let shape = Shape::new(&[4, 2]);
    let mut all = BundleWriter::create(systems, &folder.join("sliced")).unwrap();
    let parts = ["temp/part-00000-of-00002", "temp/part-00001-of-00002"].map(|name| folder.join(name));
    for (part, (from, length)) in [(0, 1), (1, 3)].into_iter().enumerate() {
        let (slice, tensor) = rows(from, length);
        all.add_slice("v", &shape, &slice, &tensor).unwrap();
        let mut one = BundleWriter::create(systems, &parts[part]).unwrap();
        one.add_slice("v", &shape, &slice, &tensor).unwrap();
        one.add(["a", "b"][part], &Tensor::scalar(part as i64)).unwrap();
        one.finish().unwrap();
    }
    all.finish().unwrap();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    merge_bundles(
        systems,
        &parts,
        &folder.join("merged"),
        MergeOptions { delete_old_dirs: true, ..Default::default() },
    )
    .unwrap();
    assert!(!systems.exists(&folder.join("temp")).unwrap());
}

fn write_many(systems: &FileSystems, prefix: &str) {
    let mut writer = BundleWriter::create(systems, prefix).unwrap();
    for number in 0..5000 {
        writer.add(&format!("layer_{number}/weights"), &Tensor::vector(&[number])).unwrap();
    }
    writer.add("large", &Tensor::vector(&(0..3 << 20).collect::<Vec<i32>>())).unwrap();
    writer.finish().unwrap();
}

fn write_first_format(systems: &FileSystems, folder: &Folder) {
    let mut writer = TensorSliceWriter::new(systems, &folder.join("first"));
    writer.add("float", &Tensor::from_slice([2, 3], &[0f32, 1., 2., 3., 4., 5.]).unwrap()).unwrap();
    writer.add("half", &Tensor::vector(&[f16::from_f32(0.5), f16::from_f32(-1.5)])).unwrap();
    writer.add("string", &Tensor::from_strings([2], vec![Bytes::new(), b"x".repeat(300).into()]).unwrap()).unwrap();
    writer.finish().unwrap();
    for (part, (from, length)) in [(0, 1), (1, 3)].into_iter().enumerate() {
        let mut writer = TensorSliceWriter::new(systems, &folder.join(&format!("first_parts-{part:05}-of-00002")));
        let (slice, tensor) = rows(from, length);
        writer.add_slice("v", &Shape::new(&[4, 2]), &slice, &tensor).unwrap();
        writer.finish().unwrap();
    }
}

fn write_records(systems: &FileSystems, folder: &Folder) {
    let packed = [("zlib", Compression::Zlib), ("gzip", Compression::Gzip), ("snappy", Compression::Snappy)];
    let kinds = [("", Compression::None)].into_iter().chain(packed);
    for (name, compression) in kinds {
        let path = folder.join(&format!("records{name}"));
        let mut writer = RecordWriter::create_on(systems, &path, compression).unwrap();
        for record in [&b""[..], b"one", &(0..=255).collect::<Vec<u8>>().repeat(200)] {
            writer.write(record).unwrap();
            writer.flush().unwrap();
        }
        writer.close().unwrap();
    }
}

fn write_events(systems: &FileSystems, folder: &str) {
    let mut writer = EventWriter::create(systems, folder, 1_700_000_000.5, "host", ".suffix").unwrap();
    let value = |tag: &str, data| SummaryValue { tag: tag.to_string(), data, ..Default::default() };
    let metadata = Some(SummaryMetadata { plugin_name: "scalars".to_string(), ..Default::default() });
    let histogram = Histogram { num: 3.0, bucket_limit: vec![1.0, 2.0], bucket: vec![1.0, 2.0], ..Default::default() };
    let summary = vec![
        value("loss", SummaryData::Scalar(0.25)),
        SummaryValue { metadata, ..value("t", SummaryData::Tensor(Tensor::vector(&[1, 2]))) },
        value("h", SummaryData::Histogram(histogram)),
    ];
    let session =
        SessionLog { status: SessionStatus::Checkpoint, checkpoint_path: "/x".to_string(), message: String::new() };
    // A GraphDef whose versions (field 4) say producer (field 1) 21.
    let graph = Bytes::from_static(b"\x22\x02\x08\x15");
    let all = [
        EventWhat::Summary(summary),
        EventWhat::Session(session),
        EventWhat::Graph(graph),
        EventWhat::RunMetadata("step 1".to_string(), Bytes::new()),
        EventWhat::Log(20, "hello".to_string()),
    ];
    for what in all {
        writer.write(&Event { wall_time: 1.5, step: 3, what, writer: None }).unwrap();
    }
    writer.close().unwrap();
}

fn write_saved(systems: &FileSystems, folder: &Folder) {
    let state = CheckpointState {
        model_checkpoint_path: folder.join("model"),
        all_model_checkpoint_paths: vec![folder.join("sliced"), folder.join("model")],
        all_model_checkpoint_timestamps: vec![1.5, 2.5],
        last_preserved_timestamp: None,
    };
    state.write(systems, &folder.0, STATE_FILE, true).unwrap();
    let export = folder.join("export");
    SavedModel::read(bytes("saved_model/saved_model.pb").into()).unwrap().write(systems, &export).unwrap();
    let theirs = Bundle::open(systems, &fixture("model")).unwrap();
    let mut variables = BundleWriter::create(systems, &variables_prefix(&export)).unwrap();
    for name in theirs.entries().keys() {
        variables.add(name, &theirs.read(name).unwrap()).unwrap();
    }
    variables.finish().unwrap();
    let meta = MetaGraph::open(systems, &fixture("sharded/model-3.meta")).unwrap();
    meta.write(systems, &folder.join("model.meta")).unwrap();
}
