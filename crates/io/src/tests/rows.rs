//! Rows of files in several formats. What is written is compared with what was to be written.

use crate::example::{Example, SequenceExample, Values};
use crate::rows::{Cell, Format, Row, RowFile, Schema, Type, Typed};
use crate::{Compression, FileSystems, RecordReader};
use status::Code;

fn file(systems: &FileSystems, path: &str) -> RowFile {
    RowFile::named(systems, path).unwrap()
}

fn rows(file: &RowFile) -> Vec<Row> {
    file.rows().unwrap().collect::<status::Result<_>>().unwrap()
}

/// Converts a file to the format that the name of the other says.
fn convert(systems: &FileSystems, from: &str, to: &str) {
    let input = file(systems, from);
    let read = rows(&input);
    let schema = Schema::guess(&read);
    let mut writer = file(systems, to).writer(&schema).unwrap();
    read.into_iter().for_each(|row| writer.write(row).unwrap());
    writer.close().unwrap();
}

const TABLE: &str =
    "name,age,score,tags\n\"Ann, the first\",31,0.5,\"[1,2]\"\nBob,,2,[]\n\"multi\nline\",-7,1e-3,[3]\n";

#[test]
fn types_are_guessed_from_all_values() {
    let systems = FileSystems::local();
    systems.write("ram://rows/guess.csv", TABLE.as_bytes()).unwrap();
    let schema = Schema::guess(&rows(&file(&systems, "ram://rows/guess.csv")));
    let found: Vec<_> = schema.columns.iter().map(|c| (c.name.as_str(), c.ty, c.list, c.optional)).collect();
    let expected = [
        ("name", Type::Text, false, false),
        ("age", Type::Int, false, true),
        ("score", Type::Float, false, false),
        ("tags", Type::Int, true, false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn rows_survive_a_way_through_all_formats() {
    let systems = FileSystems::local();
    systems.write("ram://rows/a.csv", TABLE.as_bytes()).unwrap();
    convert(&systems, "ram://rows/a.csv", "ram://rows/b.jsonl.gz");
    convert(&systems, "ram://rows/b.jsonl.gz", "ram://rows/c.tfrecord.zz");
    #[cfg(feature = "parquet")]
    {
        convert(&systems, "ram://rows/c.tfrecord.zz", "ram://rows/d.parquet");
        convert(&systems, "ram://rows/d.parquet", "ram://rows/c.tfrecord.zz");
    }
    let mut reader = RecordReader::open_on(&systems, "ram://rows/c.tfrecord.zz", Compression::Zlib).unwrap();
    let mut next = || Example::decode(&reader.read().unwrap().unwrap()).unwrap();
    let text = |text: &'static str| Values::Bytes(vec![text.into()]);
    let first = Example::new().with("name", text("Ann, the first")).with("age", Values::Ints(vec![31]));
    assert_eq!(next(), first.with("score", Values::Floats(vec![0.5])).with("tags", Values::Ints(vec![1, 2])));
    let second = Example::new().with("name", text("Bob")).with("score", Values::Floats(vec![2.0]));
    assert_eq!(next(), second.with("tags", Values::Ints(vec![])));
    assert_eq!(next().features["score"], Values::Floats(vec![1e-3]));
}

#[test]
fn bytes_that_are_no_text_are_base64_in_json_and_an_error_in_csv() {
    let systems = FileSystems::local();
    systems.write("ram://rows/raw.jsonl", b"{\"x\": {\"b64\": \"/wCA\"}}\n").unwrap();
    let input = file(&systems, "ram://rows/raw.jsonl");
    let read = rows(&input);
    assert_eq!(read, [vec![("x".to_string(), Cell::Bytes(b"\xff\x00\x80"[..].into()))]]);
    let schema = Schema::guess(&read);
    convert(&systems, "ram://rows/raw.jsonl", "ram://rows/again.jsonl");
    let again = systems.read("ram://rows/again.jsonl").unwrap();
    assert_eq!(&again[..], b"{\"x\":{\"b64\":\"/wCA\"}}\n");
    let mut csv = file(&systems, "ram://rows/raw.csv").writer(&schema).unwrap();
    assert!(csv.write(read[0].clone()).unwrap_err().message.contains("is not UTF-8 text"));
}

#[test]
fn a_value_that_does_not_fit_the_schema_is_named() {
    let schema = Schema::guess(&[vec![("age".to_string(), Cell::Untyped("31".to_string()))]]);
    let error = schema.convert(vec![("age".to_string(), Cell::Untyped("old".to_string()))]).unwrap_err();
    assert!(error.message.starts_with("column 'age' has the value 'old', which is not of type int;"), "{error}");
    let error = schema.convert(vec![("agee".to_string(), Cell::Int(1))]).unwrap_err();
    assert!(error.message.starts_with("column 'agee' does not occur in the first rows"), "{error}");
    let mut schema = schema;
    schema.set("age=text").unwrap();
    let text = schema.convert(vec![("age".to_string(), Cell::Untyped("old".to_string()))]).unwrap();
    assert_eq!(text, [Some(Typed::Bytes(vec!["old".into()]))]);
    assert_eq!(schema.set("size=int").unwrap_err().message, "there is no column 'size'; the columns are age");
}

#[test]
fn damaged_files_are_errors_with_their_place() {
    let systems = FileSystems::local();
    systems.write("ram://rows/bad.jsonl", b"{\"x\": 1}\n[1]\n").unwrap();
    let error = file(&systems, "ram://rows/bad.jsonl").rows().unwrap().find_map(Result::err).unwrap();
    assert_eq!(error.message, "ram://rows/bad.jsonl: row 2 (line 2, offset 9): expected an object, got a list");
    systems.write("ram://rows/bad.csv", b"a,b\n1,2\n3\n").unwrap();
    let error = file(&systems, "ram://rows/bad.csv").rows().unwrap().find_map(Result::err).unwrap();
    assert_eq!(
        error.message,
        "ram://rows/bad.csv: row 2 (line 3, offset 8): found 1 fields, but the first line names 2 columns"
    );
    systems.write("ram://rows/bad.tfrecord", b"certainly no record").unwrap();
    let error = file(&systems, "ram://rows/bad.tfrecord").rows().unwrap().find_map(Result::err).unwrap();
    assert_eq!(error.code, Code::DataLoss);
    assert!(error.message.starts_with("ram://rows/bad.tfrecord: row 1 (offset 0): corrupted record at 0"), "{error}");
}

#[test]
fn names_say_format_and_compression() {
    let of = Format::of_file;
    assert_eq!(of("s3://b/x.csv.gz").unwrap(), (Format::Csv, Compression::Gzip));
    assert_eq!(of("/a/train.tfrecord-00001-of-00008").unwrap(), (Format::TfRecord, Compression::None));
    let gzip = (Format::TfRecord, Compression::Gzip);
    assert_eq!(of("train.tfrecord.gz-00000-of-00008").unwrap(), gzip);
    assert_eq!(of("train.tfrecord-00000-of-00008.gz").unwrap(), gzip);
    assert_eq!(of("train.csv-10000-of-20000").unwrap(), (Format::Csv, Compression::None));
    assert_eq!(of("table-01-of-12.csv").unwrap(), (Format::Csv, Compression::None));
    let message = of("/a/train").unwrap_err().message;
    assert!(message.starts_with("the name of /a/train does not say its format"), "{message}");
}

#[test]
fn messages_that_are_no_examples_are_errors() {
    for bytes in [&b"\xff\xff\xff"[..], b"\x0a\x05\x0a", b"\x0a\x04\x0a\x02\x12\xff"] {
        let bytes = bytes::Bytes::from_static(bytes);
        assert_eq!(Example::decode(&bytes).unwrap_err().code, Code::InvalidArgument);
        assert_eq!(SequenceExample::decode(&bytes).unwrap_err().code, Code::InvalidArgument);
    }
}
