//! The person behind an MCP host, who is asked whether to pay.

use crate::payment::{Approver, Bill, Decision, Later, Question};
use rialto_mcp::call::Call;
use rialto_mcp::json;
use rialto_mcp::version::Version;
use serde_json::{Value, json};

/// Asks over the call that is to be paid.
#[derive(Debug)]
pub(super) struct Host(pub(super) Call);

impl Host {
    /// Whether the host can show a form. In the stateless era it would have to be asked by a result, and by then the request
    /// that is to be paid would have been given up.
    fn can_ask(&self) -> bool {
        let version = self.0.version();
        // An empty object stands for forms, the only way there was at first.
        let has_form = |ability: &[u8]| json::get(ability, "form").is_some() || json::get(ability, "url").is_none();
        let ability = json::get(&self.0.profile.capabilities, "elicitation");
        version >= Version::V2025_06_18 && !version.is_modern() && ability.is_some_and(has_form)
    }
}

impl Approver for Host {
    fn ask<'a>(&'a self, question: &'a Question) -> Later<'a, Decision> {
        Box::pin(async move {
            if !self.can_ask() {
                return Decision::NobodyThere;
            }
            let pay = json!({ "type": "boolean", "title": format!("Pay {}", question.amount), "default": false });
            let form = json!({
                "mode": "form",
                "message": format!("{question}\n{}", question.reason),
                "requestedSchema": { "type": "object", "properties": { "pay": pay }, "required": ["pay"] },
            });
            match self.0.ask("elicitation/create", form.to_string().as_bytes()).await {
                Ok(response) => response.result().map_or(Decision::NobodyThere, judge),
                Err(_) => Decision::NobodyThere,
            }
        })
    }

    fn show<'a>(&'a self, _bill: &'a Bill) -> Later<'a, bool> {
        // A model is not a person who has a wallet; it gets the invoice in the error.
        Box::pin(std::future::ready(false))
    }
}

/// Only a clear yes is one.
fn judge(answer: &[u8]) -> Decision {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let is_yes = answer["action"] == "accept" && answer["content"]["pay"] == true;
    if is_yes { Decision::Pay } else { Decision::Decline }
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::payment::Decision;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (answer, expected) in [
            (r#"{"action":"accept","content":{"pay":true}}"#, Decision::Pay),
            (r#"{"action":"accept","content":{"pay":false}}"#, Decision::Decline),
            (r#"{"action":"accept","content":{"pay":"true"}}"#, Decision::Decline),
            (r#"{"action":"accept"}"#, Decision::Decline),
            (r#"{"action":"decline","content":{"pay":true}}"#, Decision::Decline),
            (r#"{"action":"cancel"}"#, Decision::Decline),
            ("7", Decision::Decline),
        ] {
            assert_eq!(judge(answer.as_bytes()), expected, "{answer}");
        }
    }
}
