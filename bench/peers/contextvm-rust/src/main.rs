//! The echo server of the Nostr benchmark, written with ContextVM's Rust SDK (`rmcp` behind it, no process in between).
//!
//! `rialto-contextvm-peer <relay> plain|sealed`. It prints its public key as `{"ready":{"pubkey":"…"}}` before it
//! subscribes: the SDK does not say when it has.

use contextvm_sdk::{
    EncryptionMode, GiftWrapMode, signer,
    transport::server::{NostrServerTransport, NostrServerTransportConfig},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, Content, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
        ServerInfo,
    },
    service::RequestContext,
};
use serde_json::json;

struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerInfo {
        ServerInfo::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let tools = json!({ "tools": [{ "name": "echo", "description": "Returns its text.", "inputSchema": schema }] });
        serde_json::from_value(tools).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        if params.name != "echo" {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        let given =
            params.arguments.as_ref().and_then(|arguments| arguments.get("text")).and_then(|text| text.as_str());
        Ok(CallToolResult::success(vec![Content::text(given.unwrap_or_default())]))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [relay, mode] = arguments.as_slice() else { return Err("usage: RELAY plain|sealed".into()) };
    let encryption = if mode == "sealed" { EncryptionMode::Required } else { EncryptionMode::Disabled };
    let keys = signer::generate();
    println!("{}", json!({ "ready": { "pubkey": keys.public_key().to_hex() } }));
    // Nothing but the calls: announcements would go to relays on the internet too.
    let config = NostrServerTransportConfig::default()
        .with_relay_urls(vec![relay.clone()])
        .with_bootstrap_relay_urls(Vec::new())
        .with_publish_relay_list(false)
        .with_announced_server(false)
        .with_encryption_mode(encryption)
        .with_gift_wrap_mode(GiftWrapMode::Persistent);
    let transport = NostrServerTransport::new(keys, config).await?;
    Echo.serve(transport).await?.waiting().await?;
    Ok(())
}
