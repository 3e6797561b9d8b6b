//! Files of rows: detection of their formats, damage, exact values, and how they are replaced.

use super::Folder;
use crate::rows::{Cell, Format, RowFile, Schema};
use crate::{Compression, FileSystems, RecordReader};
use status::Code;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NAMES: [&str; 5] = ["a.tfrecord", "a.tfrecord.gz", "a.tfrecord.zz", "a.csv.gz", "a.jsonl"];

/// Writes a text under a name of the same format, and converts it.
fn converted(systems: &FileSystems, from: (&str, &str), to: &str) {
    systems.write(from.0, from.1.as_bytes()).unwrap();
    copy(systems, from.0, to);
}

fn copy(systems: &FileSystems, from: &str, to: &str) {
    let input = RowFile::open(systems, from).unwrap();
    let rows: Vec<_> = input.rows().unwrap().collect::<status::Result<_>>().unwrap();
    let mut schema = Schema::guess(&rows);
    schema.add_unknown(input.columns().unwrap());
    let mut writer = RowFile::named(systems, to).unwrap().writer(&schema).unwrap();
    rows.into_iter().for_each(|row| writer.write(row).unwrap());
    writer.close().unwrap();
}

fn text(systems: &FileSystems, name: &str) -> String {
    String::from_utf8(systems.read(name).unwrap().to_vec()).unwrap()
}

/// The first error of reading a file with this content.
fn error(name: &str, content: &[u8]) -> status::Error {
    let systems = FileSystems::local();
    let name = format!("ram://d/{name}");
    systems.write(&name, content).unwrap();
    let rows = RowFile::named(&systems, &name).unwrap().rows();
    rows.map_or_else(Some, |mut rows| rows.find_map(Result::err)).expect("an error")
}

#[test]
fn the_first_bytes_say_what_the_name_does_not() {
    let systems = FileSystems::local();
    let source = ("ram://d/a.csv", "x,y\n1,a\n2,b\n");
    for (name, format, compression) in [
        ("a.tfrecord", Format::TfRecord, Compression::None),
        ("a.tfrecord.gz", Format::TfRecord, Compression::Gzip),
        ("a.tfrecord.zz", Format::TfRecord, Compression::Zlib),
        ("a.csv.gz", Format::Csv, Compression::Gzip),
        ("b.csv", Format::Csv, Compression::None),
        ("a.jsonl.zz", Format::JsonLines, Compression::Zlib),
        ("a.jsonl", Format::JsonLines, Compression::None),
        #[cfg(feature = "parquet")]
        ("a.parquet", Format::Parquet, Compression::None),
    ] {
        converted(&systems, source, &format!("ram://d/{name}"));
        systems.write("ram://d/train-00000-of-00002", &systems.read(&format!("ram://d/{name}")).unwrap()).unwrap();
        let file = RowFile::open(&systems, "ram://d/train-00000-of-00002").unwrap();
        assert_eq!((file.format, file.compression), (format, compression), "{name}");
        assert_eq!(file.rows().unwrap().count(), 2, "{name}");
    }
}

#[test]
fn compressed_content_under_a_plain_name_is_read() {
    let systems = FileSystems::local();
    converted(&systems, ("ram://d/a.csv", "x,y\n1,a\n"), "ram://d/a.tfrecord.gz");
    systems.write("ram://d/t.tfrecord-00000-of-00001", &systems.read("ram://d/a.tfrecord.gz").unwrap()).unwrap();
    assert_eq!(RowFile::open(&systems, "ram://d/t.tfrecord-00000-of-00001").unwrap().rows().unwrap().count(), 1);
}

#[test]
fn texts_are_not_taken_for_other_formats() {
    let systems = FileSystems::local();
    let of = |content: &[u8]| {
        systems.write("ram://d/x", content).unwrap();
        Format::of_content(&systems, "ram://d/x").unwrap()
    };
    // The first two bytes are also those of zlib data.
    assert_eq!(of(b"x^2,y\n1,2\n"), (Some(Format::Csv), Compression::None));
    assert_eq!(of(b""), (Some(Format::TfRecord), Compression::None));
    assert_eq!(of(b"one word"), (None, Compression::None));
    assert_eq!(of(b"\x00\x01\x02,"), (None, Compression::None));
    systems.write("ram://d/x", b"one word").unwrap();
    let message = RowFile::open(&systems, "ram://d/x").err().unwrap().message;
    assert!(message.starts_with("neither the name nor the first bytes of ram://d/x say its format"), "{message}");
}

#[test]
fn a_compressed_file_that_is_cut_anywhere_is_truncated() {
    let systems = FileSystems::local();
    let rows: String = (0..40).map(|i: u64| format!("{},{:x}\n", i, i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    systems.write("ram://d/cut.csv", format!("x,y\n{rows}").as_bytes()).unwrap();
    for name in ["ram://d/cut.tfrecord.gz", "ram://d/cut.tfrecord.zz"] {
        copy(&systems, "ram://d/cut.csv", name);
        let whole = systems.read(name).unwrap();
        for length in 0..=whole.len() {
            systems.write(name, &whole[..length]).unwrap();
            let mut reader = RowFile::named(&systems, name).unwrap().records(&Arc::default()).unwrap();
            let end = reader.by_ref().find_map(Result::err);
            let offset = reader.offset();
            match end {
                None => assert_eq!(length, whole.len(), "{name}"),
                Some(error) => {
                    assert_eq!(error.code, Code::DataLoss);
                    let place = format!("truncated record at {offset}: the compressed data ends too early");
                    assert_eq!(error.message, place, "{name} of {length} bytes");
                }
            }
        }
    }
    // A dataset takes it for a file that is still being written, as in TensorFlow.
    let whole = systems.read("ram://d/cut.tfrecord.gz").unwrap();
    systems.write("ram://d/cut.tfrecord.gz", &whole[..whole.len() - 1]).unwrap();
    let reader = RecordReader::open_at(&systems, "ram://d/cut.tfrecord.gz", Compression::Gzip, 0).unwrap();
    assert_eq!(reader.map(Result::unwrap).count(), 40);
}

#[test]
fn truncated_texts_are_no_shorter_texts() {
    let systems = FileSystems::local();
    for name in ["ram://d/cut.csv.gz", "ram://d/cut.jsonl.gz"] {
        converted(&systems, ("ram://d/cut.csv", "x\n1\n2\n3\n"), name);
        let whole = systems.read(name).unwrap();
        systems.write(name, &whole[..whole.len() - 4]).unwrap();
        let error = RowFile::named(&systems, name).unwrap().rows().unwrap().find_map(Result::err).unwrap();
        assert_eq!(error.code, Code::DataLoss, "{name}");
        assert!(error.message.ends_with("the compressed data ends too early"), "{error}");
    }
}

#[test]
fn the_bytes_that_are_read_are_counted() {
    let systems = FileSystems::local();
    for name in NAMES {
        let name = format!("ram://d/{name}");
        converted(&systems, ("ram://d/count.csv", "x,y\n1,a\n2,b\n"), &name);
        let file = RowFile::named(&systems, &name).unwrap();
        let read = Arc::<AtomicU64>::default();
        assert_eq!(file.rows_counted(&read).unwrap().count(), 2);
        assert_eq!(read.load(Ordering::Relaxed), file.size().unwrap(), "{name}");
        if file.format == Format::TfRecord {
            assert_eq!(file.records(&read).unwrap().count(), 2);
            assert_eq!(read.load(Ordering::Relaxed), 2 * file.size().unwrap(), "{name}");
        }
    }
}

#[test]
fn a_file_is_replaced_when_the_new_one_is_complete() {
    let folder = Folder::new();
    let systems = FileSystems::local();
    let row = || vec![("x".to_string(), Cell::Int(1))];
    let schema = Schema::guess(&[row()]);
    for name in NAMES {
        let path = folder.join(name);
        systems.write(&path, b"old").unwrap();
        let mut writer = RowFile::named(&systems, &path).unwrap().writer(&schema).unwrap();
        writer.write(row()).unwrap();
        assert_eq!(&systems.read(&path).unwrap()[..], b"old", "{name}");
        drop(writer);
        assert_eq!(systems.list(&folder.0).unwrap(), [name]);
        let mut writer = RowFile::named(&systems, &path).unwrap().writer(&schema).unwrap();
        writer.write(row()).unwrap();
        writer.close().unwrap();
        assert_eq!(systems.list(&folder.0).unwrap(), [name]);
        assert_eq!(RowFile::open(&systems, &path).unwrap().rows().unwrap().count(), 1, "{name}");
        systems.delete(&path).unwrap();
    }
    let missing = folder.join("none/a.csv");
    let error = RowFile::named(&systems, &missing).unwrap().writer(&schema).err().unwrap();
    assert!(error.message.starts_with(&format!("{missing}; ")), "{error}");
}

#[test]
fn devices_are_not_replaced() {
    let systems = FileSystems::local();
    assert!(systems.of("/dev/null").unwrap().is_device("/dev/null"));
    let schema = Schema::guess(&[vec![("x".to_string(), Cell::Int(1))]]);
    let null = RowFile { path: "/dev/null".to_string(), ..RowFile::named(&systems, "a.csv").unwrap() };
    null.writer(&schema).unwrap().close().unwrap();
    assert!(systems.of("/dev/null").unwrap().is_device("/dev/null"));
}

#[test]
fn one_file_has_several_names() {
    let folder = Folder::new();
    let systems = FileSystems::local();
    let [path, link, hard, other] = ["a", "link", "hard", "b"].map(|name| folder.join(name));
    systems.write(&path, b"").unwrap();
    systems.write(&other, b"").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    std::fs::hard_link(&path, &hard).unwrap();
    let dotted = folder.join("./a");
    for name in [&path, &link, &hard, &dotted, &format!("file://{path}")] {
        assert!(systems.is_same_file(&path, name).unwrap(), "{name}");
    }
    assert!(!systems.is_same_file(&path, &other).unwrap());
    assert!(!systems.is_same_file(&path, &folder.join("none")).unwrap());
    assert!(systems.is_same_file("ram://d/x/a", "ram://d/x//a").unwrap());
    assert!(!systems.is_same_file("ram://d/x/a", &path).unwrap());
}

#[test]
fn malformed_csv_is_named_with_its_place() {
    for (content, message) in [
        (&b"a,b\n1,2\n1,2,3\n"[..], "row 2 (line 3, offset 8): found 3 fields, but the first line names 2 columns"),
        (
            b"a,b\n1,2\n\n1,\"x\ny\"\n1,\xff\n",
            "row 3 (line 6, offset 17): the field of column 'b' is not UTF-8 from byte 0 on",
        ),
        (b"", "line 1: the file is empty; expected the names of the columns"),
        (b"a,b,a\n", "line 1: two columns have the name 'a'"),
        (b"a,\xff\n1,2\n", "line 1: the name of column 1 is not UTF-8 from byte 0 on"),
    ] {
        assert_eq!(error("bad.csv", content).message, format!("ram://d/bad.csv: {message}"));
    }
}

#[test]
fn malformed_json_is_named_with_its_place() {
    for (content, message) in [
        (&b"{\"a\":1}\n\n{\"a\":}\n"[..], "row 2 (line 3, offset 9): expected value at column 6"),
        (b"{\"a\":\"\xff\"}\n", "row 1 (line 1, offset 0): the line is not UTF-8 from byte 6 on"),
        (
            b"{\"a\":{\"b\":1}}\n",
            "row 1 (line 1, offset 0): 'a': objects within a row cannot be stored, except {\"b64\": \"…\"} for bytes",
        ),
        (
            b"{\"a\":[[1]]}\n",
            "row 1 (line 1, offset 0): 'a': lists of lists cannot be stored; write their elements one after another",
        ),
        (
            b"{\"a\":[1,null]}\n",
            "row 1 (line 1, offset 0): 'a': null in a list cannot be stored; leave it out or write another value",
        ),
        (b"{\"a\":1", "row 1 (line 1, offset 0): EOF while parsing an object at column 6"),
    ] {
        assert_eq!(error("bad.jsonl", content).message, format!("ram://d/bad.jsonl: {message}"));
    }
    let deep = [b"{\"a\":".to_vec(), b"[".repeat(100_000)].concat();
    assert!(error("bad.jsonl", &deep).message.contains("recursion limit exceeded"));
}

#[test]
fn marks_blank_lines_and_large_fields_are_read() {
    let systems = FileSystems::local();
    let large = "x".repeat(3 << 20);
    let csv = format!("\u{feff}a,b\n\n1,{large}\n");
    let json = format!("\u{feff}{{\"a\":1,\"b\":\"{large}\"}}\n \n");
    for (name, content) in [("ram://d/large.csv", csv), ("ram://d/large.jsonl", json)] {
        converted(&systems, (name, &content), "ram://d/large.tfrecord");
        copy(&systems, "ram://d/large.tfrecord", "ram://d/again.csv");
        assert_eq!(text(&systems, "ram://d/again.csv"), format!("a,b\n1,{large}\n"), "{name}");
    }
}

#[test]
fn files_without_rows_keep_their_columns() {
    let systems = FileSystems::local();
    converted(&systems, ("ram://d/head.csv", "a,b\n"), "ram://d/again.csv");
    assert_eq!(text(&systems, "ram://d/again.csv"), "a,b\n");
    converted(&systems, ("ram://d/head.csv", "a,b\n"), "ram://d/head.tfrecord");
    assert_eq!(text(&systems, "ram://d/head.tfrecord"), "");
    let file = RowFile::named(&systems, "ram://d/none.csv").unwrap();
    let error = file.writer(&Schema::default()).err().unwrap();
    assert!(error.message.contains("no rows that name columns"), "{error}");
    #[cfg(feature = "parquet")]
    {
        copy(&systems, "ram://d/head.csv", "ram://d/head.parquet");
        copy(&systems, "ram://d/head.parquet", "ram://d/again.csv");
        assert_eq!(text(&systems, "ram://d/again.csv"), "a,b\n");
    }
}

/// The greatest and least integers, doubles that differ in their last bits, and missing values.
const EXACT: &str = "big,double,name\n\
    9223372036854775807,3.141592653589793,a\n\
    -9223372036854775808,5e-324,\n\
    ,1.7976931348623157e308,\"b\nc\"\n\
    9007199254740993,,d\n\
    0,1.0,e\n";

#[test]
fn texts_and_parquet_keep_every_digit() {
    let systems = FileSystems::local();
    converted(&systems, ("ram://d/exact.csv", EXACT), "ram://d/exact.jsonl.gz");
    #[cfg(feature = "parquet")]
    {
        copy(&systems, "ram://d/exact.jsonl.gz", "ram://d/exact.parquet");
        copy(&systems, "ram://d/exact.parquet", "ram://d/exact.jsonl.gz");
    }
    copy(&systems, "ram://d/exact.jsonl.gz", "ram://d/again.csv");
    assert_eq!(text(&systems, "ram://d/again.csv"), EXACT);
}

/// The greatest, the least, and neighbours of 32 bits.
const SINGLES: &str =
    "big,single\n9223372036854775807,0.1\n-9223372036854775808,3.4028235e38\n,1e-45\n1,16777216.0\n2,0.10000001\n";

#[test]
fn records_keep_integers_and_floats_of_32_bits() {
    let systems = FileSystems::local();
    converted(&systems, ("ram://d/single.csv", SINGLES), "ram://d/single.tfrecord");
    let records = systems.read("ram://d/single.tfrecord").unwrap();
    let ways = [
        "ram://d/way.jsonl",
        "ram://d/way.csv",
        #[cfg(feature = "parquet")]
        "ram://d/way.parquet",
    ];
    for way in ways {
        copy(&systems, "ram://d/single.tfrecord", way);
        copy(&systems, way, "ram://d/again.tfrecord");
        assert_eq!(systems.read("ram://d/again.tfrecord").unwrap(), records, "{way}");
    }
    copy(&systems, "ram://d/single.tfrecord", "ram://d/again.csv");
    assert_eq!(text(&systems, "ram://d/again.csv"), SINGLES);
}

#[test]
fn numbers_that_do_not_fit_are_not_rounded() {
    let systems = FileSystems::local();
    converted(&systems, ("ram://d/id.csv", "id\n12345678901234567890\n1\n"), "ram://d/id.jsonl");
    assert_eq!(text(&systems, "ram://d/id.jsonl"), "{\"id\":\"12345678901234567890\"}\n{\"id\":\"1\"}\n");
    converted(&systems, ("ram://d/id.jsonl", "{\"id\":12345678901234567890}\n"), "ram://d/id.csv");
    assert_eq!(text(&systems, "ram://d/id.csv"), "id\n12345678901234567890\n");
    let row = vec![("x".to_string(), Cell::Float(1e300))];
    let mut writer = RowFile::named(&systems, "ram://d/x.tfrecord").unwrap().writer(&Schema::guess([&row])).unwrap();
    let error = writer.write(row).unwrap_err();
    assert_eq!(error.message, "column 'x' has the value 1e300, which is too large for the floats of an Example");
}

#[test]
fn a_text_that_looks_like_a_list_makes_no_lists() {
    let systems = FileSystems::local();
    converted(&systems, ("ram://d/list.csv", "a\n[1]\nword\n"), "ram://d/list.jsonl");
    assert_eq!(text(&systems, "ram://d/list.jsonl"), "{\"a\":\"[1]\"}\n{\"a\":\"word\"}\n");
}

#[test]
fn types_that_change_are_text_or_an_error_with_the_column() {
    let systems = FileSystems::local();
    converted(&systems, ("ram://d/mixed.jsonl", "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":1.5}\n"), "ram://d/mixed.csv");
    assert_eq!(text(&systems, "ram://d/mixed.csv"), "a\n1\nx\n1.5\n");
    let schema = Schema::guess(&[vec![("a".to_string(), Cell::Int(1))]]);
    let error = schema.convert(vec![("a".to_string(), Cell::Bytes("y".repeat(1000).into()))]).unwrap_err();
    assert!(error.message.starts_with("column 'a' has the value 'yyy"), "{error}");
    assert!(error.message.len() < 400, "{error}");
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use super::{copy, error, systems_with};
    use crate::FileSystems;
    use crate::rows::RowFile;
    use parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType, Int32Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use std::sync::Arc;

    /// A file of one row whose columns are required, and hold 1 or bytes.
    fn file(schema: &str) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            if let parquet::column::writer::ColumnWriter::FixedLenByteArrayColumnWriter(_) = column.untyped() {
                let bytes = FixedLenByteArray::from(vec![1; 12]);
                column.typed::<FixedLenByteArrayType>().write_batch(&[bytes], None, None).unwrap();
            } else {
                column.typed::<Int32Type>().write_batch(&[1], None, None).unwrap();
            }
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.into_inner().unwrap()
    }

    #[test]
    fn columns_that_an_example_cannot_hold_are_named() {
        for (schema, message) in [
            (
                "message m { required int32 x; required group point { required int32 a; } }",
                "row 1: column 'point': structures of several values cannot be stored; make each value a column",
            ),
            (
                "message m { required int32 t (TIME_MILLIS); }",
                "row 1: column 't': times of a day cannot be stored; write them as text or integers",
            ),
            (
                "message m { required fixed_len_byte_array(12) i (INTERVAL); }",
                "row 1: the Parquet file is damaged, or has a column of a type that cannot be read",
            ),
        ] {
            assert_eq!(error("a.parquet", &file(schema)).message, format!("ram://d/a.parquet: {message}"));
        }
        assert!(error("a.parquet", b"PAR1").message.starts_with("ram://d/a.parquet: "));
    }

    #[test]
    fn damage_never_panics() {
        let systems = systems_with("ram://d/a.csv", "x,y,z\n1,a,\"[1,2]\"\n2,b,[]\n");
        copy(&systems, "ram://d/a.csv", "ram://d/a.parquet");
        let whole = systems.read("ram://d/a.parquet").unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[place] ^= 0x41;
            for content in [&damaged[..], &whole[..place]] {
                systems.write("ram://d/a.parquet", content).unwrap();
                read(&systems);
            }
        }
    }

    fn read(systems: &FileSystems) {
        if let Ok(rows) = RowFile::named(systems, "ram://d/a.parquet").unwrap().rows() {
            let _ = rows.take(100).find_map(Result::err);
        }
    }

    #[test]
    fn text_that_turns_into_bytes_is_an_error() {
        let rows =
            [b"text".to_vec(), vec![0xff]].map(|bytes| vec![("x".to_string(), crate::rows::Cell::Bytes(bytes.into()))]);
        let systems = FileSystems::local();
        let schema = crate::rows::Schema::guess(&rows[..1]);
        let mut writer = RowFile::named(&systems, "ram://d/t.parquet").unwrap().writer(&schema).unwrap();
        let [text, bytes] = rows;
        for _ in 0..65_536 {
            writer.write(text.clone()).unwrap();
        }
        writer.write(bytes).unwrap();
        let error = writer.close().unwrap_err();
        assert_eq!(error.message, "column 'x' was text up to row 65537, whose value is not UTF-8");
    }

    #[test]
    fn compressed_names_are_refused() {
        let systems = systems_with("ram://d/a.parquet.gz", "");
        let error = RowFile::named(&systems, "ram://d/a.parquet.gz").unwrap().rows().err().unwrap();
        assert!(error.message.contains("Parquet files are not compressed as a whole"), "{error}");
    }
}

#[cfg(feature = "parquet")]
fn systems_with(name: &str, content: &str) -> FileSystems {
    let systems = FileSystems::local();
    systems.write(name, content.as_bytes()).unwrap();
    systems
}
