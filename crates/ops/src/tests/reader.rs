//! Readers that take the names of files from a queue.

use super::evaluate::{Evaluation, constant, graph, refusal};
use crate::data_structures::queue::access::{queue_close, queue_enqueue};
use crate::data_structures::queue::fifo_queue;
use crate::data_structures::reader::*;
use graph::{Graph, Output};
use tensor::{DType, PartialShape, Tensor};

fn file(name: &str, contents: &[u8]) -> String {
    let folder = std::env::temp_dir().join(format!("flowgrid-reader-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, contents).unwrap();
    path.to_str().unwrap().to_string()
}

fn names(g: &Graph) -> Output {
    fifo_queue(&g.root(), "names", 10, &[DType::STRING], &[PartialShape::scalar()])
}

fn text(tensor: &Tensor) -> String {
    String::from_utf8(tensor.to_string_scalar().unwrap().to_vec()).unwrap()
}

#[test]
fn lines_come_file_after_file() {
    let g = graph();
    let (queue, reader) = (names(&g), text_line_reader(&g.root(), 1));
    let (one, two) = (file("one", b"head\nfirst\r\nsecond"), file("two", b"head\n\n"));
    let session = Evaluation::new();
    let (key, value) = reader_read(&reader, &queue);
    let (first, second) = (session.next(), session.next());
    let (waiting, behind) = (first.start(key.node()), second.start(key.node()));
    assert!(waiting.waits() && behind.waits());
    for name in [&file("empty", b""), &one, &two] {
        let name = constant(&g, Tensor::string(name.clone()));
        session.next().run(&queue_enqueue(&queue, &[name])).unwrap();
    }
    let line = waiting.tensors().unwrap();
    assert_eq!([text(&line[0]), text(&line[1])], [format!("{one}:2"), "first".to_string()]);
    let line = behind.tensors().unwrap();
    assert_eq!([text(&line[0]), text(&line[1])], [format!("{one}:3"), "second".to_string()]);
    let step = session.next();
    assert_eq!(
        [text(&step.value(&key).unwrap()), text(&step.value(&value).unwrap())],
        [format!("{two}:2"), String::new()]
    );
    session.next().run(&queue_close(&queue, false)).unwrap();
    let end = refusal(session.next().run(key.node()));
    assert!(end.contains("is closed and has insufficient elements (requested 1, current size 0)"), "{end}");
    let count = |op: &str| {
        let output = g.root().op(op).input(&reader).output();
        session.next().value(&output).unwrap().to_scalar::<i64>().unwrap()
    };
    assert_eq!([count("ReaderNumRecordsProducedV2"), count("ReaderNumWorkUnitsCompletedV2")], [3, 3]);
}

#[test]
fn a_waiting_reader_can_be_cancelled() {
    let g = graph();
    let (queue, reader) = (names(&g), g.root().op("IdentityReaderV2").output());
    let session = Evaluation::new();
    let (key, _) = reader_read(&reader, &queue);
    let (first, second, third) = (session.next(), session.next(), session.next());
    let [one, two, three] = [&first, &second, &third].map(|step| step.start(key.node()));
    second.cancel();
    assert_eq!(refusal(two.tensors()), "Dequeue operation was cancelled");
    first.cancel();
    assert_eq!(refusal(one.tensors()), "Dequeue operation was cancelled");
    assert!(three.waits());
    session.next().run(&queue_enqueue(&queue, &[constant(&g, Tensor::string("work"))])).unwrap();
    assert_eq!(text(&three.tensors().unwrap()[1]), "work");
}

#[test]
fn records_have_a_length() {
    let g = graph();
    let queue = names(&g);
    let op = g.root().op("FixedLengthRecordReaderV2").attr("header_bytes", 1).attr("record_bytes", 3);
    let reader = op.attr("footer_bytes", 1).attr("hop_bytes", 2).output();
    let name = file("fixed", b"Habcdefgh");
    let session = Evaluation::new();
    session.next().run(&queue_enqueue(&queue, &[constant(&g, Tensor::string(name.clone()))])).unwrap();
    let up_to = constant(&g, Tensor::scalar(5i64));
    let op = g.root().op("ReaderReadUpToV2").input(&reader).input(&queue).input(&up_to).node();
    let step = session.next();
    let values = step.value(&op.output(1)).unwrap();
    assert_eq!(values.strings().unwrap(), ["abc", "cde", "efg"]);
    assert_eq!(step.value(&op.output(0)).unwrap().strings().unwrap()[2], format!("{name}:2"));
}

#[test]
fn a_state_comes_back() {
    let g = graph();
    let (queue, reader) = (names(&g), g.root().op("IdentityReaderV2").named("r").output());
    let session = Evaluation::new();
    session.next().run(&queue_enqueue(&queue, &[constant(&g, Tensor::string("X"))])).unwrap();
    session.next().run(reader_read(&reader, &queue).0.node()).unwrap();
    let state = session.next().value(&g.root().op("ReaderSerializeStateV2").input(&reader).output()).unwrap();
    assert_eq!(&state.to_string_scalar().unwrap()[..], b"\x08\x01\x10\x01\x18\x01\x22\x01X");
    let restore = |bytes: &'static [u8]| {
        let state = constant(&g, Tensor::string(bytes));
        session.next().run(&g.root().op("ReaderRestoreStateV2").input(&reader).input(&state).node())
    };
    restore(b"\x08\x01\x10\x01\x18\x01\x22\x01X").unwrap();
    let bad = refusal(restore(b"BOGUS"));
    assert!(bad.starts_with("Could not parse state for IdentityReader 'r': BOGUS"), "{bad}");
    let odd = refusal(restore(b"\x08\x02\x10\x01"));
    assert!(odd.starts_with("Inconsistent work started vs. finished when restoring in IdentityReader 'r'"), "{odd}");
}

/// A record of TensorFlow's files; the first letter is right or wrong.
fn record(contents: &[u8], whole: bool) -> Vec<u8> {
    let systems = io::FileSystems::local();
    let mut writer = io::RecordWriter::create_on(&systems, "ram://record", io::Compression::None).unwrap();
    writer.write(contents).unwrap();
    writer.close().unwrap();
    let mut bytes = systems.read("ram://record").unwrap().to_vec();
    bytes[12] ^= u8::from(!whole);
    bytes
}

#[test]
fn a_fault_is_reported_until_it_is_gone_and_loses_no_record() {
    let g = graph();
    let (queue, reader) = (names(&g), tf_record_reader(&g.root()));
    let contents = |whole: bool| [record(b"one", true), record(b"two", whole), record(b"three", true)].concat();
    let name = file("faulty", &contents(false));
    let session = Evaluation::new();
    session.next().run(&queue_enqueue(&queue, &[constant(&g, Tensor::string(name.clone()))])).unwrap();
    session.next().run(&queue_close(&queue, false)).unwrap();
    let up_to = constant(&g, Tensor::scalar(5i64));
    let many = g.root().op("ReaderReadUpToV2").input(&reader).input(&queue).input(&up_to).node();
    let values = |step: Evaluation| Ok(step.value(&many.output(1))?.strings()?.to_vec());
    assert_eq!(values(session.next()).unwrap(), ["one"], "what is before the fault");
    for _ in 0..3 {
        let fault: status::Result<Vec<tensor::Bytes>> = values(session.next());
        let fault = fault.unwrap_err();
        assert_eq!(fault.code, status::Code::DataLoss);
        assert!(fault.message.starts_with("corrupted record at 31"), "{fault}");
    }
    let count = |op: &str| {
        let output = g.root().op(op).input(&reader).output();
        session.next().value(&output).unwrap().to_scalar::<i64>().unwrap()
    };
    assert_eq!([count("ReaderNumRecordsProducedV2"), count("ReaderNumWorkUnitsCompletedV2")], [1, 0]);
    file("faulty", &contents(true));
    let step = session.next();
    assert_eq!(step.value(&many.output(1)).unwrap().strings().unwrap(), ["two", "three"]);
    assert_eq!(step.value(&many.output(0)).unwrap().strings().unwrap()[0], format!("{name}:19"));
    assert_eq!([count("ReaderNumRecordsProducedV2"), count("ReaderNumWorkUnitsCompletedV2")], [3, 1]);
}

#[test]
fn a_whole_file_that_is_missing_is_asked_for_again() {
    let g = graph();
    let (queue, reader) = (names(&g), whole_file_reader(&g.root()));
    let name = file("late", b"");
    std::fs::remove_file(&name).unwrap();
    let session = Evaluation::new();
    session.next().run(&queue_enqueue(&queue, &[constant(&g, Tensor::string(name.clone()))])).unwrap();
    session.next().run(&queue_close(&queue, false)).unwrap();
    let (key, value) = reader_read(&reader, &queue);
    for _ in 0..2 {
        assert_eq!(session.next().run(key.node()).unwrap_err().code, status::Code::NotFound);
    }
    file("late", b"here");
    assert_eq!(text(&session.next().value(&value).unwrap()), "here");
    let end = refusal(session.next().run(key.node()));
    assert!(end.contains("is closed and has insufficient elements"), "{end}");
}
