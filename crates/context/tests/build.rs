//! What a build makes of a folder: exactly these bytes, nothing half done, nothing lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use rialto_context::build::{Existing, IgnoreFiles, Plan, Step, build};
use rialto_context::error::Kind;
use rialto_context::inspect::{inspect, inspect_folder, list};
use rialto_context::verify::{Check, verify};
use support::{Place, snapshot};

fn text(place: &Place, below: &str) -> String {
    fs::read_to_string(place.path(below)).unwrap()
}

#[test]
fn the_bytes_of_every_file() {
    let place = Place::new();
    place.write("sources/Hello.md", "# Hello\r\n\"you\"\n").write("sources/sub/B.md", "b").write("sources/x.txt", "no");
    place.write("sources/Upper.MD", "no").write("sources/.hidden/h.md", "h").write("sources/.md", "no");
    let built = place.build("c").unwrap();
    assert_eq!((built.documents, built.reused, built.skipped.len()), (3, 0, 0));
    let hash = |content: &str| rialto_context::Document::new("x", content.to_owned()).version[7..].to_owned();
    let hashes = [hash("h"), hash("# Hello\r\n\"you\"\n"), hash("b")];
    assert_eq!(hashes[2], "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d");
    let files = snapshot(&place.path("root/c"));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let mut expected: Vec<String> = hashes.iter().map(|hash| format!("documents/{}.json", &hash[..12])).collect();
    expected.sort();
    expected.extend(["index.json".to_owned(), "manifest.json".to_owned()]);
    assert_eq!(names, expected);
    let document = format!("root/c/documents/{}.json", &hashes[1][..12]);
    assert_eq!(
        text(&place, &document),
        format!(
            r##"{{"id":"hello.md","version":"sha256:{}","source":"Hello.md","content":"# Hello\r\n\"you\"\n","metadata":{{}}}}"##,
            hashes[1]
        )
    );
    let manifest = text(&place, "root/c/manifest.json");
    assert!(manifest.starts_with(&format!("{{\n  \"cache_version\": \"{}\",\n", built.cache_version)), "{manifest}");
    assert!(manifest.contains("\n  \"created_at\": \"2023-11-14T22:13:20.000000005Z\",\n  \"document_count\": 3,\n"));
    let ids = ["\"id\": \".hidden/h.md\"", "\"id\": \"hello.md\"", "\"id\": \"sub/b.md\""];
    assert!(ids.iter().map(|id| manifest.find(id).unwrap()).is_sorted(), "{manifest}");
    assert!(verify(&place.path("root/c")).unwrap().valid);
}

#[test]
fn an_empty_folder_becomes_an_empty_cache() {
    let place = Place::new();
    let built = place.build("c").unwrap();
    assert_eq!(built.cache_version, "sha256:a77ff76f65e3cd4cd0071b4af8f5294a77f67b6fe0c938a383db5e1271e913ee");
    assert_eq!(text(&place, "root/c/index.json"), "{}");
    assert!(text(&place, "root/c/manifest.json").ends_with("\"document_count\": 0,\n  \"documents\": []\n}"));
    let expected = r#"{"documents":[],"selection":{"query":"a","budget":5,"tokens_used":0,"documents_considered":0,"documents_selected":0,"documents_excluded_by_budget":0}}"#;
    assert_eq!(place.resolve("c", "a", 5).unwrap(), expected);
}

#[test]
fn equal_contents_are_all_kept() {
    let place = Place::new();
    for name in ["a.md", "b.md", "c.md", "LICENSE.md", "copy/LICENSE.md"] {
        place.write(&format!("sources/{name}"), if name.contains("LIC") { "same" } else { "" });
    }
    place.build("c").unwrap();
    let index = text(&place, "root/c/index.json");
    assert!(index.contains("\"a.md\": \"documents/e3b0c44298fc.json\""), "{index}");
    assert!(index.contains("\"b.md\": \"documents/e3b0c44298fc-11dd481a.json\""), "{index}");
    assert!(index.contains("\"copy/license.md\": \"documents/0967115f2813.json\""), "{index}");
    let answer = place.resolve("c", "same", 100).unwrap();
    assert!(answer.contains("\"documents_selected\":5"), "{answer}");
    assert!(verify(&place.path("root/c")).unwrap().valid);
}

#[test]
fn what_is_there_stays_unless_it_is_a_cache_and_replacing_was_asked_for() {
    let place = Place::new();
    place.write("sources/a.md", "one").build("c").unwrap();
    let before = snapshot(&place.path("root/c"));
    let error = place.build("c").unwrap_err();
    assert_eq!((error.kind, error.kind.exit()), (Kind::Io, 6));
    assert_eq!(snapshot(&place.path("root/c")), before);

    for (name, files) in [
        ("notes", &["notes.txt"][..]),
        ("web", &["manifest.json"]),
        ("mixed", &["manifest.json", "index.json", "documents/0123456789ab.json", "letter.txt"]),
        ("strange", &["manifest.json", "documents/letter.txt"]),
        ("deep", &["manifest.json", "documents/sub/0123456789ab.json"]),
        ("bare", &["documents/0123456789ab.json"]),
    ] {
        for file in files {
            let is_cache_manifest = *file == "manifest.json" && name != "web";
            let content = if is_cache_manifest { r#"{"cache_version":"sha256:00"}"# } else { "{}" };
            place.write(&format!("root/{name}/{file}"), content);
        }
        let before = snapshot(&place.path("root").join(name));
        assert_eq!(place.rebuild(name).unwrap_err().kind, Kind::Io, "{name}");
        assert_eq!(snapshot(&place.path("root").join(name)), before, "{name}");
    }
    place.write("root/file", "x");
    symlink(place.path("root/c"), place.path("root/link")).unwrap();
    for name in ["file", "link"] {
        assert_eq!(place.rebuild(name).unwrap_err().kind, Kind::Io, "{name}");
    }
    assert!(place.path("root/link").is_symlink());
    // An empty folder loses nothing.
    fs::create_dir(place.path("root/empty")).unwrap();
    place.rebuild("empty").unwrap();
    assert!(verify(&place.path("root/empty")).unwrap().valid);
    assert!(
        fs::read_dir(place.path("root")).unwrap().all(|entry| !entry.unwrap().file_name().as_bytes().starts_with(b"."))
    );
}

#[test]
fn a_build_that_was_faster_is_replaced_only_if_that_was_asked_for() {
    for (existing, expected) in [(Existing::Replace, "later"), (Existing::Keep, "faster")] {
        let place = Place::new();
        place.write("sources/a.md", "later");
        let result = build(&Plan { existing, ..place.plan("c") }, &mut |step| {
            if step == Step::Complete {
                place.write("sources/a.md", "faster").build("c").unwrap();
            }
        });
        assert_eq!(result.is_ok(), existing == Existing::Replace, "{result:?}");
        assert!(place.resolve("c", "", 9).unwrap().contains(expected));
        assert_eq!(fs::read_dir(place.path("root")).unwrap().count(), 1);
    }
}

/// Whatever takes the place of a cache while the next one is built is nobody's to remove.
#[test]
fn a_folder_that_comes_while_a_build_runs_is_not_lost() {
    let others: [&dyn Fn(&Place); 4] = [
        &|place| _ = place.write("root/c/notes.txt", "mine"),
        &|place| _ = place.write("root/c/documents/notes.txt", "mine"),
        &|place| _ = place.write("root/c/manifest.json", "{}").write("root/c/documents/0123456789ab.json", "mine"),
        &|place| _ = place.write("root/c", "mine"),
    ];
    for (number, other) in others.iter().enumerate() {
        let place = Place::new();
        place.write("sources/a.md", "old").build("c").unwrap();
        place.write("sources/a.md", "new");
        let mut before = Vec::new();
        let result = build(&Plan { existing: Existing::Replace, ..place.plan("c") }, &mut |step| {
            if step == Step::Complete {
                fs::rename(place.path("root/c"), place.path("moved")).unwrap();
                other(&place);
                before = snapshot(&place.path("root")).into_iter().filter(|file| file.0.starts_with('c')).collect();
            }
        });
        assert_eq!(result.unwrap_err().kind, Kind::Io, "{number}");
        assert_eq!(snapshot(&place.path("root")), before, "{number}");
    }
}

#[test]
fn unchanged_documents_are_not_written_again() {
    let place = Place::new();
    place.write("sources/a.md", "one").write("sources/b.md", "two").write("sources/c.md", "three").build("c").unwrap();
    let inode = |name: &str| fs::metadata(place.path("root/c/documents").join(name)).unwrap().ino();
    let before = inode("7692c3ad3540.json");
    // One stays, one is tampered with in the cache, one changes, one goes, one comes.
    let tampered = place.path("root/c/documents/3fc4ccfe7458.json");
    fs::write(&tampered, fs::read_to_string(&tampered).unwrap().replace("two", "TWO")).unwrap();
    fs::remove_file(place.path("sources/c.md")).unwrap();
    place.write("sources/d.md", "four");
    let built = place.rebuild("c").unwrap();
    assert_eq!((built.documents, built.reused), (3, 1));
    assert_eq!(inode("7692c3ad3540.json"), before);
    assert_eq!(fs::metadata(place.path("root/c/documents/7692c3ad3540.json")).unwrap().nlink(), 1);
    let report = verify(&place.path("root/c")).unwrap();
    assert!(report.valid, "{report:?}");
    // And it is what a build from nothing gives.
    place.build("fresh").unwrap();
    assert_eq!(snapshot(&place.path("root/c")), snapshot(&place.path("root/fresh")));
}

#[test]
fn sources_that_cannot_become_documents() {
    let place = Place::new();
    place.write("sources/a/Guide.md", "1").write("sources/A/guide.md", "2");
    let error = place.build("c").unwrap_err();
    assert_eq!(error.kind, Kind::CacheInvalid);
    assert!(error.detail.unwrap().contains("same id"));
    fs::remove_dir_all(place.path("sources/A")).unwrap();

    place.write("sources/latin.md", b"caf\xe9");
    let error = place.build("c").unwrap_err();
    assert_eq!((error.kind, error.detail.as_deref()), (Kind::Internal, Some("latin.md: it is not UTF-8")));
    fs::remove_file(place.path("sources/latin.md")).unwrap();

    let odd = place.path("sources").join(std::ffi::OsStr::from_bytes(b"caf\xe9.md"));
    fs::write(&odd, "x").unwrap();
    assert_eq!(place.build("c").unwrap_err().kind, Kind::Internal);
    fs::remove_file(odd).unwrap();

    let plan = Plan { sources: place.path("absent"), ..place.plan("c") };
    assert_eq!(build(&plan, &mut |_| {}).unwrap_err().kind, Kind::Io);
    // Nothing was left behind by any of them.
    assert_eq!(fs::read_dir(place.path("root")).unwrap().count(), 0);
}

#[test]
fn a_folder_that_cannot_be_read_fails_the_build() {
    let place = Place::new();
    place.write("sources/a.md", "1").write("sources/closed/b.md", "2");
    fs::set_permissions(place.path("sources/closed"), fs::Permissions::from_mode(0o0)).unwrap();
    // Some users may read everything.
    if fs::read_dir(place.path("sources/closed")).is_err() {
        assert_eq!(place.build("c").unwrap_err().kind, Kind::Io);
    }
    fs::set_permissions(place.path("sources/closed"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn links_are_followed_only_inside_of_the_sources() {
    let place = Place::new();
    place.write("sources/a.md", "inside").write("outside/secret.md", "secret").write("sources/sub/x.md", "x");
    let link = |to: &str, name: &str| symlink(to, place.path("sources").join(name)).unwrap();
    link("a.md", "b.md");
    link("../outside/secret.md", "c.md");
    link(place.path("outside/secret.md").to_str().unwrap(), "d.md");
    link("nowhere.md", "e.md");
    link("f.md", "f.md");
    link("sub", "linked");
    link("../outside", "out");
    link("sub", "folder.md");
    let built = place.build("c").unwrap();
    assert_eq!(built.skipped, ["c.md", "d.md", "e.md", "f.md", "folder.md"]);
    let answer = place.resolve("c", "", 100).unwrap();
    assert!(answer.contains("\"id\":\"b.md\"") && answer.contains("\"documents_selected\":3"), "{answer}");
    assert!(!snapshot(&place.path("root")).iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("secret")));
}

/// Git itself says what it ignores.
#[test]
fn ignore_files_say_what_git_says() {
    let place = Place::new();
    let top = place.path("sources");
    let git = |arguments: &[&str]| {
        let run = Command::new("git").args(arguments).current_dir(&top).env("HOME", &top).output();
        run.ok().map(|output| String::from_utf8(output.stdout).unwrap())
    };
    if git(&["init", "-q"]).is_none() {
        eprintln!("NOT CHECKED: there is no git");
        return;
    }
    let rules = "# comment\n*.tmp.md\n!keep.tmp.md\n/top.md\nbuild/\n**/deep/x.md\nmid/**/y.md\nall/**\nq?.md\n[a-c]1.md\n[!a-c]2.md\n\
        \\#hash.md\n\\!bang.md\nspace.md   \nback\\*slash.md\nfoo/*.md\n[]]3.md\n[x-\n*a*b*.md\n**/s.md\nnot/\n!not/in.md\n";
    place
        .write("sources/.gitignore", rules)
        .write("sources/sub/.gitignore", "local.md\n!top.md\n/here.md\n!a.tmp.md\n");
    let names = [
        "a.md",
        "a.tmp.md",
        "keep.tmp.md",
        "top.md",
        "build/a.md",
        "sub/build/b.md",
        "deep/x.md",
        "p/deep/x.md",
        "mid/y.md",
        "mid/a/y.md",
        "mid/a/b/y.md",
        "all/a.md",
        "all/b/c.md",
        "q1.md",
        "q.md",
        "q12.md",
        "a1.md",
        "d1.md",
        "a2.md",
        "d2.md",
        "#hash.md",
        "!bang.md",
        "space.md",
        "back*slash.md",
        "backxslash.md",
        "foo/a.md",
        "foo/b/a.md",
        "]3.md",
        "xaxbx.md",
        "ab.md",
        "ba.md",
        "s.md",
        "p/s.md",
        "not/in.md",
        "sub/top.md",
        "sub/local.md",
        "sub/here.md",
        "sub/p/here.md",
        "sub/a.tmp.md",
        "sub/b.tmp.md",
        "sub/q1.md",
        "local.md",
        "buildx/a.md",
        "build.md",
        "p/top.md",
    ];
    for name in names {
        place.write(&format!("sources/{name}"), name);
    }
    let untracked = git(&["ls-files", "--others", "--exclude-standard", "-z"]).unwrap();
    let expected: BTreeSet<&str> = untracked.split('\0').filter(|name| name.ends_with(".md")).collect();
    let plan = Plan { ignore_files: IgnoreFiles::Respect, ..place.plan("c") };
    build(&plan, &mut |_| {}).unwrap();
    let files: Vec<String> = snapshot(&place.path("root/c/documents"))
        .into_iter()
        .map(|(_, bytes)| {
            serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()["source"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(files.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
    assert!(expected.len() > 15 && expected.len() < names.len() - 15, "{expected:?}");
    // Without asking for it, ignore files mean nothing.
    assert_eq!(place.build("all").unwrap().documents, names.len());
}

#[test]
fn steps_come_in_order() {
    let place = Place::new();
    place.write("sources/a.md", "1").write("sources/b.md", "2");
    let mut steps = Vec::new();
    build(&place.plan("c"), &mut |step| steps.push(step)).unwrap();
    use Step::{Begun, Cleared, Complete, Found, Placed, Written};
    assert_eq!(steps, [Found(2), Begun, Written(1), Written(2), Complete, Placed]);
    steps.clear();
    build(&Plan { existing: Existing::Replace, ..place.plan("c") }, &mut |step| steps.push(step)).unwrap();
    assert_eq!(steps, [Found(2), Begun, Written(1), Written(2), Complete, Placed, Cleared]);
}

#[test]
fn what_inspection_and_listing_say() {
    let place = Place::new();
    let root = place.path("root");
    place.write("sources/a.md", "one").write("sources/b.md", "two").build("good").unwrap();
    let sizes = |names: &[&str]| -> u64 {
        let size = |name: &&str| fs::metadata(root.join("good").join(name)).unwrap().len();
        names.iter().map(size).sum()
    };
    let inspection = inspect(&root, "good").unwrap();
    assert_eq!((inspection.document_count, inspection.valid), (2, true));
    assert_eq!(inspection.total_bytes, sizes(&["manifest.json", "index.json"]));
    let by_path = inspect_folder(&root.join("good")).unwrap();
    assert_eq!(by_path.total_bytes, sizes(&["documents/7692c3ad3540.json", "documents/3fc4ccfe7458.json"]));

    place.write("root/text/manifest.json", "not json").write("root/list/manifest.json", "[]");
    place.write("root/half/manifest.json", r#"{"cache_version":"sha256:1","document_count":-1}"#);
    place.write("root/other/manifest.json", r#"{"cache_version":1,"document_count":3}"#);
    fs::create_dir_all(root.join("none")).unwrap();
    fs::create_dir_all(root.join("folder/manifest.json")).unwrap();
    for (name, version, count) in [
        ("text", "", 0),
        ("list", "", 0),
        ("half", "sha256:1", 0),
        ("other", "", 3),
        ("none", "", 0),
        ("folder", "", 0),
    ] {
        let found = inspect(&root, name).unwrap();
        let told = (found.cache_version.as_str(), found.document_count, found.total_bytes, found.valid);
        assert_eq!(told, (version, count, 0, false), "{name}");
        assert_eq!(inspect_folder(&root.join(name)).unwrap_err().kind, Kind::CacheInvalid, "{name}");
        assert_eq!(place.resolve(name, "", 0), Err("cache_invalid"), "{name}");
    }
    assert_eq!(inspect(&root, "absent").unwrap_err().kind, Kind::CacheMissing);
    assert_eq!(inspect_folder(&root.join("absent")).unwrap_err().kind, Kind::CacheMissing);

    place.write("root/file", "x").write("root/Zebra/x", "x").write("root/ä/x", "x");
    symlink(root.join("good"), root.join("link")).unwrap();
    let listing = list(&root).unwrap();
    let shown: Vec<(&str, bool)> = listing.caches.iter().map(|one| (one.path.as_str(), one.has_manifest)).collect();
    assert_eq!(
        shown,
        [
            ("Zebra", false),
            ("folder", false),
            ("good", true),
            ("half", true),
            ("list", true),
            ("none", false),
            ("other", true),
            ("text", true),
            ("ä", false)
        ]
    );
    assert_eq!(list(&root.join("absent")).unwrap_err().kind, Kind::Io);
    assert_eq!(list(&root.join("file")).unwrap_err().kind, Kind::Io);
}

/// Names that are not UTF-8 count, as in version 0, though nobody can ask for them.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_text_are_listed_and_counted() {
    use std::ffi::OsStr;
    let place = Place::new();
    place.write("sources/a.md", "one").build("c").unwrap();
    let before = inspect(&place.path("root"), "c").unwrap().total_bytes;
    fs::write(place.path("root/c").join(OsStr::from_bytes(b"x\xff")), "12345").unwrap();
    assert_eq!(inspect(&place.path("root"), "c").unwrap().total_bytes, before + 5);
    fs::create_dir(place.path("root").join(OsStr::from_bytes(b"a\xff"))).unwrap();
    fs::write(place.path("root").join(OsStr::from_bytes(b"a\xff/manifest.json")), "").unwrap();
    let caches = list(&place.path("root")).unwrap().caches;
    let caches: Vec<(&str, bool)> = caches.iter().map(|cache| (cache.path.as_str(), cache.has_manifest)).collect();
    assert_eq!(caches, [("a\u{fffd}", true), ("c", true)]);
}

#[test]
fn verification_finds_each_kind_of_damage() {
    type Harm = fn(&Path);
    fn change(path: &Path, from: &str, to: &str) {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    }
    let harms: [(Check, Harm); 12] = [
        (Check::Manifest, |cache| fs::write(cache.join("manifest.json"), "{").unwrap()),
        (Check::Manifest, |cache| {
            change(&cache.join("manifest.json"), "\"document_count\": 2", "\"document_count\": 3");
        }),
        (Check::Manifest, |cache| change(&cache.join("manifest.json"), "documents/3fc4ccfe7458", "../documents/3fc4")),
        (Check::CacheVersion, |cache| {
            change(&cache.join("manifest.json"), "\"cache_version\": \"sha256:", "\"cache_version\": \"sha256:0");
        }),
        (Check::Index, |cache| change(&cache.join("index.json"), "a.md", "b.md")),
        (Check::Index, |cache| fs::remove_file(cache.join("index.json")).unwrap()),
        (Check::Document, |cache| fs::remove_file(cache.join("documents/7692c3ad3540.json")).unwrap()),
        (Check::Document, |cache| change(&cache.join("documents/7692c3ad3540.json"), "one", "One")),
        (Check::Document, |cache| fs::remove_dir_all(cache.join("documents")).unwrap()),
        (Check::Orphan, |cache| fs::write(cache.join("documents/000000000000.json"), "{}").unwrap()),
        (Check::Orphan, |cache| fs::write(cache.join("notes.txt"), "").unwrap()),
        (Check::Document, |cache| {
            fs::rename(cache.join("documents/7692c3ad3540.json"), cache.join("documents/000000000000.json")).unwrap();
            change(&cache.join("manifest.json"), "7692c3ad3540.json", "000000000000.json");
            change(&cache.join("index.json"), "7692c3ad3540.json", "000000000000.json");
        }),
    ];
    for (number, (check, harm)) in harms.into_iter().enumerate() {
        let place = Place::new();
        place.write("sources/a.md", "one").write("sources/b.md", "two").build("c").unwrap();
        harm(&place.path("root/c"));
        let report = verify(&place.path("root/c")).unwrap();
        assert!(!report.valid && report.problems.iter().any(|problem| problem.check == check), "{number}: {report:?}");
    }
    assert_eq!(verify(Path::new("absent")).unwrap_err().kind, Kind::CacheMissing);
}
