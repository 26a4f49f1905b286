//! Connections to the database: where it is, what may be said to it unencrypted, and what to do when it is gone.

use super::schema;
use super::tls::Tls;
use crate::job::Id;
use crate::ledger::Error;
use rialto_payment::secret::Secret;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config};
use url::Url;

/// How long a server may take to answer the door.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a server that says nothing is believed to be there.
const SILENCE: Duration = Duration::from_secs(15);

/// How long we try to reach it again. Past this, our leases have run out and others have our jobs.
const PATIENCE: Duration = Duration::from_secs(30);

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// A database that can be reached again. It has one connection, or none.
#[derive(Clone)]
pub(super) struct Link {
    config: Arc<Config>,
    tls: Tls,
    schema: Arc<str>,
    current: Arc<Mutex<Option<Arc<Client>>>>,
}

/// A password may be in what it knows.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.schema)
    }
}

/// What went wrong, without what was said: details of the server's may hold a row.
pub(crate) fn words(error: &tokio_postgres::Error) -> Error {
    let words = match error.as_db_error() {
        Some(error) => format!("{} ({})", error.message(), error.code().code()),
        None => {
            let mut words = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                words.push_str(": ");
                words.push_str(&inner.to_string());
                cause = inner.source();
            }
            words
        }
    };
    if is_passing(error) { Error::Unreachable(words) } else { Error::Broken(words) }
}

/// Whether the same may succeed with another connection, or a little later.
fn is_passing(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        // Not the server's words: the connection is gone.
        None => true,
        Some(code) => {
            [
                SqlState::T_R_SERIALIZATION_FAILURE,
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
                SqlState::TOO_MANY_CONNECTIONS,
                SqlState::READ_ONLY_SQL_TRANSACTION,
            ]
            .contains(code)
                || code.code().starts_with("08")
        }
    }
}

impl Link {
    /// Connects, and brings the tables up to date.
    pub(super) async fn open(address: &Secret, key: &Id) -> Result<Self, Error> {
        let link = Self::closed(address, key)?;
        let mut client = link.connect().await.map_err(|error| words(&error))?;
        schema::migrate(&mut client, &link.schema, key).await?;
        *link.current.lock().await = Some(Arc::new(client));
        Ok(link)
    }

    /// Connects only to look.
    pub(super) async fn look(address: &Secret, key: &Id) -> Result<Client, Error> {
        let link = Self::closed(address, key)?;
        let client = link.connect().await.map_err(|error| words(&error))?;
        schema::expect(&client, &link.schema, key).await?;
        Ok(client)
    }

    fn closed(address: &Secret, key: &Id) -> Result<Self, Error> {
        let (mut config, certificates) = settings(address.reveal())?;
        let schema = schema::name(key);
        // Who it is, for whoever looks at the server.
        config.application_name(schema.as_str());
        let tls = Tls::new(certificates.as_deref())
            .map_err(|error| Error::Broken(format!("the certificates of the database cannot be used: {error}")))?;
        Ok(Self { config: Arc::new(config), tls, schema: schema.into(), current: Arc::default() })
    }

    /// The same database over another connection.
    pub(super) fn another(&self) -> Self {
        Self { current: Arc::default(), ..self.clone() }
    }

    async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        // It ends with the client; whoever uses the client hears why it ended before.
        tokio::spawn(connection);
        // The name is made of letters and digits of ours.
        client.batch_execute(&format!("SET search_path = {}", self.schema)).await?;
        Ok(client)
    }

    async fn client(&self) -> Result<Arc<Client>, tokio_postgres::Error> {
        let mut current = self.current.lock().await;
        if let Some(client) = current.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let client = Arc::new(self.connect().await?);
        *current = Some(client.clone());
        Ok(client)
    }

    /// Does something that may be done twice; again, if the connection breaks meanwhile.
    pub(super) async fn with<T, F>(&self, attempt: impl Fn(Arc<Client>) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let end = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let tried = match self.client().await {
                Ok(client) => attempt(client).await,
                Err(error) => Err(error),
            };
            match tried {
                Ok(done) => return Ok(done),
                Err(error) if is_passing(&error) && Instant::now() + pause < end => {
                    // A server that is about to stop keeps the connection for a while.
                    *self.current.lock().await = None;
                }
                Err(error) => return Err(words(&error)),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Where the database is, and the file with the certificates that are trusted.
fn settings(address: &str) -> Result<(Config, Option<PathBuf>), Error> {
    let (address, certificates) = without_certificates(address);
    // What is wrong with it is not said: the password may be.
    let mut config: Config = address.parse().map_err(|_| {
        Error::Broken(
            "the address of the database is malformed; it looks like postgres://user@host/database".to_owned(),
        )
    })?;
    let is_local = config.get_hosts().iter().all(is_local) && config.get_hostaddrs().iter().all(|ip| ip.is_loopback());
    if config.get_ssl_mode() == SslMode::Prefer {
        // Nothing leaves this machine, or everything that does is encrypted. In between there is nothing to prefer.
        config.ssl_mode(if is_local { SslMode::Disable } else { SslMode::Require });
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    config
        .tcp_user_timeout(SILENCE)
        .keepalives_idle(SILENCE / 3)
        .keepalives_interval(SILENCE / 3)
        .keepalives_retries(2);
    Ok((config, certificates))
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// `sslrootcert` is ours to understand.
fn without_certificates(address: &str) -> (String, Option<PathBuf>) {
    let Some(mut url) = Url::parse(address).ok().filter(|url| url.query().is_some()) else {
        return (address.to_owned(), None);
    };
    let mut path = None;
    let mut rest = Vec::new();
    for (name, value) in url.query_pairs().into_owned() {
        if name == "sslrootcert" { path = Some(PathBuf::from(value)) } else { rest.push((name, value)) }
    }
    if path.is_none() {
        return (address.to_owned(), None);
    }
    url.set_query(None);
    if !rest.is_empty() {
        url.query_pairs_mut().extend_pairs(rest);
    }
    (url.into(), path)
}

#[cfg(test)]
mod tests {
    use super::{settings, without_certificates};
    use tokio_postgres::config::SslMode;

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_somebody_says_otherwise() {
        for (address, mode) in [
            ("postgres://me:secret@localhost/db", SslMode::Disable),
            ("postgres://me@127.0.0.1:5433/db", SslMode::Disable),
            ("postgres:///db?host=/run/postgresql", SslMode::Disable),
            ("postgres://me@localhost/db?sslmode=require", SslMode::Require),
            ("postgres://me@db.example/db", SslMode::Require),
            ("postgres://me@db.example/db?sslmode=prefer", SslMode::Require),
            ("postgres://me@db.example/db?sslmode=disable", SslMode::Disable),
            ("postgres://me@localhost/db?hostaddr=192.0.2.1", SslMode::Require),
            ("host=localhost,db.example user=me", SslMode::Require),
        ] {
            assert_eq!(settings(address).unwrap().0.get_ssl_mode(), mode, "{address}");
        }
        let error = settings("postgres://me:hunter2@db:port/x").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn the_file_with_certificates_is_taken_out_of_the_address() {
        let (rest, path) = without_certificates("postgres://a@b/c?sslrootcert=%2Fetc%2Fca.pem&sslmode=require");
        assert_eq!(
            (rest.as_str(), path.unwrap().to_str().unwrap()),
            ("postgres://a@b/c?sslmode=require", "/etc/ca.pem")
        );
    }
}
