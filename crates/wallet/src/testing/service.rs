//! The end of Nostr Wallet Connect that a wallet has, with the faults that it is told to make.

use super::faults::{Effect, Faults};
use super::network::{Bill, Course, Network, Outgoing, Refusal, Stage, Wanted, now, refusal};
use super::{Account, Options, Style};
use crate::nwc::protocol::{self, Encryption, service};
use nostr::prelude::{Event, EventId, Keys, PublicKey};
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Preimage};
use rialto_relay::pool::{Arrival, Pool};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What all requests share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) network: Network,
    pub(super) accounts: Vec<Account>,
    pub(super) faults: Faults,
    pub(super) pool: Pool,
    pub(super) options: Options,
}

/// A request, and the way back to whoever made it.
struct Asked {
    account: usize,
    id: EventId,
    client: PublicKey,
    encryption: Encryption,
    method: String,
    params: Value,
}

/// Answers requests until the relays are gone. Each gets a task of its own: a payment may take as long as it is held.
pub(super) async fn serve(service: Arc<Service>, mut arrivals: mpsc::Receiver<Arrival>) {
    let mut seen = HashSet::new();
    while let Some(arrival) = arrivals.recv().await {
        match arrival {
            Arrival::Event { event, .. } => {
                // A request that is brought again is the same request.
                if seen.insert(event.id) {
                    let service = service.clone();
                    tokio::spawn(async move { service.take(&event).await });
                }
            }
            // A relay that was away may have forgotten it.
            Arrival::Subscribed { .. } => drop(service.announce()),
            Arrival::Repeat { .. } => {}
        }
    }
}

impl Service {
    /// Says what each wallet can do.
    pub(super) fn announce(&self) -> Vec<Arc<rialto_relay::publication::Publication>> {
        let publish = |account: &Account| {
            let encryptions = if account.style.only_nip04 { None } else { Some("nip44_v2 nip04") };
            self.pool.publish(&service::info(&account.service, &account.methods().join(" "), encryptions))
        };
        self.accounts.iter().map(publish).collect()
    }

    async fn take(&self, event: &Event) {
        let Some(asked) = self.read(event) else { return };
        let effects = self.faults.take(asked.account, &asked.method);
        if effects.contains(&Effect::Ignore) {
            return;
        }
        let failed = json!({ "result_type": asked.method, "error": { "code": "INTERNAL", "message": "forged" } });
        let keys = &self.account(&asked).service;
        for effect in &effects {
            match effect {
                Effect::Stranger => self.reply(&asked, &Keys::generate(), asked.id, &failed.to_string()),
                Effect::OtherRequest => {
                    self.reply(&asked, keys, EventId::from_byte_array([7; 32]), &failed.to_string());
                }
                Effect::OtherAddressee => {
                    let Some(hidden) = asked.encryption.hide(keys, &asked.client, &failed.to_string()) else {
                        continue;
                    };
                    let other = Some(Keys::generate().public_key());
                    self.pool.publish(&service::response(keys, other, asked.id, hidden));
                }
                Effect::WrongType => {
                    let mut failed = failed.clone();
                    failed["result_type"] = json!("get_budget");
                    self.reply(&asked, keys, asked.id, &failed.to_string());
                }
                _ => {}
            }
        }
        let result = self.run(&asked, &effects).await;
        let answer = match result {
            Ok(result) => json!({ "result_type": asked.method, "error": null, "result": result }),
            Err(Refusal { code, words }) => {
                json!({ "result_type": asked.method, "error": { "code": code, "message": words }, "result": null })
            }
        };
        for effect in &effects {
            match effect {
                Effect::Lose | Effect::Stick => return,
                Effect::Delay(time) => tokio::time::sleep(*time).await,
                _ => {}
            }
        }
        let garbage = effects.contains(&Effect::Garbage);
        let text = if garbage { "what you want".to_owned() } else { answer.to_string() };
        self.reply(&asked, keys, asked.id, &text);
        if effects.contains(&Effect::Twice) {
            self.reply(&asked, keys, asked.id, &text);
        }
    }

    fn account(&self, asked: &Asked) -> &Account {
        &self.accounts[asked.account]
    }

    fn read(&self, event: &Event) -> Option<Asked> {
        let to = protocol::addressee(event)?;
        let account = self.accounts.iter().position(|account| account.service.public_key() == to)?;
        let Account { service: keys, client, style, .. } = &self.accounts[account];
        if event.pubkey != client.public_key() || service::expiration(event).is_some_and(|end| end <= now()) {
            return None;
        }
        let encryption = Encryption::choose(protocol::encryption(event))?;
        if style.only_nip04 && encryption != Encryption::Nip04 {
            return None;
        }
        let text = encryption.reveal(keys, &event.pubkey, &event.content)?;
        let mut request: Value = serde_json::from_str(&text).ok()?;
        let method = request.get("method")?.as_str()?.to_owned();
        let params = request.get_mut("params")?.take();
        Some(Asked { account, id: event.id, client: event.pubkey, encryption, method, params })
    }

    fn reply(&self, asked: &Asked, keys: &Keys, request: EventId, text: &str) {
        let Some(hidden) = asked.encryption.hide(keys, &asked.client, text) else { return };
        let client = Some(asked.client).filter(|_| !self.account(asked).style.no_addressee);
        self.pool.publish(&service::response(keys, client, request, hidden));
    }

    /// Tells the payee that money has come.
    fn notify(&self, bill: &Bill) {
        let Account { service: keys, client, style, .. } = &self.accounts[bill.payee];
        let kind = if bill.stage == Stage::Held { "hold_invoice_accepted" } else { "payment_received" };
        let encryption = if style.only_nip04 { Encryption::Nip04 } else { Encryption::Nip44 };
        let text = json!({ "notification_type": kind, "notification": incoming(bill, style.no_state) }).to_string();
        let Some(hidden) = encryption.hide(keys, &client.public_key(), &text) else { return };
        self.pool.publish(&service::notice(keys, client.public_key(), encryption, hidden));
    }

    async fn run(&self, asked: &Asked, effects: &[Effect]) -> Result<Value, Refusal> {
        if let Some(Effect::Fail(code)) = effects.iter().find(|effect| matches!(effect, Effect::Fail(_))) {
            return Err(refusal(code, "as the test wants it"));
        }
        if !self.account(asked).methods().contains(&asked.method.as_str()) {
            return Err(refusal("NOT_IMPLEMENTED", "this wallet cannot do that"));
        }
        match asked.method.as_str() {
            "get_info" => {
                Ok(json!({ "alias": "test", "network": "regtest", "methods": self.account(asked).methods() }))
            }
            "get_balance" => Ok(json!({ "balance": self.network.balance(asked.account).map(Msat::get) })),
            "make_invoice" | "make_hold_invoice" => self.make(asked, effects),
            "settle_hold_invoice" => self.settle(asked),
            "cancel_hold_invoice" => {
                self.network.cancel(asked.account, &hash(&asked.params)?)?;
                Ok(json!({}))
            }
            "lookup_invoice" => self.look_up(asked),
            "list_transactions" => {
                let payments = self.network.payments(asked.account).into_iter();
                let listed: Vec<Value> = payments.map(|(hash, payment)| outgoing(&payment, hash, false)).collect();
                Ok(json!({ "transactions": listed }))
            }
            _ => self.pay(asked, effects).await,
        }
    }

    fn make(&self, asked: &Asked, effects: &[Effect]) -> Result<Value, Refusal> {
        let params = &asked.params;
        let more = if effects.contains(&Effect::WrongAmount) { 1000 } else { 0 };
        let amount = params["amount"].as_u64().filter(|amount| *amount > 0).and_then(|amount| Msat::new(amount + more));
        let mut wanted = Wanted {
            amount: amount.ok_or_else(|| refusal("OTHER", "an amount is needed"))?,
            memo: params["description"].as_str().unwrap_or_default(),
            expiry: params["expiry"].as_u64().unwrap_or(3600),
            hold: None,
        };
        if asked.method == "make_hold_invoice" {
            wanted.hold = Some(hash(params)?);
        }
        if effects.contains(&Effect::WrongHash) {
            wanted.hold = Some(PaymentHash([9; 32]));
        }
        let bill = self.network.make(asked.account, &wanted)?;
        Ok(incoming(&bill, self.account(asked).style.no_state))
    }

    fn settle(&self, asked: &Asked) -> Result<Value, Refusal> {
        let preimage = asked.params["preimage"].as_str().and_then(|text| Preimage::from_hex(text).ok());
        let preimage = preimage.ok_or_else(|| refusal("OTHER", "a preimage is needed"))?;
        self.network.settle(asked.account, &preimage)?;
        Ok(json!({}))
    }

    fn look_up(&self, asked: &Asked) -> Result<Value, Refusal> {
        let hash = hash(&asked.params)?;
        let Style { no_state, only_lists_payments, .. } = self.account(asked).style;
        let bill = self.network.bill(asked.account, &hash).map(|bill| incoming(&bill, no_state));
        let payment = self.network.payment(asked.account, &hash).filter(|_| !only_lists_payments);
        bill.or_else(|| payment.map(|payment| outgoing(&payment, hash, no_state)))
            .ok_or_else(|| refusal("NOT_FOUND", "there is no such invoice"))
    }

    async fn pay(&self, asked: &Asked, effects: &[Effect]) -> Result<Value, Refusal> {
        let text = asked.params["invoice"].as_str().ok_or_else(|| refusal("OTHER", "an invoice is needed"))?;
        let is_stuck = effects.contains(&Effect::Stick);
        let bill = self.network.begin(asked.account, text, is_stuck)?;
        if !is_stuck {
            self.notify(&bill);
        }
        if effects.contains(&Effect::Lose) || is_stuck {
            return Ok(Value::Null);
        }
        let ended = self.network.ended(asked.account, &bill.hash);
        let payment = match self.options.hold_limit.filter(|_| bill.is_hold) {
            None => ended.await,
            Some(limit) => match tokio::time::timeout(limit, ended).await {
                Ok(payment) => payment,
                Err(_) => {
                    // On the way there is a limit to how long money can be held; whoever is late finds it settled.
                    let _ = self.network.cancel(bill.payee, &bill.hash);
                    self.network.payment(asked.account, &bill.hash)
                }
            },
        };
        let Some(Outgoing { course: Course::Paid, fee, preimage, .. }) = payment else {
            return Err(refusal("PAYMENT_FAILED", "the payee gave it back"));
        };
        let wrong = effects.contains(&Effect::WrongPreimage).then(|| Preimage::new([3; 32]));
        Ok(json!({ "preimage": wrong.or(preimage).map(|preimage| preimage.reveal_hex()), "fees_paid": fee.get() }))
    }
}

fn hash(params: &Value) -> Result<PaymentHash, Refusal> {
    let by_hash = params["payment_hash"].as_str().and_then(|text| text.parse().ok());
    by_hash.ok_or_else(|| refusal("OTHER", "a payment hash is needed"))
}

fn incoming(bill: &Bill, no_state: bool) -> Value {
    let is_settled = bill.stage == Stage::Settled;
    let state = match bill.stage {
        Stage::Open if bill.expires <= now() => "expired",
        Stage::Open => "pending",
        Stage::Held => "accepted",
        Stage::Settled => "settled",
        Stage::Cancelled => "failed",
    };
    let mut value = json!({
        "type": "incoming",
        "invoice": bill.text,
        "description": bill.memo,
        "payment_hash": bill.hash.to_string(),
        "amount": bill.amount.get(),
        "created_at": bill.made,
        "expires_at": bill.expires,
        "settled_at": bill.settled,
        "preimage": bill.preimage.as_ref().filter(|_| is_settled).map(Preimage::reveal_hex),
    });
    if !no_state {
        value["state"] = json!(state);
    }
    value
}

fn outgoing(payment: &Outgoing, hash: PaymentHash, no_state: bool) -> Value {
    let state = match payment.course {
        Course::Pending => "pending",
        Course::Paid => "settled",
        Course::Failed => "failed",
    };
    let mut value = json!({
        "type": "outgoing",
        "invoice": payment.text,
        "payment_hash": hash.to_string(),
        "amount": payment.amount.get(),
        "fees_paid": payment.fee.get(),
        "created_at": payment.at,
        "settled_at": (payment.course == Course::Paid).then_some(payment.at),
        "preimage": payment.preimage.as_ref().map(Preimage::reveal_hex),
    });
    if !no_state {
        value["state"] = json!(state);
    }
    value
}
