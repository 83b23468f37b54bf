//! What the journal of a coordinator holds: every event handed to the engine, with what belongs to it.
//!
//! Owns the form of an entry and the engine's event in it. Does not own the file (`journal`) nor what the coordinator
//! keeps of it (`brain`).

use std::path::PathBuf;
use std::sync::Arc;

use napreduce_core::{
    AttemptId, Event, JobId, JobOutcome, JobSpec, MapSpec, Primitive, Report, Slots, Span, Time, WorkerId,
};
use napreduce_protocol::{Blob, Counter, JobPlan, SideFile, WorkerReport};
use serde::{Deserialize, Serialize};

use super::chains::KnownChain;
use crate::blobs::{BlobStore, PinnedBlob};
use crate::output::{ClaimMark, ClaimRequest, Owner};

/// Something that happened at a time of the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) at: Time,
    pub(super) happening: Happening,
}

/// What happens. The output of a job is being put into place from `CommitBegun` on, whatever happens; once the job is `Settled`
/// nothing of it is left to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Happening {
    Submitted(Box<Accepted>),
    Joined { worker: WorkerId, identity: Identity },
    Lost { worker: WorkerId, reason: String, crashed: bool },
    Reported { worker: WorkerId, number: u64, report: WorkerReport },
    Progressed { worker: WorkerId, attempt: AttemptId, bytes_done: u64, bytes_total: u64 },
    JobKillRequested { job: JobId, reason: String },
    AttemptKillRequested { attempt: AttemptId, reason: String },
    AttemptPreemptRequested { attempt: AttemptId, primitive: Primitive, reason: String },
    AttemptResumeRequested { attempt: AttemptId, reason: String },
    JobSuspendRequested { job: JobId, reason: String },
    JobResumeRequested { job: JobId, reason: String },
    DrainRequested { worker: WorkerId, hand_back: bool },
    ChainBegun { chain: u128, known: KnownChain },
    ChainOver { chain: u128, reason: String },
    ChainSettled { chain: u128 },
    Woken,
    CommitBegun { job: JobId },
    Settled { job: JobId, outcome: JobOutcome },
}

/// A job whose output directory is claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Accepted {
    pub(super) job: JobId,
    /// The submitter's: handed in again, it is the same job.
    pub(super) token: u128,
    pub(super) plan: JobPlan,
    pub(super) user: String,
    /// `None` for an embedded job, which runs the worker's own program.
    pub(super) program: Option<Blob>,
    pub(super) files: Vec<SideFile>,
    /// By what the claim on its output directory is known again.
    pub(super) claim: ClaimMark,
}

/// Who a worker is, as long as it has its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) incarnation: u64,
    pub(super) slots: Slots,
    pub(super) host: String,
    /// Where it serves segments and logs; empty for an embedded worker, which serves nobody.
    pub(super) data_address: String,
    /// Where it keeps what it serves.
    #[serde(with = "napreduce_protocol::path_bytes")]
    pub(super) directory: PathBuf,
    pub(super) architecture: String,
}

impl Accepted {
    /// Keeps its blobs in the store as long as the result lives. What is missing is missed by the worker that asks for
    /// it, which says so. Blocking.
    pub(super) fn pin(&self, blobs: &Arc<BlobStore>) -> Vec<PinnedBlob> {
        let all = self.program.into_iter().chain(self.files.iter().map(|file| file.blob));
        all.filter_map(|blob| blobs.pin(blob.digest).ok().flatten()).collect()
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
            submission: self.token,
            owner,
            durable: plan.durable || owner == Owner::Cluster,
        }
    }

    /// What the engine is to know of it.
    fn spec(&self, at: Time) -> JobSpec {
        let plan = &self.plan;
        let maps = plan.splits.iter().map(|split| MapSpec { bytes: split.length(), preferred: Vec::new() });
        let deadline = plan.deadline.map(|deadline| {
            at + Span(u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX).min(u64::MAX - at.0))
        });
        JobSpec {
            name: plan.name.clone(),
            user: self.user.clone(),
            queue: plan.queue.clone(),
            priority: plan.priority,
            deadline,
            maps: maps.collect(),
            reduces: plan.reduces,
            attempts_max: plan.attempts_max,
            slowstart_permille: plan.slowstart_permille,
            unsaved: plan.unsaved(),
        }
    }
}

impl Entry {
    /// What the engine is told; nothing of what is for the history only.
    pub(super) fn event(&self) -> Option<Event> {
        Some(match &self.happening {
            Happening::Submitted(accepted) => {
                Event::JobSubmitted { job: accepted.job, spec: accepted.spec(self.at) }
            }
            Happening::Joined { worker, identity } => {
                let host = identity.host.clone();
                Event::WorkerJoined { worker: *worker, slots: identity.slots, host }
            }
            Happening::Lost { worker, crashed, .. } => {
                Event::WorkerLost { worker: *worker, crashed: *crashed }
            }
            Happening::Reported { worker, report, .. } => return reported(*worker, report),
            Happening::Progressed { worker, attempt, bytes_done, bytes_total } => {
                let report = Report::Progressed { bytes_done: *bytes_done, bytes_total: *bytes_total };
                Event::Reported { worker: *worker, attempt: *attempt, report }
            }
            Happening::JobKillRequested { job, reason } => {
                Event::JobKillRequested { job: *job, reason: reason.clone() }
            }
            Happening::AttemptKillRequested { attempt, reason } => {
                Event::AttemptKillRequested { attempt: *attempt, reason: reason.clone() }
            }
            Happening::AttemptPreemptRequested { attempt, primitive, reason } => {
                let (attempt, primitive, reason) = (*attempt, *primitive, reason.clone());
                Event::AttemptPreemptRequested { attempt, primitive, reason }
            }
            Happening::AttemptResumeRequested { attempt, reason } => {
                Event::AttemptResumeRequested { attempt: *attempt, reason: reason.clone() }
            }
            Happening::JobSuspendRequested { job, reason } => {
                Event::JobSuspendRequested { job: *job, reason: reason.clone() }
            }
            Happening::JobResumeRequested { job, reason } => {
                Event::JobResumeRequested { job: *job, reason: reason.clone() }
            }
            Happening::DrainRequested { worker, hand_back } => {
                Event::WorkerDrainRequested { worker: *worker, hand_back: *hand_back }
            }
            Happening::Woken => Event::Woken,
            // They are about files, of which the engine knows nothing.
            Happening::ChainBegun { .. }
            | Happening::ChainOver { .. }
            | Happening::ChainSettled { .. }
            | Happening::CommitBegun { .. }
            | Happening::Settled { .. } => return None,
        })
    }
}

fn reported(worker: WorkerId, report: &WorkerReport) -> Option<Event> {
    Some(match report {
        WorkerReport::Happened { attempt, report } => {
            Event::Reported { worker, attempt: *attempt, report: report.clone() }
        }
        WorkerReport::Finished { attempt, counters, .. } => {
            let output_bytes = counters.of(Counter::MapOutputMaterializedBytes);
            Event::Reported { worker, attempt: *attempt, report: Report::Done { output_bytes } }
        }
        WorkerReport::Draining { hand_back } => Event::WorkerDrainRequested { worker, hand_back: *hand_back },
        WorkerReport::SuspendWanted { attempt } => {
            let (attempt, primitive) = (*attempt, Primitive::Suspend);
            let reason = format!("its process was sent SIGTSTP on {worker}");
            Event::AttemptPreemptRequested { attempt, primitive, reason }
        }
        WorkerReport::Short { lacks } => Event::WorkerShort { worker, lacks: lacks.clone() },
        // No state of the engine depends on it.
        WorkerReport::Preempted { .. } => return None,
    })
}
