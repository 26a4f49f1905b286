//! A wallet that does what a test tells it, and remembers every millisatoshi that left.

use bitcoin::hashes::{Hash as _, sha256};
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use lightning_invoice::{Currency, InvoiceBuilder, PaymentSecret};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rialto_payment::wallet::{Abilities, Error, Later, Lock, Order, Payment, Purse, Receipt, Standing, Token, Wallet};
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

pub(crate) fn sat(sat: u64) -> Msat {
    Msat::from_sat(sat).unwrap()
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// How an invoice is made.
#[derive(Clone)]
pub(crate) struct Making {
    pub(crate) amount: Option<u64>,
    pub(crate) currency: Currency,
    pub(crate) made: u64,
    pub(crate) hash: [u8; 32],
}

/// An invoice over this many satoshis that nobody has seen before.
pub(crate) fn making(amount: u64) -> Making {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let mut hash = [0x11; 32];
    hash[..8].copy_from_slice(&SERIAL.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    Making { amount: Some(amount), currency: Currency::Regtest, made: now(), hash }
}

/// An invoice that can be paid for ten minutes.
pub(crate) fn write(making: Making) -> String {
    let secp = Secp256k1::new();
    let key = SecretKey::from_slice(&[0x42; 32]).unwrap();
    let builder = InvoiceBuilder::new(making.currency)
        .description("for tests".to_owned())
        .payment_hash(sha256::Hash::from_byte_array(making.hash))
        .payment_secret(PaymentSecret([7; 32]))
        .duration_since_epoch(Duration::from_secs(making.made))
        .expiry_time(Duration::from_secs(600))
        .min_final_cltv_expiry_delta(18);
    let sign = |message: &_| secp.sign_ecdsa_recoverable(message, &key);
    match making.amount {
        Some(sat) => builder.amount_milli_satoshis(sat * 1000).build_signed(sign).unwrap().to_string(),
        None => builder.build_signed(sign).unwrap().to_string(),
    }
}

pub(crate) fn invoice(sat: u64) -> String {
    write(making(sat))
}

/// What the wallet does with the next payment.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Refuse,
    Insufficient,
    Unreachable,
    /// Nothing leaves, and it does not answer.
    Ignore,
    /// It leaves, and it does not answer; so many look-ups say that it is on its way.
    Late(u32),
    /// It leaves when the test says so.
    Wait,
}

#[derive(Debug, Default)]
pub(crate) struct Scripted {
    acts: Mutex<VecDeque<Act>>,
    /// What has left, in the order in which it did.
    moved: Mutex<Vec<(PaymentHash, Msat)>>,
    pending: Mutex<HashMap<PaymentHash, u32>>,
    pub(crate) looked_up: AtomicU64,
    pub(crate) released: Notify,
    pub(crate) fee: Mutex<Msat>,
    /// Tokens that were given away, and how often one was taken back.
    pub(crate) sent: Mutex<Vec<(String, Msat, Lock)>>,
    pub(crate) taken_back: AtomicU64,
    pub(crate) mints: Mutex<Vec<String>>,
}

impl Scripted {
    pub(crate) fn will(&self, acts: impl IntoIterator<Item = Act>) {
        self.acts.lock().unwrap().extend(acts);
    }

    pub(crate) fn moved(&self) -> Vec<(PaymentHash, Msat)> {
        self.moved.lock().unwrap().clone()
    }

    fn move_money(&self, invoice: &Invoice) {
        let mut moved = self.moved.lock().unwrap();
        assert!(moved.iter().all(|(hash, _)| *hash != invoice.hash), "paid twice: {}", invoice.hash);
        moved.push((invoice.hash, invoice.amount.unwrap()));
    }

    fn receipt(&self) -> Receipt {
        Receipt { preimage: None, fee: *self.fee.lock().unwrap() }
    }
}

impl Wallet for Scripted {
    fn name(&self) -> String {
        "a wallet for tests".to_owned()
    }

    fn abilities(&self) -> Later<'_, Abilities> {
        Box::pin(async { Ok(Abilities { hold: false, pay: true }) })
    }

    fn make<'a>(&'a self, _order: &'a Order) -> Later<'a, Invoice> {
        Box::pin(async { Err(Error::Unsupported("receiving")) })
    }

    fn hold<'a>(&'a self, _order: &'a Order, _hash: PaymentHash) -> Later<'a, Invoice> {
        Box::pin(async { Err(Error::Unsupported("receiving")) })
    }

    fn settle<'a>(&'a self, _preimage: &'a Preimage) -> Later<'a, ()> {
        Box::pin(async { Err(Error::Unsupported("receiving")) })
    }

    fn cancel(&self, _hash: PaymentHash) -> Later<'_, ()> {
        Box::pin(async { Err(Error::Unsupported("receiving")) })
    }

    fn look_up(&self, _hash: PaymentHash) -> Later<'_, Standing> {
        Box::pin(async { Err(Error::Unsupported("receiving")) })
    }

    fn pay<'a>(&'a self, invoice: &'a Invoice, max_fee: Msat) -> Later<'a, Receipt> {
        Box::pin(async move {
            let act = self.acts.lock().unwrap().pop_front();
            assert!(*self.fee.lock().unwrap() <= max_fee, "the wallet was not allowed to pay its fee");
            match act {
                None => self.move_money(invoice),
                Some(Act::Refuse) => return Err(Error::Refused("no route".to_owned())),
                Some(Act::Insufficient) => return Err(Error::Insufficient),
                Some(Act::Unreachable) => return Err(Error::Unreachable("it is away".to_owned())),
                Some(Act::Ignore) => return Err(Error::Unknown("no answer".to_owned())),
                Some(Act::Late(times)) => {
                    self.pending.lock().unwrap().insert(invoice.hash, times);
                    self.move_money(invoice);
                    return Err(Error::Unknown("no answer".to_owned()));
                }
                Some(Act::Wait) => {
                    self.released.notified().await;
                    self.move_money(invoice);
                }
            }
            Ok(self.receipt())
        })
    }

    fn look_up_payment(&self, hash: PaymentHash) -> Later<'_, Payment> {
        Box::pin(async move {
            self.looked_up.fetch_add(1, Ordering::Relaxed);
            if let Some(times) = self.pending.lock().unwrap().get_mut(&hash)
                && *times > 0
            {
                *times -= 1;
                return Ok(Payment::Pending);
            }
            let has_left = self.moved.lock().unwrap().iter().any(|(moved, _)| *moved == hash);
            Ok(if has_left { Payment::Paid(self.receipt()) } else { Payment::Not })
        })
    }

    fn balance(&self) -> Later<'_, Msat> {
        Box::pin(async { Ok(sat(1_000_000)) })
    }
}

impl Purse for Scripted {
    fn mints(&self) -> Vec<String> {
        self.mints.lock().unwrap().clone()
    }

    fn read(&self, token: &Secret) -> Result<Token, Error> {
        let sent = self.sent.lock().unwrap();
        let (_, amount, lock) = sent
            .iter()
            .find(|(text, ..)| text == token.reveal())
            .ok_or_else(|| Error::Malformed("no such token".to_owned()))?;
        let (mint, fee) = (String::new(), Msat::ZERO);
        Ok(Token { mint, amount: *amount, fee, lock: Some(*lock), coins: Vec::new() })
    }

    fn receive<'a>(&'a self, _token: &'a Secret) -> Later<'a, Msat> {
        Box::pin(async { Err(Error::Unsupported("receiving")) })
    }

    fn send<'a>(&'a self, _mint: &'a str, amount: Msat, lock: Lock) -> Later<'a, Secret> {
        Box::pin(async move {
            match self.acts.lock().unwrap().pop_front() {
                Some(Act::Insufficient) => return Err(Error::Insufficient),
                Some(Act::Ignore) => return Err(Error::Unknown("no answer".to_owned())),
                _ => {}
            }
            let worth = amount.checked_add(*self.fee.lock().unwrap()).unwrap();
            let mut sent = self.sent.lock().unwrap();
            let token = format!("cashuBtest{}", sent.len());
            sent.push((token.clone(), worth, lock));
            Ok(Secret::new(token))
        })
    }

    fn take_back<'a>(&'a self, _token: &'a Secret) -> Later<'a, Msat> {
        Box::pin(async move {
            self.taken_back.fetch_add(1, Ordering::Relaxed);
            Ok(sat(1))
        })
    }
}
