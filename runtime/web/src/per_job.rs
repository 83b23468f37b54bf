//! Values computed from each job of a time window, such as ledger entries and slot usage.
//!
//! Totals are sums over all jobs of their window, so every job has to be read. An ended job is read once and its value
//! is kept. Running jobs are read again after a pause that grows with the cost of reading them. One call reads for a
//! limited time and reports the jobs it left out; the next call continues there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use napreduce_answers::{JobSlots, JobWork, LedgerRow, PerformanceAnswer};
use napreduce_engine::JobId;
use napreduce_protocol::{JobDetail, JobSummary, lock};

use crate::clock::{now_micros, now_millis};
use crate::source::{PageSource, SourceError, pause_after};

/// A page asks for the list, the totals and the flows of a window one after the other.
pub const READ_TIME: Duration = Duration::from_secs(2);

/// Default window for the performance of workers: an hour.
pub const PERFORMANCE_MILLIS: u64 = 60 * 60_000;

/// A time window in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub from: u64,
    pub until: u64,
}

impl Window {
    /// Returns the jobs that existed in the window, in the order of `all`.
    pub fn jobs(self, all: &[JobSummary]) -> Vec<&JobSummary> {
        let exists = |job: &&JobSummary| {
            job.submitted_millis <= self.until
                && job.ended_millis.is_none_or(|ended| ended >= self.from)
        };
        all.iter().filter(exists).collect()
    }

    pub fn contains(self, millis: u64) -> bool {
        (self.from..=self.until).contains(&millis)
    }

    /// Returns the performance of workers in the window, from its jobs.
    pub(crate) fn performance(self, jobs: &[Arc<JobWork>]) -> Vec<PerformanceAnswer> {
        PerformanceAnswer::of_workers(jobs.iter().map(|job| &**job), &(self.from..=self.until))
    }
}

/// A value computed from a job.
pub trait PerJob: Sized {
    /// Total weight up to which values of ended jobs are kept.
    const WEIGHT_MAX: usize;

    fn of(detail: &JobDetail, now_micros: u64) -> Self;

    fn weight(&self) -> usize;
}

impl PerJob for Vec<LedgerRow> {
    /// About 70 MB.
    const WEIGHT_MAX: usize = 100_000;

    fn of(detail: &JobDetail, now_micros: u64) -> Vec<LedgerRow> {
        LedgerRow::all_of(detail, now_micros)
    }

    fn weight(&self) -> usize {
        self.len()
    }
}

impl PerJob for JobSlots {
    /// About 24 MB.
    const WEIGHT_MAX: usize = 1_000_000;

    fn of(detail: &JobDetail, _: u64) -> JobSlots {
        JobSlots::of(detail)
    }

    fn weight(&self) -> usize {
        self.count()
    }
}

impl PerJob for JobWork {
    /// About 30 MB.
    const WEIGHT_MAX: usize = 100_000;

    fn of(detail: &JobDetail, now_micros: u64) -> JobWork {
        JobWork::of(detail, now_micros)
    }

    fn weight(&self) -> usize {
        self.count()
    }
}

/// The jobs of a window that a call left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub jobs: usize,
    /// The reasons.
    pub remarks: Vec<String>,
}

/// Reads the performance of workers in the last hour, without values from earlier calls. Also returns remarks about
/// jobs left out.
///
/// # Errors
/// Fails if the source is unavailable.
pub fn recent_performance(
    source: &dyn PageSource,
) -> Result<(Vec<PerformanceAnswer>, Vec<String>), SourceError> {
    let until = now_millis();
    let window = Window {
        from: until.saturating_sub(PERFORMANCE_MILLIS),
        until,
    };
    let (work, remarks) = JobValues::default().work(source, window)?;
    Ok((window.performance(&work), remarks))
}

/// The values of the jobs of one source.
#[derive(Debug)]
pub struct JobValues<T> {
    ended: Mutex<Ended<T>>,
    open: Mutex<Open<T>>,
}

/// Values of ended jobs. The jobs submitted first are dropped first.
#[derive(Debug)]
struct Ended<T> {
    values: BTreeMap<JobId, Arc<T>>,
    weight: usize,
}

#[derive(Debug)]
struct Open<T> {
    values: HashMap<JobId, (Instant, Arc<T>)>,
    fresh_until: Instant,
}

impl<T> Default for JobValues<T> {
    fn default() -> JobValues<T> {
        JobValues {
            ended: Mutex::new(Ended {
                values: BTreeMap::new(),
                weight: 0,
            }),
            open: Mutex::new(Open {
                values: HashMap::new(),
                fresh_until: Instant::now(),
            }),
        }
    }
}

impl JobValues<JobWork> {
    /// Returns the work of the jobs of a window, and remarks about jobs left out.
    pub(crate) fn work(
        &self,
        source: &dyn PageSource,
        window: Window,
    ) -> Result<(Vec<Arc<JobWork>>, Vec<String>), SourceError> {
        let mut work = Vec::new();
        let left_out = self.each(READ_TIME, source, &source.jobs()?, window, |_, of_job| {
            work.push(of_job)
        })?;
        Ok((
            work,
            left_out
                .remarks
                .into_iter()
                .chain(source.remarks())
                .collect(),
        ))
    }
}

impl<T: PerJob> JobValues<T> {
    /// Passes each job of a window and its value to `each`; reads for at most `time`.
    ///
    /// # Errors
    /// Fails if the source is unavailable.
    pub fn each<'job>(
        &self,
        time: Duration,
        source: &dyn PageSource,
        all: &'job [JobSummary],
        window: Window,
        mut each: impl FnMut(&'job JobSummary, Arc<T>),
    ) -> Result<LeftOut, SourceError> {
        let deadline = Instant::now() + time;
        let stale = self.refresh(source, all, deadline)?;
        let mut left_out = LeftOut::default();
        let mut unread = 0;
        for job in window.jobs(all) {
            let known = lock(&self.ended).values.get(&job.job).cloned();
            let value = match known {
                Some(value) => Some(value),
                None if job.ended_millis.is_none() => None,
                None if Instant::now() > deadline => None,
                None => match read::<T>(source, job.job) {
                    Ok((value, has_ended)) => {
                        // The detail may be older than the list.
                        if has_ended {
                            lock(&self.ended).keep(job.job, value.clone());
                        }
                        Some(value)
                    }
                    Err(error @ SourceError::Unavailable(_)) => return Err(error),
                    Err(error) => {
                        left_out.jobs += 1;
                        left_out.remarks.push(format!("{}: {error}", job.job));
                        continue;
                    }
                },
            };
            // A job that has ended since counts with its last value, so that no total falls.
            match value.or_else(|| stale.get(&job.job).cloned()) {
                Some(value) => each(job, value),
                None => unread += 1,
            }
        }
        if unread > 0 {
            let jobs = if unread == 1 {
                "1 job is"
            } else {
                &format!("{unread} jobs are")
            };
            left_out.remarks.push(format!(
                "{jobs} not counted yet: reading takes longer than one response may"
            ));
            left_out.jobs += unread;
        }
        Ok(left_out)
    }

    /// Returns the values of running jobs; reads new and stale ones, the longest unread first.
    fn refresh(
        &self,
        source: &dyn PageSource,
        all: &[JobSummary],
        deadline: Instant,
    ) -> Result<HashMap<JobId, Arc<T>>, SourceError> {
        let mut open = lock(&self.open);
        let begun = Instant::now();
        let is_old = begun >= open.fresh_until;
        let is_due = |job: &JobId| is_old || !open.values.contains_key(job);
        let runs = all
            .iter()
            .filter(|job| job.ended_millis.is_none())
            .map(|job| job.job);
        let mut running: Vec<JobId> = runs.filter(is_due).collect();
        if is_old || !running.is_empty() {
            running.sort_by_key(|job| open.values.get(job).map(|(read, _)| *read));
            for job in &running {
                if Instant::now() > deadline {
                    break;
                }
                match read(source, *job) {
                    Ok((value, _)) => {
                        open.values.insert(*job, (Instant::now(), value));
                    }
                    Err(error @ SourceError::Unavailable(_)) => return Err(error),
                    // Removed since it was listed, or damaged; the caller reports it as not counted.
                    Err(error) => tracing::debug!(%error, %job, "cannot read a running job"),
                }
            }
            let listed: HashSet<JobId> = all.iter().map(|job| job.job).collect();
            let ended = lock(&self.ended);
            open.values
                .retain(|job, _| listed.contains(job) && !ended.values.contains_key(job));
            if is_old {
                open.fresh_until = Instant::now() + pause_after(begun.elapsed());
            }
        }
        Ok(open
            .values
            .iter()
            .map(|(job, (_, value))| (*job, value.clone()))
            .collect())
    }
}

fn read<T: PerJob>(source: &dyn PageSource, job: JobId) -> Result<(Arc<T>, bool), SourceError> {
    let detail = source.job(job)?;
    Ok((
        Arc::new(T::of(&detail, now_micros())),
        detail.summary.ended_millis.is_some(),
    ))
}

impl<T: PerJob> Ended<T> {
    /// An empty value weighs one; a value above the limit is not kept.
    fn keep(&mut self, job: JobId, value: Arc<T>) {
        let weight = |value: &T| value.weight() + 1;
        if weight(&value) > T::WEIGHT_MAX {
            return;
        }
        self.weight += weight(&value);
        if let Some(known) = self.values.insert(job, value) {
            self.weight -= weight(&known);
        }
        while self.weight > T::WEIGHT_MAX {
            let Some((_, oldest)) = self.values.pop_first() else {
                break;
            };
            self.weight -= weight(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_answers::samples::job;
    use napreduce_protocol::JobPhase;

    use super::*;

    /// A value of the given weight.
    #[derive(Debug)]
    struct Weight(usize);

    impl PerJob for Weight {
        const WEIGHT_MAX: usize = 100;

        fn of(_: &JobDetail, _: u64) -> Weight {
            Weight(0)
        }

        fn weight(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn window_includes_every_job_that_existed() {
        let ended = |number| job(number, JobPhase::Succeeded, 0, 0);
        let all: Vec<JobSummary> = (1..=160).rev().map(ended).collect();
        let begin = all[0].submitted_millis;
        assert_eq!(
            Window {
                from: begin,
                until: begin + 1
            }
            .jobs(&all)
            .len(),
            160
        );
        assert_eq!(
            Window {
                from: begin - 9,
                until: begin - 1
            }
            .jobs(&all)
            .len(),
            0
        );
        let after = Window {
            from: begin + 1_501,
            until: begin + 9_999,
        }
        .jobs(&all);
        assert!(after.is_empty(), "the jobs had ended");
    }

    #[test]
    fn kept_values_drop_the_oldest_jobs() {
        let mut kept = Ended {
            values: BTreeMap::new(),
            weight: 0,
        };
        for number in (1..=9).rev() {
            kept.keep(JobId(number), Arc::new(Weight(24)));
            assert!(kept.weight <= Weight::WEIGHT_MAX);
        }
        let jobs: Vec<JobId> = kept.values.keys().copied().collect();
        assert_eq!(jobs, [JobId(6), JobId(7), JobId(8), JobId(9)]);
        kept.keep(JobId(9), Arc::new(Weight(24)));
        assert_eq!(kept.weight, 4 * 25);
        kept.keep(JobId(10), Arc::new(Weight(101)));
        assert_eq!((kept.values.len(), kept.weight), (4, 4 * 25));
    }
}
