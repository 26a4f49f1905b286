//! A port of this machine where nobody should ever call.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::nostr_side::PATIENCE;
use crate::nostr_side::log::until;

/// Counts who comes, and sends all of them on if it is told where to.
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    count: Arc<AtomicUsize>,
    redirect: Arc<Mutex<Option<String>>>,
}

impl Listener {
    pub(super) fn start() -> Self {
        Self::on("127.0.0.1:0").unwrap()
    }

    /// At this address, if the machine has it.
    pub(super) fn on(address: &str) -> Option<Self> {
        let listener = TcpListener::bind(address).ok()?;
        let address = listener.local_addr().ok()?;
        let (count, redirect) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None::<String>)));
        let (counted, way) = (count.clone(), redirect.clone());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::SeqCst);
                let way = way.lock().unwrap().clone();
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    let head = match way {
                        Some(way) => format!("HTTP/1.1 302 Found\r\nLocation: {way}\r\n"),
                        None => "HTTP/1.1 200 OK\r\n".to_owned(),
                    };
                    let _ = stream
                        .write_all(format!("{head}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}").as_bytes());
                });
            }
        });
        Some(Self { address, count, redirect })
    }

    pub(super) fn redirects_to(&self, place: &str) {
        *self.redirect.lock().unwrap() = Some(place.to_owned());
    }

    /// Tries whether somebody who comes would be counted.
    pub(super) fn catches(&self) {
        let before = self.count();
        let near = SocketAddr::from(([127, 0, 0, 1], self.address.port()));
        let _ = std::net::TcpStream::connect(near).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n");
        until("a visitor is counted", PATIENCE, || self.count() > before);
    }

    /// How many came until now.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}
