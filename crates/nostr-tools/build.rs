//! Finds the tools: every file in `src/tools` is one, so that adding a tool touches one file.

#![allow(clippy::expect_used, reason = "a build that cannot go on should say so and stop")]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    let folder = Path::new(&root).join("src/tools");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("there are tools")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".rs").map(ToOwned::to_owned))
        .collect();
    names.sort();
    let mut text = String::new();
    for name in &names {
        let path = folder.join(name).with_extension("rs");
        writeln!(text, "#[path = {:?}]\nmod {name};", path.display().to_string()).expect("a text takes everything");
    }
    text.push_str("pub(crate) fn all() -> Vec<Entry> {\n    vec![\n");
    for name in &names {
        writeln!(text, "        Entry::of::<{name}::Tool>(),").expect("a text takes everything");
    }
    text.push_str("    ]\n}\n");
    let out = env::var("OUT_DIR").expect("cargo says where to write");
    fs::write(Path::new(&out).join("tools.rs"), text).expect("the build folder can be written");
}
