//! The person at the terminal, who is asked whether to pay, or shown what to pay with another wallet.

use std::io::{BufRead, IsTerminal};

use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use rialto_consumer::payment::{Approver, Bill, Decision, Later, Question};

use crate::talk::{Format, Talk, write_talk};

/// Whoever typed the command.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) talk: Talk,
}

impl Person {
    /// Somebody reads what is said, and can answer.
    fn is_there(&self) -> bool {
        self.talk.format == Format::Text && std::io::stderr().is_terminal() && std::io::stdin().is_terminal()
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> Later<'a, Decision> {
        Box::pin(async move {
            if !self.is_there() {
                return Decision::NobodyThere;
            }
            self.talk.info(&question.reason.to_string());
            write_talk(&format!("{question} [y/N] "));
            let answer = tokio::task::spawn_blocking(|| {
                let mut line = String::new();
                std::io::stdin().lock().read_line(&mut line).map(|_| line)
            });
            match answer.await {
                Ok(Ok(line)) if ["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str()) => Decision::Pay,
                _ => Decision::Decline,
            }
        })
    }

    fn show<'a>(&'a self, bill: &'a Bill) -> Later<'a, bool> {
        Box::pin(async move {
            if !self.is_there() {
                return false;
            }
            let invoice = &bill.invoice.text;
            // In large letters a code is smaller.
            if let Ok(code) = QrCode::new(invoice.to_ascii_uppercase()) {
                write_talk(&format!("\n{}\n", code.render::<Dense1x2>().quiet_zone(true).build()));
            }
            self.talk.info(&format!("{} to pay; no wallet is connected (rialto wallet connect)", bill.amount));
            self.talk.info(&format!("{invoice}\n"));
            self.talk.info("pay it with any wallet; the call goes on by itself");
            true
        })
    }
}
