//! The MCP server behind the provider: tools that succeed, complain, fail or hang, and write down that they ran.

use super::mistake::Mistake;
use super::rules;
use super::world::{Shared, World};
use bytes::Bytes;
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use std::sync::Arc;
use std::time::Duration;

/// `free` costs nothing, `paid` does, `again` may be called once more after a crash, of `taste` some calls are free.
pub(super) const NAMES: [&str; 4] = ["free", "paid", "again", "taste"];

/// In satoshis.
pub(super) const PRICE: u64 = 10;

/// Calls of `taste` that each customer has for nothing.
pub(super) const TASTES: u32 = 1;

/// How a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Succeeds,
    /// The tool says itself that it failed.
    Complains,
    Fails,
    Hangs,
}

pub(super) struct Tools(pub(super) Arc<Shared>);

/// One call that runs; however it ends, it does.
struct Place(Arc<Shared>, usize);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.left(self.1);
    }
}

impl World {
    /// Says how the call will go, and how long it takes; `None` if the process ends here.
    fn called(&mut self, job: usize) -> Option<(Course, u64)> {
        if self.crashes() {
            return None;
        }
        rules::started(self, job);
        self.running += 1;
        self.most_running = self.most_running.max(self.running);
        let Some(one) = self.jobs.get_mut(job) else { return Some((Course::Fails, 0)) };
        one.is_running = true;
        let (course, takes) = (one.course, one.takes);
        (!self.crashes()).then_some((course, takes))
    }

    fn finished(&mut self, job: usize, course: Course) -> bool {
        if self.crashes() {
            return false;
        }
        let word = match course {
            Course::Succeeds => "succeeds",
            Course::Complains => "complains",
            Course::Fails | Course::Hangs => "fails",
        };
        self.trace.add(self.now, "the tool", Some(job), word);
        if course == Course::Succeeds && self.mistake == Some(Mistake::SettlesEarly) {
            self.settle_early(job);
        }
        !self.crashes()
    }

    pub(super) fn left_place(&mut self, job: usize) {
        if let Some(job) = self.jobs.get_mut(job)
            && std::mem::take(&mut job.is_running)
        {
            self.running -= 1;
        }
    }
}

impl Service for Tools {
    fn info(&self) -> Bytes {
        Bytes::from_static(b"{\"name\":\"simulated\",\"version\":\"0\"}")
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description { capabilities: b"{}".to_vec(), info: self.info(), instructions: None, more: Vec::new() }
    }

    async fn request(&self, call: &Call) -> Answer {
        match call.method() {
            "tools/list" => {
                let tools = NAMES.map(|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#));
                Answer::Result(format!("{{\"tools\":[{}]}}", tools.join(",")).into_bytes())
            }
            "tools/call" => {
                let arguments = json::get(call.params(), "arguments").unwrap_or_default();
                let number = json::get(arguments, "job").and_then(|job| std::str::from_utf8(job).ok()?.parse().ok());
                let job: usize = number.expect("customers write it");
                let called = self.0.enter().called(job);
                let Some((course, takes)) = called else { return std::future::pending().await };
                let _place = Place(self.0.clone(), job);
                let takes = if course == Course::Hangs { 3_600_000 } else { takes };
                tokio::time::sleep(Duration::from_millis(takes)).await;
                if !self.0.enter().finished(job, course) {
                    return std::future::pending().await;
                }
                let is_error = course == Course::Complains;
                match course {
                    Course::Succeeds | Course::Complains => {
                        let text = format!(r#"{{"content":[{{"type":"text","text":"{job}"}}],"isError":{is_error}}}"#);
                        Answer::Result(text.into_bytes())
                    }
                    Course::Fails | Course::Hangs => Answer::Error(Error::new(Kind::Internal, "it broke")),
                }
            }
            method => Answer::Error(Error::not_offered(method)),
        }
    }
}
