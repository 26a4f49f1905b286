//! Checks one value: walks over schema and value together and counts its steps.
//!
//! The order is fixed, so that the same value always has the same first misfit: its type, what is missing, the value
//! itself, its parts in the order of the schema, then the alternatives.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::compile::Program;
use super::keywords::{Bounds, Id, Keywords, Leaf, Node};
use super::leaf::count;
use super::message::{self, Path};
use super::unique::write_canonical;
use super::{MAX_CHECK_STEPS, Misfit};

/// Schemas that are being applied at the same time, one inside of the other. Keeps the stack small.
const MAX_DEPTH: u32 = 400;

pub(super) fn check(program: &Program, value: &Value) -> Result<(), Misfit> {
    let mut walk = Walk { program, steps: MAX_CHECK_STEPS, depth: 0, is_quiet: false, known: HashMap::new() };
    match walk.visit(0, value, &Path::Root) {
        Ok(_) => Ok(()),
        Err(Stop::Misfit(misfit)) => Err(*misfit),
        Err(Stop::Quiet) => Err(Path::Root.misfit("does not fit")),
        Err(Stop::GaveUp(reason)) => Err(Path::Root.misfit(reason)),
    }
}

/// Why a visit does not go on. Boxed, because it is rare and the good way is taken often.
pub(super) enum Stop {
    Misfit(Box<Misfit>),
    /// A misfit whose words nobody will read.
    Quiet,
    GaveUp(&'static str),
}

/// Which parts of a value some keyword has looked at, for the `unevaluated` ones.
#[derive(Default)]
pub(super) struct Seen<'v> {
    fields: HashSet<&'v str>,
    items: HashSet<usize>,
}

impl Seen<'_> {
    pub(super) fn add(&mut self, other: Self) {
        self.fields.extend(other.fields);
        self.items.extend(other.items);
    }
}

pub(super) struct Walk<'s> {
    pub(super) program: &'s Program,
    /// Steps that are left.
    steps: u32,
    depth: u32,
    /// Whether only the verdict matters, as for all but the last alternative.
    pub(super) is_quiet: bool,
    /// Whether objects and arrays fit schemas that contain themselves. Two alternatives that lead to the same part
    /// would otherwise double the work with every level.
    known: HashMap<(Id, usize), bool>,
}

impl<'s> Walk<'s> {
    fn take(&mut self, steps: usize) -> Result<(), Stop> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.steps = self.steps.checked_sub(steps).ok_or(Stop::GaveUp("takes too many steps to check"))?;
        Ok(())
    }

    pub(super) fn misfit(&self, at: &Path<'_>, rest: impl FnOnce() -> String) -> Stop {
        if self.is_quiet { Stop::Quiet } else { Stop::Misfit(Box::new(at.misfit(&rest()))) }
    }

    fn field(&self, at: &Path<'_>, name: &str, rest: &str) -> Stop {
        if self.is_quiet { Stop::Quiet } else { Stop::Misfit(Box::new(at.field(name, rest))) }
    }

    pub(super) fn visit<'v>(&mut self, id: Id, value: &'v Value, at: &Path<'_>) -> Result<Seen<'v>, Stop> {
        self.take(1)?;
        let keywords = match &self.program.nodes[id] {
            Node::Anything => return Ok(Seen::default()),
            Node::Nothing => return Err(self.misfit(at, || "is not allowed".to_owned())),
            Node::Keywords(keywords) => keywords,
        };
        let is_container = value.is_object() || value.is_array();
        let is_kept = is_container && self.program.is_recursive[id] && !self.program.is_tracking;
        let key = (id, std::ptr::from_ref(value) as usize);
        match self.known.get(&key) {
            Some(true) if is_kept => return Ok(Seen::default()),
            Some(false) if is_kept && self.is_quiet => return Err(Stop::Quiet),
            _ => {}
        }
        if self.depth == MAX_DEPTH {
            return Err(Stop::GaveUp("is nested too deeply to check"));
        }
        self.depth += 1;
        let result = self.keywords(keywords, value, at);
        self.depth -= 1;
        if is_kept && !matches!(result, Err(Stop::GaveUp(_))) {
            self.known.insert(key, result.is_ok());
        }
        result
    }

    /// A visit whose misfit does not decide yet; `None` if it is one.
    pub(super) fn attempt<'v>(&mut self, id: Id, value: &'v Value, at: &Path<'_>) -> Result<Option<Seen<'v>>, Stop> {
        let was_quiet = std::mem::replace(&mut self.is_quiet, true);
        let result = self.visit(id, value, at);
        self.is_quiet = was_quiet;
        match result {
            Ok(seen) => Ok(Some(seen)),
            Err(Stop::GaveUp(reason)) => Err(Stop::GaveUp(reason)),
            Err(_) => Ok(None),
        }
    }

    fn keywords<'v>(&mut self, keywords: &'s Keywords, value: &'v Value, at: &Path<'_>) -> Result<Seen<'v>, Stop> {
        let mut seen = Seen::default();
        self.alone(keywords, value, at)?;
        for id in keywords.reference.iter().chain(&keywords.all_of) {
            seen.add(self.visit(*id, value, at)?);
        }
        match value {
            Value::Object(members) => self.object(keywords, value, members, at, &mut seen)?,
            Value::Array(items) => self.array(keywords, items, at, &mut seen)?,
            _ => {}
        }
        self.alternatives(keywords, value, at, &mut seen)?;
        if let Some(condition) = &keywords.condition {
            self.condition(condition, value, at, &mut seen)?;
        }
        self.unseen(keywords, value, at, &mut seen)?;
        Ok(seen)
    }

    /// What concerns the value without its parts.
    fn alone(&mut self, keywords: &'s Keywords, value: &Value, at: &Path<'_>) -> Result<(), Stop> {
        if let Some(types) = keywords.types
            && !types.include(value, self.program.draft)
        {
            return Err(self.misfit(at, || message::types(types)));
        }
        if let Value::Object(members) = value {
            self.required(keywords, members, at)?;
        }
        if let Some(leaf) = &keywords.leaf {
            self.leaf(leaf, value, at)?;
        }
        let (found, bounds, things) = match value {
            Value::Object(members) => (members.len(), keywords.member_count, ["field", "fields"]),
            Value::Array(items) => (items.len(), keywords.item_count, ["item", "items"]),
            Value::String(text) => {
                let is_counted = keywords.length != Bounds::default();
                let length = if is_counted { text.chars().count() } else { 0 };
                (length, keywords.length, ["character", "characters"])
            }
            _ => return Ok(()),
        };
        match message::count(found as u64, bounds.least, bounds.most, things) {
            Some(rest) => Err(self.misfit(at, || rest)),
            None => Ok(()),
        }
    }

    fn required(&mut self, keywords: &Keywords, members: &Map<String, Value>, at: &Path<'_>) -> Result<(), Stop> {
        self.take((keywords.required.len() + keywords.dependent_required.len()) / 8)?;
        if let Some(name) = keywords.required.iter().find(|name| !members.contains_key(*name)) {
            return Err(self.field(at, name, "is missing"));
        }
        for (present, names) in &keywords.dependent_required {
            self.take(names.len() / 8)?;
            let missing = names.iter().find(|name| members.contains_key(present) && !members.contains_key(*name));
            if let Some(name) = missing {
                let rest = format!("is missing, which `{}` needs", message::shortened(present));
                return Err(self.field(at, name, &rest));
            }
        }
        Ok(())
    }

    fn matches(&mut self, pattern: &Leaf, name: &str) -> Result<bool, Stop> {
        self.take(1 + pattern.per_byte as usize * name.len())?;
        Ok(pattern.validator.is_valid(&Value::String(name.to_owned())))
    }

    fn leaf(&mut self, leaf: &Leaf, value: &Value, at: &Path<'_>) -> Result<(), Stop> {
        let length = value.as_str().map_or(0, str::len);
        self.take(leaf.values as usize / 4 + leaf.per_byte as usize * length)?;
        if self.is_quiet {
            return if leaf.validator.is_valid(value) { Ok(()) } else { Err(Stop::Quiet) };
        }
        leaf.validator.validate(value).map_err(|error| self.misfit(at, || message::leaf(error.kind())))
    }

    fn object<'v>(
        &mut self,
        keywords: &'s Keywords,
        value: &'v Value,
        members: &'v Map<String, Value>,
        at: &Path<'_>,
        seen: &mut Seen<'v>,
    ) -> Result<(), Stop> {
        for (name, id) in &keywords.dependent {
            if members.contains_key(name) {
                seen.add(self.visit(*id, value, at)?);
            }
        }
        self.take(keywords.properties.len() / 8)?;
        for (name, id) in &keywords.properties {
            if let Some((name, part)) = members.get_key_value(name) {
                self.visit(*id, part, &Path::Field(at, name))?;
                self.note(seen, name);
            }
        }
        if let Some(id) = keywords.property_names {
            for name in members.keys() {
                if self.attempt(id, &Value::String(name.clone()), &Path::Root)?.is_none() {
                    return Err(self.field(at, name, "is not a name that fields may have here"));
                }
            }
        }
        if keywords.patterns.is_empty() && keywords.additional_properties.is_none() {
            return Ok(());
        }
        for (name, part) in members {
            self.take(1)?;
            let path = Path::Field(at, name);
            let mut is_known = keywords.known.contains_key(name);
            for (pattern, id) in &keywords.patterns {
                if self.matches(pattern, name)? {
                    is_known = true;
                    self.visit(*id, part, &path)?;
                    self.note(seen, name);
                }
            }
            if let (false, Some(id)) = (is_known, keywords.additional_properties) {
                if matches!(self.program.nodes[id], Node::Nothing) {
                    return Err(self.misfit(&path, || "is not a known field".to_owned()));
                }
                self.visit(id, part, &path)?;
                self.note(seen, name);
            }
        }
        Ok(())
    }

    fn note<'v>(&self, seen: &mut Seen<'v>, name: &'v str) {
        if self.program.is_tracking {
            seen.fields.insert(name);
        }
    }

    fn array<'v>(
        &mut self,
        keywords: &'s Keywords,
        items: &'v [Value],
        at: &Path<'_>,
        seen: &mut Seen<'v>,
    ) -> Result<(), Stop> {
        let rest = std::iter::repeat(keywords.items);
        let schemas = keywords.prefix_items.iter().copied().map(Some).chain(rest);
        for ((index, item), id) in items.iter().enumerate().zip(schemas) {
            let Some(id) = id else { break };
            self.visit(id, item, &Path::Item(at, index))?;
            if self.program.is_tracking {
                seen.items.insert(index);
            }
        }
        if let Some(contains) = &keywords.contains {
            let mut found = 0;
            for (index, item) in items.iter().enumerate() {
                if self.attempt(contains.item, item, &Path::Item(at, index))?.is_some() {
                    found += 1;
                    if self.program.is_tracking {
                        seen.items.insert(index);
                    }
                }
            }
            let (least, most) = (contains.count.least, contains.count.most);
            if let Some(rest) = message::count(found, least, most, ["item of its kind", "items of their kind"]) {
                return Err(self.misfit(at, || rest));
            }
        }
        if keywords.is_unique {
            let mut texts = HashSet::new();
            for (index, item) in items.iter().enumerate() {
                // Writing and hashing a value costs as much as some steps.
                self.take(4 * count(item) as usize)?;
                let mut text = String::new();
                write_canonical(&mut text, item);
                self.take(text.len() / 16)?;
                if !texts.insert(text) {
                    return Err(self.misfit(&Path::Item(at, index), || "appears twice".to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Parts that no other keyword has looked at.
    fn unseen<'v>(
        &mut self,
        keywords: &'s Keywords,
        value: &'v Value,
        at: &Path<'_>,
        seen: &mut Seen<'v>,
    ) -> Result<(), Stop> {
        if let (Value::Object(members), Some(id)) = (value, keywords.unevaluated_properties) {
            for (name, part) in members {
                self.take(1)?;
                if seen.fields.insert(name) {
                    let path = Path::Field(at, name);
                    if matches!(self.program.nodes[id], Node::Nothing) {
                        return Err(self.misfit(&path, || "is not a known field".to_owned()));
                    }
                    self.visit(id, part, &path)?;
                }
            }
        }
        if let (Value::Array(items), Some(id)) = (value, keywords.unevaluated_items) {
            for (index, item) in items.iter().enumerate() {
                self.take(1)?;
                if seen.items.insert(index) {
                    self.visit(id, item, &Path::Item(at, index))?;
                }
            }
        }
        Ok(())
    }
}
