//! Tokens to and from the wallet of another implementation.

use super::peers::Peers;
use super::scene::{Ours, mint, now, sat};
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Lock, Purse as _};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Nutshell's wallet in a directory of its own.
struct Nutshell {
    command: Vec<String>,
    directory: TempDir,
    mint: String,
}

impl Nutshell {
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).arg(self.directory.path()).arg(&self.mint).args(arguments);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// The word of its answer that begins like this.
    fn word(&self, arguments: &[&str], beginning: &str) -> String {
        let said = self.run(arguments);
        let word = said.split_whitespace().find(|word| word.starts_with(beginning));
        word.unwrap_or_else(|| panic!("no {beginning} in {said}")).to_owned()
    }

    /// One whose key is as we write keys, without a sign. Half of all are.
    fn with_even_key(peers: &Peers, mint: &str) -> (Self, String) {
        for _ in 0..40 {
            let directory = TempDir::new().unwrap();
            let nutshell = Self { command: peers.nutshell(), directory, mint: mint.to_owned() };
            let key = nutshell.word(&["lock", "p2pk"], "P2PK:");
            if let Some(key) = key.strip_prefix("P2PK:02") {
                let key = key.to_owned();
                return (nutshell, key);
            }
        }
        panic!("no key is even");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_go_to_another_implementation_and_come_back() {
    let Some(peers) = Peers::installed() else { return };
    let Some(mint) = mint() else { return };
    let ours = Ours::at(&mint.url).await;
    ours.fund(mint, 500).await;
    let (nutshell, key) = Nutshell::with_even_key(&peers, &mint.url);
    let key: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap()).collect();
    let lock = Lock { key: key.try_into().unwrap(), until: Some(now() + 3600) };
    let token = ours.wallet().send(&mint.url, sat(200), lock).await.unwrap();
    nutshell.run(&["receive", token.reveal()]);
    let balance = nutshell.run(&["balance"]);
    assert!(balance.contains("Balance: 200 sat"), "{balance}");
    assert!(ours.wallet().pending().await.unwrap().is_empty(), "it is known to be spent");

    let to_us = format!("P2PK:{}", ours.key.public_key().to_hex());
    for (arguments, beginning, is_locked) in [
        (vec!["send", "21"], "cashuB", false),
        (vec!["send", "21", "--legacy"], "cashuA", false),
        (vec!["send", "21", "--dleq", "--lock", &to_us], "cashuB", true),
        (vec!["send", "21", "--dleq", "--lock", &to_us, "--timelock", "7200"], "cashuB", true),
    ] {
        let before = ours.balance().await;
        let token = Secret::new(nutshell.word(&arguments, beginning));
        let read = ours.wallet().read(&token).unwrap();
        assert_eq!((read.amount, read.fee), (sat(21), sat(1)));
        assert_eq!(read.lock.map(|lock| lock.key), is_locked.then(|| ours.x()), "{arguments:?}");
        assert!(read.lock.is_none_or(|lock| lock.until.is_some_and(|until| until > now() + 3600)));
        assert_eq!(ours.wallet().receive(&token).await, Ok(sat(20)));
        assert_eq!(ours.balance().await, before + 20);
    }
}
