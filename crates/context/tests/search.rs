//! Search against the textbook formula, and the promises around it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

#[path = "oracle/mod.rs"]
mod naive;
mod support;

use naive::Dice;
use rialto_context::reply::{Layout, json};
use rialto_context::search::Findings;
use rialto_context::{Checking, Interrupt, Library, tokens};
use support::Place;

fn search(library: &Library, query: &str, budget: i64) -> Findings {
    library.search("c", query, budget, &Interrupt::default()).unwrap()
}

fn terms(text: &str) -> Vec<String> {
    let lowered = text.to_lowercase();
    let alone = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    let mut terms = vec![String::new()];
    for c in lowered.chars() {
        if alone(c) {
            terms.extend([c.to_string(), String::new()]);
        } else if c.is_alphanumeric() {
            terms.last_mut().unwrap().push(c);
        } else {
            terms.push(String::new());
        }
    }
    terms.retain(|term| !term.is_empty());
    terms
}

/// BM25 as books have it, in floating point, with logarithms to the base 2.
fn textbook(texts: &[String], text: &str, query: &str) -> f64 {
    let all: Vec<Vec<String>> = texts.iter().map(|text| terms(text)).collect();
    let average = all.iter().map(Vec::len).sum::<usize>() as f64 / all.len() as f64;
    let own = terms(text);
    let mut asked = terms(query);
    asked.sort();
    asked.dedup();
    let part = |term: &String| {
        let frequency = own.iter().filter(|other| *other == term).count() as f64;
        let having = all.iter().filter(|terms| terms.contains(term)).count() as f64;
        let rarity = (1.0 + (all.len() as f64 - having + 0.5) / (having + 0.5)).log2();
        rarity * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * own.len() as f64 / average))
    };
    asked.iter().map(part).sum()
}

#[test]
fn scores_are_those_of_the_textbook() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed + 77);
        let place = Place::new();
        let mut texts = Vec::new();
        // One chunk each: no headings, and short.
        for number in 0..1 + dice.below(20) {
            let text = dice.text(30);
            if !text.trim().is_empty() {
                place.write(&format!("sources/{number}.md"), &text);
                texts.push(text);
            }
        }
        place.build("c").unwrap();
        let (first, second) = (place.library(), Library::new(&place.path("root"), None, Checking::All));
        for _ in 0..4 {
            let query = dice.query();
            let budget = dice.below(200) as i64;
            let findings = search(&first, &query, budget);
            assert_eq!(
                json(&findings, Layout::Compact).unwrap(),
                json(&search(&second, &query, budget), Layout::Compact).unwrap()
            );
            for finding in &findings.results {
                let expected = textbook(&texts, &finding.content, &query);
                let given = finding.score as f64 / 65_536.0;
                assert!(
                    (given - expected).abs() < 0.001 + expected * 0.001,
                    "seed {seed}, {query:?}: {finding:?} {expected}"
                );
                let parts: u64 = finding.why.terms.iter().map(|term| term.score).sum();
                assert_eq!(parts, finding.score);
                assert_eq!(finding.tokens, tokens(&finding.content));
            }
            let order =
                |one: &rialto_context::search::Finding| (std::cmp::Reverse(one.score), one.id.clone(), one.lines.first);
            assert!(findings.results.is_sorted_by_key(order));
            let selection = &findings.selection;
            assert!(selection.tokens_used <= selection.budget);
            assert_eq!(selection.chunks_matched, selection.chunks_selected + selection.chunks_excluded_by_budget);
            let matching = texts.iter().filter(|text| textbook(&texts, text, &query) > 0.0).count() as u64;
            assert_eq!(selection.chunks_matched, matching, "seed {seed}, {query:?}");
        }
    }
}

#[test]
fn lines_and_contents_belong_together() {
    let place = Place::new();
    let long = "needle in a long section\n\n".repeat(400);
    place.write("sources/a.md", format!("needle before\n# One\n\nneedle\n## Two\n{long}# Three\nnothing"));
    place.build("c").unwrap();
    let source = std::fs::read_to_string(place.path("sources/a.md")).unwrap();
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let findings = search(&place.library(), "Needle!", 1_000_000);
    assert!(findings.results.len() > 4);
    for finding in &findings.results {
        assert_eq!(finding.content, lines[finding.lines.first - 1..finding.lines.last].concat());
        assert!(finding.content.len() <= 4000);
    }
    let headings: std::collections::BTreeSet<String> =
        findings.results.iter().map(|finding| finding.headings.join(" / ")).collect();
    assert_eq!(headings.into_iter().collect::<Vec<_>>(), ["", "One", "One / Two"]);
}

#[test]
fn a_cache_with_a_forged_version_is_not_searched() {
    let place = Place::new();
    place.write("sources/a.md", "one").build("c").unwrap();
    let manifest = place.path("root/c/manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replacen("\"cache_version\": \"sha256:", "\"cache_version\": \"sha256:0", 1))
        .unwrap();
    let error = place.library().search("c", "one", 10, &Interrupt::default()).unwrap_err();
    assert_eq!(error.kind.code(), "cache_invalid");
    // Version 0 does not look at it.
    assert!(place.resolve("c", "one", 10).is_ok());
}

/// A document is read and cut once for an answer, whatever the order of its chunks.
#[test]
fn many_chunks_of_one_document() {
    let place = Place::new();
    let section = |number: usize| format!("# Part {number}\n\n{}filler\n", "word ".repeat(1 + number % 3));
    place.write("sources/a.md", (0..90).map(section).collect::<String>());
    place.write("sources/b.md", "word word word filler word");
    place.build("c").unwrap();
    let found = search(&place.library(), "word", 1_000_000);
    let expected = [2, 1, 0].into_iter().flat_map(|rest| (0..30).map(move |part| part * 3 + rest));
    let parts: Vec<String> = expected.map(|part| format!("Part {part}")).collect();
    let headings: Vec<&String> = found.results.iter().flat_map(|result| &result.headings).collect();
    assert_eq!((found.results.len(), found.results[0].id.as_str()), (91, "b.md"));
    assert_eq!(headings, parts.iter().collect::<Vec<_>>());
    assert!(found.results.iter().all(|result| result.content.contains(result.headings.first().map_or("", |h| h))));
}

/// Each chunk stands under its headings, and a heading may be as long as a document.
#[test]
fn a_long_heading_does_not_multiply() {
    let place = Place::new();
    let text = format!("# {}\n\n{}", "h".repeat(1 << 18), "word of text\n".repeat(90_000));
    place.write("sources/a.md", text).build("c").unwrap();
    let ask = |budget| place.library().search("c", "word", budget, &Interrupt::default());
    assert_eq!(ask(10_000).unwrap().results[0].headings[0].len(), 1 << 18);
    assert_eq!(ask(10_000_000).unwrap_err().kind.code(), "internal_error");
}

/// Nor does a query that has every term of the cache.
#[test]
fn the_reasons_of_an_answer_have_a_limit() {
    let place = Place::new();
    let characters: String = ('\u{4e00}'..).take(1300).collect();
    for number in 0..1000 {
        place.write(&format!("sources/{number}.md"), format!("{characters}{number}"));
    }
    place.build("c").unwrap();
    let ask = |budget| place.library().search("c", &characters, budget, &Interrupt::default());
    assert_eq!(ask(100_000).unwrap().selection.chunks_selected, 102);
    assert_eq!(ask(10_000_000).unwrap_err().kind.code(), "internal_error");
}
