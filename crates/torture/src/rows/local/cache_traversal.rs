//! R25: names, manifests and links that lead out of the folder of caches, and all of them swapped in while it is read.
//!
//! Outside of the root there is a whole cache with a secret in it, so that an answer would show whoever got out.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};

use super::super::{Row, Setting};
use crate::nostr_side::host::Host;
use crate::nostr_side::world::World;
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R25", "caches whose names, manifests and links lead elsewhere", run);

const SECRET: &str = "hunter2";

/// Names that lead nowhere, `OUTSIDE` for the absolute path of the secret cache.
const NAMES: [&str; 56] = [
    "..",
    "../",
    "../outside/secret",
    "./../outside/secret",
    "good/../../outside/secret",
    "good/..",
    "a..b",
    "..good",
    "good..",
    "...",
    "....//outside",
    "..\\outside\\secret",
    "\\outside",
    "\\",
    "/",
    "//",
    "OUTSIDE",
    "good/../../../../../../../../../../../../OUTSIDE",
    "/etc",
    "/proc/self/cwd",
    "//etc",
    "absent",
    "good/absent",
    "good/manifest.json",
    "good/index.json",
    "file",
    "file/x",
    "out",
    "out/secret",
    "out/./secret",
    "absolute",
    "inside",
    "inside/documents",
    "loop",
    "loop/x",
    "pipe",
    "good\0",
    "\0",
    "good\0/../..",
    "%2e%2e/outside/secret",
    "..%2foutside",
    "file:///etc",
    "~",
    "~root",
    "$HOME",
    "C:\\",
    "good\n",
    " good",
    "good ",
    "GOOD",
    "\u{202e}doog",
    "ｇｏｏｄ",
    "a/b/c/d/e/f",
    "\u{ff0e}\u{ff0e}/outside",
    "LONG",
    "good/documents",
];

/// What was seen.
#[derive(Default)]
struct Tally {
    tries: usize,
    wrong: Vec<String>,
    /// Answers with the secret in them.
    leaks: usize,
}

impl Tally {
    /// Asks for a cache, which must fail with this code, or be answered where none is wanted.
    fn try_out(&mut self, host: &mut Host, what: &str, name: &str, wanted: &str) {
        self.tries += 1;
        let (code, text) = resolve(host, name);
        self.leaks += usize::from(text.contains(SECRET));
        if code != wanted {
            self.wrong.push(format!("{what:.80}: {code:?} in place of {wanted:?}"));
        }
    }
}

/// A folder with a cache `good` in `root`, and a cache `outside/secret` beside it.
struct Place {
    world: World,
}

impl Place {
    fn new() -> Self {
        let place = Self { world: World::new() };
        fs::create_dir(place.path("root")).unwrap();
        place.build("outside/secret", &[SECRET]);
        place.build("root/good", &["one", "two"]);
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.world.path().join(below)
    }

    /// Builds a cache with the command that people use.
    fn build(&self, cache: &str, documents: &[&str]) {
        let sources = self.path("sources");
        let _ = fs::remove_dir_all(&sources);
        fs::create_dir_all(&sources).unwrap();
        fs::create_dir_all(self.path(cache).parent().unwrap()).unwrap();
        for (number, text) in documents.iter().enumerate() {
            fs::write(sources.join(format!("{number}.md")), text).unwrap();
        }
        let [sources, cache] = [sources, self.path(cache)].map(|path| path.to_str().unwrap().to_owned());
        let mut building =
            self.world.rialto("builder", &["context", "build", "--sources", &sources, "--cache", &cache]);
        assert!(building.end().success(), "{}", building.told());
    }

    fn host(&self) -> Host {
        let root = self.path("root");
        let mut host = Host::over(self.world.rialto("reader", &["mcp", "context", "--root", root.to_str().unwrap()]));
        host.begin();
        host
    }

    fn manifest(&self) -> PathBuf {
        self.path("root/good/manifest.json")
    }

    /// The file of the first document of a cache, and the hash that the manifest names for it.
    fn document(&self, cache: &str) -> (String, String) {
        let manifest: Value =
            serde_json::from_str(&fs::read_to_string(self.path(cache).join("manifest.json")).unwrap()).unwrap();
        let first = &manifest["documents"][0];
        let text = |key: &str| first[key].as_str().unwrap_or_else(|| panic!("no {key} in {first}")).to_owned();
        (text("file"), text("version"))
    }
}

fn run(setting: Setting) -> Score {
    let mut tally = Tally::default();
    names(&mut tally);
    manifests(&mut tally);
    links(&mut tally);
    let swaps = swaps(Duration::from_secs(setting.choose(2, 5)), &mut tally);
    let mut score = Score::default();
    score.at_least("names, manifests and links tried", tally.tries, 80_usize);
    score.none("reads outside", tally.leaks);
    score.none("wrong codes", tally.wrong.len());
    score.at_least("answers while all was swapped", swaps.answers, 1_usize);
    score.at_least("refusals meanwhile", swaps.refusals, 1_usize);
    tally.wrong.iter().take(10).for_each(|wrong| score.note(wrong));
    score
}

/// What `context.resolve` says: the code of its error, and all of its text.
fn resolve(host: &mut Host, name: &str) -> (String, String) {
    let id = host.call("context.resolve", &json!({ "cache": name, "query": "one", "budget": 1000 }));
    let answer = host.answer(id);
    let text = answer.to_string();
    let structured = &answer["result"]["structuredContent"]["error"]["code"];
    let code = structured.as_str().or_else(|| answer["error"]["data"]["code"].as_str());
    let said = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let said: Value = serde_json::from_str(said).unwrap_or(Value::Null);
    let code = code.or_else(|| said["error"]["code"].as_str()).unwrap_or_default().to_owned();
    (code, text)
}

fn names(tally: &mut Tally) {
    let place = Place::new();
    let root = place.path("root");
    symlink("../outside", root.join("out")).unwrap();
    symlink(place.path("outside/secret"), root.join("absolute")).unwrap();
    symlink("good", root.join("inside")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    fs::write(root.join("file"), "x").unwrap();
    pipe(&root.join("pipe"));
    let mut host = place.host();
    let outside = place.path("outside/secret").to_str().unwrap().to_owned();
    for name in NAMES {
        let name = name.replace("/OUTSIDE", &outside).replace("OUTSIDE", &outside).replace("LONG", &"x".repeat(5000));
        // A folder without a manifest is there, and is no cache.
        let code = if name == "good/documents" { "cache_invalid" } else { "cache_missing" };
        tally.try_out(&mut host, &name, &name, code);
    }
    for name in ["", ".", "./", "./."] {
        tally.try_out(&mut host, name, name, "cache_invalid");
    }
    for name in ["good", "./good", "good/", "good/.", "good//"] {
        tally.try_out(&mut host, name, name, "");
    }
}

/// Manifests that name another file as one of their own.
fn manifests(tally: &mut Tally) {
    let place = Place::new();
    let (secret, version) = place.document("outside/secret");
    let secret = secret.trim_start_matches("documents/").to_owned();
    let (own, own_version) = place.document("root/good");
    let whole = fs::read_to_string(place.manifest()).unwrap();
    let absolute = place.path("outside/secret/documents").join(&secret);
    symlink(place.path("outside/secret/documents"), place.path("root/good/documents/link")).unwrap();
    symlink(&absolute, place.path("root/good/documents").join(&secret)).unwrap();
    let files = [
        format!("../../outside/secret/documents/{secret}"),
        format!("documents/../../../outside/secret/documents/{secret}"),
        absolute.to_str().unwrap().to_owned(),
        format!("documents/{secret}"),
        format!("documents/./{secret}"),
        format!("documents//{secret}"),
        format!("./documents/{secret}"),
        format!("documents/{secret}\\u0000"),
        format!("documents/link/{secret}"),
        "documents".to_owned(),
        "documents/".to_owned(),
        "manifest.json".to_owned(),
        "/dev/zero".to_owned(),
        "/proc/self/environ".to_owned(),
        String::new(),
    ];
    // One that has the cache ready, and one that has to look.
    let mut warm = place.host();
    tally.try_out(&mut warm, "the cache as it is", "good", "");
    for file in files {
        assert!(whole.contains(&own) && whole.contains(&own_version), "{whole}");
        fs::write(place.manifest(), whole.replace(&own_version, &version).replace(&own, &file)).unwrap();
        for host in [&mut warm, &mut place.host()] {
            tally.try_out(host, &format!("a manifest with {file}"), "good", "cache_invalid");
        }
    }
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

/// Links and pipes in the place of files and folders.
fn links(tally: &mut Tally) {
    for (part, code) in [
        ("", "cache_missing"),
        ("manifest.json", "cache_invalid"),
        ("documents", "cache_invalid"),
        ("DOCUMENT", "cache_invalid"),
    ] {
        for with_pipe in [false, true] {
            let place = Place::new();
            let part = part.replace("DOCUMENT", &place.document("root/good").0);
            let mut warm = place.host();
            tally.try_out(&mut warm, "the cache as it is", "good", "");
            let path = place.path("root/good").join(&part);
            let path = if part.is_empty() { place.path("root/good") } else { path };
            let moved = place.path("root/moved");
            fs::rename(&path, &moved).unwrap();
            if with_pipe {
                pipe(&path);
            } else {
                symlink(&moved, &path).unwrap();
            }
            for host in [&mut warm, &mut place.host()] {
                tally.try_out(host, &format!("{part} as a link or pipe"), "good", code);
            }
        }
    }
}

struct Swaps {
    answers: usize,
    refusals: usize,
}

/// The cache, its folder, its manifest and its documents are exchanged with links to the secret while they are read.
fn swaps(time: Duration, tally: &mut Tally) -> Swaps {
    let place = Place::new();
    let (root, outside) = (place.path("root"), place.path("outside/secret"));
    let (own, _) = place.document("root/good");
    let (secret, _) = place.document("outside/secret");
    symlink(&outside, root.join("good-link")).unwrap();
    symlink(outside.join("documents"), root.join("good/documents-link")).unwrap();
    symlink(outside.join("manifest.json"), root.join("good/manifest-link")).unwrap();
    symlink(outside.join(secret), root.join("good/documents/link")).unwrap();
    let pairs = [
        (root.join("good"), root.join("good-link")),
        (root.join("good/documents"), root.join("good/documents-link")),
        (root.join("good/manifest.json"), root.join("good/manifest-link")),
        (root.join("good").join(own), root.join("good/documents/link")),
    ];
    let until = Instant::now() + time;
    let mut swaps = Swaps { answers: 0, refusals: 0 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0_usize;
            while Instant::now() < until {
                let (left, right) = &pairs[round / 2 % pairs.len()];
                // Twice each, so that it is undone.
                let _ = renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE);
                round += 1;
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let mut host = place.host();
        while Instant::now() < until {
            let (code, text) = resolve(&mut host, "good");
            tally.leaks += usize::from(text.contains(SECRET));
            match code.as_str() {
                "" => swaps.answers += 1,
                "cache_missing" | "cache_invalid" | "io_error" => swaps.refusals += 1,
                other => tally.wrong.push(format!("{other} while all was swapped")),
            }
        }
    });
    swaps
}
