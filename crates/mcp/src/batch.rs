//! Where an answer goes: straight out, or into the array that answers a batch.

use crate::outlet::Outlet;
use std::sync::{Arc, Mutex, PoisonError};

/// The place of one answer.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Line(Outlet),
    Batch(Arc<Batch>, usize),
}

/// Gathers the answers to the members of a batch, in their order.
#[derive(Debug)]
pub(crate) struct Batch {
    state: Mutex<State>,
    outlet: Outlet,
}

#[derive(Debug)]
struct State {
    answers: Vec<Vec<u8>>,
    open: Vec<bool>,
    remaining: usize,
}

impl Batch {
    pub(crate) fn new(members: usize, outlet: Outlet) -> Arc<Self> {
        let state = State { answers: vec![Vec::new(); members], open: vec![true; members], remaining: members };
        Arc::new(Self { state: Mutex::new(state), outlet })
    }

    /// Closes one place, with an answer or (empty) without. Gives the whole array once the last place is closed and
    /// there is anything to say.
    fn close(&self, place: usize, answer: Vec<u8>) -> Option<Vec<u8>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut state.open[place]) {
            return None;
        }
        state.answers[place] = answer;
        state.remaining -= 1;
        if state.remaining > 0 {
            return None;
        }
        let answers: Vec<_> = state.answers.iter().filter(|answer| !answer.is_empty()).map(Vec::as_slice).collect();
        if answers.is_empty() {
            self.outlet.unanswered();
            return None;
        }
        let mut array = vec![b'['];
        array.extend_from_slice(&answers.join(&b','));
        array.push(b']');
        Some(array)
    }
}

impl Reply {
    /// Writes the answer, waiting for a slow client if need be.
    pub(crate) async fn send(&self, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Reply::Line(outlet) => outlet.answer(write).await,
            Reply::Batch(batch, place) => {
                if let Some(array) = batch.close(*place, written(write)) {
                    batch.outlet.answer(|out| out.extend_from_slice(&array)).await;
                }
            }
        }
    }

    /// Writes the answer where waiting is impossible.
    pub(crate) fn send_now(&self, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Reply::Line(outlet) => outlet.answer_now(write),
            Reply::Batch(batch, place) => {
                if let Some(array) = batch.close(*place, written(write)) {
                    batch.outlet.answer_now(|out| out.extend_from_slice(&array));
                }
            }
        }
    }

    /// There will be no answer.
    pub(crate) fn omit(&self) {
        match self {
            Reply::Line(outlet) => outlet.unanswered(),
            Reply::Batch(batch, place) => {
                if let Some(array) = batch.close(*place, Vec::new()) {
                    batch.outlet.answer_now(|out| out.extend_from_slice(&array));
                }
            }
        }
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut answer = Vec::new();
    write(&mut answer);
    answer
}
