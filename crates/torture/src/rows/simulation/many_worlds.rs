//! R30: the whole selling side in made-up worlds, one for each seed, with everything going wrong that can.

use crate::rows::{Row, Setting};
use crate::score::Score;
use crate::simulation::{Counts, Setup, simulate};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

pub(super) const ROW: Row = Row {
    // Ten thousand worlds take minutes, and an hour if nothing was optimised.
    limit: Duration::from_secs(2 * 60 * 60),
    ..Row::new("R30", "simulated worlds of 50 requests: faults, crashes, then calm", run)
};

const JOBS: usize = 50;

/// Worlds that are lived through a second time, to see whether they are the same.
const AGAIN: u64 = 10;

/// Lines of a history that are shown of a world in which a rule was broken.
const LINES: usize = 25;

fn run(setting: Setting) -> Score {
    let worlds: u64 = setting.choose(200, 10_000);
    let mut score = Score::default();
    let (mut broken, mut different, mut all) = (0_u64, 0_u64, Counts::default());
    let begun = used();
    for seed in setting.seed..setting.seed + worlds {
        let outcome = simulate(Setup { seed, jobs: JOBS, mistake: None });
        let counts = outcome.counts;
        all.crashes += counts.crashes + counts.stops;
        all.faults += counts.faults;
        all.runs += counts.runs;
        all.payments += counts.payments;
        all.answers += counts.answers;
        if let Some(complaint) = outcome.complaint {
            broken += 1;
            // The first says enough; the seeds of the others are enough to find them.
            let history = if broken == 1 { outcome.trace.last(LINES) } else { String::new() };
            if broken <= 20 {
                score.note(format!(
                    "seed {seed}: {complaint}\n{history}hint: `torture simulate --seed {seed} --trace` shows all of it"
                ));
            }
        }
        if seed < setting.seed + AGAIN {
            let again = simulate(Setup { seed, jobs: JOBS, mistake: None });
            different += u64::from(again.trace.hash() != outcome.trace.hash());
        }
    }
    let minutes = (used() - begun).as_secs_f64() / 60.0;
    score.none("rules broken", broken);
    score.none("seeds with two histories", different);
    score.tell("worlds", worlds);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let rate = (worlds + AGAIN) as f64 / minutes;
    // Without optimisation it says more about the compiler.
    if cfg!(debug_assertions) {
        score.tell("worlds a minute of one core", rate);
    } else {
        score.at_least("worlds a minute of one core", rate, 1_000.0);
    }
    score.tell("crashes and stops", all.crashes);
    score.tell("faults", all.faults);
    score.tell("runs", all.runs);
    score.tell("payments", all.payments);
    score.tell("answers", all.answers);
    score
}

/// What this thread has used of a core.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}
