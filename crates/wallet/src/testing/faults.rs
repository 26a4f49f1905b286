//! What is to go wrong, and when: a script of faults, each for the next requests that it fits.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One thing that goes wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The request is not seen: nothing is done, nothing is said.
    Ignore,
    /// It is done, and nothing is said.
    Lose,
    /// It is done, and said later.
    Delay(Duration),
    /// The answer comes twice, in two events.
    Twice,
    /// A stranger says first that it failed.
    Stranger,
    /// The wallet says first that another request failed.
    OtherRequest,
    /// The wallet says first to somebody else that it failed.
    OtherAddressee,
    /// The wallet says first that another method failed.
    WrongType,
    /// The invoice is over one satoshi more than was asked for.
    WrongAmount,
    /// The invoice has another hash than was asked for.
    WrongHash,
    /// The preimage does not belong to the payment.
    WrongPreimage,
    /// The answer is no JSON.
    Garbage,
    /// Nothing is done; this code is the answer.
    Fail(String),
    /// A payment leaves and is on its way until it is resolved; nothing is said.
    Stick,
}

impl FromStr for Effect {
    type Err = String;

    /// `lose`, `delay:MILLISECONDS`, `fail:CODE`, and so on.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        Ok(match (name, value) {
            ("ignore", None) => Effect::Ignore,
            ("lose", None) => Effect::Lose,
            ("delay", Some(value)) => {
                let millis = value.parse().map_err(|_| format!("`{value}` is no number of milliseconds"))?;
                Effect::Delay(Duration::from_millis(millis))
            }
            ("twice", None) => Effect::Twice,
            ("stranger", None) => Effect::Stranger,
            ("other-request", None) => Effect::OtherRequest,
            ("other-addressee", None) => Effect::OtherAddressee,
            ("wrong-type", None) => Effect::WrongType,
            ("wrong-amount", None) => Effect::WrongAmount,
            ("wrong-hash", None) => Effect::WrongHash,
            ("wrong-preimage", None) => Effect::WrongPreimage,
            ("garbage", None) => Effect::Garbage,
            ("fail", Some(code)) => Effect::Fail(code.to_owned()),
            ("stick", None) => Effect::Stick,
            _ => return Err(format!("there is no fault `{text}`")),
        })
    }
}

/// Effects for the next requests that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Of this account; of any if absent.
    pub account: Option<usize>,
    /// With this method; with any if absent.
    pub method: Option<String>,
    /// For so many requests.
    pub times: u32,
    /// All at once.
    pub effects: Vec<Effect>,
}

impl FromStr for Fault {
    type Err = String;

    /// `[account=N] [method=NAME] [times=N] EFFECT[+EFFECT…]`
    fn from_str(text: &str) -> Result<Self, String> {
        let mut fault = Fault { account: None, method: None, times: 1, effects: Vec::new() };
        for word in text.split_ascii_whitespace() {
            let number = |value: &str| value.parse().map_err(|_| format!("`{value}` is no number"));
            match word.split_once('=') {
                Some(("account", value)) => fault.account = Some(number(value)? as usize),
                Some(("method", value)) => fault.method = Some(value.to_owned()),
                Some(("times", value)) => fault.times = number(value)?,
                Some((name, _)) => return Err(format!("there is no setting `{name}`")),
                None => fault.effects = word.split('+').map(str::parse).collect::<Result<_, _>>()?,
            }
        }
        if fault.effects.is_empty() { Err("no fault is named".to_owned()) } else { Ok(fault) }
    }
}

/// The script. The first fault that fits a request is used, and used up.
#[derive(Debug, Default)]
pub struct Faults(Mutex<VecDeque<Fault>>);

impl Faults {
    pub fn add(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
    }

    /// Those that have not happened yet do not happen any more.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What goes wrong with this request.
    pub(super) fn take(&self, account: usize, method: &str) -> Vec<Effect> {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |fault: &Fault| {
            fault.account.is_none_or(|one| one == account) && fault.method.as_deref().is_none_or(|one| one == method)
        };
        let Some(index) = script.iter().position(fits) else { return Vec::new() };
        let Some(fault) = script.get_mut(index) else { return Vec::new() };
        fault.times = fault.times.saturating_sub(1);
        let effects = fault.effects.clone();
        if fault.times == 0 {
            script.remove(index);
        }
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, Fault, Faults};
    use std::time::Duration;

    #[test]
    fn faults_are_written_on_one_line() {
        let fault: Fault = "account=1 method=pay_invoice times=2 stranger+delay:50".parse().unwrap();
        let effects = vec![Effect::Stranger, Effect::Delay(Duration::from_millis(50))];
        assert_eq!(fault, Fault { account: Some(1), method: Some("pay_invoice".to_owned()), times: 2, effects });
        for bad in ["", "account=1", "nothing", "delay", "delay:x", "times=x lose", "colour=red lose"] {
            assert!(bad.parse::<Fault>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_fault_is_used_up_by_the_requests_that_it_fits() {
        let faults = Faults::default();
        faults.add("account=1 method=pay_invoice times=2 lose".parse().unwrap());
        faults.add("twice".parse().unwrap());
        assert_eq!(faults.take(0, "pay_invoice"), [Effect::Twice]);
        assert_eq!(faults.take(1, "pay_invoice"), [Effect::Lose]);
        assert_eq!(faults.take(1, "pay_invoice"), [Effect::Lose]);
        assert_eq!(faults.take(1, "pay_invoice"), []);
    }
}
