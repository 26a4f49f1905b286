//! When to end: on SIGTERM or SIGINT, or when standard input is closed, which tells a child that its parent is gone.

use std::io::{self, Read};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Begins to listen; what is returned ends when we should.
pub(crate) fn requested() -> io::Result<impl Future<Output = &'static str> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (closed, is_closed) = oneshot::channel();
    // A thread of its own, which the process does not wait for: a read of standard input cannot be called off.
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut ignored = [0; 1024];
        while matches!(io::stdin().lock().read(&mut ignored), Ok(1..)) {}
        // Nobody listens any more if we are ending already.
        let _ = closed.send(());
    })?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "told to end",
            _ = interrupt.recv() => "interrupted",
            _ = is_closed => "standard input is closed",
        }
    })
}
