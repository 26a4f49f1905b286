//! The wallet service as a program: what it prints opens wallets, and what it is told to do it does.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use rialto_payment::amount::Msat;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Error, Order, Wallet as _};
use rialto_relay::embedded;
use rialto_wallet::nwc::{Nwc, Patience};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

struct Program {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(arguments: &[&str]) -> Self {
        // Cargo builds examples beside tests.
        let tests: PathBuf = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let program = tests.parent().unwrap().join("examples").join("test_wallet");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the example was built");
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output).lines() }
    }

    async fn line(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().expect("it still runs")).unwrap()
    }

    async fn tell(&mut self, command: &str) -> Value {
        self.input.write_all(format!("{command}\n").as_bytes()).await.unwrap();
        self.line().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_serves_until_stdin_is_closed() {
    let relay = embedded::Relay::start(embedded::Options::default()).await.unwrap();
    let mut program = Program::start(&["--relay", &relay.url(), "--accounts", "3", "--balance", "500", "--fee", "2"]);
    let first = program.line().await;
    assert_eq!(first["uris"].as_array().unwrap().len(), 3);
    assert_eq!((&first["provider"], &first["customer"]), (&first["uris"][0], &first["uris"][1]));
    let open = |name: &str| Nwc::open(&Secret::new(first[name].as_str().unwrap()), Patience::default()).unwrap();
    let (provider, customer) = (open("provider"), open("customer"));
    let order = Order { amount: Msat::from_sat(100).unwrap(), memo: String::new(), expiry: 60 };
    let invoice = provider.make(&order).await.unwrap();
    assert_eq!(program.tell("fault account=1 method=pay_invoice fail:QUOTA_EXCEEDED").await, json!({ "ok": true }));
    assert!(matches!(customer.pay(&invoice, Msat::ZERO).await, Err(Error::Refused(_))));
    assert_eq!(program.tell("balance 0").await, json!({ "balance_msat": 500_000 }));
    customer.pay(&invoice, Msat::ZERO).await.unwrap();
    for (command, answer) in [
        ("balance 0", json!({ "balance_msat": 600_000 })),
        ("balance 1", json!({ "balance_msat": 398_000 })),
        ("balance 2", json!({ "balance_msat": 500_000 })),
        ("total", json!({ "total_msat": 1_500_000 })),
        (&format!("invoice 0 {}", invoice.hash), json!({ "invoice": "settled" })),
        (&format!("payment 1 {}", invoice.hash), json!({ "payment": "paid" })),
        (&format!("payment 2 {}", invoice.hash), json!({ "payment": null })),
        ("balance 3", json!({ "error": "there is no such account" })),
        ("fault nonsense", json!({ "error": "there is no fault `nonsense`" })),
    ] {
        assert_eq!(program.tell(command).await, answer, "{command}");
    }
    let Program { mut child, input, .. } = program;
    drop(input);
    assert!(child.wait().await.unwrap().success());
}
