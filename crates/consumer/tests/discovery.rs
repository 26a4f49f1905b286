//! Finding services by what they announce and by asking everybody.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::Timestamp;
use rialto_consumer::discovery::{Finding, Search, find};
use rialto_consumer::pins::Pins;
use rialto_consumer::reference::{Reference, Unknown};
use support::{Provider, customer, relay, soon, tool};

fn search(words: &str, check: bool) -> Search {
    Search { words: words.split_whitespace().map(Into::into).collect(), limit: 10, check }
}

fn names(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|finding| finding.name.as_str()).collect()
}

#[tokio::test]
async fn both_ways_of_finding_lead_to_one_list() {
    let relay = relay().await;
    let now = Timestamp::now().as_secs();
    let announced = Provider::start(&relay, vec![tool("rain", "how \u{1b}[31mmuch")]).await;
    announced.announce("Weather\u{202e}", true, now).await;
    let silent = Provider::start(&relay, vec![tool("find", "places in the rain")]).await;
    let gone = Provider::start(&relay, vec![tool("old", "")]).await;
    gone.announce("rain archive", true, now - 7200).await;
    gone.pool.stop(std::time::Duration::ZERO).await;
    let customer = customer(&[&relay]);

    let found = soon(find(&customer, &search("rain", true))).await.unwrap();
    assert_eq!(
        names(&found),
        ["rain archive", "Weather", ""],
        "a name counts more than a tool, a tool more than words"
    );
    let tools: Vec<_> = found[1].tools.iter().map(|tool| (tool.name.as_str(), tool.about.as_str())).collect();
    assert_eq!(tools, [("rain", "how much")]);
    assert!(found[1].latency.is_some() && found[1].last_seen.as_secs() >= now);
    assert_eq!((found[0].latency, found[0].last_seen.as_secs()), (None, now - 7200), "it does not answer any more");
    assert_eq!((found[2].provider, found[2].announced), (silent.key(), None), "it was found by asking everybody");

    let found = soon(find(&customer, &search("nothing like it", false))).await.unwrap();
    assert!(found.is_empty());
}

#[tokio::test]
async fn a_name_that_two_have_must_be_told_apart_by_key() {
    let relay = relay().await;
    let now = Timestamp::now().as_secs();
    let (one, other) = (Provider::start(&relay, vec![]).await, Provider::start(&relay, vec![]).await);
    one.announce("Weather", true, now).await;
    let customer = customer(&[&relay]);
    let named = Reference::parse("weather").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let pins = Pins::in_directory(directory.path());
    assert_eq!(soon(named.resolve(&customer, &pins)).await.unwrap().provider, one.key());
    other.announce("weather", true, now).await;
    let Err(Unknown::Ambiguous(candidates)) = soon(named.resolve(&customer, &pins)).await else { panic!() };
    assert_eq!(candidates.len(), 2);
    let links: Vec<_> = candidates.iter().map(|candidate| Reference::parse(&candidate.link).unwrap()).collect();
    assert!(links.iter().all(|link| link.relays().len() == 1));
    let Err(Unknown::NoSuchName { known }) = soon(Reference::parse("whether").unwrap().resolve(&customer, &pins)).await
    else {
        panic!()
    };
    assert_eq!(known.len(), 2);
}

#[tokio::test]
async fn a_name_that_was_used_stays_with_its_key_when_its_announcement_is_hidden() {
    let relay = relay().await;
    let now = Timestamp::now().as_secs();
    let (one, other) = (Provider::start(&relay, vec![]).await, Provider::start(&relay, vec![]).await);
    let customer = customer(&[&relay]);
    let directory = tempfile::tempdir().unwrap();
    let pins = Pins::in_directory(directory.path());
    let named = Reference::parse("weather").unwrap();
    pins.check(&one.key(), "Weather", &[], now).unwrap();
    other.announce("weather", true, now).await;
    assert_eq!(soon(named.resolve(&customer, &pins)).await.unwrap().provider, one.key());
    pins.forget(&one.key()).unwrap();
    assert_eq!(soon(named.resolve(&customer, &pins)).await.unwrap().provider, other.key());
    // Two that were used under one name stay two, also if relays bring only one of them.
    pins.check(&one.key(), "Weather", &[], now).unwrap();
    pins.check(&other.key(), "weather", &[], now).unwrap();
    assert!(matches!(soon(named.resolve(&customer, &pins)).await, Err(Unknown::Ambiguous(_))));
}

#[tokio::test]
async fn relays_that_are_away_are_an_error() {
    let gone = relay().await;
    let customer = customer(&[&gone]);
    gone.stop().await;
    assert!(soon(find(&customer, &search("", false))).await.is_err());
}
