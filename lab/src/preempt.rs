//! Owns the comparison of wait, kill, suspend and checkpoint on real tasks: what is asked for, in which order
//! the parts run, and where their results go. The two-job experiment and the four ways are modules of their
//! own, and so is the report.

mod cells;
mod four_ways;
mod page;
mod report;
mod two_jobs;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

pub use cells::{Cell, TwoJobsRun, Verdict};
use clap::Args;
pub use four_ways::{Way, WayRun};
use napreduce_engine::listed;
use napreduce_live::{ByteSize, parse_time};
pub use report::{PreemptReport, WayFigures};
use serde::Serialize;

use crate::confinement::{Confinement, MemoryLimit, Tier};
use crate::daemons::nap;
use crate::error::LabError;
use crate::jobs::rounds_per_second;
use crate::live_cluster::{RECORDINGS, guarded_folder};
use crate::machine::{Machine, unix_seconds};
use crate::raw::RawFile;
use crate::session::Session;
use crate::workspace::{WorkError, WorkFolder};

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
    /// How much memory the tasks want.
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
    /// With which tasks: light, hungry; empty leaves the two jobs out
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
    /// Ways of Natjam's experiment: ideal, hard-cap, soft-cap, kill, checkpoint, suspend; empty leaves it out
    #[arg(long, value_name = "NAME,...", default_value = "ideal,hard-cap,soft-cap,kill,checkpoint,suspend",
          value_parser = list::<Way>)]
    pub ways: List<Way>,
    /// Times of Natjam's experiment as a part of the paper's
    #[arg(long, value_name = "FACTOR", default_value = "0.1", value_parser = scale)]
    pub scale: f64,
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

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "write a number such as 0.1".to_owned())?;
    if (0.001..=10.0).contains(&scale) { Ok(scale) } else { Err("choose 0.001 to 10".to_owned()) }
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
///
/// # Errors
/// When a binary is missing, a daemon or a job fails, or something cannot be written, and on an interrupt. An
/// output that differs is part of the report.
pub fn preempt(settings: &PreemptSettings, session: &Session) -> Result<PreemptReport, LabError> {
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
        two_jobs::run(&setting, *weight, confinement.as_ref(), &mut guard, &mut raw, &mut report)?;
    }
    if !settings.ways.is_empty() {
        four_ways::run(&setting, &mut guard, &mut raw, &mut report)?;
    }
    guard.clean_up()?;
    report.conclude();
    page::write(&report, &folder)?;
    session.say(format!("report: {}", folder.join("report.html").display()));
    Ok(report)
}

fn make_report_folder(settings: &PreemptSettings) -> Result<PathBuf, WorkError> {
    let named = settings.report.clone();
    let named = named.unwrap_or_else(|| PathBuf::from(format!("nap-lab-preempt-{}", unix_seconds())));
    let path = std::path::absolute(&named).map_err(WorkError::using("find", &named))?;
    fs::create_dir(&path).map_err(WorkError::using("make the folder of the report", &path))?;
    Ok(path)
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
}
