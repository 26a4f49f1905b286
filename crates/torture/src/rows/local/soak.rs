//! R31: a long time of ordinary work, with relays that come and go and tool servers that die: does anything grow?

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::super::{Row, Setting};
use crate::machine;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::desk::UNLIMITED;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::random::Random;
use crate::nostr_side::world::World;
use crate::score::Score;
use crate::stage::kill;

pub(super) const ROW: Row = Row::new("R31", "a long time of work, with relays and servers that fail", run).long();

const REMEMBERED: Duration = Duration::from_secs(35 * 60);

/// Calls in a second.
const PACE: u32 = 20;

/// The time after which everything that is kept for a while has been kept once: requests are remembered for half an hour.
fn warm_up(length: Duration) -> Duration {
    if length > REMEMBERED { REMEMBERED } else { length / 6 }
}

/// One look at the process.
struct Sample {
    seconds: f64,
    kib: f64,
    files: usize,
}

fn run(setting: Setting) -> Score {
    let length = Duration::from_secs(setting.choose(180, 3600));
    let (world, relay, steady) = (World::new(), FakeRelay::start(), FakeRelay::start());
    let provider = world.serve(&[&steady.url(), &relay.url()], &UNLIMITED);
    let pid = provider.process.pid();
    let mut customer = Customer::new(&steady.url(), &provider.pubkey);
    let mut random = Random::new(setting.seed);
    let (begun, mut samples, mut times, mut failed, mut sent) =
        (Instant::now(), Vec::new(), Vec::<(Duration, Duration)>::new(), 0_usize, 0_u32);
    let (mut deaths, mut outages) = (0_usize, 0_usize);
    let (mut next_death, mut next_outage, mut is_down) = (Duration::from_secs(20), Duration::from_secs(7), false);
    while begun.elapsed() < length {
        let call = Instant::now();
        let answers = customer.call("note", &json!({ "text": "x", "tag": (sent % 100).to_string() }));
        // A call that ran when the server was killed fails, as it should.
        failed += usize::from(answers.body()["isError"] == true);
        times.push((begun.elapsed(), call.elapsed()));
        sent += 1;
        let now = begun.elapsed();
        if now > next_death {
            kill(world.actor_pid(), Signal::KILL);
            deaths += 1;
            // Seldom enough that it is not left alone.
            next_death = now + Duration::from_secs(20 + u64::try_from(random.below(20)).unwrap());
        }
        if now > next_outage {
            if is_down {
                relay.come_back();
            } else {
                relay.stop();
            }
            outages += usize::from(!is_down);
            is_down = !is_down;
            next_outage = now + Duration::from_millis(500 + u64::try_from(random.below(8000)).unwrap());
        }
        if sent % (PACE * 2) == 0 {
            // What relays keep is not the product's.
            relay.forget();
            steady.forget();
            if sent % (PACE * 20) == 0 {
                // One who remembers everything becomes slow.
                customer = Customer::new(&steady.url(), &provider.pubkey);
            }
            let seconds = now.as_secs_f64();
            samples.push(Sample { seconds, kib: measure(machine::memory(pid)), files: machine::open_files(pid) });
        }
        std::thread::sleep((Duration::from_secs(1) / PACE * sent).saturating_sub(begun.elapsed()));
    }
    samples.retain(|sample| sample.seconds > warm_up(length).as_secs_f64());
    times.retain(|(at, _)| *at > warm_up(length));
    let mut score = Score::default();
    score.at_least("calls", f64::from(sent), length.as_secs_f64() * f64::from(PACE) * 0.5);
    score.at_most("calls that failed", failed, deaths);
    score.at_least("deaths of the server", deaths, 3_usize);
    score.at_least("outages of a relay", outages, 3_usize);
    let slope = slope(&samples) * 3600.0 / 1024.0;
    match setting.choose(false, true) {
        true => score.at_most("growth of memory MiB/h", slope, 1.0),
        false => score.tell("growth of memory MiB/h", slope),
    }
    let (first, last) = samples.split_at(samples.len() / 2);
    let most = |samples: &[Sample]| samples.iter().map(|sample| sample.files).max().unwrap_or(0);
    score.tell("open files before", most(first));
    score.at_most("open files after", most(last), most(first) + 2);
    let (first, last) = times.split_at(times.len() / 2);
    let (before, after) = (p99(first), p99(last));
    score.tell("p99 before ms", before.as_secs_f64() * 1000.0);
    // Flat within what a busy machine and a server that is being started again make of it.
    score.at_most("p99 after ms", after.as_secs_f64() * 1000.0, before.as_secs_f64() * 3000.0 + 500.0);
    score.tell("memory at the end MiB", samples.last().map_or(0.0, |sample| sample.kib / 1024.0));
    score
}

#[expect(clippy::cast_precision_loss, reason = "no process has that much memory")]
fn measure(count: u64) -> f64 {
    count as f64
}

/// How much the memory grows in a second: the line that is nearest to all samples.
fn slope(samples: &[Sample]) -> f64 {
    let count = measure(u64::try_from(samples.len()).unwrap_or(1)).max(1.0);
    let mean = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|sample| sample.seconds), mean(|sample| sample.kib));
    let covariance: f64 = samples.iter().map(|sample| (sample.seconds - x) * (sample.kib - y)).sum();
    let variance: f64 = samples.iter().map(|sample| (sample.seconds - x).powi(2)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

fn p99(times: &[(Duration, Duration)]) -> Duration {
    let mut times: Vec<Duration> = times.iter().map(|(_, time)| *time).collect();
    times.sort();
    times.get(times.len() * 99 / 100).copied().unwrap_or_default()
}
