//! Record files, plain and compressed.

use super::{bytes, fixture, holding};
use crate::{Compression, FileSystems, RecordReader, RecordWriter};
use bytes::Bytes;
use status::{Code, Result};

const ALL: [(&str, Compression); 4] = [
    ("records", Compression::None),
    ("recordszlib", Compression::Zlib),
    ("recordsgzip", Compression::Gzip),
    ("recordssnappy", Compression::Snappy),
];

fn read(systems: &FileSystems, path: &str, compression: Compression) -> (Vec<usize>, Result<()>) {
    let mut lengths = Vec::new();
    let mut reader = RecordReader::open_on(systems, path, compression).unwrap();
    loop {
        match reader.read() {
            Ok(Some(record)) => lengths.push(record.len()),
            Ok(None) => return (lengths, Ok(())),
            Err(error) => return (lengths, Err(error)),
        }
    }
}

#[test]
fn records_come_in_order() {
    for (name, compression) in ALL {
        let reader = RecordReader::open_on(&FileSystems::local(), fixture(name), compression).unwrap();
        let records = reader.collect::<Result<Vec<Bytes>>>().unwrap();
        let lengths: Vec<usize> = records.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [0, 3, 5120], "{name}");
        assert_eq!(&records[1][..], b"one");
        assert_eq!(records[2][..], (0..=255).collect::<Vec<u8>>().repeat(20));
    }
}

#[test]
fn records_are_written_as_tensorflow_writes_them() {
    for (name, compression) in ALL {
        let systems = FileSystems::local();
        let mut writer = RecordWriter::create_on(&systems, "ram://file", compression).unwrap();
        for record in [&b""[..], b"one", &(0..=255).collect::<Vec<u8>>().repeat(20)] {
            writer.write(record).unwrap();
        }
        assert_eq!(writer.offset(), 5171);
        writer.close().unwrap();
        assert_eq!(read(&systems, "ram://file", compression), (vec![0, 3, 5120], Ok(())));
        if compression == Compression::None {
            assert_eq!(systems.read("ram://file").unwrap(), bytes(name));
        }
    }
}

#[test]
fn reading_goes_on_at_an_offset() {
    for (name, compression) in ALL {
        let systems = FileSystems::local();
        let mut reader = RecordReader::open_at(&systems, &fixture(name), compression, 16).unwrap();
        assert_eq!(&reader.read().unwrap().unwrap()[..], b"one");
        assert_eq!(reader.offset(), 35);
    }
}

/// Lengths and errors as `tf_record_iterator` of TensorFlow 2.21 has them.
#[test]
fn damage_is_named_as_tensorflow_names_it() {
    let whole = bytes("records");
    let cuts: [(usize, &[usize], &str); 8] = [
        (0, &[], ""),
        (11, &[], ""),
        (12, &[], "truncated record at 0' failed with Read less bytes than requested"),
        (18, &[0], ""),
        (30, &[0], "truncated record at 16' failed with Read less bytes than requested"),
        (40, &[0, 3], ""),
        (5167, &[0, 3], "truncated record at 35' failed with Read less bytes than requested"),
        (5170, &[0, 3], "truncated record at 35' failed with Read less bytes than requested"),
    ];
    for (length, records, message) in cuts {
        check(&whole[..length], Compression::None, records, message);
    }
    let flips: [(usize, &[usize], &str); 6] = [
        (0, &[], "corrupted record at 0 (Is this even a TFRecord file?)"),
        (9, &[], "corrupted record at 0 (Is this even a TFRecord file?)"),
        (12, &[], "corrupted record at 12"),
        (20, &[0], "corrupted record at 16"),
        (40, &[0, 3], "corrupted record at 35"),
        (5170, &[0, 3], "corrupted record at 47"),
    ];
    for (place, records, message) in flips {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        check(&damaged, Compression::None, records, message);
    }
    let header = "inflate() failed with error -3: incorrect header check";
    for (name, compression) in &ALL[1..3] {
        let mut damaged = bytes(name);
        damaged[0] ^= 1;
        check(&damaged, *compression, &[], header);
        check(&bytes(name)[..5], *compression, &[], "");
    }
    snappy_damage();
    check(&bytes("recordszlib")[..14], Compression::Zlib, &[], "truncated record at 0' failed with EOF reached");
    check(&bytes("recordszlib")[..358], Compression::Zlib, &[0, 3, 5120], "");
    check(&bytes("recordsgzip")[..370], Compression::Gzip, &[0, 3, 5120], "");
    check(&[bytes("recordsgzip"), bytes("recordsgzip")].concat(), Compression::Gzip, &[0, 3, 5120, 0, 3, 5120], "");
}

fn snappy_damage() {
    let (whole, snappy) = (bytes("recordssnappy"), Compression::Snappy);
    let short = |bytes: u32| format!("Failed to read {bytes} bytes from file. Possible data corruption.");
    for (place, bit, records, message) in [
        (0, 1, &[][..], &*short(16_777_748)),
        (3, 1, &[], &short(533)),
        (5, 0x41, &[], "Snappy_Uncompress failed."),
        (30, 0x41, &[0], "corrupted record at 28"),
    ] {
        let mut damaged = whole.clone();
        damaged[place] ^= bit;
        check(&damaged, snappy, records, message);
    }
    check(&whole[..3], snappy, &[], "");
    check(&whole[..400], snappy, &[], &short(532));
    check(&[&whole[..], &whole].concat(), snappy, &[0, 3, 5120, 0, 3, 5120], "");
}

fn check(file: &[u8], compression: Compression, records: &[usize], message: &str) {
    let (lengths, end) = read(&holding(file), "ram://file", compression);
    assert_eq!(lengths, records, "{} bytes", file.len());
    match end {
        Ok(()) => assert_eq!(message, "", "{} bytes", file.len()),
        Err(error) => assert_eq!((error.code, error.message.as_str()), (Code::DataLoss, message)),
    }
}

#[test]
fn damage_never_panics() {
    for (name, compression) in ALL {
        let whole = bytes(name);
        for place in 0..whole.len().min(700) {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x41;
            let _ = read(&holding(&damaged), "ram://file", compression);
            let _ = read(&holding(&whole[..place]), "ram://file", compression);
        }
    }
}
