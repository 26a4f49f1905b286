//! A database that is spoken to over TLS, and whose certificate must be right.

use crate::server::{Server, start_with};
use crate::steps::{begin, taken};
use rialto_ledger::job::Stage;
use rialto_ledger::ledger::Error;
use rialto_ledger::postgres::Postgres;
use rialto_payment::secret::Secret;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A certificate for `localhost`, and that of who has signed it.
fn certify(directory: &Path) {
    let script = "
        key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $key -keyout ca.key -out ca.pem -subj /CN=authority -days 2
        openssl req $key -keyout server.key -out server.csr -subj /CN=localhost
        printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' >extensions
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile extensions";
    let made = Command::new("sh").args(["-ec", script]).current_dir(directory).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(directory.join("server.key"), private).unwrap();
}

/// On a port that is free; if somebody else was faster, on another.
fn start() -> Option<(Server, u16)> {
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = [
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "ssl=on",
            "-c",
            "ssl_cert_file=../server.crt",
            "-c",
            "ssl_key_file=../server.key",
            "-c",
            &format!("port={port}"),
        ];
        if let Ok(server) = start_with(&settings, port, certify)? {
            return Some((server, port));
        }
    }
    panic!("there is no free port");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_with_the_right_certificate_and_no_other() {
    let Some((server, port)) = start() else { return };
    let authority = server.directory.join("ca.pem");
    let open = async |address: String| Postgres::open(&Secret::new(address), &[1; 32]).await;
    let base = format!("postgres://rialto@localhost:{port}/postgres?sslmode=require");
    let ledger = open(format!("{base}&sslrootcert={}", authority.display())).await.unwrap();
    taken(&ledger, begin(1, 1, Stage::Funded)).await;
    // An authority that nobody knows, and a name that the certificate does not have.
    let unknown = open(base).await.unwrap_err();
    assert!(unknown.to_string().contains("UnknownIssuer"), "{unknown}");
    let address =
        format!("postgres://rialto@127.0.0.1:{port}/postgres?sslmode=require&sslrootcert={}", authority.display());
    let misnamed = open(address).await.unwrap_err();
    assert!(
        matches!(misnamed, Error::Unreachable(_)) && misnamed.to_string().contains("not valid for name"),
        "{misnamed}"
    );
}
