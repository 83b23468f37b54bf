//! Owns the long search for a preemption that can be told from an output: small jobs of every shape run on a
//! cluster and are preempted at random by an operator with every primitive; each output and each count of
//! records is compared with an undisturbed run. All choices come from one seed; when they take effect depends
//! on the machine.

mod report;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use datagen::output::OutputSettings;
use datagen::text::{self, TextSettings};
use napreduce_engine::{AttemptState, JobId, Slots};
use napreduce_live::{ByteSize, Counter, JobDetail, LiveAttempt, TaskCommand};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
pub use report::{IdentityReport, IdentityRun};

use crate::daemons::nap;
use crate::error::LabError;
use crate::input::GeneratedInputError;
use crate::jobs::{Shape, Work};
use crate::live_cluster::{JobOrder, Layout, LiveCluster, guarded_folder};
use crate::machine::{Machine, unix_seconds};
use crate::outputs::OutputDigest;
use crate::session::Session;
use crate::workspace::remove;

/// Counters that no preemption may change.
const COUNTERS: [&str; 6] = [
    "MAP_INPUT_RECORDS",
    "MAP_OUTPUT_RECORDS",
    "REDUCE_INPUT_GROUPS",
    "REDUCE_INPUT_RECORDS",
    "REDUCE_OUTPUT_RECORDS",
    "BYTES_WRITTEN",
];
/// Between two strokes of the operator.
const STROKE_MILLIS: std::ops::Range<u64> = 5..120;
/// So many strokes, then the job is left to end: kills alone would never let it.
const STROKES: std::ops::Range<u32> = 3..25;
const INPUT_BYTES: u64 = 60_000;
/// Pause of a job for each record or group, in microseconds: it then takes a second or two.
const PAUSE_MICROS: u64 = 400;
const HEARTBEAT: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(180);
const REASON: &str = "identity is searched for a difference";

#[derive(Clone, Debug, Args)]
pub struct IdentitySettings {
    /// Jobs that are preempted
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: u32,
    /// Where the choices start [default: the time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Searches.
///
/// # Errors
/// When a binary is missing, a daemon or a job fails, and on an interrupt. A difference is part of the
/// report.
pub fn identity(settings: &IdentitySettings, session: &Session) -> Result<IdentityReport, LabError> {
    let (nap, seed) = (nap(&session.binaries)?, settings.seed.unwrap_or_else(unix_seconds));
    let (work, mut guard) = guarded_folder(&session.work, ByteSize::new(256 << 20))?;
    session.say(format!("seed {seed}"));
    let folder = work.fresh("identity")?;
    let input = folder.join("in");
    make_input(&input, seed, session)?;
    let layout = Layout {
        workers: vec![Slots { map: 1, reduce: 1 }; 2],
        heartbeat: HEARTBEAT,
        configuration: "[coordinator]\nspeculation = false\n".to_owned(),
        confinement: None,
    };
    let cluster = LiveCluster::start(&folder, &nap, &layout, &mut guard, session)?;
    let random = Pcg64Mcg::seed_from_u64(seed);
    let mut search = Search { cluster, session, folder, input, random, references: Vec::new() };
    let mut report = IdentityReport::new(Machine::describe(), seed);
    for shape in Shape::ALL {
        search.refer(shape)?;
    }
    for round in 1..=settings.rounds {
        let run = search.round(round)?;
        session.say(format!("{round}/{}: {}", settings.rounds, run.line()));
        report.runs.push(run);
    }
    search.cluster.stop()?;
    guard.clean_up()?;
    Ok(report)
}

fn make_input(folder: &Path, seed: u64, session: &Session) -> Result<(), LabError> {
    let mut output = OutputSettings::new(folder);
    output.watch = session.interrupt.watch();
    let mut settings = TextSettings::new(INPUT_BYTES, output);
    settings.seed = seed;
    settings.vocabulary = 500;
    let made = text::generate(&settings).map_err(GeneratedInputError::from);
    session.interrupt.check()?;
    made?;
    Ok(())
}

/// What an undisturbed run gives.
struct Reference {
    shape: Shape,
    output: OutputDigest,
    counts: Vec<(String, u64)>,
}

struct Search<'s> {
    cluster: LiveCluster<'s>,
    session: &'s Session,
    folder: PathBuf,
    input: PathBuf,
    random: Pcg64Mcg,
    references: Vec<Reference>,
}

impl Search<'_> {
    /// Runs a shape without anybody disturbing it, and without its pauses.
    fn refer(&mut self, shape: Shape) -> Result<(), LabError> {
        let (job, output) = self.submit(shape, &format!("{shape}-alone"), 0)?;
        let detail = self.cluster.wait(job, LIMIT)?;
        self.references.push(Reference {
            shape,
            output: OutputDigest::read(&output)?,
            counts: counts(&detail),
        });
        self.session.say(format!("{shape}: undisturbed output known"));
        remove(&output)?;
        Ok(())
    }

    fn submit(&mut self, shape: Shape, name: &str, pause: u64) -> Result<(JobId, PathBuf), LabError> {
        let work = Work { job: shape.to_string(), rounds: 0, pause, fill: 0, seed: 0, times: 0 };
        let output = self.folder.join(name);
        let order = JobOrder {
            reduces: 2,
            split_size: ByteSize::new(INPUT_BYTES / 3),
            task_memory: ByteSize::new(1 << 20),
            ..JobOrder::new(name, work, &self.input, &output)
        };
        Ok((self.cluster.submit(&order)?, output))
    }

    /// One job, preempted at random.
    fn round(&mut self, round: u32) -> Result<IdentityRun, LabError> {
        let shape = Shape::ALL[self.random.random_range(0..Shape::ALL.len())];
        let (job, output) = self.submit(shape, &format!("{shape}-{round}"), PAUSE_MICROS)?;
        let mut refused = 0;
        for _ in 0..self.random.random_range(STROKES) {
            let pause = self.random.random_range(STROKE_MILLIS);
            self.pass(Duration::from_millis(pause))?;
            if !self.cluster.job(job)?.summary.phase.is_active() {
                break;
            }
            refused += self.stroke(job)?;
        }
        let detail = self.let_end(job)?;
        let digest = OutputDigest::take(&output)?;
        let reference = self.references.iter().find(|reference| reference.shape == shape);
        let same_output = reference.is_some_and(|known| known.output == digest);
        let same_counts = reference.is_some_and(|known| known.counts == counts(&detail));
        Ok(IdentityRun::new(round, shape.in_words(), &detail, refused, same_output, same_counts))
    }

    /// Does something to one live attempt, if anything can be done; how many commands were refused.
    fn stroke(&mut self, job: JobId) -> Result<u32, LabError> {
        let tasks = self.cluster.tasks(job)?;
        let live: Vec<&LiveAttempt> = tasks.iter().flat_map(|task| &task.live).collect();
        if live.is_empty() {
            return Ok(0);
        }
        let chosen = live[self.random.random_range(0..live.len())];
        let choices: &[TaskCommand] = match chosen.state {
            // Kills are rarer: they undo what the others have done.
            AttemptState::Running => &[
                TaskCommand::Suspend,
                TaskCommand::Suspend,
                TaskCommand::Suspend,
                TaskCommand::Checkpoint,
                TaskCommand::Checkpoint,
                TaskCommand::Checkpoint,
                TaskCommand::Kill,
            ],
            AttemptState::Suspended => &[
                TaskCommand::Resume,
                TaskCommand::Resume,
                TaskCommand::Resume,
                TaskCommand::Checkpoint,
                TaskCommand::Kill,
            ],
            _ => return Ok(0),
        };
        let command = choices[self.random.random_range(0..choices.len())];
        // The attempt may have gone on to another state since it was looked at.
        Ok(u32::from(self.cluster.client.preempt(chosen.attempt, command, REASON).is_err()))
    }

    /// Resumes what is suspended until the job has ended.
    fn let_end(&mut self, job: JobId) -> Result<JobDetail, LabError> {
        let began = Instant::now();
        loop {
            let detail = self.cluster.job(job)?;
            if !detail.summary.phase.is_active() || began.elapsed() > LIMIT {
                // Says how it failed, or that it is late.
                return self.cluster.wait(job, Duration::from_secs(10));
            }
            let tasks = self.cluster.tasks(job)?;
            for attempt in
                tasks.iter().flat_map(|task| &task.live).filter(|one| one.state == AttemptState::Suspended)
            {
                // One that was told already is refused.
                let _ = self.cluster.client.preempt(attempt.attempt, TaskCommand::Resume, REASON);
            }
            self.pass(Duration::from_millis(50))?;
        }
    }

    fn pass(&self, time: Duration) -> Result<(), LabError> {
        self.session.interrupt.check()?;
        thread::sleep(time);
        Ok(())
    }
}

/// What no preemption may change: counts of records, and whatever the job itself counts.
fn counts(detail: &JobDetail) -> Vec<(String, u64)> {
    let counts = detail.counters.iter();
    let lasting = counts.filter(|(name, _)| COUNTERS.contains(name) || Counter::of_word(name).is_none());
    lasting.map(|(name, value)| (name.to_owned(), value)).collect()
}
