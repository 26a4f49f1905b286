//! What the tests play with: a mint, a line to it that fails on command, wallets, and a customer who has only the library.

use super::mint::Mint;
use super::peers::Peers;
use cdk::amount::SplitTarget;
use cdk::cdk_database::WalletDatabase as _;
use cdk::nuts::{Conditions, CurrencyUnit, PaymentMethod, Proofs, PublicKey, SecretKey, SpendingConditions, Token};
use cdk::wallet::{SendOptions, WalletBuilder};
use cdk_redb::WalletRedbDatabase;
use rialto_http::client::{Agent, Options};
use rialto_payment::amount::Msat;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Error, Order, Standing, Wallet as _};
use rialto_wallet::cashu::{Cashu, Mints, Settings};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) fn sat(amount: u64) -> Msat {
    Msat::from_sat(amount).unwrap()
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The mint that all tests share which do not change it.
pub(crate) fn mint() -> Option<&'static Mint> {
    static MINT: OnceLock<Option<Mint>> = OnceLock::new();
    MINT.get_or_init(|| Some(Mint::start(&Peers::installed()?.mint(), &["--manual"]))).as_ref()
}

/// One of our wallets and its directory.
pub(crate) struct Ours {
    pub(crate) directory: TempDir,
    pub(crate) key: SecretKey,
    pub(crate) cap: Msat,
    pub(crate) mints: Vec<String>,
    wallet: Option<Cashu>,
}

impl Ours {
    pub(crate) async fn at(mint: &str) -> Self {
        Self::with(&[mint], sat(1_000_000)).await
    }

    pub(crate) async fn with(mints: &[&str], cap: Msat) -> Self {
        let directory = TempDir::new().unwrap();
        let mints = mints.iter().map(|mint| (*mint).to_owned()).collect();
        let mut ours = Self { directory, key: SecretKey::generate(), cap, mints, wallet: None };
        ours.restart().await;
        ours
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("wallet")
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            directory: self.path(),
            mints: Mints::new(self.mints.iter().map(String::as_str)).unwrap(),
            cap: self.cap,
            key: self.key.to_secret_bytes(),
            agent: Agent::new(&Options::default()).unwrap(),
        }
    }

    /// As after a crash: nothing is kept but the files.
    pub(crate) async fn restart(&mut self) {
        self.wallet = None;
        self.wallet = Some(Cashu::open(self.settings()).await.unwrap());
    }

    /// What the library would still have to finish, after the wallet is gone.
    pub(crate) async fn unfinished(&mut self) -> usize {
        self.wallet = None;
        let store = WalletRedbDatabase::new(&self.path().join("coins.redb")).unwrap();
        store.get_incomplete_sagas().await.unwrap().len()
    }

    pub(crate) fn wallet(&self) -> &Cashu {
        self.wallet.as_ref().unwrap()
    }

    pub(crate) async fn balance(&self) -> u64 {
        self.wallet().balance().await.unwrap().sat_rounded_down()
    }

    /// Key without sign.
    pub(crate) fn x(&self) -> [u8; 32] {
        self.key.public_key().x_only_public_key().serialize()
    }

    /// Lightning money comes in.
    pub(crate) async fn fund(&self, mint: &Mint, amount: u64) {
        let order = Order { amount: sat(amount), memo: "a test".into(), expiry: 600 };
        let invoice = self.wallet().make(&order).await.unwrap();
        mint.pay(&invoice.text);
        let settled = Standing::Settled { amount: sat(amount) };
        eventually(|| async {
            let found = self.wallet().look_up(invoice.hash).await;
            assert!(matches!(found, Ok(Standing::Open | Standing::Settled { .. })), "{found:?}");
            found == Ok(settled)
        })
        .await;
    }
}

/// Waits for a condition.
pub(crate) async fn eventually<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition().await {
        assert!(Instant::now() < end, "it does not come about");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Somebody who pays, with nothing of ours.
pub(crate) struct Customer {
    wallet: cdk::Wallet,
    _directory: TempDir,
}

impl Customer {
    pub(crate) async fn with(mint: &Mint, url: &str, amount: u64) -> Self {
        let directory = TempDir::new().unwrap();
        let store = Arc::new(WalletRedbDatabase::new(&directory.path().join("coins")).unwrap());
        let builder = WalletBuilder::new().mint_url(url.parse().unwrap()).unit(CurrencyUnit::Sat).localstore(store);
        let wallet = builder.seed(seed()).without_rate_limiting().build().unwrap();
        let quote = wallet.mint_quote(PaymentMethod::BOLT11, Some(amount.into()), None, None).await.unwrap();
        mint.pay(&quote.request);
        eventually(|| async {
            wallet.check_mint_quote_status(&quote.id).await.unwrap().state == cdk::nuts::MintQuoteState::Paid
        })
        .await;
        wallet.mint(&quote.id, SplitTarget::None, None).await.unwrap();
        Self { wallet, _directory: directory }
    }

    /// Coins of exactly this worth, of which the receiver pays the fee.
    pub(crate) async fn token(&self, amount: u64, lock: Option<SpendingConditions>) -> Token {
        let options = SendOptions { conditions: lock, ..SendOptions::default() };
        self.wallet.prepare_send(amount.into(), options).await.unwrap().confirm(None).await.unwrap()
    }

    pub(crate) async fn plain(&self, amount: u64) -> Secret {
        Secret::new(self.token(amount, None).await.to_string())
    }

    pub(crate) async fn locked(&self, amount: u64, key: PublicKey, until: Option<u64>) -> Secret {
        let refund = until.map(|_| vec![SecretKey::generate().public_key()]);
        let conditions = Conditions::new(until, None, refund, None, None, None).unwrap();
        let lock = SpendingConditions::new_p2pk(key, Some(conditions));
        Secret::new(self.token(amount, Some(lock)).await.to_string())
    }

    pub(crate) async fn coins(&self, token: &Token) -> Proofs {
        let keysets = self.wallet.metadata_cache.get_cached().unwrap();
        token.proofs(&keysets.keysets.values().map(|keyset| (**keyset).clone()).collect::<Vec<_>>()).unwrap()
    }
}

fn seed() -> [u8; 64] {
    let mut seed = [0; 64];
    seed[..32].copy_from_slice(&SecretKey::generate().to_secret_bytes());
    seed
}

pub(crate) fn refused<T>(words: &str) -> Result<T, Error> {
    Err(Error::Refused(words.into()))
}

/// What a line does to a request to change or make coins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Works,
    /// The mint never hears of it.
    LosesRequests,
    /// The mint does it, and nobody hears of that.
    LosesAnswers,
    /// Nothing gets through at all.
    Dead,
}

/// A line to a mint.
pub(crate) struct Wire {
    pub(crate) url: String,
    state: Arc<AtomicU8>,
}

impl Wire {
    pub(crate) async fn to(mint: &Mint) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let target = mint.url.strip_prefix("http://").unwrap().to_owned();
        let state = Arc::new(AtomicU8::new(Line::Works as u8));
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, state) = (target.clone(), shared.clone());
                tokio::spawn(async move {
                    let _ = carry(client, &target, &state).await;
                });
            }
        });
        Self { url, state }
    }

    pub(crate) fn set(&self, line: Line) {
        self.state.store(line as u8, Ordering::SeqCst);
    }
}

/// One request for each connection, which is what `Connection: close` makes of it.
async fn carry(mut client: TcpStream, target: &str, state: &AtomicU8) -> std::io::Result<()> {
    let state = |line: Line| state.load(Ordering::SeqCst) == line as u8;
    let request = message(&mut client).await?;
    let text = String::from_utf8_lossy(&request);
    let is_change = text.starts_with("POST /v1/swap")
        || text.starts_with("POST /v1/mint/bolt11 ")
        || text.starts_with("POST /v1/melt/bolt11 ");
    if state(Line::Dead) || is_change && state(Line::LosesRequests) {
        return Ok(());
    }
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let head: Vec<&str> = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:")).collect();
    let mut server = TcpStream::connect(target).await?;
    server.write_all(format!("{}\r\nConnection: close\r\n\r\n{body}", head.join("\r\n")).as_bytes()).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    if is_change && state(Line::LosesAnswers) {
        return Ok(());
    }
    client.write_all(&answer).await?;
    client.shutdown().await
}

/// A whole request.
async fn message(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .map_or(0, |length| length.trim().parse().unwrap());
            if body.len() >= length {
                return Ok(bytes);
            }
        }
        match stream.read(&mut buffer).await? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}
