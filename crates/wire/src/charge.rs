//! What a provider asks for before it goes on, whichever way it is asked.

use crate::tags::tag;
use nostr::prelude::Tag;
use serde_json::{Value, json};

/// One quote for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// What is to be paid, in whole satoshis; the same stands in the invoice.
    pub sat: u64,
    pub invoice: Option<String>,
    /// Mints whose tokens are taken instead.
    pub mints: Vec<String>,
    /// For people.
    pub words: String,
}

impl Charge {
    /// The tags of feedback that ask for it.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        let sat = self.sat.to_string();
        let mut tags = Vec::new();
        match &self.invoice {
            // Some look for the invoice behind the amount, some in a tag of its own.
            Some(invoice) => tags.extend([tag("amount", [&sat, invoice]), tag("invoice", [invoice])]),
            None => tags.push(tag("amount", [&sat])),
        }
        tags.extend(self.mints.iter().map(|mint| tag("mint", [mint])));
        tags
    }

    /// The error of a message that asks for it.
    pub(crate) fn object(&self) -> Value {
        let mut error = json!({ "code": "payment_required", "message": self.words, "amount_sat": self.sat });
        if let Some(invoice) = &self.invoice {
            error["invoice"] = invoice.as_str().into();
        }
        if !self.mints.is_empty() {
            error["mints"] = json!(self.mints);
        }
        error
    }
}
