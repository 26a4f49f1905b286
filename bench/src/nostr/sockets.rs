//! What carrying the frames of a call costs one end of a WebSocket on the loopback, without reading what is in them.

use std::{fs, io, sync::mpsc, thread};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, accept_async, client_async,
    tungstenite::{Message, Utf8Bytes},
};

use crate::Failure;

/// Calls whose frames travel together, as they do when so many are in flight.
const TOGETHER: usize = 64;

/// Frames of one call, by their lengths.
#[derive(Clone)]
pub struct Frames {
    pub received: Vec<usize>,
    pub sent: Vec<usize>,
}

/// CPU µs per call of the end that receives `received` and sends `sent`.
pub fn cost(frames: &Frames, calls: usize) -> Result<f64, Failure> {
    let (address, told) = mpsc::channel();
    let (near, far) = (frames.clone(), frames.clone());
    let provider = thread::spawn(move || end(Role::Client(told), &near.received, &near.sent, calls));
    let relay = thread::spawn(move || end(Role::Server(address), &far.sent, &far.received, calls));
    let gone = || Failure::from("a thread of the measurement ended");
    let spent = provider.join().map_err(|_| gone())?.map_err(|error| error.to_string())?;
    relay.join().map_err(|_| gone())?.map_err(|error| error.to_string())?;
    Ok(spent)
}

enum Role {
    /// Connects to the address that it is told; waits for frames first.
    Client(mpsc::Receiver<std::net::SocketAddr>),
    /// Sends frames first.
    Server(mpsc::Sender<std::net::SocketAddr>),
}

fn end(role: Role, receives: &[usize], sends: &[usize], calls: usize) -> io::Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let begins = matches!(role, Role::Server(_));
        let mut socket = open(role).await?;
        let texts: Vec<Utf8Bytes> = sends.iter().map(|length| "x".repeat(*length).into()).collect();
        let before = own_cpu()?;
        for round in 0..calls.div_ceil(TOGETHER) {
            if begins || round > 0 {
                send(&mut socket, &texts).await?;
            }
            for _ in 0..TOGETHER * receives.len() {
                socket.next().await.ok_or_else(|| io::Error::other("closed"))?.map_err(io::Error::other)?;
            }
        }
        if !begins {
            send(&mut socket, &texts).await?;
        }
        Ok((own_cpu()? - before) as f64 / 1e3 / (calls.div_ceil(TOGETHER) * TOGETHER) as f64)
    })
}

async fn send(socket: &mut WebSocketStream<TcpStream>, texts: &[Utf8Bytes]) -> io::Result<()> {
    for _ in 0..TOGETHER {
        for text in texts {
            socket.feed(Message::Text(text.clone())).await.map_err(io::Error::other)?;
        }
    }
    socket.flush().await.map_err(io::Error::other)
}

async fn open(role: Role) -> io::Result<WebSocketStream<TcpStream>> {
    match role {
        Role::Server(address) => {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            address.send(listener.local_addr()?).map_err(io::Error::other)?;
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            accept_async(stream).await.map_err(io::Error::other)
        }
        Role::Client(told) => {
            let address = told.recv().map_err(io::Error::other)?;
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (socket, _) = client_async(format!("ws://{address}"), stream).await.map_err(io::Error::other)?;
            Ok(socket)
        }
    }
}

/// Nanoseconds of CPU of the thread that asks.
fn own_cpu() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    text.split(' ').next().and_then(|field| field.parse().ok()).ok_or_else(|| io::Error::other("no schedstat"))
}
