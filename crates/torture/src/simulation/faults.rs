//! What goes wrong in one world, and how often. Not everything does in every world: what never happens together with something
//! else would hide what only happens alone.

use crate::nostr_side::random::Random;

/// Times in a thousand, but for crashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    /// In ten thousand calls of a port.
    pub(super) crash: u64,
    /// The operator stops and starts it.
    pub(super) stop: bool,
    /// A relay goes away for a while.
    pub(super) outage: bool,
    /// A relay is there and says nothing for a while.
    pub(super) mute: bool,
    /// An event is lost on its way to a relay, or by it.
    pub(super) lost: u64,
    /// An event is taken, and not acknowledged.
    pub(super) silent: u64,
    pub(super) refused: u64,
    pub(super) doubled: u64,
    /// A request that a relay has is not told until it is asked for.
    pub(super) withheld: u64,
    /// Everything takes up to so many milliseconds.
    pub(super) delay: u64,
    pub(super) wallet_away: u64,
    /// The wallet does it, or does not, and does not answer.
    pub(super) wallet_silent: u64,
    /// Money that is held goes back by itself.
    pub(super) called_back: u64,
    /// The disk takes nothing.
    pub(super) disk: u64,
}

impl Faults {
    pub(super) fn none() -> Self {
        Self {
            crash: 0,
            stop: false,
            outage: false,
            mute: false,
            lost: 0,
            silent: 0,
            refused: 0,
            doubled: 0,
            withheld: 0,
            delay: 50,
            wallet_away: 0,
            wallet_silent: 0,
            called_back: 0,
            disk: 0,
        }
    }

    pub(super) fn draw(chance: &mut Random) -> Self {
        let mut one_of = |values: &[u64]| values[chance.below(values.len())];
        Self {
            crash: one_of(&[0, 5, 15, 50]),
            stop: one_of(&[0, 0, 1]) == 1,
            outage: one_of(&[0, 1]) == 1,
            mute: one_of(&[0, 0, 1]) == 1,
            lost: one_of(&[0, 50, 300]),
            silent: one_of(&[0, 50, 300]),
            refused: one_of(&[0, 50, 300]),
            doubled: one_of(&[0, 100]),
            withheld: one_of(&[0, 100]),
            delay: one_of(&[5, 200, 5_000]),
            wallet_away: one_of(&[0, 20, 200]),
            wallet_silent: one_of(&[0, 20, 200]),
            called_back: one_of(&[0, 0, 100]),
            disk: one_of(&[0, 0, 5]),
        }
    }
}
