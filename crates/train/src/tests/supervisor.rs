//! The supervisor: a chief with its threads, others that wait, and what they are told.

use super::{Folder, graph, nodes};
use crate::coordination::{QUEUE_RUNNERS, QueueRunnerDef};
use crate::hooks::StopAtStep;
use crate::monitored::MonitoredSession;
use crate::{MonitoredTrainingSession, QueueRunner, Supervisor, create_global_step, create_global_step_in};
use crate::{import_meta_graph, latest_checkpoint, queue_runners, replica_device_setter};
use graph::{Graph, Node};
use layers::{Kind, Queue, ScopeOps, Variable};
use parking_lot::Mutex;
use session::{Session, SessionConfig};
use status::{Code, Result, out_of_range};
use std::sync::Arc;
use std::time::Duration;
use tensor::DType;

fn counting() -> (Graph, Node) {
    let graph = graph();
    let step = create_global_step(&graph).unwrap();
    let next = step.assign_add(&graph.root().constant(1i64));
    (graph, next)
}

fn step(session: &Session) -> Result<i64> {
    session.run("global_step/Read/ReadVariableOp:0")
}

#[test]
fn a_chief_saves_and_goes_on_where_it_ended() {
    let folder = Folder::new();
    for first in [0, 3] {
        let (graph, next) = counting();
        let supervisor = Supervisor::builder(&graph)
            .logdir(&folder.0)
            .save_model(Some(Duration::from_millis(1)))
            .save_summaries(Some(Duration::from_millis(1)))
            .build()
            .unwrap();
        assert!(graph.is_finalized());
        supervisor
            .managed_session("", |session| {
                assert_eq!(step(session)?, first);
                for _ in 0..3 {
                    session.execute(&next)?;
                }
                // A checkpoint of the last step comes at the latest when the thread is there again.
                let wanted = folder.join(&format!("model.ckpt-{}", first + 3));
                while latest_checkpoint(&folder.0)?.as_deref() != Some(&wanted) && !supervisor.should_stop() {
                    std::thread::yield_now();
                }
                Err(out_of_range!("the input is at its end"))
            })
            .unwrap();
        assert!(supervisor.should_stop());
    }
    let files: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(files.iter().any(|file| file.to_string_lossy().starts_with("events.out.tfevents.")), "{files:?}");
}

#[test]
fn an_error_of_a_thread_is_the_sessions() {
    let (graph, _) = counting();
    let supervisor = Supervisor::builder(&graph).build().unwrap();
    let result = supervisor.managed_session("", |_| {
        supervisor.repeat(None, || Err(status::internal!("as this test wants")))?;
        supervisor.coordinator().wait_for_stop(None);
        Ok(())
    });
    assert_eq!(result.unwrap_err().message, "as this test wants");
}

#[test]
fn threads_end_with_a_session_that_was_not_made() {
    let (folder, (graph, _)) = (Folder::new(), counting());
    let runner = QueueRunnerDef { queue: "queue".to_string(), close_op: "gone".to_string(), ..Default::default() };
    graph.add_to_collection(QUEUE_RUNNERS, checkpoint::queue_runner_to_record(runner));
    // The threads of a chief with a folder are started before those of queues.
    let supervisor = Supervisor::builder(&graph).logdir(&folder.0).build().unwrap();
    let error = supervisor.managed_session("", |_| Ok(())).unwrap_err();
    assert_eq!(error.message, "The queue runner of queue names gone, which is not in the graph");
    assert!(supervisor.coordinator().joined());
}

#[test]
fn a_session_may_be_ready_before_its_counter() {
    let graph = graph();
    let late = Variable::builder(&graph.root(), "late").dtype(DType::I64).collections(&[]).build();
    let supervisor = Supervisor::builder(&graph).global_step(late.value()).standard_services(false).build().unwrap();
    supervisor.managed_session("", |session| session.execute(late.initializer())).unwrap();
}

#[test]
fn others_wait_for_the_chief_and_say_for_what() {
    let graph = graph();
    create_global_step_in(&graph.root().on("/cpu:0")).unwrap();
    let supervisor =
        Supervisor::builder(&graph).is_chief(false).recovery_wait(Duration::from_millis(1)).build().unwrap();
    let (config, limit) = (SessionConfig::default(), Some(Duration::from_millis(5)));
    let error = supervisor.managed_session_with("", &config, limit, |_| Ok(())).unwrap_err();
    assert_eq!(error.code, Code::DeadlineExceeded);
    assert!(error.message.contains("Variables not initialized: global_step"), "{error}");
}

#[test]
fn variables_of_replicas_need_a_device() {
    for (kind, op) in [(Kind::Resource, "VarHandleOp"), (Kind::Reference, "VariableV2")] {
        let graph = graph();
        Variable::builder(&graph.root(), "w").shape([2]).kind(kind).build();
        let error = Supervisor::builder(&graph).is_chief(false).build().err().unwrap();
        let wanted = format!("When using replicas, all Variables must have their device set: w ({op}).");
        assert!(error.message.starts_with(&wanted), "{error}");
        assert!(error.message.contains("replica_device_setter"), "{error}");
        // A chief may be alone; and what is beside something on a device is there too.
        Supervisor::builder(&graph).build().unwrap();
        let graph = super::graph();
        let w = Variable::builder(&graph.root().on("/job:ps/task:0"), "w").shape([2]).kind(kind).build();
        Variable::builder(&graph.root().beside(w.handle().node()), "slot").shape([2]).kind(kind).build();
        Supervisor::builder(&graph).is_chief(false).build().unwrap();
    }
}

/// In Python a supervisor that is made inside of a device scope has its own nodes there, and tutorials say to make it
/// outside. Here it is made from a graph, so no scope that the program has reaches it.
#[test]
fn a_supervisor_is_outside_of_device_scopes() {
    let graph = graph();
    let scope = replica_device_setter(1).worker_device("/job:worker/task:0").on(&graph.root());
    create_global_step_in(&scope).unwrap();
    let before = nodes(&graph, "");
    Supervisor::builder(&graph).is_chief(false).build().unwrap();
    let all = nodes(&graph, "");
    let own: Vec<&String> = all.iter().filter(|node| !before.contains(node)).collect();
    assert!(own.iter().any(|node| node.contains("report_uninitialized_variables")), "{own:?}");
    assert!(own.iter().all(|node| !node.contains("/job:worker")), "{own:?}");
}

/// A graph whose step takes a number from a queue that a thread fills: three times, then the input is at its end.
fn queued(graph: &Graph) -> (Node, graph::Output) {
    let root = graph.root();
    let counted = Variable::builder(&root, "counted").dtype(DType::I64).collections(&["local_variables"]).build();
    let up = root.op("ResourceCountUpTo").input(counted.handle()).attr("limit", 3i64).attr("T", DType::I64).output();
    let queue = Queue::fifo(&root, &[DType::I64]).capacity(2).build();
    let fill = queue.enqueue(&[up]);
    QueueRunner::new(&queue, &[fill]).register();
    let taken = queue.dequeue().remove(0);
    let step = create_global_step(graph).unwrap();
    let next = step.assign_add(&root.after([taken.node()]).constant(1i64));
    (next, root.op("Identity").named("taken").input(&taken).output())
}

#[test]
fn queues_are_filled_beside_a_monitored_session() {
    let folder = Folder::new();
    let original = graph();
    queued(&original);
    crate::export_meta_graph(&original, folder.join("queued.meta")).unwrap();
    // The graph itself lists the threads.
    let graph = graph();
    import_meta_graph(&graph, folder.join("queued.meta")).unwrap();
    assert_eq!(queue_runners(&graph).unwrap().len(), 1);
    let session = MonitoredTrainingSession::new(&graph).hook(StopAtStep::last_step(9)).start().unwrap();
    let mut taken = Vec::new();
    let run = |session: &mut MonitoredSession| {
        taken.push(session.run::<(i64, ())>(("taken:0", "AssignAddVariableOp"))?.0);
        Ok(())
    };
    session.until_stop(run).unwrap();
    assert_eq!(taken, [0, 1, 2]);
}

#[test]
fn threads_of_hooks_end_with_the_session() {
    struct Starting(Arc<Mutex<bool>>);
    impl crate::SessionRunHook for Starting {
        fn after_create_session(&mut self, context: &crate::monitored::SessionContext<'_>) -> Result<()> {
            let ended = self.0.clone();
            context.coordinator().spawn("watching", move |coordinator| {
                coordinator.wait_for_stop(None);
                *ended.lock() = true;
                Ok(())
            })
        }
    }
    let (graph, next) = counting();
    let ended = Arc::new(Mutex::new(false));
    let mut session = MonitoredTrainingSession::new(&graph).hook(Starting(ended.clone())).start().unwrap();
    session.run::<()>(&next).unwrap();
    session.close().unwrap();
    assert!(*ended.lock());
}
