//! Connections to other tasks.

use crate::server::{FRAME, TENSOR_WINDOW};
use hyper_util::client::legacy::connect::HttpConnector;
use status::{Result, invalid};
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

/// A connection to a task, made at its first use: what is sent and not acknowledged for as long as `patience` breaks it.
pub(crate) fn connect_watched(address: &str, patience: Duration) -> Result<Channel> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(patience));
    connector.set_tcp_user_timeout(Some(patience));
    Ok(endpoint(address)?.connect_timeout(patience).connect_with_connector_lazy(connector))
}

fn endpoint(address: &str) -> Result<Endpoint> {
    let bad = |error: &dyn std::fmt::Display| invalid!("'{address}' is no address: {error}; expected host:port");
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| bad(&error))?;
    Ok(tuned(endpoint))
}

/// With the sizes that were measured to be best for tensors.
pub(crate) fn tuned(endpoint: Endpoint) -> Endpoint {
    endpoint
        .initial_stream_window_size(TENSOR_WINDOW)
        .initial_connection_window_size(TENSOR_WINDOW)
        .max_frame_size(FRAME)
}
