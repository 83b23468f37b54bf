//! The entries of a coordinator's journal: each is one batch of events for the engine with the data that
//! belongs to it.

use std::path::PathBuf;

use napreduce_engine::{
    AttemptId, DEFAULT_RACK, Event, JobChange, JobId, JobOutcome, JobSpec, MapSpec, Primitive,
    Report, Slots, Span, Time, WorkerId,
};
use napreduce_protocol::{
    Blob, Counter, CounterValues, FailedRecord, JobPlan, JobSummary, PartOutput, PreemptionAccount,
    RerunOf, SideFile, StorageScheme, WorkerReport, whole_micros,
};
use serde::{Deserialize, Serialize};

use crate::output::{ClaimMark, ClaimRequest, Owner};

/// A batch of events at one engine time, with the data that belongs to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub(super) at: Time,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Event>,
    /// Applied before the events, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) extra: Vec<Extra>,
}

/// Data outside the engine. From `CommitBegun` on the output of a job is committed whatever happens; a
/// `Settled` job needs no further work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Extra {
    Accepted(Box<Accepted>),
    Joined {
        worker: WorkerId,
        identity: Identity,
    },
    Lost {
        worker: WorkerId,
        reason: String,
    },
    /// A request to drain a worker, with its reason.
    DrainAsked {
        worker: WorkerId,
        reason: String,
    },
    /// A request to cancel the drain, with its reason.
    UndrainAsked {
        worker: WorkerId,
        reason: String,
    },
    /// The entry contains the worker's report of this number.
    Received {
        worker: WorkerId,
        number: u64,
    },
    /// When the process of an attempt began to work, by its worker's clock.
    StartedAt {
        attempt: AttemptId,
        at: Time,
    },
    /// When the process of an attempt that is reported in the entry had ended, by its worker's clock.
    EndedAt {
        attempt: AttemptId,
        at: Time,
    },
    /// The counters and outputs of an attempt that reports its task done.
    Finished {
        attempt: AttemptId,
        counters: CounterValues,
        part: Option<PartOutput>,
    },
    /// The record on which an attempt failed.
    FailedOn {
        attempt: AttemptId,
        record: Box<FailedRecord>,
    },
    /// The cost of a preemption or of the return from one.
    Preempted {
        worker: WorkerId,
        attempt: AttemptId,
        account: PreemptionAccount,
    },
    /// The output printed by an attempt that is about to fail.
    Printed {
        attempt: AttemptId,
        stderr: String,
    },
    ChainBegun {
        chain: u128,
        known: KnownChain,
    },
    ChainOver {
        chain: u128,
        reason: String,
    },
    ChainSettled {
        chain: u128,
    },
    CommitBegun {
        job: JobId,
    },
    /// A job has ended, but could not be written to the history.
    Unrecorded {
        summary: Box<JobSummary>,
    },
    Settled {
        job: JobId,
        outcome: JobOutcome,
    },
}

/// A chain in the journal, until its intermediate data is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownChain {
    #[serde(with = "napreduce_protocol::path_bytes")]
    pub root: PathBuf,
    /// Whether the chain is complete: no job follows.
    pub over: bool,
}

/// A job whose output directory is claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub job: JobId,
    /// Chosen by the submitter: a repeated submission with the same token is the same job.
    pub token: u128,
    pub plan: JobPlan,
    pub user: String,
    /// `None` for an embedded job, which runs the worker's own program.
    pub program: Option<Blob>,
    pub files: Vec<SideFile>,
    /// Identifies the claim on its output directory.
    pub claim: ClaimMark,
    /// The original job, if this is a rerun, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<RerunOf>,
}

/// The identity of a worker, valid as long as it has its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub name: String,
    pub incarnation: u64,
    pub slots: Slots,
    pub host: String,
    #[serde(default = "default_rack")]
    pub rack: String,
    /// Address for segments and logs; empty for an embedded worker, which serves none.
    pub data_address: String,
    /// Directory of the served files.
    #[serde(with = "napreduce_protocol::path_bytes")]
    pub directory: PathBuf,
    pub architecture: String,
    /// Description of its isolation, for people.
    #[serde(default)]
    pub isolation: String,
}

impl Identity {
    /// Returns the engine's event for a new worker.
    pub fn joined(&self, worker: WorkerId) -> Event {
        Event::WorkerJoined {
            worker,
            slots: self.slots,
            host: self.host.clone(),
            rack: self.rack.clone(),
        }
    }
}

pub(super) fn default_rack() -> String {
    DEFAULT_RACK.to_owned()
}

impl Entry {
    /// Returns the engine's time of the batch.
    pub fn at(&self) -> Time {
        self.at
    }

    /// Returns the data outside the engine.
    pub fn extra(&self) -> &[Extra] {
        &self.extra
    }
}

impl Accepted {
    /// Returns the job with an operator's changes, as it would be submitted now.
    pub fn with_change(&self, change: &JobChange) -> Accepted {
        let mut accepted = self.clone();
        if let Some(priority) = change.priority {
            accepted.plan.priority = priority;
        }
        if let Some(queue) = &change.queue {
            accepted.plan.queue.clone_from(queue);
        }
        accepted
    }

    /// Returns the request for the claim on the output directory.
    pub(super) fn claim_request(&self) -> ClaimRequest<'_> {
        let plan = &self.plan;
        let owner = if self.program.is_some() {
            Owner::Cluster
        } else {
            Owner::Program
        };
        ClaimRequest {
            output: &plan.output,
            job: self.job,
            extension: &plan.part_extension,
            overwrite: plan.overwrite,
            others: &[],
            splits: &plan.splits,
            submission: self.token,
            owner,
            durable: plan.durable || owner == Owner::Cluster,
        }
    }

    /// Returns the engine's specification of this job.
    pub(super) fn spec(&self, at: Time) -> JobSpec {
        spec_of(&self.plan, &self.user, at)
    }
}

/// Returns the engine's specification of a job submitted at `at`.
pub fn spec_of(plan: &JobPlan, user: &str, at: Time) -> JobSpec {
    let mut maps = Vec::with_capacity(plan.splits.len());
    for split in &plan.splits {
        maps.push(MapSpec {
            bytes: split.length(),
            preferred: Vec::new(),
        });
    }
    // A deadline beyond the last time is that time.
    let deadline = plan.deadline.map(|deadline| {
        let micros = whole_micros(deadline).min(u64::MAX - at.0);
        at + Span(micros)
    });
    JobSpec {
        name: plan.name.clone(),
        user: user.to_owned(),
        queue: plan.queue.clone(),
        priority: plan.priority,
        deadline,
        maps,
        reduces: plan.reduces,
        attempts_max: plan.attempts_max,
        slowstart_permille: plan.slowstart_permille,
        unsaved: plan.unsaved(),
        memory: plan.task_memory,
        outputs_move: StorageScheme::from_path(&plan.output).is_none(),
    }
}

/// A worker's report as a part of an entry.
pub(super) struct TranslatedReport {
    pub(super) event: Option<Event>,
    pub(super) extra: Vec<Extra>,
}

/// Translates a worker's report of what happened at a time; `number` is the report's number.
pub(super) fn translate_report(
    worker: WorkerId,
    number: u64,
    at: Time,
    report: WorkerReport,
) -> TranslatedReport {
    let mut extra = vec![Extra::Received { worker, number }];
    extra.extend(moment_of(at, &report));
    let event = match report {
        WorkerReport::Happened { attempt, report } => Event::Reported {
            worker,
            attempt,
            report,
        },
        WorkerReport::Finished {
            attempt,
            counters,
            part,
            output_digest,
        } => {
            let output_bytes = counters.of(Counter::MapOutputMaterializedBytes);
            extra.push(Extra::Finished {
                attempt,
                counters,
                part,
            });
            Event::Reported {
                worker,
                attempt,
                report: Report::Done {
                    output_bytes,
                    output_digest,
                },
            }
        }
        WorkerReport::Failed { attempt, mut error } => {
            if let Some(record) = error.record.take() {
                extra.push(Extra::FailedOn { attempt, record });
            }
            Event::Reported {
                worker,
                attempt,
                report: error.into(),
            }
        }
        WorkerReport::Leaving { grace_millis, why } => {
            extra.push(Extra::DrainAsked {
                worker,
                reason: format!("it is ended: {why}"),
            });
            let grace = if grace_millis > 0 {
                Some(Span::from_millis(grace_millis))
            } else {
                None
            };
            Event::WorkerDrainRequested {
                worker,
                hand_back: true,
                grace,
            }
        }
        WorkerReport::SuspendWanted { attempt } => {
            let reason = format!("its process was sent SIGTSTP on {worker}");
            Event::AttemptPreemptRequested {
                attempt,
                primitive: Primitive::Suspend,
                reason,
            }
        }
        WorkerReport::Short { lacks } => Event::WorkerShort { worker, lacks },
        WorkerReport::Preempted { attempt, account } => {
            extra.push(Extra::Preempted {
                worker,
                attempt,
                account,
            });
            return TranslatedReport { event: None, extra };
        }
        WorkerReport::Printed { attempt, stderr } => {
            extra.push(Extra::Printed { attempt, stderr });
            return TranslatedReport { event: None, extra };
        }
    };
    TranslatedReport {
        event: Some(event),
        extra,
    }
}

/// Returns the moment of a report that an attempt started or ended.
fn moment_of(at: Time, report: &WorkerReport) -> Option<Extra> {
    match report {
        WorkerReport::Happened {
            attempt,
            report: Report::Started,
        } => Some(Extra::StartedAt {
            attempt: *attempt,
            at,
        }),
        WorkerReport::Happened {
            attempt,
            report: Report::Killed | Report::Checkpointed,
        }
        | WorkerReport::Finished { attempt, .. }
        | WorkerReport::Failed { attempt, .. } => Some(Extra::EndedAt {
            attempt: *attempt,
            at,
        }),
        _ => None,
    }
}
