//! Runs of plans on clusters of their own: one cluster for each run, jobs submitted at their times, followed to
//! their ends, outputs compared with those of undisturbed jobs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use napreduce::program::encode_parameters;
use napreduce_engine::{JobId, Span, Time};
use napreduce_live::{ClusterClient, SubmitOptions};
use napreduce_protocol::requests::ListJobs;
use napreduce_protocol::{ByteSize, CheckpointSupport, JobDetail, JobPlan, Split};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{ClusterShape, SimulatedJob};

use super::plan::{Costs, LivePlan};
use super::report::SlotTimes;
use crate::cluster::{Cluster, Layout, guarded_folder, has_succeeded, nap, new_place};
use crate::error::cannot;
use crate::guard::Guard;
use crate::jobs::{RECORD_BYTES, RECORDS, REPLAYED, REPLAYED_MAPS, TaskBody, records, rounds_per_second};
use crate::outputs::OutputDigest;
use crate::process::Interrupt;
use crate::session::Session;
use crate::workspace::{WorkFolder, remove, write};

/// From the start of a run to its first submission.
const LEAD: Duration = Duration::from_millis(50);
/// Between two looks at all jobs.
const LOOK: Duration = Duration::from_millis(250);
/// Between two words about how far a run is.
const TELL: Duration = Duration::from_secs(10);
/// A run may take so many times what it takes in simulated time, and this much more.
const PATIENCE: u32 = 5;
const PATIENCE_LEAST: Duration = Duration::from_secs(60);
/// The first job of a cluster has every worker fetch the program.
const WARM_UP_MAX: Duration = Duration::from_secs(300);
/// Work of its tasks.
const PROBE: Span = Span::from_millis(100);

#[derive(Debug)]
pub struct Bench<'s> {
    session: &'s Session,
    nap: PathBuf,
    /// Where its folders are, for what else is measured there.
    pub work: WorkFolder,
    guard: Guard,
    body: TaskBody,
    rounds_per_second: u64,
    /// Where the histories of its runs are kept, if they are.
    recordings: Option<PathBuf>,
}

/// What undisturbed jobs write, by name.
pub type References = BTreeMap<String, OutputDigest>;

/// A job of a run. Times in microseconds since the run began.
#[derive(Clone, Debug)]
pub struct LiveJob {
    pub job: SimulatedJob,
    pub submitted: u64,
    pub ended: u64,
    /// Since the run began, too, where it started.
    pub times: SlotTimes,
    pub late: Span,
    pub identical: bool,
}

#[derive(Clone, Debug)]
pub struct LiveRun {
    /// In the order of their submission.
    pub jobs: Vec<LiveJob>,
    /// By how much a submission may have been late.
    pub late_max: Span,
    /// Whether the cluster took the jobs one after another as they are in the plan.
    pub in_order: bool,
}

impl LiveRun {
    pub fn late(&self) -> Span {
        self.jobs.iter().map(|job| job.late).max().unwrap_or_default()
    }

    /// Whether every job came when it should.
    pub fn counts(&self) -> bool {
        self.in_order && self.late() <= self.late_max
    }
}

impl<'s> Bench<'s> {
    /// Makes its folder, which goes with it, and measures the machine when tasks are to calculate.
    pub fn new(body: TaskBody, session: &'s Session) -> Result<Bench<'s>> {
        let nap = nap(&session.binaries)?;
        let (work, guard) = guarded_folder(&session.work, ByteSize::new(512 << 20))?;
        let rounds_per_second = match body {
            TaskBody::Cpu => {
                session.say("measuring how fast this machine is");
                rounds_per_second() as u64
            }
            _ => 0,
        };
        Ok(Bench { session, nap, work, guard, body, rounds_per_second, recordings: None })
    }

    /// From now on, keeps the history of each run in a folder below this one.
    pub fn keep(&mut self, recordings: PathBuf) {
        self.recordings = Some(recordings);
    }

    pub fn end(self) -> Result<()> {
        self.guard.clean_up()
    }

    /// What the jobs write without anybody in their way, and without the time that their outputs do not
    /// depend on.
    pub fn references(&mut self, plan: &LivePlan) -> Result<References> {
        self.session.say(format!("running {} jobs undisturbed, for their outputs", plan.jobs.len()));
        let at_once = |job: &SimulatedJob| SimulatedJob { submit: Time(0), ..job.clone() };
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

    /// One run of a plan, which takes about as long as it is expected to.
    pub fn run(&mut self, plan: &LivePlan, references: &References, expected: Duration) -> Result<LiveRun> {
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
        let folder = self.work.fresh("replay")?;
        let maps = plan.jobs.iter().map(|job| job.maps.len()).max().unwrap_or(0) as u64;
        let maps = maps.max(u64::from(plan.cluster.machines * plan.cluster.map_slots));
        let records_path = folder.join("records");
        write(&records_path, records(maps))?;
        let layout = Layout {
            workers: plan.workers(),
            heartbeat: Duration::from_micros(plan.heartbeat.0),
            configuration: plan.configuration()?,
            confinement: None,
        };
        let cluster = Cluster::start(&folder, &self.nap, &layout, self.session)?;
        let outputs = folder.join("outputs");
        fs::create_dir(&outputs).map_err(cannot("write", &records_path))?;
        let handing = Handing {
            records: &records_path,
            records_length: maps * RECORDS * RECORD_BYTES as u64,
            outputs: &outputs,
            body,
            rounds_per_second: self.rounds_per_second,
        };
        let clients = (0..HANDS).map(|_| cluster.client()).collect::<Result<_, _>>()?;
        let mut running = Running { cluster, clients, session: self.session, plan, handing, expected };
        running.warm_up()?;
        let run = running.all()?;
        match self.recordings.as_ref().filter(|_| body.is_some()) {
            None => running.cluster.stop()?,
            Some(recordings) => {
                let name = format!("{}.{}", plan.policy.scheduler, plan.seed);
                running.cluster.stop_and_keep(&new_place(recordings, &name))?;
            }
        }
        let outputs =
            (0..plan.jobs.len()).map(|number| OutputDigest::read(&outputs.join(number.to_string())));
        let digests = outputs.collect::<Result<_, _>>()?;
        remove(&folder)?;
        Ok((run, digests))
    }
}

struct Running<'a> {
    cluster: Cluster<'a>,
    clients: Vec<ClusterClient>,
    session: &'a Session,
    plan: &'a LivePlan,
    handing: Handing<'a>,
    expected: Duration,
}

impl Running<'_> {
    /// Has every worker get the program: a map for each slot, of which none ends before the others
    /// have begun.
    fn warm_up(&mut self) -> Result<()> {
        let ClusterShape { machines, map_slots, map_machines, .. } = self.plan.cluster;
        let slots = map_machines.unwrap_or(machines) * map_slots;
        let mut job = SimulatedJob::new("warm-up", Time(0)).with_maps(slots, PROBE);
        if self.plan.jobs.iter().any(|job| !job.reduces.is_empty()) {
            let reduces = self.plan.settings(&Costs::default()).slots_in_all().1;
            job = job.with_reduces(reduces as u32, Span(0), PROBE);
        }
        if let Some(first) = self.plan.jobs.first() {
            (job.queue, job.user) = (first.queue.clone(), first.user.clone());
        }
        let handing = Handing { body: Some(TaskBody::Sleep), ..self.handing };
        let warm_up = handing.submit(&mut self.cluster.client, self.plan.jobs.len(), &job)?;
        self.cluster.wait(warm_up, WARM_UP_MAX).map(drop)
    }

    fn all(&mut self) -> Result<LiveRun> {
        let began = Instant::now() + LEAD;
        let began_unix = unix_micros() + LEAD.as_micros() as u64;
        let (session, jobs, expected) = (self.session, &self.plan.jobs, self.expected);
        let mut told = Instant::now();
        let handed = self.handing.hand_in(&mut self.clients, jobs, began, &session.interrupt, |so_far| {
            if told.elapsed() > TELL {
                told = Instant::now();
                tell(session, so_far, jobs.len(), began.elapsed(), expected);
            }
        })?;
        self.wait_for_all(&handed, began)?;
        self.measured(&handed, began_unix)
    }

    fn wait_for_all(&mut self, handed: &[HandedIn], began: Instant) -> Result<()> {
        let limit = self.expected * PATIENCE + PATIENCE_LEAST;
        let mut told = Instant::now();
        loop {
            let summaries = self.cluster.client.ask(ListJobs { limit: handed.len() as u32 + 1 })?;
            let mut active: Vec<JobId> = Vec::new();
            for summary in summaries.into_iter().filter(|one| handed.iter().any(|own| own.job == one.job)) {
                if !has_succeeded(&summary)? {
                    active.push(summary.job);
                }
            }
            let Some(first) = active.first() else { return Ok(()) };
            self.cluster.check()?;
            if began.elapsed() > limit {
                let waited_for = format!("its end, and that of {} more jobs", active.len() - 1);
                bail!("{first} is not where it should be after {limit:?}: {waited_for}");
            }
            if told.elapsed() > TELL {
                told = Instant::now();
                let ended = handed.len() - active.len();
                tell(self.session, ended, handed.len(), began.elapsed(), self.expected);
            }
            thread::sleep(LOOK);
        }
    }

    fn measured(&mut self, handed: &[HandedIn], began_unix: u64) -> Result<LiveRun> {
        let mut jobs = Vec::new();
        for (job, handed) in self.plan.jobs.iter().zip(handed) {
            let detail: JobDetail = self.cluster.job(handed.job)?;
            let since = |millis: u64| (millis * 1_000).saturating_sub(began_unix);
            let mut times = SlotTimes::of(&detail);
            times.started = times.started.map(|started| started.saturating_sub(began_unix));
            let ended = detail
                .summary
                .ended_millis
                .with_context(|| format!("{} has no time of its end", handed.job))?;
            jobs.push(LiveJob {
                job: job.clone(),
                submitted: since(detail.summary.submitted_millis),
                ended: since(ended),
                times,
                late: handed.late,
                identical: false,
            });
        }
        // One that comes later has the higher id.
        let in_order = handed.is_sorted_by_key(|handed| handed.job);
        Ok(LiveRun { jobs, late_max: late_max(self.plan), in_order })
    }
}

fn tell(session: &Session, done: usize, all: usize, passed: Duration, expected: Duration) {
    let left = expected.saturating_sub(passed).as_secs_f64();
    session.say(format!("  {done} of {all} jobs, {:.0} s, about {left:.0} s left", passed.as_secs_f64()));
}

fn unix_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Memory of a task for its records, which are few.
const TASK_MEMORY: u64 = 16 << 20;
/// Connections that jobs are handed in over, by turns: an answer comes when the job is on the disk, and the
/// next job may be due before.
pub const HANDS: usize = 4;
/// Between two jobs of one time.
const APART: Duration = Duration::from_micros(500);
/// The longest sleep without a look at the interrupt.
const SLICE: Duration = Duration::from_millis(20);
/// A submission may be late by this, and by a share of the mean gap.
const LATE_MAX: Span = Span::from_millis(5);
const LATE_SHARE: u64 = 20;

/// When each job is handed in, since the first could be. Those of one time come a little apart, so that the
/// cluster takes them in their order, over whichever connections.
fn times(jobs: &[SimulatedJob]) -> Vec<Duration> {
    let mut before = 0;
    let mut times = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        before = if number > 0 && jobs[number - 1].submit == job.submit { before + 1 } else { 0 };
        times.push(Duration::from_micros(job.submit.0) + APART * before);
    }
    times
}

#[derive(Clone, Copy, Debug)]
pub struct HandedIn {
    pub job: JobId,
    /// How long after its time.
    pub late: Span,
}

#[derive(Clone, Copy, Debug)]
pub struct Handing<'a> {
    /// The records of all maps.
    pub records: &'a Path,
    pub records_length: u64,
    /// Where outputs go, each by the name of its job.
    pub outputs: &'a Path,
    /// Without, no time passes in tasks.
    pub body: Option<TaskBody>,
    pub rounds_per_second: u64,
}

impl Handing<'_> {
    /// Hands in each job at its time since `began`; `meanwhile` hears again and again how many were.
    pub fn hand_in<'a>(
        &self,
        clients: &'a mut [ClusterClient],
        jobs: &[SimulatedJob],
        began: Instant,
        interrupt: &Interrupt,
        mut meanwhile: impl FnMut(usize),
    ) -> Result<Vec<HandedIn>> {
        let (times, so_far) = (times(jobs), AtomicUsize::new(0));
        let one = |client: &mut ClusterClient, number: usize| {
            wait_until(began + times[number], interrupt)?;
            let due = began + Duration::from_micros(jobs[number].submit.0);
            let late = Span(due.elapsed().as_micros() as u64);
            let job = self.submit(client, number, &jobs[number])?;
            so_far.fetch_add(1, Ordering::Relaxed);
            anyhow::Ok((number, HandedIn { job, late }))
        };
        let (one, hands) = (&one, clients.len());
        let mut handed = thread::scope(|scope| {
            let hand = |(turn, client): (usize, &'a mut ClusterClient)| {
                let own = (turn..jobs.len()).step_by(hands);
                let all = move || own.map(|number| one(&mut *client, number)).collect();
                scope.spawn::<_, Result<Vec<_>>>(all)
            };
            let hands: Vec<ScopedJoinHandle<'_, _>> = clients.iter_mut().enumerate().map(hand).collect();
            while !hands.iter().all(ScopedJoinHandle::is_finished) {
                meanwhile(so_far.load(Ordering::Relaxed));
                thread::sleep(SLICE);
            }
            let mut handed = Vec::new();
            for hand in hands {
                handed.extend(hand.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            anyhow::Ok(handed)
        })?;
        handed.sort_by_key(|(number, _)| *number);
        Ok(handed.into_iter().map(|(_, handed)| handed).collect())
    }

    pub fn submit(&self, client: &mut ClusterClient, number: usize, job: &SimulatedJob) -> Result<JobId> {
        let options = SubmitOptions { user: job.user.to_string(), ..SubmitOptions::default() };
        let plan = self.plan(number, job)?;
        Ok(client.submit(plan, &options)?)
    }

    fn plan(&self, number: usize, job: &SimulatedJob) -> Result<JobPlan> {
        let tasks = LivePlan::tasks(job, self.body, self.rounds_per_second);
        let memory = tasks.fill_mib << 20;
        let parameters = encode_parameters(&tasks).map_err(|error| anyhow!("job {}: {error}", job.name))?;
        let length = RECORDS * RECORD_BYTES as u64;
        let split = |map: u64| Split {
            path: self.records.to_owned(),
            offset: map * length,
            length,
            file_length: self.records_length,
            version: None,
        };
        let definition = if job.reduces.is_empty() { REPLAYED_MAPS } else { REPLAYED };
        // Names of jobs may be of any form, so that outputs are numbered.
        Ok(JobPlan {
            name: job.name.to_string(),
            parameters,
            splits: (0..job.maps.len() as u64).map(|map| split(map).into()).collect(),
            reduces: job.reduces.len() as u32,
            attempts_max: job.attempts_max,
            task_memory: TASK_MEMORY.max(memory),
            queue: job.queue.to_string(),
            priority: job.priority,
            deadline: job.deadline.map(|deadline| Duration::from_micros(deadline.0)),
            slowstart_permille: job.slowstart_permille,
            // Its closures keep no state.
            checkpoint: CheckpointSupport { map: true, reduce: true },
            ..JobPlan::new(definition, self.outputs.join(number.to_string()))
        })
    }
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

/// By how much a submission may be late in a run that counts.
pub fn late_max(plan: &LivePlan) -> Span {
    LATE_MAX.max(Span(plan.mean_gap().0 / LATE_SHARE))
}

#[cfg(test)]
mod tests {
    use napreduce_engine::Time;

    use super::*;

    #[test]
    fn a_run_out_of_turn_does_not_count() {
        let run = |in_order| LiveRun { jobs: Vec::new(), late_max: Span(0), in_order };
        assert!(run(true).counts() && !run(false).counts());
    }

    #[test]
    fn jobs_of_one_time_come_a_little_apart() {
        let at = |jobs: &[u64]| {
            let job = |time: &u64| SimulatedJob::new("job", Time(*time));
            let times = times(&jobs.iter().map(job).collect::<Vec<_>>());
            times.iter().map(Duration::as_micros).collect::<Vec<_>>()
        };
        assert_eq!(at(&[0, 0, 0, 9_000, 9_001, 9_001]), [0, 500, 1_000, 9_000, 9_001, 9_501]);
        assert_eq!(at(&[]), [0; 0]);
    }
}
