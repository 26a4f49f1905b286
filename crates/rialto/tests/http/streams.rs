//! Streams of events in a session: what a client that loses its connection gets when it comes back.

use std::time::{Duration, Instant};

use torture::stage::Stage;
use torture::stage::door::{Door, SESSION_VERSIONS, Session, call};
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};
use torture::stage::server::{Life, Server};
use torture::stage::wire::{Event, Messages, PATIENCE};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_goes_on_while_its_client_is_away),
    case!(nothing_is_lost_or_repeated_however_often_a_stream_breaks),
    case!(a_stream_can_be_resumed_after_its_end),
    case!(news_wait_for_a_client_that_is_away),
    case!(a_second_stream_takes_over),
    case!(a_place_that_nobody_was_told_is_unknown),
    case!(what_is_no_longer_kept_is_not_passed_over_in_silence),
    case!(only_a_cancellation_cancels),
    case!(streams_begin_with_their_place_from_2025_11_25_on),
];

/// A server, and a session in front of it.
fn server(stage: &Stage) -> (Server, Door) {
    let server = stage.server("alpha");
    let door = Door::single(stage, &server);
    (server, door)
}

fn progress(life: &Life, request: &Line, number: usize) {
    let token = request.raw(&["params", "_meta", "progressToken"]);
    life.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{number}}}}}"#
    ));
}

/// Calls the tool, and opens the stream with a first sign of progress.
fn begin(session: &Session<'_>, life: &mut Life, id: &str) -> (Messages, Line) {
    let wire = session.send(call(id, "x", "1"));
    let request = life.take("tools/call");
    progress(life, &request, 0);
    (wire.messages(), request)
}

/// The next event that says something.
fn message(stream: &mut Messages) -> Event {
    loop {
        let event = stream.event().expect("the stream has ended");
        if !event.data.is_empty() {
            return event;
        }
    }
}

fn number(event: &Event) -> String {
    Line(event.data.clone()).raw(&["params", "progress"])
}

fn a_call_goes_on_while_its_client_is_away() {
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let life = life.get_or_insert_with(|| server.life());
        let (mut stream, request) = begin(&session, life, "1");
        let first = message(&mut stream);
        assert_eq!(number(&first), "0");
        drop(stream);
        // All of this happens while nobody listens.
        (1..=5).for_each(|number| progress(life, &request, number));
        life.reply(&request, r#""result":{"content":[],"n":1.0}"#);
        let mut stream = session.resume(&first.id.unwrap());
        assert_eq!(stream.head.status, 200);
        let numbers: Vec<_> = (1..=5).map(|_| number(&message(&mut stream))).collect();
        assert_eq!(numbers, ["1", "2", "3", "4", "5"]);
        let last = message(&mut stream);
        assert_eq!(last.data, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"n":1.0}}"#);
        assert_eq!(stream.event(), None);
    }
}

fn nothing_is_lost_or_repeated_however_often_a_stream_breaks() {
    const BREAKS: usize = 12;
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let session = door.session("2025-11-25");
    let mut life = server.life();
    let (mut stream, request) = begin(&session, &mut life, "1");
    let mut seen = Vec::new();
    for round in 1..=BREAKS {
        (0..3).for_each(|place| progress(&life, &request, 3 * round + place));
        // Reads some of what there is, and leaves without a word.
        let mut last = None;
        for _ in 0..=round % 3 {
            let event = message(&mut stream);
            seen.push(number(&event));
            last = event.id;
        }
        stream = session.resume(&last.unwrap());
    }
    life.reply(&request, r#""result":{"content":[]}"#);
    loop {
        let event = message(&mut stream);
        match Line(event.data.clone()).find(&["result"]) {
            None => seen.push(number(&event)),
            Some(_) => break,
        }
    }
    let expected: Vec<_> = std::iter::once(0).chain(3..3 * BREAKS + 3).map(|number| number.to_string()).collect();
    assert_eq!(seen, expected);
    assert_eq!(stream.event(), None);
}

fn a_stream_can_be_resumed_after_its_end() {
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let session = door.session("2025-06-18");
    let mut life = server.life();
    let (mut stream, request) = begin(&session, &mut life, "1");
    let first = message(&mut stream);
    life.reply(&request, r#""result":{"content":[]}"#);
    let last = message(&mut stream);
    assert_eq!(stream.event(), None);
    // Its end may not have arrived, so it is told again.
    for _ in 0..2 {
        let mut again = session.resume(first.id.as_ref().unwrap());
        assert_eq!(message(&mut again), last);
        assert_eq!(again.event(), None);
    }
    assert_eq!(session.resume(&last.id.unwrap()).event(), None);
    // Other calls have streams of their own.
    let (mut other, request) = begin(&session, &mut life, "2");
    let event = message(&mut other);
    assert_ne!(event.id, first.id);
    life.reply(&request, r#""result":{"content":[]}"#);
    assert_eq!(other.rest().len(), 1);
}

fn news_wait_for_a_client_that_is_away() {
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let life = life.get_or_insert_with(|| server.life());
        let log = |number: usize| {
            life.send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{number}}}}}"#
            ));
        };
        let data = |event: &Event| Line(event.data.clone()).raw(&["params", "data"]);
        let mut stream = session.stream();
        log(1);
        let first = message(&mut stream);
        assert_eq!(data(&first), "1");
        drop(stream);
        log(2);
        log(3);
        let mut stream = session.resume(&first.id.unwrap());
        assert_eq!(data(&message(&mut stream)), "2");
        assert_eq!(data(&message(&mut stream)), "3");
        drop(stream);
        log(4);
        // Even a client that does not say where it was misses nothing that nobody was told.
        let mut stream = session.stream();
        assert_eq!(data(&message(&mut stream)), "4");
        let ended = door.ask(&session.of(torture::stage::wire::Ask::bare("DELETE", "/mcp")));
        assert_eq!(ended.status(), 204);
    }
}

fn a_second_stream_takes_over() {
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let session = door.session("2025-11-25");
    let life = server.life();
    let mut first = session.stream();
    assert_eq!(first.event().unwrap().data, "");
    let mut second = session.stream();
    assert_eq!(second.event().unwrap().data, "");
    // The first one ends at once, not when something happens.
    let begun = Instant::now();
    assert_eq!(first.event(), None);
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
    life.send(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"news"}}"#);
    assert_eq!(second.take("notifications/message").raw(&["params", "data"]), "\"news\"");
}

fn a_place_that_nobody_was_told_is_unknown() {
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let (session, other) = (door.session("2025-06-18"), door.session("2025-06-18"));
    let mut life = server.life();
    let (mut stream, request) = begin(&session, &mut life, "1");
    let place = message(&mut stream).id.unwrap();
    for wrong in ["", "x", "1", "99-1", "1-x", "-1--1", "18446744073709551616-0", "1-99"] {
        assert_eq!(session.resume(wrong).head.status, 400, "{wrong:?}");
    }
    // Places are a session's own.
    assert_eq!(other.resume(&place).head.status, 400);
    // To be told so does not end the session, as 404 would.
    assert_eq!(session.ask("2", "ping", "{}").raw(&["result"]), "{}");
    life.reply(&request, r#""result":{"content":[]}"#);
    assert_eq!(stream.rest().len(), 1);
}

fn what_is_no_longer_kept_is_not_passed_over_in_silence() {
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let session = door.session("2025-06-18");
    let mut life = server.life();
    let (mut stream, request) = begin(&session, &mut life, "1");
    let first = message(&mut stream);
    // Larger than what is kept for a client that may come back.
    life.order(&format!(
        r#"b{} {{"jsonrpc":"2.0","id":{},"result":{{"content":[],"long":"|"}}}}"#,
        3 * 1024 * 1024,
        request.id()
    ));
    assert!(message(&mut stream).data.len() > 3 * 1024 * 1024);
    let mut again = session.resume(&first.id.unwrap());
    // Either it is all there, or the client is told that it is not.
    match again.head.status {
        200 => assert!(message(&mut again).data.len() > 3 * 1024 * 1024),
        status => assert_eq!(status, 400),
    }
}

fn only_a_cancellation_cancels() {
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let life = life.get_or_insert_with(|| server.life());
        // One client leaves before it has heard anything, one in the middle of its stream.
        drop(session.send(call("1", "x", "1")));
        let unheard = life.take("tools/call");
        let (stream, heard) = begin(&session, life, "2");
        drop(stream);
        let wire = session.send(call("3", "x", "1"));
        let cancelled = life.take("tools/call");
        session
            .tell(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"enough"}}"#);
        // What is cancelled is not answered, but its connection does not wait for ever.
        assert_eq!(wire.messages().rest(), []);
        let note = life.take("notifications/cancelled");
        assert_eq!(note.raw(&["params", "requestId"]), cancelled.id());
        assert_eq!(note.raw(&["params", "reason"]), "\"enough\"");
        // One of somebody else's requests cannot be cancelled.
        let wire = session.send(call("4", "x", "1"));
        let kept = life.take("tools/call");
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#;
        door.session(version).tell(cancel);
        for request in [&unheard, &heard, &kept] {
            life.reply(request, r#""result":{"content":[]}"#);
        }
        assert!(wire.messages().answer("4").find(&["result"]).is_some());
        assert_eq!(life.unclaimed().iter().filter(|line| line.is_method("notifications/cancelled")).count(), 0);
        let deadline = Instant::now() + PATIENCE;
        // Both others have been answered as well, whoever heard it: their ids are no longer in flight.
        while session.ask("2", "ping", "{}").raw(&["error", "message"]).contains("in flight") {
            assert!(Instant::now() < deadline, "it is still in flight");
        }
    }
}

fn streams_begin_with_their_place_from_2025_11_25_on() {
    let stage = Stage::new();
    let (server, door) = server(&stage);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let life = life.get_or_insert_with(|| server.life());
        let (mut stream, request) = begin(&session, life, "1");
        let first = stream.event().unwrap();
        assert!(first.id.is_some());
        assert_eq!(first.data.is_empty(), version == "2025-11-25", "{version}: {first:?}");
        if version == "2025-11-25" {
            // Whoever has heard nothing but its place gets everything.
            drop(stream);
            stream = session.resume(&first.id.unwrap());
            assert_eq!(number(&message(&mut stream)), "0");
        }
        life.reply(&request, r#""result":{"content":[]}"#);
        assert_eq!(stream.rest().len(), 1);
        let mut news = session.stream();
        life.send(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#);
        assert_eq!(news.event().unwrap().data.is_empty(), version == "2025-11-25", "{version}");
        assert_eq!(door.ask(&session.of(torture::stage::wire::Ask::bare("DELETE", "/mcp"))).status(), 204);
    }
}
