//! Requests of clients to the coordinator, and its answers. A client is a submitter, the operator's binary, or a
//! worker that fetches a blob.
//!
//! Each request is a struct. The table at the end gives its answer, and whether a client may repeat it; a client
//! sends its next request when it has received the answer to the last one. On the wire all requests are one enum, and
//! so are all answers.

use std::path::PathBuf;

use napreduce_engine::{AttemptId, JobChange, JobId, Reason, TaskId, WorkerId};
use serde::{Deserialize, Serialize};

use super::data::Payload;
use super::worker::{Blob, SideFile};
use crate::commands::{CommandOutcome, JobCommand, TaskCommand};
use crate::detail::JobDetail;
use crate::digest::Digest;
use crate::plan::JobPlan;
use crate::progress::JobProgress;
use crate::queues::QueueListing;
use crate::report::JobEnd;
use crate::samples::ClusterWindow;
use crate::summaries::{JobSummary, LogStream, TaskSummary, WorkerSummary};

/// Bytes of a blob or a log in one message, at most.
pub const CHUNK_BYTES: usize = 1 << 20;

/// A request that takes one answer.
pub trait Request: Into<ToCoordinator> {
    type Answer;

    /// Whether a client sends it again when the connection breaks before the answer. A request whose effect would
    /// differ the second time is not repeatable.
    const REPEATABLE: bool;

    /// Returns the message itself if it answers another request.
    fn answer(message: FromCoordinator) -> Result<Self::Answer, FromCoordinator>;
}

/// Asks whether a blob is there. If it is not, `Chunk`s of `blob.bytes` bytes in all follow, which are answered by
/// `Done`. The blob stays until the next submission of this connection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OfferBlob {
    pub blob: Blob,
}

/// Fetches a blob. `Chunk`s of as many bytes as the answer announces follow it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FetchBlob {
    pub digest: Digest,
}

/// Submits a job. The answer comes when the job survives a restart of the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Submission {
    /// Chosen at random by the submitter: handed in twice, it is one job.
    pub token: u128,
    pub plan: JobPlan,
    pub user: String,
    pub program: Blob,
    /// Architecture the program was built for, as Rust calls it.
    pub architecture: String,
    pub files: Vec<SideFile>,
    /// The job whose definition this is once more.
    pub rerun_of: Option<RerunOf>,
}

/// What an operator has run again, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerunOf {
    pub job: JobId,
    pub reason: String,
}

/// Submits the definition of another job again, as a job of its own. Sent twice with one token, it is one job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RerunJob {
    pub token: u128,
    pub of: RerunOf,
    /// The output of that job unless another one is given.
    #[serde(with = "crate::path_bytes::optional")]
    pub output: Option<PathBuf>,
}

/// Keeps the directory that jobs of one program pass data in. The connection stays open for as long as the program
/// runs, and carries nothing but `EndChain`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HoldChain {
    pub chain: u128,
    #[serde(with = "crate::path_bytes")]
    pub root: PathBuf,
}

/// No job of the chain follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndChain {
    pub chain: u128,
}

/// Lists the running jobs, then those in history, newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListJobs {
    pub limit: u32,
}

/// Everything about a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetJob {
    pub job: JobId,
}

/// Ends a job. The answer comes when that is decided.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KillJob {
    pub job: JobId,
    pub reason: String,
}

/// Lists the tasks of one job, or the live tasks of all jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListTasks {
    pub job: Option<JobId>,
}

/// Does something to the live attempts of a task that it can be done to, or to one attempt. The answer names these
/// attempts when it is ordered; `GetOutcomes` asks whether it is done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandTask {
    pub task: TaskId,
    pub attempt: Option<u32>,
    pub command: TaskCommand,
    pub reason: String,
}

/// Suspends, holds, resumes or releases a job. The answer comes when that is ordered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandJob {
    pub job: JobId,
    pub command: JobCommand,
    pub reason: String,
}

/// Gives a job another priority or queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeJob {
    pub job: JobId,
    pub change: JobChange,
    pub reason: String,
}

/// What has become of a command to attempts of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetOutcomes {
    pub job: JobId,
    /// Empty for all live attempts. The answer has the same order.
    pub attempts: Vec<AttemptId>,
    pub command: TaskCommand,
}

/// Why a job, or a task of it, does not run; the most important reason comes first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Explain {
    pub job: JobId,
    pub task: Option<TaskId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListWorkers;

/// How queues and workers were between two moments, in milliseconds since 1970.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetWindow {
    pub from_millis: u64,
    pub until_millis: u64,
}

/// Makes a worker finish what it runs, or hand it back, and leave. The answer comes when it gets nothing more to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DrainWorker {
    pub worker: WorkerId,
    pub hand_back: bool,
    pub reason: String,
}

/// Makes a draining worker stay. The answer comes when it may get tasks again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UndrainWorker {
    pub worker: WorkerId,
    pub reason: String,
}

/// The queues of the scheduler, with what is used and wanted in each.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListQueues;

/// Reads a log as it is now. `Chunk`s of as many bytes as the answer announces follow it. An offset behind the end asks
/// for the length alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadLog {
    pub attempt: AttemptId,
    pub stream: LogStream,
    pub offset: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToCoordinator {
    OfferBlob(OfferBlob),
    Chunk(Payload),
    FetchBlob(FetchBlob),
    Submission(Box<Submission>),
    RerunJob(RerunJob),
    /// Answered by any number of `Progress` and then `Ended`.
    Follow {
        job: JobId,
    },
    HoldChain(HoldChain),
    EndChain(EndChain),
    ListJobs(ListJobs),
    GetJob(GetJob),
    KillJob(KillJob),
    ListTasks(ListTasks),
    CommandTask(CommandTask),
    CommandJob(CommandJob),
    ChangeJob(ChangeJob),
    GetOutcomes(GetOutcomes),
    Explain(Explain),
    ListWorkers(ListWorkers),
    GetWindow(GetWindow),
    DrainWorker(DrainWorker),
    UndrainWorker(UndrainWorker),
    ListQueues(ListQueues),
    ReadLog(ReadLog),
}

/// The part of a log that follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogLength {
    pub bytes: u64,
    /// Bytes of the whole log.
    pub length: u64,
    /// Whether the attempt had ended before, so that the log is complete.
    pub has_ended: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FromCoordinator {
    Done,
    Present(bool),
    Blob(u64),
    LogLength(LogLength),
    Chunk(Payload),
    Submitted(JobId),
    Progress(JobProgress),
    Ended(Box<JobEnd>),
    Jobs(Vec<JobSummary>),
    Job(Box<JobDetail>),
    Tasks(Vec<TaskSummary>),
    Commanded(Vec<AttemptId>),
    Outcomes(Vec<(AttemptId, CommandOutcome)>),
    Explained(Vec<Reason>),
    Workers(Vec<WorkerSummary>),
    Queues(QueueListing),
    Window(Box<ClusterWindow>),
    /// The request cannot be carried out: an exit status (1 failed, 2 invalid) and a text for people.
    Refused {
        status: u8,
        reason: String,
    },
}

/// The table of requests: `REQUEST REPEATABLE -> ANSWER, the message that carries it => the answer in it`.
macro_rules! requests {
    ($($request:ident $repeatable:literal -> $answer:ty, $message:pat => $value:expr;)*) => {
        $(impl From<$request> for ToCoordinator {
            fn from(request: $request) -> ToCoordinator {
                ToCoordinator::$request(request.into())
            }
        }

        impl Request for $request {
            type Answer = $answer;
            const REPEATABLE: bool = $repeatable;

            fn answer(message: FromCoordinator) -> Result<$answer, FromCoordinator> {
                use FromCoordinator::*;
                match message {
                    $message => Ok($value),
                    other => Err(other),
                }
            }
        })*
    };
}

requests! {
    OfferBlob true -> bool, Present(present) => present;
    FetchBlob true -> u64, Blob(bytes) => bytes;
    Submission true -> JobId, Submitted(job) => job;
    RerunJob true -> JobId, Submitted(job) => job;
    HoldChain true -> (), Done => ();
    EndChain true -> (), Done => ();
    ListJobs true -> Vec<JobSummary>, Jobs(jobs) => jobs;
    GetJob true -> JobDetail, Job(detail) => *detail;
    KillJob true -> (), Done => ();
    ListTasks true -> Vec<TaskSummary>, Tasks(tasks) => tasks;
    CommandTask false -> Vec<AttemptId>, Commanded(attempts) => attempts;
    CommandJob false -> (), Done => ();
    ChangeJob false -> (), Done => ();
    GetOutcomes true -> Vec<(AttemptId, CommandOutcome)>, Outcomes(outcomes) => outcomes;
    Explain true -> Vec<Reason>, Explained(reasons) => reasons;
    ListWorkers true -> Vec<WorkerSummary>, Workers(workers) => workers;
    GetWindow true -> ClusterWindow, Window(window) => *window;
    DrainWorker true -> (), Done => ();
    UndrainWorker false -> (), Done => ();
    ListQueues true -> QueueListing, Queues(queues) => queues;
    ReadLog true -> LogLength, LogLength(length) => length;
}
