//! What the journal of a coordinator holds: every batch of events handed to the engine, with what
//! belongs to it.
//!
//! Owns the form of an entry, and which events a worker's report is. Does not own the file (`journal`) nor
//! what the coordinator keeps of it (`state`).

use std::path::PathBuf;

use napreduce_engine::{
    AttemptId, DEFAULT_RACK, Event, JobChange, JobId, JobOutcome, JobSpec, MapSpec, Primitive, Report, Slots,
    Span, Time, WorkerId,
};
use napreduce_protocol::{
    Blob, Counter, CounterValues, JobPlan, PartOutput, PreemptionAccount, RerunOf, SideFile, StorageScheme,
    WorkerReport,
};
use serde::{Deserialize, Serialize};

use crate::output::{ClaimMark, ClaimRequest, Owner};

/// What happened at a time of the engine: events as the engine is told them, in one batch, and what belongs
/// to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub(super) at: Time,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Event>,
    /// Taken in before the events, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) extra: Vec<Extra>,
}

/// What the engine knows nothing of. The output of a job is being put into place from `CommitBegun` on,
/// whatever happens; once the job is `Settled` nothing of it is left to do.
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
    /// Somebody wants a worker to leave, and says why.
    DrainAsked {
        worker: WorkerId,
        reason: String,
    },
    /// Somebody wants it to stay after all, and says why.
    UndrainAsked {
        worker: WorkerId,
        reason: String,
    },
    /// A worker's report of this number is in this entry.
    Received {
        worker: WorkerId,
        number: u64,
    },
    /// What an attempt that says it is done has counted and written.
    Finished {
        attempt: AttemptId,
        counters: CounterValues,
        part: Option<PartOutput>,
    },
    /// What a preemption, or the return from one, took.
    Preempted {
        worker: WorkerId,
        attempt: AttemptId,
        account: PreemptionAccount,
    },
    /// What an attempt has printed that is about to fail.
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
    Settled {
        job: JobId,
        outcome: JobOutcome,
    },
}

/// A chain as the journal knows it, until what it left is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownChain {
    #[serde(with = "napreduce_protocol::path_bytes")]
    pub root: PathBuf,
    /// No job follows any more.
    pub over: bool,
}

/// A job whose output directory is claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub job: JobId,
    /// The submitter's: handed in again, it is the same job.
    pub token: u128,
    pub plan: JobPlan,
    pub user: String,
    /// `None` for an embedded job, which runs the worker's own program.
    pub program: Option<Blob>,
    pub files: Vec<SideFile>,
    /// By what the claim on its output directory is known again.
    pub claim: ClaimMark,
    /// The job whose definition this is once more, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<RerunOf>,
}

/// Who a worker is, as long as it has its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub name: String,
    pub incarnation: u64,
    pub slots: Slots,
    pub host: String,
    #[serde(default = "default_rack")]
    pub rack: String,
    /// Where it serves segments and logs; empty for an embedded worker, which serves nobody.
    pub data_address: String,
    /// Where it keeps what it serves.
    #[serde(with = "napreduce_protocol::path_bytes")]
    pub directory: PathBuf,
    pub architecture: String,
    /// What keeps its attempts apart, for people.
    #[serde(default)]
    pub isolation: String,
}

impl Identity {
    /// What the engine is told of it.
    pub fn joined(&self, worker: WorkerId) -> Event {
        Event::WorkerJoined { worker, slots: self.slots, host: self.host.clone(), rack: self.rack.clone() }
    }
}

pub(super) fn default_rack() -> String {
    DEFAULT_RACK.to_owned()
}

impl Accepted {
    /// As it would be submitted with what was changed since.
    pub fn with(&self, change: &JobChange) -> Accepted {
        let mut accepted = self.clone();
        accepted.plan.priority = change.priority.unwrap_or(accepted.plan.priority);
        if let Some(queue) = &change.queue {
            accepted.plan.queue.clone_from(queue);
        }
        accepted
    }

    /// Whose its output directory is, and how it is written.
    pub(super) fn claim_request(&self) -> ClaimRequest<'_> {
        let plan = &self.plan;
        let owner = if self.program.is_some() { Owner::Cluster } else { Owner::Program };
        ClaimRequest {
            output: &plan.output,
            job: self.job,
            extension: &plan.part_extension,
            overwrite: plan.overwrite,
            splits: &plan.splits,
            submission: self.token,
            owner,
            durable: plan.durable || owner == Owner::Cluster,
        }
    }

    /// What the engine is to know of it.
    pub(super) fn spec(&self, at: Time) -> JobSpec {
        spec_of(&self.plan, &self.user, at)
    }
}

/// What the engine is to know of a job that is submitted then.
pub fn spec_of(plan: &JobPlan, user: &str, at: Time) -> JobSpec {
    let maps = plan.splits.iter().map(|split| MapSpec { bytes: split.length(), preferred: Vec::new() });
    let deadline = plan.deadline.map(|deadline| {
        at + Span(u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX).min(u64::MAX - at.0))
    });
    JobSpec {
        name: plan.name.clone(),
        user: user.to_owned(),
        queue: plan.queue.clone(),
        priority: plan.priority,
        deadline,
        maps: maps.collect(),
        reduces: plan.reduces,
        attempts_max: plan.attempts_max,
        slowstart_permille: plan.slowstart_permille,
        unsaved: plan.unsaved(),
        memory: plan.task_memory,
        outputs_move: StorageScheme::of(&plan.output).is_none(),
    }
}

/// What a worker's report is to the engine, and what belongs to it.
pub fn of_report(worker: WorkerId, number: u64, report: WorkerReport) -> (Option<Event>, Vec<Extra>) {
    let mut extra = vec![Extra::Received { worker, number }];
    let event = match report {
        WorkerReport::Happened { attempt, report } => Event::Reported { worker, attempt, report },
        WorkerReport::Finished { attempt, counters, part } => {
            let output_bytes = counters.of(Counter::MapOutputMaterializedBytes);
            extra.push(Extra::Finished { attempt, counters, part });
            Event::Reported { worker, attempt, report: Report::Done { output_bytes } }
        }
        WorkerReport::Leaving { grace_millis, why } => {
            extra.push(Extra::DrainAsked { worker, reason: format!("it is ended: {why}") });
            let grace = (grace_millis > 0).then(|| Span::from_millis(grace_millis));
            Event::WorkerDrainRequested { worker, hand_back: true, grace }
        }
        WorkerReport::SuspendWanted { attempt } => {
            let reason = format!("its process was sent SIGTSTP on {worker}");
            Event::AttemptPreemptRequested { attempt, primitive: Primitive::Suspend, reason }
        }
        WorkerReport::Short { lacks } => Event::WorkerShort { worker, lacks },
        WorkerReport::Preempted { attempt, account } => {
            extra.push(Extra::Preempted { worker, attempt, account });
            return (None, extra);
        }
        WorkerReport::Printed { attempt, stderr } => {
            extra.push(Extra::Printed { attempt, stderr });
            return (None, extra);
        }
    };
    (Some(event), extra)
}
