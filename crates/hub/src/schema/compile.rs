//! From the text of a schema to a [`Program`], or the reason why not.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use jsonschema::{Draft, Validator};
use serde_json::Value;

use super::cost;
use super::document::{Document, Place};
use super::keywords::{Bounds, Condition, Contains, Id, Keywords, Leaf, Node, TYPES, Types};
use super::message::shortened;
use super::{MAX_DEPTH, MAX_STEPS, MAX_TEXT, Refused};

/// A schema as numbered subschemas; the first is the whole.
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    /// Subschemas that contain themselves, whose results are worth remembering.
    pub(super) is_recursive: Vec<bool>,
    /// Whether some subschema asks what the others have seen.
    pub(super) is_tracking: bool,
    pub(super) draft: Draft,
}

pub(super) fn compile(text: &[u8]) -> Result<Program, Refused> {
    if text.len() > MAX_TEXT {
        return Err(Refused::because(format!("the schema is longer than {} KiB", MAX_TEXT / 1024)));
    }
    let text = if text.trim_ascii().is_empty() { b"true" } else { text.trim_ascii() };
    if depth(text) > MAX_DEPTH {
        return Err(Refused::because(format!("the schema is nested deeper than {MAX_DEPTH} levels")));
    }
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| Refused::because(format!("the schema is not JSON: {}", shortened(&error.to_string()))))?;
    if !value.is_object() && !value.is_boolean() {
        return Err(Refused::because("the schema is neither an object nor a boolean"));
    }
    let draft = Draft::default().detect(&value);
    check_form(draft, &value)?;
    let mut compiler = Compiler {
        document: Document::new(text, draft.id_keyword()),
        draft,
        numbers: HashMap::new(),
        waiting: Vec::new(),
        nodes: Vec::new(),
        patterns: HashMap::new(),
    };
    compiler.number(compiler.document.root())?;
    while let Some((id, place)) = compiler.waiting.pop() {
        compiler.nodes[id] = compiler.node(&place)?;
    }
    let nodes = compiler.nodes;
    let is_recursive = cost::check(&nodes)?;
    let is_tracking = nodes.iter().any(|node| matches!(node, Node::Keywords(keywords) if keywords.is_tracking()));
    Ok(Program { nodes, is_recursive, is_tracking, draft })
}

/// How deep brackets are nested, before any recursive reader sees the text.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Checks the schema against the meta-schema of its draft.
fn check_form(draft: Draft, value: &Value) -> Result<(), Refused> {
    let form = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validate(value),
        Draft::Draft6 => jsonschema::draft6::meta::validate(value),
        Draft::Draft7 => jsonschema::draft7::meta::validate(value),
        Draft::Draft201909 => jsonschema::draft201909::meta::validate(value),
        Draft::Draft202012 => jsonschema::draft202012::meta::validate(value),
        _ => return Err(Refused::because("`$schema` names no draft from 4 to 2020-12")),
    };
    form.map_err(|error| {
        let place = error.instance_path().as_str();
        let place = if place.is_empty() { "its top".to_owned() } else { format!("`{}`", shortened(place)) };
        Refused::because(format!("the schema is not valid at {place}"))
    })
}

pub(super) struct Compiler<'a> {
    document: Document<'a>,
    pub(super) draft: Draft,
    numbers: HashMap<Place, Id>,
    waiting: Vec<(Id, Place)>,
    nodes: Vec<Node>,
    /// Compiled patterns with the steps that each byte costs.
    pub(super) patterns: HashMap<String, (Validator, u32)>,
}

/// The members of a subschema, by keyword.
pub(super) type Members = HashMap<String, Range<usize>>;

impl Compiler<'_> {
    /// The number of the subschema at `place`, which will be compiled once.
    fn number(&mut self, place: Place) -> Result<Id, Refused> {
        match self.numbers.entry(place) {
            Entry::Occupied(entry) => Ok(*entry.get()),
            Entry::Vacant(_) if self.nodes.len() >= MAX_STEPS as usize => Err(cost::too_many_steps()),
            Entry::Vacant(entry) => {
                let id = self.nodes.len();
                self.nodes.push(Node::Anything);
                self.waiting.push((id, entry.key().clone()));
                entry.insert(id);
                Ok(id)
            }
        }
    }

    fn node(&mut self, place: &Place) -> Result<Node, Refused> {
        let Some(list) = self.document.members(&place.range) else {
            return match self.value(&place.range)? {
                Value::Bool(true) => Ok(Node::Anything),
                Value::Bool(false) => Ok(Node::Nothing),
                _ => Err(Refused::because("a subschema is neither an object nor a boolean")),
            };
        };
        let mut members = Members::with_capacity(list.len());
        for (name, range) in list {
            if members.contains_key(name.as_ref()) {
                return Err(Refused::because(format!("the key `{}` appears twice in the schema", shortened(&name))));
            }
            members.insert(name.into_owned(), range);
        }
        let mut keywords = Keywords::default();
        let mut place = place.clone();
        if self.draft <= Draft::Draft7 && members.contains_key("$ref") {
            // Up to draft 7, what stands beside a reference has no meaning.
            members.retain(|name, _| name == "$ref");
        } else if self.document.is_resource(&place.range) {
            place.resource = place.range.clone();
        }
        self.references(&members, &place, &mut keywords)?;
        self.assertions(&members, &mut keywords)?;
        self.combinations(&members, &place, &mut keywords)?;
        self.objects(&members, &place, &mut keywords)?;
        self.arrays(&members, &place, &mut keywords)?;
        Ok(Node::Keywords(Box::new(keywords)))
    }

    fn references(&mut self, members: &Members, place: &Place, keywords: &mut Keywords) -> Result<(), Refused> {
        let dynamic = match self.draft {
            Draft::Draft201909 => Some("$recursiveRef"),
            Draft::Draft202012 => Some("$dynamicRef"),
            _ => None,
        };
        for name in [Some("$ref"), dynamic].into_iter().flatten() {
            let Some(reference) = self.text(members, name)? else { continue };
            // With a single resource a dynamic reference has nowhere else to lead than a plain one.
            if name != "$ref" && !self.document.is_root(place) {
                return Err(Refused::because(format!("`{name}` within a schema that has its own `$id`")));
            }
            let target = self.document.resolve(&reference, place)?;
            keywords.reference.push(self.number(target)?);
        }
        Ok(())
    }

    fn assertions(&mut self, members: &Members, keywords: &mut Keywords) -> Result<(), Refused> {
        keywords.types = match members.get("type").map(|range| self.value(range)).transpose()? {
            None => None,
            Some(Value::String(name)) => Some(types(std::slice::from_ref(&Value::String(name)))?),
            Some(Value::Array(names)) => Some(types(&names)?),
            Some(_) => return Err(malformed("type")),
        };
        if let Some(range) = members.get("required") {
            keywords.required = self.names(range).ok_or_else(|| malformed("required"))?;
        }
        keywords.length = self.bounds(members, "minLength", "maxLength")?;
        keywords.item_count = self.bounds(members, "minItems", "maxItems")?;
        keywords.member_count = self.bounds(members, "minProperties", "maxProperties")?;
        if let Some(range) = members.get("uniqueItems") {
            keywords.is_unique = self.value(range)? == Value::Bool(true);
        }
        keywords.leaf = self.leaf(members)?;
        Ok(())
    }

    fn combinations(&mut self, members: &Members, place: &Place, keywords: &mut Keywords) -> Result<(), Refused> {
        keywords.all_of = self.list(members, "allOf", place)?;
        keywords.any_of = self.list(members, "anyOf", place)?;
        keywords.one_of = self.list(members, "oneOf", place)?;
        keywords.not = self.single(members, "not", place)?;
        if self.draft >= Draft::Draft7
            && let Some(condition) = self.single(members, "if", place)?
        {
            let then = self.single(members, "then", place)?;
            let otherwise = self.single(members, "else", place)?;
            keywords.condition = Some(Condition { condition, then, otherwise });
        }
        Ok(())
    }

    fn objects(&mut self, members: &Members, place: &Place, keywords: &mut Keywords) -> Result<(), Refused> {
        keywords.properties = self.named(members, "properties", place)?;
        keywords.known = keywords.properties.iter().cloned().collect();
        for (pattern, id) in self.named(members, "patternProperties", place)? {
            let (validator, per_byte) = self.pattern(&pattern)?;
            keywords.patterns.push((Leaf { validator, values: 0, per_byte }, id));
        }
        keywords.additional_properties = self.single(members, "additionalProperties", place)?;
        if self.draft >= Draft::Draft6 {
            keywords.property_names = self.single(members, "propertyNames", place)?;
        }
        if self.draft >= Draft::Draft201909 {
            keywords.dependent = self.named(members, "dependentSchemas", place)?;
            keywords.unevaluated_properties = self.single(members, "unevaluatedProperties", place)?;
        }
        let dependencies = ["dependencies", "dependentRequired"];
        let count = if self.draft >= Draft::Draft201909 { 2 } else { 1 };
        for keyword in &dependencies[..count] {
            let Some(range) = members.get(*keyword) else { continue };
            for (name, range) in self.document.members(range).ok_or_else(|| malformed(keyword))? {
                match self.names(&range) {
                    Some(names) => keywords.dependent_required.push((name.into_owned(), names)),
                    None => {
                        let id = self.number(part(&range, place))?;
                        keywords.dependent.push((name.into_owned(), id));
                    }
                }
            }
        }
        Ok(())
    }

    fn arrays(&mut self, members: &Members, place: &Place, keywords: &mut Keywords) -> Result<(), Refused> {
        let has_list = members.get("items").is_some_and(|range| self.document.elements(range).is_some());
        if self.draft >= Draft::Draft202012 {
            keywords.prefix_items = self.list(members, "prefixItems", place)?;
            keywords.items = self.single(members, "items", place)?;
        } else if has_list {
            keywords.prefix_items = self.list(members, "items", place)?;
            keywords.items = self.single(members, "additionalItems", place)?;
        } else {
            keywords.items = self.single(members, "items", place)?;
        }
        if self.draft >= Draft::Draft6
            && let Some(item) = self.single(members, "contains", place)?
        {
            let mut count = Bounds { least: 1, most: u64::MAX };
            if self.draft >= Draft::Draft201909 {
                let given = self.bounds(members, "minContains", "maxContains")?;
                count.most = given.most;
                count.least = if members.contains_key("minContains") { given.least } else { 1 };
            }
            keywords.contains = Some(Contains { item, count });
        }
        if self.draft >= Draft::Draft201909 {
            keywords.unevaluated_items = self.single(members, "unevaluatedItems", place)?;
        }
        Ok(())
    }

    fn single(&mut self, members: &Members, keyword: &str, place: &Place) -> Result<Option<Id>, Refused> {
        members.get(keyword).map(|range| self.number(part(range, place))).transpose()
    }

    fn list(&mut self, members: &Members, keyword: &str, place: &Place) -> Result<Vec<Id>, Refused> {
        let Some(range) = members.get(keyword) else { return Ok(Vec::new()) };
        let elements = self.document.elements(range).ok_or_else(|| malformed(keyword))?;
        elements.iter().map(|element| self.number(part(element, place))).collect()
    }

    fn named(&mut self, members: &Members, keyword: &str, place: &Place) -> Result<Vec<(String, Id)>, Refused> {
        let Some(range) = members.get(keyword) else { return Ok(Vec::new()) };
        let list = self.document.members(range).ok_or_else(|| malformed(keyword))?;
        list.into_iter().map(|(name, range)| Ok((name.into_owned(), self.number(part(&range, place))?))).collect()
    }

    fn bounds(&self, members: &Members, least: &str, most: &str) -> Result<Bounds, Refused> {
        let limit = |keyword: &str| {
            let Some(range) = members.get(keyword) else { return Ok(None) };
            let value = self.value(range)?;
            // `2.0` is an integer, too, and what is larger than any count is as good as the largest.
            let limit = value.as_u64().or_else(|| value.as_f64().map(|limit| limit as u64));
            limit.map(Some).ok_or_else(|| malformed(keyword))
        };
        Ok(Bounds { least: limit(least)?.unwrap_or(0), most: limit(most)?.unwrap_or(u64::MAX) })
    }

    fn text(&self, members: &Members, keyword: &str) -> Result<Option<String>, Refused> {
        match members.get(keyword).map(|range| self.value(range)).transpose()? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(malformed(keyword)),
        }
    }

    fn names(&self, range: &Range<usize>) -> Option<Vec<String>> {
        serde_json::from_slice(self.document.raw(range)).ok()
    }

    pub(super) fn value(&self, range: &Range<usize>) -> Result<Value, Refused> {
        serde_json::from_slice(self.document.raw(range)).map_err(|_| Refused::because("the schema is not JSON"))
    }
}

fn part(range: &Range<usize>, place: &Place) -> Place {
    Place { range: range.clone(), resource: place.resource.clone() }
}

/// References may lead to places that the meta-schema does not look at.
fn malformed(keyword: &str) -> Refused {
    Refused::because(format!("`{keyword}` in the schema has the wrong form"))
}

fn types(names: &[Value]) -> Result<Types, Refused> {
    let bit = |name: &Value| TYPES.iter().position(|known| name == known).ok_or_else(|| malformed("type"));
    names.iter().try_fold(Types(0), |Types(set), name| Ok(Types(set | 1 << bit(name)?)))
}
