//! A server in a process of its own, for as long as a test needs it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a server may take to say where it listens.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Serving {
    process: Child,
    pub(crate) url: String,
}

impl Serving {
    /// Starts a server that prints a line with its address first, on standard output or among its talk.
    pub(crate) fn start(command: &[String]) -> Self {
        let mut process = Command::new(&command[0])
            .args(&command[1..])
            .env_remove("MCP_PEERS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", command[0]));
        let (sender, receiver) = mpsc::channel();
        let (out, talk) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        let outputs: [Box<dyn std::io::Read + Send>; 2] = [Box::new(out), Box::new(talk)];
        for output in outputs {
            let sender = sender.clone();
            // Read to the end, so that nobody is held up by a full pipe.
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        drop(sender);
        let mut talk = String::new();
        let url = loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok(line) => match address(&line) {
                    Some(url) => break url,
                    None => talk = talk + &line + "\n",
                },
                Err(_) => {
                    let _ = process.kill();
                    panic!("{} does not say where it listens:\n{talk}", command.join(" "));
                }
            }
        };
        // Whatever it says later is for nobody.
        std::thread::spawn(move || receiver.iter().for_each(drop));
        Self { process, url }
    }
}

/// The address of an endpoint within a line.
fn address(line: &str) -> Option<String> {
    let start = line.find("http://")?;
    let url = line[start..].split_whitespace().next()?;
    url.ends_with("/mcp").then(|| url.to_owned())
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
