//! `rialto mcp context`, or a peer, as a child that is asked over its pipes.

use std::{
    io,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{BUDGET, QUERIES};
use crate::process::Process;

pub struct Server {
    pub process: Process,
    next: usize,
    buffer: Vec<u8>,
}

/// What some calls gave.
pub struct Round {
    pub cpu_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub per_second: f64,
}

fn broken(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

impl Server {
    /// Starts a command, with variables before it as `env` takes them.
    pub fn start(command: &[String]) -> io::Result<Self> {
        // A large cache may take long to be made ready for the first time.
        let words = ["env", "CONTEXT_TOOL_TIMEOUT_SECS=600"].map(ToOwned::to_owned);
        let process = Process::start(&[&words, command].concat())?;
        let mut server = Self { process, next: 1, buffer: Vec::new() };
        // A version without structured content: the text is what is compared.
        let client = json!({ "name": "rialto-bench", "version": "1" });
        let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        server.process.send(format!("{message}\n").as_bytes())?;
        server.line()?;
        Ok(server)
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let rest = self.buffer.split_off(searched + end + 1);
                return Ok(std::mem::replace(&mut self.buffer, rest));
            }
            searched = self.buffer.len();
            let mut block = [0; 1 << 16];
            let read = self.process.receive(&mut block)?;
            self.buffer.extend_from_slice(&block[..read]);
        }
    }

    fn ask(&mut self, tool: &str, query: &str) -> io::Result<usize> {
        let id = self.next;
        self.next += 1;
        let arguments = json!({ "cache": "c", "query": query, "budget": BUDGET });
        let params = json!({ "name": tool, "arguments": arguments });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        self.process.send(format!("{message}\n").as_bytes())?;
        Ok(id)
    }

    /// Asks one query; the text must be the expected one.
    pub fn check(&mut self, query: usize, expected: &[String]) -> io::Result<()> {
        self.ask("context.resolve", QUERIES[query])?;
        let line: Value = serde_json::from_slice(&self.line()?)?;
        if line["result"]["content"][0]["text"] != expected[query].as_str() {
            return Err(broken(format!("another answer than the command's to `{}`", QUERIES[query])));
        }
        Ok(())
    }

    /// Calls with so many in flight. Answers are compared afterwards, so that the driver leaves the machine to the server.
    pub fn calls(&mut self, calls: usize, in_flight: usize, expected: &[String]) -> io::Result<Round> {
        let first = self.next;
        let (cpu, begin) = (self.process.cpu()?, Instant::now());
        let mut sent = Vec::with_capacity(calls);
        let mut times = Vec::with_capacity(calls);
        let mut lines = Vec::with_capacity(calls);
        while lines.len() < calls {
            while sent.len() < calls && sent.len() - lines.len() < in_flight {
                sent.push(Instant::now());
                self.ask("context.resolve", QUERIES[self.next % QUERIES.len()])?;
            }
            let line = self.line()?;
            let id = id(&line).ok_or_else(|| broken("an answer without an id"))?;
            times.push(sent[id - first].elapsed());
            lines.push((id, line));
        }
        let wall = begin.elapsed();
        let cpu = self.process.cpu()? - cpu;
        let wanted: Vec<String> = expected.iter().map(|text| json!(text).to_string()).collect();
        for (id, line) in &lines {
            let text = &wanted[id % QUERIES.len()];
            if memchr::memmem::find(line, text.as_bytes()).is_none() {
                return Err(broken("another answer than the command's"));
            }
        }
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        Ok(Round {
            cpu_ms: per_call(cpu, calls),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            per_second: calls as f64 / wall.as_secs_f64(),
        })
    }

    /// CPU milliseconds per call with one query; each answer must name a document.
    pub fn only(&mut self, query: &str, named: &str, calls: usize) -> io::Result<f64> {
        let cpu = self.process.cpu()?;
        let mut answers = Vec::with_capacity(calls);
        for _ in 0..calls {
            self.ask("context.resolve", query)?;
            answers.push(self.line()?);
        }
        let cpu = self.process.cpu()? - cpu;
        for line in &answers {
            if memchr::memmem::find(line, named.as_bytes()).is_none() {
                return Err(broken(format!("an answer without {named}: {}", String::from_utf8_lossy(line))));
            }
        }
        Ok(per_call(cpu, calls))
    }

    /// CPU per call of `context.search`; each answer to a query must equal the first one.
    pub fn search(&mut self, calls: usize) -> io::Result<f64> {
        let mut first: Vec<Option<Value>> = vec![None; QUERIES.len()];
        let cpu = self.process.cpu()?;
        let mut answers = Vec::new();
        for call in 0..calls {
            self.ask("context.search", QUERIES[call % QUERIES.len()])?;
            answers.push(self.line()?);
        }
        let cpu = self.process.cpu()? - cpu;
        for (call, line) in answers.iter().enumerate() {
            let result = serde_json::from_slice::<Value>(line)?["result"].take();
            let known = first[call % QUERIES.len()].get_or_insert_with(|| result.clone());
            if *known != result || result["isError"] == true || result.is_null() {
                return Err(broken("search gave another answer"));
            }
        }
        Ok(per_call(cpu, calls))
    }
}

fn per_call(cpu: Duration, calls: usize) -> f64 {
    cpu.as_secs_f64() * 1e3 / calls.max(1) as f64
}

fn id(line: &[u8]) -> Option<usize> {
    let digits = line.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}
