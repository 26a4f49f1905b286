//! The manifest of a cache: which documents it has, in which files, and the hash over all of them.

use crate::digest::{self, Hash, Hasher};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const INDEX: &str = "index.json";
pub(crate) const DOCUMENTS: &str = "documents";

/// A manifest, in the order of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) cache_version: String,
    pub(crate) build_config: BuildConfig,
    pub(crate) created_at: String,
    pub(crate) document_count: u64,
    pub(crate) documents: Vec<Entry>,
}

/// How a cache was built. There is one way as yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BuildConfig {
    pub(crate) version: String,
    pub(crate) hash_algorithm: String,
}

impl Default for BuildConfig {
    fn default() -> Self {
        Self { version: "1".to_owned(), hash_algorithm: "sha256".to_owned() }
    }
}

/// One document of a cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) version: String,
    /// Where it is, seen from the cache.
    pub(crate) file: String,
}

impl Manifest {
    /// The manifest of documents that are sorted by id.
    pub(crate) fn new(documents: Vec<Entry>, created_at: SystemTime) -> Self {
        let build_config = BuildConfig::default();
        Self {
            cache_version: cache_version(&build_config, &documents),
            build_config,
            created_at: timestamp(created_at),
            document_count: documents.len() as u64,
            documents,
        }
    }

    /// Reads a manifest that this version can serve.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| Error::invalid(format!("{MANIFEST}: {error}")))?;
        if manifest.build_config != BuildConfig::default() {
            let BuildConfig { version, hash_algorithm } = &manifest.build_config;
            return Err(Error::invalid(format!("built by version {version} with {hash_algorithm}, which is unknown")));
        }
        if !is_timestamp(&manifest.created_at) {
            return Err(Error::invalid(format!("{MANIFEST}: created_at is not a time")));
        }
        Ok(manifest)
    }

    /// The bytes of `manifest.json`.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Strings and numbers cannot fail.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// The bytes of `index.json`.
    pub(crate) fn index_json(&self) -> Vec<u8> {
        let files: std::collections::BTreeMap<&str, &str> =
            self.documents.iter().map(|entry| (entry.id.as_str(), entry.file.as_str())).collect();
        serde_json::to_vec_pretty(&files).unwrap_or_default()
    }
}

/// The hash over a cache. Nothing stands between the entries; that is how version 0 has it.
pub(crate) fn cache_version(config: &BuildConfig, documents: &[Entry]) -> String {
    let mut hasher = Hasher::new();
    hasher.add(&serde_json::to_vec(config).unwrap_or_default());
    for entry in documents {
        hasher.add(entry.id.as_bytes());
        hasher.add(b":");
        hasher.add(entry.version.as_bytes());
    }
    digest::versioned(&hasher.finish())
}

/// The name of a document's file: by content; if another document has that content already, by content and id.
pub(crate) fn file_name(content: &Hash, id: &str, is_taken: impl Fn(&str) -> bool) -> Option<String> {
    let short = &digest::hex(content)[..12];
    let plain = format!("{short}.json");
    if !is_taken(&plain) {
        return Some(plain);
    }
    let second = format!("{short}-{}.json", &digest::hex(&digest::hash(id.as_bytes()))[..8]);
    (!is_taken(&second)).then_some(second)
}

/// The file name in an entry's `file`, if that is one that a build gives.
pub(crate) fn document_file(file: &str) -> Option<&str> {
    let name = file.strip_prefix("documents/")?;
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let stem = name.strip_suffix(".json")?;
    let known = match stem.split_once('-') {
        None => digits(stem, 12),
        Some((content, id)) => digits(content, 12) && digits(id, 8),
    };
    known.then_some(name)
}

/// RFC 3339 in UTC, with nanoseconds.
fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Counted in eras of 400 years that begin on 1 March, so that the leap day comes last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + carry;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:09}Z", since.subsec_nanos())
}

/// Whether a text is a time as RFC 3339 has it. Nothing depends on which; version 0 refuses a manifest without one.
fn is_timestamp(text: &str) -> bool {
    let Some((time, zone)) = text.split_at_checked(19) else { return false };
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
    // Of digits and marks, as in the pattern.
    let fits = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text.bytes().zip(pattern.bytes()).all(|(byte, mark)| match mark {
                b'0' => byte.is_ascii_digit(),
                _ => byte.eq_ignore_ascii_case(&mark),
            })
    };
    let within = |text: &str, low: u32, high: u32| number(text).is_some_and(|found| (low..=high).contains(&found));
    let zone = match zone.strip_prefix('.') {
        Some(fraction) => {
            let rest = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if rest.len() == fraction.len() {
                return false;
            }
            rest
        }
        None => zone,
    };
    let is_zone = |zone: &str| within(&zone[1..3], 0, 23) && within(&zone[4..], 0, 59);
    (fits(time, "0000-00-00T00:00:00") || fits(time, "0000-00-00 00:00:00"))
        && within(&time[5..7], 1, 12)
        && within(&time[8..10], 1, 31)
        && within(&time[11..13], 0, 23)
        && within(&time[14..16], 0, 59)
        && within(&time[17..], 0, 60)
        && (fits(zone, "Z") || (fits(zone, "+00:00") || fits(zone, "-00:00")) && is_zone(zone))
}

#[cfg(test)]
mod tests {
    use super::{BuildConfig, Entry, Manifest, cache_version, document_file, file_name, is_timestamp, timestamp};
    use crate::digest::hash;
    use std::time::{Duration, UNIX_EPOCH};

    fn entry(id: &str, content: &str) -> Entry {
        let version = crate::digest::versioned(&hash(content.as_bytes()));
        let file = format!("documents/{}.json", &version[7..19]);
        Entry { id: id.to_owned(), version, file }
    }

    #[test]
    fn the_hash_over_nothing() {
        assert_eq!(
            cache_version(&BuildConfig::default(), &[]),
            "sha256:a77ff76f65e3cd4cd0071b4af8f5294a77f67b6fe0c938a383db5e1271e913ee"
        );
    }

    #[test]
    fn both_files_are_indented_and_end_without_a_newline() {
        let manifest = Manifest::new(vec![entry("a.md", "one"), entry("b.md", "two")], UNIX_EPOCH);
        let version = &manifest.cache_version;
        let [one, two] = [&manifest.documents[0].version, &manifest.documents[1].version];
        assert_eq!(
            String::from_utf8(manifest.to_json()).unwrap(),
            format!(
                "{{\n  \"cache_version\": \"{version}\",\n  \"build_config\": {{\n    \"version\": \"1\",\n    \"hash_algorithm\": \"sha256\"\n  }},\n  \"created_at\": \"1970-01-01T00:00:00.000000000Z\",\n  \"document_count\": 2,\n  \"documents\": [\n    {{\n      \"id\": \"a.md\",\n      \"version\": \"{one}\",\n      \"file\": \"documents/7692c3ad3540.json\"\n    }},\n    {{\n      \"id\": \"b.md\",\n      \"version\": \"{two}\",\n      \"file\": \"documents/3fc4ccfe7458.json\"\n    }}\n  ]\n}}"
            )
        );
        assert_eq!(
            String::from_utf8(manifest.index_json()).unwrap(),
            "{\n  \"a.md\": \"documents/7692c3ad3540.json\",\n  \"b.md\": \"documents/3fc4ccfe7458.json\"\n}"
        );
        assert_eq!(Manifest::new(Vec::new(), UNIX_EPOCH).index_json(), b"{}");
    }

    #[test]
    fn manifests_that_are_refused() {
        let good = String::from_utf8(Manifest::new(vec![entry("a.md", "one")], UNIX_EPOCH).to_json()).unwrap();
        assert!(Manifest::read(good.as_bytes()).is_ok());
        for wrong in [
            String::new(),
            "[]".to_owned(),
            "{}".to_owned(),
            good.replace("\"version\": \"1\"", "\"version\": \"999\""),
            good.replace("\"sha256\"", "\"md5\""),
            good.replace("\"document_count\": 1", "\"document_count\": \"1\""),
            good.replace("document_count", "count"),
            good.replace("created_at", "created"),
            good[..good.len() - 1].to_owned(),
        ] {
            assert!(Manifest::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn equal_contents_get_names_of_their_own() {
        let content = hash(b"same");
        let first = file_name(&content, "a.md", |_| false).unwrap();
        assert_eq!(first, "0967115f2813.json");
        let second = file_name(&content, "b.md", |name| name == first).unwrap();
        assert_eq!(second, format!("0967115f2813-{}.json", &crate::digest::hex(&hash(b"b.md"))[..8]));
        assert_eq!(file_name(&content, "b.md", |_| true), None);
        assert_eq!(document_file(&format!("documents/{second}")), Some(second.as_str()));
    }

    #[test]
    fn only_names_that_a_build_gives_are_read() {
        assert_eq!(document_file("documents/0123456789ab.json"), Some("0123456789ab.json"));
        for wrong in [
            "0123456789ab.json",
            "/documents/0123456789ab.json",
            "documents/../0123456789ab.json",
            "documents//0123456789ab.json",
            "documents/0123456789AB.json",
            "documents/0123456789a.json",
            "documents/0123456789abc.json",
            "documents/0123456789ab",
            "documents/0123456789ab.json/",
            "documents/0123456789ab-0123456.json",
            "documents/0123456789ab-01234567-8.json",
            "documents/0123456789ab.json\0",
            "documents\\0123456789ab.json",
            "../documents/0123456789ab.json",
            "",
        ] {
            assert_eq!(document_file(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times() {
        for (seconds, nanoseconds, expected) in [
            (0, 1, "1970-01-01T00:00:00.000000001Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000000000Z"),
            (1_709_251_199, 999_999_999, "2024-02-29T23:59:59.999999999Z"),
            (1_735_689_600, 0, "2025-01-01T00:00:00.000000000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::new(seconds, nanoseconds)), expected);
            assert!(is_timestamp(expected));
        }
        for good in ["2024-01-01T00:00:00Z", "2024-01-01t00:00:00z", "2024-01-01 00:00:00.1+23:59"] {
            assert!(is_timestamp(good), "{good}");
        }
        for wrong in [
            "",
            "yesterday",
            "2024-01-01",
            "2024-01-01T00:00:00",
            "2024-13-01T00:00:00Z",
            "2024-01-32T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+24:00",
            "2024-01-01T00:00:00Zx",
            "２024-01-01T00:00:00Z",
        ] {
            assert!(!is_timestamp(wrong), "{wrong}");
        }
    }
}
