//! Threads that keep queues filled.

use super::Coordinator;
use checkpoint::{queue_runner_from_record, queue_runner_to_record};
use graph::{Graph, Node};
use layers::Queue;
use parking_lot::Mutex;
use session::Session;
use status::{Code, Result, not_found};
use std::sync::Arc;

/// The collection of queue runners, with TensorFlow's name.
pub use layers::collection::QUEUE_RUNNERS;

pub use checkpoint::QueueRunnerDef;

/// Enqueue ops of a queue, each repeated by a thread of its own until the input ends or a coordinator stops.
///
/// The last thread that reaches the end of the input closes the queue. One more thread waits for the stop and then
/// cancels the enqueue ops that still wait for room.
#[derive(Clone)]
pub struct QueueRunner {
    queue: String,
    enqueue: Vec<Node>,
    close: Node,
    cancel: Node,
    closed: Vec<Code>,
}

impl QueueRunner {
    /// A runner of these ops, which fill `queue`.
    pub fn new(queue: &Queue, enqueue: &[Node]) -> QueueRunner {
        QueueRunner {
            queue: queue.name(),
            enqueue: enqueue.to_vec(),
            close: queue.close(false),
            cancel: queue.close(true),
            closed: vec![Code::OutOfRange],
        }
    }

    /// The same runner, for which errors with these codes mean the end of the input.
    pub fn closed_by(mut self, codes: &[Code]) -> QueueRunner {
        self.closed = codes.to_vec();
        self
    }

    /// The name of the queue.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Starts the threads, which `coordinator` stops and joins. If threads of this runner and session are still
    /// running, it starts none.
    pub fn start(&self, session: &Arc<Session>, coordinator: &Coordinator) -> Result<()> {
        let Some(mark) = coordinator.begin_group(&self.group(session)) else { return Ok(()) };
        let running = Arc::new(Mutex::new(self.enqueue.len()));
        for op in &self.enqueue {
            let (runner, op, session, running) = (self.clone(), op.clone(), session.clone(), running.clone());
            let (name, mark) = (format!("QueueRunnerThread-{}-{}", self.queue, op.name()), mark.clone());
            coordinator.spawn(&name, move |coordinator| {
                let ended = runner.fill(&session, coordinator, &op, &running);
                drop(mark);
                ended
            })?;
        }
        let (cancel, session) = (self.cancel.clone(), session.clone());
        let name = format!("QueueRunnerThread-{}-close_on_stop", self.queue);
        coordinator.spawn(&name, move |coordinator| {
            coordinator.wait_for_stop(None);
            // The session may be closed by now, so an error is ignored.
            let _ = session.execute(&cancel);
            Ok(())
        })
    }

    /// The name of the group of its threads. A session that has threads keeps its address, so the address identifies
    /// it.
    fn group(&self, session: &Arc<Session>) -> String {
        let ops: Vec<String> = self.enqueue.iter().map(Node::name).collect();
        format!("{:p} {} {}", Arc::as_ptr(session), self.queue, ops.join(" "))
    }

    /// Repeats one op. The last thread that ends because of the end of the input closes the queue.
    fn fill(&self, session: &Session, coordinator: &Coordinator, op: &Node, running: &Mutex<usize>) -> Result<()> {
        let ended = self.repeat(session, coordinator, op);
        let left = {
            let mut running = running.lock();
            *running -= 1;
            *running
        };
        match ended {
            Err(error) if self.closed.contains(&error.code) => {
                if left == 0 {
                    // It may be closed already, so an error is ignored.
                    let _ = session.execute(&self.close);
                }
                Ok(())
            }
            other => other,
        }
    }

    fn repeat(&self, session: &Session, coordinator: &Coordinator, op: &Node) -> Result<()> {
        let enqueue = session.make_callable(op, &[])?;
        while !coordinator.should_stop() {
            enqueue.call::<()>(Vec::new())?;
        }
        Ok(())
    }

    /// Adds the runner to its graph's collection.
    pub fn register(&self) {
        self.close.graph().add_to_collection(QUEUE_RUNNERS, queue_runner_to_record(self.to_def()));
    }

    /// The definition of the runner, as in files.
    pub fn to_def(&self) -> QueueRunnerDef {
        QueueRunnerDef {
            queue: self.queue.clone(),
            enqueue_ops: self.enqueue.iter().map(Node::name).collect(),
            close_op: self.close.name(),
            cancel_op: self.cancel.name(),
            closed: self.closed.iter().map(|&code| code as i32).collect(),
        }
    }

    /// The runner of a definition, whose nodes are in the graph. A definition without codes uses `OutOfRange`.
    pub fn from_def(graph: &Graph, def: &QueueRunnerDef) -> Result<QueueRunner> {
        let root = graph.root();
        let find = |name: &String| {
            let missing = || not_found!("The queue runner of {} names {name}, which is not in the graph", def.queue);
            Node::find(&root, name).ok_or_else(missing)
        };
        let closed = match def.closed.is_empty() {
            true => vec![Code::OutOfRange],
            false => def.closed.iter().map(|&code| Code::from_number(code)).collect(),
        };
        Ok(QueueRunner {
            queue: def.queue.clone(),
            enqueue: def.enqueue_ops.iter().map(find).collect::<Result<_>>()?,
            close: find(&def.close_op)?,
            cancel: find(&def.cancel_op)?,
            closed,
        })
    }
}

/// The queue runners in a graph's collection.
pub fn queue_runners(graph: &Graph) -> Result<Vec<QueueRunner>> {
    let defs = graph.collection(QUEUE_RUNNERS);
    defs.iter().filter_map(queue_runner_from_record).map(|def| QueueRunner::from_def(graph, &def)).collect()
}

/// Starts all queue runners in a session's graph.
pub fn start_queue_runners(session: &Arc<Session>, coordinator: &Coordinator) -> Result<()> {
    queue_runners(session.graph())?.iter().try_for_each(|runner| runner.start(session, coordinator))
}
