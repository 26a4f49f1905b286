//! Which documents a query and a budget select, as version 0 has it. Pure: no file, no clock, no chance.
//!
//! The score of a document is the share of its words that are words of the query, as an `f32`; the order is by score, then
//! by id; a document that does not fit is passed over and the next one is tried, to the end. Documents that match nothing
//! come last and are taken like the others. All of it is defined over the whole cache, but only the documents that match
//! are looked at: the rest have score 0 and stand in the order of their ids already.

use crate::budget::spend;
use crate::index::Index;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// One selected document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    pub(crate) place: usize,
    pub(crate) score: f32,
    pub(crate) tokens: u64,
    pub(crate) matches: u64,
    pub(crate) words: u64,
}

impl Eq for Choice {}

impl Ord for Choice {
    /// The better one is greater. A score is never NaN.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.place.cmp(&self.place))
    }
}

impl PartialOrd for Choice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The share of a document's words that match.
pub(crate) fn score(matches: u64, words: u64) -> f32 {
    if words == 0 { 0.0 } else { matches as f32 / words as f32 }
}

/// Selects documents for the terms of a query, best first.
pub(crate) fn select(index: &Index, terms: &[String], budget: u64) -> Vec<Choice> {
    let matches = Matches::of(index, terms);
    let mut left = budget;
    let ranked: Vec<Choice> = matches.touched.iter().map(|place| matches.choice(index, *place)).collect();
    let mut chosen = spend(ranked, &mut left, |choice| choice.tokens);
    let mut from = 0;
    while let Some(place) = index.next_within(from, left) {
        from = place + 1;
        if matches.of_place(place) == 0 {
            let choice = matches.choice(index, place);
            left -= choice.tokens;
            chosen.push(choice);
        }
    }
    chosen
}

/// How often the terms occur in each document.
struct Matches {
    /// By place; the system hands out zeroed memory only where it is touched.
    counts: Vec<u64>,
    touched: Vec<usize>,
}

impl Matches {
    fn of(index: &Index, terms: &[String]) -> Self {
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        for term in terms {
            *times.entry(term).or_default() += 1;
        }
        let mut matches = Self { counts: vec![0; index.len()], touched: Vec::new() };
        for (term, times) in times {
            for (place, count) in index.documents_with(term) {
                let place = place as usize;
                if let Some(sum) = matches.counts.get_mut(place) {
                    if *sum == 0 {
                        matches.touched.push(place);
                    }
                    *sum += u64::from(count) * times;
                }
            }
        }
        matches
    }

    fn of_place(&self, place: usize) -> u64 {
        self.counts[place]
    }

    fn choice(&self, index: &Index, place: usize) -> Choice {
        let row = index.document(place);
        let (matches, words) = (self.counts[place], u64::from(row.words));
        Choice { place, score: score(matches, words), tokens: u64::from(row.tokens), matches, words }
    }
}

#[cfg(test)]
#[path = "../tests/oracle/mod.rs"]
mod oracle;

#[cfg(test)]
mod tests {
    use super::oracle::{Corpus, Dice, resolve};
    use super::{Choice, score, select};
    use crate::index::Builder;
    use crate::reply::{Layout, Resolution, Selected, Summary, Why, json};
    use crate::words;
    use std::sync::Arc;

    /// What a cache with these documents answers, without a cache.
    fn answer(corpus: &Corpus, query: &str, budget: u64) -> String {
        let mut builder = Builder::default();
        corpus.iter().for_each(|(_, _, content)| builder.add(content));
        let index = builder.finish(&[0; 32]);
        let terms: Arc<[String]> = words::terms(query).into();
        let chosen = select(&index, &terms, budget);
        let (all, count) = (corpus.len() as u64, chosen.len() as u64);
        let tokens_used = chosen.iter().map(|choice| choice.tokens).sum();
        let documents = chosen.into_iter().map(|choice| {
            let (id, version, content) = corpus[choice.place].clone();
            let why = Why { query_terms: terms.clone(), term_matches: choice.matches, total_words: choice.words };
            Selected { id, version, content, score: choice.score, tokens: choice.tokens, why }
        });
        let selection = Summary {
            query: query.to_owned(),
            budget,
            tokens_used,
            documents_considered: all,
            documents_selected: count,
            documents_excluded_by_budget: all - count,
        };
        json(&Resolution { documents: documents.collect(), selection }, Layout::Compact).unwrap()
    }

    #[test]
    fn thousands_of_corpora_are_answered_as_the_rules_say() {
        for seed in 0..4000 {
            let mut dice = Dice::new(seed + 1_000_000);
            let contents = dice.contents(30);
            let mut corpus: Corpus = contents
                .iter()
                .enumerate()
                .map(|(n, text)| (format!("{}.md", n % 7 * 100 + n), "v".into(), text.clone()))
                .collect();
            corpus.sort();
            let (query, budget) = (dice.query(), dice.budget(&contents));
            assert_eq!(answer(&corpus, &query, budget), resolve(&corpus, &query, budget), "seed {seed}");
        }
    }

    /// Rules that random corpora might miss.
    #[test]
    fn edges() {
        let corpus = |contents: &[&str]| -> Corpus {
            let row = |(n, text): (usize, &&str)| (format!("{n}.md"), "v".to_owned(), (*text).to_owned());
            contents.iter().enumerate().map(row).collect()
        };
        let chosen = |contents: &[&str], query: &str, budget: u64| {
            let text = answer(&corpus(contents), query, budget);
            assert_eq!(text, resolve(&corpus(contents), query, budget));
            let mut ids = Vec::new();
            let mut rest = text.as_str();
            while let Some((_, after)) = rest.split_once("{\"id\":\"") {
                ids.push(after.split_once('"').unwrap().0.to_owned());
                rest = after;
            }
            (ids.join(" "), text)
        };
        // Ties go by id; what matches nothing comes last but is taken.
        assert_eq!(chosen(&["b", "a x", "a x", "c"], "a", 9).0, "1.md 2.md 0.md 3.md");
        // What does not fit is passed over, and a later one is tried.
        assert_eq!(chosen(&["a a a a a a", "a b c"], "a", 2).0, "1.md");
        // Exactly the budget fits.
        assert_eq!(chosen(&["aaaa", "bbbb"], "", 2).0, "0.md 1.md");
        assert_eq!(chosen(&["aaaa", "bbbb"], "", 1).0, "0.md");
        // Nothing to spend still buys what costs nothing.
        assert_eq!(chosen(&["a", "", "b", ""], "a", 0).0, "1.md 3.md");
        // A term that is asked for twice counts twice.
        let (_, text) = chosen(&["deployment a deployment b"], "deployment deployment deployment", 99);
        assert!(text.contains("\"score\":1.5,") && text.contains("\"term_matches\":6,\"total_words\":4"), "{text}");
        // Two fractions that are one number in 32 bits are a tie.
        let choice = |place, words| Choice { place, score: score(1, words), tokens: 1, matches: 1, words };
        assert!(choice(0, 16_777_217) > choice(1, 16_777_216));
        assert!(choice(0, 16_777_219) < choice(1, 16_777_216));
    }
}
