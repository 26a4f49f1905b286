//! What every ledger does, one caller at a time.

use crate::place::Place;
use crate::steps::{begin, coin, commit, done, entry, free, go_on, id, msat, quote, refused, taken};
use rialto_ledger::job::{Money, Outcome, Refusal, Stage, Step};
use rialto_ledger::ledger::{Account, Error, Horizon, Ledger};
use std::sync::Arc;

/// A job 1 with hash 1, coin 1, 500 msat of credit left and one free call used; and a job 2 that has begun.
async fn two_jobs(ledger: &dyn Ledger) -> (u64, u64) {
    let mut step = begin(1, 1, Stage::Quoted);
    step.quote = Some(quote(Some(1), Money::Open));
    step.coins = vec![coin(1)];
    step.credit = entry(500);
    step.free_use = free(1);
    (taken(ledger, step).await, taken(ledger, begin(2, 1, Stage::Funded)).await)
}

/// Steps that are refused, and why.
fn wrong(first: u64, second: u64) -> Vec<(&'static str, Step, Refusal)> {
    let with = |change: &dyn Fn(&mut Step)| {
        let mut step = go_on(2, Stage::Funded, Stage::Running, second);
        step.quote = Some(quote(Some(2), Money::Ours));
        step.coins = vec![coin(2), coin(3)];
        step.credit = entry(-500);
        step.answers = Some(vec!["never".to_owned()]);
        change(&mut step);
        step
    };
    let mut anew = begin(3, 1, Stage::Done);
    anew.credit = entry(-501);
    anew.coins = vec![coin(9)];
    vec![
        ("known", begin(1, 5, Stage::Running), Refusal::Known(Stage::Quoted)),
        ("unknown job", go_on(99, Stage::Funded, Stage::Running, 1), Refusal::Moved),
        ("another stage", go_on(1, Stage::Funded, Stage::Running, first), Refusal::Moved),
        ("hash", with(&|step| step.quote = Some(quote(Some(1), Money::Ours))), Refusal::HashUsed),
        ("coin", with(&|step| step.coins.push(coin(1))), Refusal::CoinUsed),
        ("coin twice", with(&|step| step.coins.push(coin(2))), Refusal::CoinUsed),
        ("credit", with(&|step| step.credit = entry(-501)), Refusal::NoCredit),
        ("all credit there can be", with(&|step| step.credit = entry(i64::MAX)), Refusal::NoCredit),
        ("free", with(&|step| step.free_use = free(1)), Refusal::NoneFree),
        ("never free", with(&|step| step.free_use = free(0)), Refusal::NoneFree),
        ("a new job without credit", anew, Refusal::NoCredit),
    ]
}

pub(crate) async fn every_refusal_has_its_cause(place: &Place) {
    let ledger = place.open().await;
    let (first, second) = two_jobs(&*ledger).await;
    for (name, step, expected) in wrong(first, second) {
        assert_eq!(refused(&*ledger, step).await, expected, "{name}");
    }
    let stale = go_on(2, Stage::Funded, Stage::Running, second + 1);
    assert_eq!(refused(&*ledger, stale).await, Refusal::Moved);
    // The first thing that is wrong is the one that is told.
    let mut step = begin(1, 1, Stage::Done);
    step.credit = entry(-9999);
    step.coins = vec![coin(1)];
    assert_eq!(refused(&*ledger, step).await, Refusal::Known(Stage::Quoted));
    // In one commit, each counts on its own and sees what was before it.
    let mut use_coin = begin(4, 1, Stage::Funded);
    use_coin.coins = vec![coin(4)];
    let mut again = begin(5, 1, Stage::Funded);
    again.coins = vec![coin(4)];
    let outcomes = ledger.commit(vec![use_coin, again, begin(4, 1, Stage::Done)]).await.unwrap();
    assert!(matches!(outcomes[0], Outcome::Taken { .. }));
    assert_eq!(outcomes[1], Outcome::Refused(Refusal::CoinUsed));
    assert_eq!(outcomes[2], Outcome::Refused(Refusal::Known(Stage::Funded)));
    assert_eq!(ledger.commit(Vec::new()).await.unwrap(), Vec::new());
}

pub(crate) async fn a_refused_step_leaves_nothing_behind(place: &Place) {
    let ledger = place.open().await;
    let (first, second) = two_jobs(&*ledger).await;
    let before = place.dump().await;
    for (name, step, _) in wrong(first, second) {
        refused(&*ledger, step).await;
        assert_eq!(place.dump().await, before, "{name}");
    }
    // An amount that the tables refuse is an error, and leaves nothing either.
    let mut step = go_on(2, Stage::Funded, Stage::Running, second);
    step.coins = vec![coin(2)];
    let mut impossible = quote(Some(2), Money::Ours);
    impossible.credit = msat(21_001);
    step.quote = Some(impossible);
    assert!(matches!(ledger.commit(vec![begin(8, 1, Stage::Done), step]).await, Err(Error::Broken(_))));
    assert_eq!(place.dump().await, before);
    // And it works on.
    taken(&*ledger, go_on(2, Stage::Funded, Stage::Running, second)).await;
}

pub(crate) async fn a_job_is_kept_as_it_was_given(place: &Place) {
    let ledger = place.open().await;
    let mut step = begin(1, 1, Stage::Quoted);
    let first = quote(Some(1), Money::Open);
    step.quote = Some(first.clone());
    let fence = taken(&*ledger, step).await;
    let ledger = place.reopen(ledger).await;
    let mut jobs = ledger.take_over(0).await.unwrap();
    let job = jobs.remove(0);
    assert!(jobs.is_empty());
    assert_eq!((job.id, job.customer, job.stage, job.came, job.at), (id(1), id(1), Stage::Quoted, 100, 100));
    assert_eq!((job.origin.as_str(), job.attempts), (r#"{"wire":"dvmcp"}"#, 0));
    assert_eq!(job.request.as_deref(), Some(r#"{"tool":"echo ü \u0000"}"#));
    assert_eq!(job.quote, Some(first));
    if place.is_shared() {
        assert_eq!(job.fence, fence + 1);
        assert_eq!(refused(&*ledger, go_on(1, Stage::Quoted, Stage::Done, fence)).await, Refusal::Moved);
    }
    // A quote takes the place of the one before; its old hash is free again.
    let mut second = quote(Some(2), Money::Ours);
    (second.preimage, second.token, second.invoice) = (None, None, None);
    let mut step = go_on(1, Stage::Quoted, Stage::Running, job.fence);
    step.quote = Some(second.clone());
    step.answers = Some(vec!["one".to_owned(), "\"two\" \\u0000\n".to_owned()]);
    let fence = taken(&*ledger, step).await;
    let ledger = place.reopen(ledger).await;
    let job = ledger.take_over(0).await.unwrap().remove(0);
    assert_eq!((job.quote, job.attempts, job.stage, job.at), (Some(second), 1, Stage::Running, 200));
    assert_eq!(job.answers, ["one", "\"two\" \\u0000\n"]);
    assert!(job.request.is_some());
    let fence = if place.is_shared() { fence + 1 } else { fence };
    taken(&*ledger, go_on(1, Stage::Running, Stage::Done, fence)).await;
    let ledger = place.reopen(ledger).await;
    let job = ledger.take_over(0).await.unwrap().remove(0);
    assert_eq!((job.stage, job.request, job.answers.len()), (Stage::Done, None, 2));
    let mut other = begin(2, 1, Stage::Quoted);
    other.quote = Some(quote(Some(1), Money::Open));
    taken(&*ledger, other).await;
}

pub(crate) async fn a_restart_loses_nothing(place: &Place) {
    let ledger = place.open().await;
    two_jobs(&*ledger).await;
    done(&*ledger, 3, 1, 300, Some(quote(Some(3), Money::Taken))).await;
    let (before, account, status) =
        (place.dump().await, ledger.account(id(1), "echo").await.unwrap(), ledger.status().await.unwrap());
    let ledger = place.reopen(ledger).await;
    assert_eq!(place.dump().await, before);
    assert_eq!(ledger.account(id(1), "echo").await.unwrap(), account);
    assert_eq!(ledger.status().await.unwrap(), status);
    assert_eq!(account, Account { credit: msat(500), free_uses: 1 });
    assert_eq!(ledger.account(id(1), "other").await.unwrap(), Account { credit: msat(500), free_uses: 0 });
    assert_eq!(ledger.account(id(2), "echo").await.unwrap(), Account::default());
}

pub(crate) async fn requests_are_recent_until_they_are_purged(place: &Place) {
    let ledger = place.open().await;
    taken(&*ledger, begin(1, 1, Stage::Funded)).await;
    done(&*ledger, 2, 1, 300, None).await;
    let mut seen = ledger.recent(0).await.unwrap();
    seen.sort_by_key(|seen| seen.id);
    let seen: Vec<_> = seen.iter().map(|seen| (seen.id, seen.stage, seen.at)).collect();
    assert_eq!(seen, [(id(1), Stage::Funded, 100), (id(2), Stage::Done, 300)]);
    assert_eq!(ledger.recent(300).await.unwrap().len(), 1);
    assert_eq!(ledger.recent(301).await.unwrap().len(), 0);
    assert!(!ledger.purge(all_before(300)).await.unwrap());
    assert_eq!(ledger.recent(0).await.unwrap().len(), 2);
    assert!(!ledger.purge(all_before(301)).await.unwrap());
    assert_eq!(ledger.recent(0).await.unwrap().len(), 1);
    // A request that was forgotten could come again; that is the provider's affair, who does not take old ones.
    taken(&*ledger, begin(2, 1, Stage::Done)).await;
}

fn all_before(time: u64) -> Horizon {
    Horizon { free: time, paid: time }
}

pub(crate) async fn what_was_paid_is_kept_longer(place: &Place) {
    let ledger = place.open().await;
    done(&*ledger, 1, 1, 300, Some(quote(Some(1), Money::Taken))).await;
    done(&*ledger, 2, 1, 300, None).await;
    assert!(!ledger.purge(Horizon { free: 301, paid: 300 }).await.unwrap());
    assert_eq!(ledger.recent(0).await.unwrap().iter().map(|seen| seen.id).collect::<Vec<_>>(), [id(1)]);
    assert_eq!(ledger.answers(id(1)).await.unwrap().len(), 2);
    assert!(!ledger.purge(Horizon { free: 0, paid: 301 }).await.unwrap());
    assert!(ledger.recent(0).await.unwrap().is_empty());
}

pub(crate) async fn purging_keeps_what_was_paid(place: &Place) {
    let ledger = place.open().await;
    let many = 700;
    let free: Vec<Step> = (1000..1000 + many).map(|job| begin(job, 1, Stage::Done)).collect();
    assert!(ledger.commit(free).await.unwrap().iter().all(|one| matches!(one, Outcome::Taken { .. })));
    done(&*ledger, 1, 1, 300, Some(quote(Some(1), Money::Taken))).await;
    done(&*ledger, 2, 1, 300, Some(quote(Some(2), Money::Lapsed))).await;
    done(&*ledger, 3, 1, 300, None).await;
    // Money that came without a quote is money all the same.
    let mut credited = begin(4, 1, Stage::Done);
    credited.credit = entry(10);
    taken(&*ledger, credited).await;
    assert!(ledger.purge(all_before(1000)).await.unwrap(), "there is more than is purged at once");
    assert!(!ledger.purge(all_before(1000)).await.unwrap());
    assert!(!ledger.purge(all_before(1000)).await.unwrap());
    let mut seen: Vec<_> = ledger.recent(0).await.unwrap().iter().map(|seen| seen.id).collect();
    seen.sort();
    assert_eq!(seen, [id(2)], "only what may still be paid is there");
    assert!(ledger.answers(id(1)).await.unwrap().is_empty());
    assert_eq!(ledger.answers(id(2)).await.unwrap().len(), 2);
    // What was paid is still known: as a request, as money, and by its hash.
    assert_eq!(refused(&*ledger, begin(1, 1, Stage::Done)).await, Refusal::Known(Stage::Done));
    let mut again = begin(5, 1, Stage::Quoted);
    again.quote = Some(quote(Some(1), Money::Open));
    assert_eq!(refused(&*ledger, again).await, Refusal::HashUsed);
    assert_eq!(ledger.status().await.unwrap().earned, msat(21_000));
    assert_eq!(ledger.account(id(1), "echo").await.unwrap().credit, msat(10));
}

pub(crate) async fn lapsed_quotes_are_found(place: &Place) {
    let ledger = place.open().await;
    for (job, money, expires) in
        [(1, Money::Lapsed, 1000), (2, Money::Lapsed, 999), (3, Money::Closed, 1000), (4, Money::Open, 1000)]
    {
        let mut step = begin(job, 1, Stage::Done);
        step.quote = Some(quote(Some(job), money));
        step.quote.as_mut().unwrap().expires = expires;
        taken(&*ledger, step).await;
    }
    let found = ledger.lapsed(1000).await.unwrap();
    assert_eq!(found.iter().map(|job| job.id).collect::<Vec<_>>(), [id(1)]);
    assert_eq!(ledger.lapsed(0).await.unwrap().len(), 2);
    // Money that comes late is noted once, even if two workers see it.
    let mut late = go_on(1, Stage::Done, Stage::Done, found[0].fence);
    late.quote = Some(quote(Some(1), Money::Credited));
    late.credit = entry(20_000);
    taken(&*ledger, late.clone()).await;
    assert_eq!(refused(&*ledger, late).await, Refusal::Moved);
    assert_eq!(ledger.account(id(1), "echo").await.unwrap().credit, msat(20_000));
}

pub(crate) async fn the_status_adds_up(place: &Place) {
    let ledger = place.open().await;
    two_jobs(&*ledger).await;
    done(&*ledger, 3, 2, 300, Some(quote(Some(3), Money::Taken))).await;
    done(&*ledger, 4, 2, 300, Some(quote(Some(4), Money::Taken))).await;
    for (job, money) in [(5, Money::Held), (6, Money::Ours), (7, Money::Taking), (8, Money::Returning)] {
        let mut step = begin(job, 1, Stage::Running);
        step.quote = Some(quote(Some(job), money));
        taken(&*ledger, step).await;
    }
    ledger.sent(vec![id(3), id(77), id(1)]).await.unwrap();
    let status = ledger.status().await.unwrap();
    let jobs = |stage| status.jobs.iter().find(|(known, _)| *known == stage).unwrap().1;
    assert_eq!((jobs(Stage::Quoted), jobs(Stage::Funded), jobs(Stage::Running), jobs(Stage::Done)), (1, 1, 4, 2));
    assert_eq!((jobs(Stage::Asking), status.unsent), (0, 1));
    assert_eq!((status.earned, status.owed, status.held), (msat(42_000), msat(500), msat(80_000)));
}

pub(crate) async fn a_later_version_is_refused(place: &Place) {
    let ledger = place.open().await;
    two_jobs(&*ledger).await;
    let ledger = place.reopen(ledger).await;
    drop(ledger);
    let before = place.dump().await;
    place.meddle("PRAGMA user_version = 4711", "UPDATE about SET version = 4711").await;
    let refused = place.try_open().await.unwrap_err();
    assert!(matches!(refused, Error::TooNew { found: 4711, .. }), "{refused}");
    assert_eq!(place.dump().await, before);
}

pub(crate) async fn answers_are_unsent_until_a_relay_has_them(place: &Place) {
    let ledger = place.open().await;
    done(&*ledger, 1, 1, 300, None).await;
    done(&*ledger, 2, 1, 400, None).await;
    done(&*ledger, 3, 1, 500, None).await;
    // These have nothing to say.
    taken(&*ledger, begin(4, 1, Stage::Done)).await;
    let fence = taken(&*ledger, begin(5, 1, Stage::Quoted)).await;
    taken(&*ledger, go_on(5, Stage::Quoted, Stage::Done, fence)).await;
    ledger.sent(vec![id(3)]).await.unwrap();
    assert_eq!(ledger.status().await.unwrap().unsent, 2);
    let ledger = place.reopen(ledger).await;
    let left = ledger.take_over(400).await.unwrap();
    assert_eq!(left.iter().map(|job| job.id).collect::<Vec<_>>(), [id(2)]);
    assert_eq!(left[0].answers, ["answer 2", "status"]);
    assert_eq!(ledger.answers(id(1)).await.unwrap(), ["answer 1", "status"]);
    assert!(ledger.answers(id(99)).await.unwrap().is_empty());
}

pub(crate) async fn one_bad_step_does_not_hurt_its_neighbours(place: &Place) {
    let ledger: Arc<dyn Ledger> = place.open().await;
    let tasks: Vec<_> = (0..40)
        .map(|job| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                let mut step = begin(job, 1, Stage::Funded);
                if job % 10 == 0 {
                    let mut impossible = quote(None, Money::Open);
                    impossible.credit = msat(21_001);
                    step.quote = Some(impossible);
                    assert!(matches!(ledger.commit(vec![step]).await, Err(Error::Broken(_))));
                } else {
                    assert!(matches!(commit(&*ledger, step).await, Outcome::Taken { .. }));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(ledger.recent(0).await.unwrap().len(), 36);
}
