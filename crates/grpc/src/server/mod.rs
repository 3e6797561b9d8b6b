//! The services of a task on one port.

mod master;
mod worker;

use cluster::Master;
use proto::tensorflow::master_service_server::MasterServiceServer;
use proto::tensorflow::worker_service_server::WorkerServiceServer;
use status::{Result, unavailable};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_stream::wrappers::TcpListenerStream;

/// Messages may be as large as TensorFlow's.
pub(crate) const MAX_MESSAGE: usize = i32::MAX as usize;
/// How much of a stream may be under way before it is acknowledged.
const WINDOW: u32 = 16 << 20;
/// Large frames: fewer headers for the same tensor.
const FRAME: u32 = 4 << 20;

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

/// Serves a task on an address, `host:port`; port 0 means any free one.
pub async fn serve(master: Arc<Master>, address: &str) -> Result<Serving> {
    let bad = |error: std::io::Error| unavailable!("Cannot listen on {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(bad)?;
    let local = listener.local_addr().map_err(bad)?;
    let (stop, stopped) = oneshot::channel();
    let worker = worker::Service { worker: master.worker().clone(), client: master.worker().client() };
    let services = tonic::transport::Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .add_service(
            MasterServiceServer::new(master::Service { master })
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE),
        )
        .add_service(
            WorkerServiceServer::new(worker)
                .max_decoding_message_size(MAX_MESSAGE)
                .max_encoding_message_size(MAX_MESSAGE),
        );
    use futures_util::StreamExt;
    let incoming = TcpListenerStream::new(listener).inspect(|stream| {
        if let Ok(stream) = stream {
            let _ = stream.set_nodelay(true);
        }
    });
    let done = tokio::spawn(async move {
        let shutdown = async { drop(stopped.await) };
        if let Err(error) = services.serve_with_incoming_shutdown(incoming, shutdown).await {
            tracing::error!("the server on {local} failed: {error}");
        }
    });
    Ok(Serving { address: local, stop: Some(stop), done })
}
