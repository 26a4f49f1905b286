//! Being asked to end.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Hears SIGTERM and SIGINT, as often as they come.
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self { terminate: hear(SignalKind::terminate())?, interrupt: hear(SignalKind::interrupt())? })
    }

    /// Waits for the next time.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits for something to end by itself. Whoever asks again does not want to wait.
    pub(crate) async fn or<T>(&mut self, ending: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            ended = ending => Some(ended),
            () = self.asked() => None,
        }
    }
}

/// Hears one signal.
pub(crate) fn hear(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::unexpected("cannot listen for signals").because(&error))
}
