//! A server that runs elsewhere: reached over HTTP, introduced, and found again when it has forgotten us.

use crate::hub::Hub;
use crate::link::Link;
use crate::source::{Life, Profiles, Source, State, replaced};
use crate::upstream::Upstream;
use rialto_http::client::{End, Remote, carry};
use rialto_mcp::client::{Client, Unwelcome};
use rialto_mcp::outlet::outlet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// A session that was kept this long and then forgotten is begun anew at once. One that is forgotten sooner is a fault of
/// the server, and to hurry would only repeat it.
const FAIR_SESSION: Duration = Duration::from_secs(5);

/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_secs(3);

enum Ending {
    Refused(Unwelcome),
    Carried(End),
    Stopped,
    Anew,
}

impl Source {
    /// One session with the server, or the time without sessions until something changes.
    pub(crate) async fn live_apart(
        self: &Arc<Self>,
        remote: &Remote,
        hub: &Weak<Hub>,
        profile: &mut Profiles,
        stop: &mut watch::Receiver<bool>,
    ) -> Life {
        let name = &self.plan.name;
        let (outlet, drain) = outlet();
        let client = Client::new(outlet.clone());
        let link = Link::new(self.clone(), client.clone());
        let host = Arc::new(Upstream { hub: hub.clone(), link: link.clone() });
        let mut carrying = tokio::spawn({
            let (remote, client) = (remote.clone(), client.clone());
            async move { carry(&remote, &client, &host, drain).await }
        });
        let begun = Instant::now();
        let probing = AtomicBool::new(false);
        let mut later = profile.clone();
        let ending = tokio::select! {
            refused = self.introduce(hub, &link, profile, true, &probing) => Ending::Refused(refused),
            carried = &mut carrying => Ending::Carried(carried.unwrap_or(End::Finished)),
            _ = stop.wait_for(|stop| *stop) => Ending::Stopped,
            () = replaced(&mut later) => Ending::Anew,
        };
        let is_over = matches!(ending, Ending::Carried(_));
        let life = match ending {
            Ending::Stopped => Life::Stopped,
            Ending::Anew => Life::Anew,
            Ending::Refused(error) => Life::Over(format!("server `{name}` could not be introduced to: {error}")),
            Ending::Carried(End::SessionGone) if begun.elapsed() >= FAIR_SESSION => Life::Anew,
            Ending::Carried(End::SessionGone) => Life::Over(format!("server `{name}` has forgotten the session")),
            Ending::Carried(End::Lost(fault)) => Life::Over(format!("server `{name}`: {fault}")),
            Ending::Carried(_) => Life::Over(format!("server `{name}`: the connection ended")),
        };
        // Before its calls fail: whoever calls again must wait for the next session, not get this one.
        self.set(State::Starting);
        let reason = if let Life::Over(reason) = &life { reason.as_str() } else { "the session is being ended" };
        client.close(reason);
        // A session that we leave is ended at the server as well.
        outlet.finish();
        if !is_over && tokio::time::timeout(GOODBYE, &mut carrying).await.is_err() {
            carrying.abort();
        }
        life
    }
}
