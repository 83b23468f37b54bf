//! `nap sim --recorded`: turns the recorded jobs of a cluster into a workload. Reads the history without locks.

mod costs;
mod place;
mod plan;
mod surroundings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use napreduce_engine::{JobId, Slots, Span};
use napreduce_history::{EndedJob, HistoryFolder};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{ClusterShape, Overheads, SimulatedJob, SimulationSettings};
use serde_json::Value;

use self::costs::MeasuredCosts;
use self::place::RecordedPlace;
pub use self::plan::RecordedTimes;
use self::plan::{Omission, Rebuilt, rebuild};
use self::surroundings::{RecordedPolicy, Surroundings};
use super::arguments::Arguments;
use super::variants::{Subject, Variant};
use crate::format::moment;

/// Maximum tasks of a window: every run keeps them in memory.
const TASKS_MAX: usize = 4_000_000;
/// Maximum work of a window, in microseconds: sums of slot time must not overflow.
const WORK_MAX: u64 = 1 << 60;

/// The recorded jobs of a window.
pub struct Recorded {
    pub name: String,
    /// In order of submission; the first submission is time 0.
    pub jobs: Vec<SimulatedJob>,
    /// The recorded times of each job.
    pub times: Vec<RecordedTimes>,
    policy: Option<RecordedPolicy>,
    machines: Vec<Slots>,
    pub overheads: Overheads,
    /// The first and the last submission, in milliseconds since 1970.
    submitted: (u64, u64),
    /// Limits of the recording, one line each.
    pub remarks: Vec<String>,
}

impl Recorded {
    /// Reads the jobs that the flag names, or only `chosen` ones of them.
    pub fn read(text: &str, chosen: &[JobId]) -> Result<Recorded> {
        let place = RecordedPlace::parse(text)?;
        let folder = HistoryFolder::open(&place.directory)?;
        let (mut window, before) = submissions(&folder, &place)?;
        let mut gathered = Reading {
            still_running: before,
            ..Reading::default()
        };
        if !chosen.is_empty() {
            gathered.not_chosen = choose(&mut window, chosen, folder.path())?;
        }
        let first = window[0].submitted;
        let last = window[window.len() - 1].submitted;
        for submission in &window {
            if let Some(ended) = folder.read(submission.job)? {
                gathered.add(&ended, first)?;
            }
        }
        gathered.finish(text, (first, last))
    }

    /// Formats the first and the last submission.
    pub fn submitted(&self) -> (String, String) {
        (moment(self.submitted.0), moment(self.submitted.1))
    }

    /// Returns the cluster, with the most common slots for all workers.
    pub fn shape(&self) -> ClusterShape {
        let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for slots in &self.machines {
            *counts.entry((slots.map, slots.reduce)).or_default() += 1;
        }
        let most = counts
            .iter()
            .max_by_key(|(_, count)| **count)
            .map_or((1, 1), |(slots, _)| *slots);
        ClusterShape::with_slots(self.machines.len() as u32, most.0, most.1)
    }

    /// Returns the slots of each worker, or nothing if all are alike.
    pub fn unlike_slots(&self) -> Vec<Slots> {
        let alike = self.machines.windows(2).all(|pair| pair[0] == pair[1]);
        if alike {
            Vec::new()
        } else {
            self.machines.clone()
        }
    }

    /// Returns a note for each variant without a file of its own that has other settings than the recording.
    pub fn notes_on_other_settings(
        &self,
        variants: &[Variant],
        arguments: &Arguments,
    ) -> Vec<String> {
        let (Some(policy), Some(own)) = (&self.policy, self.variant()) else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        for variant in variants {
            let Some(configuration) = variant.subject.policy() else {
                continue;
            };
            if variant.label == own.label || variant.configuration.is_some() {
                continue;
            }
            let mut differing = Vec::new();
            let recorded = SchedulerConfiguration {
                scheduler: configuration.scheduler,
                ..policy.configuration.clone()
            };
            if !reads_equal_tables(configuration, &recorded) {
                differing.push(format!("[scheduler.{}]", configuration.scheduler));
            }
            // A flag is no surprise.
            let mut preemption = variant.settings.engine.preemption;
            if variant.primitive.is_some() {
                preemption.primitive = policy.preemption.primitive;
            }
            if arguments.suspended_max.is_some() {
                preemption.suspended_max = policy.preemption.suspended_max;
            }
            if preemption != policy.preemption {
                differing.push("[preemption]".to_owned());
            }
            if !differing.is_empty() {
                let tables = differing.join(" and ");
                notes.push(format!(
                    "{} does not use {tables} of the recording; give the tables with --configuration FILE",
                    variant.label
                ));
            }
        }
        notes
    }

    /// Returns the recorded policy on the recorded cluster, if the policy is known.
    pub fn variant(&self) -> Option<Variant> {
        let policy = self.policy.as_ref()?;
        let shape = self.shape();
        let mut settings = SimulationSettings::new(shape.machines, shape.slots());
        settings.unlike_slots = self.unlike_slots();
        settings.overheads = self.overheads;
        settings.engine.preemption = policy.preemption;
        if settings.reads_progress(&policy.configuration) {
            settings.progress_period = Some(Span::from_secs(1));
        }
        let label = format!("{} as recorded", policy.configuration.scheduler);
        Some(Variant {
            label,
            configuration: None,
            primitive: None,
            subject: Subject::Policy(Box::new(policy.configuration.clone())),
            settings,
        })
    }
}

/// Submission and end of a job, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Submission {
    submitted: u64,
    job: JobId,
    ended: u64,
}

/// Returns whether a policy reads equal tables in two configurations. `composed` and `fcs` read those of their parts.
fn reads_equal_tables(one: &SchedulerConfiguration, other: &SchedulerConfiguration) -> bool {
    if matches!(one.scheduler, SchedulerName::Composed | SchedulerName::Fcs) {
        return one.tables == other.tables;
    }
    let name = one.scheduler.in_words();
    let table = |of: &SchedulerConfiguration| {
        of.tables
            .changed()
            .and_then(|mut all| all.get_mut(name).map(Value::take))
    };
    table(one) == table(other)
}

/// Returns the jobs of a window in order of submission, and the number of earlier jobs that were still running.
/// Fails if the window has no job.
fn submissions(folder: &HistoryFolder, place: &RecordedPlace) -> Result<(Vec<Submission>, usize)> {
    let mut all = Vec::new();
    for &job in folder.jobs() {
        if let Some(summary) = folder.summary(job)? {
            let submitted = summary.submitted_millis;
            all.push(Submission {
                submitted,
                job,
                ended: summary.ended_millis.unwrap_or(submitted),
            });
        }
    }
    all.sort();
    let at =
        |submission: Option<&Submission>| submission.map_or(0, |submission| submission.submitted);
    let first = at(all.first());
    let last = at(all.last());
    let (from, until) = place.window(first)?;
    let known = all.clone();
    all.retain(|submission| (from..until).contains(&submission.submitted));
    ensure!(
        !all.is_empty(),
        "none of the {} jobs in {} was submitted in this window; submissions are from {} to {}",
        known.len(),
        folder.path().display(),
        moment(first),
        moment(last)
    );
    let begin = all[0].submitted;
    let before = known
        .iter()
        .filter(|submission| submission.submitted < from && submission.ended > begin);
    let before = before.count();
    Ok((all, before))
}

/// Removes all but the chosen jobs from a window; returns how many others ran at the same time.
fn choose(window: &mut Vec<Submission>, chosen: &[JobId], folder: &Path) -> Result<usize> {
    if let Some(absent) = chosen
        .iter()
        .find(|job| !window.iter().any(|submission| submission.job == **job))
    {
        bail!(
            "{absent}: not among the jobs of this window in {}; see: nap history serve",
            folder.display()
        );
    }
    let (kept, others): (Vec<Submission>, Vec<Submission>) = window
        .iter()
        .partition(|submission| chosen.contains(&submission.job));
    *window = kept;
    let begin = window[0].submitted;
    let end = window
        .iter()
        .map(|submission| submission.ended)
        .max()
        .unwrap_or(begin);
    Ok(others
        .iter()
        .filter(|submission| submission.submitted < end && submission.ended > begin)
        .count())
}

/// The jobs read so far.
#[derive(Default)]
struct Reading {
    jobs: Vec<SimulatedJob>,
    times: Vec<RecordedTimes>,
    tasks: usize,
    work: u64,
    left_out: BTreeMap<Omission, Vec<JobId>>,
    /// Slot time of the jobs left out, in milliseconds, and of all jobs.
    lost_millis: u64,
    held_millis: u64,
    /// Number of jobs submitted before the window that ended in it.
    still_running: usize,
    /// Number of jobs at the same time that were not chosen.
    not_chosen: usize,
    surroundings: Surroundings,
    costs: MeasuredCosts,
}

impl Reading {
    fn add(&mut self, ended: &EndedJob, begin_millis: u64) -> Result<()> {
        let held = ended.detail.attempts.iter().map(|attempt| {
            attempt
                .ended_millis
                .unwrap_or(attempt.launched_millis)
                .saturating_sub(attempt.launched_millis)
        });
        let held = held.fold(0, u64::saturating_add);
        self.held_millis = self.held_millis.saturating_add(held);
        self.surroundings.add(ended);
        self.costs.add(ended);
        match rebuild(ended, begin_millis)? {
            Rebuilt::Job(rebuilt) => {
                let plan = rebuilt.plan;
                self.tasks += plan.maps.len() + plan.reduces.len();
                let lengths = plan
                    .maps
                    .iter()
                    .map(|map| map.work.0)
                    .chain(plan.reduces.iter().map(|task| task.work().0));
                self.work = lengths.fold(self.work, u64::saturating_add);
                ensure!(
                    self.tasks <= TASKS_MAX && self.work <= WORK_MAX,
                    "too large for one run (limit {TASKS_MAX} tasks, 30,000 years of work); give a shorter window with \
                     @FROM..UNTIL"
                );
                self.jobs.push(plan);
                self.times.push(rebuilt.times);
            }
            Rebuilt::Omitted(why) => {
                self.lost_millis = self.lost_millis.saturating_add(held);
                self.left_out
                    .entry(why)
                    .or_default()
                    .push(ended.detail.summary.job);
            }
        }
        Ok(())
    }

    fn finish(self, name: &str, submitted: (u64, u64)) -> Result<Recorded> {
        let mut remarks = Vec::new();
        let policy = self.surroundings.policy(&mut remarks);
        let machines = self.surroundings.machines(&mut remarks)?;
        for (why, jobs) in &self.left_out {
            remarks.push(format!(
                "{} left out, which {}: {}",
                in_number(jobs.len()),
                why.in_words(),
                listed(jobs)
            ));
        }
        if self.still_running > 0 {
            remarks.push(format!(
                "{} missing, submitted before FROM but still running: the cluster was busier than the simulation",
                in_number(self.still_running)
            ));
        }
        if self.not_chosen > 0 {
            remarks.push(format!(
                "{} missing, not chosen but running at the same time: the cluster was busier than the simulation",
                in_number(self.not_chosen)
            ));
        }
        if self.lost_millis > 0 {
            let percent = self.lost_millis as f64 * 100.0 / self.held_millis.max(1) as f64;
            remarks.push(format!(
                "jobs left out held {percent:.1} % of all slot time"
            ));
        }
        ensure!(
            !self.jobs.is_empty(),
            "{name}: nothing to simulate; {}",
            remarks.join("; ")
        );
        remarks.push(
            "unfinished jobs are left out, submission times are kept, and no map prefers a worker"
                .to_owned(),
        );
        remarks.extend(self.costs.in_words());
        let overheads = self.costs.overheads();
        let Reading { jobs, times, .. } = self;
        Ok(Recorded {
            name: name.to_owned(),
            jobs,
            times,
            policy,
            machines,
            overheads,
            submitted,
            remarks,
        })
    }
}

fn in_number(jobs: usize) -> String {
    if jobs == 1 {
        "1 job is".to_owned()
    } else {
        format!("{jobs} jobs are")
    }
}

/// Formats the first few jobs.
fn listed(jobs: &[JobId]) -> String {
    let mut words: Vec<String> = jobs.iter().take(5).map(JobId::to_string).collect();
    if jobs.len() > words.len() {
        words.push(format!("and {} more", jobs.len() - words.len()));
    }
    words.join(", ")
}
