//! Checkpoints of the first format, in both directions.

use super::{bytes, fixture, holding};
use crate::{FileSystems, TensorSlice, TensorSliceReader, TensorSliceWriter};
use status::{Code, Result};
use tensor::{Complex32, Shape, Tensor, bf16, f16};

fn open(name: &str) -> TensorSliceReader {
    TensorSliceReader::open(&FileSystems::local(), &fixture(name)).unwrap()
}

#[test]
fn every_kind_of_tensor_is_read() {
    let reader = open("first_format");
    let read = |name: &str| reader.read(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read("float").values::<f32>().unwrap(), [1.5, -2.0, 3.25]);
    assert_eq!(read("float").shape().dims(), [1, 3]);
    assert_eq!(read("double").values::<f64>().unwrap(), [0.1]);
    assert_eq!(read("int32").values::<i32>().unwrap(), [-1, 2, 1 << 30]);
    assert_eq!(read("uint8").values::<u8>().unwrap(), [0, 255]);
    assert_eq!(read("int16").values::<i16>().unwrap(), [-300]);
    assert_eq!(read("int8").values::<i8>().unwrap(), [-128, 127]);
    assert_eq!(read("complex64").values::<Complex32>().unwrap(), [Complex32::new(1.0, 2.0)]);
    assert_eq!(read("int64").to_scalar::<i64>().unwrap(), -(1 << 40));
    assert_eq!(read("bool").values::<bool>().unwrap(), [true, false]);
    assert_eq!(read("half").values::<f16>().unwrap(), [f16::from_f32(0.5)]);
    assert_eq!(read("empty").shape().dims(), [0, 3]);
    assert_eq!(read("string").strings().unwrap()[2][..], b"\x00\xff"[..]);
}

#[test]
fn files_are_written_as_tensorflow_writes_them() {
    let (systems, theirs) = (FileSystems::local(), open("first_format"));
    let mut writer = TensorSliceWriter::new(&systems, "ram://first");
    for name in theirs.tensors().keys() {
        writer.add(name, &theirs.read(name).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    assert!(systems.read("ram://first").unwrap() == bytes("first_format"));
}

#[test]
fn slices_in_several_files_make_a_tensor() {
    let reader = open("first_format_slices-?????-of-00002");
    assert_eq!(reader.read("v").unwrap().values::<f32>().unwrap(), [1., 2., 0., 1., 2., 3., 4., 5.]);
    let middle = reader.read_slice("v", &TensorSlice::parse("0,2:1,1").unwrap()).unwrap();
    assert_eq!(middle.values::<f32>().unwrap(), [2., 1.]);
    let half = open("first_format_slices-00001-of-00002");
    assert_eq!(half.read("v").unwrap_err().message, "Error copying slice data");
    let systems = FileSystems::local();
    let mut writer = TensorSliceWriter::new(&systems, "ram://slices");
    let row = Tensor::from_slice([1, 2], &[1f32, 2.]).unwrap();
    writer.add_slice("v", &Shape::new(&[4, 2]), &TensorSlice::parse("0,1:-").unwrap(), &row).unwrap();
    writer.finish().unwrap();
    assert!(systems.read("ram://slices").unwrap() == bytes("first_format_slices-00000-of-00002"));
}

#[test]
fn errors_are_those_of_tensorflow() {
    let systems = FileSystems::local();
    let missing = TensorSliceReader::open(&systems, "/no/such").err().unwrap();
    let text = "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for /no/such";
    assert_eq!((missing.code, missing.message.as_str()), (Code::NotFound, text));
    let other = TensorSliceReader::open(&systems, &fixture("records")).err().unwrap();
    assert_eq!(other.code, Code::DataLoss);
    assert!(
        other.message.contains("not an sstable (bad magic number): perhaps your file is in a different file format")
    );
    let error = open("first_format").read("nothing").unwrap_err();
    assert!(error.message.starts_with("Tensor name \"nothing\" not found in checkpoint files "), "{error}");
    let mut writer = TensorSliceWriter::new(&systems, "ram://x");
    let error = writer.add("x", &Tensor::scalar(bf16::ONE)).unwrap_err();
    assert_eq!(error.message, "Tensor slice serialization not implemented for dtype 14");
}

#[test]
fn damage_never_panics() {
    let read = |file: &[u8]| -> Result<()> {
        let reader = TensorSliceReader::open(&holding(file), "ram://file")?;
        reader.tensors().keys().try_for_each(|name| reader.read(name).map(drop))
    };
    let whole = bytes("first_format");
    read(&whole).unwrap();
    for place in 0..whole.len() {
        assert_eq!(read(&whole[..place]).unwrap_err().code, Code::DataLoss, "{place} bytes");
        let mut damaged = whole.clone();
        damaged[place] ^= 0x21;
        let _ = read(&damaged);
    }
}
