//! The life of one request as a pure function: what has happened, and what is to be done about it.
//!
//! ```text
//!            ┌──────── free ────────────────────┐
//! received ──┼─ asking ─▶ quoted ─┐             ▼
//!            ├─ receiving ────────┼─ funded ─▶ waiting ─▶ running ─▶ (settling) ─▶ done
//!            └─ from credit ──────┘
//! ```
//!
//! A priced tool runs when its money is here, and at no other time. Money that is held is taken before the answer is given;
//! money for a job that failed goes back, or is noted as credit. After a restart [`recover`] says what to do with whatever
//! is found: before money was attempted everything may be undone, after that the wallet is asked and the job goes forward.

use rialto_ledger::job::{Entry, Money, Quote, Rail, Stage};
use rialto_payment::amount::Msat;

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Understood and allowed; nothing was begun.
    Received,
    /// The wallet is being asked for an invoice.
    Asking,
    /// The customer was told the price.
    Quoted,
    /// A token is being changed.
    Receiving,
    /// Waits for a place to run.
    Waiting,
    Running,
    /// Answered; the money is being taken, or given back.
    Settling,
    Done,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It is known how the call is paid; `None` if it costs nothing.
    Priced(Option<Rail>),
    /// The invoice is there.
    Invoiced,
    /// There will be no invoice, or the token is worth nothing.
    Unpayable,
    /// The customer gives a token for what was quoted.
    Offered,
    /// Our own wallet has the money.
    Funded,
    /// The quote ran out unpaid.
    Lapsed,
    /// There is a place to run.
    Placed,
    /// The tool answered, or failed.
    Answered(Answered),
    /// What was held is taken, or given back.
    Moved,
    /// The customer does not want it any more.
    Cancelled,
}

/// How a job went, and how it is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    pub success: bool,
    pub rail: Option<Rail>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Nothing,
    /// Ask the wallet for an invoice.
    Ask,
    /// Change the token.
    Receive,
    /// Note that the credit is used, and queue.
    UseCredit,
    /// Tell the customer what it costs.
    Charge,
    /// Answer that it cannot be paid for.
    Refuse,
    /// Find a place to run.
    Queue,
    /// Note it, tell the customer, call the tool.
    Run,
    /// Note the answer and send it; what was paid is earned.
    Answer,
    /// Note the answer and send it; what was paid is credited.
    Credit,
    /// Note the answer, take what is held, then send it.
    Take,
    /// Note the answer, send it, give back what is held.
    Return,
    /// Note that the money has moved.
    Close,
    /// Answer that it was cancelled.
    Stop,
    /// Answer that the quote ran out.
    Expire,
}

/// One step.
pub fn step(state: State, happened: Happened) -> (State, Task) {
    use Happened::{Answered, Cancelled, Funded, Invoiced, Lapsed, Moved, Offered, Placed, Priced, Unpayable};
    match (state, happened) {
        (State::Received, Priced(None)) => (State::Waiting, Task::Queue),
        (State::Received, Priced(Some(Rail::Credit))) => (State::Waiting, Task::UseCredit),
        (State::Received, Priced(Some(Rail::Invoice | Rail::Hold))) => (State::Asking, Task::Ask),
        (State::Received, Priced(Some(Rail::Token))) | (State::Quoted, Offered) => (State::Receiving, Task::Receive),
        (State::Asking, Invoiced) => (State::Quoted, Task::Charge),
        (State::Asking | State::Receiving, Unpayable) => (State::Done, Task::Refuse),
        (State::Quoted | State::Receiving, Funded) => (State::Waiting, Task::Queue),
        (State::Quoted, Lapsed) => (State::Done, Task::Expire),
        (State::Waiting, Placed) => (State::Running, Task::Run),
        (State::Running, Answered(how)) => match (how.rail, how.success) {
            (Some(Rail::Hold), true) => (State::Settling, Task::Take),
            (Some(Rail::Hold), false) => (State::Settling, Task::Return),
            (None, _) | (_, true) => (State::Done, Task::Answer),
            (Some(_), false) => (State::Done, Task::Credit),
        },
        (State::Settling, Moved) => (State::Done, Task::Close),
        // A call that is paid for and runs is not stopped: its effects would be had for nothing. Who drives this asks only for
        // those that are free.
        (State::Received | State::Quoted | State::Waiting | State::Running, Cancelled) => (State::Done, Task::Stop),
        // Everything else comes too late or too early, and changes nothing.
        (state, _) => (state, Task::Nothing),
    }
}

/// Where the money of a job goes when it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    pub stage: Stage,
    pub money: Money,
    /// What the customer has with us again.
    pub credit: Option<Entry>,
}

/// What an answer means for the money, wherever that is by then.
pub fn close(quote: &Quote, success: bool) -> Closing {
    let credit = |amount: Msat, why| {
        let msat = i64::try_from(amount.get()).unwrap_or(i64::MAX);
        (msat > 0).then_some(Entry { msat, why })
    };
    let all = quote.paid.min(quote.due()).checked_add(quote.credit).unwrap_or(quote.paid);
    match (quote.money, success) {
        (Money::Held, true) => Closing { stage: Stage::Settling, money: Money::Taking, credit: None },
        (Money::Held, false) => {
            let credit = credit(quote.credit, "a call failed");
            Closing { stage: Stage::Settling, money: Money::Returning, credit }
        }
        (Money::Ours, true) => Closing { stage: Stage::Done, money: Money::Taken, credit: None },
        (Money::Ours, false) => {
            Closing { stage: Stage::Done, money: Money::Credited, credit: credit(all, "a call failed") }
        }
        // Nobody has paid. Whoever has seen an invoice may still do so.
        (Money::Open, _) => {
            let money = if quote.invoice.is_some() { Money::Lapsed } else { Money::Closed };
            Closing { stage: Stage::Done, money, credit: credit(quote.credit, "a quote was not paid") }
        }
        (money, _) => Closing { stage: Stage::Done, money, credit: None },
    }
}

/// What a restarted provider finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub stage: Stage,
    pub money: Option<Money>,
    /// The tool may be called again with the same effect, and has not been too often.
    pub repeatable: bool,
}

/// What to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The invoice for this hash may or may not exist: ask the wallet for it (again).
    Ask,
    /// Tell the customer what it costs once more, and watch.
    Watch,
    /// Change the token (again): what was changed already counts.
    Receive,
    /// Put it in the queue.
    Queue,
    /// Call the tool once more.
    Again,
    /// Nobody knows what the tool did: answer so, and give back or credit what was paid.
    Unknown,
    /// Take what is held, then send the answer.
    Take,
    /// Send the answer, give back what is held.
    Return,
    /// Send the answer.
    Send,
}

/// For everything that can be found there is one thing to do, and doing it again does no harm.
pub fn recover(found: Found) -> Recovery {
    match (found.stage, found.money) {
        (Stage::Asking, _) => Recovery::Ask,
        (Stage::Quoted, _) => Recovery::Watch,
        (Stage::Receiving, _) => Recovery::Receive,
        (Stage::Funded, _) => Recovery::Queue,
        (Stage::Running, _) if found.repeatable => Recovery::Again,
        (Stage::Running, _) => Recovery::Unknown,
        (Stage::Settling, Some(Money::Taking)) => Recovery::Take,
        (Stage::Settling, _) => Recovery::Return,
        (Stage::Done, _) => Recovery::Send,
    }
}

#[cfg(test)]
mod tests {
    use super::{Answered, Found, Happened, Recovery, State, Task, close, recover, step};
    use rialto_ledger::job::{Money, Quote, Rail, Stage};
    use rialto_payment::amount::Msat;

    #[test]
    fn nobody_is_charged_for_what_failed_and_nothing_is_credited_twice() {
        let sat = |sat| Msat::from_sat(sat).unwrap();
        let quote = |rail, money, credit, paid| Quote {
            tool: "t".into(),
            price: sat(10),
            credit: sat(credit),
            rail,
            money,
            hash: None,
            preimage: None,
            invoice: Some("lnbc".into()),
            token: None,
            expires: 0,
            paid: sat(paid),
        };
        for (rail, money, credit, paid, success, expected) in [
            (Rail::Hold, Money::Held, 0, 10, true, (Stage::Settling, Money::Taking, 0)),
            (Rail::Hold, Money::Held, 4, 6, false, (Stage::Settling, Money::Returning, 4)),
            (Rail::Invoice, Money::Ours, 0, 10, true, (Stage::Done, Money::Taken, 0)),
            (Rail::Invoice, Money::Ours, 4, 6, false, (Stage::Done, Money::Credited, 10)),
            // What was too much was credited when it came.
            (Rail::Token, Money::Ours, 0, 16, false, (Stage::Done, Money::Credited, 10)),
            (Rail::Token, Money::Ours, 2, 3, false, (Stage::Done, Money::Credited, 5)),
            (Rail::Credit, Money::Ours, 10, 0, false, (Stage::Done, Money::Credited, 10)),
            (Rail::Hold, Money::Open, 4, 0, false, (Stage::Done, Money::Lapsed, 4)),
        ] {
            let closing = close(&quote(rail, money, credit, paid), success);
            let credited = closing.credit.map_or(0, |entry| entry.msat / 1000);
            assert_eq!((closing.stage, closing.money, credited), expected, "{rail:?} {money:?} {success}");
        }
    }

    const STATES: [State; 8] = [
        State::Received,
        State::Asking,
        State::Quoted,
        State::Receiving,
        State::Waiting,
        State::Running,
        State::Settling,
        State::Done,
    ];

    fn answered(success: bool, rail: Option<Rail>) -> Happened {
        Happened::Answered(Answered { success, rail })
    }

    /// Everything that can happen to a job that is paid like this.
    fn all(rail: Option<Rail>) -> Vec<Happened> {
        vec![
            Happened::Priced(rail),
            Happened::Invoiced,
            Happened::Unpayable,
            Happened::Offered,
            Happened::Funded,
            Happened::Lapsed,
            Happened::Placed,
            answered(true, rail),
            answered(false, rail),
            Happened::Moved,
            Happened::Cancelled,
        ]
    }

    const RAILS: [Option<Rail>; 5] =
        [None, Some(Rail::Credit), Some(Rail::Invoice), Some(Rail::Hold), Some(Rail::Token)];

    fn run(path: &[Happened]) -> (State, Vec<Task>) {
        path.iter().fold((State::Received, Vec::new()), |(state, mut tasks), happened| {
            let (next, task) = step(state, *happened);
            tasks.push(task);
            (next, tasks)
        })
    }

    #[test]
    fn a_free_call_and_paid_ones() {
        let free = [Happened::Priced(None), Happened::Placed, answered(true, None)];
        assert_eq!(run(&free), (State::Done, vec![Task::Queue, Task::Run, Task::Answer]));
        let hold = Some(Rail::Hold);
        let paid = |success| {
            [Happened::Priced(hold), Happened::Invoiced, Happened::Funded, Happened::Placed, answered(success, hold)]
        };
        let tasks = |last| vec![Task::Ask, Task::Charge, Task::Queue, Task::Run, last];
        assert_eq!(run(&paid(true)), (State::Settling, tasks(Task::Take)));
        assert_eq!(run(&paid(false)), (State::Settling, tasks(Task::Return)));
        let token = Some(Rail::Token);
        let sent = [Happened::Priced(token), Happened::Funded, Happened::Placed, answered(false, token)];
        assert_eq!(run(&sent), (State::Done, vec![Task::Receive, Task::Queue, Task::Run, Task::Credit]));
    }

    /// Calls `look` with what was done in every sequence of seven happenings.
    fn every_life(rail: Option<Rail>, mut look: impl FnMut(&[Happened], &[Task])) {
        let all = all(rail);
        let (mut path, mut tasks) = (Vec::new(), Vec::new());
        fn go(
            all: &[Happened],
            state: State,
            path: &mut Vec<Happened>,
            tasks: &mut Vec<Task>,
            look: &mut impl FnMut(&[Happened], &[Task]),
        ) {
            if path.len() == 7 {
                return look(path, tasks);
            }
            for happened in all {
                let (next, task) = step(state, *happened);
                // What changes nothing leads to lives that are looked at anyway, but shorter.
                if task == Task::Nothing {
                    look(path, tasks);
                    continue;
                }
                path.push(*happened);
                tasks.push(task);
                go(all, next, path, tasks, look);
                path.pop();
                tasks.pop();
            }
        }
        go(&all, State::Received, &mut path, &mut tasks, &mut look);
    }

    #[test]
    fn whatever_happens_a_tool_runs_at_most_once_and_never_unpaid() {
        for rail in RAILS {
            every_life(rail, |path, tasks| {
                let runs = tasks.iter().filter(|task| **task == Task::Run).count();
                assert!(runs <= 1, "{path:?}");
                let is_paid = rail.is_none()
                    || tasks.contains(&Task::UseCredit)
                    || path
                        .iter()
                        .zip(tasks)
                        .any(|(happened, task)| *happened == Happened::Funded && *task == Task::Queue);
                assert!(runs == 0 || is_paid, "{rail:?} {path:?}");
                let ends = |task: &&Task| {
                    matches!(
                        task,
                        Task::Answer
                            | Task::Credit
                            | Task::Take
                            | Task::Return
                            | Task::Stop
                            | Task::Expire
                            | Task::Refuse
                    )
                };
                assert!(tasks.iter().filter(ends).count() <= 1, "one answer: {path:?}");
            });
        }
    }

    #[test]
    fn what_is_done_stays_done() {
        for rail in RAILS {
            for happened in all(rail) {
                assert_eq!(step(State::Done, happened), (State::Done, Task::Nothing));
            }
        }
        for state in STATES {
            assert_eq!(
                step(state, Happened::Priced(None)).0 == State::Waiting,
                matches!(state, State::Received | State::Waiting)
            );
        }
    }

    #[test]
    fn whatever_is_found_there_is_one_thing_to_do() {
        for stage in Stage::ALL {
            let monies = Money::ALL.iter().copied().map(Some).chain([None]);
            for money in monies {
                for repeatable in [false, true] {
                    let recovery = recover(Found { stage: *stage, money, repeatable });
                    // Only what has not been given out yet may run, and only what may be repeated runs twice.
                    assert_eq!(recovery == Recovery::Queue, *stage == Stage::Funded);
                    assert_eq!(recovery == Recovery::Again, *stage == Stage::Running && repeatable);
                    assert_eq!(recovery == Recovery::Unknown, *stage == Stage::Running && !repeatable);
                    assert_eq!(recovery == Recovery::Take, *stage == Stage::Settling && money == Some(Money::Taking));
                }
            }
        }
    }
}
