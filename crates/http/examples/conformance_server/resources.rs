//! The resources that the suite asks for.

use super::fixture::{PIXEL, text_of};
use rialto_mcp::error::{Error, Kind};
use serde_json::{Value, json};

pub(crate) fn list() -> Value {
    json!({ "resources": [
        { "uri": "test://static-text", "name": "static-text", "description": "Text that never changes", "mimeType": "text/plain" },
        { "uri": "test://static-binary", "name": "static-binary", "description": "An image that never changes", "mimeType": "image/png" },
        { "uri": "test://watched-resource", "name": "watched-resource", "description": "Text to subscribe to", "mimeType": "text/plain" },
    ] })
}

pub(crate) fn templates() -> Value {
    json!({ "resourceTemplates": [
        { "uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data for an id", "mimeType": "application/json" },
    ] })
}

pub(crate) fn read(params: &Value) -> Result<Value, Error> {
    let uri = text_of(params, "uri")?;
    let content = match uri {
        "test://static-text" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PIXEL }),
        "test://watched-resource" => json!({ "uri": uri, "mimeType": "text/plain", "text": "Watch this." }),
        _ => from_template(uri).ok_or_else(|| missing(uri))?,
    };
    Ok(json!({ "contents": [content] }))
}

fn from_template(uri: &str) -> Option<Value> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    let is_name = !id.is_empty() && !id.contains('/');
    is_name.then(|| json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() }))
}

pub(crate) fn missing(uri: &str) -> Error {
    Error::new(Kind::ResourceNotFound, format!("Resource not found: {uri}")).with("uri", uri)
}
