//! Calls to a provider, over a real relay: what counts as an answer, and what does not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::{Keys, Tags, Timestamp};
use rialto_consumer::catalogue::Catalogue;
use rialto_consumer::error::Error;
use rialto_consumer::ongoing::{Ongoing, PATIENCE, Step};
use rialto_consumer::remote::{Remote, Terms};
use rialto_mcp::pending::Patience;
use rialto_relay::embedded::{Limits, Options, Relay};
use rialto_relay::seal;
use rialto_relay::sign::sign;
use rialto_wire::dvmcp::answer::{Outcome, Progress, Writer};
use rialto_wire::dvmcp::content::Execute;
use rialto_wire::failure::{Code, Failure};
use rialto_wire::request::Command;
use rialto_wire::request::{self, Body};
use rialto_wire::service::Way;
use std::borrow::Cow;
use std::time::Duration;
use support::{Provider, SOON, customer, open, relay, soon, tool};

async fn echo(remote: &Remote) -> Ongoing {
    execute(remote, PATIENCE).await
}

async fn execute(remote: &Remote, patience: Patience) -> Ongoing {
    let call = Execute { name: "echo", arguments: b"{\"text\":\"hi\"}", timeout: None, progress: true, meta: None };
    remote.execute(&call, patience).await.unwrap()
}

async fn world(terms: Terms) -> (Relay, Provider, Remote) {
    let relay = relay().await;
    let provider = Provider::start(&relay, vec![tool("echo", "says it again")]).await;
    provider.announce("test", true, Timestamp::now().as_secs()).await;
    let customer = customer(&[&relay]);
    let remote = open(&customer, &provider, terms).await;
    (relay, provider, remote)
}

#[tokio::test]
async fn a_call_is_answered_plain_and_sealed() {
    for (terms, way) in [(Terms::PLAIN, Way::PUBLIC), (Terms::PRIVATE, Way::SEALED)] {
        let (_relay, provider, remote) = world(terms).await;
        assert_eq!(remote.way(), way);
        assert_eq!(remote.name().as_deref(), Some("test"));
        let mut call = echo(&remote).await;
        let asked = provider.next().await;
        assert_eq!(asked.sealed, way == Way::SEALED);
        assert!(request::expiration(&asked.event).unwrap() > Timestamp::now());
        let Body::Execute(execution) = &asked.request.body else { panic!() };
        assert_eq!((execution.name.as_str(), execution.arguments.as_str()), ("echo", "{\"text\":\"hi\"}"));
        provider.progress(&asked, &Progress::Begun);
        let step = Progress::Step { params: "{\"progress\":1,\"total\":2}", words: Cow::Borrowed("half") };
        provider.progress(&asked, &step);
        let Step::Progress(progress) = soon(call.next()).await.unwrap() else { panic!() };
        assert_eq!((progress.progress, progress.message.as_deref()), (Some(1.0), Some("half")));
        provider.text(&asked, "hi");
        let reply = soon(call.finish()).await.unwrap();
        assert!(reply.content.contains("hi"), "{}", reply.content);
    }
}

#[tokio::test]
async fn equal_calls_at_once_are_two_calls() {
    let (_relay, provider, remote) = world(Terms::PLAIN).await;
    let (one, other) = (echo(&remote).await, echo(&remote).await);
    let (first, second) = (provider.next().await, provider.next().await);
    assert_ne!(first.id(), second.id());
    for asked in [&first, &second] {
        provider.text(asked, &asked.id().to_hex());
    }
    for call in [one, other] {
        let id = call.id().to_hex();
        assert!(soon(call.finish()).await.unwrap().content.contains(&id));
    }
}

#[tokio::test]
async fn what_strangers_sign_is_no_answer() {
    let (relay, provider, remote) = world(Terms::PLAIN).await;
    let stranger = Provider::start(&relay, vec![]).await;
    let call = echo(&remote).await;
    let asked = provider.next().await;
    for event in [
        stranger.writer().response(&asked.request.address, Outcome::Success, "{\"content\":[\"forged\"]}"),
        stranger.writer().feedback(&asked.request.address, &Progress::Failed { code: "busy", message: "x".into() }),
    ] {
        stranger.publish(event).await;
    }
    provider.text(&asked, "true");
    assert!(soon(call.finish()).await.unwrap().content.contains("true"));
}

#[tokio::test]
async fn a_seal_by_somebody_else_is_no_answer_and_neither_is_an_open_one() {
    let (relay, provider, remote) = world(Terms::PRIVATE).await;
    let stranger = Provider::start(&relay, vec![]).await;
    let call = echo(&remote).await;
    let asked = provider.next().await;
    let address = &asked.request.address;
    let forged = stranger.writer().response(address, Outcome::Success, "{\"content\":[\"forged\"]}");
    let wrap = seal::close(&stranger.keys, &address.customer, forged, Timestamp::now()).unwrap();
    assert_eq!(soon(stranger.pool.publish(&wrap).finished()).await.accepted, 1);
    // Even the provider's own word does not count when anybody could have read it.
    provider.publish(provider.writer().response(address, Outcome::Success, "{\"content\":[\"public\"]}")).await;
    provider.text(&asked, "true");
    assert!(soon(call.finish()).await.unwrap().content.contains("true"));
}

#[tokio::test]
async fn the_first_response_counts_whichever_relay_brings_it() {
    let (one, other) = (relay().await, relay().await);
    let provider = Provider::start(&one, vec![]).await;
    provider.pool.add(&support::url(&other));
    let customer = customer(&[&one, &other]);
    let remote = open(&customer, &provider, Terms::PLAIN).await;
    let call = echo(&remote).await;
    let asked = provider.next().await;
    provider.text(&asked, "first");
    provider.text(&asked, "second");
    assert!(soon(call.finish()).await.unwrap().content.contains("first"));
}

#[tokio::test]
async fn a_response_in_parts_is_put_together() {
    let (_relay, provider, remote) = world(Terms::PRIVATE).await;
    let whole = format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}", "ä".repeat(40_000));
    let call = echo(&remote).await;
    let asked = provider.next().await;
    assert!(asked.request.parts);
    let parts = provider.writer().parts(&asked.request.address, Outcome::Success, &whole, 24_000);
    assert!(parts.len() > 3);
    for part in parts.into_iter().rev() {
        provider.send(&asked, part);
    }
    assert_eq!(soon(call.finish()).await.unwrap().content, whole);

    let call = echo(&remote).await;
    let asked = provider.next().await;
    for mut part in provider.writer().parts(&asked.request.address, Outcome::Success, &whole, 24_000) {
        part.content = part.content.replace('ä', "ö");
        provider.send(&asked, part);
    }
    assert!(matches!(soon(call.finish()).await, Err(Error::Malformed(_))));
}

#[tokio::test]
async fn a_provider_that_does_not_name_its_customer_is_heard() {
    let (_relay, provider, remote) = world(Terms::PLAIN).await;
    let call = echo(&remote).await;
    let asked = provider.next().await;
    let mut response = provider.writer().response(&asked.request.address, Outcome::Success, "{\"content\":[]}");
    response.tags = Tags::from_list(response.tags.to_vec().into_iter().filter(|tag| tag.kind() != "p").collect());
    provider.publish(response).await;
    assert_eq!(soon(call.finish()).await.unwrap().content, "{\"content\":[]}");
}

#[tokio::test]
async fn feedback_alone_tells_an_error() {
    let (_relay, provider, remote) = world(Terms::PLAIN).await;
    let call = echo(&remote).await;
    let asked = provider.next().await;
    provider.progress(&asked, &Progress::Failed { code: "upstream_unavailable", message: "it died".into() });
    let Err(Error::Failed(failure)) = soon(call.finish()).await else { panic!() };
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("upstream_unavailable", "it died"));

    // With a response, the response counts.
    let call = echo(&remote).await;
    let asked = provider.next().await;
    for event in provider.writer().failure(&asked.request.address, &Failure::new(Code::InvalidInput, "no").at("/a")) {
        provider.send(&asked, event);
    }
    let failure = soon(call.finish()).await.unwrap().failure.unwrap();
    assert_eq!((failure.code.as_str(), failure.pointer.as_deref()), ("invalid_input", Some("/a")));
}

#[tokio::test]
async fn a_demand_for_payment_is_an_error_of_its_own() {
    let (_relay, provider, remote) = world(Terms::PLAIN).await;
    let call = echo(&remote).await;
    let asked = provider.next().await;
    let mut demand = provider.writer().feedback(&asked.request.address, &Progress::Begun);
    let tags = [vec!["status", "payment-required"], vec!["amount", "21", "lnbc210n1x"]];
    let mut all: Vec<_> = tags.into_iter().map(|tag| nostr::prelude::Tag::parse(tag).unwrap()).collect();
    all.extend(demand.tags.to_vec().into_iter().filter(|tag| tag.kind() != "status"));
    demand.tags = Tags::from_list(all);
    provider.publish(demand).await;
    let Err(Error::PaymentRequired(unpaid)) = soon(call.finish()).await else { panic!() };
    let demand = &unpaid.demand;
    assert_eq!((demand.amount.as_deref(), demand.invoice.as_deref()), (Some("21"), Some("lnbc210n1x")));
}

#[tokio::test]
async fn giving_up_tells_the_provider_to_stop() {
    for terms in [Terms::PLAIN, Terms::PRIVATE] {
        let (_relay, provider, remote) = world(terms).await;
        let call = echo(&remote).await;
        let asked = provider.next().await;
        drop(call);
        let cancel = provider.next().await;
        assert_eq!(cancel.request.body, Body::Cancel { target: asked.id() });
        assert_eq!(cancel.sealed, terms == Terms::PRIVATE);
    }
}

#[tokio::test]
async fn silence_ends_a_call_and_signs_of_life_extend_it() {
    let (_relay, provider, remote) = world(Terms::PLAIN).await;
    let silence = Duration::from_millis(1500);
    let call = execute(&remote, Patience { silence, total: SOON }).await;
    let asked = provider.next().await;
    assert!(matches!(soon(call.finish()).await, Err(Error::NoAnswer(_))));
    assert_eq!(provider.next().await.request.body, Body::Cancel { target: asked.id() });

    let mut call = execute(&remote, Patience { silence, total: SOON }).await;
    let asked = provider.next().await;
    for step in 0..4 {
        let params = format!("{{\"progress\":{step}}}");
        let began = std::time::Instant::now();
        provider.progress(&asked, &Progress::Step { params: &params, words: "".into() });
        assert!(matches!(soon(call.next()).await.unwrap(), Step::Progress(_)));
        assert!(began.elapsed() < silence, "the machine is too slow for this test");
    }
    assert!(matches!(soon(call.finish()).await, Err(Error::Silent(_))));

    let call = execute(&remote, Patience { silence: SOON, total: Duration::from_millis(300) }).await;
    assert!(matches!(soon(call.finish()).await, Err(Error::Overdue(_))));
}

#[tokio::test]
async fn a_sealed_answer_that_came_while_the_relay_was_away_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { store: Some(directory.path().join("events.jsonl")), ..Options::default() };
    let relay = Relay::start(options.clone()).await.unwrap();
    let address = relay.address();
    let provider = Provider::start(&relay, vec![tool("echo", "")]).await;
    let customer = customer(&[&relay]);
    let remote = open(&customer, &provider, Terms::PRIVATE).await;
    let call = echo(&remote).await;
    let asked = provider.next().await;
    relay.stop().await;
    // The answer reaches the relay before the customer does.
    let hidden = Relay::start(options.clone()).await.unwrap();
    let reply = provider.writer().response(&asked.request.address, Outcome::Success, "{\"content\":[]}");
    let wrap = seal::close(&provider.keys, &asked.request.address.customer, reply, Timestamp::now()).unwrap();
    let other = Provider::start(&hidden, vec![]).await;
    assert_eq!(soon(other.pool.publish(&wrap).finished()).await.accepted, 1);
    hidden.stop().await;
    let _relay = Relay::start(Options { listen: address, ..options }).await.unwrap();
    assert_eq!(soon(call.finish()).await.unwrap().content, "{\"content\":[]}");
}

#[tokio::test]
async fn a_relay_that_refuses_is_quoted_at_once() {
    let limits = Limits { min_pow_difficulty: 30, ..Limits::default() };
    let relay = Relay::start(Options { limits, ..Options::default() }).await.unwrap();
    let customer = customer(&[&relay]);
    let provider = Keys::generate().public_key();
    let target = rialto_consumer::reference::Target { provider, id: None, relays: vec![] };
    let remote = Remote::open(&customer, &target, Terms::PLAIN).await.unwrap();
    let Err(Error::Refused(complaints)) = soon(echo(&remote).await.finish()).await else { panic!() };
    assert!(complaints[0].relay.starts_with("ws://127.0.0.1") && complaints[0].words.contains("pow"), "{complaints:?}");
}

#[tokio::test]
async fn relays_that_are_away_are_named_at_once() {
    let gone = relay().await;
    let address = support::url(&gone);
    gone.stop().await;
    let customer = rialto_consumer::customer::Customer::start(
        Keys::generate(),
        &[address],
        rialto_consumer::announcements::Announcements::in_memory(),
    );
    let provider = Keys::generate().public_key();
    let target = rialto_consumer::reference::Target { provider, id: None, relays: vec![] };
    let began = std::time::Instant::now();
    let remote = Remote::open(&customer, &target, Terms::PLAIN).await.unwrap();
    let Err(Error::Unreachable(complaints)) = soon(echo(&remote).await.finish()).await else { panic!() };
    assert!(complaints[0].words.contains("refused"), "{complaints:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test]
async fn who_announced_nothing_is_spoken_to_in_private() {
    let relay = relay().await;
    let provider = Provider::start(&relay, vec![tool("echo", "")]).await;
    let customer = customer(&[&relay]);
    let remote = open(&customer, &provider, Terms::PRIVATE).await;
    assert_eq!(remote.way(), Way::SEALED);
    provider.announce("plain only", false, Timestamp::now().as_secs()).await;
    remote.look_up().await.unwrap();
    assert_eq!(remote.way(), Way::PUBLIC);
}

#[tokio::test]
async fn an_announcement_that_a_relay_brings_back_is_ignored() {
    let relay = relay().await;
    let other = support::relay().await;
    let provider = Provider::start(&relay, vec![]).await;
    let now = Timestamp::now().as_secs();
    let keys = provider.keys.clone();
    provider.announce("new", true, now).await;
    // Another relay still has the one from an hour ago.
    let late = Provider::with_keys(keys, &other, vec![]).await;
    late.announce("old", false, now - 3600).await;
    let customer = customer(&[&relay]);
    let remote = open(&customer, &provider, Terms::PRIVATE).await;
    assert_eq!(remote.name().as_deref(), Some("new"));
    customer.add_relay(&support::url(&other));
    let again = open(&customer, &provider, Terms::PRIVATE).await;
    assert_eq!(again.name().as_deref(), Some("new"));
    assert_eq!(again.way(), Way::SEALED);
}

#[tokio::test]
async fn lists_are_complete_and_what_a_provider_does_not_know_is_none() {
    let relay = relay().await;
    let tools = (0..60).map(|number| tool(&format!("tool_{number}"), &"d".repeat(200))).collect();
    let provider = Provider::start(&relay, tools).await;
    let customer = customer(&[&relay]);
    let remote = open(&customer, &provider, Terms::PLAIN).await;
    let catalogue = soon(Catalogue::fetch(&remote)).await.unwrap();
    assert_eq!(catalogue.tools.len(), 60);
    assert_eq!((catalogue.resources.len(), catalogue.templates.len(), catalogue.prompts.len()), (1, 0, 1));
}

#[tokio::test]
async fn an_error_instead_of_a_list_is_an_error() {
    let relay = relay().await;
    let keys = Keys::generate();
    let provider = Provider::start(&relay, vec![]).await;
    let customer = customer(&[&relay]);
    let remote = open(&customer, &provider, Terms::PLAIN).await;
    let call = remote.begin(Command::Complete, "{\"ref\":{},\"argument\":{}}".into(), PATIENCE).unwrap();
    let asked = provider.next().await;
    let writer = Writer { provider: provider.key(), relay: None, now: Timestamp::now() };
    let [_, response] = writer.failure(&asked.request.address, &Failure::new(Code::UnknownCommand, "what?"));
    let _ = sign(&keys, response.clone());
    provider.send(&asked, response);
    assert_eq!(soon(call.finish()).await.unwrap().failure.unwrap().code, "unknown_command");
}
