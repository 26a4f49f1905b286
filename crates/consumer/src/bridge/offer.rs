//! What all services offer together, under local names, and where each name leads.

use super::answer;
use super::source::Source;
use crate::catalogue::Item;
use crate::naming;
use crate::payment::price_of;
use crate::remote::Remote;
use rialto_mcp::json;
use rialto_payment::price::Rule;
use std::collections::{HashMap, HashSet};

/// Declared at once, because a host asks only for what was declared, and services may be heard of later.
pub(super) const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"listChanged":true},"prompts":{"listChanged":true},"completions":{}}"#;

/// When names get their service in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefix {
    /// If there are several services.
    #[default]
    Automatic,
    Always,
    /// Only names that several services have.
    Conflict,
    Never,
}

/// Where a local name leads.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) remote: Remote,
    /// The name that the service knows.
    pub(super) name: String,
    /// The service's name, for messages.
    pub(super) service: String,
    /// The tool is not what it was when it was first used.
    pub(super) is_changed: bool,
    /// What the tool says it costs.
    pub(super) price: Option<Rule>,
}

/// One consistent view.
#[derive(Debug, Default)]
pub(super) struct Offer {
    tools: Vec<u8>,
    prompts: Vec<u8>,
    resources: Vec<u8>,
    templates: Vec<u8>,
    tool_places: HashMap<String, Place>,
    prompt_places: HashMap<String, Place>,
    resource_places: HashMap<String, Place>,
    /// The fixed beginning of each template.
    template_places: Vec<(String, Place)>,
    /// The services that were found.
    remotes: Vec<Place>,
}

impl Offer {
    /// Also gives the names that could not be given to two.
    pub(super) fn build(sources: &[Source], prefix: Prefix) -> (Self, Vec<String>) {
        // A service that was named twice is there once.
        let mut seen = HashSet::new();
        let is_new = |source: &&Source| source.provider().is_some_and(|provider| seen.insert(provider));
        let known: Vec<&Source> = sources.iter().filter(is_new).collect();
        let names: Vec<_> = known.iter().filter_map(|source| Some((source.provider()?, source.title()))).collect();
        let aliases = naming::aliases(&names);
        let prefix = match prefix {
            Prefix::Automatic if sources.len() > 1 => Prefix::Always,
            Prefix::Automatic => Prefix::Never,
            other => other,
        };
        let mut refused = Vec::new();
        let tools = named(&known, &aliases, prefix, |source| &source.catalogue.tools, &mut refused);
        let prompts = named(&known, &aliases, prefix, |source| &source.catalogue.prompts, &mut refused);
        let resources = by_uri(&known, |source| &source.catalogue.resources);
        let templates = by_uri(&known, |source| &source.catalogue.templates);
        let remotes = known.iter().filter_map(|source| place(source, "")).collect();
        let template_places = templates
            .iter()
            .map(|(uri, place, _)| (uri.split('{').next().unwrap_or_default().to_owned(), place.clone()))
            .collect();
        let offer = Self {
            tools: list("tools", &tools),
            prompts: list("prompts", &prompts),
            resources: list("resources", &resources),
            templates: list("resourceTemplates", &templates),
            tool_places: places(tools),
            prompt_places: places(prompts),
            resource_places: places(resources),
            template_places,
            remotes,
        };
        (offer, refused)
    }

    pub(super) fn tools(&self) -> &[u8] {
        &self.tools
    }

    pub(super) fn prompts(&self) -> &[u8] {
        &self.prompts
    }

    pub(super) fn resources(&self) -> &[u8] {
        &self.resources
    }

    pub(super) fn templates(&self) -> &[u8] {
        &self.templates
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Place> {
        self.tool_places.get(name)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Place> {
        self.prompt_places.get(name)
    }

    /// Who has a resource: whoever lists it, else whose template begins alike, else the only service there is.
    pub(super) fn resource(&self, uri: &str) -> Option<&Place> {
        let by_template = || {
            let fitting = self.template_places.iter().filter(|(start, _)| uri.starts_with(start.as_str()));
            fitting.max_by_key(|(start, _)| start.len()).map(|(_, place)| place)
        };
        let only = || if self.remotes.len() == 1 { self.remotes.first() } else { None };
        self.resource_places.get(uri).or_else(by_template).or_else(only)
    }
}

/// A local name, where it leads, and the definition to show.
type Entry = (String, Place, Vec<u8>);

fn place(source: &Source, name: &str) -> Option<Place> {
    let remote = source.remote.clone()?;
    let is_changed = source.changed.contains(name);
    Some(Place { remote, name: name.to_owned(), service: source.title(), is_changed, price: None })
}

fn named(
    sources: &[&Source],
    aliases: &[String],
    prefix: Prefix,
    items: impl Fn(&Source) -> &[Item],
    refused: &mut Vec<String>,
) -> Vec<Entry> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for item in sources.iter().flat_map(|source| items(source)) {
        *owners.entry(&item.name).or_default() += 1;
    }
    let mut taken = HashSet::new();
    let mut entries = Vec::new();
    for (source, alias) in sources.iter().zip(aliases) {
        for item in items(source) {
            let is_shared = owners.get(item.name.as_str()).is_some_and(|count| *count > 1);
            let wants_alias = prefix == Prefix::Always || (prefix == Prefix::Conflict && is_shared);
            let mut name = if wants_alias { naming::prefixed(alias, &item.name) } else { item.name.clone() };
            if taken.contains(&name) && wants_alias {
                name = naming::marked(&name, &item.name);
            }
            let Some(mut place) = place(source, &item.name) else { continue };
            place.price = price_of(&item.original);
            // Never overwritten: whoever came first may be trusted under this name.
            if !taken.insert(name.clone()) {
                refused.push(name);
                continue;
            }
            let shown = answer::stamped(&renamed(&item.shown, &name), &place.remote.npub());
            entries.push((name, place, shown));
        }
    }
    entries
}

fn by_uri(sources: &[&Source], items: impl Fn(&Source) -> &[Item]) -> Vec<Entry> {
    let mut taken = HashSet::new();
    let all = sources.iter().flat_map(|source| items(source).iter().map(move |item| (source, item)));
    all.filter(|(_, item)| taken.insert(item.name.as_str()))
        .filter_map(|(source, item)| {
            let place = place(source, &item.name)?;
            let shown = answer::stamped(&item.shown, &place.remote.npub());
            Some((item.name.clone(), place, shown))
        })
        .collect()
}

fn renamed(definition: &[u8], name: &str) -> Vec<u8> {
    let Ok([Some(at)]) = json::find(definition, ["name"]) else { return definition.to_vec() };
    let mut out = Vec::with_capacity(definition.len() + name.len());
    json::splice(&mut out, definition, &[(at, &json::quoted(name))]);
    out
}

/// The result that lists entries; those that have changed are left out.
fn list(key: &str, entries: &[Entry]) -> Vec<u8> {
    let mut out = format!("{{\"{key}\":[").into_bytes();
    let shown = entries.iter().filter(|(_, place, _)| !place.is_changed);
    for (index, (_, _, definition)) in shown.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(definition);
    }
    out.extend_from_slice(b"]}");
    out
}

fn places(entries: Vec<Entry>) -> HashMap<String, Place> {
    entries.into_iter().map(|(name, place, _)| (name, place)).collect()
}
