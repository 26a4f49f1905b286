//! Documents as resources: `context://CACHE/ID`, listed page by page, read as they are in the cache.

use super::Server;
use crate::cache::{self, Table};
use crate::error::{Error, Kind};
use crate::library::Library;
use crate::resident::Interrupt;
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error as McpError, Kind as McpKind};
use rialto_mcp::json;
use serde_json::json;

pub(super) const TEMPLATES: &str = r#"{"resourceTemplates":[{"uriTemplate":"context://{cache}/{+id}","name":"document","title":"A document of a context cache","mimeType":"text/markdown"}]}"#;

const SCHEME: &str = "context://";

/// How many resources are on a page.
const PAGE: usize = 500;

/// A page, and the cursor of the next one.
type Page = (Vec<serde_json::Value>, Option<String>);

impl Server {
    pub(super) async fn list_resources(&self, call: &Call) -> Result<Vec<u8>, McpError> {
        let after = match json::get(call.params(), "cursor") {
            None | Some(b"null") => None,
            Some(cursor) => {
                let uri = json::string(cursor).and_then(|cursor| read_uri(&cursor));
                Some(uri.ok_or_else(|| McpError::invalid_params("Invalid cursor"))?)
            }
        };
        let listed = self.work(move |library, interrupt| page(library, after.as_ref(), interrupt)).await;
        let (resources, next) = listed.map_err(|error| {
            McpError::new(McpKind::Internal, error.kind.message()).with("reason", error.kind.code())
        })?;
        let mut result = json!({ "resources": resources });
        if let Some(next) = next {
            result["nextCursor"] = next.into();
        }
        Ok(result.to_string().into_bytes())
    }

    pub(super) async fn read_resource(&self, call: &Call) -> Result<Vec<u8>, McpError> {
        let uri = json::get_string(call.params(), "uri")
            .ok_or_else(|| McpError::invalid_params("`uri` must be a string"))?
            .into_owned();
        let missing =
            || McpError::new(McpKind::ResourceNotFound, format!("Resource not found: {uri}")).with("uri", uri.as_str());
        let (name, id) = read_uri(&uri).ok_or_else(missing)?;
        let read = self.work(move |library, _| read(library, &name, &id)).await;
        match read {
            Ok(text) => {
                let contents = json!([{ "uri": uri, "mimeType": "text/markdown", "text": text }]);
                Ok(json!({ "contents": contents }).to_string().into_bytes())
            }
            Err(error) if matches!(error.kind, Kind::CacheMissing | Kind::CacheInvalid) => {
                Err(missing().with("reason", error.kind.code()))
            }
            Err(error) => Err(McpError::new(McpKind::Internal, error.kind.message()).with("reason", error.kind.code())),
        }
    }
}

fn table(library: &Library, name: &str) -> Result<(crate::beneath::Folder, Table), Error> {
    let folder = cache::open_beneath(library.root(), name)?;
    let table = Table::of(cache::read_manifest(&folder)?)?;
    Ok((folder, table))
}

/// The documents of all caches, by cache and id, from the one after `after` on. Caches that cannot be read are passed over.
fn page(library: &Library, after: Option<&(String, String)>, interrupt: &Interrupt) -> Result<Page, Error> {
    let mut resources = Vec::new();
    let mut last = None;
    for cache in library.list()?.caches.into_iter().filter(|cache| cache.has_manifest) {
        interrupt.check()?;
        let from = match after {
            Some((name, _)) if cache.path < *name => continue,
            Some((name, id)) if cache.path == *name => Some(id),
            _ => None,
        };
        let Ok((_, table)) = table(library, &cache.path) else { continue };
        for row in table.rows.iter().filter(|row| from.is_none_or(|from| *row.id > **from)) {
            if resources.len() == PAGE {
                return Ok((resources, last));
            }
            let uri = write_uri(&cache.path, &row.id);
            let title = format!("{} in {}", row.id, cache.path);
            resources.push(json!({ "uri": uri, "name": &*row.id, "title": title, "mimeType": "text/markdown" }));
            last = Some(uri);
        }
    }
    Ok((resources, None))
}

fn read(library: &Library, name: &str, id: &str) -> Result<String, Error> {
    let (folder, table) = table(library, name)?;
    let place = table.find(id).ok_or(Kind::CacheMissing)?;
    let documents = cache::documents(&folder, &table)?;
    Ok(cache::read_document(documents.as_ref(), &table.rows[place])?.content)
}

/// The address of a document. Everything but letters, digits and a few marks is escaped.
fn write_uri(cache: &str, id: &str) -> String {
    let mut uri = SCHEME.to_owned();
    let mut escape = |text: &str, keep: &[u8]| {
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.contains(&byte) {
                uri.push(char::from(byte));
            } else {
                uri.push_str(&format!("%{byte:02X}"));
            }
        }
    };
    escape(cache, b"");
    escape("/", b"/");
    escape(id, b"/");
    uri
}

/// The cache and the id in an address.
fn read_uri(uri: &str) -> Option<(String, String)> {
    let (cache, id) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some((unescape(cache)?, unescape(id)?))
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{read_uri, write_uri};

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for (cache, id, uri) in [
            ("docs", "a/b.md", "context://docs/a/b.md"),
            ("my notes", "ä #1?.md", "context://my%20notes/%C3%A4%20%231%3F.md"),
            ("a/b", "100%.md", "context://a%2Fb/100%25.md"),
        ] {
            assert_eq!(write_uri(cache, id), uri);
            assert_eq!(read_uri(uri), Some((cache.to_owned(), id.to_owned())));
        }
        for wrong in
            ["context:docs/a", "context://docs", "file:///a", "context://a/%", "context://a/%F", "context://a/%FF"]
        {
            assert_eq!(read_uri(wrong), None, "{wrong}");
        }
    }
}
