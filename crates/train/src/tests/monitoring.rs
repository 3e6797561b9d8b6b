//! What a cluster tells about itself, against what was sent on purpose.

use super::{Folder, graph};
use crate::hooks::{self, Every, StopAtStep};
use crate::monitoring::Sample;
use crate::{
    ClusterMetrics, FileWriter, MonitoredTrainingSession, Optimizer, ServerMetrics, create_global_step_in,
    replica_device_setter,
};
use graph::{Graph, Node, Output};
use io::event::SummaryData;
use io::{EventReader, EventWhat, FileSystems};
use layers::collection::global_variables_initializer;
use layers::{Initializer, Queue, ScopeOps, TensorOps, Variable};
use ops::data_structures::queue::fifo_queue;
use ops::data_structures::queue::{queue_dequeue, queue_enqueue};
use optimize::{GradientDescent, MinimizeOptions};
use session::{ClusterSpec, GradientCounts, LocalCluster, Server, ServerOptions, Session, Task, TaskCounts};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tensor::{DType, PartialShape, Tensor};

/// No report before the end.
const FOR_LONG: Every = Every::Time(Duration::from_secs(3600));

/// All scalars of a folder's only event file, by tag: steps and values.
fn scalars(folder: &str) -> BTreeMap<String, Vec<(i64, f32)>> {
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let mut found: BTreeMap<String, Vec<(i64, f32)>> = BTreeMap::new();
    for event in EventReader::open(&FileSystems::local(), &file.to_string_lossy()).unwrap() {
        let event = event.unwrap();
        let EventWhat::Summary(values) = event.what else { continue };
        for value in values {
            let SummaryData::Scalar(number) = value.data else { continue };
            found.entry(value.tag).or_default().push((event.step, number));
        }
    }
    found
}

fn small(options: ServerOptions) -> ServerOptions {
    ServerOptions { inter_op_threads: 2, intra_op_threads: 1, ..options }
}

/// A thousand floats and a queue on the ps; the sum of the floats on the worker.
fn crossing() -> (Graph, Output) {
    let graph = graph();
    let ps = graph.root().on("/job:ps/task:0");
    let first = Initializer::Value(Tensor::from_slice([1000], &[1.0f32; 1000]).unwrap());
    let floats = Variable::builder(&ps, "floats").initializer(first).build();
    let sum = floats.value().seen_from(&graph.root().on("/job:worker/task:0")).sum();
    let queue = fifo_queue(&ps, "numbers", 10, &[DType::F32], &[PartialShape::scalar()]);
    ops::data_structures::queue::queue_size(&queue);
    queue_enqueue(&queue, &[ps.constant(1.0f32)]);
    (graph, sum)
}

#[test]
fn bytes_and_steps_are_those_of_the_steps_between_two_reports() {
    let cluster = LocalCluster::start_with(&[("ps", 1), ("worker", 1)], small).unwrap();
    let folder = Folder::new();
    let (graph, sum) = crossing();
    let events = Arc::new(FileWriter::new(&folder.0).unwrap());
    let mut metrics = ClusterMetrics::new(&graph, &[], events.clone()).unwrap().examples_per_step(32.0);
    let session = Session::connect(&cluster.targets("worker")[0], &graph).unwrap();
    session.execute(&global_variables_initializer(&graph)).unwrap();
    metrics.report(&session, 0).unwrap();
    for _ in 0..5 {
        assert_eq!(session.run::<f32>(&sum).unwrap(), 1000.0);
    }
    for _ in 0..3 {
        session.execute("QueueEnqueueV2").unwrap();
    }
    metrics.report(&session, 5).unwrap();
    events.close().unwrap();
    let found = scalars(&folder.0);
    let grown = |tag: &str| found[tag][1].1 - found[tag][0].1;
    // What the reports read of the ps travels too, and is not counted.
    assert_eq!(grown("cluster/ps/0/bytes_out"), 5.0 * 4000.0);
    assert_eq!(grown("cluster/worker/0/bytes_in"), 5.0 * 4000.0);
    assert_eq!(grown("cluster/ps/0/bytes_in"), 0.0);
    assert_eq!(grown("cluster/worker/0/bytes_out"), 0.0);
    assert_eq!(grown("cluster/ps/0/steps"), 5.0 + 3.0 + 2.0);
    assert_eq!(found["cluster/queue/numbers"], [(0, 0.0), (5, 3.0)]);
    let [steps, examples] = ["steps", "examples"].map(|what| found[&format!("cluster/{what}_per_sec")][0]);
    assert!(steps.0 == 5 && steps.1 > 0.0);
    assert!((examples.1 / steps.1 - 32.0).abs() < 1e-3);
}

#[test]
fn a_hook_reports_all_tasks_of_a_cluster() {
    let cluster = LocalCluster::start_with(&[("ps", 1), ("worker", 2)], small).unwrap();
    let folder = Folder::new();
    let graph = graph();
    let step = create_global_step_in(&graph.root().on("/job:ps/task:0")).unwrap();
    let next = step.assign_add(&graph.root().on("/job:worker/task:0").constant(1i64));
    let events = Arc::new(FileWriter::new(&folder.0).unwrap());
    let session = MonitoredTrainingSession::new(&graph)
        .master(&cluster.targets("worker")[0])
        .hook(hooks::ClusterMetrics::new(Every::Steps(2), events.clone()).cluster(cluster.cluster()))
        .hook(StopAtStep::last_step(7))
        .start()
        .unwrap();
    session.until_stop(|session| session.run(&next)).unwrap();
    events.close().unwrap();
    let found = scalars(&folder.0);
    for task in ["ps/0", "worker/0", "worker/1"] {
        let steps: Vec<i64> = found[&format!("cluster/{task}/bytes_out")].iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [1, 3, 5, 7], "{task}");
    }
    assert_eq!(found["cluster/steps_per_sec"].len(), 3, "between the first report and the last");
}

/// A worker that learns, and what lets others go on.
struct Learning {
    graph: Graph,
    train: Node,
    /// Waits until a step of one that waits has read what it learns from.
    began: Output,
    /// Lets that step go on.
    go: Node,
}

fn learning(worker: usize, waits: bool) -> Learning {
    let graph = graph();
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{worker}")).on(&graph.root());
    let step = create_global_step_in(&scope).unwrap();
    let w = Variable::builder(&scope, "w").initializer(Initializer::Constant(1.0)).build();
    let ps = graph.root().on("/job:ps/task:0");
    let queue = |name: &str| {
        let queue = Queue::fifo(&ps, &[DType::F32]).shapes(&[PartialShape::scalar()]);
        queue.shared_name(name).build().handle().clone()
    };
    let (began, go) = (queue("began"), queue("go"));
    // The step has read what it learns from, and the counter.
    let read = ps.after([w.value().node(), step.value().node()]);
    let begin = queue_enqueue(&began.seen_from(&read), &[read.constant(1f32)]);
    let rate = match waits {
        true => queue_dequeue(&go.seen_from(&ps.after([&begin])), &[DType::F32]).remove(0),
        false => ps.constant(1f32),
    };
    let loss = w.value() * &rate.seen_from(&scope);
    let optimizer = Optimizer::new(GradientDescent::new(0.1));
    let train = optimizer.minimize_with(&loss, MinimizeOptions::new().variables([&w]).step(&step)).unwrap();
    let go = queue_enqueue(&go, &[ps.constant(1f32)]);
    let began = queue_dequeue(&began, &[DType::F32]).remove(0);
    Learning { graph, train, began, go }
}

#[test]
fn staleness_is_how_many_updates_of_others_came_meanwhile() {
    let cluster = LocalCluster::start_with(&[("ps", 1), ("worker", 2)], small).unwrap();
    let (targets, folder) = (cluster.targets("worker"), Folder::new());
    let other = learning(0, false);
    let mut quick = MonitoredTrainingSession::new(&other.graph).master(&targets[0]).start().unwrap();
    let events = Arc::new(FileWriter::new(&folder.0).unwrap());
    let hook = hooks::ClusterMetrics::new(Every::Steps(2), events.clone());
    let slow = std::thread::spawn(move || {
        let Learning { graph, train, .. } = learning(1, true);
        let slow = MonitoredTrainingSession::new(&graph).master(&targets[1]).is_chief(false).hook(hook);
        let mut slow = slow.start().unwrap();
        for _ in 0..2 {
            slow.run::<()>(&train).unwrap();
        }
        // A step that changes nothing is not stale, and changes nothing because it is watched.
        let step: i64 = slow.run("global_step/Read/ReadVariableOp:0").unwrap();
        slow.close().unwrap();
        step
    });
    for others in [3, 1] {
        quick.run::<f32>(&other.began).unwrap();
        for _ in 0..others {
            quick.run::<()>(&other.train).unwrap();
        }
        quick.run::<()>(&other.go).unwrap();
    }
    assert_eq!(slow.join().unwrap(), 6);
    events.close().unwrap();
    let found = scalars(&folder.0);
    assert_eq!(found["cluster/staleness_mean"], [(4, 3.0), (6, 1.0)]);
    assert_eq!(found["cluster/staleness_max"], [(4, 3.0), (6, 1.0)]);
}

#[test]
fn a_server_writes_its_own_counters_until_it_is_closed() {
    let folder = Folder::new();
    let task = Task { job: "worker".to_string(), index: 0 };
    let cluster = ClusterSpec::parse("worker=127.0.0.1:0").unwrap();
    let server = Server::start(small(ServerOptions::new(cluster, task))).unwrap();
    let metrics = ServerMetrics::start(server.counters(), &FileSystems::local(), &folder.0, FOR_LONG).unwrap();
    let graph = graph();
    let queue = fifo_queue(&graph.root(), "numbers", 10, &[DType::F32], &[PartialShape::scalar()]);
    let enqueue = queue_enqueue(&queue, &[graph.root().constant(1.0f32)]);
    let session = Session::connect(server.target(), &graph).unwrap();
    for _ in 0..4 {
        session.execute(&enqueue).unwrap();
    }
    metrics.close().unwrap();
    let found = scalars(&folder.join("worker-0"));
    assert_eq!(found["cluster/worker/0/steps"], [(4, 4.0)]);
    assert_eq!(found["cluster/worker/0/bytes_in"], [(4, 0.0)]);
    assert!(found["cluster/worker/0/steps_per_sec"][0].1 > 0.0);
    let queues: Vec<_> = found.iter().filter(|(tag, _)| tag.starts_with("cluster/queue/")).collect();
    assert!(matches!(queues[..], [(tag, values)] if tag.ends_with("numbers") && values == &[(4, 4.0)]), "{queues:?}");
}

#[test]
fn scalars_are_totals_and_what_happened_since() {
    let task = Task { job: "ps".to_string(), index: 2 };
    let sample = |bytes_in, [accepted, stale, dropped]: [i64; 3]| Sample {
        tasks: vec![(task.clone(), TaskCounts { steps: 10, bytes_in, bytes_out: 0 })],
        gradients: vec![GradientCounts { name: "w:0/grad_accum".to_string(), accepted, stale, dropped }],
        queues: vec![("sync_token_q".to_string(), 3)],
    };
    let (first, second) = (sample(100, [8, 0, 0]), sample(400, [14, 1, 1]));
    let of = |sample: &Sample, before: Option<&Sample>| -> BTreeMap<String, f64> {
        sample.scalars(before.map(|before| (before, Duration::from_secs(2)))).into_iter().collect()
    };
    let found = of(&second, Some(&first));
    assert_eq!(found["cluster/ps/2/bytes_in"], 400.0);
    assert_eq!(found["cluster/ps/2/bytes_in_per_sec"], 150.0);
    assert_eq!(found["cluster/ps/2/steps_per_sec"], 0.0);
    assert_eq!(found["cluster/gradients/w_0/grad_accum/accepted"], 14.0);
    assert_eq!(found["cluster/staleness/w_0/grad_accum"], 0.25, "2 of 8");
    assert_eq!(found["cluster/queue/sync_token_q"], 3.0);
    assert!(!of(&second, Some(&second)).contains_key("cluster/staleness/w_0/grad_accum"), "none came");
    assert!(!of(&first, None).contains_key("cluster/ps/2/bytes_in_per_sec"), "since when?");
    assert_eq!(of(&first, Some(&second))["cluster/ps/2/bytes_in_per_sec"], 50.0, "the task was started again");
}
