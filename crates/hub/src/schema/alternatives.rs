//! `anyOf`, `oneOf`, `not` and `if`: where a misfit of one schema does not decide yet.

use serde_json::Value;

use super::keywords::{Condition, Id, Keywords, Node, Types};
use super::message::{self, Path};
use super::walk::{Seen, Stop, Walk};

impl<'s> Walk<'s> {
    pub(super) fn alternatives<'v>(
        &mut self,
        keywords: &'s Keywords,
        value: &'v Value,
        at: &Path<'_>,
        seen: &mut Seen<'v>,
    ) -> Result<(), Stop> {
        let mut fitting = 0_usize;
        for id in &keywords.any_of {
            if let Some(found) = self.attempt(*id, value, at)? {
                fitting += 1;
                seen.add(found);
                // One is enough, unless what the others have seen matters.
                if !self.program.is_tracking {
                    break;
                }
            }
        }
        if fitting == 0 && !keywords.any_of.is_empty() {
            return Err(self.none_fits(&keywords.any_of, value, at));
        }
        let mut fitting = 0_usize;
        for id in &keywords.one_of {
            if let Some(found) = self.attempt(*id, value, at)? {
                fitting += 1;
                seen.add(found);
                if fitting == 2 {
                    return Err(self.misfit(at, || "fits more than one of its forms".to_owned()));
                }
            }
        }
        if fitting == 0 && !keywords.one_of.is_empty() {
            return Err(self.none_fits(&keywords.one_of, value, at));
        }
        match keywords.not {
            Some(id) if self.attempt(id, value, at)?.is_some() => {
                Err(self.misfit(at, || "has a form that is not allowed".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// What to say when no alternative fits: the types if it is all about them; otherwise the misfit of the only
    /// alternative for values of this type, or else nothing in particular.
    fn none_fits(&mut self, ids: &[Id], value: &Value, at: &Path<'_>) -> Stop {
        if self.is_quiet {
            return Stop::Quiet;
        }
        let types = |id: &Id| match &self.program.nodes[*id] {
            Node::Keywords(keywords) => keywords.types,
            _ => None,
        };
        let is_meant = |id: &&Id| types(id).is_none_or(|types| types.include(value, self.program.draft));
        let mut meant = ids.iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (None, _) => {
                let all = ids.iter().filter_map(types).fold(0, |all, types| all | types.0);
                self.misfit(at, || message::types(Types(all)))
            }
            (Some(id), None) => self.again(*id, value, at),
            (Some(_), Some(_)) => self.misfit(at, || "fits none of its forms".to_owned()),
        }
    }

    /// The misfit of a visit that is known to end with one.
    fn again(&mut self, id: Id, value: &Value, at: &Path<'_>) -> Stop {
        match self.visit(id, value, at) {
            Ok(_) => self.misfit(at, || "fits none of its forms".to_owned()),
            Err(stop) => stop,
        }
    }

    pub(super) fn condition<'v>(
        &mut self,
        condition: &Condition,
        value: &'v Value,
        at: &Path<'_>,
        seen: &mut Seen<'v>,
    ) -> Result<(), Stop> {
        let next = match self.attempt(condition.condition, value, at)? {
            Some(found) => {
                seen.add(found);
                condition.then
            }
            None => condition.otherwise,
        };
        if let Some(id) = next {
            seen.add(self.visit(id, value, at)?);
        }
        Ok(())
    }
}
