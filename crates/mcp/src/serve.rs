//! A whole connection to one client: reads lines, keeps its session, writes what it says.

use crate::line::{self, LineReader};
use crate::outlet::outlet;
use crate::server::{Service, Session};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// How long a client may take to read the last answers after it has ended its input.
const LAST_READ: Duration = Duration::from_secs(10);

/// The two directions of a connection to one client.
pub struct Streams {
    pub reader: Pin<Box<dyn AsyncRead + Send>>,
    pub writer: Pin<Box<dyn AsyncWrite + Send>>,
    /// Resolves when nobody can read any more what is written.
    pub closed: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Streams")
    }
}

/// Serves one client until it ends its input, asks for `shutdown` or goes away.
pub async fn serve<S: Service>(service: Arc<S>, streams: Streams) -> io::Result<()> {
    let Streams { reader, writer, closed } = streams;
    let (outlet, drain) = outlet();
    let session = Session::new(service.clone(), outlet.clone());
    let mut pump = tokio::spawn(drain.pump(writer));
    let mut lines = LineReader::new(reader, line::DEFAULT_LIMIT);
    let read = async {
        while let Some(line) = lines.next().await? {
            session.receive(line, &outlet).await;
        }
        session.stop();
        session.hang_up();
        Ok::<(), io::Error>(())
    };
    let work = async {
        tokio::select! {
            biased;
            read = read => read?,
            () = session.drained() => return Ok::<(), io::Error>(()),
        }
        session.drained().await;
        Ok(())
    };
    let pumped = tokio::select! {
        result = work => {
            outlet.finish();
            // A client that has ended its input may still want to read, but not for ever.
            let pumped = tokio::time::timeout(LAST_READ, &mut pump).await;
            result.map(|()| pumped.unwrap_or(Ok(Ok(()))))
        }
        // The client no longer reads: there is nobody to work for.
        pumped = &mut pump => Ok(pumped),
        () = closed => {
            pump.abort();
            Ok(Ok(Ok(())))
        }
    };
    session.abandon();
    service.closed(session.peer());
    match pumped?.unwrap_or_else(|error| Err(io::Error::other(error))) {
        // It has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
