//! The client that the official conformance suite drives: it reaches the suite's server with what the product uses, lists
//! everything there is, calls every tool, and logs in where it must.
//!
//! Started by the suite with the server's address as last argument. `MCP_CONFORMANCE_PROTOCOL_VERSION` says which revision
//! is being tested and `MCP_CONFORMANCE_CONTEXT` what else there is to know.

mod answers;

use answers::{Answers, arguments, responses};
use bytes::Bytes;
use rialto_http::client::oauth::{Authorizer, Browser, Settings, Vault};
use rialto_http::client::{Agent, Endpoint, Options, Remote, Way, carry};
use rialto_mcp::client::{Client, Opening, Welcome, meta_members};
use rialto_mcp::json;
use rialto_mcp::outlet::outlet;
use rialto_mcp::peer::Profile;
use rialto_mcp::pending::Patience;
use rialto_mcp::version::Version;
use serde_json::{Value, json};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

type Outcome<T> = Result<T, Box<dyn Error>>;

const PATIENCE: Patience = Patience { silence: Duration::from_secs(20), total: Duration::from_secs(25) };

/// The document that the suite expects a client to be described by.
const DESCRIPTION: &str = "https://conformance-test.local/client-metadata.json";

/// How often one call may be answered with a question.
const MAX_ROUNDS: usize = 8;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the suite shows what its client says")]
            {
                eprintln!("{error}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Outcome<()> {
    let address = std::env::args().next_back().unwrap_or_default();
    let version = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").ok();
    let version = version.as_deref().and_then(Version::parse).unwrap_or(Version::LATEST_LEGACY);
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let remote = remote(&address, &context)?;
    let (outlet, drain) = outlet();
    let client = Client::new(outlet.clone());
    let host = Arc::new(Answers);
    let carried = carry(&remote, &client, &host, drain);
    let worked = async {
        let worked = work(&client, version, &context).await;
        outlet.finish();
        worked
    };
    let (worked, _) = tokio::join!(worked, carried);
    worked
}

fn remote(address: &str, context: &Value) -> Outcome<Remote> {
    let agent = Agent::new(&Options::from_variables(|name| std::env::var_os(name)))?;
    let endpoint = Endpoint::new(address, Way::Streamable)?;
    let text = |key: &str| context[key].as_str().map(ToOwned::to_owned);
    let settings = Settings {
        client_id: text("client_id"),
        client_secret: text("client_secret"),
        client_metadata: Some(Url::parse(DESCRIPTION)?),
        ..Settings::default()
    };
    let browser = browser(agent.clone());
    let authorizer =
        Authorizer::new(&endpoint, agent.clone(), Vault::in_memory(), settings, Some(browser), "log in first");
    Ok(Remote { endpoint, agent, authorizer: Some(authorizer) })
}

/// Somebody who agrees to everything at once.
fn browser(agent: Agent) -> Browser {
    Arc::new(move |url| {
        let (agent, url) = (agent.clone(), url.clone());
        tokio::spawn(async move {
            let leads_to = agent.visit(&url).await.ok().flatten();
            if let Some(answer) = leads_to.and_then(|location| url.join(&location).ok()) {
                let _ = agent.visit(&answer).await;
            }
        });
    })
}

/// A server that we have been introduced to.
struct Server<'a> {
    client: &'a Client,
    profile: Profile,
}

async fn work(client: &Client, version: Version, context: &Value) -> Outcome<()> {
    let info = Bytes::from_static(b"{\"name\":\"rialto-conformance\",\"version\":\"1.0.0\"}");
    let capabilities = Bytes::from_static(b"{\"elicitation\":{\"form\":{\"applyDefaults\":true}}}");
    let profile = Profile { version, capabilities, info: Some(info), initialize: None };
    let opening = if version.is_modern() { Opening::Modern } else { Opening::Legacy };
    let welcome = client.introduce(&profile, opening, PATIENCE).await?;
    let server = Server { client, profile };
    let mut failed = None;
    let mut note = |outcome: Outcome<Value>| {
        if let Err(error) = outcome {
            failed.get_or_insert(error);
        }
    };
    for (tool, arguments) in server.tools(&welcome, context).await? {
        note(server.call("tools/call", json!({ "name": tool, "arguments": arguments })).await);
    }
    if welcome.can("resources") {
        let listed = server.ask("resources/list", &json!({})).await?;
        for resource in listed["resources"].as_array().into_iter().flatten() {
            note(server.call("resources/read", json!({ "uri": resource["uri"] })).await);
        }
    }
    if welcome.can("prompts") {
        let listed = server.ask("prompts/list", &json!({})).await?;
        for prompt in listed["prompts"].as_array().into_iter().flatten() {
            note(server.call("prompts/get", json!({ "name": prompt["name"] })).await);
        }
    }
    failed.map_or(Ok(()), Err)
}

impl Server<'_> {
    /// The calls to make: those of the suite, or one of each tool.
    async fn tools(&self, welcome: &Welcome, context: &Value) -> Outcome<Vec<(Value, Value)>> {
        let is_modern = welcome.version.is_modern();
        if !welcome.can("tools") && !is_modern {
            return Ok(Vec::new());
        }
        let listed = self.ask("tools/list", &json!({})).await?;
        if let Some(calls) = context["toolCalls"].as_array() {
            return Ok(calls.iter().map(|call| (call["name"].clone(), call["arguments"].clone())).collect());
        }
        let tools = listed["tools"].as_array().cloned().unwrap_or_default();
        let call = |tool: &Value| (tool["name"].clone(), arguments(tool, &tools));
        Ok(tools.iter().map(call).collect())
    }

    /// Asks something, answering the questions that come in between.
    async fn call(&self, method: &str, mut params: Value) -> Outcome<Value> {
        for _ in 0..MAX_ROUNDS {
            let result = self.ask(method, &params).await?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            params["inputResponses"] = responses(&result["inputRequests"]);
            match result.get("requestState") {
                Some(state) => params["requestState"] = state.clone(),
                None => drop(params.as_object_mut().and_then(|params| params.remove("requestState"))),
            }
        }
        Err("the server asks without an end".into())
    }

    async fn ask(&self, method: &str, params: &Value) -> Outcome<Value> {
        let mut params = params.to_string().into_bytes();
        if self.profile.version.is_modern() {
            params = json::with_meta(&params, &meta_members(&self.profile));
        }
        let response = self.client.request(method, &params, PATIENCE).await?;
        match response.result() {
            Some(result) => Ok(serde_json::from_slice(result)?),
            None => Err(format!("{method}: {}", String::from_utf8_lossy(response.error().unwrap_or_default())).into()),
        }
    }
}
