//! An MCP server with as many tools as one likes, for a gateway to stand before. One of them, in the middle, is `echo`.

use std::io::{self, BufRead as _, Write as _};

use serde_json::{Value, json};

use crate::Failure;

/// The word that makes this program that server.
pub const SERVER: &str = "serve-tools";

pub fn serve(mut arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let number: usize = arguments.next().ok_or("how many tools?")?.parse()?;
    let list = list(number);
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "tools", "version": "1" },
            }),
            "tools/list" => {
                // Its text is made once.
                writeln!(output, r#"{{"jsonrpc":"2.0","id":{id},"result":{list}}}"#)?;
                output.flush()?;
                continue;
            }
            "tools/call" => json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] }),
            "ping" => json!({}),
            method => {
                let error = json!({ "code": -32601, "message": format!("no {method}") });
                writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "error": error }))?;
                output.flush()?;
                continue;
            }
        };
        writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        output.flush()?;
    }
    Ok(())
}

fn list(number: usize) -> String {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let tools: Vec<_> = (0..number)
        .map(|place| {
            let name = if place == number / 2 { "echo".to_owned() } else { format!("tool_{place}") };
            json!({ "name": name, "description": "Returns its text.", "inputSchema": schema })
        })
        .collect();
    json!({ "tools": tools }).to_string()
}
