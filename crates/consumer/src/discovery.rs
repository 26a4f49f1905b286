//! Finding services, in both ways there are: what providers announce, and who answers when everybody is asked.

use crate::catalogue::{Catalogue, Item};
use crate::customer::Customer;
use crate::directory::Directory;
use crate::error::{Complaint, Error};
use crate::payment::price_of;
use crate::reference::Target;
use crate::remote::{Remote, Terms};
use crate::reply::Reply;
use crate::text;
use nostr::prelude::{PublicKey, Timestamp};
use rialto_payment::price::Rule;
use rialto_relay::status::{State, Status};
use rialto_wire::dvmcp::{self, answer};
use rialto_wire::request::{self, Command};
use rialto_wire::service::{self, Service, Way, Wire};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long relays have to bring announcements.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long providers have to answer when everybody is asked.
const ANSWERS: Duration = Duration::from_secs(2);

/// How long a provider has to show that it is there.
const CHECK: Duration = Duration::from_secs(4);

/// Providers that are asked at once.
const AT_ONCE: usize = 16;

/// Lists of tools that others have asked for: the latest are enough.
const MAX_OVERHEARD: usize = 200;

/// Tools of one provider that are looked at; a key can describe any number, in any number of manifests.
const MAX_TOOLS: usize = 2000;

/// Bytes of definitions that are looked at for what cannot be used. Each megabyte may take seconds.
const MAX_WEEDED: usize = 2 * 1024 * 1024;

/// A tool in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    pub name: String,
    pub about: String,
    /// What it says it costs, if it does.
    pub price: Option<Rule>,
}

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// All of these must be found somewhere in what a service says of itself.
    pub words: Vec<String>,
    pub limit: usize,
    /// Whether to ask those that were found if they are there.
    pub check: bool,
}

/// A service that was found. Texts are fit to be shown.
#[derive(Debug, Clone)]
pub struct Finding {
    pub provider: PublicKey,
    pub name: String,
    pub about: String,
    pub tools: Vec<Brief>,
    /// How it can be called.
    pub wires: BTreeSet<Wire>,
    pub sealed: bool,
    pub announced: Option<Timestamp>,
    pub last_seen: Timestamp,
    /// The manifests, as long as it is not clear which of their tools can be used.
    manifests: Vec<Service>,
    /// From the question to the answer; `None` if it was not asked or did not answer.
    pub latency: Option<Duration>,
    rank: u32,
}

/// The newest announcement of every service on the relays.
pub async fn announced(customer: &Customer) -> Result<Vec<Service>, Error> {
    let mut query = customer.0.pool.query(&service::all(), PATIENCE);
    let mut newest: HashMap<(Wire, PublicKey, String), Service> = HashMap::new();
    while let Some(event) = query.next().await {
        if let Some(service) = customer.announcements().take(&event, customer.0.clock.now()) {
            newest.insert((service.wire, service.provider, service.id.clone()), service);
        }
    }
    customer.announcements().save()?;
    if newest.is_empty()
        && let Some(error) = unreachable(&customer.relays())
    {
        return Err(error);
    }
    let mut services: Vec<Service> = newest.into_values().collect();
    services.retain(|service| customer.announcements().is_current(service));
    Ok(services)
}

/// If no relay is there at all: nothing was found because nobody was asked.
fn unreachable(relays: &[Status]) -> Option<Error> {
    let complaint = |status: &Status| match &status.state {
        State::Down { reason, .. } => Some(Complaint { relay: status.url.to_string(), words: reason.clone() }),
        _ => None,
    };
    relays.iter().map(complaint).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty()).map(Error::Unreachable)
}

/// Asks everybody for their tools.
async fn everybody(customer: &Customer) -> Result<Vec<(PublicKey, Reply, Duration)>, Error> {
    let inner = &customer.0;
    let mut event = dvmcp::request::write(Command::ListTools, None, String::new(), inner.me(), inner.clock.now());
    request::distinguish(&mut event, &inner.salt());
    let id = event.compute_id();
    let _open = Collecting { customer, id };
    let changed = inner.collect(id)?;
    let (_, event) = inner.enclose(event, &inner.me(), Way::PUBLIC)?;
    let publication = inner.pool.publish(&event);
    let mut undeliverable = Box::pin(inner.clone().undeliverable(publication));
    let (began, mut answers) = (Instant::now(), Vec::new());
    loop {
        tokio::select! {
            () = changed.notified() => {
                let latency = began.elapsed();
                answers.extend(inner.gathered(&id).into_iter().map(|(author, reply)| (author, reply, latency)));
            }
            error = &mut undeliverable => return Err(error),
            () = tokio::time::sleep_until(began + ANSWERS) => return Ok(answers),
        }
    }
}

/// A list of tools that a provider gave to somebody else.
struct Overheard {
    provider: PublicKey,
    told: Timestamp,
    tools: Vec<Brief>,
}

/// Lists of tools that others have asked for, and that relays still have.
async fn overheard(customer: &Customer) -> Vec<Overheard> {
    let mut query = customer.0.pool.query(&[dvmcp::tool_lists_filter().limit(MAX_OVERHEARD)], PATIENCE);
    let mut lists = Vec::new();
    while let Some(event) = query.next().await {
        let content = answer::overheard(&event).and_then(|content| serde_json::from_str(content).ok());
        let content: serde_json::Value = content.unwrap_or_default();
        let items = content.get("tools").and_then(serde_json::Value::as_array).into_iter().flatten();
        let tools: Vec<_> =
            items.filter_map(|item| Item::read(item.to_string().as_bytes(), "name")).map(brief).collect();
        if !tools.is_empty() {
            lists.push(Overheard { provider: event.pubkey, told: event.created_at, tools });
        }
    }
    lists
}

/// A request to everybody that is open.
struct Collecting<'a> {
    customer: &'a Customer,
    id: nostr::prelude::EventId,
}

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        self.customer.0.forget(&self.id);
    }
}

/// Finds services, the best first.
pub async fn find(customer: &Customer, search: &Search) -> Result<Vec<Finding>, Error> {
    let (services, answers, lists) = tokio::join!(announced(customer), everybody(customer), overheard(customer));
    let services = services?;
    // Relays that take no requests may still tell what is announced.
    let answers = match answers {
        Err(error) if services.is_empty() && lists.is_empty() => return Err(error),
        answers => answers.unwrap_or_default(),
    };
    let now = customer.0.clock.now();
    let mut findings = merged(services, answers, lists, now);
    findings.retain_mut(|finding| {
        finding.rank = rank(finding, &search.words);
        finding.rank > 0
    });
    sort(&mut findings);
    findings.truncate(search.limit);
    let mut findings = tokio::task::spawn_blocking(move || weeded(findings)).await.unwrap_or_default();
    if search.check {
        check(customer, &mut findings, now).await;
        sort(&mut findings);
    }
    Ok(findings)
}

/// By how well they fit, then those that are there, then the quickest.
fn sort(findings: &mut [Finding]) {
    findings.sort_by(|one, other| {
        let key = |finding: &Finding| (std::cmp::Reverse(finding.rank), finding.latency.is_none(), finding.latency);
        key(one)
            .cmp(&key(other))
            .then_with(|| other.last_seen.cmp(&one.last_seen))
            .then_with(|| one.name.cmp(&other.name))
            // Whoever takes another's name must not get its place by chance.
            .then_with(|| one.provider.cmp(&other.provider))
    });
}

/// One finding for each provider: its newest announcement, its answer, and what it told others.
fn merged(
    mut services: Vec<Service>,
    answers: Vec<(PublicKey, Reply, Duration)>,
    lists: Vec<Overheard>,
    now: Timestamp,
) -> Vec<Finding> {
    let mut found: HashMap<PublicKey, Finding> = HashMap::new();
    services.sort_by(|one, other| other.announced.cmp(&one.announced).then_with(|| one.id.cmp(&other.id)));
    for service in services {
        match found.get_mut(&service.provider) {
            None => {
                found.insert(service.provider, announced_finding(&service, now));
            }
            Some(finding) => finding.add(&service),
        }
    }
    for Overheard { provider, told, tools } in lists {
        let is_newer = |finding: &Finding| finding.announced.is_none() && finding.last_seen < told;
        if told <= now && found.get(&provider).is_none_or(is_newer) {
            found.insert(provider, Finding { tools, last_seen: told, ..unannounced(provider, now) });
        }
    }
    for (provider, reply, latency) in answers {
        let tools = tools(&reply);
        if reply.failure.is_some() || tools.is_none() {
            continue;
        }
        let finding = found.entry(provider).or_insert_with(|| unannounced(provider, now));
        finding.tools = tools.unwrap_or_default();
        (finding.latency, finding.last_seen) = (Some(latency), now);
    }
    found.into_values().collect()
}

impl Finding {
    /// Whether there is a question that nobody minds: over the other wire every question runs a tool.
    fn can_be_asked(&self) -> bool {
        self.latency.is_none() && self.wires.contains(&Wire::Dvmcp)
    }

    /// Adds what another description of the same provider says. Its tools are all called at one key, whichever manifest
    /// describes them; of several announcements the newest tells everything.
    fn add(&mut self, service: &Service) {
        let is_new = self.wires.insert(service.wire);
        self.sealed |= service.sealed;
        self.manifests.extend((service.wire == Wire::Manifest).then(|| service.clone()));
        if service.wire == Wire::Manifest || is_new {
            let known: HashSet<String> = self.tools.iter().map(|tool| tool.name.clone()).collect();
            let room = MAX_TOOLS.saturating_sub(self.tools.len());
            self.tools.extend(described(service).filter(|tool| !known.contains(&tool.name)).take(room));
        }
    }
}

/// Without the tools of manifests that cannot be used. It takes a while, so only those that are shown are looked at, and not
/// for ever.
fn weeded(mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut left = MAX_WEEDED;
    for finding in &mut findings {
        let manifests = std::mem::take(&mut finding.manifests);
        let bytes: usize = manifests.iter().flat_map(|manifest| &manifest.tools).map(String::len).sum();
        if bytes == 0 || bytes > left || finding.wires.contains(&Wire::Dvmcp) {
            continue;
        }
        left -= bytes;
        let usable = Directory::new(&manifests).tools;
        finding.tools.retain(|brief| usable.iter().any(|tool| tool.name == brief.name));
    }
    findings
}

fn described(service: &Service) -> impl Iterator<Item = Brief> {
    service.tools.iter().filter_map(|text| Item::read(text.as_bytes(), "name")).map(brief)
}

fn announced_finding(service: &Service, now: Timestamp) -> Finding {
    Finding {
        provider: service.provider,
        name: text::name(&service.name),
        about: text::limited(&text::one_line(&service.about), 500),
        tools: described(service).collect(),
        wires: [service.wire].into(),
        sealed: service.sealed,
        announced: Some(service.announced),
        last_seen: service.announced.min(now),
        manifests: (service.wire == Wire::Manifest).then(|| service.clone()).into_iter().collect(),
        latency: None,
        rank: 1,
    }
}

fn unannounced(provider: PublicKey, now: Timestamp) -> Finding {
    Finding {
        provider,
        name: String::new(),
        about: String::new(),
        tools: Vec::new(),
        wires: [Wire::Dvmcp].into(),
        sealed: false,
        announced: None,
        last_seen: now,
        manifests: Vec::new(),
        latency: None,
        rank: 1,
    }
}

fn tools(reply: &Reply) -> Option<Vec<Brief>> {
    let items = reply.list("tools").ok()?.into_iter().filter_map(|text| Item::read(text, "name"));
    Some(items.map(brief).collect())
}

fn brief(item: Item) -> Brief {
    let about = text::limited(&text::one_line(item.description()), 500);
    Brief { price: price_of(&item.original), name: item.name, about }
}

/// How well a service fits: 0 if a word is nowhere; a name counts more than a tool, and a tool more than a description.
fn rank(finding: &Finding, words: &[String]) -> u32 {
    let name = finding.name.to_lowercase();
    let about = finding.about.to_lowercase();
    let tools: Vec<(String, String)> =
        finding.tools.iter().map(|tool| (tool.name.to_lowercase(), tool.about.to_lowercase())).collect();
    let mut total = 1;
    for word in words.iter().map(|word| word.to_lowercase()) {
        let fit = if name.contains(&word) {
            100
        } else if tools.iter().any(|(name, _)| name.contains(&word)) {
            10
        } else if about.contains(&word) || tools.iter().any(|(_, about)| about.contains(&word)) {
            1
        } else {
            return 0;
        };
        total += fit;
    }
    total
}

/// Asks those that have not answered yet.
async fn check(customer: &Customer, findings: &mut [Finding], now: Timestamp) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut asked = JoinSet::new();
    for (index, finding) in findings.iter().enumerate().filter(|(_, finding)| finding.can_be_asked()) {
        let (customer, places, provider) = (customer.clone(), places.clone(), finding.provider);
        asked.spawn(async move {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            (index, ask(&customer, provider).await)
        });
    }
    while let Some(answer) = asked.join_next().await {
        if let Ok((index, Some((tools, latency)))) = answer {
            let finding = &mut findings[index];
            (finding.tools, finding.latency, finding.last_seen) = (tools, Some(latency), now);
        }
    }
}

async fn ask(customer: &Customer, provider: PublicKey) -> Option<(Vec<Brief>, Duration)> {
    // What a service offers is no secret, and every provider reads a plain request.
    let remote = Remote::unseen(
        customer,
        &Target { provider, id: None, relays: Vec::new() },
        Terms { wire: Some(Wire::Dvmcp), plain: true },
    );
    let began = Instant::now();
    let items = tokio::time::timeout(CHECK, Catalogue::tools(&remote)).await.ok()?.ok()?;
    Some((items.into_iter().map(brief).collect(), began.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::{Brief, Finding, MAX_TOOLS, merged, rank, unannounced};
    use nostr::prelude::{EventId, Keys, Timestamp};
    use rialto_wire::service::{Service, Wire};

    #[test]
    fn one_key_with_many_manifests_is_one_finding_of_bounded_length() {
        let provider = Keys::generate().public_key();
        let manifest = |number: usize| Service {
            wire: Wire::Manifest,
            provider,
            id: format!("s{number}"),
            name: "flood".into(),
            about: String::new(),
            tools: (0..1000).map(|tool| format!("{{\"name\":\"t{number}_{tool}\"}}")).collect(),
            sealed: false,
            flaws: Vec::new(),
            announced: Timestamp::from(1),
            event: EventId::from_byte_array([0; 32]),
        };
        let found = merged((0..4).map(manifest).collect(), Vec::new(), Vec::new(), Timestamp::from(2));
        assert_eq!(found.iter().map(|finding| finding.tools.len()).collect::<Vec<_>>(), [MAX_TOOLS]);
    }

    #[test]
    fn all_words_must_fit_and_names_count_most() {
        let finding = Finding {
            name: "Weather".into(),
            about: "Forecasts for cities".into(),
            tools: vec![Brief { name: "get_rain".into(), about: "Millimetres of rain".into(), price: None }],
            ..unannounced(Keys::generate().public_key(), Timestamp::from(1))
        };
        let rank = |words: &str| rank(&finding, &words.split_whitespace().map(Into::into).collect::<Vec<_>>());
        assert_eq!(rank("snow"), 0);
        assert_eq!(rank("weather snow"), 0);
        assert!(rank("WEATHER") > rank("rain") && rank("rain") > rank("cities"));
        assert!(rank("weather rain") > rank("weather"));
        assert_eq!(rank("millimetres"), rank("cities"));
        assert_eq!(rank(""), 1);
    }
}
