//! One wallet: a Lightning node that is used over Nostr Wallet Connect.
//!
//! Every cause of work is a variant of [`Cause`] and is dealt with to its end before the next, so there is nothing to lock.
//! A request whose outcome only the network knows, a payment or the taking of a held one, waits by its payment hash until
//! the node says how it ended.

mod answer;
mod book;
mod hold;
mod intake;
mod invoice;
mod lookup;
mod news;
mod pay;

use crate::connection::Connection;
use crate::nwc::{self, Failure, Ticket};
use book::{Book, Moment};
use intake::Intake;
use ldk_node::lightning_types::payment::PaymentHash;
use ldk_node::{Event as News, Node};
use nostr::prelude::{Event, Timestamp};
use nostr::types::url::RelayUrl;
use rialto_relay::pool::{Arrival, Options, Pool, Watch};
use rialto_relay::status::State;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the relay may take to let us in.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much older than its arrival a request may be: as long as a client may wait for a relay to come back.
const SPREAD: Duration = Duration::from_secs(60);

/// Why a wallet cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the relay {relay} cannot be used: {reason}\n\nhint: is it running? `rialto relay` starts one")]
    Relay { relay: String, reason: String },
}

/// What makes the loop turn.
enum Cause {
    Arrival(Arrival),
    News(Box<News>),
}

pub(crate) struct Wallet {
    name: &'static str,
    node: Arc<Node>,
    connection: Connection,
    /// What the wallet says about itself.
    info: Event,
    pool: Pool,
    arrivals: mpsc::Receiver<Arrival>,
    intake: Intake,
    book: Book,
    /// Requests that are answered when something becomes of the payment.
    waiting: HashMap<PaymentHash, Vec<Ticket>>,
}

impl Wallet {
    /// Connects to the relay and says what the wallet can do. From then on requests are heard.
    pub(crate) async fn open(
        name: &'static str,
        node: Arc<Node>,
        connection: Connection,
        relay: &RelayUrl,
    ) -> Result<Self, Error> {
        let watch = Watch { filter: nwc::filter(&connection), spread: SPREAD };
        let options = Options { keys: Some(connection.service.clone()), quorum: 1, ..Options::default() };
        let (pool, arrivals) = Pool::start(std::slice::from_ref(relay), vec![watch], options);
        let unusable = |reason: String| Error::Relay { relay: relay.to_string(), reason };
        let is_subscribed = pool.wait(PATIENCE, |relays| relays.iter().all(|one| one.state == State::Subscribed)).await;
        if !is_subscribed {
            let complaint = pool.status().into_iter().find_map(|one| match one.state {
                State::Down { reason, .. } => Some(reason),
                _ => one.complaint,
            });
            return Err(unusable(complaint.unwrap_or_else(|| "it does not answer".to_owned())));
        }
        let info = nwc::info(&connection);
        let publication = pool.publish(&info);
        let report = tokio::time::timeout(PATIENCE, publication.settled()).await;
        if !report.is_ok_and(|report| report.accepted > 0) {
            return Err(unusable("it does not take the wallet's info event".to_owned()));
        }
        let (intake, book, waiting) = (Intake::default(), Book::default(), HashMap::new());
        Ok(Self { name, node, connection, info, pool, arrivals, intake, book, waiting })
    }

    /// Serves for good.
    pub(crate) async fn serve(mut self) {
        let node = self.node.clone();
        loop {
            let cause = tokio::select! {
                arrival = self.arrivals.recv() => match arrival {
                    Some(arrival) => Cause::Arrival(arrival),
                    None => return,
                },
                news = node.next_event_async() => Cause::News(Box::new(news)),
            };
            self.turn(cause);
        }
    }

    fn turn(&mut self, cause: Cause) {
        match cause {
            Cause::Arrival(Arrival::Event { event, .. }) => self.arrived(&event),
            Cause::Arrival(Arrival::Repeat { id, .. }) => {
                if let Some(response) = self.intake.answer(&id) {
                    self.pool.publish(response);
                }
            }
            // A relay that was away may have forgotten us.
            Cause::Arrival(Arrival::Subscribed { .. }) => drop(self.pool.publish(&self.info)),
            Cause::News(news) => {
                self.learn(&news);
                // If this cannot be written down the same news comes again, and changes nothing then.
                let _ = self.node.event_handled();
            }
        }
    }

    fn arrived(&mut self, event: &Event) {
        let now = Timestamp::now();
        if !nwc::is_request(&self.connection, event, now) || !self.intake.take(event.created_at, event.id, now) {
            return;
        }
        match nwc::read(&self.connection, event) {
            Ok(request) => self.answer(&request),
            Err((ticket, failure)) => self.reply(&ticket, &Err(failure)),
        }
    }

    fn reply(&mut self, ticket: &Ticket, outcome: &Result<Value, Failure>) {
        let response = nwc::response(&self.connection, ticket, outcome).or_else(|| {
            let failure = Failure::new(nwc::Code::Internal, "the answer is too long to be sent");
            nwc::response(&self.connection, ticket, &Err(failure))
        });
        if let Some(response) = response {
            self.pool.publish(&response);
            self.intake.answered(ticket.id, response);
        }
    }

    /// Answers everybody who waits for what becomes of a payment.
    fn reply_waiting(&mut self, hash: &PaymentHash, outcome: &Result<Value, Failure>) {
        for ticket in self.waiting.remove(hash).unwrap_or_default() {
            self.reply(&ticket, outcome);
        }
    }

    fn moment(&self) -> Moment {
        Moment { now: Timestamp::now().as_secs(), height: self.node.status().current_best_block.height }
    }
}
