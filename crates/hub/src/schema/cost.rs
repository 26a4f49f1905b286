//! What a schema can cost, seen before it runs.
//!
//! References make a graph of a schema. Written out it becomes a tree, which is what a check walks over, and which a
//! few doubled references make larger than any machine. Its size is counted without writing it out: each subschema once,
//! and where one leads back to itself through a part of the value, such as a tree of folders, the value ends it.

use super::keywords::{Id, Node};
use super::{MAX_STEPS, Refused};

/// Schemas applied one after the other to the same value, or one inside of the other.
const MAX_CHAIN: usize = 256;

pub(super) fn too_many_steps() -> Refused {
    Refused::because(format!("the schema needs more than {MAX_STEPS} steps"))
}

/// Refuses what is endless or too large; tells which subschemas contain themselves.
pub(super) fn check(nodes: &[Node]) -> Result<Vec<bool>, Refused> {
    let mut search = Search { nodes, states: vec![State::New; nodes.len()], is_recursive: vec![false; nodes.len()] };
    for id in 0..nodes.len() {
        search.loops(id, 0)?;
    }
    search.states.fill(State::New);
    if search.steps(0, 0)? > MAX_STEPS {
        return Err(too_many_steps());
    }
    Ok(search.is_recursive)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done(u32),
}

struct Search<'a> {
    nodes: &'a [Node],
    states: Vec<State>,
    is_recursive: Vec<bool>,
}

impl Search<'_> {
    /// Looks for a subschema that is applied to the same value again and again.
    fn loops(&mut self, id: Id, depth: usize) -> Result<(), Refused> {
        match self.states[id] {
            State::Done(_) => return Ok(()),
            State::Open => return Err(Refused::because("a `$ref` leads back to itself without an end")),
            State::New => {}
        }
        deep(depth)?;
        self.states[id] = State::Open;
        if let Node::Keywords(keywords) = &self.nodes[id] {
            for other in keywords.beside() {
                self.loops(other, depth + 1)?;
            }
        }
        self.states[id] = State::Done(0);
        Ok(())
    }

    /// The size of the tree that a subschema stands for. What leads back counts as one.
    fn steps(&mut self, id: Id, depth: usize) -> Result<u32, Refused> {
        match self.states[id] {
            State::Done(steps) => return Ok(steps),
            State::Open => {
                self.is_recursive[id] = true;
                return Ok(1);
            }
            State::New => {}
        }
        deep(depth)?;
        self.states[id] = State::Open;
        let mut steps = 1_u32;
        if let Node::Keywords(keywords) = &self.nodes[id] {
            for other in keywords.beside().chain(keywords.below()) {
                steps = steps.saturating_add(self.steps(other, depth + 1)?);
            }
        }
        self.states[id] = State::Done(steps);
        Ok(steps)
    }
}

fn deep(depth: usize) -> Result<(), Refused> {
    if depth < MAX_CHAIN {
        return Ok(());
    }
    Err(Refused::because(format!("the references of the schema are chained longer than {MAX_CHAIN}")))
}
