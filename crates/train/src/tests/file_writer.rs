//! Summaries of a graph, and the event files they go to.

use super::graph;
use crate::{FileWriter, FileWriterOptions};
use graph::{AttrValue, Graph};
use io::event::{Event, EventWhat, SummaryData};
use io::{EventReader, FileSystems};
use layers::{ScopeOps, summary};
use session::{RunMetadata, RunOptions, Session, feeds};
use status::Code;
use tensor::{DType, PartialShape, Tensor};

fn create(systems: &FileSystems) -> FileWriter {
    FileWriter::create(systems, "ram://logs/run", FileWriterOptions::default()).unwrap()
}

/// All events of a file but the first, which says its version.
fn events(systems: &FileSystems, path: &str) -> Vec<Event> {
    EventReader::open(systems, path).unwrap().skip(1).map(|event| event.unwrap()).collect()
}

#[test]
fn nodes_and_tags_have_tensorflows_names() {
    let graph = graph();
    let (root, train) = (graph.root(), graph.root().named("train"));
    let x = root.placeholder(DType::F32, &[2, 2]);
    summary::scalar("loss", &train.constant(1.0f32));
    summary::scalar("loss", &train.constant(1.0f32));
    summary::histogram("/a b:c", &x);
    summary::family("fam").image("im", &x, 1);
    summary::audio("au", &x, 100.0, 3);
    summary::text("te", &root.constant("a"));
    let merged = summary::merge_all(&graph).unwrap();
    let tag = |name: &str| match graph::Node::find(&root, name).unwrap().attr("value").unwrap() {
        AttrValue::Tensor(value) => value.decode().unwrap().to_string_scalar().unwrap(),
        other => panic!("{name}: {other:?}"),
    };
    for (node, tags, wanted) in [
        ("train/loss", "tags", "train/loss"),
        ("train/loss_1", "tags", "train/loss_1"),
        ("a_b_c", "tag", "a_b_c"),
        ("fam/im", "tag", "fam/fam/im"),
        ("au", "tag", "au"),
        ("te", "tag", "te"),
    ] {
        assert!(graph::Node::find(&root, node).is_some(), "{node}");
        assert_eq!(tag(&format!("{node}/{tags}")), wanted);
    }
    assert_eq!(merged.node().name(), "Merge/MergeSummary");
    assert_eq!(merged.node().all_inputs().len(), 6);
    assert!(summary::merge_all(&Graph::with_ops(ops::registry())).is_none());
}

#[test]
fn what_is_added_can_be_read() {
    let (graph, systems) = (graph(), FileSystems::local());
    let scope = graph.root().on("/job:localhost/task:0/cpu:0");
    let x = scope.op("Placeholder").named("x").attr("dtype", DType::F32).attr("shape", PartialShape::scalar()).output();
    summary::scalar("value", &x);
    summary::text("note", &scope.constant("hello"));
    let merged = summary::merge_all(&graph).unwrap();
    let writer = create(&systems);
    writer.add_graph(&graph).unwrap();
    let session = Session::local(&graph);
    for step in 0..3 {
        let options = RunOptions { trace: true, ..RunOptions::default() };
        let fed = feeds! { &x => step as f32 };
        let (report, metadata): (Tensor, RunMetadata) = session.run_with_options(&merged, fed, options).unwrap();
        writer.add_summary(report.to_string_scalar().unwrap(), step).unwrap();
        writer.add_run_metadata(&metadata, &format!("step {step}"), step).unwrap();
    }
    let error = writer.add_run_metadata(&RunMetadata::default(), "step 1", 9).unwrap_err();
    assert_eq!(error.message, "The provided tag was already used for this event type");
    writer.flush().unwrap();
    let found = events(&systems, writer.path());
    assert_eq!(found.len(), 2 + 3 * 2);
    match &found[0].what {
        EventWhat::Graph(bytes) => {
            let def = graph::wire::read_graph(bytes.clone()).unwrap();
            let node = def.nodes.iter().find(|node| node.name == "x").unwrap();
            assert_eq!(node.device, "/job:localhost/task:0/device:CPU:0");
            assert!(node.attrs.contains_key("_output_shapes"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(&found[1].what, EventWhat::MetaGraph(_)));
    for (step, event) in found[2..].iter().step_by(2).enumerate() {
        let EventWhat::Summary(values) = &event.what else { panic!("{:?}", event.what) };
        assert_eq!((event.step, values[0].tag.as_str()), (step as i64, "value"));
        assert!(matches!(values[0].data, SummaryData::Scalar(number) if number == step as f32));
        // How to show a tag is said once.
        assert_eq!(values[1].metadata.is_some(), step == 0);
    }
    assert!(matches!(&found[3].what, EventWhat::RunMetadata(tag, bytes) if tag == "step 0" && !bytes.is_empty()));
    writer.close().unwrap();
}

#[test]
fn a_closed_writer_refuses() {
    let systems = FileSystems::local();
    let writer = create(&systems);
    writer.add_summary(Vec::new(), 1).unwrap();
    writer.close().unwrap();
    writer.close().unwrap();
    assert_eq!(writer.add_summary(Vec::new(), 2).unwrap_err().code, Code::FailedPrecondition);
    assert_eq!(writer.flush().unwrap_err().code, Code::FailedPrecondition);
    assert_eq!(events(&systems, writer.path()).len(), 1);
}

#[test]
fn what_is_no_summary_is_refused() {
    let writer = create(&FileSystems::local());
    assert_eq!(writer.add_summary(&b"no summary"[..], 1).unwrap_err().code, Code::InvalidArgument);
    let error = FileWriter::create(&FileSystems::local(), "gopher://logs", FileWriterOptions::default());
    assert_eq!(error.err().unwrap().code, Code::Unimplemented);
}

#[test]
fn a_dropped_writer_has_written_everything() {
    let systems = FileSystems::local();
    let writer = create(&systems);
    let path = writer.path().to_string();
    for step in 0..100 {
        writer.add_summary(Vec::new(), step).unwrap();
    }
    drop(writer);
    assert_eq!(events(&systems, &path).len(), 100);
}
