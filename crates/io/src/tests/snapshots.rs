//! Saved datasets: files that TensorFlow's `Dataset.range(5, 7).save` wrote are read and written again.

use super::{bytes, fixture};
use crate::snapshot::{ElementReader, ElementWriter, Metadata};
use crate::{Compression, FileSystems};
use tensor::{DType, Tensor};

#[test]
fn metadata_is_read_and_written_as_tensorflow_writes_it() {
    let systems = FileSystems::local();
    let metadata = Metadata::read(&systems, &fixture("snapshot")).unwrap().unwrap();
    assert_eq!((metadata.run.as_str(), metadata.elements), ("13036359739396344139", 2));
    assert_eq!((&metadata.types[..], metadata.is_complete), (&[DType::I64][..], true));
    metadata.write(&systems, "ram://again").unwrap();
    assert_eq!(systems.read("ram://again/snapshot.metadata").unwrap(), bytes("snapshot/snapshot.metadata"));
    assert_eq!(Metadata::read(&systems, "ram://missing").unwrap(), None);
}

#[test]
fn elements_are_read_and_written_as_tensorflow_writes_them() {
    let systems = FileSystems::local();
    let mut reader =
        ElementReader::open(&systems, &fixture("snapshot/00000000.snapshot"), Compression::None, 1).unwrap();
    let mut writer = ElementWriter::append(&systems, "ram://chunk", Compression::None).unwrap();
    let mut numbers = Vec::new();
    while let Some(element) = reader.read().unwrap() {
        writer.write(&element).unwrap();
        numbers.push(element[0].to_scalar::<i64>().unwrap());
    }
    writer.close().unwrap();
    assert_eq!(numbers, [5, 6]);
    assert_eq!(systems.read("ram://chunk").unwrap(), bytes("snapshot/00000000.snapshot"));
}

#[test]
fn incomplete_last_elements_are_not_read() {
    let systems = FileSystems::local();
    for compression in [Compression::None, Compression::Gzip, Compression::Snappy] {
        let mut writer = ElementWriter::append(&systems, "ram://part", compression).unwrap();
        writer.write(&[Tensor::string("a"), Tensor::scalar(1i32), Tensor::string("b")]).unwrap();
        writer.close().unwrap();
        let mut reader = ElementReader::open(&systems, "ram://part", compression, 2).unwrap();
        assert_eq!(reader.read().unwrap().unwrap()[1].to_scalar::<i32>().unwrap(), 1);
        assert!(reader.read().unwrap().is_none());
        systems.delete("ram://part").unwrap();
    }
}
