//! What tools cost, from flags and from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use nostr::prelude::PublicKey;
use rialto_payment::amount::Msat;
use rialto_payment::price::{Prices, Rule};
use rialto_payment::secret::Secret;
use rialto_provider::plan::DEFAULT_QUOTE;
use rialto_wallet::cashu::Address;
use serde::Deserialize;

use crate::environment::Environment;
use crate::failure::Failure;
use crate::wallet;

/// More than this for one call is a mistake in units.
const MAX_SAT: u64 = 100_000_000;

/// What is asked for calls.
#[derive(Debug, Args)]
pub(crate) struct PriceFlags {
    /// What a call of a tool costs, in satoshis (`*` for all that have no price of their own); may be repeated
    #[arg(long, value_name = "TOOL=SAT")]
    price: Vec<String>,

    /// File with prices: by size, with free calls, with discounts
    #[arg(long, value_name = "FILE")]
    prices: Option<std::path::PathBuf>,

    /// The wallet that is paid: env:NAME or file:PATH with its address [default: that of `rialto wallet connect`]
    #[arg(long, value_name = "WALLET")]
    wallet: Option<String>,

    /// Take ecash of this mint, and Lightning through it, with a wallet that is built in; may be repeated
    #[arg(long, value_name = "URL", conflicts_with = "wallet")]
    mint: Vec<String>,

    /// Send what gathers in the wallet that is built in to this Lightning address (name@domain), now and then
    #[arg(long, value_name = "ADDRESS", requires = "mint")]
    sweep_to: Option<String>,

    /// How much stays in it, in satoshis
    #[arg(long, value_name = "SAT", default_value_t = 10_000, requires = "sweep_to")]
    sweep_above: u64,

    /// How long a quote can be paid
    #[arg(long, value_name = "N", default_value_t = DEFAULT_QUOTE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    quote_secs: u64,

    /// A tool that may be called again if nobody knows whether it was: twice does what once does; may be repeated
    #[arg(long, value_name = "TOOL")]
    idempotent: Vec<String>,
}

/// A file of prices.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// For tools that are not named.
    default: Option<Given>,
    #[serde(default)]
    tools: BTreeMap<String, Given>,
    /// Percent, by key.
    #[serde(default)]
    discounts: BTreeMap<String, u8>,
    #[serde(default)]
    idempotent: BTreeSet<String>,
}

/// `5`, or `{ sat = 5, sat_per_kb = 1, first_free = 3 }`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Given {
    Sat(u64),
    Rule(Rule),
}

impl Given {
    fn rule(self, name: &str) -> Result<Rule, Failure> {
        let rule = match self {
            Given::Sat(base) => Rule { base, ..Rule::FREE },
            Given::Rule(rule) => rule,
        };
        if rule.base > MAX_SAT || rule.per_kb > MAX_SAT {
            return Err(wrong(format!("`{name}` costs more than a bitcoin")).hint("prices are in satoshis"));
        }
        Ok(rule)
    }
}

fn wrong(words: String) -> Failure {
    Failure::usage(words).code("price_invalid")
}

/// What calls cost, and which tools may be called again.
#[derive(Debug, Default)]
pub(super) struct Tariff {
    pub(super) prices: Prices,
    pub(super) idempotent: BTreeSet<String>,
    pub(super) quote: Duration,
}

/// Where money goes that is more than should stay.
#[derive(Debug, Clone)]
pub(super) struct Sweep {
    pub(super) address: String,
    pub(super) keep: Msat,
}

impl PriceFlags {
    pub(super) fn sweep(&self) -> Result<Option<Sweep>, Failure> {
        let Some(address) = self.sweep_to.clone() else { return Ok(None) };
        address.parse::<Address>().map_err(|error| {
            Failure::usage("--sweep-to is no Lightning address").because(&error).code("address_invalid")
        })?;
        let keep = crate::money::sat(self.sweep_above, "--sweep-above")?;
        Ok(Some(Sweep { address, keep }))
    }

    /// The wallet that is paid; none if nothing costs anything.
    pub(super) fn wallet(&self, tariff: &Tariff, environment: &Environment) -> Result<Option<Secret>, Failure> {
        let given = match &self.wallet {
            Some(text) => Some(wallet::given(text, environment)?),
            None if !self.mint.is_empty() => Some(Secret::new(format!("cashu+{}", self.mint.join(",")))),
            None => wallet::kept(environment)?,
        };
        if given.is_none() && !tariff.prices.are_free() {
            return Err(Failure::usage("there is a price, but no wallet to be paid with")
                .code("no_wallet")
                .hint("--mint URL    takes ecash of a mint that you trust, with a wallet that is built in\nrialto wallet connect -    connects a Lightning wallet"));
        }
        // What was taken before prices were given up must still be given back.
        Ok(given)
    }

    pub(super) fn read(&self) -> Result<Tariff, Failure> {
        let mut tariff = self.prices.as_deref().map_or_else(|| Ok(Tariff::default()), file)?;
        for given in &self.price {
            let (tool, sat) = given.rsplit_once('=').filter(|(tool, _)| !tool.is_empty()).ok_or_else(|| {
                wrong(format!("`{given}` is no price")).hint("--price TOOL=SAT, for example --price echo=5")
            })?;
            let sat = sat
                .parse()
                .map_err(|_| wrong(format!("`{given}` is no price")).hint("a price is a whole number of satoshis"))?;
            let rule = Given::Sat(sat).rule(tool)?;
            if tool == "*" {
                tariff.prices.others = Some(rule);
            } else {
                tariff.prices.tools.insert(tool.to_owned(), rule);
            }
        }
        tariff.quote = Duration::from_secs(self.quote_secs);
        tariff.idempotent.extend(self.idempotent.iter().cloned());
        Ok(tariff)
    }
}

fn file(path: &Path) -> Result<Tariff, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the prices in `{shown}`")).because(&error))?;
    let file: File = toml::from_str(&text).map_err(|error| {
        wrong(format!("`{shown}` is no file of prices"))
            .cause(error.to_string().trim_end())
            .hint("[tools]\nsummarise = { sat = 5, sat_per_kb = 1, first_free = 3 }")
    })?;
    let others = file.default.map(|given| given.rule("default")).transpose()?;
    let mut prices = Prices { others, ..Prices::default() };
    for (tool, given) in file.tools {
        let rule = given.rule(&tool)?;
        prices.tools.insert(tool, rule);
    }
    for (key, percent) in file.discounts {
        let owner = PublicKey::parse(&key).map_err(|_| wrong(format!("`{key}` in `{shown}` is no public key")))?;
        if percent > 100 {
            return Err(wrong(format!("a discount of {percent} percent in `{shown}`")));
        }
        prices.discounts.insert(owner.to_bytes(), percent);
    }
    Ok(Tariff { prices, idempotent: file.idempotent, ..Tariff::default() })
}

#[cfg(test)]
mod tests {
    use super::{PriceFlags, Rule};
    use nostr::prelude::{Keys, ToBech32};

    fn flags(price: &[&str], file: Option<&str>) -> PriceFlags {
        let prices = file.map(|text| {
            let (_, path) = tempfile::NamedTempFile::new().unwrap().keep().unwrap();
            std::fs::write(&path, text).unwrap();
            path
        });
        PriceFlags {
            wallet: None,
            mint: Vec::new(),
            sweep_to: None,
            sweep_above: 0,
            quote_secs: 1,
            price: price.iter().map(ToString::to_string).collect(),
            prices,
            idempotent: vec!["get".into()],
        }
    }

    #[test]
    fn prices_come_from_flags_and_files_and_flags_win() {
        let npub = Keys::generate().public_key().to_bech32().unwrap();
        let text = format!(
            "default = 2\nidempotent = ['list']\n[tools]\necho = 1\nlong = {{ sat = 5, sat_per_kb = 1, first_free = 3 }}\n[discounts]\n{npub} = 50\n"
        );
        let tariff = flags(&["echo=7", "*=3", "a=b=4"], Some(&text)).read().unwrap();
        assert_eq!(tariff.prices.rule("echo"), Rule { base: 7, ..Rule::FREE });
        assert_eq!(tariff.prices.rule("long"), Rule { base: 5, per_kb: 1, first_free: 3 });
        assert_eq!(tariff.prices.rule("other").base, 3);
        assert_eq!(tariff.prices.rule("a=b").base, 4, "names of tools may contain anything");
        assert_eq!(tariff.prices.discounts.len(), 1);
        assert_eq!(tariff.idempotent.len(), 2);
    }

    #[test]
    fn what_is_no_price_is_told() {
        for wrong in ["echo", "echo=", "=5", "echo=-1", "echo=1.5", "echo=999999999999"] {
            assert!(flags(&[wrong], None).read().is_err(), "{wrong}");
        }
        for wrong in ["x", "[tools]\necho = -1", "[discounts]\nnobody = 5", "[tools]\ne = { sats = 1 }", "unknown = 1"]
        {
            assert!(flags(&[], Some(wrong)).read().is_err(), "{wrong}");
        }
    }
}
