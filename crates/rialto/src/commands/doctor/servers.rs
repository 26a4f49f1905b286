//! Starts each configured server once, and sees what becomes of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rialto_hub::Hub;
use rialto_hub::event::{Event, Events};
use rialto_hub::plan::Plan;
use rialto_mcp::local::Local;
use std::time::Duration;

use super::check::Finding;
use crate::commands::gateway::new_guard;
use crate::failure::Failure;

/// A first `npx` fetches packages.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn check(mut plan: Plan) -> Result<Vec<Finding>, Failure> {
    plan.startup_grace = PATIENCE;
    let names: Vec<String> = plan.servers.iter().map(|server| server.name.clone()).collect();
    let told: Arc<Mutex<HashMap<String, Event>>> = Arc::default();
    let heard = told.clone();
    let events = Events::new(move |event| {
        let server = match &event {
            Event::Ready { server, .. } | Event::Down { server, .. } => server.clone(),
            _ => return,
        };
        heard.lock().unwrap_or_else(PoisonError::into_inner).insert(server, event);
    });
    let hub = Hub::start(plan, new_guard()?, events);
    // Comes back when each has started or failed.
    let (local, _, _) = Local::open(hub.clone(), "{\"name\":\"rialto-doctor\",\"version\":\"1\"}").await;
    drop(local);
    hub.stop().await;
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(names.iter().map(|name| finding(name, told.remove(name))).collect())
}

fn finding(name: &str, event: Option<Event>) -> Finding {
    match event {
        Some(Event::Ready { version, tools, .. }) => {
            Finding::ok("server", name, &format!("starts, speaks MCP {version}, offers {tools} tools"))
        }
        Some(Event::Down { reason, .. }) => Finding::broken("server", name, "server_down", &reason),
        _ => Finding::broken("server", name, "server_silent", "it did not answer in time"),
    }
}
