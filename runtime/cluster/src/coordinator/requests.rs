//! Requests from client connections to the coordinator's loop, and how the loop dispatches them. Each request
//! is handled by its `Handle` or `HandleLater`, which is next to the code that it calls. Blobs and logs are
//! transferred by the connections, outside the loop (`clients`).

use std::fmt;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId};
use napreduce_local::coordinator::{Accepted, Following};
use napreduce_protocol::{Answer, FromCoordinator, Request, ToCoordinator};
use tokio::sync::oneshot;

use super::ClusterCoordinator;
use super::refusal::Refusal;

/// Maximum length of an operator's reason, in characters.
const REASON_CHARS_MAX: usize = 1_000;

/// A request that is answered at once. The answer is sent when everything that it depends on is journaled.
pub(super) trait Handle: Request {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<Self::Answer, Refusal>;
}

/// A request whose answer may need work outside the loop, or events that have not happened yet.
pub(super) trait HandleLater: Request {
    fn handle_later(self, coordinator: &mut ClusterCoordinator, reply: Reply<Self::Answer>);
}

impl<R: Handle<Answer: Send + 'static>> HandleLater for R {
    fn handle_later(self, coordinator: &mut ClusterCoordinator, reply: Reply<R::Answer>) {
        let answer = self.handle(coordinator);
        coordinator.local.afterwards(move || reply.send(answer));
    }
}

/// Where an answer goes. Dropped without an answer when the coordinator ends.
pub(crate) struct Reply<A = FromCoordinator>(Box<dyn FnOnce(Result<A, Refusal>) + Send>);

impl<A: Send + 'static> Reply<A> {
    /// Creates a reply and the receiver of its answer.
    pub(crate) fn channel() -> (Reply<A>, oneshot::Receiver<Result<A, Refusal>>) {
        let (sender, receiver) = oneshot::channel();
        let reply = Reply(Box::new(move |answer| {
            // Fails if the client has disconnected.
            let _ = sender.send(answer);
        }));
        (reply, receiver)
    }

    pub(crate) fn send(self, answer: Result<A, Refusal>) {
        (self.0)(answer);
    }
}

impl Reply<FromCoordinator> {
    /// Returns the reply for an answer of one type.
    fn typed<A: Answer + 'static>(self) -> Reply<A> {
        Reply(Box::new(move |answer| {
            self.send(answer.map(A::into_message));
        }))
    }
}

impl<A> fmt::Debug for Reply<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// The holder of an attempt's logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogHolder {
    /// The data address of its worker, or why it is unavailable.
    pub(crate) address: Result<String, String>,
    /// The end of its standard error, if the coordinator has it.
    pub(crate) stderr: Option<Arc<str>>,
    /// Whether the attempt has ended.
    pub(crate) has_ended: bool,
}

/// A request of a client's connection to the loop.
#[derive(Debug)]
pub(crate) enum LoopRequest {
    /// A client's message with one answer.
    Message(ToCoordinator, Reply),
    Follow {
        job: JobId,
        reply: Reply<Following>,
    },
    /// Finds an attempt's logs.
    LogHolder {
        attempt: AttemptId,
        reply: Reply<LogHolder>,
    },
    /// Reads a job's definition, even if the job has ended.
    Definition {
        job: JobId,
        reply: Reply<Box<Accepted>>,
    },
    /// A chain's connection was closed.
    ReleaseChain {
        chain: u128,
    },
}

impl ClusterCoordinator {
    pub(super) fn answer(&mut self, request: LoopRequest) {
        match request {
            LoopRequest::Message(message, reply) => self.answer_message(message, reply),
            LoopRequest::Follow { job, reply } => self.follow(job, reply),
            LoopRequest::LogHolder { attempt, reply } => self.find_log_holder(attempt, reply),
            LoopRequest::Definition { job, reply } => self.read_definition(job, reply),
            LoopRequest::ReleaseChain { chain } => self.release_chain(chain),
        }
    }

    fn answer_message(&mut self, message: ToCoordinator, reply: Reply) {
        match message {
            ToCoordinator::Submission(request) => self.handle(*request, reply),
            ToCoordinator::HoldChain(request) => self.handle(request, reply),
            ToCoordinator::EndChain(request) => self.handle(request, reply),
            ToCoordinator::ListJobs(request) => self.handle(request, reply),
            ToCoordinator::GetJob(request) => self.handle(request, reply),
            ToCoordinator::KillJob(request) => self.handle(request, reply),
            ToCoordinator::ListTasks(request) => self.handle(request, reply),
            ToCoordinator::CommandTask(request) => self.handle(request, reply),
            ToCoordinator::CommandJob(request) => self.handle(request, reply),
            ToCoordinator::ChangeJob(request) => self.handle(request, reply),
            ToCoordinator::GetOutcomes(request) => self.handle(request, reply),
            ToCoordinator::Explain(request) => self.handle(request, reply),
            ToCoordinator::ListWorkers(request) => self.handle(request, reply),
            ToCoordinator::GetWindow(request) => self.handle(request, reply),
            ToCoordinator::DrainWorker(request) => self.handle(request, reply),
            ToCoordinator::UndrainWorker(request) => self.handle(request, reply),
            ToCoordinator::ListQueues(request) => self.handle(request, reply),
            // The connection of the client serves these.
            ToCoordinator::OfferBlob(_)
            | ToCoordinator::Chunk(_)
            | ToCoordinator::FetchBlob(_)
            | ToCoordinator::RerunJob(_)
            | ToCoordinator::Follow { .. }
            | ToCoordinator::ReadLog(_) => reply.send(Err(Refusal::wrong(
                "protocol error: this request needs its own connection",
            ))),
        }
    }

    fn handle<R>(&mut self, request: R, reply: Reply)
    where
        R: HandleLater<Answer: Send + 'static>,
    {
        request.handle_later(self, reply.typed());
    }
}

/// Refuses a reason that is too long to be kept in journal and history.
pub(super) fn check_reason(reason: &str) -> Result<(), Refusal> {
    if reason.chars().count() > REASON_CHARS_MAX {
        return Err(Refusal::wrong(format!(
            "the reason is too long (limit {REASON_CHARS_MAX} characters); shorten it"
        )));
    }
    Ok(())
}
