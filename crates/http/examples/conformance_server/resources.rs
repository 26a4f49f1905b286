//! The resources that the suite asks for.

use super::fixture::{SURFACE, text_of};
use rialto_mcp::error::{Error, Kind};
use serde_json::{Value, json};

pub(crate) fn read(params: &Value) -> Result<Value, Error> {
    let uri = text_of(params, "uri")?;
    let content = SURFACE["contents"].get(uri).cloned().or_else(|| from_template(uri));
    let missing = || Error::new(Kind::ResourceNotFound, format!("Resource not found: {uri}")).with("uri", uri);
    Ok(json!({ "contents": [content.ok_or_else(missing)?] }))
}

fn from_template(uri: &str) -> Option<Value> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    let is_name = !id.is_empty() && !id.contains('/');
    is_name.then(|| json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() }))
}
