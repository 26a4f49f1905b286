//! The writer. Whatever waits when it begins goes to the database in one statement, which is one transaction and one round trip.
//!
//! Batches are numbered. If the connection breaks before the answer is here, nobody knows whether the batch counts; it is then
//! sent again with its number, and the database either takes it now or says what it answered the first time.

use super::json::{given, outcome, signed};
use super::link::Link;
use super::{Name, read};
use crate::job::{Id, Job, Outcome, Step};
use crate::ledger::{Error, Horizon};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::Type;

/// Steps in one transaction.
const MAX_STEPS: usize = 4096;

/// Jobs that are forgotten at once.
const PURGED: i32 = 500;

pub(super) type Answer<T> = oneshot::Sender<Result<T, Error>>;

/// What the writer is asked for.
pub(super) enum Task {
    Commit { steps: Vec<Step>, answer: Answer<Vec<Outcome>> },
    Sent { ids: Vec<Id>, answer: Answer<()> },
    TakeOver { unsent: u64, answer: Answer<Vec<Job>> },
    Purge { horizon: Horizon, answer: Answer<bool> },
}

pub(super) struct Writer {
    pub(super) link: Link,
    pub(super) worker: Name,
    pub(super) lease: Duration,
    /// That of the last batch.
    pub(super) number: i64,
}

#[derive(Default)]
struct Batch {
    commits: Vec<(Vec<Step>, Answer<Vec<Outcome>>)>,
    sent: Vec<(Vec<Id>, Answer<()>)>,
}

impl Writer {
    /// Works until nobody can ask any more.
    pub(super) async fn run(mut self, mut tasks: mpsc::Receiver<Task>) {
        while let Some(first) = tasks.recv().await {
            let mut batch = Batch::default();
            let mut later = Vec::new();
            let mut steps = 0;
            let mut next = Some(first);
            while let Some(task) = next {
                match task {
                    Task::Commit { steps: given, answer } => {
                        steps += given.len();
                        batch.commits.push((given, answer));
                    }
                    Task::Sent { ids, answer } => {
                        steps += ids.len();
                        batch.sent.push((ids, answer));
                    }
                    other => later.push(other),
                }
                next = if steps < MAX_STEPS { tasks.try_recv().ok() } else { None };
            }
            self.write(batch).await;
            for task in later {
                match task {
                    Task::TakeOver { unsent, answer } => drop(answer.send(self.take_over(unsent).await)),
                    Task::Purge { horizon, answer } => drop(answer.send(self.purge(horizon).await)),
                    Task::Commit { .. } | Task::Sent { .. } => {}
                }
            }
        }
        self.leave().await;
    }

    async fn write(&mut self, batch: Batch) {
        let steps: Vec<&Step> = batch.commits.iter().flat_map(|(steps, _)| steps).collect();
        let ids: Vec<&Id> = batch.sent.iter().flat_map(|(ids, _)| ids).collect();
        if steps.is_empty() && ids.is_empty() {
            batch.commits.into_iter().for_each(|(_, answer)| drop(answer.send(Ok(Vec::new()))));
            batch.sent.into_iter().for_each(|(_, answer)| drop(answer.send(Ok(()))));
            return;
        }
        let taken = self.take(&steps, &ids).await;
        if let Err(Error::Unreachable(_)) = taken {
            // Whether it counts, nobody knows.
            self.worker.change();
            self.number = 0;
        }
        match taken {
            Ok(outcomes) => {
                let mut outcomes = outcomes.into_iter();
                for (steps, answer) in batch.commits {
                    drop(answer.send(Ok(outcomes.by_ref().take(steps.len()).collect())));
                }
                batch.sent.into_iter().for_each(|(_, answer)| drop(answer.send(Ok(()))));
            }
            // The database has refused all of it. One of them may be to blame; the others should not suffer for it.
            Err(Error::Broken(_)) if batch.commits.len() + batch.sent.len() > 1 => {
                for (steps, answer) in batch.commits {
                    let taken = self.take(&steps.iter().collect::<Vec<_>>(), &[]).await;
                    drop(answer.send(taken));
                }
                for (ids, answer) in batch.sent {
                    let noted = self.take(&[], &ids.iter().collect::<Vec<_>>()).await;
                    drop(answer.send(noted.map(|_| ())));
                }
            }
            Err(error) => {
                batch.commits.into_iter().for_each(|(_, answer)| drop(answer.send(Err(error.clone()))));
                batch.sent.into_iter().for_each(|(_, answer)| drop(answer.send(Err(error.clone()))));
            }
        }
    }

    async fn take(&mut self, steps: &[&Step], ids: &[&Id]) -> Result<Vec<Outcome>, Error> {
        self.number += 1;
        let number = self.number;
        let durable = steps.iter().any(|step| step.durable);
        let steps_given: Vec<_> = steps.iter().map(|step| given(step)).collect();
        let text = serde_json::to_string(&steps_given).map_err(|error| Error::Broken(error.to_string()))?;
        let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_slice()).collect();
        let lease = signed(self.lease.as_millis() as u64);
        let worker = self.worker.get();
        let (text, ids) = (&text, &ids);
        let numbers: Vec<i64> = self
            .link
            .with(|client| async move {
                let sql = "SELECT take($1, $2, $3 * interval '1 millisecond', $4, $5::text::jsonb, $6)";
                let row = client
                    .query_typed_one(
                        sql,
                        &[
                            (&worker.as_slice(), Type::BYTEA),
                            (&number, Type::INT8),
                            (&lease, Type::INT8),
                            (&durable, Type::BOOL),
                            (text, Type::TEXT),
                            (ids, Type::BYTEA_ARRAY),
                        ],
                    )
                    .await?;
                row.try_get(0)
            })
            .await?;
        let outcomes: Option<Vec<Outcome>> = numbers.iter().map(|number| outcome(*number)).collect();
        outcomes
            .filter(|outcomes| outcomes.len() == steps.len())
            .ok_or_else(|| Error::Broken("the database gave an answer that has no meaning".to_owned()))
    }

    async fn take_over(&mut self, unsent: u64) -> Result<Vec<Job>, Error> {
        self.number += 1;
        let number = self.number;
        let unsent = signed(unsent);
        let lease = signed(self.lease.as_millis() as u64);
        let worker = self.worker.get();
        let rows = self.link.with(|client| async move {
            let sql = "SELECT take_left($1, $2, $3 * interval '1 millisecond', $4)";
            let owner = worker.as_slice();
            let parameters = [
                (&owner as _, Type::BYTEA),
                (&number as _, Type::INT8),
                (&lease as _, Type::INT8),
                (&unsent as _, Type::INT8),
            ];
            client.query_typed(sql, &parameters).await?;
            let sql = format!(
                "{} WHERE (stage < 7 OR (stage = 7 AND sent = 0)) AND owner = $1 AND taken = $2 ORDER BY at",
                read::JOB
            );
            client.query_typed(&sql, &[(&owner, Type::BYTEA), (&number, Type::INT8)]).await
        });
        rows.await?.iter().map(read::job).collect()
    }

    async fn purge(&self, horizon: Horizon) -> Result<bool, Error> {
        let (free, paid) = (signed(horizon.free), signed(horizon.paid));
        let purged = self.link.with(|client| async move {
            let parameters = [(&free as _, Type::INT8), (&paid as _, Type::INT8), (&PURGED as _, Type::INT4)];
            client.query_typed_one("SELECT purge($1, $2, $3)", &parameters).await?.try_get(0)
        });
        purged.await
    }

    /// Whoever goes in good order leaves its jobs to others at once.
    async fn leave(&self) {
        let worker = self.worker.get();
        let left = self.link.with(|client| async move {
            let sql = "UPDATE worker SET until = clock_timestamp() WHERE owner = $1";
            client.execute_typed(sql, &[(&worker.as_slice(), Type::BYTEA)]).await
        });
        // If it cannot be said, the lease runs out.
        drop(left.await);
    }
}
