//! The report of a replay: a row for each job with the columns of `nap sim --results`, the results of each policy, and
//! the agreement of live and simulated runs. The coordinator records the live values.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::Path;

use anyhow::Result;
use napreduce_engine::{AttemptId, Span, TaskId, TaskKind};
use napreduce_protocol::{AttemptSummary, JobDetail, PreemptionEnd};
use napreduce_schedulers::SchedulerName;
use napreduce_sim::{ClusterShape, Ending, Run};
use serde::Serialize;

use super::bench::{LiveJob, LiveRun};
use super::plan::Costs;
use super::plan::Scale;
use crate::error::cannot;
use crate::jobs::TaskBody;
use crate::machine::Machine;
use crate::report::{Report, table};

#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    pub experiment: &'static str,
    pub machine: Machine,
    pub workload: String,
    pub scale: Scale,
    pub cluster: ClusterShape,
    pub body: TaskBody,
    /// The scaled intervals of each policy.
    pub intervals: Vec<(SchedulerName, Vec<String>)>,
    /// The costs of the simulations.
    pub costs: Costs,
    pub runs: Vec<ReplayRun>,
    pub agreements: Vec<(SchedulerName, Agreement)>,
    /// Whether it was not interrupted.
    pub complete: bool,
}

/// One run. Times in seconds, at the live scale.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayRun {
    pub scheduler: SchedulerName,
    pub repetition: u32,
    pub seed: u64,
    pub jobs: usize,
    pub mean_sojourn: f64,
    pub simulated_mean_sojourn: f64,
    pub makespan: f64,
    pub preemptions: u64,
    /// How late the latest submission was.
    pub late: f64,
    pub late_max: f64,
    /// Whether every job was submitted in order and in time.
    pub counts: bool,
    /// Whether every output equals that of the undisturbed job.
    pub identical: bool,
}

impl Report for ReplayReport {
    /// Whether every output is right, and every policy has a run that counts.
    fn succeeded(&self) -> bool {
        let counted = |scheduler: SchedulerName| {
            self.runs
                .iter()
                .any(|run| run.scheduler == scheduler && run.counts)
        };
        self.runs.iter().all(|run| run.identical)
            && self.runs.iter().all(|run| counted(run.scheduler))
            && !self.runs.is_empty()
    }

    fn table(&self) -> String {
        let ClusterShape {
            machines,
            map_slots,
            reduce_slots,
            map_machines,
            ..
        } = self.cluster;
        let mut text = format!("{}\n\n", self.machine.line());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}, times / {}, tasks and bytes / {}, on {machines} workers with {map_slots} map and {reduce_slots} reduce slots{}",
            self.workload,
            self.scale.time,
            self.scale.tasks,
            map_machines.map_or(String::new(), |apart| format!(
                " ({apart} with map slots alone, the others with reduce slots)"
            )),
        );
        for (scheduler, intervals) in &self.intervals {
            let _ = writeln!(text, "{scheduler}: {}", intervals.join(", "));
        }
        let Costs {
            launch,
            suspend,
            resume,
            checkpoint_write,
            checkpoint_read,
        } = self.costs;
        let millis = |span: Span| span.0 as f64 / 1e3;
        let _ = writeln!(
            text,
            "simulated with: launch {} ms, suspend {} ms, resume {} ms, checkpoint {} ms, restore {} ms more\n",
            millis(launch),
            millis(suspend),
            millis(resume),
            millis(checkpoint_write),
            millis(checkpoint_read)
        );
        let figures = [
            "jobs",
            "mean sojourn",
            "simulated",
            "makespan",
            "preemptions",
            "latest",
            "",
            "outputs",
        ];
        let rows = self.runs.iter().map(ReplayRun::row).collect();
        let _ = writeln!(text, "{}\n", table(&["run"], &figures, rows));
        for (scheduler, agreement) in &self.agreements {
            let _ = writeln!(text, "{scheduler}: {}", agreement.line());
        }
        for (scheduler, _) in &self.intervals {
            if !self
                .agreements
                .iter()
                .any(|(judged, _)| judged == scheduler)
            {
                let _ = writeln!(text, "{scheduler}: no run counts, so agreement is unknown");
            }
        }
        if !self.complete {
            let _ = writeln!(text, "interrupted: this report has the finished runs only");
        }
        text
    }
}

impl ReplayRun {
    fn row(&self) -> Vec<String> {
        vec![
            format!("{} {}", self.scheduler, self.repetition),
            self.jobs.to_string(),
            format!("{:.3} s", self.mean_sojourn),
            format!("{:.3} s", self.simulated_mean_sojourn),
            format!("{:.2} s", self.makespan),
            self.preemptions.to_string(),
            format!("{:.1} ms", self.late * 1e3),
            if self.counts {
                "counts"
            } else {
                "TOO LATE: does not count"
            }
            .to_owned(),
            if self.identical { "right" } else { "DIFFER" }.to_owned(),
        ]
    }
}

/// Live over simulated means in this range agree.
pub const BAND: [f64; 2] = [0.9, 1.1];

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Agreement {
    pub all: MeanRatio,
    /// By class, if there are several.
    pub classes: BTreeMap<String, MeanRatio>,
    pub agrees: bool,
}

/// Mean sojourns in seconds, and their ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanRatio {
    pub jobs: usize,
    pub live: f64,
    pub simulated: f64,
    pub ratio: f64,
}

impl MeanRatio {
    fn of(pairs: &[(f64, f64)]) -> MeanRatio {
        let mean = |of: fn(&(f64, f64)) -> f64| {
            pairs.iter().map(of).sum::<f64>() / pairs.len().max(1) as f64
        };
        let live = mean(|pair| pair.0);
        let simulated = mean(|pair| pair.1);
        MeanRatio {
            jobs: pairs.len(),
            live,
            simulated,
            ratio: live / simulated,
        }
    }

    fn agrees(self) -> bool {
        (BAND[0]..=BAND[1]).contains(&self.ratio)
    }
}

impl Agreement {
    /// `None` without jobs in both.
    pub fn of(runs: &[(&LiveRun, &Run)]) -> Option<Agreement> {
        let mut pairs: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (live, simulated) in runs {
            for job in &live.jobs {
                let Some(other) = simulated.job(&job.job.name) else {
                    continue;
                };
                let sojourn = job.ended.saturating_sub(job.submitted) as f64 / 1e6;
                let pair = (sojourn, other.sojourn().0 as f64 / 1e6);
                pairs
                    .entry(job.job.class.to_string())
                    .or_default()
                    .push(pair);
            }
        }
        Agreement::of_pairs(&pairs)
    }

    /// From pairs of live and simulated sojourns by class.
    pub(crate) fn of_pairs(pairs: &BTreeMap<String, Vec<(f64, f64)>>) -> Option<Agreement> {
        let every: Vec<(f64, f64)> = pairs.values().flatten().copied().collect();
        if every.is_empty() {
            return None;
        }
        let all = MeanRatio::of(&every);
        let mut classes: BTreeMap<String, MeanRatio> = pairs
            .iter()
            .map(|(class, pairs)| (class.clone(), MeanRatio::of(pairs)))
            .collect();
        if classes.len() == 1 {
            classes.clear();
        }
        Some(Agreement {
            all,
            classes,
            agrees: all.agrees(),
        })
    }

    /// The ratio, if it is outside the range, and those of classes outside it, as text; `None` if all are inside.
    pub(crate) fn outside(&self) -> Option<String> {
        let own = (!self.agrees).then(|| format!("{:.3}", self.all.ratio));
        let all: Vec<String> = own.into_iter().chain(self.classes_outside()).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    fn classes_outside(&self) -> Vec<String> {
        let outside = self
            .classes
            .iter()
            .filter(|(_, of_class)| !of_class.agrees());
        outside
            .map(|(class, of_class)| format!("{class} {:.3}", of_class.ratio))
            .collect()
    }

    /// The ratio and the classes that disagree, as text.
    pub fn line(&self) -> String {
        let MeanRatio {
            live,
            simulated,
            ratio,
            ..
        } = self.all;
        let head = format!("live {live:.3} s, simulated {simulated:.3} s, ratio {ratio:.3}");
        let [least, most] = BAND;
        let beyond = self.classes_outside();
        match (self.agrees, beyond.is_empty()) {
            (true, true) => format!("{head}: they agree ({least} to {most})"),
            (true, false) => {
                format!(
                    "{head}: they agree ({least} to {most}), but not in {}",
                    beyond.join(", ")
                )
            }
            (false, true) => format!("{head}: OUTSIDE {least} to {most}"),
            (false, false) => format!(
                "{head}: OUTSIDE {least} to {most}, in {}",
                beyond.join(", ")
            ),
        }
    }
}

/// A job of a run. Times in seconds since the run began, at the live scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayLine {
    scheduler: SchedulerName,
    seed: u64,
    job: String,
    class: String,
    ending: Ending,
    submitted: f64,
    /// When an attempt of it was first launched.
    started: Option<f64>,
    ended: f64,
    sojourn: f64,
    /// A list schedule of its tasks with the cost of starting them, as in the simulator.
    alone: f64,
    slowdown: f64,
    deadline: Option<f64>,
    maps: usize,
    reduces: usize,
    reduce_wait: Option<f64>,
    reduce_idle_share: Option<f64>,
    suspends: u64,
    checkpoints: u64,
    kills: u64,
    wasted: f64,
    repetition: u32,
    /// Delay of its submission.
    late: f64,
    /// Whether its output equals that of the undisturbed job.
    identical: bool,
    /// Its sojourn in simulated time.
    simulated: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
pub struct RunName {
    pub scheduler: SchedulerName,
    pub seed: u64,
    pub repetition: u32,
}

impl ReplayLine {
    pub fn of(live: &LiveJob, run: RunName, simulated: &Run) -> ReplayLine {
        let RunName {
            scheduler,
            seed,
            repetition,
        } = run;
        let times = &live.times;
        let simulated = simulated.job(&live.job.name);
        let sojourn = seconds(live.ended.saturating_sub(live.submitted));
        let alone = simulated.map_or(0.0, |one| seconds(one.alone.0));
        let reduces = live.job.reduces.len();
        ReplayLine {
            scheduler,
            seed,
            job: live.job.name.to_string(),
            class: live.job.class.to_string(),
            // Another ending is an error of the run.
            ending: Ending::Succeeded,
            submitted: seconds(live.submitted),
            started: times.started.map(seconds),
            ended: seconds(live.ended),
            sojourn,
            alone,
            slowdown: if alone > 0.0 { sojourn / alone } else { 1.0 },
            deadline: live
                .job
                .deadline
                .map(|Span(deadline)| seconds(live.submitted + deadline)),
            maps: live.job.maps.len(),
            reduces,
            reduce_wait: times
                .reduces_waited
                .map(|waited| seconds(waited) / reduces.max(1) as f64),
            reduce_idle_share: (times.reduces_held > 0)
                .then(|| times.reduces_idle as f64 / times.reduces_held as f64),
            suspends: times.suspends,
            checkpoints: times.checkpoints,
            kills: times.kills,
            wasted: seconds(times.wasted),
            repetition,
            late: seconds(live.late.0),
            identical: live.identical,
            simulated: simulated.map(|one| seconds(one.sojourn().0)),
        }
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

pub fn write_csv(path: &Path, lines: &[ReplayLine]) -> Result<()> {
    let failed = cannot("write", path);
    let file = File::create(path).map_err(failed)?;
    napreduce_sim::write_csv(file, lines).map_err(failed)?;
    Ok(())
}

/// Slot times of a job, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotTimes {
    /// When its first attempt was launched.
    pub started: Option<u64>,
    /// Time of its reduces without a slot after its last map; `None` without reduces.
    pub reduces_waited: Option<u64>,
    /// Slot time of its reduces, and the part of it before its last map.
    pub reduces_held: u64,
    pub reduces_idle: u64,
    pub suspends: u64,
    pub checkpoints: u64,
    pub kills: u64,
    /// Work that was lost.
    pub wasted: u64,
}

impl SlotTimes {
    /// From the history of a job that has succeeded.
    pub fn of(detail: &JobDetail) -> SlotTimes {
        let launched = detail
            .attempts
            .iter()
            .map(|one| one.launched_millis * 1_000);
        let count = |end| {
            detail
                .preemptions
                .iter()
                .filter(|one| one.end == Some(end))
                .count() as u64
        };
        let lost: u64 = detail
            .preemptions
            .iter()
            .map(|one| one.work_lost_millis)
            .sum();
        let mut times = SlotTimes {
            started: launched.min(),
            suspends: count(PreemptionEnd::Suspended),
            checkpoints: count(PreemptionEnd::Checkpointed),
            kills: count(PreemptionEnd::Killed),
            wasted: lost * 1_000,
            ..SlotTimes::default()
        };
        let done = done_at(detail);
        let held = held(detail);
        let maps = done
            .iter()
            .filter(|(task, _)| task.kind == TaskKind::Map)
            .map(|(_, at)| *at);
        let maps_end = maps
            .max()
            .unwrap_or(detail.summary.submitted_millis * 1_000);
        for (task, at) in done
            .iter()
            .filter(|(task, _)| task.kind == TaskKind::Reduce)
        {
            let of_it = held.iter().filter(|(attempt, ..)| attempt.task == *task);
            let mut before = 0;
            let mut after = 0;
            for (_, from, to) in of_it {
                before += maps_end.min(*to).saturating_sub(*from);
                after += to.saturating_sub(maps_end.max(*from));
            }
            times.reduces_held += before + after;
            times.reduces_idle += before;
            let waited = at.saturating_sub(maps_end).saturating_sub(after);
            times.reduces_waited = Some(times.reduces_waited.unwrap_or(0) + waited);
        }
        times
    }
}

/// When each task was first done.
fn done_at(detail: &JobDetail) -> BTreeMap<TaskId, u64> {
    let mut done = BTreeMap::new();
    for attempt in detail.attempts.iter().filter(|one| one.has_succeeded()) {
        if let Some(at) = attempt.ended_millis {
            done.entry(attempt.attempt.task).or_insert(at * 1_000);
        }
    }
    done
}

/// The intervals in which attempts had slots.
fn held(detail: &JobDetail) -> Vec<(AttemptId, u64, u64)> {
    detail
        .attempts
        .iter()
        .flat_map(|attempt| of_attempt(detail, attempt))
        .collect()
}

fn of_attempt(detail: &JobDetail, attempt: &AttemptSummary) -> Vec<(AttemptId, u64, u64)> {
    let id = attempt.attempt;
    let mut from = attempt.launched_millis * 1_000;
    let end = attempt
        .ended_millis
        .or(detail.summary.ended_millis)
        .unwrap_or(attempt.launched_millis)
        * 1_000;
    let mut stretches = Vec::new();
    let suspended = detail
        .preemptions
        .iter()
        .filter(|one| one.attempt == id && one.end == Some(PreemptionEnd::Suspended));
    for freed in suspended.filter_map(|one| one.freed_micros) {
        stretches.push((id, from, freed.clamp(from, end.max(from))));
        let resumed = detail
            .resumes
            .iter()
            .filter(|one| one.attempt == id && one.ordered_micros >= freed);
        match resumed.map(|one| one.ordered_micros).min() {
            Some(at) => from = at,
            None => return stretches,
        }
    }
    stretches.push((id, from, end.max(from)));
    stretches
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, Primitive, WorkerId};
    use napreduce_protocol::{JobPhase, JobProgress, JobSummary, PreemptionSummary, ResumeSummary};

    use super::*;

    fn agreement(pairs: &[(&str, f64, f64)]) -> Agreement {
        let mut by_class: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for (class, live, simulated) in pairs {
            by_class
                .entry((*class).to_owned())
                .or_default()
                .push((*live, *simulated));
        }
        Agreement::of_pairs(&by_class).unwrap()
    }

    #[test]
    fn ratio_is_of_means() {
        let found = agreement(&[("a", 1.0, 2.0), ("a", 5.0, 4.0)]);
        assert_eq!(
            (found.all.live, found.all.simulated, found.all.ratio),
            (3.0, 3.0, 1.0)
        );
        assert!(
            found.agrees
                && found.classes.is_empty()
                && found.line().ends_with("they agree (0.9 to 1.1)")
        );
    }

    #[test]
    fn disagreeing_classes_are_named() {
        let found = agreement(&[("small", 1.5, 1.0), ("large", 100.0, 100.0)]);
        assert!(
            found.agrees && found.line().ends_with("but not in small 1.500"),
            "{}",
            found.line()
        );
        let found = agreement(&[("small", 1.0, 1.0), ("large", 150.0, 100.0)]);
        assert!(
            found.line().ends_with("OUTSIDE 0.9 to 1.1, in large 1.500"),
            "{}",
            found.line()
        );
        assert!(!agreement(&[("all", 0.5, 1.0)]).agrees);
    }

    #[test]
    fn no_runs_have_no_agreement() {
        assert_eq!(Agreement::of(&[]), None);
    }

    fn attempt(kind: TaskKind, index: u32, number: u32) -> AttemptId {
        AttemptId {
            task: TaskId {
                job: JobId(1),
                kind,
                index,
            },
            number,
        }
    }

    fn ran(id: AttemptId, from: u64, to: u64, end: &str) -> AttemptSummary {
        AttemptSummary {
            attempt: id,
            worker: WorkerId(1),
            worker_name: "worker".to_owned(),
            launched_millis: from,
            ended_millis: Some(to),
            end: Some(end.to_owned()),
            figures: None,
            moments: None,
        }
    }

    fn preempted(
        id: AttemptId,
        freed_millis: u64,
        end: PreemptionEnd,
        lost_millis: u64,
    ) -> PreemptionSummary {
        let freed_micros = Some(freed_millis * 1_000);
        let wanted =
            PreemptionSummary::wanted(freed_millis * 1_000, id, WorkerId(1), Primitive::Suspend);
        PreemptionSummary {
            freed_micros,
            end: Some(end),
            work_lost_millis: lost_millis,
            ..wanted
        }
    }

    fn resumed(id: AttemptId, at_millis: u64) -> ResumeSummary {
        ResumeSummary {
            attempt: id,
            worker: WorkerId(1),
            ordered_micros: at_millis * 1_000,
            resumed_micros: None,
            worker_micros: None,
            suspended_millis: 0,
            swapped_bytes: 0,
            swapped_in_bytes: 0,
        }
    }

    fn detail(
        attempts: Vec<AttemptSummary>,
        preemptions: Vec<PreemptionSummary>,
        resumes: Vec<ResumeSummary>,
    ) -> JobDetail {
        let summary = JobSummary {
            job: JobId(1),
            name: "job".to_owned(),
            user: "user".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase: JobPhase::Succeeded,
            reason: None,
            submitted_millis: 100,
            ended_millis: Some(10_000),
            progress: JobProgress::default(),
            output: "out".into(),
            unrecorded: None,
        };
        JobDetail {
            attempts,
            preemptions,
            resumes,
            ..JobDetail::new(summary)
        }
    }

    #[test]
    fn reduce_is_idle_before_the_last_map_and_waits_after_it() {
        let map = attempt(TaskKind::Map, 0, 1);
        let early = attempt(TaskKind::Reduce, 0, 1);
        let late = attempt(TaskKind::Reduce, 1, 1);
        let attempts = vec![
            ran(map, 200, 1_000, "succeeded"),
            ran(early, 400, 1_500, "succeeded"),
            ran(late, 1_500, 2_100, "succeeded"),
        ];
        let times = SlotTimes::of(&detail(attempts, Vec::new(), Vec::new()));
        assert_eq!(times.started, Some(200_000));
        assert_eq!(
            (times.reduces_held, times.reduces_idle),
            (1_700_000, 600_000)
        );
        assert_eq!(times.reduces_waited, Some(500_000));
    }

    #[test]
    fn suspended_reduce_waits_and_killed_reduce_wastes() {
        let map = attempt(TaskKind::Map, 0, 1);
        let first = attempt(TaskKind::Reduce, 0, 1);
        let second = attempt(TaskKind::Reduce, 0, 2);
        let attempts = vec![
            ran(map, 200, 1_000, "succeeded"),
            ran(first, 1_000, 3_000, "killed"),
            ran(second, 3_200, 4_000, "succeeded"),
        ];
        let preemptions = vec![
            preempted(first, 1_400, PreemptionEnd::Suspended, 0),
            preempted(first, 3_000, PreemptionEnd::Killed, 1_100),
        ];
        let times = SlotTimes::of(&detail(attempts, preemptions, vec![resumed(first, 2_300)]));
        assert_eq!((times.suspends, times.checkpoints, times.kills), (1, 0, 1));
        // 1.0 to 1.4, 2.3 to 3.0, 3.2 to 4.0.
        assert_eq!(
            (times.reduces_held, times.reduces_waited),
            (1_900_000, Some(1_100_000))
        );
        assert_eq!(times.wasted, 1_100_000);
    }

    #[test]
    fn job_without_reduces_has_no_wait() {
        let attempts = vec![ran(attempt(TaskKind::Map, 0, 1), 200, 1_000, "succeeded")];
        assert_eq!(
            SlotTimes::of(&detail(attempts, Vec::new(), Vec::new())).reduces_waited,
            None
        );
    }
}
