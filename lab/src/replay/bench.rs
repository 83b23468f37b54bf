//! Runs of plans, each on its own cluster: jobs are submitted at their times and followed to their ends, and
//! their outputs compared with those of undisturbed jobs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use napreduce_cluster::{ClusterClient, SubmitOptions};
use napreduce_engine::{JobId, Span, Time};
use napreduce_protocol::requests::ListJobs;
use napreduce_protocol::{ByteSize, JobDetail, JobPlan, whole_micros};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{ClusterShape, SimulatedJob};

use super::plan::{Costs, LivePlan};
use super::report::SlotTimes;
use crate::cluster::{Bench, Cluster, Layout, has_succeeded, new_place};
use crate::error::cannot;
use crate::jobs::{RecordFile, STEPS, TaskBody};
use crate::outputs::OutputDigest;
use crate::process::Interrupt;
use crate::session::Session;
use crate::workspace::remove;

/// From the start of a run to its first submission.
const LEAD: Duration = Duration::from_millis(50);
/// Between two polls of all jobs.
const POLL: Duration = Duration::from_millis(250);
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// A run may take this many times its simulated time, plus this much.
const PATIENCE: u32 = 5;
const PATIENCE_LEAST: Duration = Duration::from_secs(60);
/// In the first job of a cluster every worker fetches the program.
const WARM_UP_MAX: Duration = Duration::from_secs(300);
/// Work of the tasks of that job.
const PROBE: Span = Span::from_millis(100);

/// Runs plans live.
#[derive(Debug)]
pub struct Replayer<'s> {
    pub bench: Bench<'s>,
    body: TaskBody,
    /// Where the histories of its runs are kept, if they are.
    pub recordings: Option<PathBuf>,
}

/// The outputs of undisturbed jobs, by name.
pub type References = BTreeMap<String, OutputDigest>;

/// A job of a run. Times in microseconds since the run began.
#[derive(Clone, Debug)]
pub struct LiveJob {
    pub job: SimulatedJob,
    pub submitted: u64,
    pub ended: u64,
    pub times: SlotTimes,
    pub late: Span,
    pub identical: bool,
}

#[derive(Clone, Debug)]
pub struct LiveRun {
    /// In the order of their submission.
    pub jobs: Vec<LiveJob>,
    /// Allowed delay of a submission.
    pub late_max: Span,
    /// Whether the cluster took the jobs in the order of the plan.
    pub in_order: bool,
}

impl LiveRun {
    pub fn late(&self) -> Span {
        self.jobs
            .iter()
            .map(|job| job.late)
            .max()
            .unwrap_or_default()
    }

    /// Whether every job was submitted in order and in time.
    pub fn counts(&self) -> bool {
        self.in_order && self.late() <= self.late_max
    }
}

impl<'s> Replayer<'s> {
    pub fn new(body: TaskBody, session: &'s Session) -> Result<Replayer<'s>> {
        let bench = Bench::new(session, ByteSize::new(512 << 20))?;
        Ok(Replayer {
            bench,
            body,
            recordings: None,
        })
    }

    /// The outputs of the jobs, submitted all at once under FIFO, in tasks that take no time.
    pub fn references(&mut self, plan: &LivePlan) -> Result<References> {
        self.bench.session.log(format!(
            "running {} jobs undisturbed, for their outputs",
            plan.jobs.len()
        ));
        let at_once = |job: &SimulatedJob| SimulatedJob {
            submit: Time(0),
            ..job.clone()
        };
        let undisturbed = LivePlan {
            jobs: plan.jobs.iter().map(at_once).collect(),
            policy: SchedulerConfiguration::named(SchedulerName::Fifo),
            preemption: Default::default(),
            ..plan.clone()
        };
        let (_, digests) = self.on_a_cluster(&undisturbed, None, Duration::from_secs(3_600))?;
        let named = plan.jobs.iter().map(|job| job.name.to_string());
        Ok(named.zip(digests).collect())
    }

    /// One run of a plan, with its simulated time as `expected`.
    pub fn run(
        &mut self,
        plan: &LivePlan,
        references: &References,
        expected: Duration,
    ) -> Result<LiveRun> {
        let (mut run, digests) = self.on_a_cluster(plan, Some(self.body), expected)?;
        for (job, digest) in run.jobs.iter_mut().zip(digests) {
            job.identical = references.get(&*job.job.name) == Some(&digest);
        }
        Ok(run)
    }

    fn on_a_cluster(
        &mut self,
        plan: &LivePlan,
        body: Option<TaskBody>,
        expected: Duration,
    ) -> Result<(LiveRun, Vec<OutputDigest>)> {
        let folder = self.bench.work.fresh("replay")?;
        let maps = plan
            .jobs
            .iter()
            .map(|job| job.maps.len())
            .max()
            .unwrap_or(0) as u64;
        let maps = maps.max(u64::from(plan.cluster.machines * plan.cluster.map_slots));
        let layout = Layout {
            workers: plan.workers(),
            heartbeat: Duration::from_micros(plan.heartbeat.0),
            configuration: plan.configuration()?,
            confinement: None,
        };
        let submission = Submission {
            records: RecordFile::write(folder.join("records"), maps, STEPS)?,
            outputs: folder.join("outputs"),
            rounds_per_second: if body == Some(TaskBody::Cpu) {
                self.bench.rounds_per_second()
            } else {
                0
            },
        };
        fs::create_dir(&submission.outputs).map_err(cannot("make", &submission.outputs))?;
        let cluster = self.bench.start(&folder, &layout)?;
        let clients = (0..CLIENTS)
            .map(|_| cluster.client())
            .collect::<Result<_, _>>()?;
        let session = self.bench.session;
        let mut running = Running {
            cluster,
            clients,
            session,
            plan,
            submission,
            body,
            expected,
        };
        running.warm_up()?;
        let run = running.all()?;
        match self.recordings.as_ref().filter(|_| body.is_some()) {
            None => running.cluster.stop()?,
            Some(recordings) => {
                let name = format!("{}.{}", plan.policy.scheduler, plan.seed);
                running
                    .cluster
                    .stop_and_keep(&new_place(recordings, &name))?;
            }
        }
        let outputs = (0..plan.jobs.len()).map(|number| running.submission.output(number));
        let digests = outputs
            .map(|output| OutputDigest::read(&output))
            .collect::<Result<_, _>>()?;
        remove(&folder)?;
        Ok((run, digests))
    }
}

struct Running<'a> {
    cluster: Cluster<'a>,
    clients: Vec<ClusterClient>,
    session: &'a Session,
    plan: &'a LivePlan,
    submission: Submission,
    body: Option<TaskBody>,
    expected: Duration,
}

impl Running<'_> {
    /// Makes every worker fetch the program: a map for each slot, of which none ends before the others have begun.
    fn warm_up(&mut self) -> Result<()> {
        let ClusterShape {
            machines,
            map_slots,
            map_machines,
            ..
        } = self.plan.cluster;
        let slots = map_machines.unwrap_or(machines) * map_slots;
        let mut job = SimulatedJob::new("warm-up", Time(0)).with_maps(slots, PROBE);
        if self.plan.jobs.iter().any(|job| !job.reduces.is_empty()) {
            let reduces = self.plan.settings(&Costs::default()).total_slots().1;
            job = job.with_reduces(reduces as u32, Span(0), PROBE);
        }
        if let Some(first) = self.plan.jobs.first() {
            (job.queue, job.user) = (first.queue.clone(), first.user.clone());
        }
        let plan = self
            .submission
            .plan(self.plan.jobs.len(), &job, Some(TaskBody::Sleep))?;
        let warm_up = submit(&mut self.cluster.client, plan, &job)?;
        self.cluster.wait(warm_up, WARM_UP_MAX).map(drop)
    }

    fn all(&mut self) -> Result<LiveRun> {
        let began = Instant::now() + LEAD;
        let began_unix = unix_micros() + LEAD.as_micros() as u64;
        let submitted = self.submit_all(began)?;
        self.wait_for_all(&submitted, began)?;
        self.measured(&submitted, began_unix)
    }

    /// Submits each job at its time since `began`, over all clients in turn.
    fn submit_all(&mut self, began: Instant) -> Result<Vec<SubmittedJob>> {
        let session = self.session;
        let jobs = &self.plan.jobs;
        let expected = self.expected;
        let times = times(jobs);
        let so_far = AtomicUsize::new(0);
        let submission = &self.submission;
        let body = self.body;
        let interrupt = &session.interrupt;
        let one = |client: &mut ClusterClient, number: usize| {
            wait_until(began + times[number], interrupt)?;
            let due = began + Duration::from_micros(jobs[number].submit.0);
            let late = Span(due.elapsed().as_micros() as u64);
            let job = submit(
                client,
                submission.plan(number, &jobs[number], body)?,
                &jobs[number],
            )?;
            so_far.fetch_add(1, Ordering::Relaxed);
            anyhow::Ok((number, SubmittedJob { job, late }))
        };
        let one = &one;
        let clients = self.clients.len();
        let mut submitted = thread::scope(|scope| {
            let mut threads: Vec<ScopedJoinHandle<'_, Result<Vec<_>>>> = Vec::new();
            for (turn, client) in self.clients.iter_mut().enumerate() {
                let own = (turn..jobs.len()).step_by(clients);
                threads.push(
                    scope.spawn(move || own.map(|number| one(&mut *client, number)).collect()),
                );
            }
            let mut progress = Progress::new(session, jobs.len(), began, expected);
            while !threads.iter().all(ScopedJoinHandle::is_finished) {
                progress.print(so_far.load(Ordering::Relaxed));
                thread::sleep(SLICE);
            }
            let mut submitted = Vec::new();
            for thread in threads {
                submitted.extend(
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
                );
            }
            anyhow::Ok(submitted)
        })?;
        submitted.sort_by_key(|(number, _)| *number);
        Ok(submitted
            .into_iter()
            .map(|(_, submitted)| submitted)
            .collect())
    }

    fn wait_for_all(&mut self, submitted: &[SubmittedJob], began: Instant) -> Result<()> {
        let limit = self.expected * PATIENCE + PATIENCE_LEAST;
        let mut progress = Progress::new(self.session, submitted.len(), began, self.expected);
        loop {
            let summaries = self.cluster.client.ask(ListJobs {
                limit: submitted.len() as u32 + 1,
            })?;
            let mut active: Vec<JobId> = Vec::new();
            for summary in summaries
                .into_iter()
                .filter(|one| submitted.iter().any(|own| own.job == one.job))
            {
                if !has_succeeded(&summary)? {
                    active.push(summary.job);
                }
            }
            let Some(first) = active.first() else {
                return Ok(());
            };
            self.cluster.check()?;
            if began.elapsed() > limit {
                bail!(
                    "{first} and {} other jobs did not end within {limit:?}",
                    active.len() - 1
                );
            }
            progress.print(submitted.len() - active.len());
            thread::sleep(POLL);
        }
    }

    fn measured(&mut self, submitted: &[SubmittedJob], began_unix: u64) -> Result<LiveRun> {
        let mut jobs = Vec::new();
        for (job, submitted) in self.plan.jobs.iter().zip(submitted) {
            let detail: JobDetail = self.cluster.job(submitted.job)?;
            let since = |millis: u64| (millis * 1_000).saturating_sub(began_unix);
            let mut times = SlotTimes::of(&detail);
            times.started = times
                .started
                .map(|started| started.saturating_sub(began_unix));
            let ended = detail.summary.ended_millis;
            let ended =
                ended.with_context(|| format!("{} has no time of its end", submitted.job))?;
            jobs.push(LiveJob {
                job: job.clone(),
                submitted: since(detail.summary.submitted_millis),
                ended: since(ended),
                times,
                late: submitted.late,
                identical: false,
            });
        }
        // Ids ascend in the order in which the cluster took the jobs.
        let in_order = submitted.is_sorted_by_key(|submitted| submitted.job);
        Ok(LiveRun {
            jobs,
            late_max: late_max(self.plan),
            in_order,
        })
    }
}

/// Prints progress from time to time.
struct Progress<'a> {
    session: &'a Session,
    jobs: usize,
    began: Instant,
    expected: Duration,
    printed: Instant,
}

impl<'a> Progress<'a> {
    fn new(session: &'a Session, jobs: usize, began: Instant, expected: Duration) -> Progress<'a> {
        Progress {
            session,
            jobs,
            began,
            expected,
            printed: Instant::now(),
        }
    }

    fn print(&mut self, done: usize) {
        if self.printed.elapsed() < PROGRESS {
            return;
        }
        self.printed = Instant::now();
        let passed = self.began.elapsed();
        let left = self.expected.saturating_sub(passed).as_secs_f64();
        let jobs = self.jobs;
        let passed = passed.as_secs_f64();
        self.session.log(format!(
            "  {done} of {jobs} jobs, {passed:.0} s, about {left:.0} s left"
        ));
    }
}

fn unix_micros() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    whole_micros(since)
}

/// Connections that submit jobs in turn: an answer waits for the job to be on disk, and the next job may be due
/// before.
const CLIENTS: usize = 4;
/// Between two jobs of one time.
const APART: Duration = Duration::from_micros(500);
/// The longest sleep between two checks of the interrupt.
const SLICE: Duration = Duration::from_millis(20);
/// A submission may be late by this, and by a share of the mean gap.
const LATE_MAX: Span = Span::from_millis(5);
const LATE_SHARE: u64 = 20;

/// When each job is submitted. Jobs of one time are a little apart, so that the cluster takes them in order over
/// several connections.
fn times(jobs: &[SimulatedJob]) -> Vec<Duration> {
    let mut before = 0;
    let mut times = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        before = if number > 0 && jobs[number - 1].submit == job.submit {
            before + 1
        } else {
            0
        };
        times.push(Duration::from_micros(job.submit.0) + APART * before);
    }
    times
}

struct SubmittedJob {
    job: JobId,
    /// How long after its time.
    late: Span,
}

/// The requirements of the plans of a cluster's jobs.
struct Submission {
    records: RecordFile,
    /// Names of jobs may have any characters, so outputs are numbered.
    outputs: PathBuf,
    rounds_per_second: u64,
}

impl Submission {
    fn output(&self, number: usize) -> PathBuf {
        self.outputs.join(number.to_string())
    }

    fn plan(&self, number: usize, job: &SimulatedJob, body: Option<TaskBody>) -> Result<JobPlan> {
        let tasks = LivePlan::tasks(job, body, self.rounds_per_second);
        let plan = tasks.plan(&job.name, &self.records, self.output(number))?;
        Ok(JobPlan {
            attempts_max: job.attempts_max,
            task_memory: plan.task_memory.max(job.memory),
            queue: job.queue.to_string(),
            priority: job.priority,
            deadline: job
                .deadline
                .map(|deadline| Duration::from_micros(deadline.0)),
            slowstart_permille: job.slowstart_permille,
            ..plan
        })
    }
}

fn submit(client: &mut ClusterClient, plan: JobPlan, job: &SimulatedJob) -> Result<JobId> {
    let options = SubmitOptions {
        user: job.user.to_string(),
        ..SubmitOptions::default()
    };
    Ok(client.submit(plan, &options)?)
}

fn wait_until(due: Instant, interrupt: &Interrupt) -> Result<()> {
    loop {
        interrupt.check()?;
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(SLICE));
    }
}

/// The maximum delay of a submission in a run that counts.
fn late_max(plan: &LivePlan) -> Span {
    LATE_MAX.max(Span(plan.mean_gap().0 / LATE_SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_out_of_order_does_not_count() {
        let run = |in_order| LiveRun {
            jobs: Vec::new(),
            late_max: Span(0),
            in_order,
        };
        assert!(run(true).counts() && !run(false).counts());
    }

    #[test]
    fn jobs_of_one_time_are_submitted_apart() {
        let at = |jobs: &[u64]| {
            let job = |time: &u64| SimulatedJob::new("job", Time(*time));
            let times = times(&jobs.iter().map(job).collect::<Vec<_>>());
            times.iter().map(Duration::as_micros).collect::<Vec<_>>()
        };
        assert_eq!(
            at(&[0, 0, 0, 9_000, 9_001, 9_001]),
            [0, 500, 1_000, 9_000, 9_001, 9_501]
        );
        assert_eq!(at(&[]), [0; 0]);
    }
}
