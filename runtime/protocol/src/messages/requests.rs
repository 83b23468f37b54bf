//! Requests of clients to the coordinator, and its answers. Clients are job programs, the operator's binary,
//! and workers that fetch blobs.
//!
//! Each request is a struct. The tables at the end list its answer, whether a client may repeat it, and the
//! message of each answer. A client sends its next request after it has received the last answer. On the wire
//! all requests form one enum, and so do all answers.

use std::path::PathBuf;

use napreduce_engine::{AttemptId, JobChange, JobId, Reason, TaskId, WorkerId};
use serde::{Deserialize, Serialize};

use super::data::Payload;
use crate::commands::{CommandOutcome, JobCommand, TaskCommand};
use crate::detail::JobDetail;
use crate::digest::{Blob, Digest, SideFile};
use crate::plan::JobPlan;
use crate::progress::JobProgress;
use crate::queues::QueueListing;
use crate::report::JobEnd;
use crate::samples::ClusterWindow;
use crate::summaries::{JobSummary, LogStream, TaskSummary, WorkerSummary};

/// The most bytes of a blob or log per message.
pub const CHUNK_BYTES: usize = 1 << 20;

/// A request with one answer.
pub trait Request: Into<ToCoordinator> {
    type Answer: Answer;

    /// Whether a client repeats it if the connection breaks before the answer. Requests with a different
    /// effect the second time are not repeatable.
    const REPEATABLE: bool;
}

/// The answer to a request.
pub trait Answer: Sized {
    /// Returns the message that carries the answer.
    fn into_message(self) -> FromCoordinator;

    /// Extracts the answer; returns the message itself if it answers another request.
    fn from_message(message: FromCoordinator) -> Result<Self, FromCoordinator>;
}

/// Asks whether a blob is stored; then the answer is `None`. Otherwise it is the number of bytes that have arrived over
/// an earlier connection. `Chunk`s of the other bytes follow, which are answered by `Done`. The blob stays pinned until this connection's next submission.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OfferBlob {
    pub blob: Blob,
}

/// Fetches a blob. `Chunk`s of as many bytes as the answer announces follow it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FetchBlob {
    pub digest: Digest,
}

/// Submits a job. Answered once the job survives a restart of the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Submission {
    /// Random token of the submitter: a repeated submission is one job.
    pub token: u128,
    pub plan: JobPlan,
    pub user: String,
    pub program: Blob,
    /// The program's architecture, as Rust names it.
    pub architecture: String,
    pub files: Vec<SideFile>,
    /// The job of which this is a rerun.
    pub rerun_of: Option<RerunOf>,
}

/// The rerun job, and the operator's reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RerunOf {
    pub job: JobId,
    pub reason: String,
}

/// Reruns the definition of another job as a new job. Requests with the same token are one job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RerunJob {
    pub token: u128,
    pub of: RerunOf,
    /// `None` for the output of that job.
    #[serde(with = "crate::path_bytes::optional")]
    pub output: Option<PathBuf>,
}

/// Keeps the directory in which jobs of one program pass data. The connection stays open while the program
/// runs, and carries only `EndChain`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HoldChain {
    pub chain: u128,
    #[serde(with = "crate::path_bytes")]
    pub root: PathBuf,
}

/// Ends a chain: no more jobs follow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndChain {
    pub chain: u128,
}

/// Lists the running jobs, then those in history, newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListJobs {
    pub limit: u32,
}

/// Returns the details of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetJob {
    pub job: JobId,
}

/// Kills a job. Answered once that is decided.
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

/// Applies a command to one attempt, or to all suitable live attempts of a task. The answer lists these
/// attempts once it is ordered; `GetOutcomes` returns whether it is done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandTask {
    pub task: TaskId,
    pub attempt: Option<u32>,
    pub command: TaskCommand,
    pub reason: String,
}

/// Suspends, holds, resumes or releases a job. Answered once that is ordered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandJob {
    pub job: JobId,
    pub command: JobCommand,
    pub reason: String,
}

/// Changes a job's priority or queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeJob {
    pub job: JobId,
    pub change: JobChange,
    pub reason: String,
}

/// Returns the outcomes of a command to attempts of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetOutcomes {
    pub job: JobId,
    /// Empty for all live attempts. The answer has the same order.
    pub attempts: Vec<AttemptId>,
    pub command: TaskCommand,
}

/// Explains why a job or task does not run; the most important reason comes first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Explain {
    pub job: JobId,
    pub task: Option<TaskId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListWorkers;

/// Returns the states of queues and workers in a window, in milliseconds since 1970.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetWindow {
    pub from_millis: u64,
    pub until_millis: u64,
}

/// Drains a worker: it finishes or hands back its attempts and leaves. Answered once it gets no new work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DrainWorker {
    pub worker: WorkerId,
    pub hand_back: bool,
    pub reason: String,
}

/// Cancels draining. Answered once the worker may get tasks again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UndrainWorker {
    pub worker: WorkerId,
    pub reason: String,
}

/// Lists the scheduler's queues with used and wanted slots.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListQueues;

/// Reads the current log. `Chunk`s of as many bytes as the answer announces follow it. An offset beyond the
/// end returns the length alone.
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

/// The extent of a log that follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogLength {
    pub bytes: u64,
    /// Length of the whole log.
    pub length: u64,
    /// Whether the attempt had already ended, so that the log is complete.
    pub has_ended: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FromCoordinator {
    Done,
    /// Whether an offered blob is wanted, and from which byte on; see [`OfferBlob`].
    Wanted(Option<u64>),
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
    /// The request is refused: exit status (1 failed, 2 invalid) and a text for people.
    Refused {
        status: u8,
        reason: String,
    },
}

/// The table of answers: `TYPE: the answer => its message, the message => its answer`.
macro_rules! answers {
    ($($answer:ty: $value:pat => $made:expr, $message:pat => $found:expr;)*) => {
        $(impl Answer for $answer {
            fn into_message(self) -> FromCoordinator {
                use FromCoordinator::*;
                let $value = self;
                $made
            }

            fn from_message(message: FromCoordinator) -> Result<$answer, FromCoordinator> {
                use FromCoordinator::*;
                match message {
                    $message => Ok($found),
                    other => Err(other),
                }
            }
        })*
    };
}

answers! {
    (): () => Done, Done => ();
    Option<u64>: from => Wanted(from), Wanted(from) => from;
    u64: bytes => Blob(bytes), Blob(bytes) => bytes;
    LogLength: length => LogLength(length), LogLength(length) => length;
    JobId: job => Submitted(job), Submitted(job) => job;
    Vec<JobSummary>: jobs => Jobs(jobs), Jobs(jobs) => jobs;
    JobDetail: detail => Job(Box::new(detail)), Job(detail) => *detail;
    Vec<TaskSummary>: tasks => Tasks(tasks), Tasks(tasks) => tasks;
    Vec<AttemptId>: attempts => Commanded(attempts), Commanded(attempts) => attempts;
    Vec<(AttemptId, CommandOutcome)>: outcomes => Outcomes(outcomes), Outcomes(outcomes) => outcomes;
    Vec<Reason>: reasons => Explained(reasons), Explained(reasons) => reasons;
    Vec<WorkerSummary>: workers => Workers(workers), Workers(workers) => workers;
    QueueListing: queues => Queues(queues), Queues(queues) => queues;
    ClusterWindow: window => Window(Box::new(window)), Window(window) => *window;
}

/// The table of requests: `REQUEST REPEATABLE -> ANSWER`.
macro_rules! requests {
    ($($request:ident $repeatable:literal -> $answer:ty;)*) => {
        $(impl From<$request> for ToCoordinator {
            fn from(request: $request) -> ToCoordinator {
                ToCoordinator::$request(request.into())
            }
        }

        impl Request for $request {
            type Answer = $answer;
            const REPEATABLE: bool = $repeatable;
        })*
    };
}

requests! {
    OfferBlob true -> Option<u64>;
    FetchBlob true -> u64;
    Submission true -> JobId;
    RerunJob true -> JobId;
    HoldChain true -> ();
    EndChain true -> ();
    ListJobs true -> Vec<JobSummary>;
    GetJob true -> JobDetail;
    KillJob true -> ();
    ListTasks true -> Vec<TaskSummary>;
    CommandTask false -> Vec<AttemptId>;
    CommandJob false -> ();
    ChangeJob false -> ();
    GetOutcomes true -> Vec<(AttemptId, CommandOutcome)>;
    Explain true -> Vec<Reason>;
    ListWorkers true -> Vec<WorkerSummary>;
    GetWindow true -> ClusterWindow;
    DrainWorker true -> ();
    UndrainWorker false -> ();
    ListQueues true -> QueueListing;
    ReadLog true -> LogLength;
}
