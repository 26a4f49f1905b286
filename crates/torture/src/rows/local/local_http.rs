//! R20: what a web page, a stranger and a vandal can do to the gateway's port, and whether a good client notices.

use std::io::Write as _;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::{Row, Setting};
use crate::machine;
use crate::score::Score;
use crate::stage::Stage;
use crate::stage::door::{Door, Place, Session, TOKEN, call, stateless};
use crate::stage::wire::{Ask, Wire};

pub(super) const ROW: Row = Row::new("R20", "the port of the gateway, and vandals at it", run);

/// Answers of the good client from which its times are taken.
const ROUNDS: usize = 100;

/// What an endless body may add to the memory of the gateway, in KiB: the longest message, and the copies of growing to it.
const MOST_GROWTH: u64 = 64 * 1024;

/// Times are judged against this where the code was optimised; its first part is that of the promise.
const TIMES_IDLE: f64 = 2.0;
const SLACK: Duration = Duration::from_millis(20);

fn run(setting: Setting) -> Score {
    // Hundreds of connections at once, each with two ends.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers("tools/call", r#""result":{"content":[]}"#);
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let mut score = Score::default();
    strangers(&door, &mut score);
    let idle = good_client(&session, "idle");

    let slow = slow_connections(&door, &session, setting.choose(100, 500));
    let (busy, endless) = endless_bodies(&door, &session, setting);
    score.none("failed calls of the good client", idle.failures + busy.failures);
    score.tell("p95 idle ms", idle.p95.as_secs_f64() * 1000.0);
    let most = idle.p95.mul_f64(TIMES_IDLE) + SLACK;
    if cfg!(debug_assertions) {
        score.tell("p95 among vandals ms", busy.p95.as_secs_f64() * 1000.0);
    } else {
        score.at_most("p95 among vandals ms", busy.p95.as_secs_f64() * 1000.0, most.as_secs_f64() * 1000.0);
    }
    score.exactly("endless bodies refused (413)", endless.refused, 3_usize);
    score.at_most("most of one that was read MiB", endless.taken >> 20, 64_usize);
    score.at_most("memory for them KiB", endless.growth, MOST_GROWTH);
    stalled(slow, setting, &mut score);
    // What was not finished must not have reached a server.
    score.none("calls of vandals that ran", stage.transcript.find("vandal").len());
    score
}

/// Whoever should not be let in, and what each is told.
fn strangers(door: &Place, score: &mut Score) {
    let harmless = || stateless("1", "tools/list", "");
    let port = door.address.port();
    let hosts = ["evil.example", "localhost.evil.example", "0.0.0.0", "2130706433", "[::1].evil.example:80"];
    let origins = ["null", "http://evil.example", "https://localhost.evil.example", "file://localhost"];
    let tokens =
        ["", "Bearer", "Bearer wrong", &format!("Bearer {}x", TOKEN), &format!("Basic {TOKEN}")].map(str::to_owned);
    let status = |ask: &Ask| door.ask(ask).status();
    let count = |wanted: u16, asks: Vec<Ask>| asks.iter().filter(|ask| status(ask) != wanted).count();
    score.none("bad hosts not refused (403)", count(403, hosts.map(|host| harmless().with("Host", host)).to_vec()));
    score.none(
        "bad origins not refused (403)",
        count(403, origins.map(|origin| harmless().with("Origin", origin)).to_vec()),
    );
    let unsigned = tokens.iter().map(|token| harmless().with("Authorization", token)).collect();
    score.none("bad tokens not refused (401)", count(401, unsigned));
    // A page that has its own name lead here, as with DNS rebinding, has the host and the origin of its own.
    let rebound = format!("rebind.example:{port}");
    let page = harmless().with("Host", &rebound).with("Origin", &format!("http://{rebound}"));
    score.none("rebound names not refused (403)", count(403, vec![page]));
    let good = [harmless().with("Host", &format!("localhost:{port}")), harmless()];
    score.none("good requests refused", count(200, good.to_vec()));
}

struct Times {
    p95: Duration,
    failures: usize,
}

/// What a well-behaved client sees.
fn good_client(session: &Session<'_>, name: &str) -> Times {
    let mut failures = 0;
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let begun = Instant::now();
            let answer = session.ask(&format!("\"{name} {round}\""), "tools/call", r#"{"name":"x","arguments":{}}"#);
            failures += usize::from(answer.find(&["result"]).is_none());
            begun.elapsed()
        })
        .collect();
    times.sort();
    Times { p95: times[ROUNDS * 95 / 100], failures }
}

/// Connections that stop in the middle: of nothing, of a header, of a body. With each, how far it got.
struct Slow {
    wires: Vec<(Wire, usize)>,
    text: Vec<u8>,
    head: usize,
}

fn slow_connections(door: &Place, session: &Session<'_>, count: usize) -> Slow {
    let ask = door.signed(&session.post(call("\"slow\"", "x", "\"vandal\"")));
    let (text, head) = (ask.bytes(), ask.head().len());
    let places = [0, 1, 10, head / 2, head - 2, head, head + 5];
    let wires = (0..count)
        .map(|number| {
            let (wire, place) = (door.connect(), places[number % places.len()]);
            wire.send(&text[..place]);
            (wire, place)
        })
        .collect();
    Slow { wires, text, head }
}

struct Endless {
    refused: usize,
    /// The most that was taken of one, in bytes.
    taken: usize,
    growth: u64,
}

/// Bodies without an end, of clients of every kind, while a good client works.
fn endless_bodies(door: &Door, session: &Session<'_>, setting: Setting) -> (Times, Endless) {
    let whole = setting.choose(50, 1024) << 20;
    let pid = door.gateway.pid();
    let chunk = [format!("{:x}\r\n", 1 << 20).as_bytes(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    let asks = [
        session.post("").with("Transfer-Encoding", "chunked"),
        Ask::post("").with("Transfer-Encoding", "chunked"),
        Ask::post("").with("MCP-Protocol-Version", "2026-07-28").with("Transfer-Encoding", "chunked"),
    ];
    machine::forget_peak(pid);
    let before = machine::memory(pid);
    let place: Place = **door;
    let (mut times, mut endless) = (None, Endless { refused: 0, taken: 0, growth: 0 });
    std::thread::scope(|scope| {
        let vandal = scope.spawn(|| {
            let mut seen = (0, 0);
            for ask in asks {
                let wire = place.connect();
                wire.send(place.signed(&ask).head().as_bytes());
                let mut sent = 0;
                while sent < whole && wire.try_send(&chunk).is_ok() {
                    sent += chunk.len();
                }
                seen.0 = seen.0.max(sent);
                seen.1 += usize::from(wire.answer().status() == 413);
            }
            seen
        });
        times = Some(good_client(session, "busy"));
        (endless.taken, endless.refused) = vandal.join().unwrap();
    });
    endless.growth = machine::peak_memory(pid).saturating_sub(before);
    (times.unwrap(), endless)
}

/// Those who have said who they are and stop in the body are told so; of the others at least the connection is ended.
fn stalled(slow: Slow, setting: Setting, score: &mut Score) {
    // One byte more now and then must not keep a head open for ever.
    let drip = |slow: &Slow| {
        for (wire, place) in slow.wires.iter().filter(|(_, place)| *place > 0 && *place < slow.head - 5) {
            let _ = wire.socket().write(&slow.text[*place..=*place]);
        }
    };
    drip(&slow);
    let (mut told, mut ended, mut bodies, mut open) = (0_usize, 0_usize, 0_usize, 0_usize);
    // A head has half a minute, which is more than the quick tests have.
    let patient = setting.choose(false, true);
    for (mut wire, place) in slow.wires.into_iter().filter(|(_, place)| patient || *place >= slow.head) {
        let is_body = place >= slow.head;
        bodies += usize::from(is_body);
        wire.socket().set_read_timeout(Some(Duration::from_secs(45))).unwrap();
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wire.next_answer().map(|answer| answer.status())
        })) {
            Ok(Some(408)) => told += 1,
            Ok(None) if !is_body => ended += 1,
            _ => open += 1,
        }
    }
    score.tell("stalled heads that were cut off", ended);
    score.at_least("stalled requests told so (408)", told, bodies);
    score.none("stalled connections still there", open);
}
