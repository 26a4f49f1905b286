//! `context.search`: the best pieces of a cache for a query, beside version 0 and just as repeatable.
//!
//! The ranking is BM25 over chunks, in whole numbers: logarithms are computed bit by bit, each term's part is one exact
//! fraction rounded down once, and sums of whole numbers do not depend on their order. Chunks with equal scores stand in
//! the order of their document's id and their place in it, so the order is total. What it depends on (the number of chunks and
//! terms, how many chunks have a term) is in the index, which is a function of the cache.

pub(crate) mod chunk;
pub(crate) mod terms;

use crate::beneath::Folder;
use crate::budget::spend;
use crate::cache;
use crate::digest;
use crate::error::{Error, Kind};
use crate::index::Index;
use crate::resident::{Interrupt, Question, Resident};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The name of the ranking; another formula gets another version.
const NAME: &str = "bm25-chunks";
const VERSION: u32 = 1;

/// `k1` is 1.2 and `b` is 0.75; in the formula they stand as thousandths of `k1 + 1`, `k1 (1 - b)` and `k1 b`.
const K1: &str = "1.2";
const B: &str = "0.75";
const K1_PLUS_ONE: u128 = 2200;
const CONSTANT_PART: u128 = 300;
const LENGTH_PART: u128 = 900;

/// One bit of information counts this much.
const UNIT: &str = "1/65536 bit";

/// What the part of one term takes in an answer, beside the term.
const REASON: usize = 50;

/// How many bytes an answer may still grow by.
struct Room(u64);

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        let left = self.0.checked_sub(bytes as u64);
        self.0 = left.ok_or_else(|| Error::because(Kind::Internal, "the answer would be too large"))?;
        Ok(())
    }
}

/// The answer of `context.search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Findings {
    pub results: Vec<Finding>,
    pub selection: Summary,
    pub ranking: Ranking,
    pub cache_version: String,
    /// The hash over everything that the ranking depends on.
    pub index_version: String,
}

/// One chunk that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub id: String,
    pub version: String,
    pub lines: Lines,
    /// The headings that it stands under, outermost first.
    pub headings: Vec<String>,
    pub content: String,
    pub score: u64,
    pub tokens: u64,
    pub why: Why,
}

/// Lines of a document, counted from one, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lines {
    pub first: usize,
    pub last: usize,
}

/// What a score is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    pub terms: Vec<TermScore>,
    pub chunk_terms: u32,
}

/// The part of one term in a score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TermScore {
    pub term: String,
    pub count: u32,
    /// How many chunks have it.
    pub chunks: u64,
    pub score: u64,
}

/// What was asked and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub query: String,
    pub budget: u64,
    pub tokens_used: u64,
    pub chunks_considered: u64,
    pub chunks_matched: u64,
    pub chunks_selected: u64,
    pub chunks_excluded_by_budget: u64,
}

/// With which the answer can be computed again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ranking {
    pub name: &'static str,
    pub version: u32,
    pub k1: &'static str,
    pub b: &'static str,
    pub unit: &'static str,
    pub unicode: String,
    pub chunks: u64,
    pub chunk_terms: u64,
}

/// The logarithm to the base 2 in 65536ths, rounded down; of zero it is zero.
fn log2(number: u64) -> u64 {
    let Some(whole) = number.checked_ilog2() else { return 0 };
    // From 1 to below 2, with 63 bits behind the point.
    let mut rest = u128::from(number) << (63 - whole);
    let mut log = u64::from(whole);
    for _ in 0..16 {
        rest = (rest * rest) >> 63;
        let is_two = rest >> 64;
        rest >>= is_two;
        log = log << 1 | is_two as u64;
    }
    log
}

/// What a term is worth that `chunks` of `all` have; never nothing.
fn weight(all: u64, chunks: u64) -> u64 {
    log2(2 * all + 2).saturating_sub(log2(2 * chunks + 1)).max(1)
}

/// The part of a term in the score of a chunk that has it `count` times.
fn part(index: &Index, weight: u64, count: u32, chunk_terms: u32) -> u64 {
    let (all_terms, count) = (u128::from(index.chunk_terms()), u128::from(count));
    let length = u128::from(chunk_terms) * index.chunks() as u128;
    let above = u128::from(weight) * count * K1_PLUS_ONE * all_terms;
    let below = 1000 * count * all_terms + CONSTANT_PART * all_terms + LENGTH_PART * length;
    u64::try_from(above / below.max(1)).unwrap_or(u64::MAX)
}

/// The chunks that a query and a budget select, best first, with their scores; and how many match.
fn select(index: &Index, terms: &[(String, u64)], budget: u64) -> (Vec<(usize, u64)>, usize) {
    let mut scores = vec![0_u64; index.chunks()];
    let mut touched = Vec::new();
    for (term, weight) in terms {
        for (place, count) in index.chunks_with(term) {
            let place = place as usize;
            let Some(score) = scores.get_mut(place) else { continue };
            if *score == 0 {
                touched.push(place);
            }
            // A part may round to nothing; a match still counts.
            *score = score.saturating_add(part(index, *weight, count, index.chunk(place).terms).max(1));
        }
    }
    let matched = touched.len();
    let ranked: Vec<(u64, Reverse<usize>)> = touched.into_iter().map(|place| (scores[place], Reverse(place))).collect();
    let mut left = budget;
    let chosen = spend(ranked, &mut left, |(_, place)| u64::from(index.chunk(place.0).tokens));
    (chosen.into_iter().map(|(score, Reverse(place))| (place, score)).collect(), matched)
}

impl Resident {
    /// `context.search`.
    pub(crate) fn search(
        &self,
        cache: &Folder,
        Question { query, budget, most }: Question<'_>,
        interrupt: &Interrupt,
    ) -> Result<Findings, Error> {
        if self.table.declared_version != self.table.cache_version {
            return Err(Error::invalid("cache_version is not the hash over the documents"));
        }
        let index = &self.index;
        let chunks = index.chunks() as u64;
        let counts: Vec<(String, u64)> = terms::distinct(query)
            .into_iter()
            .map(|term| {
                let count = index.chunks_with(&term).count() as u64;
                (term, count)
            })
            .collect();
        let weights: Vec<(String, u64)> =
            counts.iter().map(|(term, count)| (term.clone(), weight(chunks, *count))).collect();
        let (chosen, matched) = select(index, &weights, budget);
        let mut room = Room(most);
        let why = self.why(&chosen, &counts, &weights, &mut room)?;
        let results = self.findings(cache, &chosen, why, &mut room, interrupt)?;
        let (major, minor, update) = char::UNICODE_VERSION;
        Ok(Findings {
            selection: Summary {
                query: query.to_owned(),
                budget,
                tokens_used: results.iter().map(|result| result.tokens).sum(),
                chunks_considered: chunks,
                chunks_matched: matched as u64,
                chunks_selected: results.len() as u64,
                chunks_excluded_by_budget: (matched - results.len()) as u64,
            },
            results,
            ranking: Ranking {
                name: NAME,
                version: VERSION,
                k1: K1,
                b: B,
                unit: UNIT,
                unicode: format!("{major}.{minor}.{update}"),
                chunks,
                chunk_terms: index.chunk_terms(),
            },
            cache_version: self.table.cache_version.clone(),
            index_version: digest::versioned(&index.hash()),
        })
    }

    /// The chosen chunks with their text. Each document is read once, however many of its chunks were chosen.
    fn findings(
        &self,
        cache: &Folder,
        chosen: &[(usize, u64)],
        mut why: HashMap<usize, Vec<TermScore>>,
        room: &mut Room,
        interrupt: &Interrupt,
    ) -> Result<Vec<Finding>, Error> {
        let documents = cache::documents(cache, &self.table)?;
        let mut by_place: Vec<usize> = (0..chosen.len()).collect();
        by_place.sort_unstable_by_key(|rank| chosen[*rank].0);
        let mut found: Vec<(usize, Finding)> = Vec::with_capacity(chosen.len());
        for ranks in
            by_place.chunk_by(|left, right| self.document_of(chosen[*left].0) == self.document_of(chosen[*right].0))
        {
            interrupt.check()?;
            let place = self.document_of(chosen[ranks[0]].0);
            let document = cache::read_document(documents.as_ref(), &self.table.rows[place])?;
            let chunks = chunk::split(&document.content);
            for rank in ranks {
                let (place_of_chunk, score) = chosen[*rank];
                let row = self.index.chunk(place_of_chunk);
                // The index was made of this very text.
                let chunk = place_of_chunk
                    .checked_sub(self.index.document(place).first_chunk as usize)
                    .and_then(|ordinal| chunks.get(ordinal))
                    .ok_or_else(|| Error::invalid("the index does not fit the document"))?;
                let terms = why.remove(&place_of_chunk).unwrap_or_default();
                room.take(chunk.range.len() + document.id.len())?;
                chunk.headings.iter().try_for_each(|heading| room.take(heading.len()))?;
                found.push((
                    *rank,
                    Finding {
                        content: document.content[chunk.range.clone()].to_owned(),
                        id: document.id.clone(),
                        version: document.version.clone(),
                        lines: Lines { first: chunk.first_line, last: chunk.last_line },
                        headings: chunk
                            .headings
                            .iter()
                            .map(|heading| document.content[heading.clone()].to_owned())
                            .collect(),
                        score,
                        tokens: u64::from(row.tokens),
                        why: Why { terms, chunk_terms: row.terms },
                    },
                ));
            }
        }
        found.sort_unstable_by_key(|(rank, _)| *rank);
        Ok(found.into_iter().map(|(_, finding)| finding).collect())
    }

    fn document_of(&self, chunk: usize) -> usize {
        self.index.chunk(chunk).document as usize
    }

    /// The parts of the scores of the chosen chunks.
    fn why(
        &self,
        chosen: &[(usize, u64)],
        counts: &[(String, u64)],
        weights: &[(String, u64)],
        room: &mut Room,
    ) -> Result<HashMap<usize, Vec<TermScore>>, Error> {
        let mut why: HashMap<usize, Vec<TermScore>> = chosen.iter().map(|(place, _)| (*place, Vec::new())).collect();
        for ((term, chunks), (_, weight)) in counts.iter().zip(weights) {
            for (place, count) in self.index.chunks_with(term) {
                if let Some(parts) = why.get_mut(&(place as usize)) {
                    room.take(term.len() + REASON)?;
                    let chunk_terms = self.index.chunk(place as usize).terms;
                    let score = part(&self.index, *weight, count, chunk_terms).max(1);
                    parts.push(TermScore { term: term.clone(), count, chunks: *chunks, score });
                }
            }
        }
        Ok(why)
    }
}

#[cfg(test)]
mod tests {
    use super::{log2, select, weight};
    use crate::index::Builder;

    #[test]
    fn logarithms_are_exact_to_the_last_bit_shown() {
        for (number, expected) in [(0, 0), (1, 0), (2, 65_536), (3, 103_872), (4, 131_072), (10, 217_705)] {
            assert_eq!(log2(number), expected, "{number}");
        }
        assert_eq!(log2(1 << 63), 63 << 16);
        assert_eq!(log2(u64::MAX) >> 16, 63);
        for number in 1..5000_u64 {
            let exact = (number as f64).log2() * 65_536.0;
            assert!((log2(number) as f64 - exact).abs() < 1.01, "{number}");
            assert!(log2(number) <= log2(number + 1));
        }
    }

    #[test]
    fn rare_terms_weigh_more_and_none_weighs_nothing() {
        assert!(weight(1000, 1) > weight(1000, 10));
        assert!(weight(1000, 1000) >= 1);
    }

    #[test]
    fn order_and_budget() {
        let mut builder = Builder::default();
        for content in ["rare common", "common common common", "common filler filler filler", "nothing", "common rare"]
        {
            builder.add(content);
        }
        let index = builder.finish(&[0; 32]);
        let weighed = |terms: &[&str]| {
            let weigh = |term: &&str| ((*term).to_owned(), weight(5, index.chunks_with(term).count() as u64));
            terms.iter().map(weigh).collect::<Vec<_>>()
        };
        let places = |terms: &[&str], budget| {
            select(&index, &weighed(terms), budget).0.into_iter().map(|(place, _)| place).collect::<Vec<_>>()
        };
        // Equal scores stand in the order of the documents; what does not match is not taken.
        assert_eq!(places(&["common", "rare"], 100), [0, 4, 1, 2]);
        // What does not fit is passed over.
        assert_eq!(places(&["common", "rare"], 3), [0]);
        assert_eq!(places(&["common", "rare"], 8), [0, 4]);
        assert_eq!(places(&["absent"], 100), Vec::<usize>::new());
        assert_eq!(places(&["common"], 0), Vec::<usize>::new());
    }
}
