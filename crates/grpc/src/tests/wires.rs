//! A server and a client joined by pipes inside the process, so that time can be stepped.

use crate::client::channel::tuned;
use crate::client::link::{Dial, Link};
use crate::client::worker::GrpcWorker;
use crate::server::{STREAM_WINDOW, worker_service};
use crate::{GrpcPeers, MasterClient};
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

/// Answers RecvTensor when told to, and runs of graphs; knows nothing else but its status and which steps are over.
pub struct Shelf {
    pub tensor: watch::Sender<Option<Result<(Tensor, bool)>>>,
    /// What keys are answered with, if they are not answered with the one above.
    pub by_key: watch::Sender<HashMap<String, Result<(Tensor, bool)>>>,
    /// Steps that it was told are over.
    pub ended: Mutex<Vec<u64>>,
    devices: Vec<DeviceAttributes>,
}

impl Shelf {
    pub fn new() -> Arc<Shelf> {
        Shelf::with(Vec::new())
    }

    /// With a device of this name.
    pub fn of_device(name: &str) -> Arc<Shelf> {
        Shelf::with(vec![DeviceAttributes { name: name.to_string(), ..DeviceAttributes::default() }])
    }

    fn with(devices: Vec<DeviceAttributes>) -> Arc<Shelf> {
        let (tensor, by_key) = (watch::channel(None).0, watch::channel(HashMap::new()).0);
        Arc::new(Shelf { tensor, by_key, ended: Mutex::default(), devices })
    }
}

fn no<T>() -> Future<'static, T> {
    Box::pin(async { Err(unimplemented_op!("a shelf")) })
}

impl WorkerClient for Shelf {
    fn get_status(&self) -> Future<'_, Vec<DeviceAttributes>> {
        Box::pin(async { Ok(self.devices.clone()) })
    }
    fn create_session(&self, _: CreateWorkerSession) -> Future<'_, ()> {
        no()
    }
    fn delete_session(&self, _: String) -> Future<'_, ()> {
        no()
    }
    fn register_graph(&self, _: RegisterGraph) -> Future<'_, String> {
        no()
    }
    fn deregister_graph(&self, _: String, _: String) -> Future<'_, ()> {
        no()
    }
    fn run_graph(&self, request: RunGraph) -> Future<'_, RunGraphAnswer> {
        if request.recv.is_empty() {
            return Box::pin(async { Err(status::aborted!("an echo").derived()) });
        }
        // What is sent comes back after what is on the shelf.
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
        no()
    }
    fn recv_tensor(&self, request: RecvTensor) -> Future<'_, (Tensor, bool)> {
        if !request.key.is_empty() {
            let mut watch = self.by_key.subscribe();
            return Box::pin(async move {
                let found = watch.wait_for(|answers| answers.contains_key(&request.key)).await;
                found.map_or_else(|_| Err(unimplemented_op!("a shelf")), |answers| answers[&request.key].clone())
            });
        }
        let mut watch = self.tensor.subscribe();
        Box::pin(async move {
            match watch.wait_for(Option::is_some).await.map(|value| value.clone()) {
                Ok(Some(answer)) => answer,
                _ => no().await,
            }
        })
    }
}

/// Where a client's connections end.
pub enum End {
    /// At a server.
    Server(mpsc::UnboundedSender<std::io::Result<DuplexStream>>),
    /// At a task that was stopped: it takes bytes and says nothing. The pipes are kept open.
    Silent(Vec<DuplexStream>),
    /// Nowhere.
    Refused,
    /// Behind a network that is cut: after a while the attempt is given up.
    Lost,
}

/// What becomes of the connections there are.
#[derive(Clone, Copy, PartialEq)]
pub enum Cable {
    Whole,
    /// Nothing passes any more, and nobody is told.
    Cut,
    /// Both ends learn that it is over.
    Closed,
}

/// What the next connection meets, and the cable of those there are.
pub struct Socket {
    pub end: Mutex<End>,
    pub cable: watch::Sender<Cable>,
}

pub fn socket(end: End) -> Arc<Socket> {
    Arc::new(Socket { end: Mutex::new(end), cable: watch::channel(Cable::Whole).0 })
}

/// A server of the shelf.
pub fn server(shelf: Arc<Shelf>) -> End {
    let (send, mut receive) = mpsc::unbounded_channel();
    let incoming = futures_util::stream::poll_fn(move |cx| receive.poll_recv(cx));
    tokio::spawn(async move { drop(worker_service(shelf, PATIENCE).serve_with_incoming(incoming).await) });
    End::Server(send)
}

const ADDRESS: &str = "10.0.0.2:2222";

/// Makes connections that end at the socket.
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
    RemoteWorker::new(Arc::new(worker), Arc::new(GrpcPeers::new(Handle::current())))
}

/// A client of the master at the socket.
pub fn master(socket: &Arc<Socket>) -> MasterClient {
    MasterClient { link: Arc::new(Link::to_master(ADDRESS.to_string(), PATIENCE, dial(socket))) }
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
