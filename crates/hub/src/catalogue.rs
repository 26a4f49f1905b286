//! One catalogue out of many: every list in the order of the plan, every item as its server wrote it but for the name.

use crate::name;
use crate::plan::{Plan, Prefix, ServerPlan};
use bytes::Bytes;
use rialto_mcp::error::Error;
use rialto_mcp::json;
use rialto_mcp::mirror::{self, Mirrored};
use std::collections::{HashMap, HashSet};

/// How much one page of a list holds at most.
const PAGE_ITEMS: usize = 1000;
const PAGE_BYTES: usize = 1024 * 1024;

/// The four lists of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates];

    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    pub fn method(self) -> &'static str {
        match self {
            Kind::Tools => "tools/list",
            Kind::Prompts => "prompts/list",
            Kind::Resources => "resources/list",
            Kind::Templates => "resources/templates/list",
        }
    }

    /// The key of the list in its result.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
        }
    }

    /// The capability that a server declares for it.
    pub fn capability(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::Resources | Kind::Templates => "resources",
        }
    }

    /// The member by which an item is called, and whether it can be prefixed.
    fn name_key(self) -> (&'static str, bool) {
        match self {
            Kind::Tools | Kind::Prompts => ("name", true),
            Kind::Resources => ("uri", false),
            Kind::Templates => ("uriTemplate", false),
        }
    }
}

/// What one server answered to one of the list requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    pub items: Vec<Bytes>,
    /// Other members of the result, as written: `"key":value`.
    pub siblings: Vec<(String, Bytes)>,
}

/// Everything one server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer(HashMap<Kind, Listed>);

impl Offer {
    pub fn get(&self, kind: Kind) -> Option<&Listed> {
        self.0.get(&kind)
    }

    /// Replaces one list; `None` if the server has none such.
    pub fn set(&mut self, kind: Kind, listed: Option<Listed>) {
        match listed {
            Some(listed) => self.0.insert(kind, listed),
            None => self.0.remove(&kind),
        };
    }
}

/// Where a public name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The place of the server in the plan.
    pub source: usize,
    /// The name as the server knows it.
    pub name: Box<str>,
}

/// One merged list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    items: Vec<Bytes>,
    siblings: Vec<(String, Bytes)>,
    routes: HashMap<String, Route>,
    /// Of the few tools that have any: the arguments that are repeated in HTTP headers.
    mirrored: HashMap<String, Vec<Mirrored>>,
}

/// All four lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// In the order of [`Kind::ALL`].
    sections: [Section; 4],
}

/// An item that could not be offered, and why; for the person who runs the hub.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hidden {
    pub source: usize,
    pub reason: String,
}

impl Catalogue {
    /// Merges what the servers offer; `offers` is in the order of the plan.
    pub fn build(plan: &Plan, offers: &[Option<Offer>]) -> (Self, Vec<Hidden>) {
        let mut hidden = Vec::new();
        let sections = Kind::ALL.map(|kind| build(kind, plan, offers, &mut hidden));
        (Self { sections }, hidden)
    }

    pub fn section(&self, kind: Kind) -> &Section {
        &self.sections[kind as usize]
    }

    /// Finds the server for a resource: one that lists it, else one with a template that fits.
    pub fn resource(&self, uri: &str) -> Option<usize> {
        if let Some(route) = self.section(Kind::Resources).routes.get(uri) {
            return Some(route.source);
        }
        let templates = &self.section(Kind::Templates).routes;
        let mut fitting: Vec<_> = templates.iter().filter(|(template, _)| fits(template, uri)).collect();
        // The longest template says most about the URI; equal ones are settled by the plan's order.
        fitting.sort_by_key(|(template, route)| (std::cmp::Reverse(template.len()), route.source));
        fitting.first().map(|(_, route)| route.source)
    }
}

impl Section {
    pub fn route(&self, public: &str) -> Option<&Route> {
        self.routes.get(public)
    }

    /// The arguments of a tool that are repeated in HTTP headers; `None` if there is no such tool.
    pub fn mirrored(&self, public: &str) -> Option<Vec<Mirrored>> {
        self.routes.get(public)?;
        Some(self.mirrored.get(public).cloned().unwrap_or_default())
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The result of a list request.
    pub fn page(&self, kind: Kind, cursor: Option<&str>) -> Result<Vec<u8>, Error> {
        let start = match cursor {
            None => 0,
            Some(cursor) => cursor
                .strip_prefix("at-")
                .and_then(|number| number.parse().ok())
                .filter(|start| *start < self.items.len())
                .ok_or_else(|| Error::invalid_params("Invalid cursor").with("cursor", cursor))?,
        };
        let mut out = format!("{{\"{}\":[", kind.key()).into_bytes();
        let mut end = start;
        while let Some(item) = self.items.get(end) {
            if end > start && (end - start == PAGE_ITEMS || out.len() + item.len() > PAGE_BYTES) {
                break;
            }
            if end > start {
                out.push(b',');
            }
            out.extend_from_slice(item);
            end += 1;
        }
        out.push(b']');
        if end < self.items.len() {
            out.extend_from_slice(format!(",\"nextCursor\":\"at-{end}\"").as_bytes());
        }
        for (key, value) in &self.siblings {
            out.push(b',');
            json::write_string(&mut out, key);
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.push(b'}');
        Ok(out)
    }
}

fn build(kind: Kind, plan: &Plan, offers: &[Option<Offer>], hidden: &mut Vec<Hidden>) -> Section {
    let (name_key, can_prefix) = kind.name_key();
    let mut entries = Vec::new();
    let mut section = Section::default();
    for (source, (server, offer)) in plan.servers.iter().zip(offers).enumerate() {
        let Some(listed) = offer.as_ref().and_then(|offer| offer.get(kind)) else { continue };
        for (key, value) in &listed.siblings {
            // A policy of ours may differ from the server's; `_meta` speaks for one server only.
            let speaks_for_all = plan.servers.len() == 1 && server.allow.is_empty() && server.deny.is_empty();
            let is_known = ["_meta", "ttlMs", "cacheScope"].contains(&key.as_str());
            if (speaks_for_all || !is_known) && !section.siblings.iter().any(|(other, _)| other == key) {
                section.siblings.push((key.clone(), value.clone()));
            }
        }
        for item in &listed.items {
            // Some servers write a template's pattern as `uri`.
            let place = json::find(item, [name_key]).ok().and_then(|[place]| place);
            let place = place.or_else(|| json::find(item, ["uri"]).ok().and_then(|[place]| place));
            match place.and_then(|place| Some((place.clone(), json::string(&item[place])?.into_owned()))) {
                None => {
                    hidden.push(Hidden { source, reason: format!("an item of {} has no `{name_key}`", kind.method()) });
                }
                Some((_, name)) if kind == Kind::Tools && !is_visible(server, &name) => {}
                Some((place, name)) => entries.push((source, item, place, name)),
            }
        }
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (_, _, _, name) in &entries {
        *counts.entry(name).or_default() += 1;
    }
    let prefixed: Vec<_> = entries
        .iter()
        .map(|(source, _, _, name)| {
            let is_prefixed = can_prefix
                && match plan.prefix {
                    Prefix::Always => true,
                    Prefix::Conflict => counts.get(name.as_str()).is_some_and(|count| *count > 1),
                    Prefix::Never => false,
                };
            is_prefixed.then(|| name::public(&plan.servers[*source].name, name))
        })
        .collect();
    let mut alike: HashMap<&str, usize> = HashMap::new();
    for public in prefixed.iter().flatten() {
        *alike.entry(public).or_default() += 1;
    }
    let mut taken = HashSet::new();
    for ((source, item, place, name), prefixed) in entries.iter().zip(&prefixed) {
        let server = &plan.servers[*source].name;
        let public = match prefixed {
            None => name.clone(),
            // Of names that become equal, the one that needed no change keeps it, in whichever order they come.
            Some(public) if alike[public.as_str()] > 1 && *public != format!("{server}{}{name}", name::SEPARATOR) => {
                name::marked(public, server, name)
            }
            Some(public) => public.clone(),
        };
        if !taken.insert(public.clone()) {
            let reason = format!("`{public}` of {} is offered by an earlier server already", kind.method());
            hidden.push(Hidden { source: *source, reason });
            continue;
        }
        let json = if public == *name {
            (*item).clone()
        } else {
            let mut renamed = Vec::with_capacity(item.len() + public.len());
            json::splice(&mut renamed, item, &[(place.clone(), &json::quoted(&public))]);
            Bytes::from(renamed)
        };
        // A definition that is wrong in this is for clients to leave out, who are told so by their own library.
        if kind == Kind::Tools
            && let Ok(mirrored) = mirror::of_tool(item)
            && !mirrored.is_empty()
        {
            section.mirrored.insert(public.clone(), mirrored);
        }
        section.items.push(json);
        section.routes.insert(public, Route { source: *source, name: name.as_str().into() });
    }
    section
}

fn is_visible(server: &ServerPlan, tool: &str) -> bool {
    let listed = |patterns: &[String]| patterns.iter().any(|pattern| name::matches(pattern, tool));
    (server.allow.is_empty() || listed(&server.allow)) && !listed(&server.deny)
}

/// Whether a URI can have come out of a template: the fixed parts stand in it, in order.
fn fits(template: &str, uri: &str) -> bool {
    let mut pattern = String::new();
    let mut rest = template;
    while let Some((fixed, after)) = rest.split_once('{') {
        pattern.push_str(fixed);
        pattern.push('*');
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    pattern.push_str(rest);
    template.contains('{') && name::matches(&pattern, uri)
}

#[cfg(test)]
mod tests {
    use super::{Catalogue, Kind, Listed, Offer, fits};
    use crate::plan::{DEFAULT_STARTUP_GRACE, Plan, Prefix, ServerPlan};
    use bytes::Bytes;

    fn plan(prefix: Prefix, servers: &[&str]) -> Plan {
        let servers = servers.iter().map(|name| ServerPlan::new(*name, "true", Vec::new())).collect();
        Plan { servers, prefix, startup_grace: DEFAULT_STARTUP_GRACE }
    }

    fn offer(kind: Kind, items: &[&str]) -> Option<Offer> {
        let items = items.iter().map(|item| Bytes::copy_from_slice(item.as_bytes())).collect();
        let mut offer = Offer::default();
        offer.set(kind, Some(Listed { items, siblings: vec![("x".into(), Bytes::from_static(b"1.50"))] }));
        Some(offer)
    }

    fn page(prefix: Prefix, first: &[&str], second: &[&str]) -> String {
        let plan = plan(prefix, &["a", "b"]);
        let (catalogue, _) = Catalogue::build(&plan, &[offer(Kind::Tools, first), offer(Kind::Tools, second)]);
        String::from_utf8(catalogue.section(Kind::Tools).page(Kind::Tools, None).unwrap()).unwrap()
    }

    #[test]
    fn prefixes() {
        let first = [r#"{ "z":1.0,"name":"t","?":[] }"#, r#"{"name":"u"}"#];
        let second = [r#"{"name":"t"}"#];
        for (prefix, expected) in [
            (
                Prefix::Always,
                r#"{"tools":[{ "z":1.0,"name":"a__t","?":[] },{"name":"a__u"},{"name":"b__t"}],"x":1.50}"#,
            ),
            (Prefix::Conflict, r#"{"tools":[{ "z":1.0,"name":"a__t","?":[] },{"name":"u"},{"name":"b__t"}],"x":1.50}"#),
            (Prefix::Never, r#"{"tools":[{ "z":1.0,"name":"t","?":[] },{"name":"u"}],"x":1.50}"#),
        ] {
            assert_eq!(page(prefix, &first, &second), expected);
        }
    }

    #[test]
    fn names_that_become_equal_stay_apart() {
        let (dotted, plain) = (r#"{"name":"x.y"}"#, r#"{"name":"x_y"}"#);
        let one = page(Prefix::Always, &[dotted, plain], &[]);
        let other = page(Prefix::Always, &[plain, dotted], &[]);
        let marked = crate::name::marked("a__x_y", "a", "x.y");
        assert_eq!(one, format!(r#"{{"tools":[{{"name":"{marked}"}},{{"name":"a__x_y"}}],"x":1.50}}"#));
        assert_eq!(other, format!(r#"{{"tools":[{{"name":"a__x_y"}},{{"name":"{marked}"}}],"x":1.50}}"#));
    }

    #[test]
    fn allow_and_deny() {
        let mut plan = plan(Prefix::Never, &["a"]);
        plan.servers[0].allow = vec!["read*".into()];
        plan.servers[0].deny = vec!["*secret".into()];
        let offers = [offer(Kind::Tools, &[r#"{"name":"read"}"#, r#"{"name":"read_secret"}"#, r#"{"name":"write"}"#])];
        let (catalogue, _) = Catalogue::build(&plan, &offers);
        let section = catalogue.section(Kind::Tools);
        assert!(section.route("read").is_some() && section.route("read_secret").is_none() && section.len() == 1);
    }

    #[test]
    fn pages_hold_everything_once() {
        let items: Vec<_> = (0..2500).map(|number| format!("{{\"name\":\"t{number}\"}}")).collect();
        let items: Vec<_> = items.iter().map(String::as_str).collect();
        let (catalogue, _) = Catalogue::build(&plan(Prefix::Never, &["a"]), &[offer(Kind::Tools, &items)]);
        let mut cursor: Option<String> = None;
        let mut seen = 0;
        loop {
            let page = catalogue.section(Kind::Tools).page(Kind::Tools, cursor.as_deref()).unwrap();
            let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
            for tool in page["tools"].as_array().unwrap() {
                assert_eq!(tool["name"], format!("t{seen}"));
                seen += 1;
            }
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(seen, 2500);
        for bad in ["", "at-", "at-99999", "x"] {
            assert!(catalogue.section(Kind::Tools).page(Kind::Tools, Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn templates_claim_their_uris() {
        for (template, uri, expected) in [
            ("peer://item/{id}", "peer://item/7", true),
            ("peer://item/{id}", "peer://items/7", false),
            ("db://{table}/row/{id}", "db://users/row/1", true),
            ("db://{table}/row/{id}", "db://users/1", false),
            ("plain://x", "plain://x", false),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
        // A template may also be called `uri`.
        let offers = [offer(Kind::Templates, &[r#"{"uri":"db://users/{userId}","name":"User"}"#])];
        let (catalogue, hidden) = Catalogue::build(&plan(Prefix::Always, &["a"]), &offers);
        assert_eq!((catalogue.resource("db://users/1"), hidden.len()), (Some(0), 0));
    }
}
