//! Checkpoints, in both directions.

use super::{Folder, bytes, fixture};
use crate::bundle::{MergeOptions, merge_bundles};
use crate::{Bundle, BundleWriter, FileSystems, TensorSlice};
use bytes::Bytes;
use status::{Code, Result};
use tensor::{DType, Shape, Tensor, f16};

fn open(name: &str) -> Bundle {
    Bundle::open(&FileSystems::local(), &fixture(name)).unwrap()
}

#[test]
fn checkpoints_hold_their_tensors() {
    let bundle = open("model");
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
    let missing = Bundle::open(&FileSystems::local(), "/no/such").err().unwrap();
    assert_eq!((missing.code, missing.message.as_str()), (Code::NotFound, "/no/such.index; No such file or directory"));
}

#[test]
fn partitioned_variables_are_put_together() {
    let bundle = open("sharded/model-3");
    assert_eq!(bundle.shards(), 2);
    assert_eq!(bundle.entry("parts").unwrap().slices.len(), 3);
    let parts = bundle.read("parts").unwrap();
    assert_eq!(parts.values::<f32>().unwrap(), [0., 0., 0., 0., 0., 0., 3., 3., 3., 3., 5., 5., 5., 5.]);
    let slice = |text: &str| bundle.read_slice("parts", &TensorSlice::parse(text).unwrap());
    assert_eq!(slice("2,4:1,1").unwrap().values::<f32>().unwrap(), [0., 3., 3., 5.]);
    assert_eq!(slice("3,2:-").unwrap().values::<f32>().unwrap(), [3., 3., 3., 3.]);
    assert_eq!(bundle.read("whole").unwrap().values::<i32>().unwrap(), [1, 2, 3]);
    let one = bundle.read_slice("whole", &TensorSlice::parse("1,1").unwrap()).unwrap();
    assert_eq!(one.values::<i32>().unwrap(), [2]);
    assert!(slice("6,2:-").is_err() && slice("0,1").is_err());
}

#[test]
fn checkpoints_are_written_as_tensorflow_writes_them() {
    let systems = FileSystems::local();
    let mut writer = BundleWriter::create(&systems, "ram://out/model").unwrap();
    let theirs = open("model");
    // TensorFlow wrote them in the order of their names.
    for name in theirs.entries().keys() {
        writer.add(name, &theirs.read(name).unwrap()).unwrap();
    }
    assert_eq!(writer.add("count", &Tensor::scalar(1i64)).unwrap_err().message, "Adding duplicate key: count");
    assert!(!systems.exists("ram://out/model.index").unwrap());
    writer.finish().unwrap();
    assert_eq!(systems.read("ram://out/model.data-00000-of-00001").unwrap(), bytes("model.data-00000-of-00001"));
    assert_eq!(systems.read("ram://out/model.index").unwrap(), bytes("model.index"));
    assert_eq!(systems.list("ram://out").unwrap(), ["model.data-00000-of-00001", "model.index"]);
}

#[test]
fn slices_are_written_as_tensorflow_writes_them() {
    let systems = FileSystems::local();
    let (shape, slice) = (Shape::new(&[4, 2]), TensorSlice::parse("0,1:-").unwrap());
    let mut writer = BundleWriter::create(&systems, "ram://x/part-0").unwrap();
    let row = Tensor::from_slice([1, 2], &[1f32, 2.]).unwrap();
    writer.add_slice("v", &shape, &slice, &row).unwrap();
    assert!(writer.add_slice("v", &shape, &slice, &row).is_err());
    writer.add("a", &Tensor::vector(&[5, 6])).unwrap();
    let two = TensorSlice::parse("0,2:-").unwrap();
    assert_eq!(writer.add_slice("v", &shape, &two, &row).unwrap_err().code, Code::InvalidArgument);
    drop(writer);
    assert!(systems.list("ram://x").unwrap().is_empty());
    let mut writer = BundleWriter::create(&systems, "ram://x/part-0").unwrap();
    writer.add_slice("v", &shape, &slice, &row).unwrap();
    writer.add("a", &Tensor::vector(&[5, 6])).unwrap();
    writer.finish().unwrap();
    assert_eq!(systems.read("ram://x/part-0.index").unwrap(), bytes("unmerged/part-0.index"));
}

#[test]
fn checkpoints_of_several_tasks_become_one() {
    let (systems, folder) = (FileSystems::local(), Folder::new());
    for file in ["part-0.index", "part-0.data-00000-of-00001", "part-1.index", "part-1.data-00000-of-00001"] {
        systems.create_dirs(&folder.join("temp")).unwrap();
        systems.copy(&fixture(&format!("unmerged/{file}")), &folder.join(&format!("temp/{file}")), true).unwrap();
    }
    let parts = [folder.join("temp/part-0"), folder.join("temp/part-1")];
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let options = MergeOptions { delete_old_dirs: true, ..MergeOptions::default() };
    let missing = [parts[0], "/no/such"];
    let error = merge_bundles(&systems, &missing, &folder.join("model"), options).unwrap_err();
    assert_eq!(
        error.message,
        "allow_missing_files was set to false and /no/such did not exist.NOT_FOUND: /no/such; No such file or directory"
    );
    merge_bundles(&systems, &parts, &folder.join("model"), options).unwrap();
    let files = ["model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"];
    assert_eq!(systems.list(&folder.0).unwrap(), files);
    let merged = Bundle::open(&systems, &folder.join("model")).unwrap();
    assert_eq!(merged.read("v").unwrap().values::<f32>().unwrap(), [1., 2., 0., 1., 2., 3., 4., 5.]);
    assert_eq!(merged.read("a").unwrap().values::<i32>().unwrap(), [5, 6]);
    assert_eq!(merged.read("b").unwrap().strings().unwrap(), ["x"]);
}

#[test]
fn every_kind_of_tensor_comes_back() {
    let systems = FileSystems::local();
    let mut writer = BundleWriter::create(&systems, "ram://all").unwrap();
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_plain() || **dtype == DType::STRING) {
        writer.add(&dtype.to_string(), &Tensor::zeros_of(dtype, [2, 3]).unwrap()).unwrap();
        writer.add(&format!("no {dtype}"), &Tensor::zeros_of(dtype, [2, 0]).unwrap()).unwrap();
    }
    let large = Tensor::vector(&(0..3_000_000).collect::<Vec<i32>>());
    writer.add("large", &large).unwrap();
    writer.finish().unwrap();
    let bundle = Bundle::open(&systems, "ram://all").unwrap();
    for (name, entry) in bundle.entries() {
        let tensor = bundle.read(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((tensor.dtype(), tensor.shape()), (entry.dtype, &entry.shape));
    }
    assert_eq!(bundle.read("large").unwrap().values::<i32>().unwrap(), large.values::<i32>().unwrap());
}

/// All tensors of a checkpoint in `ram://`.
fn read_all(systems: &FileSystems, prefix: &str) -> Result<Vec<Tensor>> {
    let bundle = Bundle::open(systems, prefix)?;
    bundle.entries().keys().map(|name| bundle.read(name)).collect()
}

#[test]
fn damaged_checkpoints_are_found_out() {
    for prefix in ["model", "sharded/model-3"] {
        let shards = open(prefix).shards();
        let mut files = vec![format!("{prefix}.index")];
        files.extend((0..shards).map(|shard| format!("{prefix}.data-{shard:05}-of-{shards:05}")));
        let systems = FileSystems::local();
        let place = |file: &str| format!("ram://{file}");
        files.iter().for_each(|file| systems.write(&place(file), &bytes(file)).unwrap());
        for file in &files {
            let whole = bytes(file);
            for at in 0..whole.len() {
                systems.write(&place(file), &whole[..at]).unwrap();
                let error = read_all(&systems, &place(prefix)).unwrap_err();
                assert_eq!(error.code, Code::DataLoss, "{at} bytes of {file}: {error}");
                assert!(error.message.contains(prefix), "{error}");
                let mut damaged = whole.clone();
                damaged[at] ^= 0x10;
                systems.write(&place(file), &damaged).unwrap();
                let read = read_all(&systems, &place(prefix));
                assert!(read.is_err() || file.ends_with("index"), "byte {at} of {file}");
            }
            systems.write(&place(file), &whole).unwrap();
        }
        read_all(&systems, &place(prefix)).unwrap();
    }
}

/// An index may say what it wants: nothing is allocated that the files do not hold.
#[test]
fn lies_cost_no_memory() {
    let systems = FileSystems::local();
    let mut writer = BundleWriter::create(&systems, "ram://lie/model").unwrap();
    let shape = Shape::new(&[1 << 40, 2]);
    let part = |text: &str| TensorSlice::parse(text).unwrap();
    let row = Tensor::from_slice([1, 2], &[1f32, 2.]).unwrap();
    writer.add_slice("v", &shape, &part("0,1:-"), &row).unwrap();
    writer.add_slice("w", &Shape::new(&[2, 2]), &part("0,1:-"), &row).unwrap();
    writer.finish().unwrap();
    let bundle = Bundle::open(&systems, "ram://lie/model").unwrap();
    let error = bundle.read("v").unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_eq!(error.message, "Does not have sufficient slices for partitioned tensor v to restore in slice_spec: -:-");
    assert_eq!(bundle.read_slice("v", &part("0,1:1,1")).unwrap().values::<f32>().unwrap(), [2.]);
    assert!(bundle.read("w").is_err());
    // A tensor of 8 TiB in a file of 16 bytes.
    let entry = |size: u64| {
        let (dtype, slices) = (DType::F32, Vec::new());
        crate::bundle::Entry { dtype, shape: shape.clone(), shard: 0, offset: 0, size, crc: 0, slices }
    };
    for size in [16, 8 << 40, u64::MAX >> 1] {
        let entries = [(b"big".to_vec(), entry(size))].into();
        crate::bundle::write_index(&systems, "ram://lie/model", 1, &entries).unwrap();
        let error = Bundle::open(&systems, "ram://lie/model").unwrap().read("big").unwrap_err();
        assert_eq!(error.code, Code::DataLoss, "{error}");
    }
}
