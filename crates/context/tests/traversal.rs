//! Nothing outside of the root is ever read: names, links and pipes. Manifests, and all of these swapped in while we read, are tried
//! with the real program (`torture run R25`).
//!
//! Outside of the root there is a whole cache with a secret in it, so that an answer would show whoever got out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rialto_context::error::Kind;
use rialto_context::inspect::inspect;
use rialto_context::{Checking, Library};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use support::{Place, resolve};

const SECRET: &str = "hunter2";

/// A root with a cache `good`, and beside it a cache `outside/secret`.
fn stage() -> Place {
    let place = Place::new();
    place.write("sources/a.md", SECRET).build("secret").unwrap();
    fs::create_dir(place.path("outside")).unwrap();
    fs::rename(place.path("root/secret"), place.path("outside/secret")).unwrap();
    place.write("sources/a.md", "one").write("sources/b.md", "two").build("good").unwrap();
    place
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

#[test]
fn fifty_names_that_lead_nowhere() {
    let place = stage();
    let root = place.path("root");
    symlink("../outside", root.join("out")).unwrap();
    symlink(place.path("outside/secret"), root.join("absolute")).unwrap();
    symlink("good", root.join("inside")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    place.write("root/file", "x");
    pipe(&root.join("pipe"));
    let outside = place.path("outside/secret").to_str().unwrap().to_owned();
    let relative = format!("good/{}", "../".repeat(20)) + outside.trim_start_matches('/');
    let long = "x".repeat(5000);
    let names = [
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
        &outside,
        &relative,
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
        &long,
        "a/b/c/d/e/f",
        "\u{ff0e}\u{ff0e}/outside",
    ];
    assert!(names.len() >= 50);
    let library = place.library();
    for name in names {
        for budget in [0, 1000] {
            assert_eq!(resolve(&library, name, SECRET, budget), Err("cache_missing"), "{name:?}");
        }
        assert_eq!(inspect(&root, name).unwrap_err().kind, Kind::CacheMissing, "{name:?}");
    }
    // Names that mean the root itself: it is a folder, but no cache.
    for name in ["", ".", "./", "./."] {
        assert_eq!(resolve(&library, name, SECRET, 1000), Err("cache_invalid"), "{name:?}");
    }
    // And what is the cache's name, in other words.
    for name in ["good", "./good", "good/", "good/.", "good//"] {
        assert!(resolve(&library, name, "one", 1000).is_ok(), "{name:?}");
    }
}

#[test]
fn links_and_pipes_in_the_place_of_files_and_folders() {
    type Harm = fn(&Place);
    let harms: [(&str, Harm); 8] = [
        ("cache_missing", |place| {
            fs::rename(place.path("root/good"), place.path("root/moved")).unwrap();
            symlink("moved", place.path("root/good")).unwrap();
        }),
        ("cache_invalid", |place| {
            fs::rename(place.path("root/good/manifest.json"), place.path("root/good/m.json")).unwrap();
            symlink("m.json", place.path("root/good/manifest.json")).unwrap();
        }),
        ("cache_invalid", |place| {
            fs::rename(place.path("root/good/documents"), place.path("root/good/d")).unwrap();
            symlink("d", place.path("root/good/documents")).unwrap();
        }),
        ("cache_invalid", |place| {
            let document = place.path("root/good/documents/7692c3ad3540.json");
            fs::rename(&document, place.path("root/good/documents/moved")).unwrap();
            symlink("moved", document).unwrap();
        }),
        ("cache_invalid", |place| {
            fs::remove_file(place.path("root/good/manifest.json")).unwrap();
            pipe(&place.path("root/good/manifest.json"));
        }),
        ("cache_invalid", |place| {
            fs::remove_file(place.path("root/good/documents/7692c3ad3540.json")).unwrap();
            pipe(&place.path("root/good/documents/7692c3ad3540.json"));
        }),
        ("cache_invalid", |place| {
            fs::remove_file(place.path("root/good/manifest.json")).unwrap();
            std::os::unix::net::UnixListener::bind(place.path("root/good/manifest.json")).unwrap();
        }),
        ("cache_invalid", |place| fs::remove_dir_all(place.path("root/good/documents")).unwrap()),
    ];
    for (number, (expected, harm)) in harms.into_iter().enumerate() {
        let place = stage();
        // A server that has the cache ready notices as well as one that has not.
        let warm = place.library();
        assert!(resolve(&warm, "good", "one", 1000).is_ok());
        harm(&place);
        for library in [warm, place.library()] {
            assert_eq!(resolve(&library, "good", "one", 1000), Err(expected), "{number}");
        }
    }
}

#[test]
fn every_damage_to_a_document_is_noticed() {
    let place = stage();
    let open = |checking| Library::new(&place.path("root"), place.store("store"), checking);
    let document = place.path("root/good/documents/7692c3ad3540.json");
    let whole = fs::read_to_string(&document).unwrap();
    let warm = open(Checking::Used);
    assert!(resolve(&warm, "good", "two", 1).is_ok());
    for (number, damaged) in [
        whole.replace("one", "two"),
        whole.replace("a.md", "b.md"),
        whole.replace("\"metadata\":{}", "\"metadata\":{\"a\":true}"),
        whole[..whole.len() - 1].to_owned(),
        String::new(),
        "{}".to_owned(),
        "\u{0}".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(&document, damaged).unwrap();
        // Also when another document is what the budget buys.
        for budget in [1, 1000] {
            for library in [&warm, &open(Checking::Used), &open(Checking::All)] {
                assert_eq!(resolve(library, "good", "two", budget), Err("cache_invalid"), "{number}");
            }
        }
        fs::write(&document, &whole).unwrap();
        assert!(resolve(&warm, "good", "two", 1000).is_ok(), "{number}");
    }
    if fs::set_permissions(&document, fs::Permissions::from_mode(0o0)).is_ok() && fs::read(&document).is_err() {
        assert_eq!(resolve(&warm, "good", "one", 1000), Err("io_error"));
    }
}

#[test]
fn a_replaced_cache_is_answered_from_at_once() {
    let place = stage();
    let library = place.library();
    assert!(resolve(&library, "good", "", 1000).unwrap().contains("one"));
    for round in 0..20 {
        place.write("sources/a.md", format!("round {round}")).rebuild("good").unwrap();
        assert!(resolve(&library, "good", "", 1000).unwrap().contains(&format!("round {round}")));
    }
}

#[test]
fn a_root_that_cannot_be_used() {
    let place = stage();
    let absent = Library::new(&place.path("absent"), None, Checking::Used);
    assert_eq!(resolve(&absent, "good", "", 0), Err("cache_missing"));
    assert_eq!(absent.list().unwrap_err().kind, Kind::Io);
    // The budget is looked at before the cache.
    assert_eq!(resolve(&absent, "good", "", -1), Err("invalid_budget"));
}
