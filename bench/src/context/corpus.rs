//! A corpus that looks like documentation: Markdown with headings, words as frequent as words are, about 2 KB a file.

use std::{fmt::Write as _, fs, io, path::Path};

/// Words of every frequency: in most documents, in some, in few, in none.
pub const QUERIES: [&str; 8] = [
    "kubernetes deployment",
    "w0",
    "w3 w17 w120",
    "w2500 w9000",
    "w15000",
    "not in any document",
    "W40 w40 w41. deployment",
    "",
];

/// How many different words there are.
const WORDS: usize = 20_000;

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.fraction() * limit as f64) as usize
    }

    /// A word by Zipf's law: the n-th is about n times as rare as the first.
    fn word(&mut self) -> usize {
        ((WORDS as f64).powf(self.fraction()) as usize).saturating_sub(1)
    }
}

/// Writes the documents and says how many bytes they have together.
pub fn write_corpus(folder: &Path, count: usize) -> io::Result<u64> {
    let mut dice = Dice(0x5eed);
    let mut bytes = 0;
    for number in 0..count {
        let within = folder.join(format!("part{}", number % 100));
        if number < 100 {
            fs::create_dir_all(&within)?;
        }
        let text = document(&mut dice, number);
        bytes += text.len() as u64;
        fs::write(within.join(format!("document-{number}.md")), text)?;
    }
    Ok(bytes)
}

fn document(dice: &mut Dice, number: usize) -> String {
    let mut text = format!("# Document {number}\n\n");
    let length = 1200 + dice.below(1700);
    let mut column = 0;
    while text.len() < length {
        match dice.below(400) {
            0 => text.push_str("kubernetes "),
            1 => text.push_str("deployment "),
            2 | 3 => {
                let _ = write!(text, "\n\n## Section {}\n\n", dice.below(1000));
                column = 0;
            }
            mark => {
                let end = if mark % 12 == 0 { ". " } else { " " };
                let _ = write!(text, "w{}{end}", dice.word());
            }
        }
        column += 1;
        if column % 14 == 0 {
            text.push('\n');
        }
    }
    text
}
