//! Connections to other tasks.

use crate::client::coalesced_writes::CoalescedWrites;
use crate::server::Window;
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use status::{Result, invalid};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tonic::codegen::{BoxFuture, Service};
use tonic::transport::{Channel, Endpoint};

/// A connection to a task, which is made when it is first used. It breaks when sent bytes are not acknowledged within
/// `patience`.
pub(crate) fn connect_watched(address: &str, patience: Duration, window: Window) -> Result<Channel> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(patience));
    connector.set_tcp_user_timeout(Some(patience));
    Ok(endpoint(address, window)?.connect_timeout(patience).connect_with_connector_lazy(Connector(connector)))
}

/// Makes connections that combine small writes.
struct Connector(HttpConnector);

impl Service<Uri> for Connector {
    type Response = TokioIo<CoalescedWrites<TcpStream>>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let connecting = self.0.call(address);
        Box::pin(async move { Ok(TokioIo::new(CoalescedWrites::new(connecting.await?.into_inner()))) })
    }
}

fn endpoint(address: &str, window: Window) -> Result<Endpoint> {
    let bad = |error: &dyn std::fmt::Display| invalid!("'{address}' is not an address: {error}; expected host:port");
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| bad(&error))?;
    Ok(tuned(endpoint, window))
}

/// An endpoint with these windows.
pub(crate) fn tuned(endpoint: Endpoint, window: Window) -> Endpoint {
    endpoint
        .initial_stream_window_size(window.call)
        .initial_connection_window_size(window.all)
        .max_frame_size(window.frame)
}
