//! When to stop: a signal, or the end of standard input.

use anyhow::{Context, Result};
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use tokio::signal::unix::{SignalKind, signal};

/// Ends at SIGTERM or SIGINT.
pub async fn signalled() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Hears of SIGTERM and SIGINT, for as long as this process lives.
pub fn on_signal() -> Result<Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("signals")?;
    let (tell, told) = channel();
    std::thread::Builder::new().name("flowgrid-signals".into()).spawn(move || {
        runtime.block_on(signalled());
        // Nobody listens any more if the program is ending already.
        let _ = tell.send(());
    })?;
    Ok(told)
}

/// Ends when standard input does: then whoever started this process is gone.
pub async fn input_ended() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let reader = std::thread::Builder::new().name("flowgrid-stdin".into()).spawn(move || {
        let mut rest = [0; 256];
        while std::io::stdin().read(&mut rest).is_ok_and(|count| count > 0) {}
        let _ = tell.send(());
    });
    if reader.is_err() || told.await.is_err() {
        std::future::pending().await
    }
}
