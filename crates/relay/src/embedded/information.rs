//! NIP-11: what the relay says about itself to whoever asks by plain HTTP.

use serde_json::{Value, json};

use super::options::Options;

/// The specifications that the relay follows.
const NIPS: [u16; 9] = [1, 9, 11, 13, 40, 42, 45, 50, 70];

pub(super) fn document(options: &Options) -> Value {
    let limits = &options.limits;
    let mut document = json!({
        "name": options.name,
        "description": "A Nostr relay embedded in Rialto, the bridge between the Model Context Protocol and Nostr",
        "software": "rialto",
        "version": env!("CARGO_PKG_VERSION"),
        "supported_nips": NIPS,
        "limitation": {
            "max_message_length": limits.max_message_bytes,
            "max_content_length": limits.max_event_bytes,
            "max_event_tags": limits.max_tags,
            "max_subscriptions": limits.max_subscriptions,
            "max_filters": limits.max_filters,
            "max_limit": limits.max_limit,
            "default_limit": limits.max_limit,
            "max_subid_length": 64,
            "min_pow_difficulty": limits.min_pow_difficulty,
            "created_at_upper_limit": limits.created_at_future_secs,
            "auth_required": options.require_auth,
            "payment_required": false,
            "restricted_writes": false,
        },
    });
    if let Some(url) = &options.url {
        document["url"] = json!(url);
    }
    document
}
