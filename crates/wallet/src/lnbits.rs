//! LNbits: `lnbits+https://HOST[/PATH]?key=KEY`, asked over HTTP. It counts in whole satoshis, and cannot hold money.
//!
//! Whatever it says to a payment, the payment is looked up: its answers differ from version to version, and what they have
//! in common is the look-up. There is no limit for fees in what it can be asked; it reserves what its owner has set.

use crate::answer::{invoice, malformed, preimage};
use crate::rest::{Invalid, PATIENCE, PAY_PATIENCE, Parts, Said, Server, read, refusal};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rialto_payment::wallet::{Abilities, Error, Later, Order, Payment, Receipt, Standing, Wallet};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;

pub(crate) const NAME: &str = "lnbits";

const PAYMENTS: &str = "api/v1/payments";
const WALLET: &str = "api/v1/wallet";
const CANNOT_HOLD: Error = Error::Unsupported("LNbits cannot hold money");

/// A wallet of an LNbits server.
pub struct Lnbits(Server);

impl fmt::Debug for Lnbits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[derive(Deserialize)]
struct Made {
    bolt11: Option<String>,
    /// Older versions have this name only, newer ones both.
    payment_request: Option<String>,
}

#[derive(Deserialize)]
struct About {
    balance: i64,
    /// Shown to whoever may spend.
    id: Option<String>,
}

/// What is known of an invoice or a payment.
#[derive(Deserialize)]
struct Known {
    paid: bool,
    preimage: Option<String>,
    /// What may be seen with a key of its wallet.
    details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    /// Thousandths of a satoshi; what went out is negative.
    amount: i64,
    #[serde(default)]
    fee: i64,
    #[serde(default)]
    status: Option<String>,
}

impl Details {
    fn is_over(&self) -> bool {
        self.status.as_deref() == Some("failed")
    }
}

fn msat(amount: i64) -> Result<Msat, Error> {
    Msat::new(amount.unsigned_abs()).ok_or_else(|| malformed("there is not that much money"))
}

/// The server's own words of why not. Whoever pays too much is told so by words alone.
fn denied(said: &Said) -> Error {
    let words = said.body.as_ref().and_then(|body| body.get("detail")).map(|detail| match detail {
        Value::String(words) => words.clone(),
        other => other.to_string(),
    });
    if words.as_ref().is_some_and(|words| words.to_ascii_lowercase().contains("insufficient balance")) {
        return Error::Insufficient;
    }
    refusal(said.status, words.as_deref())
}

impl Lnbits {
    pub fn open(reference: &Secret) -> Result<Self, Invalid> {
        let parts = Parts::read(reference, NAME)?;
        let key = Secret::new(parts.value("key")?);
        Ok(Self(Server::new(parts.base, ("x-api-key", key), None)?))
    }

    async fn about(&self) -> Result<About, Error> {
        let said = self.0.ask(WALLET, None, PATIENCE).await?;
        if said.is_good() { read(said.body) } else { Err(denied(&said)) }
    }

    /// `None` if it does not know it.
    async fn known(&self, hash: PaymentHash) -> Result<Option<Known>, Error> {
        let said = self.0.ask(&format!("{PAYMENTS}/{hash}"), None, PATIENCE).await?;
        match said.status {
            404 => Ok(None),
            _ if said.is_good() => read(said.body).map(Some),
            _ => Err(denied(&said)),
        }
    }

    async fn make_invoice(&self, order: &Order) -> Result<Invoice, Error> {
        if order.amount != order.amount.rounded_up() {
            return Err(Error::Unsupported("LNbits counts in whole satoshis"));
        }
        let amount = order.amount.sat_rounded_up();
        let body = json!({ "out": false, "amount": amount, "unit": "sat", "memo": order.memo, "expiry": order.expiry });
        let said = self.0.ask(PAYMENTS, Some(&body), PATIENCE).await?;
        if !said.is_good() {
            return Err(denied(&said));
        }
        let Made { bolt11, payment_request } = read(said.body)?;
        let text = bolt11.or(payment_request).ok_or_else(|| malformed("the invoice is missing"))?;
        invoice(&text, order, None)
    }

    async fn standing(&self, hash: PaymentHash) -> Result<Standing, Error> {
        let Some(Known { paid, details, .. }) = self.known(hash).await? else { return Ok(Standing::Missing) };
        // Without details it is not of this wallet; with a negative amount it went out.
        let Some(details) = details.filter(|details| details.amount >= 0) else { return Ok(Standing::Missing) };
        Ok(if paid {
            Standing::Settled { amount: msat(details.amount)? }
        } else if details.is_over() {
            Standing::Over
        } else {
            Standing::Open
        })
    }

    async fn payment(&self, hash: PaymentHash) -> Result<Payment, Error> {
        let Some(known) = self.known(hash).await? else { return Ok(Payment::Not) };
        let Some(details) = known.details.filter(|details| details.amount < 0) else { return Ok(Payment::Not) };
        if known.paid {
            // Some that paid themselves have no preimage, and tell one of zeros.
            let given = known.preimage.as_deref().filter(|text| text.chars().any(|char| char != '0'));
            return Ok(Payment::Paid(Receipt { preimage: preimage(given, hash)?, fee: msat(details.fee)? }));
        }
        Ok(if details.is_over() { Payment::Not } else { Payment::Pending })
    }

    async fn pay_invoice(&self, invoice: &Invoice) -> Result<Receipt, Error> {
        if invoice.amount.is_none() {
            return Err(Error::Refused("the invoice names no amount".to_owned()));
        }
        let body = json!({ "out": true, "bolt11": invoice.text });
        let said = self.0.ask(PAYMENTS, Some(&body), PAY_PATIENCE).await?;
        let denial = (!said.is_good()).then(|| denied(&said));
        match self.payment(invoice.hash).await {
            Ok(Payment::Paid(receipt)) => Ok(receipt),
            Ok(Payment::Pending) => Err(Error::Unknown("the payment is on its way".to_owned())),
            Ok(Payment::Not) => {
                Err(denial.unwrap_or_else(|| malformed("it says that it pays, and knows nothing of it")))
            }
            Err(_) => Err(Error::Unknown("the payment could not be looked up".to_owned())),
        }
    }
}

impl Wallet for Lnbits {
    fn name(&self) -> String {
        format!("LNbits at {}", self.0.place())
    }

    fn abilities(&self) -> Later<'_, Abilities> {
        Box::pin(async { Ok(Abilities { hold: false, pay: self.about().await?.id.is_some() }) })
    }

    fn make<'a>(&'a self, order: &'a Order) -> Later<'a, Invoice> {
        Box::pin(self.make_invoice(order))
    }

    fn hold<'a>(&'a self, _: &'a Order, _: PaymentHash) -> Later<'a, Invoice> {
        Box::pin(async { Err(CANNOT_HOLD) })
    }

    fn settle<'a>(&'a self, _: &'a Preimage) -> Later<'a, ()> {
        Box::pin(async { Err(CANNOT_HOLD) })
    }

    fn cancel(&self, _: PaymentHash) -> Later<'_, ()> {
        Box::pin(async { Err(CANNOT_HOLD) })
    }

    fn look_up(&self, hash: PaymentHash) -> Later<'_, Standing> {
        Box::pin(self.standing(hash))
    }

    fn pay<'a>(&'a self, invoice: &'a Invoice, _max_fee: Msat) -> Later<'a, Receipt> {
        Box::pin(self.pay_invoice(invoice))
    }

    fn look_up_payment(&self, hash: PaymentHash) -> Later<'_, Payment> {
        Box::pin(self.payment(hash))
    }

    fn balance(&self) -> Later<'_, Msat> {
        Box::pin(async {
            Msat::new(self.about().await?.balance.try_into().unwrap_or(0)).ok_or_else(|| malformed("the balance"))
        })
    }
}
