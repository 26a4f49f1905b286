//! What the tools answer, field by field in the order of version 0.
//!
//! Scores are written straight from `f32`: through any wider number they would get other digits.

use crate::error::Error;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// The answer of `context.resolve`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resolution {
    pub documents: Vec<Selected>,
    pub selection: Summary,
}

/// One document of a [`Resolution`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selected {
    pub id: String,
    pub version: String,
    pub content: String,
    pub score: f32,
    pub tokens: u64,
    pub why: Why,
}

/// Why a document stands where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    #[serde(serialize_with = "slice")]
    pub query_terms: Arc<[String]>,
    pub term_matches: u64,
    pub total_words: u64,
}

fn slice<S: Serializer>(terms: &Arc<[String]>, serializer: S) -> Result<S::Ok, S::Error> {
    terms[..].serialize(serializer)
}

/// What was asked and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub query: String,
    pub budget: u64,
    pub tokens_used: u64,
    pub documents_considered: u64,
    pub documents_selected: u64,
    pub documents_excluded_by_budget: u64,
}

/// The answer of `context.list_caches`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    pub caches: Vec<Listed>,
}

/// One folder of a [`Listing`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    pub path: String,
    pub has_manifest: bool,
}

/// The answer of `context.inspect_cache`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Inspection {
    pub cache_version: String,
    pub document_count: u64,
    pub total_bytes: u64,
    pub valid: bool,
}

/// How JSON is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Compact,
    Pretty,
}

/// An answer as JSON, without a newline at its end.
pub fn json(answer: &impl Serialize, layout: Layout) -> Result<String, Error> {
    let text = match layout {
        Layout::Compact => serde_json::to_string(answer),
        Layout::Pretty => serde_json::to_string_pretty(answer),
    };
    text.map_err(|error| Error::because(crate::error::Kind::Internal, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::{Inspection, Layout, Listed, Listing, Resolution, Selected, Summary, Why, json};

    #[test]
    fn a_resolution() {
        let why = Why { query_terms: vec!["a\"b".to_owned()].into(), term_matches: 1, total_words: 3 };
        let selected = Selected {
            id: "a.md".into(),
            version: "sha256:00".into(),
            content: "x\ny\u{7f}".into(),
            score: 1.0 / 3.0,
            tokens: 1,
            why,
        };
        let selection = Summary {
            query: "A\"b\t".into(),
            budget: 9,
            tokens_used: 1,
            documents_considered: 2,
            documents_selected: 1,
            documents_excluded_by_budget: 1,
        };
        let resolution = Resolution { documents: vec![selected], selection };
        assert_eq!(
            json(&resolution, Layout::Compact).unwrap(),
            concat!(
                r#"{"documents":[{"id":"a.md","version":"sha256:00","content":"x\ny"#,
                "\u{7f}",
                r#"","score":0.33333334,"tokens":1,"why":{"query_terms":["a\"b"],"term_matches":1,"total_words":3}}],"#,
                r#""selection":{"query":"A\"b\t","budget":9,"tokens_used":1,"documents_considered":2,"#,
                r#""documents_selected":1,"documents_excluded_by_budget":1}}"#
            )
        );
        assert!(json(&resolution, Layout::Pretty).unwrap().starts_with("{\n  \"documents\": [\n    {\n      \"id\""));
    }

    #[test]
    fn numbers_have_the_shortest_digits_of_their_own_width() {
        for (score, expected) in [
            (0.0_f32, "0.0"),
            (1.0, "1.0"),
            (1.5, "1.5"),
            (0.5, "0.5"),
            (0.75, "0.75"),
            (1.0 / 3.0, "0.33333334"),
            (1.0 / 7.0, "0.14285715"),
            (0.1, "0.1"),
            (1.0 / 1_000_000.0, "0.000001"),
            (1.0 / 123_456.0, "0.000008100052"),
            (1.0 / 3_000_000.0, "3.3333333e-7"),
            (3.0, "3.0"),
            (16_777_216.0, "16777216.0"),
        ] {
            assert_eq!(serde_json::to_string(&score).unwrap(), expected);
        }
    }

    #[test]
    fn a_listing_and_an_inspection() {
        let listed = Listed { path: "docs".into(), has_manifest: true };
        let listing = Listing { caches: vec![listed] };
        assert_eq!(json(&listing, Layout::Compact).unwrap(), r#"{"caches":[{"path":"docs","has_manifest":true}]}"#);
        assert_eq!(
            json(&Inspection::default(), Layout::Compact).unwrap(),
            r#"{"cache_version":"","document_count":0,"total_bytes":0,"valid":false}"#
        );
    }
}
