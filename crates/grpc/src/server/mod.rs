//! The services of a task on one port.

mod body;
mod dispatch;
pub(crate) mod inflate;
mod master;
mod recv_tensor;
mod run_graph;
mod worker;

use crate::client::link::LEAST_PATIENCE;
use cluster::{Master, RequestDedup, WorkerClient};
use dispatch::Dispatch;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use master::MasterMethods;
use status::{Result, unavailable};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tensor::Buffer;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::server::Router;
use worker::WorkerMethods;

/// The longest message, which is TensorFlow's limit.
pub(crate) const MAX_MESSAGE: usize = i32::MAX as usize;
/// The flow-control window of a server: how many bytes of requests may be sent to it before it has read them.
const WINDOW: u32 = 16 << 20;
/// The window of a client, which receives the tensors. Between 8 and 64 MiB the speed differs by a tenth at most
/// (`examples/transfer_speed.rs` measures it). The allocator keeps the memory of received bytes for a while, and a ps that
/// restores a checkpoint must not need 64 MB more than its variables, including the program itself.
pub(crate) const TENSOR_WINDOW: Window = Window { call: 8 << 20, all: 8 << 20, frame: FRAME };
/// The window of a client for tensors that are read in chunks: a task that writes them to a disk holds no more than this
/// of each. There is no limit for all of them together, because tensors that are not read yet must not block the one that
/// is read. A save of 400 MB takes 0.45 s with 256 KiB, 0.35 s with 512 KiB and 0.33 s with 1 MiB, which needs 25 MB more
/// where many tensors wait.
pub(crate) const STREAM_WINDOW: Window = Window { call: 512 << 10, all: i32::MAX as u32, frame: SMALL_FRAME };
/// The size of a frame. Large frames need fewer headers for the same tensor. But a frame is processed only when all of it
/// has arrived, and the copy into the tensor should start while the bytes are in the cache. The size is a little less than
/// a power of two: a frame is read into one block together with the nine bytes of its header, and a block just above a
/// power of two wastes a quarter of its memory or takes the allocator's slow path. 16 MB in the same run: 60 KiB 4.2 ms,
/// 120 3.7, 128 7.8, 240 4.1, 256 6.9, 480 3.3, 800 3.8, 1024 4.5.
pub(crate) const FRAME: u32 = 480 << 10;
/// The size of a frame of tensors that are read in chunks. The allocator reuses memory of this size at once; it keeps the
/// memory of large frames for some milliseconds, in which many of them arrive.
pub(crate) const SMALL_FRAME: u32 = 60 << 10;
/// After `patience` without a byte from a caller, the server sends it an HTTP/2 ping, and waits this many times as long for
/// the answer before it ends the calls. The caller's transport answers, not its program, which may be busy.
const CALLER_GRACE: u32 = 2;
/// The shortest wait for that answer: clients of TensorFlow 1.x read an idle connection only every five seconds.
const LEAST_GRACE: Duration = Duration::from_secs(10);

/// Free memory that no tensor has used for this time is returned to the system.
const UNUSED: Duration = Duration::from_secs(10);
/// The time between two checks for unused memory.
const RETURN_PERIOD: Duration = Duration::from_secs(5);

/// Flow-control windows in bytes: of one call and of all calls on a connection; and the size of a frame.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub call: u32,
    pub all: u32,
    pub frame: u32,
}

/// A server that is running.
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    done: tokio::task::JoinHandle<()>,
}

impl Serving {
    /// Accepts no more calls and waits until the running ones have ended.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = self.done.await;
    }
}

/// Serves a task on a socket that is listening. The calls of a caller end if nothing is heard of it, not even from its
/// transport, for three times `patience`.
pub async fn serve(master: Arc<Master>, listener: std::net::TcpListener, patience: Duration) -> Result<Serving> {
    let bad = |error: std::io::Error| unavailable!("Cannot serve: {error}");
    listener.set_nonblocking(true).map_err(bad)?;
    let listener = TcpListener::from_std(listener).map_err(bad)?;
    let local = listener.local_addr().map_err(bad)?;
    let (stop, stopped) = oneshot::channel();
    let worker = master.worker().client();
    let methods = MasterMethods { master, requests: Arc::new(RequestDedup::default()) };
    let services = worker_service(worker, patience).add_service(Dispatch(methods));
    let incoming = TcpListenerStream::new(listener).inspect(|stream| {
        if let Ok(stream) = stream {
            let _ = stream.set_nodelay(true);
        }
    });
    let done = tokio::spawn(async move {
        let shutdown = async { drop(stopped.await) };
        let served = services.serve_with_incoming_shutdown(incoming, shutdown);
        if let Either::Left((Err(error), _)) = select(pin!(served), pin!(return_memory())).await {
            tracing::error!("the server on {local} failed: {error}");
        }
    });
    Ok(Serving { address: local, stop: Some(stop), done })
}

/// Returns unused memory of tensors to the system, forever.
async fn return_memory() {
    loop {
        tokio::time::sleep(RETURN_PERIOD).await;
        let _ = tokio::task::spawn_blocking(|| Buffer::give_back(UNUSED)).await;
    }
}

/// A server with the WorkerService alone.
pub(crate) fn worker_service(client: Arc<dyn WorkerClient>, patience: Duration) -> Router {
    let patience = patience.max(LEAST_PATIENCE);
    tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .http2_keepalive_interval(Some(patience))
        .http2_keepalive_timeout(Some((patience * CALLER_GRACE).max(LEAST_GRACE)))
        .add_service(Dispatch(WorkerMethods(client)))
}
