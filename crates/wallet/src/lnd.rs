//! LND: `lnd+https://HOST:8080?macaroon=HEX&cert=file:PATH`, asked by its REST interface. The macaroon may be in a file as
//! well (`macaroon=file:PATH`); `cert` is needed where the node has signed its certificate itself, as it does by default.
//!
//! One that may only make invoices is enough to receive. Bytes travel in base64, in addresses in that for addresses;
//! numbers travel as text.

mod answer;

use crate::answer::{invoice, malformed};
use crate::rest::{Invalid, PATIENCE, PAY_PATIENCE, Parts, Said, Server, failure, late, read};
use answer::{Balances, Event, Held, Made, Paid, Status, denied, is_missing, standing};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rialto_payment::wallet::{Abilities, Error, Later, Order, Payment, Receipt, Standing, Wallet};
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const NAME: &str = "lnd";

/// How much longer than the node itself a payment is waited for, so that its own word comes first.
const SLACK: Duration = Duration::from_secs(5);

/// The longest macaroon that is read. They have a few hundred bytes.
const MAX_MACAROON: u64 = 64 * 1024;

/// A node of LND.
pub struct Lnd(Server);

impl fmt::Debug for Lnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// A file that an address names.
fn file(value: &str) -> Option<&Path> {
    value.strip_prefix("file:").map(Path::new)
}

/// The macaroon in hex, as the node wants it.
fn macaroon(value: &str) -> Result<Secret, Invalid> {
    let Some(path) = file(value) else {
        let is_hex = value.len().is_multiple_of(2) && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        return if is_hex { Ok(Secret::new(value)) } else { Err(Invalid::Value("macaroon")) };
    };
    let unreadable = |error: std::io::Error| Invalid::File(format!("`{}`: {error}", path.display()));
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_MACAROON {
        return Err(Invalid::Value("macaroon"));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    Ok(Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

impl Lnd {
    pub fn open(reference: &Secret) -> Result<Self, Invalid> {
        let parts = Parts::read(reference, NAME)?;
        let macaroon = macaroon(parts.value("macaroon")?)?;
        let certificate = match parts.value("cert") {
            Ok(value) => Some(PathBuf::from(file(value).ok_or(Invalid::Value("cert"))?)),
            Err(_) => None,
        };
        Ok(Self(Server::new(parts.base, ("grpc-metadata-macaroon", macaroon), certificate)?))
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Said, Error> {
        self.0.ask(path, Some(body), PATIENCE).await
    }

    async fn make_invoice(&self, order: &Order, hash: Option<PaymentHash>) -> Result<Invoice, Error> {
        let mut body = json!({
            "memo": order.memo,
            "value_msat": order.amount.get().to_string(),
            "expiry": order.expiry.to_string(),
        });
        let path = match hash {
            Some(hash) => {
                body["hash"] = json!(STANDARD.encode(hash.0));
                "v2/invoices/hodl"
            }
            None => "v1/invoices",
        };
        let said = self.post(path, &body).await?;
        if !said.is_good() {
            return Err(denied(&said));
        }
        let Made { payment_request } = read(said.body)?;
        invoice(&payment_request, order, hash)
    }

    /// Settles or cancels. What the node would not do may have been done before.
    async fn decide(
        &self,
        (path, body): (&str, Value),
        hash: PaymentHash,
        is_done: impl FnOnce(&Standing) -> bool,
    ) -> Result<(), Error> {
        let said = self.post(path, &body).await?;
        if said.is_good() || is_done(&self.standing(hash).await?) { Ok(()) } else { Err(denied(&said)) }
    }

    async fn standing(&self, hash: PaymentHash) -> Result<Standing, Error> {
        let path = format!("v2/invoices/lookup?payment_hash={}", URL_SAFE.encode(hash.0));
        let said = self.0.ask(&path, None, PATIENCE).await?;
        match said.is_good() {
            true => standing(&read::<Held>(said.body)?),
            false if is_missing(&said) => Ok(Standing::Missing),
            false => Err(denied(&said)),
        }
    }

    /// What the node tells of a payment, until `is_enough`.
    async fn follow(
        &self,
        (path, body): (&str, Option<&Value>),
        patience: Duration,
        is_enough: impl Fn(&Paid) -> bool,
    ) -> Result<Result<Paid, Said>, Error> {
        let followed = async {
            let mut answer = self.0.open(path, body).await?;
            let status = answer.status;
            if status != 200 {
                let body = answer.whole().await.map_err(|trouble| failure(&trouble))?;
                return Ok(Err(Said { status, body: serde_json::from_slice(&body).ok() }));
            }
            while let Some(line) = answer.line().await.map_err(|trouble| failure(&trouble))? {
                match serde_json::from_slice(&line).map_err(|_| malformed("a line of what it tells"))? {
                    Event::Result(paid) if is_enough(&paid) => return Ok(Ok(paid)),
                    Event::Result(_) => {}
                    Event::Error(error) => return Ok(Err(Said { status: 500, body: Some(error) })),
                }
            }
            Err(Error::Unknown("it stopped telling of the payment before its end".to_owned()))
        };
        tokio::time::timeout(patience, followed).await.map_err(|_| late(patience))?
    }

    async fn pay_invoice(&self, invoice: &Invoice, max_fee: Msat) -> Result<Receipt, Error> {
        if invoice.amount.is_none() {
            return Err(Error::Refused("the invoice names no amount".to_owned()));
        }
        let body = json!({
            "payment_request": invoice.text,
            "fee_limit_msat": max_fee.get().to_string(),
            "timeout_seconds": PAY_PATIENCE.as_secs(),
            "no_inflight_updates": true,
        });
        let has_ended = |paid: &Paid| matches!(paid.status, Status::Succeeded | Status::Failed);
        let answer = self.follow(("v2/router/send", Some(&body)), PAY_PATIENCE + SLACK, has_ended).await?;
        let said = match answer {
            Ok(paid) if paid.status == Status::Succeeded => return paid.receipt(invoice.hash),
            Ok(paid) => return Err(paid.failure()),
            Err(said) => said,
        };
        // It refuses what it has paid before, and what it is paying.
        match self.payment(invoice.hash).await {
            Ok(Payment::Paid(receipt)) => Ok(receipt),
            Ok(Payment::Pending) => Err(Error::Unknown("the payment is on its way".to_owned())),
            Ok(Payment::Not) => Err(denied(&said)),
            Err(_) => Err(Error::Unknown("the payment could not be looked up".to_owned())),
        }
    }

    async fn payment(&self, hash: PaymentHash) -> Result<Payment, Error> {
        let path = format!("v2/router/track/{}", URL_SAFE.encode(hash.0));
        // The first thing it tells is how the payment is doing now.
        match self.follow((&path, None), PATIENCE, |_| true).await? {
            Ok(paid) => Ok(match paid.status {
                Status::Succeeded => Payment::Paid(paid.receipt(hash)?),
                Status::Failed => Payment::Not,
                Status::OnItsWay => Payment::Pending,
            }),
            Err(said) if is_missing(&said) => Ok(Payment::Not),
            Err(said) => Err(denied(&said)),
        }
    }

    async fn balances(&self) -> Result<Msat, Error> {
        let said = self.0.ask("v1/balance/channels", None, PATIENCE).await?;
        if said.is_good() { read::<Balances>(said.body)?.local() } else { Err(denied(&said)) }
    }
}

impl Wallet for Lnd {
    fn name(&self) -> String {
        format!("LND at {}", self.0.place())
    }

    /// Whoever may not see what there is may not spend it either.
    fn abilities(&self) -> Later<'_, Abilities> {
        Box::pin(async {
            match self.balances().await {
                Ok(_) => Ok(Abilities { hold: true, pay: true }),
                Err(Error::Refused(words)) if words.contains("permission denied") => {
                    Ok(Abilities { hold: true, pay: false })
                }
                Err(error) => Err(error),
            }
        })
    }

    fn make<'a>(&'a self, order: &'a Order) -> Later<'a, Invoice> {
        Box::pin(self.make_invoice(order, None))
    }

    fn hold<'a>(&'a self, order: &'a Order, hash: PaymentHash) -> Later<'a, Invoice> {
        Box::pin(self.make_invoice(order, Some(hash)))
    }

    fn settle<'a>(&'a self, preimage: &'a Preimage) -> Later<'a, ()> {
        let request = ("v2/invoices/settle", json!({ "preimage": STANDARD.encode(preimage.reveal()) }));
        Box::pin(self.decide(request, preimage.hash(), |standing| matches!(standing, Standing::Settled { .. })))
    }

    fn cancel(&self, hash: PaymentHash) -> Later<'_, ()> {
        let request = ("v2/invoices/cancel", json!({ "payment_hash": STANDARD.encode(hash.0) }));
        Box::pin(self.decide(request, hash, |standing| *standing == Standing::Over))
    }

    fn look_up(&self, hash: PaymentHash) -> Later<'_, Standing> {
        Box::pin(self.standing(hash))
    }

    fn pay<'a>(&'a self, invoice: &'a Invoice, max_fee: Msat) -> Later<'a, Receipt> {
        Box::pin(self.pay_invoice(invoice, max_fee))
    }

    fn look_up_payment(&self, hash: PaymentHash) -> Later<'_, Payment> {
        Box::pin(self.payment(hash))
    }

    fn balance(&self) -> Later<'_, Msat> {
        Box::pin(self.balances())
    }
}
