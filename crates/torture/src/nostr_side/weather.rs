//! A tool with schemas on both sides, whose answers depend on the city.

use std::time::Duration;

use serde_json::{Value, json};

/// The option of the actor that adds it.
pub const WEATHER: &str = "weather";

pub fn definition() -> Value {
    json!({
        "name": "get_forecast",
        "title": "Forecast",
        "description": "Get the weather forecast for a specific city.",
        "inputSchema": input_schema(),
        "outputSchema": output_schema(),
        "annotations": { "readOnlyHint": true }
    })
}

pub fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "description": "The city name." },
            "days": { "type": "number", "description": "Number of days to forecast." },
            "tag": { "type": "string" }
        },
        "required": ["city"]
    })
}

pub fn output_schema() -> Value {
    json!({ "type": "object", "properties": { "forecast": { "type": "string" } }, "required": ["forecast"] })
}

/// What the tool answers; `None` for a crash.
pub fn answer(arguments: &Value) -> Option<Value> {
    let city = arguments["city"].as_str().unwrap_or_default();
    let structured = match city {
        "Crashville" => return None,
        "Errorton" => {
            return Some(json!({
                "content": [{ "type": "text", "text": "no station there" }, { "type": "text", "text": "sorry" }],
                "isError": true
            }));
        }
        "Errorton-on-Structure" => {
            return Some(json!({
                "content": [{ "type": "text", "text": "half of it" }],
                "structuredContent": { "forecast": "unknown" }, "isError": true
            }));
        }
        "Bareford" => return Some(json!({ "content": [{ "type": "text", "text": "only words" }] })),
        "Wrongham" => json!({ "forecast": 7 }),
        "Missingham" => json!({ "outlook": "Sunny" }),
        "Listowel" => json!(["Sunny"]),
        "Exactness" => json!({
            "forecast": "Zürich “18 °C” \u{1f324}\n\\", "exact": 9_007_199_254_740_993_u64, "half": 18.5,
            "nothing": null, "deep": [[{ "a": {} }]], "more": true
        }),
        "Slowick" => {
            std::thread::sleep(Duration::from_millis(arguments["days"].as_u64().unwrap_or(0)));
            json!({ "forecast": "Slow" })
        }
        city => json!({ "forecast": format!("Sunny in {city} for {} days", arguments["days"].as_u64().unwrap_or(1)) }),
    };
    Some(json!({ "content": [{ "type": "text", "text": structured.to_string() }], "structuredContent": structured }))
}
