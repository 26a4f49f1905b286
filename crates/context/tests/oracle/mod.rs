//! Version 0 as its rules say it, word for word and without a thought for speed; and corpora to compare it with.
//!
//! Nothing of the library is used here: neither its words, nor its order, nor its JSON.

#![allow(dead_code, reason = "not every test uses all of it")]

/// Documents as (id, hash, content).
pub(crate) type Corpus = Vec<(String, String, String)>;

/// The whole answer of `context.resolve`, without the newline at its end.
pub(crate) fn resolve(corpus: &Corpus, query: &str, budget: u64) -> String {
    let lowered = query.to_lowercase();
    let terms: Vec<&str> = lowered.split(char::is_whitespace).filter(|term| !term.is_empty()).collect();
    let mut ranked = Vec::new();
    for (id, version, content) in corpus {
        let lowered = content.to_lowercase();
        let words: Vec<&str> = lowered.split(char::is_whitespace).filter(|word| !word.is_empty()).collect();
        let mut matches = 0_usize;
        for word in &words {
            for term in &terms {
                if word == term {
                    matches += 1;
                }
            }
        }
        let score = if words.is_empty() { 0.0 } else { matches as f32 / words.len() as f32 };
        ranked.push((score, id, version, content, matches, words.len()));
    }
    ranked.sort_by(|left, right| {
        right.0.partial_cmp(&left.0).unwrap().then_with(|| left.1.as_bytes().cmp(right.1.as_bytes()))
    });
    let terms = terms.iter().map(|term| quoted(term)).collect::<Vec<_>>().join(",");
    let (mut used, mut taken, mut documents) = (0, 0, Vec::new());
    for (score, id, version, content, matches, words) in ranked {
        let tokens = (content.len() as u64).div_ceil(4);
        if used + tokens > budget {
            continue;
        }
        used += tokens;
        taken += 1;
        documents.push(format!(
            r#"{{"id":{},"version":"{version}","content":{},"score":{},"tokens":{tokens},"why":{{"query_terms":[{terms}],"term_matches":{matches},"total_words":{words}}}}}"#,
            quoted(id),
            quoted(content),
            float(score),
        ));
    }
    format!(
        r#"{{"documents":[{}],"selection":{{"query":{},"budget":{budget},"tokens_used":{used},"documents_considered":{},"documents_selected":{taken},"documents_excluded_by_budget":{}}}}}"#,
        documents.join(","),
        quoted(query),
        corpus.len(),
        corpus.len() - taken,
    )
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if (control as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// The shortest digits that give this number again; plain down to a millionth, always with a fraction.
fn float(number: f32) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    if number != 0.0 && exponent < -6 {
        return scientific;
    }
    let plain = format!("{number}");
    assert!(plain.len() >= digits.len());
    if plain.contains('.') { plain } else { format!("{plain}.0") }
}

/// Numbers that look random and are the same in each run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 28] = [
            "deployment",
            "Deployment",
            "DEPLOYMENT",
            "guide",
            "guide.",
            "Guide,",
            "the",
            "The",
            "a",
            "cache",
            "版本",
            "ΟΔΟΣ",
            "οδος",
            "οδοσ",
            "İ",
            "i\u{307}",
            "Straße",
            "STRASSE",
            "\u{feff}a",
            "a\u{200b}b",
            "É",
            "E\u{301}",
            "\"quoted\"",
            "back\\slash",
            "x\u{1}y",
            "x\u{1f}y",
            "\u{7f}",
            "\u{8}\u{c}",
        ];
        // Few words come often.
        let place = self.below(WORDS.len()).min(self.below(WORDS.len()));
        WORDS[place]
    }

    fn gap(&mut self) -> &'static str {
        self.pick(&[" ", " ", " ", "\n", "\r\n", "\t", "\u{a0}", "\u{2003}", "\u{3000}", "\u{85}", "\u{2028}", "  "])
    }

    /// Text of up to so many words.
    pub(crate) fn text(&mut self, most: usize) -> String {
        let count = self.below(most + 1);
        let mut text = String::new();
        for _ in 0..count {
            text.push_str(self.word());
            text.push_str(self.gap());
        }
        if self.below(2) == 0 { text.trim_end().to_owned() } else { text }
    }

    /// Contents of up to so many documents: some empty, some equal, one perhaps long.
    pub(crate) fn contents(&mut self, most: usize) -> Vec<String> {
        let count = self.below(most + 1);
        let mut contents: Vec<String> = Vec::new();
        for _ in 0..count {
            let content = match self.below(12) {
                0 => String::new(),
                1 if !contents.is_empty() => contents[self.below(contents.len())].clone(),
                2 => self.text(400),
                3 => self.gap().to_owned(),
                _ => self.text(20),
            };
            contents.push(content);
        }
        contents
    }

    pub(crate) fn query(&mut self) -> String {
        match self.below(10) {
            0 => String::new(),
            1 => "deployment deployment guide".to_owned(),
            2 => "absent".to_owned(),
            3 => self.gap().to_owned(),
            _ => self.text(4),
        }
    }

    /// Budgets near the edges: nothing, everything, and exactly what some documents need.
    pub(crate) fn budget(&mut self, contents: &[String]) -> u64 {
        let all: u64 = contents.iter().map(|content| (content.len() as u64).div_ceil(4)).sum();
        match self.below(6) {
            0 => 0,
            1 => all,
            2 => all.saturating_sub(1),
            3 => contents.first().map_or(1, |content| (content.len() as u64).div_ceil(4)),
            4 => i64::MAX as u64,
            _ => self.below(all as usize + 2) as u64,
        }
    }
}
