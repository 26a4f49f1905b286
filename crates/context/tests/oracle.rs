//! Caches on disk against a naive reading of the rules: the same bytes, whatever the corpus, query and budget.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

#[path = "oracle/mod.rs"]
mod naive;
mod support;

use std::fs;

use naive::{Corpus, Dice};
use rialto_context::library::resolve_folder;
use rialto_context::reply::{Layout, json};
use rialto_context::{Checking, Document, Library};
use support::{Place, resolve};

#[test]
fn caches_answer_as_the_rules_say() {
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let place = Place::new();
        let contents = dice.contents(25);
        let mut corpus: Corpus = Vec::new();
        for (number, content) in contents.iter().enumerate() {
            let folder = dice.pick(&["", "", "A/", "b/c/", ".hidden/"]);
            let name = format!("{folder}{}{number}.md", dice.pick(&["Doc", "ä", "Ω", "z", "a b", "#"]));
            place.write(&format!("sources/{name}"), content);
            let document = Document::new(&name, content.clone());
            corpus.push((name.to_lowercase(), document.version, content.clone()));
        }
        let built = place.build("c").unwrap();
        assert_eq!(built.documents, contents.len());
        let store = place.store("store").unwrap();
        if seed % 2 == 0 {
            built.store(&store);
        }
        let library = Library::new(&place.path("root"), Some(store.clone()), Checking::Used);
        for round in 0..6 {
            let (query, budget) = (dice.query(), dice.budget(&contents));
            let expected = naive::resolve(&corpus, &query, budget);
            let signed = i64::try_from(budget).unwrap();
            assert_eq!(resolve(&library, "c", &query, signed), Ok(expected.clone()), "seed {seed}, round {round}");
            // A new process, with and without an index that was kept.
            for store in [Some(&store), None] {
                let fresh = resolve_folder(&place.path("root/c"), &query, budget, store).unwrap();
                assert_eq!(json(&fresh, Layout::Compact).unwrap(), expected, "seed {seed}, round {round}");
            }
        }
        if !contents.is_empty() {
            assert!(fs::read_dir(place.path("store")).unwrap().count() > 0, "no index was kept");
        }
    }
}
