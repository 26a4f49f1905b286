//! Tries one relay out: can we connect, write, and read back what we wrote?

use crate::information::Limits;
use crate::pool::{Arrival, Options, Pool, Watch};
use crate::sign::sign;
use crate::status::State;
use crate::verdict::Verdict;
use nostr::prelude::{Filter, Keys, Kind, RelayUrl, UnsignedEvent};
use std::time::Duration;
use tokio::time::Instant;

/// An ephemeral kind: relays pass it on and keep nothing.
const PROBE: Kind = Kind::Custom(20_910);

/// What was found. Each step is only tried if the one before went well.
#[derive(Debug, Clone)]
pub struct Probe {
    pub connected: Result<Duration, String>,
    pub wrote: Option<Result<Duration, String>>,
    pub read_back: Option<Result<Duration, String>>,
    /// What it says about its limits, if anything.
    pub limits: Option<Limits>,
    /// Seconds by which the relay's clock is ahead of ours.
    pub ahead: Option<i64>,
}

/// Tries a relay, each step for at most `patience`.
pub async fn probe(url: &RelayUrl, patience: Duration) -> Probe {
    let keys = Keys::generate();
    let options = Options { keys: Some(keys.clone()), give_up: patience, quorum: 1, ..Options::default() };
    let clock = options.clock.clone();
    let watch = Watch { filter: Filter::new().kind(PROBE).author(keys.public_key()), spread: Duration::from_secs(60) };
    let began = Instant::now();
    let (pool, mut arrivals) = Pool::start(std::slice::from_ref(url), vec![watch], options);
    let asked = tokio::time::timeout(patience, Limits::ask_with_date(url)).await;
    let (limits, date) = asked.ok().and_then(Result::ok).map_or((None, None), |(limits, date)| (Some(limits), date));
    let here = clock.now().as_secs();
    let ahead = date.map(|there| there.cast_signed() - here.cast_signed());
    let mut probe = Probe { connected: Err("no answer".into()), wrote: None, read_back: None, limits, ahead };
    let subscribed = async {
        loop {
            match arrivals.recv().await {
                Some(Arrival::Subscribed { .. }) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    };
    let is_up = tokio::time::timeout(patience, subscribed).await.is_ok();
    let status = pool.status().into_iter().next();
    probe.connected = match status.as_ref().map(|status| &status.state) {
        _ if is_up => Ok(began.elapsed()),
        Some(State::Down { reason, .. }) => Err(reason.clone()),
        Some(State::Connected) => {
            let complaint = status.as_ref().and_then(|status| status.complaint.clone());
            Err(complaint.unwrap_or_else(|| "connected, but the subscription is not answered".into()))
        }
        _ => Err("no answer".into()),
    };
    if is_up {
        let event = sign(&keys, UnsignedEvent::new(keys.public_key(), clock.now(), PROBE, [], "probe"));
        let began = Instant::now();
        let publication = pool.publish(&event);
        let back = async {
            loop {
                match arrivals.recv().await {
                    Some(Arrival::Event { event: found, .. }) if found.id == event.id => return,
                    Some(_) => {}
                    None => std::future::pending().await,
                }
            }
        };
        let (written, back) =
            tokio::join!(tokio::time::timeout(patience, publication.finished()), tokio::time::timeout(patience, back));
        let read = began.elapsed();
        let verdict = written.ok().and_then(|report| report.verdicts.into_iter().next()).map(|(_, verdict)| verdict);
        probe.wrote = Some(match verdict {
            Some(Verdict::Accepted) => Ok(status_latency(&pool).unwrap_or(read)),
            Some(Verdict::Refused(words) | Verdict::GaveUp(words)) => Err(words),
            Some(Verdict::Work { message, .. }) => Err(message),
            Some(Verdict::Stopped) => Err("we stopped".to_owned()),
            Some(Verdict::TooLarge { limit }) => Err(format!("it takes no more than {limit} bytes")),
            None => Err("not acknowledged".into()),
        });
        probe.read_back = Some(back.map(|()| read).map_err(|_| "it did not come back".into()));
    }
    pool.stop(Duration::ZERO).await;
    probe
}

fn status_latency(pool: &Pool) -> Option<Duration> {
    pool.status().first().and_then(|status| status.latency)
}

#[cfg(test)]
mod tests {
    use super::probe;
    use crate::embedded::{Options, Relay};
    use nostr::prelude::RelayUrl;
    use std::time::Duration;

    #[tokio::test]
    async fn a_good_relay_passes_and_none_fails() {
        let relay = Relay::start(Options::default()).await.unwrap();
        let url = RelayUrl::parse(&relay.url()).unwrap();
        let found = probe(&url, Duration::from_secs(10)).await;
        assert!(found.connected.is_ok() && found.limits.is_some(), "{found:?}");
        assert!(found.wrote.unwrap().is_ok());
        assert!(found.read_back.unwrap().is_ok());
        relay.stop().await;
        let found = probe(&url, Duration::from_secs(2)).await;
        assert!(found.connected.is_err() && found.wrote.is_none(), "{found:?}");
    }
}
