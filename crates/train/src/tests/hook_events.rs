//! What hooks write to files: summaries, speed, and traces of steps.

use super::{Folder, counting, graph};
use crate::hooks::{Every, Profiler, StopAtStep, SummarySaver};
use crate::{FileWriter, MonitoredTrainingSession};
use graph::Output;
use io::event::{SessionStatus, SummaryData};
use io::{Event, EventReader, EventWhat, FileSystems};
use layers::{ScopeOps, summary};
use std::sync::Arc;
use std::time::Duration;
use tensor::Bytes;

/// The files of a folder whose names begin like this, in order.
fn files(folder: &Folder, start: &str) -> Vec<String> {
    let all = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path().to_string_lossy().into_owned());
    let mut found: Vec<String> = all.filter(|file| file.starts_with(&folder.join(start))).collect();
    found.sort();
    found
}

/// All events of the only event file in a folder but the first, which says its version.
pub(super) fn events(folder: &Folder) -> Vec<Event> {
    let files = files(folder, "events.out.tfevents.");
    assert_eq!(files.len(), 1, "{files:?}");
    EventReader::open(&FileSystems::local(), &files[0]).unwrap().skip(1).map(|event| event.unwrap()).collect()
}

/// How many events a file has that is still being written.
pub(super) fn complete(folder: &Folder) -> usize {
    let read = |file: &String| EventReader::open(&FileSystems::local(), file).ok();
    let events = files(folder, "events.out.tfevents.").first().and_then(read);
    events.into_iter().flatten().skip(1).map_while(|event| event.ok()).count()
}

/// What steps told about themselves: the tag, the event's step and the message.
fn run_metadata(folder: &Folder) -> Vec<(String, i64, Bytes)> {
    let read = |event: Event| match event.what {
        EventWhat::RunMetadata(tag, message) => (tag, event.step, message),
        other => panic!("{other:?}"),
    };
    events(folder).into_iter().map(read).collect()
}

/// An event in a few words.
fn line(event: &Event) -> String {
    match &event.what {
        EventWhat::Session(log) if log.status == SessionStatus::Start => format!("start at {}", event.step),
        EventWhat::Summary(values) => {
            let values = values.iter().map(|value| match &value.data {
                SummaryData::Scalar(number) => format!("{} = {number}", value.tag),
                other => panic!("{other:?}"),
            });
            format!("{} at {}", values.collect::<Vec<_>>().join(", "), event.step)
        }
        other => panic!("{other:?}"),
    }
}

/// What is in the event file of a job of five steps that saves these summaries so often.
fn saved(every: Every, summaries: impl Fn(&Output) -> Vec<Output>) -> Vec<String> {
    let folder = Folder::new();
    let (graph, next, square) = counting();
    summary::scalar("not_asked_for", &square);
    let writer = Arc::new(FileWriter::new(&folder.0).unwrap());
    let hook = SummarySaver::new(&summaries(&square), every, writer.clone());
    let session = MonitoredTrainingSession::new(&graph).hook(hook).hook(StopAtStep::last_step(5)).start().unwrap();
    session.until_stop(|session| session.run(&next)).unwrap();
    // Though the writer is still open: the hook's end made its events visible.
    let lines = events(&folder).iter().map(line).collect();
    writer.close().unwrap();
    lines
}

#[test]
fn given_summaries_are_written_every_so_many_steps() {
    let two = |square: &Output| vec![summary::scalar("squared", square), summary::scalar("twice", &(square * 2.0))];
    // As TensorFlow's own hook: the first step, then every two; an event for each summary.
    let wanted = [
        "start at 1",
        "squared = 0 at 1",
        "twice = 0 at 1",
        "squared = 4 at 3",
        "twice = 8 at 3",
        "squared = 16 at 5",
        "twice = 32 at 5",
    ];
    assert_eq!(saved(Every::Steps(2), two), wanted);
    let merged = |square: &Output| vec![summary::merge(square.scope(), &two(square))];
    let wanted = ["start at 1", "squared = 0, twice = 0 at 1", "squared = 9, twice = 18 at 4"];
    assert_eq!(saved(Every::Steps(3), merged), wanted);
    assert_eq!(saved(Every::Steps(2), |_| Vec::new()), ["start at 1"]);
}

#[test]
fn given_summaries_are_written_every_so_often() {
    let one = |square: &Output| vec![summary::scalar("squared", square)];
    assert_eq!(saved(Every::Time(Duration::from_secs(3600)), one), ["start at 1", "squared = 0 at 1"]);
    let every_step = [
        "start at 1",
        "squared = 0 at 1",
        "squared = 1 at 2",
        "squared = 4 at 3",
        "squared = 9 at 4",
        "squared = 16 at 5",
    ];
    assert_eq!(saved(Every::Time(Duration::ZERO), one), every_step);
}

#[test]
fn summaries_need_a_step_counter() {
    let folder = Folder::new();
    let graph = graph();
    let one = summary::scalar("one", &graph.root().constant(1f32));
    let hook = SummarySaver::new([&one], Every::Steps(1), Arc::new(FileWriter::new(&folder.0).unwrap()));
    let error = MonitoredTrainingSession::new(&graph).hook(hook).start().err().unwrap();
    assert_eq!(error.message, "Global step should be created to use SummarySaverHook.");
}

#[test]
fn summaries_and_speed_are_written() {
    let folder = Folder::new();
    let (graph, next, square) = counting();
    summary::scalar("squared", &square);
    let session = MonitoredTrainingSession::new(&graph)
        .summary_dir(&folder.0)
        .save_summaries(Some(Every::Steps(2)))
        .log_step_count_steps(Some(2))
        .hook(StopAtStep::last_step(5))
        .start()
        .unwrap();
    session.until_stop(|session| session.run(&next)).unwrap();
    let mut tags = Vec::new();
    for event in events(&folder) {
        if let EventWhat::Summary(values) = event.what {
            tags.extend(values.into_iter().map(|value| format!("{} at {}", value.tag, event.step)));
        }
    }
    // As TensorFlow's own hooks: the first step, then every two.
    tags.sort();
    assert_eq!(tags, ["global_step/sec at 3", "global_step/sec at 5", "squared at 1", "squared at 3", "squared at 5"]);
}

#[test]
fn the_profiler_writes_what_a_step_did() {
    let folder = Folder::new();
    let (graph, next, square) = counting();
    let session = MonitoredTrainingSession::new(&graph)
        .hook(Profiler::new(&folder.0, Every::Steps(2)))
        .hook(StopAtStep::last_step(5))
        .start()
        .unwrap();
    session.until_stop(|session| session.run((&next, &square)).map(|((), _): ((), f32)| ())).unwrap();
    let traced = [next.name(), square.node().name()];
    // As TensorFlow's own hook: not the first step, then every two.
    assert_eq!(files(&folder, "timeline-"), ["timeline-2.json", "timeline-4.json"].map(|file| folder.join(file)));
    for file in files(&folder, "timeline-") {
        let trace: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let nodes: Vec<&str> = events
            .iter()
            .filter(|event| event["ph"] == "X" && event["ts"].is_number() && event["dur"].is_number())
            .filter_map(|event| event["args"]["name"].as_str().or_else(|| event["name"].as_str()))
            .collect();
        for node in &traced {
            assert!(nodes.contains(&node.as_str()), "{node} is not in {nodes:?}");
        }
    }
    let found = run_metadata(&folder);
    assert_eq!(found.iter().map(|(tag, ..)| tag.as_str()).collect::<Vec<_>>(), ["step_2", "step_4"]);
    for (_, step, message) in found {
        assert_eq!(step, 0); // as TensorFlow's own hook has it
        for node in &traced {
            let node = node.as_bytes();
            assert!(message.windows(node.len()).any(|part| part == node), "{node:?} is not in {message:?}");
        }
    }
}

/// Tags of event files are used once; a step counter that went back brings numbers again.
#[test]
fn a_profiled_step_that_is_made_again_is_no_error() {
    let folder = Folder::new();
    let (graph, next, _) = counting();
    let back = crate::get_global_step(&graph).unwrap().assign(&graph.root().constant(1i64));
    let events = Arc::new(FileWriter::new(&folder.0).unwrap());
    let profiler = Profiler::new(&folder.0, Every::Time(Duration::ZERO)).events(events);
    let mut session = MonitoredTrainingSession::new(&graph).hook(profiler).start().unwrap();
    for node in [&next, &next, &back, &next, &next] {
        session.run::<()>(node).unwrap();
    }
    session.close().unwrap();
    let tags: Vec<_> = run_metadata(&folder).into_iter().map(|(tag, ..)| tag).collect();
    assert_eq!(tags, ["step_2", "step_3"]);
    let timelines = ["timeline-1.json", "timeline-2.json", "timeline-3.json"];
    assert_eq!(files(&folder, "timeline-"), timelines.map(|file| folder.join(file)));
}
