//! Answers about ended jobs, read from the history outside the loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId, Reason, ReasonCode, TaskKind, WorkerState};
use napreduce_history::{EndedJob, HistoryStore, KeptLog, RecordedCluster, WorkerGroup};
use napreduce_local::coordinator::{CoordinatorState, Following, Link};
use napreduce_protocol::requests::{Explain, GetJob, GetOutcomes, GetWindow, ListTasks};
use napreduce_protocol::{FromCoordinator, JobDetail, JobSummary, ToCoordinator};

use super::ClusterCoordinator;
use super::configuration::CoordinatorConfiguration;
use super::outcomes::outcomes_of_ended;
use super::requests::{LogHolder, Refusal, Reply, send};

impl ClusterCoordinator {
    /// Returns the job that a request is about, if it has ended or is unknown.
    pub(super) fn ended_job_of(&self, asked: &ToCoordinator) -> Option<JobId> {
        let job = match asked {
            ToCoordinator::GetJob(GetJob { job })
            | ToCoordinator::ListTasks(ListTasks { job: Some(job) })
            | ToCoordinator::GetOutcomes(GetOutcomes { job, .. })
            | ToCoordinator::Explain(Explain { job, .. }) => *job,
            _ => return None,
        };
        (!self.local.state().jobs().contains_key(&job)).then_some(job)
    }

    pub(super) fn answer_about_ended(&self, job: JobId, asked: ToCoordinator, reply: Reply) {
        self.read_ended(job, reply, move |EndedJob { detail, .. }| {
            Ok(match asked {
                ToCoordinator::ListTasks(_) => FromCoordinator::Tasks(detail.tasks()),
                ToCoordinator::GetOutcomes(asked) => {
                    FromCoordinator::Outcomes(outcomes_of_ended(&detail, &asked))
                }
                ToCoordinator::Explain(_) => FromCoordinator::Explained(explain_ended(&detail)),
                _ => FromCoordinator::Job(Box::new(detail)),
            })
        });
    }

    /// Reads past states of the cluster outside the loop.
    pub(super) fn answer_about_window(&self, asked: GetWindow, reply: Reply) {
        let history = Arc::clone(&self.history);
        tokio::task::spawn_blocking(move || {
            let window = history.window(asked.from_millis, asked.until_millis);
            send(
                reply,
                Ok(FromCoordinator::Window(Box::new(window.bounded()))),
            );
        });
    }

    pub(super) fn follow_ended(&self, job: JobId, reply: Reply<Following>) {
        self.read_ended(job, reply, |EndedJob { end, detail, .. }| {
            let (_, progress) = tokio::sync::watch::channel(detail.summary.progress);
            let (_, end) = tokio::sync::watch::channel(Some(end));
            Ok(Following { progress, end })
        });
    }

    pub(super) fn log_holder_of_ended(&self, attempt: AttemptId, reply: Reply<LogHolder>) {
        let workers = self.data_addresses();
        self.read_ended(
            attempt.task.job,
            reply,
            move |EndedJob { detail, logs, .. }| log_holder(&detail, &logs, attempt, &workers),
        );
    }

    /// Reads a job outside the loop and answers with the result of `make`.
    fn read_ended<T: Send + 'static>(
        &self,
        job: JobId,
        reply: Reply<T>,
        make: impl FnOnce(EndedJob) -> Result<T, Refusal> + Send + 'static,
    ) {
        if !self.history.has(job) {
            let refusal = match self.local.state().unrecorded().get(&job) {
                Some(summary) => details_are_lost(summary),
                None => Refusal::NoSuchJob(job),
            };
            return send(reply, Err(refusal));
        }
        let history = Arc::clone(&self.history);
        tokio::task::spawn_blocking(move || send(reply, read(history, job).and_then(make)));
    }

    /// Data addresses of present workers by name: a worker may have returned under another number.
    pub(super) fn data_addresses(&self) -> BTreeMap<String, String> {
        let mut addresses = BTreeMap::new();
        for identity in self.local.state().links().values().map(Link::identity) {
            addresses
                .entry(identity.name.clone())
                .or_insert_with(|| identity.data_address.clone());
        }
        addresses
    }
}

/// Returns a function that describes the job's cluster for the history: policy and workers as of now.
/// Building the description takes too long for the loop.
pub(super) fn recorded_cluster(
    state: &CoordinatorState,
    configuration: &CoordinatorConfiguration,
) -> impl FnOnce() -> RecordedCluster + Send + use<> {
    let scheduler = Arc::clone(&configuration.scheduler);
    let preemption = configuration.preemption;
    let mut groups: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let view = state.view();
    let known = state
        .links()
        .keys()
        .filter_map(|worker| view.worker(*worker));
    for worker in known.filter(|worker| worker.state() == WorkerState::Up) {
        *groups
            .entry((worker.slots(TaskKind::Map), worker.slots(TaskKind::Reduce)))
            .or_default() += 1;
    }
    move || {
        let group = |((map_slots, reduce_slots), workers)| WorkerGroup {
            workers,
            map_slots,
            reduce_slots,
        };
        let cluster = RecordedCluster {
            scheduler: scheduler.name().to_owned(),
            tables: scheduler.changed_values(),
            preemption: serde_json::to_value(preemption).unwrap_or_default(),
            workers: groups.into_iter().map(group).collect(),
        };
        cluster.bounded()
    }
}

fn details_are_lost(ended: &JobSummary) -> Refusal {
    let why = ended.unrecorded.as_deref().unwrap_or_default();
    let how = ended.phase.in_words();
    Refusal::failed(format_args!(
        "{} has {how}, but is missing from the history: {why}",
        ended.job
    ))
}

/// Reads a job. Releases the history before the answer is sent: the receiver may start the next coordinator.
fn read(history: Arc<dyn HistoryStore>, job: JobId) -> Result<EndedJob, Refusal> {
    match history.read(job) {
        Some(Ok(ended)) => Ok(ended),
        Some(Err(why)) => Err(Refusal::failed(format_args!(
            "cannot read the history of {job}: {why}"
        ))),
        None => Err(Refusal::NoSuchJob(job)),
    }
}

/// Finds the worker with an attempt's logs.
pub(super) fn log_holder(
    detail: &JobDetail,
    logs: &[KeptLog],
    attempt: AttemptId,
    workers: &BTreeMap<String, String>,
) -> Result<LogHolder, Refusal> {
    let ran = detail
        .attempts
        .iter()
        .find(|known| known.attempt == attempt);
    let ran = ran.ok_or_else(|| Refusal::wrong(format!("{attempt} does not exist")))?;
    let gone = || {
        format!(
            "the logs of {attempt} are on {}, which is not connected",
            ran.worker_name
        )
    };
    let address = workers.get(&ran.worker_name).cloned().ok_or_else(gone);
    let stderr = logs
        .iter()
        .find(|log| log.attempt == attempt)
        .map(|log| Arc::clone(&log.stderr));
    Ok(LogHolder {
        address,
        stderr,
        has_ended: ran.ended_millis.is_some(),
    })
}

/// Explains a job whose tasks are over, including one whose output is not committed yet.
pub(super) fn explain_ended(detail: &JobDetail) -> Vec<Reason> {
    let job = detail.summary.job;
    let how = detail.summary.phase.in_words();
    let why = detail
        .summary
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"));
    vec![Reason::new(
        ReasonCode::State,
        format!("{job} has ended, {how}{why}"),
    )]
}
