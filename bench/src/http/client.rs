//! Clients that call `echo`, each over a connection of its own and one call at a time. Every answer must have the id of its
//! request and the text that was sent.

use std::{io, net::SocketAddr, time::Instant};

use super::{connection::Connection, subject::Era};

const TEXT: &str = "The quick brown fox jumps over the lazy dog.";

pub struct Clients(Vec<Client>);

struct Client {
    connection: Connection,
    /// The head of every request, up to the length of its body.
    head: String,
    era: Era,
    next: u64,
}

impl Clients {
    pub async fn open(address: SocketAddr, era: Era, number: usize) -> io::Result<Self> {
        let mut clients = Vec::with_capacity(number);
        for _ in 0..number {
            clients.push(Client::open(address, era).await?);
        }
        Ok(Self(clients))
    }

    /// Makes this many calls in all; returns the time of each in nanoseconds.
    pub async fn call(&mut self, calls: usize) -> io::Result<Vec<u64>> {
        let share = calls.div_ceil(self.0.len());
        let all = self.0.iter_mut().map(|client| client.call(share));
        let times = futures_util::future::try_join_all(all).await?;
        Ok(times.into_iter().flatten().collect())
    }
}

impl Client {
    async fn open(address: SocketAddr, era: Era) -> io::Result<Self> {
        let mut connection = Connection::open(address).await?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {}\r\n",
            era.version()
        );
        let head = match era {
            Era::Stateless => head + "Mcp-Method: tools/call\r\nMcp-Name: echo\r\n",
            Era::Sessions => {
                let params =
                    r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
                let body = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#);
                let (answer, _) = connection.ask(&request(&head, &body)).await?;
                let answer = String::from_utf8_lossy(answer).into_owned();
                let named = answer.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
                });
                let id = named.ok_or_else(|| io::Error::other(format!("no session: {answer}")))?;
                let head = format!("{head}Mcp-Session-Id: {id}\r\n");
                let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                connection.ask(&request(&head, body)).await?;
                head
            }
        };
        Ok(Self { connection, head, era, next: 1 })
    }

    async fn call(&mut self, calls: usize) -> io::Result<Vec<u64>> {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let id = self.next;
            self.next += 1;
            let meta = self.era.meta();
            let params = format!(r#"{{"name":"echo","arguments":{{"text":"{TEXT}"}}{meta}}}"#);
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
            let text = request(&self.head, &body);
            let begin = Instant::now();
            let (_, answer) = self.connection.ask(&text).await?;
            times.push(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
            let is_right = memchr::memmem::find(answer, TEXT.as_bytes()).is_some()
                && memchr::memmem::find(answer, format!("\"id\":{id}").as_bytes()).is_some();
            if !is_right {
                return Err(io::Error::other(format!("not the answer: {}", String::from_utf8_lossy(answer))));
            }
        }
        Ok(times)
    }
}

fn request(head: &str, body: &str) -> Vec<u8> {
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
