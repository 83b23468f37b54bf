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

pub use cells::{Cell, TwoJobsRun, Verdict};
pub use four_ways::{Way, WayRun};
use napreduce_core::listed;
use napreduce_live::ByteSize;
pub use report::{PreemptReport, WayFigures};
use serde::Serialize;

use crate::confinement::{Confinement, MemoryLimit, Tier};
use crate::daemons::nap;
use crate::error::LabError;
use crate::jobs::rounds_per_second;
use crate::live_cluster::guarded_folder;
use crate::machine::Machine;
use crate::raw::RawFile;
use crate::session::Session;
use crate::workspace::{WorkError, WorkFolder, WorkSettings};

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

#[derive(Clone, Debug)]
pub struct PreemptSettings {
    /// How often each cell is measured.
    pub repetitions: u32,
    /// How far the low job is when the high one comes, in per cent.
    pub percents: Vec<u32>,
    /// Which primitives are compared.
    pub strategies: Vec<Strategy>,
    /// With which tasks; none leaves the two-job experiment out.
    pub weights: Vec<JobWeight>,
    pub form: TaskForm,
    /// How long a task takes alone.
    pub task_seconds: f64,
    /// Memory of a hungry task.
    pub fill: ByteSize,
    /// What a worker with hungry tasks may use.
    pub limit: MemoryLimit,
    /// Which ways of Natjam's experiment; none leaves it out.
    pub ways: Vec<Way>,
    /// Its times as a part of the paper's.
    pub scale: f64,
    pub binaries: PathBuf,
    pub work: WorkSettings,
    /// The folder of the report, which must not exist.
    pub report: PathBuf,
}

/// What the parts of the comparison share.
struct Setting<'a> {
    settings: &'a PreemptSettings,
    session: &'a Session,
    work: &'a WorkFolder,
    nap: PathBuf,
    /// Rounds of arithmetic that take a second.
    rounds_per_second: f64,
}

/// Runs the comparison and writes its report.
///
/// # Errors
/// When a binary is missing, a daemon or a job fails, or something cannot be written, and on an interrupt. An
/// output that differs is part of the report.
pub fn preempt(settings: &PreemptSettings, session: &Session) -> Result<PreemptReport, LabError> {
    let nap = nap(&settings.binaries)?;
    make_report_folder(settings)?;
    let mut raw = RawFile::create(&settings.report.join("raw.jsonl"))?;
    let hungry = settings.weights.contains(&JobWeight::Hungry);
    let wanted = if hungry { settings.limit.swap.bytes() } else { 0 };
    let (work, mut guard) = guarded_folder(&settings.work, ByteSize::new(wanted + (256 << 20)))?;
    session.say("measuring how fast this machine is");
    let setting = Setting { settings, session, work: &work, nap, rounds_per_second: rounds_per_second() };
    let mut report = PreemptReport::new(Machine::describe(), settings);
    for weight in &settings.weights {
        let confinement = match weight {
            JobWeight::Light => None,
            JobWeight::Hungry => {
                let confinement = Confinement::set_up(settings.limit, work.path(), &mut guard);
                session.say(format!("memory-hungry tasks: {}", confinement.tier().line()));
                report.tier = Some(confinement.tier().clone());
                if matches!(confinement.tier(), Tier::LightOnly { .. }) {
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
    page::write(&report, &settings.report)?;
    session.say(format!("report: {}", settings.report.join("report.html").display()));
    Ok(report)
}

fn make_report_folder(settings: &PreemptSettings) -> Result<(), LabError> {
    let path = &settings.report;
    fs::create_dir(path).map_err(WorkError::using("make the folder of the report", path))?;
    Ok(())
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
