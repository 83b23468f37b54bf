//! Owns runs of plans on clusters of their own: one cluster for each run, jobs handed in at their times and
//! followed to their ends, outputs compared with those of undisturbed jobs. Which plans, and what follows
//! from the runs, belongs to others.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use napreduce_engine::{JobId, Span, Time};
use napreduce_live::{ByteSize, ClusterClient, JobDetail};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{ClusterShape, SimulatedJob};

use super::held::SlotTimes;
use super::plan::LivePlan;
use super::submitter::{HANDS, HandedIn, Handing, late_max};
use crate::daemons::nap;
use crate::error::{LabError, LiveClusterError};
use crate::guard::Guard;
use crate::jobs::{RECORD_BYTES, RECORDS, TaskBody, records, rounds_per_second};
use crate::live_cluster::{Layout, LiveCluster, guarded_folder, has_succeeded, new_place};
use crate::outputs::OutputDigest;
use crate::session::Session;
use crate::workspace::{WorkError, WorkFolder, remove, write};

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

/// Where plans run.
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
    ///
    /// # Errors
    /// When a binary is missing or the folder cannot be made.
    pub fn new(body: TaskBody, session: &'s Session) -> Result<Bench<'s>, LabError> {
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

    /// Has everything cleaned up.
    ///
    /// # Errors
    /// When something is left.
    pub fn end(self) -> Result<(), LabError> {
        Ok(self.guard.clean_up()?)
    }

    /// What the jobs write without anybody in their way, and without the time that their outputs do not
    /// depend on.
    ///
    /// # Errors
    /// When a job fails.
    pub fn references(&mut self, plan: &LivePlan) -> Result<References, LabError> {
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
    ///
    /// # Errors
    /// When a daemon or a job fails, when it takes many times longer, and on an interrupt.
    pub fn run(
        &mut self,
        plan: &LivePlan,
        references: &References,
        expected: Duration,
    ) -> Result<LiveRun, LabError> {
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
    ) -> Result<(LiveRun, Vec<OutputDigest>), LabError> {
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
        let cluster = LiveCluster::start(&folder, &self.nap, &layout, &mut self.guard, self.session)?;
        let outputs = folder.join("outputs");
        fs::create_dir(&outputs).map_err(WorkError::using("write", &records_path))?;
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

/// One run, under way.
struct Running<'a> {
    cluster: LiveCluster<'a>,
    clients: Vec<ClusterClient>,
    session: &'a Session,
    plan: &'a LivePlan,
    handing: Handing<'a>,
    expected: Duration,
}

impl Running<'_> {
    /// Has every worker get the program: a map for each slot, of which none ends before the others
    /// have begun.
    fn warm_up(&mut self) -> Result<(), LabError> {
        let ClusterShape { machines, map_slots, map_machines, .. } = self.plan.cluster;
        let slots = map_machines.unwrap_or(machines) * map_slots;
        let mut job = SimulatedJob::new("warm-up", Time(0)).with_maps(slots, PROBE);
        if self.plan.jobs.iter().any(|job| !job.reduces.is_empty()) {
            let reduces = self.plan.settings(&super::plan::Costs::default()).slots_in_all().1;
            job = job.with_reduces(reduces as u32, Span(0), PROBE);
        }
        if let Some(first) = self.plan.jobs.first() {
            (job.queue, job.user) = (first.queue.clone(), first.user.clone());
        }
        let handing = Handing { body: Some(TaskBody::Sleep), ..self.handing };
        let warm_up = handing.submit(&mut self.cluster.client, self.plan.jobs.len(), &job)?;
        self.cluster.wait_for_end(warm_up, WARM_UP_MAX)
    }

    fn all(&mut self) -> Result<LiveRun, LabError> {
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

    fn wait_for_all(&mut self, handed: &[HandedIn], began: Instant) -> Result<(), LabError> {
        let limit = self.expected * PATIENCE + PATIENCE_LEAST;
        let mut told = Instant::now();
        loop {
            let summaries =
                self.cluster.client.jobs(handed.len() as u32 + 1).map_err(LiveClusterError::from)?;
            let mut active: Vec<JobId> = Vec::new();
            for summary in summaries.into_iter().filter(|one| handed.iter().any(|own| own.job == one.job)) {
                if !has_succeeded(&summary)? {
                    active.push(summary.job);
                }
            }
            let Some(first) = active.first() else { return Ok(()) };
            self.cluster.check()?;
            self.session.interrupt.check()?;
            if began.elapsed() > limit {
                let waited_for = format!("its end, and that of {} more jobs", active.len() - 1);
                return Err(LiveClusterError::Late { job: *first, limit, waited_for }.into());
            }
            if told.elapsed() > TELL {
                told = Instant::now();
                let ended = handed.len() - active.len();
                tell(self.session, ended, handed.len(), began.elapsed(), self.expected);
            }
            thread::sleep(LOOK);
        }
    }

    fn measured(&mut self, handed: &[HandedIn], began_unix: u64) -> Result<LiveRun, LabError> {
        let mut jobs = Vec::new();
        for (job, handed) in self.plan.jobs.iter().zip(handed) {
            let detail: JobDetail = self.cluster.job(handed.job)?;
            let since = |millis: u64| (millis * 1_000).saturating_sub(began_unix);
            let mut times = SlotTimes::of(&detail);
            times.started = times.started.map(|started| started.saturating_sub(began_unix));
            let ended = detail.summary.ended_millis.ok_or_else(|| LiveClusterError::Late {
                job: handed.job,
                limit: self.expected,
                waited_for: "the time of its end".to_owned(),
            })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_out_of_turn_does_not_count() {
        let run = |in_order| LiveRun { jobs: Vec::new(), late_max: Span(0), in_order };
        assert!(run(true).counts() && !run(false).counts());
    }
}
