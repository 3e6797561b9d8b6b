//! A server and a client that are connected by pipes in one process, so that the tests control time and connections.

use crate::client::channel::tuned;
use crate::client::link::{Dial, Link};
use crate::client::worker::GrpcWorker;
use crate::server::{STREAM_WINDOW, worker_service};
use crate::{GrpcMaster, GrpcMasterOptions, TokioRuntime};
use cluster::{
    CreateWorkerSession, DeviceAttributes, Future, RecvTensor, RegisterGraph, RemoteWorker, RunGraph, RunGraphAnswer,
    WorkerClient,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use status::{Result, unimplemented_op};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tensor::Tensor;
use tokio::io::DuplexStream;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tonic::transport::{Endpoint, Uri};

pub const PATIENCE: Duration = Duration::from_secs(5);

/// A worker that answers RecvTensor and RunGraph with the tensors that a test sets, and records the steps that end.
pub struct FakeWorker {
    pub tensor: watch::Sender<Option<Result<(Tensor, bool)>>>,
    /// The answers by key; requests with an empty key get the one above.
    pub by_key: watch::Sender<HashMap<String, Result<(Tensor, bool)>>>,
    /// The steps that have ended.
    pub ended: Mutex<Vec<u64>>,
    devices: Vec<DeviceAttributes>,
}

impl FakeWorker {
    pub fn new() -> Arc<FakeWorker> {
        FakeWorker::with(Vec::new())
    }

    /// A worker with a device of this name.
    pub fn of_device(name: &str) -> Arc<FakeWorker> {
        FakeWorker::with(vec![DeviceAttributes { name: name.to_string(), ..DeviceAttributes::default() }])
    }

    fn with(devices: Vec<DeviceAttributes>) -> Arc<FakeWorker> {
        let (tensor, by_key) = (watch::channel(None).0, watch::channel(HashMap::new()).0);
        Arc::new(FakeWorker { tensor, by_key, ended: Mutex::default(), devices })
    }
}

fn unsupported<T>() -> Future<'static, T> {
    Box::pin(async { Err(unimplemented_op!("a fake worker")) })
}

impl WorkerClient for FakeWorker {
    fn get_status(&self) -> Future<'_, Vec<DeviceAttributes>> {
        Box::pin(async { Ok(self.devices.clone()) })
    }
    fn create_session(&self, _: CreateWorkerSession) -> Future<'_, ()> {
        unsupported()
    }
    fn delete_session(&self, _: String) -> Future<'_, ()> {
        unsupported()
    }
    fn register_graph(&self, _: RegisterGraph) -> Future<'_, String> {
        unsupported()
    }
    fn deregister_graph(&self, _: String, _: String) -> Future<'_, ()> {
        unsupported()
    }
    fn run_graph(&self, request: RunGraph) -> Future<'_, RunGraphAnswer> {
        if request.recv.is_empty() {
            return Box::pin(async { Err(status::aborted!("a consequence").derived()) });
        }
        // The answer ends with the tensors that were sent.
        let found = self.by_key.borrow();
        let recv = request.recv.iter().map(|key| Ok((key.clone(), found[key].clone()?.0))).collect::<Result<Vec<_>>>();
        let recv = recv.map(|recv| recv.into_iter().chain(request.send).collect());
        Box::pin(async { Ok(RunGraphAnswer { recv: recv?, ..RunGraphAnswer::default() }) })
    }
    fn cleanup_graph(&self, step_id: u64) -> Future<'_, ()> {
        self.ended.lock().push(step_id);
        Box::pin(async { Ok(()) })
    }
    fn cleanup_all(&self, _: Vec<String>) -> Future<'_, ()> {
        unsupported()
    }
    fn recv_tensor(&self, request: RecvTensor) -> Future<'_, (Tensor, bool)> {
        if !request.key.is_empty() {
            let mut watch = self.by_key.subscribe();
            return Box::pin(async move {
                let found = watch.wait_for(|answers| answers.contains_key(&request.key)).await;
                found.map_or_else(|_| Err(unimplemented_op!("a fake worker")), |answers| answers[&request.key].clone())
            });
        }
        let mut watch = self.tensor.subscribe();
        Box::pin(async move {
            match watch.wait_for(Option::is_some).await.map(|value| value.clone()) {
                Ok(Some(answer)) => answer,
                _ => unsupported().await,
            }
        })
    }
}

/// The other end of a client's connections.
pub enum End {
    /// A server.
    Server(mpsc::UnboundedSender<std::io::Result<DuplexStream>>),
    /// A stopped process: it receives bytes and sends nothing. The pipes stay open.
    Silent(Vec<DuplexStream>),
    /// No process listens.
    Refused,
    /// A network that is cut: the attempt to connect times out.
    Lost,
}

/// The state of all connections.
#[derive(Clone, Copy, PartialEq)]
pub enum Cable {
    Whole,
    /// Bytes are lost, without an error.
    Cut,
    /// Both ends see that the connection is closed.
    Closed,
}

/// The other end of the next connection, and the state of all connections.
pub struct Socket {
    pub end: Mutex<End>,
    pub cable: watch::Sender<Cable>,
}

pub fn socket(end: End) -> Arc<Socket> {
    Arc::new(Socket { end: Mutex::new(end), cable: watch::channel(Cable::Whole).0 })
}

/// A server of a worker.
pub fn server(worker: Arc<FakeWorker>) -> End {
    let (send, mut receive) = mpsc::unbounded_channel();
    let incoming = futures_util::stream::poll_fn(move |cx| receive.poll_recv(cx));
    tokio::spawn(async move { drop(worker_service(worker, PATIENCE).serve_with_incoming(incoming).await) });
    End::Server(send)
}

const ADDRESS: &str = "10.0.0.2:2222";

/// Makes connections to the socket.
fn dial(socket: &Arc<Socket>) -> Dial {
    let socket = socket.clone();
    Box::new(move || {
        let socket = socket.clone();
        let connect = move |_: Uri| {
            let end = socket.connect();
            async move {
                if end.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut) {
                    tokio::time::sleep(PATIENCE).await;
                }
                end.map(TokioIo::new)
            }
        };
        let connector = Connector(connect);
        let endpoint = Endpoint::from_static("http://10.0.0.2:2222");
        Ok(tuned(endpoint, STREAM_WINDOW).connect_with_connector_lazy(connector))
    })
}

/// A client of the task at the socket.
pub fn client(socket: &Arc<Socket>) -> RemoteWorker {
    let task = "/job:ps/replica:0/task:1";
    let link = || Arc::new(Link::to_worker(task.to_string(), ADDRESS.to_string(), PATIENCE, dial(socket)));
    let worker = GrpcWorker { link: link(), stream_link: link(), accepts_ended_steps: AtomicBool::new(false) };
    RemoteWorker::new(Arc::new(worker), Arc::new(TokioRuntime::new(Handle::current())))
}

/// A client of the master at the socket.
pub fn master(socket: &Arc<Socket>) -> GrpcMaster {
    let link = Arc::new(Link::to_master(ADDRESS.to_string(), PATIENCE, dial(socket)));
    GrpcMaster { link, runtime: Handle::current(), options: GrpcMasterOptions::default() }
}

impl Socket {
    fn connect(&self) -> std::io::Result<DuplexStream> {
        let ((near, mut left), (mut right, far)) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
        match &mut *self.end.lock() {
            End::Server(server) => drop(server.send(Ok(far))),
            End::Silent(kept) => kept.push(far),
            End::Refused => return Err(ErrorKind::ConnectionRefused.into()),
            End::Lost => return Err(ErrorKind::TimedOut.into()),
        }
        let mut cable = self.cable.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut left, &mut right) => {}
                _ = cable.wait_for(|cable| *cable != Cable::Whole) => {}
            }
            let _ = cable.wait_for(|cable| *cable == Cable::Closed).await;
        });
        Ok(near)
    }
}

/// A function as a connector.
#[derive(Clone)]
struct Connector<F>(F);

impl<F, G> tonic::codegen::Service<Uri> for Connector<F>
where
    F: Fn(Uri) -> G,
    G: std::future::Future<Output = std::io::Result<TokioIo<DuplexStream>>> + Send + 'static,
{
    type Response = TokioIo<DuplexStream>;
    type Error = std::io::Error;
    type Future = std::pin::Pin<Box<G>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin((self.0)(uri))
    }
}
