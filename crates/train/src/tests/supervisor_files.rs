//! What a supervisor leaves in its folder: the graph, events, checkpoints.

use super::hook_events::{complete, events};
use super::{Folder, counting, graph, nodes};
use crate::supervisor::SupervisorBuilder;
use crate::{MonitoredTrainingSession, Saver, Supervisor, create_global_step, latest_checkpoint};
use graph::wire::read_graph;
use graph::{AttrValue, Graph};
use io::event::{SessionStatus, SummaryData};
use io::{Event, EventWhat};
use layers::{Kind, ScopeOps, TensorOps, Variable, summary};
use session::Session;
use std::time::Duration;
use tensor::{DType, PartialShape};

/// Nothing that is done this often is done twice.
const ONCE: Option<Duration> = Some(Duration::from_secs(86_400));

/// An event in a few words.
fn line(event: &Event) -> String {
    let what = match &event.what {
        EventWhat::Graph(_) => "graph".to_string(),
        EventWhat::MetaGraph(_) => "meta graph".to_string(),
        EventWhat::Session(log) => match log.status {
            SessionStatus::Start => "start".to_string(),
            SessionStatus::Stop => "stop".to_string(),
            SessionStatus::Checkpoint => format!("checkpoint {}", log.checkpoint_path.rsplit('/').next().unwrap()),
            other => panic!("{other:?}"),
        },
        EventWhat::Summary(values) => values.iter().map(|value| value.tag.clone()).collect::<Vec<_>>().join(", "),
        other => panic!("{other:?}"),
    };
    format!("{what} at {}", event.step)
}

/// Runs a supervisor until its event file has this number of events. Returns them with the event of the stop.
fn written(folder: &Folder, supervisor: &Supervisor, count: usize) -> Vec<Event> {
    let work = |_: &std::sync::Arc<Session>| {
        let file = supervisor.summary_writer().unwrap();
        while complete(folder) < count && !supervisor.should_stop() {
            std::thread::yield_now();
            file.flush()?;
        }
        Ok(())
    };
    supervisor.managed_session("", work).unwrap();
    events(folder)
}

#[test]
fn events_tell_what_happened() {
    let folder = Folder::new();
    let graph = graph();
    let steps = Variable::builder(&graph.root(), "steps").dtype(DType::I64).trainable(false).build();
    summary::scalar("now", &steps.value().cast(DType::F32));
    let supervisor = Supervisor::builder(&graph).logdir(&folder.0).global_step(steps.value());
    let supervisor = supervisor.save_model(ONCE).save_summaries(ONCE).build().unwrap();
    let mut lines: Vec<String> = written(&folder, &supervisor, 6).iter().map(line).collect();
    assert_eq!(lines[..3], ["graph at 0", "meta graph at 0", "start at 0"]);
    assert_eq!(lines.last().unwrap(), "stop at 0");
    lines[3..6].sort();
    assert_eq!(lines[3..6], ["checkpoint model.ckpt at 0", "now at 0", "steps/sec at 0"]);
    assert_eq!(lines.len(), 7);
}

/// Every look at this counter moves it on: two looks are two steps.
#[test]
fn a_summary_is_of_the_step_it_is_written_at() {
    let folder = Folder::new();
    let graph = graph();
    let count = Variable::builder(&graph.root(), "count").dtype(DType::I64).kind(Kind::Reference).build();
    let next = graph.root().op("AssignAdd").input(count.handle()).input(&graph.root().constant(1i64)).output();
    summary::scalar("now", &next.cast(DType::F32));
    let supervisor = Supervisor::builder(&graph).logdir(&folder.0).global_step(&next);
    let supervisor = supervisor.save_model(None).save_summaries(ONCE).build().unwrap();
    let mut found = 0;
    for event in written(&folder, &supervisor, 5) {
        if let EventWhat::Summary(values) = &event.what
            && values[0].tag == "now"
        {
            let now = &values[0].data;
            assert!(matches!(now, SummaryData::Scalar(now) if *now == event.step as f32), "{now:?} at {}", event.step);
            found += 1;
        }
    }
    assert_eq!(found, 1);
}

/// The shapes that `graph.pbtxt` tells of a node.
fn shapes(folder: &Folder, node: &str) -> Vec<PartialShape> {
    let text = std::fs::read_to_string(folder.join("graph.pbtxt")).unwrap();
    let def = read_graph(io::text::text_to_binary("tensorflow.GraphDef", &text).unwrap()).unwrap();
    let node = def.nodes.iter().find(|def| def.name == node).unwrap();
    match node.attrs.get("_output_shapes") {
        Some(AttrValue::List(list)) => list.shapes.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_graph_is_written_with_shapes() {
    let model = || {
        let graph = graph();
        create_global_step(&graph).unwrap();
        graph.root().placeholder(DType::F32, &[-1, 3]);
        graph
    };
    let wanted = [PartialShape::new(&[-1, 3])];
    let (folder, graph) = (Folder::new(), model());
    let supervisor = Supervisor::builder(&graph).logdir(&folder.0).build().unwrap();
    supervisor.managed_session("", |_| Ok(())).unwrap();
    assert_eq!(shapes(&folder, "Placeholder"), wanted);
    let (folder, graph) = (Folder::new(), model());
    MonitoredTrainingSession::new(&graph).checkpoint_dir(&folder.0).start().unwrap().close().unwrap();
    assert_eq!(shapes(&folder, "Placeholder"), wanted);
}

#[test]
fn the_threads_of_a_chief_may_be_left_out() {
    let folder = Folder::new();
    let (graph, _, _) = counting();
    let supervisor = Supervisor::builder(&graph).logdir(&folder.0).save_model(ONCE).standard_services(false);
    let supervisor = supervisor.build().unwrap();
    supervisor.managed_session("", |_| Ok(())).unwrap();
    let lines: Vec<String> = events(&folder).iter().map(line).collect();
    assert_eq!(lines, ["graph at 0", "meta graph at 0", "stop at 0"]);
    assert_eq!(latest_checkpoint(&folder.0).unwrap(), None);
    let later = |session: &std::sync::Arc<Session>| {
        supervisor.start_standard_services(session)?;
        while latest_checkpoint(&folder.0)?.is_none() && !supervisor.should_stop() {
            std::thread::yield_now();
        }
        Ok(())
    };
    supervisor.managed_session("", later).unwrap();
    assert!(events(&folder).iter().any(|event| line(event) == "start at 0"));
}

#[test]
fn summaries_and_checkpoints_may_be_left_out() {
    let made = |change: fn(SupervisorBuilder) -> SupervisorBuilder| -> (Graph, Supervisor) {
        let (graph, _, square) = counting();
        summary::scalar("squared", &square);
        let supervisor = change(Supervisor::builder(&graph)).build().unwrap();
        (graph, supervisor)
    };
    let has = |graph: &Graph, part: &str| nodes(graph, "").iter().any(|node| node.starts_with(part));
    let (graph, _) = made(|supervisor| supervisor);
    assert!(has(&graph, "MergeSummary ") && has(&graph, "SaveV2 "));
    let (graph, _) = made(|supervisor| supervisor.summary_op(None).saver(None));
    assert!(!has(&graph, "MergeSummary ") && !has(&graph, "SaveV2 "));
}

#[test]
fn without_a_saver_nothing_is_restored() {
    let folder = Folder::new();
    let (graph, next, _) = counting();
    let saver = Saver::new(&graph).unwrap();
    let session = Session::local(&graph);
    session.execute("global_step/Assign").unwrap();
    session.execute(&next).unwrap();
    saver.save(&session, folder.join("model.ckpt"), 1).unwrap();
    let begins_at = |change: fn(SupervisorBuilder) -> SupervisorBuilder| {
        let (graph, _, _) = counting();
        let supervisor = change(Supervisor::builder(&graph).logdir(&folder.0)).build().unwrap();
        let mut first = None;
        let read = |session: &std::sync::Arc<Session>| {
            first = Some(session.run::<i64>("global_step/Read/ReadVariableOp:0")?);
            Ok(())
        };
        supervisor.managed_session("", read).unwrap();
        first
    };
    assert_eq!(begins_at(|supervisor| supervisor), Some(1));
    assert_eq!(begins_at(|supervisor| supervisor.saver(None)), Some(0));
}

#[test]
fn local_variables_may_wait_for_more() {
    let (graph, _, _) = counting();
    let never = graph.root().constant(["never"]);
    let supervisor = Supervisor::builder(&graph).ready_for_local_init_op(&never).build().unwrap();
    let error = supervisor.managed_session("", |_| Ok(())).unwrap_err();
    assert!(error.message.starts_with("Init operations did not make model ready for local_init."), "{error}");
    assert!(error.message.ends_with("Variables not initialized: never"), "{error}");
}
