//! The services of a task on one port.

mod before;
mod bulk;
pub(crate) mod inflate;
mod master;
pub(crate) mod recent;
mod run;
mod transfer;
mod worker;

use crate::client::link::LEAST_PATIENCE;
use before::Before;
use bulk::Steps;
use cluster::{Master, WorkerClient};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use proto::tensorflow::master_service_server::MasterServiceServer;
use proto::tensorflow::worker_service_server::WorkerServiceServer;
use recent::Recent;
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
use transfer::Transfers;

pub(crate) use bulk::{RUN_CALLABLE, RUN_STEP};
pub(crate) use run::{ENDED, RUN_GRAPH, TAKES_ENDED};
pub(crate) use transfer::{PATH, RAW, TAKES_SEVERAL, TOGETHER};

/// Messages may be as large as TensorFlow's.
pub(crate) const MAX_MESSAGE: usize = i32::MAX as usize;
/// How much may be under way to a server, and unread there, before it is acknowledged.
const WINDOW: u32 = 16 << 20;
/// The same to a client, which gets the tensors: between 8 and 64 MiB the speed differs by a tenth at most
/// (`examples/transfer_speed.rs` measures it), and the allocator keeps the memory of what was under way for a while, while
/// a ps that restores must not need 64 MB more than its variables, the program itself included.
pub(crate) const TENSOR_WINDOW: Window = Window { call: 8 << 20, all: 8 << 20, frame: FRAME };
/// The same for tensors that are read piece by piece: whoever writes them to a disk holds no more than this of each. All
/// together have no limit: those that nobody reads yet must not keep back the one that is read. A save of 400 MB takes
/// 0.45 s with 256 KiB, 0.35 with 512 KiB and 0.33 with 1 MiB, which needs 25 MB more where many tensors wait.
pub(crate) const PIECES_WINDOW: Window = Window { call: 512 << 10, all: i32::MAX as u32, frame: SMALL_FRAME };
/// Large frames: fewer headers for the same tensor; but a frame is passed on when all of it is here, so the copy into the
/// tensor should begin early, while it is in the cache. And a little less than a power of two: a frame is read with its
/// nine bytes of header into one block, and a block of a size just above one wastes a quarter or takes the allocator's
/// slow way. 16 MB in the same run: 60 KiB 4.2 ms, 120 3.7, 128 7.8, 240 4.1, 256 6.9, 480 3.3, 800 3.8, 1024 4.5.
pub(crate) const FRAME: u32 = 480 << 10;
/// Frames of what is read slowly: memory of this size is used again at once, where that of large frames stays with the
/// allocator for some milliseconds, in which many of them come.
pub(crate) const SMALL_FRAME: u32 = 60 << 10;
/// A caller from which nothing came for as long as a task may be silent is asked whether it is there, and has this many
/// times as long to answer before its calls are ended. Its transport answers, not its program, which may be busy; but
/// clients of TensorFlow 1.x look at an idle connection every five seconds only: so it is never less than twice that.
const CALLER_GRACE: u32 = 2;
const LEAST_GRACE: Duration = Duration::from_secs(10);

/// Memory of former tensors that no step took for so long goes back to the system,
const UNUSED: Duration = Duration::from_secs(10);
/// which is looked after this often.
const TIDY: Duration = Duration::from_secs(5);

/// How much may be under way: of one call, of all calls on a connection, and at once.
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
    /// Takes no more calls, lets running ones end, and returns when all have.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = self.done.await;
    }
}

/// Serves a task on a socket that listens already. A caller that is silent for longer than three times `patience` is
/// taken for gone, if its transport does not answer either.
pub async fn serve(master: Arc<Master>, listener: std::net::TcpListener, patience: Duration) -> Result<Serving> {
    let bad = |error: std::io::Error| unavailable!("Cannot serve: {error}");
    listener.set_nonblocking(true).map_err(bad)?;
    let listener = TcpListener::from_std(listener).map_err(bad)?;
    let local = listener.local_addr().map_err(bad)?;
    let (stop, stopped) = oneshot::channel();
    let worker = master.worker().client();
    let service = Arc::new(master::Service { master, recent: Recent::default() });
    let inner = MasterServiceServer::from_arc(service.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let services = worker_service(worker, patience).add_service(Before { bulk: Steps(service), inner });
    let incoming = TcpListenerStream::new(listener).inspect(|stream| {
        if let Ok(stream) = stream {
            let _ = stream.set_nodelay(true);
        }
    });
    let done = tokio::spawn(async move {
        let shutdown = async { drop(stopped.await) };
        let served = services.serve_with_incoming_shutdown(incoming, shutdown);
        if let Either::Left((Err(error), _)) = select(pin!(served), pin!(tidy())).await {
            tracing::error!("the server on {local} failed: {error}");
        }
    });
    Ok(Serving { address: local, stop: Some(stop), done })
}

/// Gives back the memory of tensors that no step wants any more, for ever.
async fn tidy() {
    loop {
        tokio::time::sleep(TIDY).await;
        let _ = tokio::task::spawn_blocking(|| Buffer::give_back(UNUSED)).await;
    }
}

/// A server of a worker's calls alone.
pub(crate) fn worker_service(client: Arc<dyn WorkerClient>, patience: Duration) -> Router {
    let recent = Arc::new(Recent::default());
    let patience = patience.max(LEAST_PATIENCE);
    let inner = WorkerServiceServer::new(worker::Service { client: client.clone(), recent: recent.clone() })
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .http2_keepalive_interval(Some(patience))
        .http2_keepalive_timeout(Some((patience * CALLER_GRACE).max(LEAST_GRACE)))
        .add_service(Before { bulk: Transfers { worker: client, recent }, inner })
}
