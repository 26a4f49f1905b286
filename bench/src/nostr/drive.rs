//! The customers of a provider: they make their requests, then send them with some in flight and match the answers.
//!
//! While the clock runs, nothing is parsed, verified or decrypted. A plain answer is matched by the customer in its `p` and
//! the request in its `e`; a sealed one shows only `p`, and each customer has one call in flight, so the events are
//! counted. What the answers say is checked afterwards.

use std::{collections::HashMap, time::Duration, time::Instant};

use memchr::memmem::{self, Finder};
use nostr::{
    event::{Event, UnsignedEvent},
    key::PublicKey,
};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::{
    floor::Sample,
    link::Link,
    sockets::Frames,
    wire::{Customer, Dialect, Privacy, Request, Wire},
};
use crate::Failure;

/// Customers as a rule, and so the most calls that can be in flight.
pub const CUSTOMERS: usize = 64;

/// One answer in so many is verified and compared after the clock stopped.
const SAMPLE: usize = 16;

/// How long a provider has to answer the handshake before it is asked again: it may not have subscribed yet.
const AGAIN: Duration = Duration::from_millis(500);

pub struct Session {
    link: Link,
    dialect: Dialect,
    provider: PublicKey,
    customers: Vec<Customer>,
    /// The place of each customer by its key.
    places: HashMap<String, usize>,
    /// The number of the next call; numbers never repeat in a session.
    number: usize,
}

/// Requests that are ready to be sent; call `n` belongs to customer `n % in_flight`.
pub struct Prepared {
    requests: Vec<Request>,
    in_flight: usize,
}

/// What a run gave: nanoseconds per call, and the frames of the sampled calls.
pub struct Run {
    pub latencies: Vec<u64>,
    pub elapsed: Duration,
    samples: Vec<Vec<Utf8Bytes>>,
}

impl Session {
    pub async fn open(relay: &str, dialect: Dialect, provider: &str, customers: usize) -> Result<Self, Failure> {
        let mut link = Link::open(relay).await?;
        let customers: Vec<_> = (0..customers).map(|_| Customer::generate()).collect();
        let places: HashMap<_, _> = customers.iter().map(|customer| customer.hex.clone()).zip(0..).collect();
        let keys: Vec<_> = places.keys().collect();
        link.subscribe("answers", &json!({ "kinds": dialect.answer_kinds(), "#p": keys })).await?;
        let provider = PublicKey::from_hex(provider)?;
        let mut session = Self { link, dialect, provider, customers, places, number: 1 };
        if dialect.wire == Wire::ContextVm {
            session.initialize().await?;
        }
        Ok(session)
    }

    /// The handshake of MCP, which ContextVM carries through: without it, the Rust SDK's server stops at the first call.
    async fn initialize(&mut self) -> Result<(), Failure> {
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "rialto-bench", "version": "1" } });
        let initialize = json!({ "jsonrpc": "2.0", "id": "initialize", "method": "initialize", "params": params });
        for _ in 0..20 {
            let (_, frame) = self.dialect.event(&self.customers[0], self.provider, &initialize)?;
            self.link.send(&frame).await?;
            while let Some(frame) = self.link.next_within(AGAIN).await? {
                if frame.starts_with("[\"EVENT\"") {
                    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                    let (_, frame) = self.dialect.event(&self.customers[0], self.provider, &initialized)?;
                    return self.link.send(&frame).await;
                }
            }
        }
        Err("no answer to initialize".into())
    }

    pub fn prepare(&mut self, calls: usize, in_flight: usize) -> Result<Prepared, Failure> {
        let in_flight = in_flight.min(self.customers.len());
        let first = self.number;
        self.number += calls;
        let requests = (0..calls)
            .map(|call| self.dialect.call(&self.customers[call % in_flight], self.provider, first + call))
            .collect::<Result<_, _>>()?;
        Ok(Prepared { requests, in_flight })
    }

    pub async fn run(&mut self, prepared: &Prepared) -> Result<Run, Failure> {
        let Prepared { requests, in_flight } = prepared;
        let calls = requests.len();
        // The frames are copied before the clock starts; sending them copies no more.
        let frames: Vec<Utf8Bytes> = requests.iter().map(|request| request.frame.as_str().into()).collect();
        let reader = Reader::new(self.dialect);
        let mut waiting: Vec<Waiting> = (0..*in_flight).map(Waiting::new).collect();
        let mut samples = vec![Vec::new(); calls.div_ceil(SAMPLE)];
        let mut latencies = Vec::with_capacity(calls);
        let begin = Instant::now();
        for (waiting, frame) in waiting.iter_mut().zip(&frames) {
            waiting.since = Instant::now();
            self.link.feed(frame.clone()).await?;
        }
        self.link.flush().await?;
        while latencies.len() < calls {
            let mut next = Some(self.link.next().await?);
            while let Some(frame) = next {
                if let Some(customer) = reader.customer(&frame)? {
                    let place = *self.places.get(customer).ok_or("an answer to somebody else")?;
                    let waiting = waiting.get_mut(place).ok_or("an answer that nobody waits for")?;
                    let request = requests.get(waiting.call).ok_or("an answer that nobody waits for")?;
                    let complete = reader.completes(&frame, &request.id, waiting)?;
                    if waiting.call % SAMPLE == 0 {
                        samples[waiting.call / SAMPLE].push(frame.clone());
                    }
                    if complete {
                        let now = Instant::now();
                        latencies.push(u64::try_from((now - waiting.since).as_nanos())?);
                        *waiting = Waiting { call: waiting.call + in_flight, events: 0, since: now };
                        if let Some(frame) = frames.get(waiting.call) {
                            self.link.feed(frame.clone()).await?;
                        }
                    }
                }
                next = self.link.arrived()?;
            }
            self.link.flush().await?;
        }
        Ok(Run { latencies, elapsed: begin.elapsed(), samples })
    }

    /// The events of the first call, as they are before they are sealed, and the lengths of its frames at the provider.
    pub fn sample(&self, prepared: &Prepared, run: &Run) -> Result<(Sample, Frames), Failure> {
        let frames = run.samples.first().ok_or("no sample")?;
        let (sent, customer) = (&prepared.requests[0], &self.customers[0]);
        let plain = Dialect { privacy: Privacy::Plain, ..self.dialect }.call(customer, self.provider, 1)?;
        let (_, request): (String, Value) = serde_json::from_str(&plain.frame)?;
        let answers = frames.iter().map(|frame| -> Result<_, Failure> {
            let answer = self.dialect.open(customer, frame)?;
            Ok(UnsignedEvent::from_json(answer.to_string())?)
        });
        let sample =
            Sample { request: Event::from_json(request.to_string())?, answers: answers.collect::<Result<_, _>>()? };
        let confirmation = format!("[\"OK\",\"{}\",true,\"\"]", sent.id).len();
        let received = [sent.frame.len()].into_iter().chain(frames.iter().map(|_| confirmation));
        Ok((sample, Frames { received: received.collect(), sent: frames.iter().map(|frame| frame.len()).collect() }))
    }

    /// Verifies and compares the sampled answers.
    pub fn verify(&self, prepared: &Prepared, run: &Run) -> Result<(), Failure> {
        for (frames, call) in run.samples.iter().zip((0..).step_by(SAMPLE)) {
            let customer = &self.customers[call % prepared.in_flight];
            self.dialect.check(customer, self.provider, &prepared.requests[call], frames)?;
        }
        Ok(())
    }
}

/// What a customer waits for.
struct Waiting {
    call: usize,
    /// Events that came for this call so far.
    events: usize,
    since: Instant,
}

impl Waiting {
    fn new(call: usize) -> Self {
        Self { call, events: 0, since: Instant::now() }
    }
}

/// Finds what matters in a frame. The content of an event has its quotes escaped, so these words are found in tags only.
struct Reader {
    dialect: Dialect,
    recipient: Finder<'static>,
    result: Finder<'static>,
}

impl Reader {
    fn new(dialect: Dialect) -> Self {
        let result = format!("\"kind\":{}", dialect.result_kind());
        Self { dialect, recipient: Finder::new("[\"p\",\""), result: Finder::new(&result).into_owned() }
    }

    /// Whom an event is for; nobody for what the relay itself says, unless it refuses something.
    fn customer<'a>(&self, frame: &'a str) -> Result<Option<&'a str>, Failure> {
        if frame.starts_with("[\"EVENT\"") {
            let begin = self.recipient.find(frame.as_bytes()).ok_or("an answer without p")? + 6;
            return Ok(Some(frame.get(begin..begin + 64).ok_or("an answer with a short p")?));
        }
        if frame.starts_with("[\"OK\"") && !frame.contains("true") {
            return Err(format!("the relay refused a request: {frame}").into());
        }
        Ok(None)
    }

    /// Whether a call is complete with this event.
    fn completes(&self, frame: &str, request: &str, waiting: &mut Waiting) -> Result<bool, Failure> {
        waiting.events += 1;
        if self.dialect.privacy == Privacy::Sealed {
            return Ok(waiting.events == self.dialect.answers());
        }
        if memmem::find(frame.as_bytes(), request.as_bytes()).is_none() {
            return Err(format!("an answer to something else: {frame}").into());
        }
        Ok(self.result.find(frame.as_bytes()).is_some())
    }
}
