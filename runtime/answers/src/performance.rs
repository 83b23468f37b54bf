//! The performance of workers: failures, and the speed of each relative to the others at the same work.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use napreduce_engine::{AttemptId, TaskId, TaskKind, WorkerId};
use napreduce_history::Timeline;
use napreduce_protocol::{AttemptSummary, JobDetail};
use schemars::JsonSchema;
use serde::Serialize;

const HOUR_MILLIS: f64 = 3_600_000.0;
/// Fewer attempts say little about the speed of a worker.
const COMPARED_MIN: u64 = 5;

/// The results of one worker in a window.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PerformanceAnswer {
    pub worker: String,
    pub worker_name: String,
    /// Successful attempts of the jobs of the window.
    pub succeeded: u64,
    /// Attempts that failed in the window; killed, preempted and lost ones do not count.
    pub failed: u64,
    pub failures_per_hour: f64,
    /// Speed relative to other workers: 0.5 if they take half the time for maps or reduces of the same jobs, in the
    /// median over these. `null` if fewer than five attempts can be compared.
    pub speed: Option<f64>,
    /// Attempts that failed there since the last success, newest first. Several of them exclude a worker.
    pub failing: Vec<String>,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FailureAnswer {
    pub attempt: String,
    pub job: String,
    pub job_name: String,
    pub worker: String,
    pub launched_millis: u64,
    pub ended_millis: u64,
    /// The error.
    pub end: String,
    #[serde(skip)]
    pub worker_id: WorkerId,
    #[serde(skip)]
    worker_name: String,
}

/// The attempts of one job, by worker.
#[derive(Debug, Default)]
pub struct JobWork {
    work: BTreeMap<(TaskKind, WorkerId), Work>,
    failures: Vec<FailureAnswer>,
}

/// Successful attempts of a job and kind on one worker.
#[derive(Debug, Clone, Default)]
struct Work {
    worker_name: String,
    count: u64,
    /// Sum of times in a slot, without waiting for maps.
    micros: u64,
    last_ended_millis: u64,
}

impl JobWork {
    pub fn of(detail: &JobDetail, now_micros: u64) -> JobWork {
        let mut slots: HashMap<AttemptId, u64> = HashMap::new();
        for stint in Timeline::new(detail, now_micros).stints {
            let micros = stint.until_micros.saturating_sub(stint.from_micros);
            *slots.entry(stint.attempt).or_default() += micros;
        }
        // A restored attempt does part of the work only.
        let restored: HashSet<TaskId> = detail
            .restores
            .iter()
            .map(|restore| restore.attempt.task)
            .collect();
        let mut job = JobWork::default();
        for attempt in &detail.attempts {
            match (attempt.outcome(), attempt.ended_millis) {
                (Some(AttemptSummary::SUCCEEDED), Some(ended))
                    if !restored.contains(&attempt.attempt.task) =>
                {
                    let waited = attempt
                        .figures
                        .as_ref()
                        .map_or(0, |figures| figures.shuffle_millis * 1_000);
                    let micros = slots.get(&attempt.attempt).copied().unwrap_or_default();
                    let work = job
                        .work
                        .entry((attempt.attempt.task.kind, attempt.worker))
                        .or_default();
                    work.worker_name.clone_from(&attempt.worker_name);
                    work.count += 1;
                    work.micros += micros.saturating_sub(waited);
                    work.last_ended_millis = work.last_ended_millis.max(ended);
                }
                (Some("failed"), Some(ended)) => {
                    job.failures.push(FailureAnswer::of(detail, attempt, ended))
                }
                _ => {}
            }
        }
        job
    }

    /// Number of values that it holds.
    pub fn count(&self) -> usize {
        self.work.len() + self.failures.len()
    }

    pub fn failures(&self) -> &[FailureAnswer] {
        &self.failures
    }
}

impl FailureAnswer {
    fn of(detail: &JobDetail, attempt: &AttemptSummary, ended_millis: u64) -> FailureAnswer {
        FailureAnswer {
            attempt: attempt.attempt.to_string(),
            job: detail.summary.job.to_string(),
            job_name: detail.summary.name.clone(),
            worker: attempt.worker.to_string(),
            launched_millis: attempt.launched_millis,
            ended_millis,
            end: attempt.end.clone().unwrap_or_default(),
            worker_id: attempt.worker,
            worker_name: attempt.worker_name.clone(),
        }
    }
}

/// Figures of one worker over all jobs.
#[derive(Debug, Default)]
struct Sums<'job> {
    worker_name: &'job str,
    succeeded: u64,
    last_success_millis: u64,
    /// For each kind of task of a job that other workers ran too: the relative speed, and the number of attempts.
    speeds: Vec<(f64, u64)>,
    failures: Vec<&'job FailureAnswer>,
}

impl PerformanceAnswer {
    /// Computes the performance of each worker that ended an attempt of these jobs; `window` is in milliseconds since
    /// 1970.
    pub fn of_workers<'job>(
        jobs: impl IntoIterator<Item = &'job JobWork>,
        window: &RangeInclusive<u64>,
    ) -> Vec<PerformanceAnswer> {
        let mut workers: BTreeMap<WorkerId, Sums<'_>> = BTreeMap::new();
        for job in jobs {
            for kind in [TaskKind::Map, TaskKind::Reduce] {
                let of_kind = || job.work.iter().filter(|((known, _), _)| *known == kind);
                let count: u64 = of_kind().map(|(_, work)| work.count).sum();
                let micros: u64 = of_kind().map(|(_, work)| work.micros).sum();
                for ((_, worker), work) in of_kind() {
                    let sums = workers.entry(*worker).or_default();
                    sums.worker_name = &work.worker_name;
                    sums.succeeded += work.count;
                    sums.last_success_millis = sums.last_success_millis.max(work.last_ended_millis);
                    let others = count - work.count;
                    if others > 0 && work.micros > 0 {
                        let mean = (micros - work.micros) as f64 / others as f64;
                        sums.speeds
                            .push((mean * work.count as f64 / work.micros as f64, work.count));
                    }
                }
            }
            for failure in &job.failures {
                let sums = workers.entry(failure.worker_id).or_default();
                sums.worker_name = &failure.worker_name;
                sums.failures.push(failure);
            }
        }
        workers
            .into_iter()
            .map(|(worker, sums)| sums.answer(worker, window))
            .collect()
    }
}

impl Sums<'_> {
    fn answer(mut self, worker: WorkerId, window: &RangeInclusive<u64>) -> PerformanceAnswer {
        self.failures
            .sort_by_key(|failure| std::cmp::Reverse(failure.ended_millis));
        let failed = self
            .failures
            .iter()
            .filter(|failure| window.contains(&failure.ended_millis))
            .count();
        let hours = window.end().saturating_sub(*window.start()).max(1) as f64 / HOUR_MILLIS;
        let since = self
            .failures
            .iter()
            .take_while(|one| one.ended_millis > self.last_success_millis);
        PerformanceAnswer {
            worker: worker.to_string(),
            worker_name: self.worker_name.to_owned(),
            succeeded: self.succeeded,
            failed: failed as u64,
            failures_per_hour: rounded(failed as f64 / hours),
            speed: median_speed(&mut self.speeds).map(rounded),
            failing: since.map(|failure| failure.attempt.clone()).collect(),
        }
    }
}

/// Returns the median of the attempts, so that the one task with most data does not make its worker look slow; `None` for
/// too few attempts.
fn median_speed(speeds: &mut [(f64, u64)]) -> Option<f64> {
    let attempts: u64 = speeds.iter().map(|(_, count)| count).sum();
    if attempts < COMPARED_MIN {
        return None;
    }
    speeds.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut slower = 0;
    let median = speeds.iter().find(|(_, count)| {
        slower += count;
        2 * slower >= attempts
    });
    median.map(|(speed, _)| *speed)
}

/// Two decimals are more than a table shows.
fn rounded(value: f64) -> f64 {
    (value * 1e2).round() / 1e2
}

#[cfg(test)]
mod tests {
    use super::super::samples::detail;
    use super::*;

    const BASE: u64 = 1_790_000_000_000;
    const HOUR: RangeInclusive<u64> = BASE..=BASE + 3_600_000;

    /// A job whose map attempts have a worker, begin and end in milliseconds, and how they ended.
    fn job(attempts: &[(u32, u64, u64, &str)]) -> JobDetail {
        let mut job = detail();
        let sample = job.attempts[0].clone();
        let attempt = |(index, (worker, launched, ended, end)): (usize, &(u32, u64, u64, &str))| {
            let task = TaskId {
                index: index as u32,
                ..sample.attempt.task
            };
            AttemptSummary {
                attempt: AttemptId { task, number: 1 },
                worker: WorkerId(*worker),
                worker_name: format!("w{worker}"),
                launched_millis: BASE + launched,
                ended_millis: Some(BASE + ended),
                end: Some((*end).to_owned()),
                ..sample.clone()
            }
        };
        job.attempts = attempts.iter().enumerate().map(attempt).collect();
        job.summary.ended_millis = Some(BASE + 3_500_000);
        job
    }

    fn performance(jobs: &[JobDetail], window: RangeInclusive<u64>) -> Vec<PerformanceAnswer> {
        let jobs: Vec<JobWork> = jobs.iter().map(|job| JobWork::of(job, u64::MAX)).collect();
        PerformanceAnswer::of_workers(&jobs, &window)
    }

    #[test]
    fn speed_compares_attempts_of_the_same_job_and_kind() {
        // Worker 2 takes twice as long in a short job and in a long one; worker 3 did too little.
        let of = |worker, millis| (worker, 0, millis, "succeeded");
        let short = job(&[
            of(1, 100),
            of(1, 100),
            of(1, 100),
            of(2, 200),
            of(2, 200),
            of(2, 200),
            of(3, 150),
        ]);
        let long = job(&[of(1, 9_000), of(1, 9_000), of(2, 18_000), of(2, 18_000)]);
        let alone = job(&[of(1, 77_000)]);
        let speeds: Vec<Option<f64>> = performance(&[short, long, alone], HOUR)
            .iter()
            .map(|worker| worker.speed)
            .collect();
        let [fast, slow, third] = speeds.as_slice() else {
            panic!("{speeds:?}")
        };
        assert!(
            fast.is_some_and(|speed| (1.8..2.0).contains(&speed)),
            "{speeds:?}"
        );
        assert!(
            slow.is_some_and(|speed| (0.5..0.6).contains(&speed)),
            "{speeds:?}"
        );
        assert_eq!(*third, None);
    }

    #[test]
    fn task_with_most_data_does_not_slow_its_worker() {
        let even = || {
            job(&[
                (1, 0, 100, "succeeded"),
                (1, 0, 100, "succeeded"),
                (2, 0, 100, "succeeded"),
                (2, 0, 100, "succeeded"),
            ])
        };
        let skewed = job(&[
            (1, 0, 9_000, "succeeded"),
            (2, 0, 100, "succeeded"),
            (2, 0, 100, "succeeded"),
        ]);
        let speeds: Vec<Option<f64>> = performance(&[even(), even(), skewed], HOUR)
            .iter()
            .map(|worker| worker.speed)
            .collect();
        assert_eq!(speeds, [Some(1.0), Some(1.0)]);
    }

    #[test]
    fn failures_count_in_the_window_and_since_the_last_success() {
        let jobs = [
            job(&[
                (1, 0, 10, "failed: disk"),
                (1, 0, 20, "succeeded"),
                (2, 0, 15, "killed: not wanted"),
            ]),
            job(&[
                (1, 20, 30, "bad row"),
                (1, 20, 40, "bad row"),
                (2, 20, 30, "worker_0002 was lost"),
            ]),
        ];
        let workers = performance(&jobs, HOUR);
        let [only] = workers.as_slice() else {
            panic!("others neither succeeded nor failed: {workers:?}")
        };
        assert_eq!(
            (only.worker.as_str(), only.worker_name.as_str()),
            ("worker_0001", "w1")
        );
        assert_eq!(
            (only.succeeded, only.failed, only.failures_per_hour),
            (1, 3, 3.0)
        );
        // Newest first.
        assert_eq!(only.failing, ["job_0007_m_0001.1", "job_0007_m_0000.1"]);
        let half = BASE + 35..=BASE + 1_800_035;
        assert_eq!(performance(&jobs, half)[0].failures_per_hour, 2.0);
    }
}
