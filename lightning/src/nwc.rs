//! Nostr Wallet Connect (NIP-47) as it is on the wire: kinds, tags, both ways of hiding, and the words for what went wrong.
//!
//! Everything here is a plain mapping between events and JSON; what is done about it is in [`wallet`](crate::wallet).

use crate::connection::Connection;
use nostr::nips::{nip04, nip44};
use nostr::prelude::{Event, EventId, Filter, Kind, Tag, Timestamp, UnsignedEvent};
use rialto_relay::sign::sign;
use serde::Serialize;
use serde_json::{Value, json};

const INFO: Kind = Kind::Custom(13194);
const REQUEST: Kind = Kind::Custom(23194);
const RESPONSE: Kind = Kind::Custom(23195);
const NOTIFICATION_NIP04: Kind = Kind::Custom(23196);
const NOTIFICATION_NIP44: Kind = Kind::Custom(23197);

/// What a wallet can be asked for.
pub(crate) const METHODS: [&str; 9] = [
    "get_info",
    "get_balance",
    "make_invoice",
    "lookup_invoice",
    "list_transactions",
    "pay_invoice",
    "make_hold_invoice",
    "settle_hold_invoice",
    "cancel_hold_invoice",
];

/// What a wallet tells without being asked.
pub(crate) const NOTIFICATIONS: [&str; 3] = ["payment_received", "payment_sent", "hold_invoice_accepted"];

/// Requests are answered the way they came; NIP-04 is for clients that know no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cipher {
    Nip44,
    Nip04,
}

/// The codes of NIP-47 that these wallets use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Code {
    InsufficientBalance,
    Internal,
    NotFound,
    NotImplemented,
    Other,
    PaymentFailed,
    UnsupportedEncryption,
}

/// Why a request was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Whom to answer, and how.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub(crate) id: EventId,
    pub(crate) cipher: Cipher,
    pub(crate) method: String,
}

/// What is wanted.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) ticket: Ticket,
    pub(crate) params: Value,
}

/// What to hear of: requests by our client to us.
pub(crate) fn filter(connection: &Connection) -> Filter {
    Filter::new().kind(REQUEST).author(connection.client).pubkey(connection.service.public_key())
}

/// Whether an event is a request by our client to us that still counts. Its signature has been checked.
pub(crate) fn is_request(connection: &Connection, event: &Event, now: Timestamp) -> bool {
    let me = connection.service.public_key().to_hex();
    event.kind == REQUEST
        && event.pubkey == connection.client
        && event.tags.iter().any(|tag| matches!(tag.as_slice(), [name, value, ..] if name == "p" && *value == me))
        && !event.is_expired_at(now)
}

/// Reads a request. One that cannot be read can still be answered: the ticket says how.
pub(crate) fn read(connection: &Connection, event: &Event) -> Result<Request, (Ticket, Failure)> {
    let encryption = event.tags.iter().find(|tag| tag.kind() == "encryption").and_then(|tag| tag.content());
    let mut ticket = Ticket { id: event.id, cipher: Cipher::Nip44, method: String::new() };
    ticket.cipher = match encryption {
        Some("nip44_v2") => Cipher::Nip44,
        None | Some("nip04") => Cipher::Nip04,
        Some(other) => {
            let words = format!("`{other}` is not spoken here; use nip44_v2 or nip04");
            return Err((ticket, Failure::new(Code::UnsupportedEncryption, words)));
        }
    };
    let secret = connection.service.secret_key();
    let text = match ticket.cipher {
        Cipher::Nip44 => nip44::decrypt(secret, &event.pubkey, &event.content),
        Cipher::Nip04 => nip04::decrypt(secret, &event.pubkey, &event.content),
    };
    let body: Option<Value> = text.ok().and_then(|text| serde_json::from_str(&text).ok());
    let Some(mut body) = body else {
        return Err((ticket, Failure::new(Code::Other, "the request cannot be read")));
    };
    let Some(method) = body["method"].as_str() else {
        return Err((ticket, Failure::new(Code::Other, "the request names no method")));
    };
    ticket.method = method.to_owned();
    Ok(Request { ticket, params: body["params"].take() })
}

/// The answer to a request. `None` if it is too long to be encrypted.
pub(crate) fn response(connection: &Connection, ticket: &Ticket, outcome: &Result<Value, Failure>) -> Option<Event> {
    let body = match outcome {
        Ok(result) => json!({"result_type": ticket.method, "error": null, "result": result}),
        Err(failure) => {
            let error = json!({"code": failure.code, "message": failure.message});
            json!({"result_type": ticket.method, "error": error, "result": null})
        }
    };
    close(connection, RESPONSE, ticket.cipher, Some(ticket.id), &body)
}

/// The news of something, once for clients of each kind.
pub(crate) fn notifications(connection: &Connection, name: &str, news: &Value) -> Vec<Event> {
    let body = json!({"notification_type": name, "notification": news});
    let ways = [(NOTIFICATION_NIP44, Cipher::Nip44), (NOTIFICATION_NIP04, Cipher::Nip04)];
    ways.into_iter().filter_map(|(kind, cipher)| close(connection, kind, cipher, None, &body)).collect()
}

/// What the wallet can do, for everybody to see.
pub(crate) fn info(connection: &Connection) -> Event {
    let tags = [
        Tag::custom("encryption", ["nip44_v2 nip04"]),
        Tag::custom("notifications", [NOTIFICATIONS.join(" ")]),
        Tag::public_key(connection.client),
    ];
    let content = format!("{} notifications", METHODS.join(" "));
    let service = &connection.service;
    sign(service, UnsignedEvent::new(service.public_key(), Timestamp::now(), INFO, tags, content))
}

fn close(connection: &Connection, kind: Kind, cipher: Cipher, request: Option<EventId>, body: &Value) -> Option<Event> {
    let Connection { service, client } = connection;
    let text = body.to_string();
    let content = match cipher {
        Cipher::Nip44 => nip44::encrypt(service.secret_key(), client, text, nip44::Version::V2),
        Cipher::Nip04 => nip04::encrypt(service.secret_key(), client, text),
    };
    let tags = [Tag::public_key(*client)].into_iter().chain(request.map(Tag::event));
    let unsigned = UnsignedEvent::new(service.public_key(), Timestamp::now(), kind, tags, content.ok()?);
    Some(sign(service, unsigned))
}

#[cfg(test)]
mod tests {
    use super::{Cipher, Code, Failure, REQUEST, info, is_request, notifications, read, response};
    use crate::connection::Connection;
    use nostr::nips::{nip04, nip44};
    use nostr::prelude::{Event, Keys, Kind, PublicKey, Tag, Timestamp, UnsignedEvent};
    use rialto_relay::sign::sign;
    use serde_json::{Value, json};

    const NOW: u64 = 1_800_000_000;

    fn connection() -> (Connection, Keys) {
        let client = Keys::generate();
        (Connection { service: Keys::generate(), client: client.public_key() }, client)
    }

    fn event(by: &Keys, to: PublicKey, kind: Kind, tags: Vec<Tag>, content: String) -> Event {
        let tags = [Tag::public_key(to)].into_iter().chain(tags);
        sign(by, UnsignedEvent::new(by.public_key(), Timestamp::from(NOW), kind, tags, content))
    }

    #[test]
    fn only_the_clients_requests_to_us_count_and_only_while_they_are_meant_to() {
        let (connection, client) = connection();
        let (me, other) = (connection.service.public_key(), Keys::generate());
        let until = |time: u64| vec![Tag::expiration(Timestamp::from(time))];
        for (counts, by, to, kind, tags) in [
            (true, &client, me, REQUEST, vec![]),
            (true, &client, me, REQUEST, until(NOW)),
            (false, &client, me, REQUEST, until(NOW - 1)),
            (false, &other, me, REQUEST, vec![]),
            (false, &client, other.public_key(), REQUEST, vec![]),
            (false, &client, me, Kind::Custom(23195), vec![]),
        ] {
            let event = event(by, to, kind, tags, String::new());
            assert_eq!(is_request(&connection, &event, Timestamp::from(NOW)), counts, "{event:?}");
        }
    }

    #[test]
    fn a_request_is_answered_the_way_it_came() {
        let (connection, client) = connection();
        let (secret, me) = (client.secret_key(), connection.service.public_key());
        let text = json!({"method": "get_info", "params": {"a": 1}}).to_string();
        let nip44_tag = vec![Tag::custom("encryption", ["nip44_v2"])];
        for (cipher, content, tags) in [
            (Cipher::Nip44, nip44::encrypt(secret, &me, &text, nip44::Version::V2).unwrap(), nip44_tag),
            (Cipher::Nip04, nip04::encrypt(secret, &me, &text).unwrap(), vec![]),
        ] {
            let request = read(&connection, &event(&client, me, REQUEST, tags, content)).unwrap();
            assert_eq!((request.ticket.cipher, request.ticket.method.as_str()), (cipher, "get_info"));
            assert_eq!(request.params, json!({"a": 1}));
            let failure = Failure::new(Code::InsufficientBalance, "poor");
            let answer = response(&connection, &request.ticket, &Err(failure)).unwrap();
            answer.verify().unwrap();
            assert_eq!(answer.tags.event_ids().next(), Some(request.ticket.id));
            let text = match cipher {
                Cipher::Nip44 => nip44::decrypt(secret, &me, &answer.content),
                Cipher::Nip04 => nip04::decrypt(secret, &me, &answer.content),
            };
            let body: Value = serde_json::from_str(&text.unwrap()).unwrap();
            let error = json!({"code": "INSUFFICIENT_BALANCE", "message": "poor"});
            assert_eq!(body, json!({"result_type": "get_info", "error": error, "result": null}));
        }
    }

    #[test]
    fn news_goes_out_in_both_kinds() {
        let (connection, _) = connection();
        info(&connection).verify().unwrap();
        let kinds: Vec<u16> =
            notifications(&connection, "payment_sent", &json!({})).iter().map(|event| event.kind.as_u16()).collect();
        assert_eq!(kinds, [23197, 23196]);
    }
}
