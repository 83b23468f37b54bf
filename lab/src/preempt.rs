//! The comparison of wait, kill, suspend and checkpoint on real tasks. Two jobs share one slot: the low job runs, the
//! high job is submitted at a given progress of the low one, and rules of the trigger scheduler preempt the low
//! one. Primitives and percentages take turns within each repetition, on one cluster (OS-Assisted Task Preemption for
//! Hadoop, section IV).

mod report;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use napreduce_engine::{JobId, Slots, TaskKind, listed};
use napreduce_protocol::{ByteSize, JobDetail, PreemptionEnd, PreemptionSummary, parse_time};
pub use report::{Cell, PreemptReport, TwoJobsRun, Verdict};
use serde::Serialize;

use crate::cluster::{Bench, Cluster, Layout, RECORDINGS, seconds};
use crate::confinement::{Confinement, MemoryLimit, Tier};
use crate::error::cannot;
use crate::jobs::{RecordFile, TaskBody, TimedTask, TimedTasks};
use crate::machine::{Machine, unix_seconds};
use crate::outputs::OutputDigest;
use crate::report::minutes;
use crate::session::Session;
use crate::workspace::RawFile;

listed! {
    /// The treatment of the low job when the high one is submitted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
    #[serde(rename_all = "lowercase")]
    pub enum Strategy {
        Wait = "wait",
        Kill = "kill",
        Suspend = "suspend",
        Checkpoint = "checkpoint",
    }
}

listed! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
    #[serde(rename_all = "lowercase")]
    pub enum JobWeight {
        /// Next to no memory
        Light = "light",
        /// Memory of which two tasks do not fit
        Hungry = "hungry",
    }
}

listed! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
    #[serde(rename_all = "lowercase")]
    pub enum TaskForm {
        /// One map, no reduce
        Map = "map",
        /// One reduce after a map without work
        Reduce = "reduce",
    }
}

#[derive(Clone, Debug, Args)]
pub struct PreemptSettings {
    /// How often each cell is measured; with fewer than 6 there are no intervals and no verdicts
    #[arg(long, value_name = "N", default_value = "6", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Progress of the low job when the high one is submitted, in per cent
    #[arg(long = "at", value_name = "PERCENT,...", value_delimiter = ',', default_value = "10,20,30,40,50,60,70,80,90",
          value_parser = clap::value_parser!(u32).range(1..=99))]
    pub percents: Vec<u32>,
    /// Primitives
    #[arg(
        long = "primitives",
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "wait,kill,suspend,checkpoint"
    )]
    pub strategies: Vec<Strategy>,
    /// Memory of the tasks
    #[arg(
        long = "tasks",
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "light,hungry"
    )]
    pub weights: Vec<JobWeight>,
    /// Kind of the two jobs
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

/// Runs the comparison and writes its report.
pub fn preempt(settings: &PreemptSettings, session: &Session) -> Result<PreemptReport> {
    let hungry = settings.weights.contains(&JobWeight::Hungry);
    let wanted = if hungry {
        settings.limit.swap.bytes()
    } else {
        0
    };
    let mut bench = Bench::new(session, ByteSize::new(wanted + (256 << 20)))?;
    let folder = make_report_folder(settings)?;
    let mut raw = RawFile::create(&folder.join("raw.jsonl"))?;
    let mut report = PreemptReport::new(Machine::describe(), settings);
    for weight in &settings.weights {
        let confinement = match weight {
            JobWeight::Light => None,
            JobWeight::Hungry => {
                let confinement =
                    Confinement::set_up(settings.limit, bench.work.path(), &mut bench.guard);
                session.log(format!("memory-hungry tasks: {}", confinement.tier.line()));
                report.tier = Some(confinement.tier.clone());
                if matches!(confinement.tier, Tier::LightOnly { .. }) {
                    continue;
                }
                Some(confinement)
            }
        };
        let experiment = TwoJobs::new(settings, *weight, confinement.as_ref(), &mut bench)?;
        let cluster = experiment.run(&mut raw, &mut report)?;
        cluster.stop_and_keep(&folder.join(RECORDINGS).join(format!("two-jobs-{weight}")))?;
    }
    bench.end()?;
    report.conclude();
    report.write_with_figures(&folder)?;
    session.log(format!("report: {}", folder.join("report.txt").display()));
    Ok(report)
}

fn make_report_folder(settings: &PreemptSettings) -> Result<PathBuf> {
    let named = settings.report.clone();
    let named =
        named.unwrap_or_else(|| PathBuf::from(format!("nap-lab-preempt-{}", unix_seconds())));
    let path = std::path::absolute(&named).map_err(cannot("find", &named))?;
    fs::create_dir(&path).map_err(cannot("make the folder of the report", &path))?;
    Ok(path)
}

/// Steps of a map and groups of a reduce in a second of work: a task is preempted, and reports progress, between
/// two of them. A reduce reports once in about a thousand groups.
const STEPS_PER_SECOND: f64 = 1_000.0;
const GROUP_MICROS: u64 = 50;
/// The report interval of workers: short, so that the planned progress is met closely.
const HEARTBEAT: Duration = Duration::from_millis(50);
/// A job may take this many times its expected time, plus this much.
const PATIENCE: f64 = 20.0;
const PATIENCE_LEAST: Duration = Duration::from_secs(60);

/// A planned run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    number: u32,
    repetition: u32,
    percent: u32,
    primitive: Strategy,
}

/// Every run in order: all primitives at one per cent, one after another. Each round begins with another primitive.
fn plans(repetitions: u32, percents: &[u32], strategies: &[Strategy]) -> Vec<Plan> {
    let mut plans = Vec::new();
    for repetition in 1..=repetitions {
        for (place, percent) in percents.iter().enumerate() {
            let first = repetition as usize + place;
            for turn in 0..strategies.len() {
                let primitive = strategies[(first + turn) % strategies.len()];
                let number = plans.len() as u32 + 1;
                plans.push(Plan {
                    number,
                    repetition,
                    percent: *percent,
                    primitive,
                });
            }
        }
    }
    plans
}

/// The configuration of the cluster, with the rules of each run.
fn configuration(plans: &[Plan]) -> String {
    let mut rules = String::new();
    for Plan {
        number, primitive, ..
    } in plans
    {
        let low = name("low", *number);
        let high = name("high", *number);
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

/// The runs with tasks of one weight, on one cluster.
struct TwoJobs<'a> {
    settings: &'a PreemptSettings,
    weight: JobWeight,
    session: &'a Session,
    cluster: Cluster<'a>,
    plans: Vec<Plan>,
    tasks: TimedTasks,
    records: RecordFile,
    folder: PathBuf,
}

impl<'a> TwoJobs<'a> {
    fn new(
        settings: &'a PreemptSettings,
        weight: JobWeight,
        confinement: Option<&Confinement>,
        bench: &mut Bench<'a>,
    ) -> Result<TwoJobs<'a>> {
        let plans = plans(
            settings.repetitions,
            &settings.percents,
            &settings.strategies,
        );
        let folder = bench.work.fresh(&format!("two-jobs-{weight}"))?;
        let layout = Layout {
            workers: vec![Slots { map: 1, reduce: 1 }],
            heartbeat: HEARTBEAT,
            configuration: configuration(&plans),
            confinement,
        };
        let work = TimedTask {
            micros: settings.task_time.as_micros() as u64,
            ..TimedTask::default()
        };
        let steps = (settings.task_time.as_secs_f64() * STEPS_PER_SECOND)
            .round()
            .max(1.0) as u64;
        let (steps, maps, reduces) = match settings.form {
            TaskForm::Map => (steps, vec![work], Vec::new()),
            TaskForm::Reduce => (1, vec![TimedTask::default()], vec![work]),
        };
        let tasks = TimedTasks {
            body: Some(TaskBody::Cpu),
            rounds_per_second: bench.rounds_per_second(),
            fill_mib: if weight == JobWeight::Hungry {
                settings.fill.bytes() >> 20
            } else {
                0
            },
            steps,
            group_micros: GROUP_MICROS,
            maps,
            reduces,
        };
        let records = RecordFile::write(folder.join("records"), 1, steps)?;
        let session = bench.session;
        let cluster = bench.start(&folder, &layout)?;
        Ok(TwoJobs {
            settings,
            weight,
            session,
            cluster,
            plans,
            tasks,
            records,
            folder,
        })
    }

    fn run(mut self, raw: &mut RawFile, report: &mut PreemptReport) -> Result<Cluster<'a>> {
        let weight = self.weight;
        let (alone, reference) = self.alone()?;
        self.session
            .log(format!("{weight}: a task alone takes {alone:.2} s"));
        report.alone_seconds.push((weight, alone));
        if let Some(warning) = report.warning() {
            self.session.log(warning);
        }
        let total = self.plans.len();
        for plan in self.plans.clone() {
            let run = self.once(plan, &reference)?;
            let left = (total as f64 - f64::from(plan.number)) * 2.3 * alone;
            self.session.log(format!(
                "{weight} {}/{total}: {} at {} %: high job {:.2} s, both {:.2} s, {}; about {} left",
                plan.number,
                run.primitive,
                run.percent,
                run.sojourn_seconds,
                run.makespan_seconds,
                if run.identical { "outputs right" } else { "OUTPUT DIFFERS" },
                minutes(Duration::from_secs_f64(left)),
            ));
            raw.add(&run)?;
            report.runs.push(run);
        }
        Ok(self.cluster)
    }

    /// Runs a job alone, twice: first to send the program and to warm up. Returns its seconds and its output.
    fn alone(&mut self) -> Result<(f64, OutputDigest)> {
        let mut ran = Vec::new();
        for name in ["warm-up", "alone"] {
            let job = self.submit(name)?;
            let detail = self.cluster.wait(job, self.limit())?;
            ran.push((seconds(&detail), self.digest(name)?));
        }
        let outputs_differ = ran[0].1 != ran[1].1;
        match ran.pop() {
            Some(alone) if !outputs_differ => Ok(alone),
            _ => bail!(
                "two undisturbed runs of one job have different outputs; nothing can be compared"
            ),
        }
    }

    fn once(&mut self, plan: Plan, reference: &OutputDigest) -> Result<TwoJobsRun> {
        let low_name = name("low", plan.number);
        let high_name = name("high", plan.number);
        let low = self.submit(&low_name)?;
        let share = f64::from(plan.percent) / 100.0;
        let limit = self.limit();
        let kind = match self.settings.form {
            TaskForm::Map => TaskKind::Map,
            TaskForm::Reduce => TaskKind::Reduce,
        };
        let seen = self.cluster.until(low, "its progress", limit, |cluster| {
            let tasks = cluster.tasks(low)?;
            let live = tasks.iter().find(|task| task.task.kind == kind).and_then(|task| task.live.first());
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
        let identical =
            self.digest(&low_name)? == *reference && self.digest(&high_name)? == *reference;
        let end = high_end
            .summary
            .ended_millis
            .max(low_end.summary.ended_millis)
            .unwrap_or(0);
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
            used_only: used_only(plan.primitive, &low_end),
            identical,
        })
    }

    fn submit(&mut self, name: &str) -> Result<JobId> {
        self.cluster.submit(
            self.tasks
                .plan(name, &self.records, self.folder.join(name))?,
        )
    }

    /// The digest of an output, which is removed.
    fn digest(&self, name: &str) -> Result<OutputDigest> {
        OutputDigest::take(&self.folder.join(name))
    }

    fn limit(&self) -> Duration {
        PATIENCE_LEAST + self.settings.task_time.mul_f64(PATIENCE)
    }
}

/// Milliseconds from a decision to the free slot.
fn freed_millis(preemption: &PreemptionSummary) -> Option<f64> {
    let freed = preemption.freed_micros?;
    Some(freed.saturating_sub(preemption.requested_micros) as f64 / 1e3)
}

/// Whether the low job was preempted by the chosen primitive and by nothing else.
fn used_only(asked: Strategy, low: &JobDetail) -> bool {
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
    fn plans_have_every_cell_and_rotate_primitives() {
        let plans = plans(4, &[10, 50], &Strategy::ALL);
        assert_eq!(plans.len(), 32);
        for primitive in Strategy::ALL {
            let own = |plan: &&Plan| plan.primitive == primitive;
            assert_eq!(
                plans
                    .iter()
                    .filter(own)
                    .filter(|plan| plan.percent == 10)
                    .count(),
                4
            );
            assert!(
                plans
                    .iter()
                    .step_by(4)
                    .any(|plan| plan.primitive == primitive),
                "{primitive}"
            );
        }
        assert!(
            plans
                .iter()
                .zip(1..)
                .all(|(plan, number)| plan.number == number)
        );
    }

    #[test]
    fn scheduler_reads_the_rules_of_each_run() {
        let plans = plans(1, &[50], &Strategy::ALL);
        let configuration = configuration(&plans);
        let (_, rules) = configuration.split_once("'''\n").unwrap();
        let rules =
            napreduce_schedulers::trigger::read_rules(rules.trim_end().trim_end_matches("'''"))
                .unwrap();
        assert_eq!(rules.len(), 6);
        let suspend = plans
            .iter()
            .find(|plan| plan.primitive == Strategy::Suspend)
            .unwrap()
            .number;
        assert!(configuration.contains(&format!(
            "when submitted(high-{suspend:04}) do suspend(low-{suspend:04})"
        )));
        assert!(configuration.contains(&format!(
            "when finished(high-{suspend:04}) do resume(low-{suspend:04})"
        )));
    }
}
