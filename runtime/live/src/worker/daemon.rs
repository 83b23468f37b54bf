//! The worker's loop: orders in, reports out.
//!
//! Owns the set of running attempts and the heartbeat for them. Does not own a process: each attempt's supervision does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use napreduce_core::{AttemptId, JobId, Report, TaskKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::attempt::{AttemptEnd, AttemptEvent, AttemptOrder, Supervision};
use crate::body::{MapTask, ReduceTask};
use crate::output::JobPaths;
use crate::process::{Spawner, Variable};
use crate::protocol::{
    AttemptProgress, JobDescription, LaunchWork, ReduceInputs, ReduceWork, TaskDescription, Work, WorkerNews,
    WorkerOrder, WorkerReport,
};
use crate::shuffle::{MapInput, Place};
use crate::task::TaskError;

/// How a worker works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerSettings {
    /// How often it says how far its attempts are.
    pub(crate) heartbeat: Duration,
}

/// A job as the worker knows it.
struct KnownJob {
    description: JobDescription,
    paths: JobPaths,
    /// Empty directories of attempts that have ended. They are given to the next ones by a rename: making and removing one
    /// each time costs a file system as much as starting a process, and ext4 far more, since it searches past every
    /// inode that was freed in the last minutes.
    idle_scratch: Vec<PathBuf>,
}

/// An attempt whose process is not known to be gone.
struct RunningAttempt {
    orders: UnboundedSender<AttemptOrder>,
    /// Bytes consumed and in all, when that changed since the last heartbeat.
    progress: Option<(u64, u64)>,
}

pub(crate) struct Worker {
    settings: WorkerSettings,
    spawner: Arc<Spawner>,
    jobs: BTreeMap<JobId, KnownJob>,
    attempts: BTreeMap<AttemptId, RunningAttempt>,
    news: UnboundedSender<WorkerNews>,
    events: UnboundedSender<(AttemptId, AttemptEvent)>,
}

impl Worker {
    /// Runs until `orders` is closed, and then until every attempt has been killed and is gone.
    pub(crate) async fn run(
        settings: WorkerSettings,
        spawner: Spawner,
        mut orders: UnboundedReceiver<WorkerOrder>,
        news: UnboundedSender<WorkerNews>,
    ) {
        let (events, mut arriving) = unbounded_channel();
        let spawner = Arc::new(spawner);
        let (jobs, attempts) = (BTreeMap::new(), BTreeMap::new());
        let mut worker = Worker { settings, spawner, jobs, attempts, news, events };
        let mut heartbeat = worker.heartbeat_interval();
        let mut open = true;
        while open || !worker.attempts.is_empty() {
            tokio::select! {
                order = orders.recv(), if open => match order {
                    Some(order) => worker.follow(order),
                    None => {
                        open = false;
                        worker.kill_all();
                    }
                },
                // The sender is this worker's own, so the channel stays open.
                Some((attempt, event)) = arriving.recv() => worker.on_attempt_event(attempt, event),
                _ = heartbeat.tick(), if !worker.attempts.is_empty() => worker.beat(),
            }
        }
    }

    fn heartbeat_interval(&self) -> Interval {
        let mut heartbeat = interval(self.settings.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeat
    }

    /// A coordinator that is gone has closed the orders too, which ends this worker.
    fn tell(&self, news: WorkerNews) {
        let _ = self.news.send(news);
    }

    fn report(&self, attempt: AttemptId, report: Report) {
        self.tell(WorkerNews::Report(WorkerReport::Happened { attempt, report }));
    }

    fn follow(&mut self, order: WorkerOrder) {
        match order {
            WorkerOrder::Define(description) => {
                let description = *description;
                let paths = JobPaths::new(&description.output, description.job, &description.part_extension);
                self.jobs.insert(description.job, KnownJob { description, paths, idle_scratch: Vec::new() });
            }
            WorkerOrder::Forget { job } => drop(self.jobs.remove(&job)),
            WorkerOrder::Launch { attempt, work } => self.launch(attempt, work),
            WorkerOrder::Kill { attempt } => self.order(attempt, AttemptOrder::Kill),
            WorkerOrder::Commit { attempt } => self.order(attempt, AttemptOrder::Commit),
            WorkerOrder::MoreInputs { attempt, inputs } => {
                if let Some(job) = self.jobs.get(&attempt.task.job) {
                    self.order(attempt, AttemptOrder::MoreInputs(job.places(inputs)));
                }
            }
            // Sent by coordinators of several workers only.
            WorkerOrder::Leave => {}
        }
    }

    /// An order for an attempt that has ended crossed its report on the way; the report is the answer.
    fn order(&self, attempt: AttemptId, order: AttemptOrder) {
        if let Some(running) = self.attempts.get(&attempt) {
            let _ = running.orders.send(order);
        }
    }

    fn kill_all(&self) {
        for attempt in self.attempts.keys() {
            self.order(*attempt, AttemptOrder::Kill);
        }
    }

    fn launch(&mut self, attempt: AttemptId, work: LaunchWork) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else {
            let error = TaskError::fatal(format!("the worker was not told what {} is", attempt.task.job));
            return self.report(attempt, failed(error));
        };
        let environment = environment(attempt, &work);
        job.pass_on_scratch(attempt);
        let description = job.describe(attempt, work);
        let (orders, inbox) = unbounded_channel();
        let supervision = Supervision {
            description,
            environment,
            spawner: Arc::clone(&self.spawner),
            orders: inbox,
            events: self.events.clone(),
        };
        self.attempts.insert(attempt, RunningAttempt { orders, progress: None });
        tokio::spawn(supervision.run());
    }

    fn on_attempt_event(&mut self, attempt: AttemptId, event: AttemptEvent) {
        match event {
            AttemptEvent::Started => self.report(attempt, Report::Started),
            AttemptEvent::Progressed { bytes_done, bytes_total } => {
                if let Some(running) = self.attempts.get_mut(&attempt) {
                    running.progress = Some((bytes_done, bytes_total));
                }
            }
            AttemptEvent::CommitRequested => self.report(attempt, Report::CommitRequested),
            AttemptEvent::InputsLost { attempts, reason } => {
                self.report(attempt, Report::InputsLost { outputs: attempts, reason });
            }
            AttemptEvent::Ended { end, idle_scratch } => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.idle_scratch.extend(idle_scratch);
                }
                self.on_ended(attempt, end);
            }
        }
    }

    fn on_ended(&mut self, attempt: AttemptId, end: AttemptEnd) {
        self.attempts.remove(&attempt);
        match end {
            AttemptEnd::Done { counters, part } => {
                self.tell(WorkerNews::Report(WorkerReport::Finished { attempt, counters, part }));
            }
            AttemptEnd::Failed(error) => self.report(attempt, failed(error)),
            AttemptEnd::Killed => self.report(attempt, Report::Killed),
        }
    }

    /// Says how far those attempts are that got on since the last time.
    fn beat(&mut self) {
        let mut progress = Vec::new();
        for (attempt, running) in &mut self.attempts {
            if let Some((bytes_done, bytes_total)) = running.progress.take() {
                progress.push(AttemptProgress { attempt: *attempt, bytes_done, bytes_total });
            }
        }
        self.tell(WorkerNews::Progress(progress));
    }
}

impl KnownJob {
    /// Where this worker's attempts find map outputs.
    fn places(&self, inputs: ReduceInputs) -> Vec<MapInput> {
        let place = |attempt| Place::Local(self.paths.segment(attempt));
        let input = |attempt| MapInput { attempt, place: place(attempt) };
        inputs.outputs.into_iter().map(|output| input(output.attempt)).collect()
    }

    /// Gives an attempt the directory of one that has ended. Without one the task process makes its own.
    fn pass_on_scratch(&mut self, attempt: AttemptId) {
        if let Some(idle) = self.idle_scratch.pop() {
            // One that cannot be renamed is left to the end of the job.
            let _ = fs::rename(idle, self.paths.attempt(attempt));
        }
    }

    fn describe(&self, attempt: AttemptId, work: LaunchWork) -> TaskDescription {
        let JobDescription { definition, parameters, reduces, cuts, compress, task_memory, .. } =
            &self.description;
        let scratch = self.paths.attempt(attempt);
        let part = self.paths.part_name(attempt.task);
        let commits = *reduces == 0 || attempt.task.kind == TaskKind::Reduce;
        let output = if commits { scratch.join(&part) } else { self.paths.segment(attempt) };
        let work = match work {
            LaunchWork::Map { split } => Work::Map(MapTask {
                split,
                partitions: *reduces,
                cuts: cuts.clone(),
                compress: *compress,
                output,
                scratch,
            }),
            LaunchWork::Reduce { maps, inputs } => Work::Reduce(ReduceWork {
                task: ReduceTask {
                    partition: attempt.task.index,
                    inputs: Vec::new(),
                    compress: *compress,
                    output,
                    scratch,
                },
                maps,
                inputs: self.places(inputs),
                network: None,
            }),
        };
        TaskDescription {
            attempt,
            definition: definition.clone(),
            parameters: parameters.clone(),
            memory: *task_memory,
            work,
            promote_to: commits.then(|| self.paths.promoted(attempt)),
        }
    }
}

fn environment(attempt: AttemptId, work: &LaunchWork) -> Vec<Variable> {
    let input = match work {
        LaunchWork::Map { split } => Some(split.path.clone().into_os_string()),
        LaunchWork::Reduce { .. } => None,
    };
    vec![
        ("NAPREDUCE_JOB_ID", Some(OsString::from(attempt.task.job.to_string()))),
        ("NAPREDUCE_TASK_ID", Some(OsString::from(attempt.task.to_string()))),
        ("NAPREDUCE_ATTEMPT_ID", Some(OsString::from(attempt.to_string()))),
        ("NAPREDUCE_INPUT_FILE", input),
    ]
}

fn failed(error: TaskError) -> Report {
    Report::Failed { class: error.class, reason: error.message, lost_outputs: error.lost_inputs }
}
