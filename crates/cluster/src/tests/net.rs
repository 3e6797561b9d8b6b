//! A simulated network in one process: links can be cut, healed, delayed and made to lose calls, and the clock moves only
//! when nothing else can happen.

use crate::tests::toy;
use crate::{
    ClusterSpec, CompleteGroup, CompleteInstance, CompletedGroup, CreateWorkerSession, Deliver, DeviceAttributes,
    Features, Future, Logging, RecvBuf, RecvTensor, RegisterGraph, RemoteWorker, RunGraph, RunGraphAnswer, Runtime,
    Task, TransferStats, Transport, Work, Worker, WorkerClient, WorkerOptions,
};
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use op::{Extensions, OpenedTensor, Received};
use parking_lot::Mutex;
use status::{Error, Result, unavailable};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use tensor::Bytes;

/// A lost call is given up after this long.
pub const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Net {
    state: Mutex<State>,
    extensions: Extensions,
    /// The threads that move the clock. They are woken when a sleep begins.
    runners: Mutex<Vec<Thread>>,
}

#[derive(Default)]
struct State {
    workers: BTreeMap<Task, Arc<Worker>>,
    now: Duration,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
    /// The links that are cut, and the running calls with what ends them.
    cut: Vec<(Task, Task)>,
    calls: Vec<(Task, Task, oneshot::Sender<()>)>,
    delay: Duration,
    /// The methods whose next call is lost.
    lose: Vec<&'static str>,
    /// How many calls were sent to other tasks, except for ends of steps, which follow in the background, and how many
    /// nodes were registered with them.
    sent_calls: usize,
    sent_nodes: usize,
    /// What all tasks accept besides TensorFlow's calls.
    features: Features,
    /// The methods of all calls so far, in order.
    log: Vec<&'static str>,
}

impl Net {
    /// A cluster of these tasks, `ps:0 worker:0 worker:1`; those after a `-` are not up yet.
    pub fn new(tasks: &str) -> Arc<Net> {
        Net::with_extensions(tasks, Extensions::default())
    }

    /// The same, with values that the kernels of all tasks find.
    pub fn with_extensions(tasks: &str, extensions: Extensions) -> Arc<Net> {
        let net = Arc::new(Net { extensions, ..Net::default() });
        let spec = spec(&tasks.replace('-', ""));
        for name in tasks.split_whitespace().filter(|name| !name.starts_with('-')) {
            net.start(&spec, &task(name));
        }
        net
    }

    fn start(self: &Arc<Self>, spec: &ClusterSpec, task: &Task) {
        let worker = Worker::new(WorkerOptions {
            task: task.clone(),
            cluster: spec.clone(),
            registry: toy::registry(),
            devices: 1,
            inter_op_threads: 1,
            intra_op_threads: 1,
            transport: Arc::new(From { net: self.clone(), own: task.clone() }),
            runtime: Arc::new(Threads { net: self.clone() }),
            differentiate: None,
            sync_policy: Default::default(),
            extensions: self.extensions.clone(),
        });
        self.state.lock().workers.insert(task.clone(), worker);
    }

    pub fn worker(&self, name: &str) -> Arc<Worker> {
        self.state.lock().workers[&task(name)].clone()
    }

    /// Replaces a task by a new process, with new devices and without the old sessions.
    pub fn restart(self: &Arc<Self>, name: &str) {
        let spec = self.worker(name).cluster();
        self.start(&spec, &task(name));
    }

    /// Puts another task's worker at an address.
    pub fn mix_up(&self, name: &str, other: &str) {
        let other = self.worker(other);
        self.state.lock().workers.insert(task(name), other);
    }

    /// Ends all calls between two tasks, and those to come.
    pub fn cut(&self, one: &str, other: &str) {
        let mut state = self.state.lock();
        let link = (task(one), task(other));
        state.calls.retain(|(from, to, _)| !joins(&link, from, to));
        state.cut.push(link);
    }

    pub fn heal(&self) {
        self.state.lock().cut.clear();
    }

    /// From now on calls take this long to arrive.
    pub fn delay(&self, time: Duration) {
        self.state.lock().delay = time;
    }

    /// Loses the next call of this method.
    pub fn lose(&self, method: &'static str) {
        self.state.lock().lose.push(method);
    }

    /// From now on tasks accept batches of requests for tensors, and ends of steps together with a run.
    pub fn extend(&self) {
        self.state.lock().features = Features { recv_batches: true, step_ends: true };
    }

    /// How often a method was called so far.
    pub fn count(&self, method: &str) -> usize {
        self.state.lock().log.iter().filter(|called| **called == method).count()
    }

    /// One task as another one calls it.
    pub fn link(self: &Arc<Self>, from: &str, to: &str) -> Arc<RemoteWorker> {
        let link = Link { net: self.clone(), from: task(from), to: task(to) };
        Arc::new(RemoteWorker::new(Arc::new(link), Arc::new(Threads { net: self.clone() })))
    }

    pub fn now(&self) -> Duration {
        self.state.lock().now
    }

    /// The number of running calls.
    pub fn calls(&self) -> usize {
        let mut state = self.state.lock();
        state.calls.retain(|(_, _, call)| !call.is_canceled());
        state.calls.len()
    }

    /// How many calls were sent to other tasks, except for ends of steps.
    pub fn sent_calls(&self) -> usize {
        self.state.lock().sent_calls
    }

    /// How many nodes were registered at other tasks.
    pub fn sent_nodes(&self) -> usize {
        self.state.lock().sent_nodes
    }

    fn sleep(&self, time: Duration) -> oneshot::Receiver<()> {
        let (wake, woken) = oneshot::channel();
        let mut state = self.state.lock();
        let at = state.now + time;
        state.sleepers.push((at, wake));
        drop(state);
        self.runners.lock().iter().for_each(Thread::unpark);
        woken
    }

    /// Moves the clock to the end of the next sleep; returns false if there is none.
    fn step(&self) -> bool {
        let mut state = self.state.lock();
        state.sleepers.retain(|(_, sleeper)| !sleeper.is_canceled());
        let Some(next) = (0..state.sleepers.len()).min_by_key(|&i| state.sleepers[i].0) else { return false };
        let (at, sleeper) = state.sleepers.remove(next);
        state.now = state.now.max(at);
        drop(state);
        let _ = sleeper.send(());
        true
    }

    /// Runs a future to its end. The clock moves only when the future cannot continue otherwise.
    pub fn run<T>(&self, future: impl std::future::Future<Output = T>) -> T {
        self.runners.lock().push(std::thread::current());
        run(future, || self.step())
    }
}

/// Runs a future on this thread. When the future is pending, `stuck` may make it continue; otherwise the thread waits
/// until the future is woken.
fn run<T>(future: impl std::future::Future<Output = T>, stuck: impl Fn() -> bool) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        if !stuck() {
            std::thread::park();
        }
    }
}

/// The other tasks as one of them sees them.
struct From {
    net: Arc<Net>,
    own: Task,
}

impl Transport for From {
    fn connect(&self, task: &Task, _: &str) -> Result<Arc<dyn WorkerClient>> {
        Ok(Arc::new(Link { net: self.net.clone(), from: self.own.clone(), to: task.clone() }))
    }
}

/// Runs every piece of background work on a thread of its own; the clock is that of the network.
struct Threads {
    net: Arc<Net>,
}

impl Runtime for Threads {
    fn spawn(&self, work: Work) {
        std::thread::spawn(move || run(work, || false)); // it ends with the call it makes
    }

    fn sleep(&self, time: Duration) -> Work {
        let woken = self.net.sleep(time);
        Box::pin(async move {
            let _ = woken.await;
        })
    }

    /// Waits until the test's thread can do nothing but move the clock.
    fn yield_now(&self) -> Work {
        self.sleep(Duration::ZERO)
    }
}

struct Link {
    net: Arc<Net>,
    from: Task,
    to: Task,
}

impl Link {
    fn lost(&self, why: &str) -> Error {
        unavailable!("Task {} at net does not answer: {why}", self.to)
    }

    /// Makes a call, unless the network prevents it.
    fn carry<'a, T: 'a>(
        &'a self,
        method: &'static str,
        call: impl FnOnce(Arc<dyn WorkerClient>) -> Future<'static, T> + Send + 'a,
    ) -> Future<'a, T> {
        Box::pin(async move {
            let (end, ended) = oneshot::channel();
            let delay = {
                let mut state = self.net.state.lock();
                if state.cut.iter().any(|link| joins(link, &self.from, &self.to)) {
                    return Err(self.lost("the link is cut"));
                }
                state.calls.retain(|(_, _, call)| !call.is_canceled());
                state.calls.push((self.from.clone(), self.to.clone(), end));
                state.sent_calls += usize::from(method != "cleanup_graph");
                state.log.push(method);
                let lost = state.lose.iter().position(|lost| *lost == method);
                lost.map_or(state.delay, |place| {
                    state.lose.remove(place);
                    Duration::MAX
                })
            };
            if delay == Duration::MAX {
                let _ = self.net.sleep(PATIENCE).await;
                return Err(self.lost("no sign of life for 5000 ms"));
            }
            if delay > Duration::ZERO {
                let _ = self.net.sleep(delay).await;
            }
            let Some(worker) = self.net.state.lock().workers.get(&self.to).cloned() else {
                return Err(self.lost("connection refused"));
            };
            match select(call(worker.client()), ended).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => Err(self.lost("the link is cut")),
            }
        })
    }
}

/// Methods that pass a call over the network.
macro_rules! carried {
    ($($method:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => { $(
        fn $method(&self $(, $argument: $kind)*) -> Future<'_, $answer> {
            self.carry(stringify!($method), move |client| {
                Box::pin(async move { client.$method($($argument),*).await })
            })
        }
    )* };
}

impl WorkerClient for Link {
    fn register_graph(&self, request: RegisterGraph) -> Future<'_, String> {
        self.net.state.lock().sent_nodes += request.graph.nodes.len();
        self.carry("register_graph", move |client| Box::pin(async move { client.register_graph(request).await }))
    }

    carried! {
        get_status() -> Vec<DeviceAttributes>;
        create_session(request: CreateWorkerSession) -> ();
        delete_session(session: String) -> ();
        deregister_graph(session: String, graph: String) -> ();
        cleanup_graph(step_id: u64) -> ();
        recv_tensors(requests: Vec<RecvTensor>, deliver: Deliver) -> ();
        cleanup_all(containers: Vec<String>) -> ();
        recv_tensor(request: RecvTensor) -> Received;
        open_tensor(request: RecvTensor) -> OpenedTensor;
        logging(request: Logging) -> Vec<(u64, Vec<TransferStats>)>;
        recv_buf(request: RecvBuf) -> Bytes;
        complete_group(request: CompleteGroup) -> CompletedGroup;
        complete_instance(request: CompleteInstance) -> i32;
        get_step_sequence(graph_keys: Vec<i64>) -> Vec<(i64, u64)>;
    }

    fn features(&self) -> Features {
        self.net.state.lock().features
    }

    fn run_graph(&self, request: RunGraph) -> Future<'_, RunGraphAnswer> {
        Box::pin(async move { self.run_graph_after(&[], request).await? })
    }

    fn run_graph_after<'a>(&'a self, ended: &'a [u64], request: RunGraph) -> Future<'a, Result<RunGraphAnswer>> {
        let ended = ended.to_vec();
        self.carry("run_graph", move |client| Box::pin(async move { client.run_graph_after(&ended, request).await }))
    }

    fn cleanup_graphs<'a>(&'a self, steps: &'a [u64]) -> Future<'a, ()> {
        let steps = steps.to_vec();
        self.carry("cleanup_graphs", move |client| Box::pin(async move { client.cleanup_graphs(&steps).await }))
    }
}

fn joins((one, other): &(Task, Task), from: &Task, to: &Task) -> bool {
    (one == from && other == to) || (one == to && other == from)
}

/// `ps:1`
pub fn task(name: &str) -> Task {
    let (job, index) = name.trim_start_matches('-').split_once(':').expect("job:task");
    Task { job: job.to_string(), index: index.parse().expect("a number") }
}

fn spec(tasks: &str) -> ClusterSpec {
    let add = |spec: ClusterSpec, name: &str| {
        let task = task(name);
        spec.with_task(&task.job, task.index, &format!("{}{}:2222", task.job, task.index)).expect("a task")
    };
    tasks.split_whitespace().fold(ClusterSpec::new(), add)
}
