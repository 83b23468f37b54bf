//! Owns the experiment of two jobs on one slot: the low one runs, the high one comes when the low one is at
//! some per cent, and rules of the trigger scheduler preempt at that. Primitives and per cents take turns
//! within each repetition, on one cluster (OS-Assisted Task Preemption for Hadoop, section IV). What follows
//! from the runs belongs to `cells`.

use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::{JobId, Slots};
use napreduce_live::{ByteSize, JobDetail, PreemptionEnd, PreemptionSummary};

use super::cells::TwoJobsRun;
use super::four_ways::seconds;
use super::report::PreemptReport;
use super::{JobWeight, PreemptSettings, Setting, Strategy, TaskForm};
use crate::confinement::Confinement;
use crate::error::LabError;
use crate::guard::Guard;
use crate::jobs::{Work, lines};
use crate::live_cluster::{JobOrder, Layout, LiveCluster};
use crate::outputs::OutputDigest;
use crate::raw::RawFile;
use crate::workspace::write;

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
pub fn run(
    setting: &Setting<'_>,
    weight: JobWeight,
    confinement: Option<&Confinement>,
    guard: &mut Guard,
    raw: &mut RawFile,
    report: &mut PreemptReport,
) -> Result<(), LabError> {
    let settings = setting.settings;
    let plans = plans(settings.repetitions, &settings.percents, &settings.strategies);
    let folder = setting.work.fresh(&format!("two-jobs-{weight}"))?;
    let layout = Layout {
        workers: vec![Slots { map: 1, reduce: 1 }],
        heartbeat: HEARTBEAT,
        configuration: configuration(&plans),
        confinement,
    };
    let cluster = LiveCluster::start(&folder, &setting.nap, &layout, guard, setting.session)?;
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
    cluster: LiveCluster<'a>,
    folder: PathBuf,
    /// What an undisturbed job writes.
    reference: Option<OutputDigest>,
}

impl TwoJobs<'_> {
    /// Runs a job alone, twice: the first time the program is sent and everything is warmed up. Returns its
    /// seconds.
    fn alone(&mut self) -> Result<f64, LabError> {
        write(&self.folder.join("steps.txt"), self.input())?;
        let mut taken = 0.0;
        for name in ["warm-up", "alone"] {
            let job = self.submit(name)?;
            let detail = self.cluster.wait(job, self.limit())?;
            let digest = self.digest(name)?;
            let same = self.reference.as_ref().is_none_or(|reference| *reference == digest);
            if !same {
                return Err(LabError::Undisturbed { job });
            }
            self.reference = Some(digest);
            taken = seconds(&detail);
        }
        Ok(taken)
    }

    /// One run of both jobs.
    fn once(&mut self, plan: &Plan) -> Result<TwoJobsRun, LabError> {
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
                return Err(LabError::TooShort { job: low, percent: plan.percent });
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

    fn submit(&mut self, name: &str) -> Result<JobId, LabError> {
        let settings = self.setting.settings;
        let fill = if self.weight == JobWeight::Hungry { settings.fill.bytes() >> 20 } else { 0 };
        let rounds = self.setting.rounds_per_second / steps_per_second(settings.form);
        let job = match settings.form {
            TaskForm::Map => "steps",
            TaskForm::Reduce => "steps-of-reduces",
        };
        let rounds = rounds.round() as u64;
        let work = Work { job: job.to_owned(), rounds, pause: 0, fill, seed: 7 };
        let (input, output) = (self.folder.join("steps.txt"), self.folder.join(name));
        // What is said of a task's memory is what the worker goes by when it decides whether to move another
        // one's out.
        let task_memory = if self.weight == JobWeight::Hungry { settings.fill } else { LIGHT_MEMORY };
        let order = JobOrder { task_memory, ..JobOrder::new(name, work, &input, &output) };
        self.cluster.submit(&order)
    }

    /// The fingerprint of an output, which is removed.
    fn digest(&self, name: &str) -> Result<OutputDigest, LabError> {
        Ok(OutputDigest::take(&self.folder.join(name))?)
    }

    fn input(&self) -> String {
        let PreemptSettings { task_time, form, .. } = *self.setting.settings;
        let steps = (task_time.as_secs_f64() * steps_per_second(form)).round().max(1.0) as u64;
        match form {
            TaskForm::Map => lines(steps),
            TaskForm::Reduce => format!("0 {steps}\n"),
        }
    }

    /// How long anything may take.
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
