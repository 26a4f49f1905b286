//! Classic mistakes, made on purpose: between the provider and its ports, where they look to everybody else as if the provider
//! made them. The rules must find each.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// What is noted counts before it is on the disk.
    ActsBeforeCommit,
    /// A tool that must not be called twice is, after a crash.
    RunsAgain,
    /// Money that is held is taken as soon as the tool is done, before that is noted.
    SettlesEarly,
    /// Answers that were not sent are forgotten by a restart.
    ForgetsOutbox,
    /// Less than the price is taken for all of it.
    TakesTooLittle,
    /// Requests that were served are forgotten by a restart.
    ForgetsRequests,
    /// What is held for a call that failed stays held.
    KeepsHolds,
    CreditsTwice,
    LosesCredit,
    /// A tool that hangs is waited for.
    WaitsForEver,
}

impl Mistake {
    pub const ALL: [Self; 10] = [
        Self::ActsBeforeCommit,
        Self::RunsAgain,
        Self::SettlesEarly,
        Self::ForgetsOutbox,
        Self::TakesTooLittle,
        Self::ForgetsRequests,
        Self::KeepsHolds,
        Self::CreditsTwice,
        Self::LosesCredit,
        Self::WaitsForEver,
    ];
}
