//! What every tool does when its relay is away or refuses everything, and when nobody can sign. Each tool has a line.

/// What comes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Works,
    /// A number and one word.
    Fails(i64, &'static str),
}

use Outcome::Works;

pub(crate) const NO_RELAY: Outcome = Outcome::Fails(-32603, "relays");
const NO_SIGNER: Outcome = Outcome::Fails(-32602, "no_signer");
const INVALID: Outcome = Outcome::Fails(-32602, "invalid_input");

/// The four situations, in this order: the relay is away, the relay refuses, there is no key, the key is only watched.
pub(crate) type Outcomes = [Outcome; 4];

/// Needs neither a relay nor a key.
const ALWAYS: Outcomes = [Works; 4];
/// Is about who the user is, without asking anybody.
const MINE: Outcomes = [Works, Works, NO_SIGNER, Works];
/// Needs a secret key, and no relay.
const SIGNS: Outcomes = [Works, Works, NO_SIGNER, NO_SIGNER];
/// Reads what anybody can read.
const READS: Outcomes = [NO_RELAY, NO_RELAY, Works, Works];
/// Reads what belongs to the user.
const READS_MINE: Outcomes = [NO_RELAY, NO_RELAY, NO_SIGNER, Works];
/// Needs both.
const PUBLISHES: Outcomes = [NO_RELAY, NO_RELAY, NO_SIGNER, NO_SIGNER];
/// Is about a key of a certain name, which is there only where there are keys.
const KEY: Outcomes = [Works, Works, INVALID, INVALID];
/// Is about the active key, if none is named.
const ACTIVE_KEY: Outcomes = [Works, Works, INVALID, Works];

pub(crate) const OUTCOMES: &[(&str, Outcomes)] = &[
    ("nostr_keys_generate", ALWAYS),
    ("nostr_keys_import", ALWAYS),
    ("nostr_keys_remove", ALWAYS),
    ("nostr_keys_list", ALWAYS),
    ("nostr_keys_set_active", KEY),
    ("nostr_keys_get_active", ALWAYS),
    ("nostr_keys_rename_label", KEY),
    ("nostr_keys_export", ACTIVE_KEY),
    ("nostr_keys_verify", ALWAYS),
    ("nostr_keys_derive_public", KEY),
    ("nostr_config_dir_get", ALWAYS),
    ("nostr_config_dir_set", ALWAYS),
    ("nostr_relays_set", ALWAYS),
    ("nostr_relays_connect", ALWAYS),
    ("nostr_relays_disconnect", ALWAYS),
    ("nostr_relays_status", ALWAYS),
    ("nostr_relays_get_info", READS),
    ("nostr_nip05_resolve", ALWAYS),
    ("nostr_nip05_verify", ALWAYS),
    ("nostr_nip44_encrypt", SIGNS),
    ("nostr_nip44_decrypt", SIGNS),
    ("nostr_handlers_recommend", PUBLISHES),
    ("nostr_handlers_register", PUBLISHES),
    ("nostr_badges_define", PUBLISHES),
    ("nostr_badges_award", PUBLISHES),
    ("nostr_badges_set_profile", PUBLISHES),
    ("nostr_events_parse_emojis", ALWAYS),
    ("nostr_events_list", READS_MINE),
    ("nostr_events_query", READS),
    ("nostr_events_search", READS),
    ("nostr_events_post_text", PUBLISHES),
    ("nostr_events_post_thread", PUBLISHES),
    ("nostr_events_post_group_chat", PUBLISHES),
    ("nostr_events_post_reaction", PUBLISHES),
    ("nostr_events_publish_signed", READS),
    ("nostr_events_post_reply", PUBLISHES),
    ("nostr_events_post_comment", PUBLISHES),
    ("nostr_events_create_poll", PUBLISHES),
    ("nostr_events_vote_poll", PUBLISHES),
    ("nostr_events_get_poll_results", READS),
    ("nostr_groups_put_user", PUBLISHES),
    ("nostr_groups_remove_user", PUBLISHES),
    ("nostr_groups_edit_metadata", PUBLISHES),
    ("nostr_groups_delete_event", PUBLISHES),
    ("nostr_groups_create_group", PUBLISHES),
    ("nostr_groups_delete_group", PUBLISHES),
    ("nostr_groups_create_invite", PUBLISHES),
    ("nostr_groups_join", PUBLISHES),
    ("nostr_groups_leave", PUBLISHES),
    ("nostr_metadata_set", PUBLISHES),
    ("nostr_metadata_get", MINE),
    ("nostr_metadata_fetch", READS_MINE),
    ("nostr_follows_set", PUBLISHES),
    ("nostr_follows_get", MINE),
    ("nostr_follows_fetch", READS_MINE),
    ("nostr_follows_add", PUBLISHES),
    ("nostr_follows_remove", PUBLISHES),
    ("nostr_nip19_convert", ALWAYS),
    ("nostr_nip19_analyze", ALWAYS),
    ("nostr_events_post_long_form", PUBLISHES),
    ("nostr_events_list_long_form", READS),
    ("nostr_events_parse_refs", ALWAYS),
    ("nostr_events_delete", PUBLISHES),
    ("nostr_zaps_get_received", READS_MINE),
    ("nostr_zaps_get_sent", READS_MINE),
    ("nostr_zaps_get_all", READS_MINE),
    ("nostr_zaps_prepare_anonymous", READS),
    ("nostr_zaps_validate_receipt", READS),
    ("nostr_profiles_get", READS),
    ("nostr_events_create_text", MINE),
    ("nostr_events_sign", SIGNS),
    ("nostr_events_post_anonymous", READS),
    ("nostr_events_repost", PUBLISHES),
    ("nostr_messages_send", PUBLISHES),
    ("nostr_messages_list", PUBLISHES),
    ("nostr_messages_set_inbox", PUBLISHES),
    ("nostr_relays_get_list", READS_MINE),
    ("nostr_relays_set_list", PUBLISHES),
    ("nostr_events_get_thread", READS),
    ("nostr_events_list_notifications", READS_MINE),
    ("nostr_lists_get", READS_MINE),
    ("nostr_lists_edit", PUBLISHES),
    ("nostr_groups_get", READS),
    ("nostr_groups_list_messages", READS),
    ("nostr_blobs_upload", SIGNS),
];
