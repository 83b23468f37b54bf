//! Owns how long preempting takes on an otherwise idle cluster: from the decision of the coordinator to the
//! slot verified free (suspend, checkpoint), to the task running again (resume) and to its first new output
//! (restore). One reduce with many small groups is preempted over and over; times are the coordinator's own,
//! so that looking on costs nothing.

mod report;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use napreduce_engine::{AttemptId, AttemptState, JobId, Slots, TaskKind};
use napreduce_live::{ByteSize, JobDetail, PreemptionEnd, TaskCommand, TaskPhase};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
pub use report::{Latencies, LatencyReport};

use crate::daemons::nap;
use crate::error::{LabError, LiveClusterError};
use crate::jobs::{Work, rounds_per_second};
use crate::live_cluster::{JobOrder, Layout, LiveCluster, guarded_folder};
use crate::machine::Machine;
use crate::outputs::OutputDigest;
use crate::session::Session;
use crate::workspace::write;

/// How long one group of the reduce takes.
const GROUPS_PER_SECOND: f64 = 5_000.0;
/// What one sample takes of a job, and how long a job may be: several of them see the task at several ages.
const SAMPLE_SECONDS: f64 = 0.15;
const JOB_SECONDS_LEAST: f64 = 3.0;
const JOB_SECONDS_MOST: f64 = 20.0;
/// Between two preemptions, so that the task is at work again and at another place each time.
const PAUSE_MILLIS: std::ops::Range<u64> = 20..60;
/// A job that is so far is left to end.
const ENOUGH: f64 = 0.9;
const HEARTBEAT: Duration = Duration::from_millis(200);
const LIMIT: Duration = Duration::from_secs(120);
const REASON: &str = "its latency is measured";
const SEED: u64 = 41;

#[derive(Clone, Debug, Args)]
pub struct LatencySettings {
    /// Samples of each kind; a p99 is judged by 100 or more
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
}

/// What is sampled together, since one needs the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    SuspendAndResume,
    CheckpointAndRestore,
}

/// Measures.
///
/// # Errors
/// When a binary is missing, a daemon or a job fails or an output differs, and on an interrupt.
pub fn latency(settings: &LatencySettings, session: &Session) -> Result<LatencyReport, LabError> {
    Measuring::with_cluster(settings, session, |measuring, _| {
        let reference = measuring.reference()?;
        for pair in [Pair::SuspendAndResume, Pair::CheckpointAndRestore] {
            while measuring.report.count(pair) < settings.samples as usize {
                measuring.one_job(pair, settings.samples as usize, &reference)?;
            }
        }
        measuring.report.conclude(settings.samples as usize);
        Ok(measuring.report.clone())
    })
}

struct Measuring<'s> {
    cluster: LiveCluster<'s>,
    session: &'s Session,
    folder: PathBuf,
    rounds: u64,
    jobs: u32,
    random: Pcg64Mcg,
    report: LatencyReport,
}

impl<'s> Measuring<'s> {
    /// Measures on a cluster with one reduce slot that does nothing else.
    fn with_cluster<T>(
        settings: &LatencySettings,
        session: &'s Session,
        measure: impl FnOnce(&mut Measuring<'s>, &Path) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let nap = nap(&session.binaries)?;
        let (work, mut guard) = guarded_folder(&session.work, ByteSize::new(64 << 20))?;
        let folder = work.fresh("latency")?;
        let layout = Layout {
            workers: vec![Slots { map: 1, reduce: 1 }],
            heartbeat: HEARTBEAT,
            configuration: "[coordinator]\nspeculation = false\n".to_owned(),
            confinement: None,
        };
        let job_seconds = f64::from(settings.samples) * SAMPLE_SECONDS;
        let groups = (job_seconds.clamp(JOB_SECONDS_LEAST, JOB_SECONDS_MOST) * GROUPS_PER_SECOND) as u64;
        write(&folder.join("groups.txt"), format!("0 {groups}\n"))?;
        let mut measuring = Measuring {
            cluster: LiveCluster::start(&folder, &nap, &layout, &mut guard, session)?,
            session,
            folder,
            rounds: (rounds_per_second() / GROUPS_PER_SECOND) as u64,
            jobs: 0,
            random: Pcg64Mcg::seed_from_u64(SEED),
            report: LatencyReport::new(Machine::describe()),
        };
        let measured = measure(&mut measuring, &nap)?;
        measuring.cluster.stop()?;
        guard.clean_up()?;
        Ok(measured)
    }

    fn submit(&mut self, rounds: u64) -> Result<(JobId, PathBuf), LabError> {
        self.jobs += 1;
        let name = format!("latency-{}", self.jobs);
        let output = self.folder.join(&name);
        let work = Work { job: "steps-of-reduces".to_owned(), rounds, pause: 0, fill: 0, seed: 0 };
        let order = JobOrder::new(&name, work, &self.folder.join("groups.txt"), &output);
        Ok((self.cluster.submit(&order)?, output))
    }

    /// What the job writes when nobody disturbs it.
    fn reference(&mut self) -> Result<OutputDigest, LabError> {
        self.session.say("running the job undisturbed");
        let (job, output) = self.submit(self.rounds)?;
        self.cluster.wait(job, LIMIT)?;
        Ok(OutputDigest::take(&output)?)
    }

    /// Preempts one job until it is nearly done or there are enough samples; its times are taken from its
    /// history.
    fn one_job(&mut self, pair: Pair, wanted: usize, reference: &OutputDigest) -> Result<(), LabError> {
        let (job, output) = self.submit(self.rounds)?;
        let missing = wanted.saturating_sub(self.report.count(pair));
        for _ in 0..missing {
            let Some(attempt) = self.running(job)? else { break };
            thread::sleep(Duration::from_millis(self.random.random_range(PAUSE_MILLIS)));
            self.preempt(pair, attempt)?;
        }
        let detail = self.cluster.wait(job, LIMIT)?;
        let identical = OutputDigest::take(&output)? == *reference;
        self.report.take(pair, &detail, identical);
        self.session.say(format!(
            "{}: {} of {wanted} samples, {}",
            match pair {
                Pair::SuspendAndResume => "suspend and resume",
                Pair::CheckpointAndRestore => "checkpoint and restore",
            },
            self.report.count(pair).min(wanted),
            if identical { "output right" } else { "OUTPUT DIFFERS" }
        ));
        Ok(())
    }

    /// The running reduce, once it runs and has told of progress; none when the job is nearly done.
    fn running(&mut self, job: JobId) -> Result<Option<AttemptId>, LabError> {
        let found = self.cluster.until(job, "its reduce to run", LIMIT, |cluster| {
            let tasks = cluster.tasks(job)?;
            let reduce = tasks.iter().find(|task| task.task.kind == TaskKind::Reduce);
            let Some(reduce) = reduce else { return Ok(Some(None)) };
            if reduce.state == TaskPhase::Done {
                return Ok(Some(None));
            }
            let live =
                reduce.live.first().filter(|live| live.state == AttemptState::Running && live.bytes_done > 0);
            Ok(live.map(|live| {
                let share = live.bytes_done as f64 / live.bytes_total.max(1) as f64;
                (share < ENOUGH).then_some(live.attempt)
            }))
        })?;
        Ok(found)
    }

    fn preempt(&mut self, pair: Pair, attempt: AttemptId) -> Result<(), LabError> {
        let command = match pair {
            Pair::SuspendAndResume => TaskCommand::Suspend,
            Pair::CheckpointAndRestore => TaskCommand::Checkpoint,
        };
        self.command(attempt, command)?;
        if pair == Pair::CheckpointAndRestore {
            // The task goes on by itself, as another attempt.
            return self.wait_for(attempt.task.job, "the restored attempt", move |detail| {
                detail.restores.iter().any(|one| one.from == attempt && one.restored_micros.is_some())
                    || !detail.summary.phase.is_active()
            });
        }
        let stopped = |detail: &JobDetail| {
            detail
                .preemptions
                .iter()
                .rfind(|one| one.attempt == attempt)
                .is_none_or(|last| last.end.is_some())
        };
        self.wait_for(attempt.task.job, "the stopped attempt", stopped)?;
        let detail = self.cluster.job(attempt.task.job)?;
        let last = detail.preemptions.iter().rfind(|one| one.attempt == attempt).and_then(|last| last.end);
        if last != Some(PreemptionEnd::Suspended) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(self.random.random_range(PAUSE_MILLIS)));
        self.command(attempt, TaskCommand::Resume)?;
        self.wait_for(attempt.task.job, "the resumed attempt", move |detail| {
            let resumes = detail.resumes.iter().filter(|one| one.attempt == attempt);
            resumes.filter(|one| one.resumed_micros.is_some()).count()
                >= detail.preemptions.iter().filter(|one| one.end == Some(PreemptionEnd::Suspended)).count()
        })
    }

    fn command(&mut self, attempt: AttemptId, command: TaskCommand) -> Result<(), LabError> {
        let commanded = self.cluster.client.preempt(attempt, command, REASON);
        Ok(commanded.map_err(LiveClusterError::from)?)
    }

    fn wait_for(
        &mut self,
        job: JobId,
        what: &str,
        holds: impl Fn(&JobDetail) -> bool,
    ) -> Result<(), LabError> {
        self.cluster.until(job, what, LIMIT, |cluster| Ok(holds(&cluster.job(job)?).then_some(())))
    }
}
