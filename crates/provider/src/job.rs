//! The life of one request as a pure function: what has happened, and what is to be done about it.
//!
//! ```text
//! received ─▶ priced ─▶ (quoted ─▶ funded) ─▶ running ─▶ done
//! ```
//!
//! A free tool goes from `received` to `running` at once. A priced one is quoted first, and runs when it is funded. Whoever
//! drives this keeps the record; after a restart, a request that was running is not run again: nobody knows what it did.

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Understood and allowed; nothing was begun.
    Received,
    /// The customer was told the price.
    Quoted,
    /// Waits for a place to run.
    Waiting,
    Running,
    Done,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// The price is known.
    Priced(Price),
    /// Our own wallet holds the money.
    Funded,
    /// The quote ran out unpaid.
    Lapsed,
    /// There is a place to run.
    Placed,
    /// The tool answered, or failed.
    Answered,
    /// The customer does not want it any more.
    Cancelled,
    /// The process was started again.
    Restarted,
}

/// What a call costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Price {
    Free,
    Sat(u64),
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Nothing,
    /// Make an invoice and tell the customer.
    Quote(u64),
    /// Find a place to run.
    Queue,
    /// Note it, tell the customer, call the tool.
    Run,
    /// Note the answer and send it.
    Answer,
    /// Stop the tool, and answer that it was cancelled.
    Stop,
    /// Answer that the quote ran out.
    Expire,
    /// Answer that nobody knows what happened.
    Unknown,
    /// Take the request as if it had just come.
    Again,
}

/// One step.
pub fn step(state: State, happened: Happened) -> (State, Task) {
    use Happened::{Answered, Cancelled, Funded, Lapsed, Placed, Priced, Restarted};
    match (state, happened) {
        (State::Received, Priced(Price::Free)) => (State::Waiting, Task::Queue),
        (State::Received, Priced(Price::Sat(sat))) => (State::Quoted, Task::Quote(sat)),
        (State::Quoted, Funded) => (State::Waiting, Task::Queue),
        (State::Quoted, Lapsed) => (State::Done, Task::Expire),
        (State::Waiting, Placed) => (State::Running, Task::Run),
        (State::Running, Answered) => (State::Done, Task::Answer),
        (State::Received | State::Quoted | State::Waiting | State::Running, Cancelled) => (State::Done, Task::Stop),
        (State::Received | State::Waiting, Restarted) => (State::Received, Task::Again),
        (State::Running, Restarted) => (State::Done, Task::Unknown),
        // Everything else comes too late or too early, and changes nothing.
        (state, _) => (state, Task::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::{Happened, Price, State, Task, step};

    const STATES: [State; 5] = [State::Received, State::Quoted, State::Waiting, State::Running, State::Done];
    const ALL: [Happened; 8] = [
        Happened::Priced(Price::Free),
        Happened::Priced(Price::Sat(5)),
        Happened::Funded,
        Happened::Lapsed,
        Happened::Placed,
        Happened::Answered,
        Happened::Cancelled,
        Happened::Restarted,
    ];

    #[test]
    fn a_free_call_and_a_paid_one() {
        let run = |path: &[Happened]| {
            path.iter().fold((State::Received, Vec::new()), |(state, mut tasks), happened| {
                let (next, task) = step(state, *happened);
                tasks.push(task);
                (next, tasks)
            })
        };
        let free = [Happened::Priced(Price::Free), Happened::Placed, Happened::Answered];
        assert_eq!(run(&free), (State::Done, vec![Task::Queue, Task::Run, Task::Answer]));
        let paid = [Happened::Priced(Price::Sat(5)), Happened::Funded, Happened::Placed, Happened::Answered];
        assert_eq!(run(&paid), (State::Done, vec![Task::Quote(5), Task::Queue, Task::Run, Task::Answer]));
        let unpaid = [Happened::Priced(Price::Sat(5)), Happened::Placed];
        assert_eq!(run(&unpaid), (State::Quoted, vec![Task::Quote(5), Task::Nothing]), "nothing runs unpaid");
    }

    #[test]
    fn whatever_happens_a_tool_runs_at_most_once() {
        // Every sequence of six happenings.
        for mut number in 0..ALL.len().pow(6) {
            let (mut state, mut runs) = (State::Received, 0);
            for _ in 0..6 {
                let (next, task) = step(state, ALL[number % ALL.len()]);
                number /= ALL.len();
                runs += usize::from(task == Task::Run);
                state = next;
            }
            assert!(runs <= 1, "{number}");
        }
    }

    #[test]
    fn what_is_done_stays_done() {
        for happened in ALL {
            assert_eq!(step(State::Done, happened), (State::Done, Task::Nothing));
        }
        for state in STATES {
            let (after, task) = step(state, Happened::Restarted);
            assert_eq!(step(after, Happened::Restarted).0, after, "{state:?}: recovery can be interrupted ({task:?})");
        }
    }
}
