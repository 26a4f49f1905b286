//! Filters of subscriptions, as NIP-01 describes them.

use serde_json::Value;

use super::event::Event;

pub fn fits_any(filters: &[Value], event: &Event) -> bool {
    filters.iter().any(|filter| fits(filter, event))
}

/// NIP-01, without `limit`.
fn fits(filter: &Value, event: &Event) -> bool {
    let Some(filter) = filter.as_object() else { return false };
    filter.iter().all(|(key, wanted)| {
        let lists = |value: &str| wanted.as_array().is_some_and(|list| list.iter().any(|item| item == value));
        match key.as_str() {
            "ids" => lists(&event.id),
            "authors" => lists(&event.pubkey),
            "kinds" => wanted.as_array().is_some_and(|list| list.iter().any(|item| *item == event.kind)),
            "since" => wanted.as_i64().is_some_and(|since| event.created_at >= since),
            "until" => wanted.as_i64().is_some_and(|until| event.created_at <= until),
            _ => match key.strip_prefix('#') {
                Some(name) => event.tags(name).iter().any(|tag| tag.first().is_some_and(|value| lists(value))),
                None => true,
            },
        }
    })
}
