//! When to stop: a signal, or the end of standard input.

use anyhow::{Context, Result};
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a program that Ctrl-C ended, 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Ends at SIGTERM or SIGINT.
pub async fn signalled() {
    match signals() {
        Ok(mut signals) => one_of(&mut signals).await,
        Err(_) => std::future::pending().await,
    }
}

fn signals() -> std::io::Result<(Signal, Signal)> {
    Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
}

async fn one_of((terminate, interrupt): &mut (Signal, Signal)) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Receives SIGTERM and SIGINT from now on. The first is sent to the channel, a second ends the process at once.
pub fn on_signal() -> Result<Receiver<()>> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot receive signals")?;
    // Registered here, not in the thread, so that a signal right after this function does not end the process.
    let mut signals = {
        let _inside = runtime.enter();
        signals().context("cannot receive signals")?
    };
    let (send, received) = channel();
    std::thread::Builder::new().name("flowgrid-signals".into()).spawn(move || {
        runtime.block_on(one_of(&mut signals));
        // The receiver is gone if the program is ending already.
        let _ = send.send(());
        runtime.block_on(one_of(&mut signals));
        std::process::exit(INTERRUPTED);
    })?;
    Ok(received)
}

/// Ends when standard input does, which happens when the process that started this one ends.
pub async fn input_ended() {
    let (send, received) = tokio::sync::oneshot::channel();
    let reader = std::thread::Builder::new().name("flowgrid-stdin".into()).spawn(move || {
        let mut rest = [0; 256];
        while std::io::stdin().read(&mut rest).is_ok_and(|count| count > 0) {}
        let _ = send.send(());
    });
    if reader.is_err() || received.await.is_err() {
        std::future::pending().await
    }
}
