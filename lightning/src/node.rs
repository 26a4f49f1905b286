//! One Lightning node: an ldk-node on the private chain, with its files in a directory of its own.

use ldk_node::bitcoin::Network;
use ldk_node::config::Config;
use ldk_node::lightning::ln::msgs::SocketAddress;
use ldk_node::logger::LogLevel;
use ldk_node::{Builder, Node as Inner};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

/// How often another port is tried when somebody else took ours first.
const TRIES: usize = 5;

/// Why a node cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no free port for the {0} node: {1}")]
    NoPort(String, std::io::Error),
    #[error("the {0} node cannot be built: {1}")]
    Build(String, ldk_node::BuildError),
    #[error("the {0} node does not start: {1}")]
    Start(String, ldk_node::NodeError),
}

/// Builds and starts a node. This blocks.
pub(crate) fn start(name: &str, directory: &Path, chain: SocketAddr) -> Result<Inner, Error> {
    let mut tries = 1;
    loop {
        let port = free_port().map_err(|error| Error::NoPort(name.to_owned(), error))?;
        let node = build(name, directory, chain, port)?;
        match node.start() {
            Ok(()) => return Ok(node),
            // The node opens the port itself, so somebody may have come between.
            Err(ldk_node::NodeError::InvalidSocketAddress) if tries < TRIES => tries += 1,
            Err(error) => return Err(Error::Start(name.to_owned(), error)),
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn build(name: &str, directory: &Path, chain: SocketAddr, port: u16) -> Result<Inner, Error> {
    let config = Config {
        network: Network::Regtest,
        listening_addresses: Some(vec![SocketAddress::TcpIpV4 { addr: Ipv4Addr::LOCALHOST.octets(), port }]),
        ..Config::default()
    };
    let mut builder = Builder::from_config(config);
    builder.set_storage_dir_path(directory.join(name).to_string_lossy().into_owned());
    // Beside the node's other files, so that it is gone with them unless somebody wants to keep it.
    builder.set_filesystem_logger(None, Some(LogLevel::Info));
    // The chain asks for no name and no password, but the node insists on sending some.
    let nobody = || "nobody".to_owned();
    builder.set_chain_source_bitcoind_rpc(chain.ip().to_string(), chain.port(), nobody(), nobody());
    builder.build().map_err(|error| Error::Build(name.to_owned(), error))
}
