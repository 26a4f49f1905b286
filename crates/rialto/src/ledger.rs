//! Where the ledger is kept: in the data directory, or in a database whose address may hold a password.

use rialto_payment::secret::Secret;

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::secret_file::{self, What};

/// The address in `env:NAME` or `file:PATH`, or the text itself.
pub(crate) fn address(text: &str, environment: &Environment) -> Result<Secret, Failure> {
    let wrong = |words: String| Failure::usage(words).code("ledger_invalid");
    let address = if let Some(name) = text.strip_prefix("env:") {
        let value = environment.raw(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty());
        value.map(Secret::new).ok_or_else(|| wrong(format!("the variable `{name}` is not set")))?
    } else if let Some(path) = text.strip_prefix("file:") {
        let read = secret_file::read(path.as_ref(), What::Ledger)?;
        read.map(Secret::new).ok_or_else(|| wrong(format!("there is no file `{path}`")))?
    } else {
        Secret::new(text)
    };
    let is_postgres = ["postgres://", "postgresql://"].iter().any(|scheme| address.reveal().starts_with(scheme));
    if is_postgres {
        return Ok(address);
    }
    // It is not repeated: a password may be in it.
    Err(wrong("the address of the ledger must begin with postgres://".to_owned())
        .hint("--ledger postgres://user@host/database, --ledger env:NAME or --ledger file:PATH"))
}

/// Why a ledger cannot be used, in the words of a command.
pub(crate) fn failure(error: &rialto_ledger::ledger::Error) -> Failure {
    use rialto_ledger::ledger::Error;
    match error {
        Error::Unreachable(why) => Failure::new(Exit::Unreachable, "the ledger's database cannot be reached")
            .cause(why)
            .code("ledger_unreachable"),
        _ => Failure::unexpected("the ledger cannot be used").because(error).code("ledger"),
    }
}

#[cfg(test)]
mod tests {
    use super::address;
    use crate::environment::Environment;

    #[test]
    fn an_address_is_taken_from_where_it_is_kept_and_never_repeated() {
        let environment =
            Environment::of(&[("DB", "postgres://me:hunter2@db.example/x"), ("OTHER", "mysql://me:hunter2@x")]);
        assert_eq!(address("env:DB", &environment).unwrap().reveal(), "postgres://me:hunter2@db.example/x");
        assert_eq!(address("postgresql://localhost/x", &environment).unwrap().reveal(), "postgresql://localhost/x");
        for wrong in ["env:OTHER", "env:UNSET", "file:/nowhere/at/all", "sqlite:hunter2"] {
            let failure = address(wrong, &environment).unwrap_err();
            assert_eq!(failure.code_word(), "ledger_invalid");
            assert!(!failure.to_json().contains("me:hunter2"), "{}", failure.to_json());
        }
    }
}
