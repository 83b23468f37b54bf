//! The thread of `nap top` that asks the coordinator: every second, and at once after an order. A coordinator
//! that does not answer is tried again.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::Result;
use napreduce_answers::StatusAnswer;
use napreduce_cluster::{ClientError, ClusterClient, ClusterPlace, Patience};
use napreduce_engine::{JobChange, JobId, Reason};
use napreduce_protocol::JobPhase;
use napreduce_protocol::requests::{
    ChangeJob, CommandJob, Explain, KillJob, ListJobs, ListQueues, ListWorkers,
};

use super::Event;
use super::model::{Ask, Order, Snapshot};
use crate::cluster::ClusterArguments;
use crate::explaining::explanations;
use crate::failure::in_words;
use crate::job::effect_of;
use crate::worker::is_gone;

const REFRESH: Duration = Duration::from_secs(1);
/// Limit on a try to reach the coordinator, and on its answer.
const TRY: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(5);
/// Maximum jobs; those that have not ended come first.
const JOBS_MAX: u32 = 1_000;
/// Maximum waiting jobs that are explained in one refresh, the one that was not for longest first.
const EXPLAINED_MAX: usize = 20;

pub struct Fetcher {
    place: ClusterPlace,
    client: Option<ClusterClient>,
    /// Number of refreshes.
    round: u64,
    /// Why jobs wait, and the refresh in which that was asked.
    whys: BTreeMap<JobId, (u64, Option<String>)>,
    /// The job that is explained in full.
    detail: Option<JobId>,
}

impl Fetcher {
    /// Connects like every command.
    pub fn connect(cluster: &ClusterArguments) -> Result<Fetcher> {
        // With the patience of a command, whose errors name the remedy.
        drop(cluster.connect()?);
        let place = cluster.place()?;
        let whys = BTreeMap::new();
        Ok(Fetcher {
            place,
            client: None,
            round: 0,
            whys,
            detail: None,
        })
    }

    /// Refreshes and carries out orders until the main thread has ended.
    pub fn run(mut self, asks: &Receiver<Ask>, events: &Sender<Event>) {
        loop {
            let fetched = self.fetch();
            let event = match fetched {
                Ok(snapshot) => Event::Fetched(Box::new(snapshot)),
                Err(error) => {
                    self.client = None;
                    Event::Lost(error.to_string())
                }
            };
            if events.send(event).is_err() {
                return;
            }
            match asks.recv_timeout(REFRESH) {
                Ok(Ask::Detail(job)) => self.detail = job,
                Ok(Ask::Order(job, order)) => {
                    let ordered = self.carry_out(job, order);
                    let answer = ordered.map_err(|error| in_words(&error.into()));
                    if events.send(Event::Ordered(answer)).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn client(&mut self) -> Result<&mut ClusterClient, ClientError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let patience = Patience {
                    first: TRY,
                    later: TRY,
                    absent: Duration::ZERO,
                    answer: ANSWER,
                    tell: false,
                    ..Patience::default()
                };
                ClusterClient::connect(self.place.clone(), patience)?
            }
        };
        Ok(self.client.insert(client))
    }

    fn fetch(&mut self) -> Result<Snapshot, ClientError> {
        let client = self.client()?;
        let mut workers = client.ask(ListWorkers)?;
        let jobs = client.ask(ListJobs { limit: JOBS_MAX })?;
        let queues = client.ask(ListQueues)?;
        let Ok(mut status) = StatusAnswer::of(&workers, &jobs, |_| Ok::<_, Infallible>(Vec::new()));
        // Not all ended jobs are listed.
        (
            status.jobs.succeeded,
            status.jobs.failed,
            status.jobs.killed,
        ) = (0, 0, 0);
        let waiting = jobs
            .iter()
            .filter(|job| job.phase.is_active() && job.phase != JobPhase::Running);
        self.explain(waiting.map(|job| job.job).collect())?;
        for current in &mut status.current {
            let known = current
                .job
                .job
                .parse()
                .ok()
                .and_then(|job: JobId| self.whys.get(&job));
            current.why = known.and_then(|(_, why)| why.clone());
        }
        workers.retain(|worker| !is_gone(worker));
        let detail = match self.detail {
            Some(job) => self.reasons(job)?.map(|reasons| {
                let lines = reasons.into_iter().map(|reason| reason.text).collect();
                explanations([(job.to_string(), lines)].into_iter())
            }),
            None => None,
        };
        Ok(Snapshot {
            status,
            scheduler: queues.scheduler,
            queues: queues.queues.unwrap_or_default(),
            workers,
            detail,
        })
    }

    /// Asks why some of the waiting jobs wait.
    fn explain(&mut self, waiting: Vec<JobId>) -> Result<(), ClientError> {
        self.round += 1;
        self.whys.retain(|job, _| waiting.contains(job));
        let mut oldest = waiting;
        oldest.sort_by_key(|job| self.whys.get(job).map(|(round, _)| *round));
        for job in oldest.into_iter().take(EXPLAINED_MAX) {
            let reasons = self.reasons(job)?.unwrap_or_default();
            let why = reasons
                .into_iter()
                .find(|reason| reason.code.is_why())
                .map(|reason| reason.text);
            self.whys.insert(job, (self.round, why));
        }
        Ok(())
    }

    /// Explains a job; `None` if the coordinator has forgotten it.
    fn reasons(&mut self, job: JobId) -> Result<Option<Vec<Reason>>, ClientError> {
        match self.client()?.ask(Explain { job, task: None }) {
            Ok(reasons) => Ok(Some(reasons)),
            Err(ClientError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Orders something; returns what has been done.
    fn carry_out(&mut self, job: JobId, order: Order) -> Result<String, ClientError> {
        let client = self.client()?;
        let reason = "requested in nap top".to_owned();
        match order {
            Order::Command(command) => {
                client.ask(CommandJob {
                    job,
                    command,
                    reason,
                })?;
                Ok(format!("{job} {}", effect_of(command)))
            }
            Order::Kill => {
                client.ask(KillJob {
                    job,
                    reason: "killed in nap top".to_owned(),
                })?;
                Ok(format!("{job} is being killed"))
            }
            Order::Priority(priority) => {
                let change = JobChange {
                    priority: Some(priority),
                    queue: None,
                };
                client.ask(ChangeJob {
                    job,
                    change,
                    reason,
                })?;
                Ok(format!("{job} now has priority {priority}"))
            }
        }
    }
}
