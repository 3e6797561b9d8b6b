//! When to stop: a signal, or the end of standard input.

use anyhow::{Context, Result};
use std::io::Read;
use std::sync::mpsc::{Receiver, channel};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What shells say of a program that was interrupted.
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

/// Hears of SIGTERM or SIGINT from now on. Whoever sends a second one does not want to wait: then the process ends.
pub fn on_signal() -> Result<Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("signals")?;
    // Here, not in the thread: a signal that comes next must not end the process.
    let mut signals = {
        let _inside = runtime.enter();
        signals().context("signals")?
    };
    let (tell, told) = channel();
    std::thread::Builder::new().name("flowgrid-signals".into()).spawn(move || {
        runtime.block_on(one_of(&mut signals));
        // Nobody listens any more if the program is ending already.
        let _ = tell.send(());
        runtime.block_on(one_of(&mut signals));
        std::process::exit(INTERRUPTED);
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
