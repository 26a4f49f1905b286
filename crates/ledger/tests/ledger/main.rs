//! The same cases for every ledger; and, for each, what only it has to withstand.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "children tell their parents, and what is skipped is said"
)]

mod cases;
mod child;
mod concurrency;
mod encrypted;
mod looking;
mod lost;
mod model;
mod place;
mod server;
mod sqlite_only;
mod steps;
mod workers;

/// One test for each case and each ledger.
macro_rules! on_both {
    ($($module:ident: $($name:ident),+;)+) => {
        mod on_sqlite {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    crate::$module::$name(&crate::place::Place::sqlite()).await;
                }
            )+)+
        }
        mod on_postgres {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    if let Some(place) = crate::place::Place::postgres() {
                        crate::$module::$name(&place).await;
                    }
                }
            )+)+
        }
    };
}

on_both! {
    cases: every_refusal_has_its_cause, a_refused_step_leaves_nothing_behind, a_job_is_kept_as_it_was_given,
        a_restart_loses_nothing, requests_are_recent_until_they_are_purged, purging_keeps_what_was_paid, what_was_paid_is_kept_longer,
        lapsed_quotes_are_found, the_status_adds_up, a_later_version_is_refused, answers_are_unsent_until_a_relay_has_them,
        one_bad_step_does_not_hurt_its_neighbours;
    looking: a_sound_ledger_has_no_findings_and_a_broken_one_does, what_is_exported_holds_no_secret;
    concurrency: credit_is_never_negative, a_hash_pays_for_one_job, a_coin_pays_for_one_job, free_calls_end,
        one_request_is_begun_once;
}
