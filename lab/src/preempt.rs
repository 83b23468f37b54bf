//! The comparison of wait, kill, suspend and checkpoint on real tasks. Two jobs share one slot: the low one runs,
//! the high one comes when the low one is at some per cent, and rules of the trigger scheduler preempt at that.
//! Primitives and per cents take turns within each repetition, on one cluster (OS-Assisted Task Preemption for
//! Hadoop, section IV).

mod report;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use napreduce_engine::{JobId, Slots, listed};
use napreduce_protocol::{ByteSize, JobDetail, PreemptionEnd, PreemptionSummary, parse_time};
pub use report::PreemptReport;
pub use report::{Cell, TwoJobsRun, Verdict};
use serde::Serialize;

use crate::cluster::{Cluster, JobOrder, Layout, RECORDINGS, guarded_folder, nap, seconds};
use crate::confinement::{Confinement, MemoryLimit, Tier};
use crate::error::cannot;
use crate::jobs::{Work, lines, rounds_per_second};
use crate::machine::{Machine, unix_seconds};
use crate::outputs::OutputDigest;
use crate::session::Session;
use crate::workspace::RawFile;
use crate::workspace::{WorkFolder, write};

listed! {
    /// What is done to the low job when the high one comes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Strategy {
        /// Nothing: it ends first.
        Wait = "wait",
        /// Its work is lost.
        Kill = "kill",
        /// It is stopped where it is.
        Suspend = "suspend",
        /// Its work is saved and it exits.
        Checkpoint = "checkpoint",
    }
}

listed! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum JobWeight {
        /// Next to nothing.
        Light = "light",
        /// So much that two of them do not fit.
        Hungry = "hungry",
    }
}

listed! {
    /// Which kind of task the jobs consist of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum TaskForm {
        /// One map, no reduce.
        Map = "map",
        /// One reduce after a map that does nothing.
        Reduce = "reduce",
    }
}

read_by_word!(
    Strategy: "there is no primitive",
    JobWeight: "there is no kind of job",
    TaskForm: "there is no kind of task"
);

#[derive(Clone, Debug, Args)]
pub struct PreemptSettings {
    /// How often each cell is measured; with fewer than 6 there are no intervals and no verdicts
    #[arg(long, value_name = "N", default_value = "6", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Progress of the low job when the high one comes, in per cent
    #[arg(long = "at", value_name = "PERCENT,...", value_delimiter = ',', default_value = "10,20,30,40,50,60,70,80,90",
          value_parser = clap::value_parser!(u32).range(1..=99))]
    pub percents: Vec<u32>,
    /// Which primitives: wait, kill, suspend, checkpoint
    #[arg(
        long = "primitives",
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "wait,kill,suspend,checkpoint"
    )]
    pub strategies: Vec<Strategy>,
    /// With which tasks: light, hungry
    #[arg(long = "tasks", value_name = "NAME,...", default_value = "light,hungry", value_parser = list::<JobWeight>)]
    pub weights: List<JobWeight>,
    /// What the two jobs consist of: one map, or one reduce
    #[arg(long = "kind", value_name = "KIND", default_value = "map")]
    pub form: TaskForm,
    /// How long a task takes alone
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = parse_time)]
    pub task_time: Duration,
    /// Memory of a hungry task
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    pub fill: ByteSize,
    #[command(flatten)]
    pub limit: MemoryLimit,
    /// Folder to create for the report, its figures and the raw measurements [default:
    /// nap-lab-preempt-SECONDS]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
}

/// One argument that lists some, or none: clap takes what is called `Vec` for several arguments.
type List<T> = Vec<T>;

fn list<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<List<T>, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| word.parse::<T>().map_err(|error| error.to_string())).collect()
}

/// What the parts of the comparison share.
struct Setting<'a> {
    settings: &'a PreemptSettings,
    session: &'a Session,
    work: &'a WorkFolder,
    nap: PathBuf,
    /// Rounds of arithmetic that take a second.
    rounds_per_second: f64,
    /// Where the histories of its clusters are kept.
    recordings: PathBuf,
}

/// Runs the comparison and writes its report.
pub fn preempt(settings: &PreemptSettings, session: &Session) -> Result<PreemptReport> {
    let nap = nap(&session.binaries)?;
    let folder = make_report_folder(settings)?;
    let mut raw = RawFile::create(&folder.join("raw.jsonl"))?;
    let hungry = settings.weights.contains(&JobWeight::Hungry);
    let wanted = if hungry { settings.limit.swap.bytes() } else { 0 };
    let (work, mut guard) = guarded_folder(&session.work, ByteSize::new(wanted + (256 << 20)))?;
    session.say("measuring how fast this machine is");
    let recordings = folder.join(RECORDINGS);
    let rounds_per_second = rounds_per_second();
    let setting = Setting { settings, session, work: &work, nap, rounds_per_second, recordings };
    let mut report = PreemptReport::new(Machine::describe(), settings);
    for weight in &settings.weights {
        let confinement = match weight {
            JobWeight::Light => None,
            JobWeight::Hungry => {
                let confinement = Confinement::set_up(settings.limit, work.path(), &mut guard);
                session.say(format!("memory-hungry tasks: {}", confinement.tier.line()));
                report.tier = Some(confinement.tier.clone());
                if matches!(confinement.tier, Tier::LightOnly { .. }) {
                    continue;
                }
                Some(confinement)
            }
        };
        run_two_jobs(&setting, *weight, confinement.as_ref(), &mut raw, &mut report)?;
    }
    guard.clean_up()?;
    report.conclude();
    report.write_with_figures(&folder)?;
    session.say(format!("report: {}", folder.join("report.txt").display()));
    Ok(report)
}

fn make_report_folder(settings: &PreemptSettings) -> Result<PathBuf> {
    let named = settings.report.clone();
    let named = named.unwrap_or_else(|| PathBuf::from(format!("nap-lab-preempt-{}", unix_seconds())));
    let path = std::path::absolute(&named).map_err(cannot("find", &named))?;
    fs::create_dir(&path).map_err(cannot("make the folder of the report", &path))?;
    Ok(path)
}

/// Steps in a second of work: how fine a task can be preempted, and how fine its progress is. A reduce tells
/// its progress each time it has done about a thousand groups.
fn steps_per_second(form: TaskForm) -> f64 {
    match form {
        TaskForm::Map => 1_000.0,
        TaskForm::Reduce => 20_000.0,
    }
}

/// What a light task may use.
const LIGHT_MEMORY: ByteSize = ByteSize::new(16 << 20);
/// How often workers report, so that per cents are met closely.
const HEARTBEAT: Duration = Duration::from_millis(50);
/// A job may take so many times what it should, and this much more.
const PATIENCE: f64 = 20.0;
const PATIENCE_LEAST: Duration = Duration::from_secs(60);

/// One run that is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    number: u32,
    repetition: u32,
    percent: u32,
    primitive: Strategy,
}

/// Every run in the order in which they are done: all primitives at one per cent, one after another,
/// beginning with another one each time, so that no primitive has the same place in every round.
fn plans(repetitions: u32, percents: &[u32], strategies: &[Strategy]) -> Vec<Plan> {
    let mut plans = Vec::new();
    for repetition in 1..=repetitions {
        for (place, percent) in percents.iter().enumerate() {
            let first = repetition as usize + place;
            for turn in 0..strategies.len() {
                let primitive = strategies[(first + turn) % strategies.len()];
                let number = plans.len() as u32 + 1;
                plans.push(Plan { number, repetition, percent: *percent, primitive });
            }
        }
    }
    plans
}

/// The configuration of the cluster: for each run what happens to its low job.
fn configuration(plans: &[Plan]) -> String {
    let mut rules = String::new();
    for Plan { number, primitive, .. } in plans {
        let (low, high) = (name("low", *number), name("high", *number));
        let (preempt, go_on) = match primitive {
            Strategy::Wait => continue,
            Strategy::Kill => ("kill", "launch"),
            Strategy::Suspend => ("suspend", "resume"),
            Strategy::Checkpoint => ("checkpoint", "launch"),
        };
        rules.push_str(&format!("when submitted({high}) do {preempt}({low})\n"));
        rules.push_str(&format!("when finished({high}) do {go_on}({low})\n"));
    }
    format!(
        "[coordinator]\nscheduler = \"trigger\"\nspeculation = false\n\n[scheduler.trigger]\nrules = '''\n{rules}'''\n"
    )
}

fn name(role: &str, number: u32) -> String {
    format!("{role}-{number:04}")
}

/// Runs all of it with tasks of one weight.
fn run_two_jobs(
    setting: &Setting<'_>,
    weight: JobWeight,
    confinement: Option<&Confinement>,
    raw: &mut RawFile,
    report: &mut PreemptReport,
) -> Result<()> {
    let settings = setting.settings;
    let plans = plans(settings.repetitions, &settings.percents, &settings.strategies);
    let folder = setting.work.fresh(&format!("two-jobs-{weight}"))?;
    let layout = Layout {
        workers: vec![Slots { map: 1, reduce: 1 }],
        heartbeat: HEARTBEAT,
        configuration: configuration(&plans),
        confinement,
    };
    let cluster = Cluster::start(&folder, &setting.nap, &layout, setting.session)?;
    let mut experiment = TwoJobs { setting, weight, cluster, folder, reference: None };
    let alone = experiment.alone()?;
    setting.session.say(format!("{weight}: a task alone takes {alone:.2} s"));
    report.alone_seconds.push((weight, alone));
    if let Some(warning) = report.warning() {
        setting.session.say(warning);
    }
    let total = plans.len();
    for plan in &plans {
        let run = experiment.once(plan)?;
        let left = (total as f64 - f64::from(plan.number)) * 2.3 * alone;
        setting.session.say(format!(
            "{weight} {}/{total}: {} at {} %: high job {:.2} s, both {:.2} s, {}; about {} left",
            plan.number,
            run.primitive,
            run.percent,
            run.sojourn_seconds,
            run.makespan_seconds,
            if run.identical { "outputs right" } else { "OUTPUT DIFFERS" },
            minutes(left),
        ));
        raw.add(&run)?;
        report.runs.push(run);
    }
    experiment.cluster.stop_and_keep(&setting.recordings.join(format!("two-jobs-{weight}")))
}

fn minutes(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

struct TwoJobs<'a> {
    setting: &'a Setting<'a>,
    weight: JobWeight,
    cluster: Cluster<'a>,
    folder: PathBuf,
    /// What an undisturbed job writes.
    reference: Option<OutputDigest>,
}

impl TwoJobs<'_> {
    /// Runs a job alone, twice: the first time the program is sent and everything is warmed up. Returns its
    /// seconds.
    fn alone(&mut self) -> Result<f64> {
        write(&self.folder.join("steps.txt"), self.input())?;
        let mut taken = 0.0;
        for name in ["warm-up", "alone"] {
            let job = self.submit(name)?;
            let detail = self.cluster.wait(job, self.limit())?;
            let digest = self.digest(name)?;
            let same = self.reference.as_ref().is_none_or(|reference| *reference == digest);
            if !same {
                bail!(
                    "{job} was run again undisturbed and its output differs; the comparison would mean nothing"
                );
            }
            self.reference = Some(digest);
            taken = seconds(&detail);
        }
        Ok(taken)
    }

    fn once(&mut self, plan: &Plan) -> Result<TwoJobsRun> {
        let (low_name, high_name) = (name("low", plan.number), name("high", plan.number));
        let low = self.submit(&low_name)?;
        let share = f64::from(plan.percent) / 100.0;
        let limit = self.limit();
        let seen = self.cluster.until(low, "its progress", limit, |cluster| {
            let tasks = cluster.tasks(low)?;
            let kind = if tasks.len() > 1 { 1 } else { 0 };
            let live = tasks.get(kind).and_then(|task| task.live.first());
            let seen = live.filter(|attempt| attempt.bytes_total > 0);
            let seen = seen.map(|attempt| attempt.bytes_done as f64 / attempt.bytes_total as f64);
            if seen.is_none() && !cluster.job(low)?.summary.phase.is_active() {
                bail!(
                    "{low} ended before it was seen at {} %; give its task more to do with --task-time",
                    plan.percent
                );
            }
            Ok(seen.filter(|seen| *seen >= share))
        })?;
        let high = self.submit(&high_name)?;
        let high_end = self.cluster.wait(high, limit)?;
        let low_end = self.cluster.wait(low, limit)?;
        let reference = self.reference.clone();
        let identical = reference.as_ref() == Some(&self.digest(&low_name)?)
            && reference.as_ref() == Some(&self.digest(&high_name)?);
        let end = high_end.summary.ended_millis.max(low_end.summary.ended_millis).unwrap_or(0);
        let swapped = low_end.resumes.iter().map(|resume| resume.swapped_bytes);
        Ok(TwoJobsRun {
            experiment: "two-jobs",
            weight: self.weight,
            primitive: plan.primitive,
            percent: plan.percent,
            seen_percent: seen * 100.0,
            repetition: plan.repetition,
            sojourn_seconds: seconds(&high_end),
            makespan_seconds: end.saturating_sub(low_end.summary.submitted_millis) as f64 / 1e3,
            low_attempts: low_end.attempts.len(),
            freed_millis: low_end.preemptions.first().and_then(freed_millis),
            swapped_bytes: swapped.max(),
            as_asked: as_asked(plan.primitive, &low_end),
            identical,
        })
    }

    fn submit(&mut self, name: &str) -> Result<JobId> {
        let settings = self.setting.settings;
        let fill = if self.weight == JobWeight::Hungry { settings.fill.bytes() >> 20 } else { 0 };
        let rounds = self.setting.rounds_per_second / steps_per_second(settings.form);
        let job = match settings.form {
            TaskForm::Map => "steps",
            TaskForm::Reduce => "steps-of-reduces",
        };
        let rounds = rounds.round() as u64;
        let work = Work { job: job.to_owned(), rounds, fill, seed: 7 };
        let (input, output) = (self.folder.join("steps.txt"), self.folder.join(name));
        // What is said of a task's memory is what the worker goes by when it decides whether to move another
        // one's out.
        let task_memory = if self.weight == JobWeight::Hungry { settings.fill } else { LIGHT_MEMORY };
        let order = JobOrder { name: name.to_owned(), work, input, output, task_memory };
        self.cluster.submit(&order)
    }

    /// The fingerprint of an output, which is removed.
    fn digest(&self, name: &str) -> Result<OutputDigest> {
        OutputDigest::take(&self.folder.join(name))
    }

    fn input(&self) -> String {
        let PreemptSettings { task_time, form, .. } = *self.setting.settings;
        let steps = (task_time.as_secs_f64() * steps_per_second(form)).round().max(1.0) as u64;
        match form {
            TaskForm::Map => lines(steps),
            TaskForm::Reduce => format!("0 {steps}\n"),
        }
    }

    fn limit(&self) -> Duration {
        PATIENCE_LEAST + self.setting.settings.task_time.mul_f64(PATIENCE)
    }
}

/// Milliseconds from a decision to the free slot.
fn freed_millis(preemption: &PreemptionSummary) -> Option<f64> {
    let freed = preemption.freed_micros?;
    Some(freed.saturating_sub(preemption.requested_micros) as f64 / 1e3)
}

/// Whether what was done to the low job is what was asked for, and nothing else was done.
fn as_asked(asked: Strategy, low: &JobDetail) -> bool {
    let end = match asked {
        Strategy::Wait => return low.preemptions.is_empty(),
        Strategy::Kill => PreemptionEnd::Killed,
        Strategy::Suspend => PreemptionEnd::Suspended,
        Strategy::Checkpoint => PreemptionEnd::Checkpointed,
    };
    let ended_so = low.preemptions.iter().all(|one| one.end == Some(end));
    !low.preemptions.is_empty() && ended_so && low.restores.iter().all(|one| one.refused.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_others_are_refused() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.in_words().parse(), Ok(strategy));
        }
        let error = "nap".parse::<Strategy>().unwrap_err().to_string();
        assert_eq!(error, "there is no primitive \"nap\"; choose from wait, kill, suspend, checkpoint");
    }

    #[test]
    fn every_primitive_is_tried_at_every_per_cent_and_none_is_always_first() {
        let plans = plans(4, &[10, 50], &Strategy::ALL);
        assert_eq!(plans.len(), 32);
        for primitive in Strategy::ALL {
            let own = |plan: &&Plan| plan.primitive == primitive;
            assert_eq!(plans.iter().filter(own).filter(|plan| plan.percent == 10).count(), 4);
            assert!(plans.iter().step_by(4).any(|plan| plan.primitive == primitive), "{primitive}");
        }
        assert!(plans.iter().zip(1..).all(|(plan, number)| plan.number == number));
    }

    #[test]
    fn the_rules_of_each_run_are_read_by_the_scheduler() {
        let plans = plans(1, &[50], &Strategy::ALL);
        let configuration = configuration(&plans);
        let (_, rules) = configuration.split_once("'''\n").unwrap();
        let rules =
            napreduce_schedulers::trigger::read_rules(rules.trim_end().trim_end_matches("'''")).unwrap();
        assert_eq!(rules.len(), 6);
        let suspend = plans.iter().find(|plan| plan.primitive == Strategy::Suspend).unwrap().number;
        assert!(
            configuration
                .contains(&format!("when submitted(high-{suspend:04}) do suspend(low-{suspend:04})"))
        );
        assert!(
            configuration.contains(&format!("when finished(high-{suspend:04}) do resume(low-{suspend:04})"))
        );
    }
}
