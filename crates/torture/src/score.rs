//! What an experiment measured, and whether that is what was promised.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    Exactly(f64),
    AtMost(f64),
    AtLeast(f64),
    /// Shown and not judged: it depends on the machine, or on how the program was built.
    Told,
}

impl Target {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::Exactly(wanted) => (value - wanted).abs() < f64::EPSILON,
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Told => true,
        }
    }

    fn shown(self) -> Value {
        match self {
            Self::Exactly(wanted) => number(wanted),
            Self::AtMost(most) => json!(format!("≤ {}", number(most))),
            Self::AtLeast(least) => json!(format!("≥ {}", number(least))),
            Self::Told => Value::Null,
        }
    }

    /// The one of two values that is further from what was promised.
    fn worse(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Exactly(wanted) if (other - wanted).abs() > (one - wanted).abs() => other,
            Self::Exactly(_) => one,
            Self::AtLeast(_) => one.min(other),
            Self::AtMost(_) | Self::Told => one.max(other),
        }
    }
}

/// Whole numbers are written as such.
fn number(value: f64) -> Value {
    let rounded = (value * 1000.0).round() / 1000.0;
    #[expect(clippy::cast_possible_truncation, reason = "only numbers far below the limit are whole here")]
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    pub name: Cow<'static, str>,
    /// Of several runs, the worst; of a figure that is only told, the highest.
    pub value: f64,
    /// Of several runs, the lowest.
    pub lowest: f64,
    pub target: Target,
}

impl Figure {
    fn shown(&self) -> Value {
        if self.target == Target::Told && self.lowest < self.value {
            return json!(format!("{} to {}", number(self.lowest), number(self.value)));
        }
        number(self.value)
    }
}

/// All that one experiment has to say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Score {
    pub figures: Vec<Figure>,
    /// What a reader must know beside the figures; for a failure, where to look.
    pub notes: Vec<String>,
}

/// Anything that is counted or measured.
pub trait Measure {
    fn measure(self) -> f64;
}

impl Measure for f64 {
    fn measure(self) -> f64 {
        self
    }
}

#[expect(clippy::cast_precision_loss, reason = "no count here comes near the limit")]
impl Measure for usize {
    fn measure(self) -> f64 {
        self as f64
    }
}

#[expect(clippy::cast_precision_loss, reason = "no count here comes near the limit")]
impl Measure for u64 {
    fn measure(self) -> f64 {
        self as f64
    }
}

impl Measure for std::time::Duration {
    /// In seconds.
    fn measure(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Score {
    fn add(&mut self, name: &'static str, value: impl Measure, target: Target) {
        let value = value.measure();
        self.figures.push(Figure { name: name.into(), value, lowest: value, target });
    }

    pub fn exactly(&mut self, name: &'static str, value: impl Measure, wanted: impl Measure) {
        self.add(name, value, Target::Exactly(wanted.measure()));
    }

    pub fn none(&mut self, name: &'static str, value: impl Measure) {
        self.exactly(name, value, 0.0);
    }

    pub fn at_most(&mut self, name: &'static str, value: impl Measure, most: impl Measure) {
        self.add(name, value, Target::AtMost(most.measure()));
    }

    pub fn at_least(&mut self, name: &'static str, value: impl Measure, least: impl Measure) {
        self.add(name, value, Target::AtLeast(least.measure()));
    }

    pub fn tell(&mut self, name: &'static str, value: impl Measure) {
        self.add(name, value, Target::Told);
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn passes(&self) -> bool {
        !self.figures.is_empty() && self.figures.iter().all(|figure| figure.target.holds(figure.value))
    }

    /// Takes another run of the same experiment in: what was worse counts.
    pub fn merge(&mut self, other: Self) {
        for new in other.figures {
            match self.figures.iter_mut().find(|old| old.name == new.name) {
                Some(old) => {
                    old.lowest = old.lowest.min(new.lowest);
                    old.value = new.target.worse(old.value, new.value);
                }
                None => self.figures.push(new),
            }
        }
        let new: Vec<String> = other.notes.into_iter().filter(|note| !self.notes.contains(note)).collect();
        self.notes.extend(new);
    }

    /// `value` and `target` by the names of the figures, `pass`, and `notes`.
    pub fn json(&self) -> Map<String, Value> {
        let by_name = |what: &dyn Fn(&Figure) -> Value| -> Map<String, Value> {
            self.figures.iter().map(|figure| (figure.name.clone().into_owned(), what(figure))).collect()
        };
        let mut object = Map::new();
        object.insert("value".into(), by_name(&Figure::shown).into());
        object.insert("target".into(), by_name(&|figure| figure.target.shown()).into());
        object.insert("pass".into(), self.passes().into());
        if !self.notes.is_empty() {
            object.insert("notes".into(), json!(self.notes));
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::Score;

    #[test]
    fn nothing_measured_is_no_pass() {
        assert!(!Score::default().passes());
    }

    #[test]
    fn of_several_runs_the_worst_counts() {
        let run = |rate: f64, lost: usize, load: f64| {
            let mut score = Score::default();
            score.at_least("rate", rate, 10.0);
            score.none("lost", lost);
            score.tell("load", load);
            score
        };
        let mut score = run(20.0, 0, 1.0);
        score.merge(run(5.0, 2, 3.0));
        score.merge(run(15.0, 1, 2.0));
        let json = serde_json::Value::from(score.json());
        assert_eq!(json["value"].to_string(), r#"{"load":"1 to 3","lost":2,"rate":5}"#);
        assert!(!score.passes());
    }

    #[test]
    fn one_figure_beside_its_target_fails_the_row() {
        let mut score = Score::default();
        score.exactly("runs", 100_usize, 100_usize);
        score.at_most("seconds", 1.25, 2.0);
        score.tell("events a second", 1e9);
        assert!(score.passes());
        score.none("lost", 1_usize);
        assert!(!score.passes());
        assert_eq!(
            serde_json::Value::from(score.json()).to_string(),
            r#"{"pass":false,"target":{"events a second":null,"lost":0,"runs":100,"seconds":"≤ 2"},"value":{"events a second":1000000000,"lost":1,"runs":100,"seconds":1.25}}"#
        );
    }
}
