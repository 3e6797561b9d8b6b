//! Event files, in both directions.

use super::{bytes, fixture, holding};
use crate::event::{Histogram, SessionLog, SessionStatus, SummaryData, SummaryValue, read_summary, write_summary};
use crate::{Event, EventReader, EventWhat, EventWriter, FileSystems, RecordReader};
use status::Result;

fn read(systems: &FileSystems, path: &str) -> Result<Vec<Event>> {
    EventReader::open(systems, path)?.collect()
}

#[test]
fn events_tell_steps_and_values() {
    let events = read(&FileSystems::local(), &fixture("events.out.tfevents")).unwrap();
    assert!(matches!(&events[0].what, EventWhat::Version(version) if version == "brain.Event:2"));
    assert_eq!(events[0].writer.as_deref(), Some("tensorflow.core.util.events_writer"));
    let mut losses = Vec::new();
    for event in &events[1..4] {
        let EventWhat::Summary(values) = &event.what else { panic!("{event:?}") };
        let [SummaryValue { tag, data: SummaryData::Scalar(value), .. }] = &values[..] else { panic!("{values:?}") };
        losses.push((event.step, tag.as_str(), *value));
    }
    assert_eq!(losses, [(0, "loss", 1.0), (1, "loss", 0.5), (2, "loss", 0.25)]);
    let EventWhat::Session(log) = &events[4].what else { panic!("{:?}", events[4]) };
    let saved = SessionLog {
        status: SessionStatus::Checkpoint,
        checkpoint_path: "/tmp/model-3".to_string(),
        message: "saved".to_string(),
    };
    assert_eq!(*log, saved);
    assert!(matches!(&events[5].what, EventWhat::RunMetadata(tag, _) if tag == "step 3"));
    assert!(matches!(&events[6].what, EventWhat::Graph(graph) if !graph.is_empty()));
    assert!(matches!(&events[7].what, EventWhat::MetaGraph(graph) if !graph.is_empty()));
}

#[test]
fn summaries_hold_all_kinds() {
    let events = read(&FileSystems::local(), &fixture("events.out.tfevents")).unwrap();
    let EventWhat::Summary(values) = &events[8].what else { panic!("{:?}", events[8]) };
    let [histogram, image, tensor, audio] = &values[..] else { panic!("{values:?}") };
    let SummaryData::Histogram(Histogram { min, max, num, sum, sum_squares, .. }) = &histogram.data else { panic!() };
    assert_eq!((*min, *max, *num, *sum, *sum_squares), (1.0, 2.0, 3.0, 5.0, 9.0));
    let SummaryData::Image(image) = &image.data else { panic!() };
    assert_eq!((image.height, image.width, image.colorspace), (2, 3, 1));
    assert_eq!(&image.encoded[1..4], b"PNG");
    let SummaryData::Tensor(values) = &tensor.data else { panic!() };
    assert_eq!(values.values::<i32>().unwrap(), [1, 2]);
    let SummaryData::Audio(audio) = &audio.data else { panic!() };
    assert_eq!((audio.sample_rate, audio.length_frames, audio.content_type.as_str()), (8000.0, 8, "audio/wav"));
}

/// Written again, what TensorFlow wrote is the same.
#[test]
fn events_are_written_as_tensorflow_writes_them() {
    let systems = FileSystems::local();
    let path = fixture("events.out.tfevents");
    let events = read(&systems, &path).unwrap();
    let first = events[0].wall_time;
    let mut writer = EventWriter::create(&systems, "ram://logs/run", first + 0.75, "host", ".v2").unwrap();
    assert_eq!(writer.path(), format!("ram://logs/run/events.out.tfevents.{first:010}.host.v2"));
    // The version is there before anything else happens.
    assert_eq!(read(&systems, writer.path()).unwrap().len(), 1);
    for event in &events[1..] {
        writer.write(event).unwrap();
    }
    let ours = writer.path().to_string();
    writer.close().unwrap();
    let records = |path: &str| RecordReader::open_on(&systems, path, Default::default()).unwrap();
    let (theirs, ours): (Vec<_>, Vec<_>) = (records(&path).collect(), records(&ours).collect());
    assert_eq!(theirs.len(), ours.len());
    // A tensor summary gives its elements as content; all other bytes are the same.
    theirs.iter().zip(&ours).take(8).for_each(|(theirs, ours)| assert_eq!(theirs, ours));
}

#[test]
fn summaries_become_messages() {
    let value = SummaryValue { tag: "x".to_string(), data: SummaryData::Scalar(2.5), ..Default::default() };
    // tag (field 1 of value 1) and simple_value (field 2).
    let message = write_summary(&[value]).unwrap();
    assert_eq!(&message[..], b"\x0a\x08\x0a\x01x\x15\x00\x00\x20\x40");
    let [SummaryValue { tag, data: SummaryData::Scalar(number), .. }] = &read_summary(message).unwrap()[..] else {
        panic!()
    };
    assert_eq!((tag.as_str(), *number), ("x", 2.5));
    assert!(read_summary(b"\xff\xff"[..].into()).is_err());
}

#[test]
fn a_file_that_grows_is_followed() {
    let systems = FileSystems::local();
    let mut writer = EventWriter::create(&systems, "ram://logs", 1.0, "h", "").unwrap();
    let mut reader = EventReader::open(&systems, writer.path()).unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    let event = |step| Event { step, what: EventWhat::Log(20, "line".to_string()), ..Event::default() };
    writer.write(&event(7)).unwrap();
    writer.flush().unwrap();
    let more = EventReader::open_at(&systems, writer.path(), reader.offset()).unwrap();
    assert_eq!(more.map(|event| event.unwrap().step).collect::<Vec<_>>(), [7]);
}

#[test]
fn damaged_events_never_panic() {
    let whole = bytes("events.out.tfevents");
    let count = read(&holding(&whole), "ram://file").unwrap().len();
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x11;
        assert!(read(&holding(&damaged), "ram://file").is_err(), "byte {place}");
        assert!(read(&holding(&whole[..place]), "ram://file").map_or(0, |events| events.len()) < count);
    }
}
