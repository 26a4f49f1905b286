//! One line of the table that a run ends with: a figure of ours, the best peer's, and what we promise.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::table::{low, median, number};

/// What a figure is; the table is in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Cpu,
    Memory,
    /// Neighbours on the machine change it at will, so a promise is about the median of the rounds, not the worst.
    Wall,
}

#[derive(Clone, Copy)]
pub enum Target {
    None,
    /// Ours divided by the best peer's is at most this.
    Ratio(f64),
    AtMost(f64),
    AtLeast(f64),
}

/// A peer: one figure per round, or why there is none.
pub type Peer = (&'static str, Result<Vec<f64>, String>);

pub struct Row {
    pub part: &'static str,
    pub what: String,
    pub kind: Kind,
    /// One figure per round, or why there is none.
    pub ours: Result<Vec<f64>, String>,
    pub peers: Vec<Peer>,
    pub target: Target,
}

/// What a part of the benchmark has to say.
pub struct Report {
    /// Its own tables, as Markdown.
    pub text: String,
    pub rows: Vec<Row>,
}

impl Row {
    pub fn new(part: &'static str, what: impl Into<String>, kind: Kind, ours: Result<Vec<f64>, String>) -> Self {
        Self { part, what: what.into(), kind, ours, peers: Vec::new(), target: Target::None }
    }

    pub fn against(mut self, peers: impl IntoIterator<Item = Peer>) -> Self {
        self.peers.extend(peers);
        self
    }

    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    fn is_more_better(&self) -> bool {
        matches!(self.target, Target::AtLeast(_))
    }

    /// The peer with the best median.
    fn best(&self) -> Option<(&'static str, &[f64])> {
        let measured = self.peers.iter().filter_map(|(name, values)| Some((*name, values.as_deref().ok()?)));
        let order = |values: &[f64]| if self.is_more_better() { -median(values) } else { median(values) };
        measured.min_by(|a, b| order(a.1).total_cmp(&order(b.1)))
    }

    /// Ours divided by the best peer's: the median, and the worst of rounds that both were in.
    fn ratio(&self) -> Option<(f64, f64)> {
        let (ours, (_, theirs)) = (self.ours.as_deref().ok()?, self.best()?);
        let middle = median(ours) / median(theirs);
        if ours.len() != theirs.len() {
            return Some((middle, middle));
        }
        let rounds: Vec<_> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        Some((middle, self.worst(&rounds)))
    }

    fn worst(&self, values: &[f64]) -> f64 {
        let order = |best: f64, value: f64| if self.is_more_better() { best.min(value) } else { best.max(value) };
        values.iter().copied().reduce(order).unwrap_or(f64::NAN)
    }

    /// What the promise is judged by; none if there is no promise or nothing to judge.
    fn judged(&self) -> Option<f64> {
        let ours = self.ours.as_deref().ok()?;
        let (middle, worst) = match self.target {
            Target::None => return None,
            Target::Ratio(_) => self.ratio()?,
            Target::AtMost(_) | Target::AtLeast(_) => (median(ours), self.worst(ours)),
        };
        Some(if self.kind == Kind::Wall { middle } else { worst })
    }

    pub fn holds(&self) -> Option<bool> {
        let judged = self.judged()?;
        match self.target {
            Target::None => None,
            Target::Ratio(target) | Target::AtMost(target) => Some(judged <= target),
            Target::AtLeast(target) => Some(judged >= target),
        }
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::None => "–".to_owned(),
            Target::Ratio(target) => format!("ratio ≤ {}", number(target)),
            Target::AtMost(target) => format!("≤ {}", number(target)),
            Target::AtLeast(target) => format!("≥ {}", number(target)),
        }
    }

    fn line(&self) -> String {
        let Self { part, what, ours, .. } = self;
        let ours = match ours {
            Ok(values) => number(median(values)),
            Err(reason) => reason.replace('|', "/"),
        };
        let peer = match (self.best(), self.peers.first()) {
            (Some((name, values)), _) => format!("{} ({name})", number(median(values))),
            (None, Some((name, Err(reason)))) => format!("{name}: {}", reason.replace('|', "/")),
            (None, _) => "–".to_owned(),
        };
        let ratio = self.ratio().map_or_else(|| "–".to_owned(), |(middle, _)| number(middle));
        let judged = self.judged().map_or_else(|| "–".to_owned(), number);
        let holds = self.holds().map_or("–", |holds| if holds { "yes" } else { "**no**" });
        format!("| {part} | {what} | {ours} | {peer} | {ratio} | {judged} | {} | {holds} |", self.target_text())
    }

    fn json(&self) -> Value {
        let best =
            self.best().map(|(name, values)| json!({ "name": name, "rounds": values, "median": median(values) }));
        let missing = self.peers.iter().filter_map(|(name, values)| Some(json!([name, values.as_ref().err()?])));
        json!({
            "part": self.part,
            "what": self.what,
            "ours": self.ours.as_ref().map(|values| json!({ "rounds": values, "best": low(values).best, "median": median(values) }))
                .unwrap_or_else(|reason| json!({ "missing": reason })),
            "best_peer": best,
            "missing_peers": missing.collect::<Vec<_>>(),
            "ratio": self.ratio().map(|ratio| ratio.0),
            "judged": self.judged(),
            "target": self.target_text(),
            "holds": self.holds(),
        })
    }
}

/// CPU first, then memory, then time.
fn sorted(rows: &[Row]) -> Vec<&Row> {
    let mut sorted: Vec<_> = rows.iter().collect();
    sorted.sort_by_key(|row| row.kind);
    sorted
}

pub fn markdown(rows: &[Row]) -> String {
    let mut text = "| part | what | ours | best peer | ratio | judged | target | holds |\n".to_owned();
    text.push_str("|---|---|---:|---:|---:|---:|---:|---|\n");
    for row in sorted(rows) {
        let _ = writeln!(text, "{}", row.line());
    }
    text
}

pub fn json(rows: &[Row]) -> Value {
    sorted(rows).into_iter().map(Row::json).collect()
}

#[cfg(test)]
mod tests {
    use super::{Kind, Row, Target};

    fn row(kind: Kind, ours: &[f64], theirs: &[f64], target: Target) -> Row {
        let peers = [("slow", Ok(vec![100.0])), ("fast", Ok(theirs.to_vec())), ("gone", Err("not installed".into()))];
        Row::new("part", "what", kind, Ok(ours.to_vec())).against(peers).target(target)
    }

    #[test]
    fn one_bad_round_breaks_a_promise_about_cpu_but_not_about_time() {
        let (ours, theirs) = ([1.0, 3.0, 1.0], [4.0, 4.0, 4.0]);
        assert_eq!(row(Kind::Cpu, &ours, &theirs, Target::Ratio(0.5)).holds(), Some(false));
        assert_eq!(row(Kind::Wall, &ours, &theirs, Target::Ratio(0.5)).holds(), Some(true));
        assert_eq!(row(Kind::Cpu, &ours, &theirs, Target::AtMost(2.9)).holds(), Some(false));
        assert_eq!(row(Kind::Cpu, &ours, &theirs, Target::AtLeast(1.0)).holds(), Some(true));
    }

    #[test]
    fn without_its_peer_a_ratio_neither_holds_nor_fails() {
        let alone = Row::new("part", "what", Kind::Cpu, Ok(vec![1.0]));
        let row = alone.against([("gone", Err("not installed".to_owned()))]).target(Target::Ratio(0.5));
        assert_eq!(row.holds(), None);
        assert!(row.line().contains("gone: not installed"));
    }

    #[test]
    fn the_best_peer_is_the_one_that_counts() {
        let row = row(Kind::Cpu, &[2.0], &[4.0], Target::None);
        assert!(row.line().contains("4.00 (fast) | 0.50"), "{}", row.line());
    }
}
