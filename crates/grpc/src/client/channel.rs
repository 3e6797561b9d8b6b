//! Connections to other tasks.

use status::{Result, invalid};
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

/// How much of a stream may be under way before it is acknowledged.
const WINDOW: u32 = 16 << 20;

/// A connection that is made at its first use and again when it breaks.
pub(crate) fn connect(address: &str) -> Result<Channel> {
    let bad = |error: &dyn std::fmt::Display| invalid!("'{address}' is no address: {error}; expected host:port");
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| bad(&error))?;
    Ok(endpoint
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .connect_timeout(Duration::from_secs(20))
        .connect_lazy())
}
