//! Answers about ended jobs, read from the history outside the loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId, TaskKind, WorkerState};
use napreduce_history::{EndedJob, HistoryStore, KeptLog, RecordedCluster, WorkerGroup};
use napreduce_local::coordinator::{CoordinatorState, Following};
use napreduce_protocol::requests::GetWindow;
use napreduce_protocol::{ClusterWindow, JobDetail, JobSummary};
use tokio::sync::watch;

use super::ClusterCoordinator;
use super::configuration::CoordinatorConfiguration;
use super::refusal::Refusal;
use super::requests::{HandleLater, LogHolder, Reply};

/// Reads past states of the cluster outside the loop.
impl HandleLater for GetWindow {
    fn handle_later(self, coordinator: &mut ClusterCoordinator, reply: Reply<ClusterWindow>) {
        let history = Arc::clone(&coordinator.history);
        let tasks = &coordinator.configuration.world.tasks;
        tasks.blocking(move || {
            let window = history.window(self.from_millis, self.until_millis);
            reply.send(Ok(window.bounded()));
        });
    }
}

impl ClusterCoordinator {
    /// Subscribes to a job's progress and end. The end of an ended job is there at once.
    pub(super) fn follow(&mut self, job: JobId, reply: Reply<Following>) {
        if self.local.state().jobs().contains_key(&job) {
            return reply.send(Ok(self.local.follow(job)));
        }
        self.read_ended(job, reply, |ended| {
            let (_, progress) = watch::channel(ended.detail.summary.progress);
            let (_, end) = watch::channel(Some(ended.end));
            Ok(Following { progress, end })
        });
    }

    /// Finds the worker with an attempt's logs.
    pub(super) fn find_log_holder(&self, attempt: AttemptId, reply: Reply<LogHolder>) {
        let job = attempt.task.job;
        let workers = self.data_addresses();
        if let Some(known) = self.local.state().jobs().get(&job) {
            let detail = self.local.detail(known);
            return reply.send(log_holder(&detail, &known.logs, attempt, &workers));
        }
        self.read_ended(job, reply, move |ended| {
            log_holder(&ended.detail, &ended.logs, attempt, &workers)
        });
    }

    /// Reads an ended job outside the loop and answers with the result of `make_answer`.
    pub(super) fn read_ended<T: Send + 'static>(
        &self,
        job: JobId,
        reply: Reply<T>,
        make_answer: impl FnOnce(EndedJob) -> Result<T, Refusal> + Send + 'static,
    ) {
        if !self.history.has(job) {
            let refusal = match self.local.state().unrecorded().get(&job) {
                Some(summary) => details_are_lost(summary),
                None => Refusal::NoSuchJob(job),
            };
            return reply.send(Err(refusal));
        }
        let history = Arc::clone(&self.history);
        let tasks = &self.configuration.world.tasks;
        tasks.blocking(move || {
            let ended = read(history, job);
            reply.send(ended.and_then(make_answer));
        });
    }

    /// Returns the data addresses of present workers by name: a worker may have returned under another number.
    pub(super) fn data_addresses(&self) -> BTreeMap<String, String> {
        let mut addresses = BTreeMap::new();
        for link in self.local.state().links().values() {
            let identity = link.identity();
            addresses
                .entry(identity.name.clone())
                .or_insert_with(|| identity.data_address.clone());
        }
        addresses
    }
}

/// Returns a function that describes the cluster for the history: policy and workers as of now. It is called
/// outside the loop, since it takes too long there.
pub(super) fn recorded_cluster(
    state: &CoordinatorState,
    configuration: &CoordinatorConfiguration,
) -> impl FnOnce() -> RecordedCluster + Send + use<> {
    let scheduler = Arc::clone(&configuration.scheduler);
    let preemption = configuration.preemption;
    // Number of workers by their map and reduce slots.
    let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for worker in state.links().keys() {
        if let Some(worker) = state.view().worker(*worker)
            && worker.state() == WorkerState::Up
        {
            let map_slots = worker.slots(TaskKind::Map);
            let reduce_slots = worker.slots(TaskKind::Reduce);
            *counts.entry((map_slots, reduce_slots)).or_default() += 1;
        }
    }
    move || {
        let mut workers = Vec::new();
        for ((map_slots, reduce_slots), workers_of_group) in counts {
            workers.push(WorkerGroup {
                workers: workers_of_group,
                map_slots,
                reduce_slots,
            });
        }
        let cluster = RecordedCluster {
            scheduler: scheduler.name().to_owned(),
            tables: scheduler.changed_values(),
            preemption: serde_json::to_value(preemption).unwrap_or_default(),
            workers,
        };
        cluster.bounded()
    }
}

fn details_are_lost(ended: &JobSummary) -> Refusal {
    let phase = ended.phase.in_words();
    let why = ended.unrecorded.as_deref().unwrap_or_default();
    Refusal::failed(format_args!(
        "{} has {phase}, but is missing from the history: {why}",
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

fn log_holder(
    detail: &JobDetail,
    logs: &[KeptLog],
    attempt: AttemptId,
    workers: &BTreeMap<String, String>,
) -> Result<LogHolder, Refusal> {
    let known = detail
        .attempts
        .iter()
        .find(|summary| summary.attempt == attempt);
    let Some(summary) = known else {
        return Err(Refusal::wrong(format!("{attempt} does not exist")));
    };
    let address = match workers.get(&summary.worker_name) {
        Some(address) => Ok(address.clone()),
        None => Err(format!(
            "the logs of {attempt} are on {}, which is not connected",
            summary.worker_name
        )),
    };
    let kept_log = logs.iter().find(|log| log.attempt == attempt);
    Ok(LogHolder {
        address,
        stderr: kept_log.map(|log| Arc::clone(&log.stderr)),
        has_ended: summary.ended_millis.is_some(),
    })
}
