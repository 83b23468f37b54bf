//! Prometheus counters and histograms of ended jobs. Each job is counted once, since the start of the server or for
//! the whole history, so that no value falls.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use napreduce_answers::LedgerRow;
use napreduce_engine::JobId;
use napreduce_protocol::{JobDetail, JobSummary, lock};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::clock::now_micros;
use crate::labels::{Labels, label};
use crate::source::{PageSource, SourceError};

/// One scrape counts jobs for this long; the next one continues.
const READ_TIME: Duration = Duration::from_secs(3);
/// The most requesters with their own label.
const REQUESTERS_MAX: usize = 32;
/// The label of all other requesters.
pub const OTHERS: &str = "other";

type Counts = Family<Labels, Counter>;
type Seconds = Family<Labels, Counter<f64, AtomicU64>>;
type Durations = Family<Labels, Histogram, fn() -> Histogram>;

/// Counters and histograms.
#[derive(Debug)]
pub struct Tally {
    started_millis: u64,
    counted: Mutex<Counted>,
    jobs: Counts,
    unread: Counter,
    uncounted: Gauge,
    preemptions: Counts,
    work_saved: Seconds,
    work_lost: Seconds,
    slot_taken: Seconds,
    checkpoint_bytes: Counts,
    attempts: Counts,
    attempt_lengths: Durations,
    freeing: Durations,
    resuming: Histogram,
    restoring: Histogram,
    sojourns: Histogram,
    requests: Durations,
}

impl Tally {
    /// Counts jobs that end from now on.
    pub fn new(started_millis: u64) -> Tally {
        Tally {
            started_millis,
            counted: Mutex::default(),
            jobs: Counts::default(),
            unread: Counter::default(),
            uncounted: Gauge::default(),
            preemptions: Counts::default(),
            work_saved: Seconds::default(),
            work_lost: Seconds::default(),
            slot_taken: Seconds::default(),
            checkpoint_bytes: Counts::default(),
            attempts: Counts::default(),
            attempt_lengths: Durations::new_with_constructor(long),
            freeing: Durations::new_with_constructor(short),
            resuming: short(),
            restoring: short(),
            sojourns: long(),
            requests: Durations::new_with_constructor(of_requests),
        }
    }
}

#[derive(Debug, Default)]
struct Counted {
    /// Counted jobs that are still listed.
    jobs: HashSet<JobId>,
    requesters: HashSet<String>,
    has_begun: bool,
}

/// Buckets from a millisecond to a minute.
fn short() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 17))
}

/// Buckets from a quarter of a second to a day and a half.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(0.25, 2.0, 20))
}

/// Buckets from a millisecond to ten seconds, the time limit of a response.
fn of_requests() -> Histogram {
    Histogram::new([
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ])
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl Tally {
    /// Records the duration of a request.
    pub fn answered(&self, route: &str, seconds: f64) {
        self.requests
            .get_or_create(&label("route", route))
            .observe(seconds);
    }

    /// Counts the jobs that have ended since the last call.
    ///
    /// # Errors
    /// Fails if the source is unavailable; the uncounted jobs are counted later.
    pub fn count(&self, source: &dyn PageSource) -> Result<(), SourceError> {
        let mut counted = lock(&self.counted);
        let jobs = source.jobs()?;
        let ended: Vec<&JobSummary> = jobs
            .iter()
            .filter(|job| job.ended_millis.is_some())
            .collect();
        // All jobs of a history ended before the server started.
        if source.is_live() && !counted.has_begun {
            let is_before = |job: &&&JobSummary| job.ended_millis < Some(self.started_millis);
            counted
                .jobs
                .extend(ended.iter().filter(is_before).map(|job| job.job));
        }
        counted.has_begun = true;
        // A job that was removed from the history does not come back.
        let listed: HashSet<JobId> = ended.iter().map(|job| job.job).collect();
        counted.jobs.retain(|job| listed.contains(job));
        let fresh: Vec<_> = ended
            .into_iter()
            .rev()
            .filter(|job| !counted.jobs.contains(&job.job))
            .collect();
        let begun = Instant::now();
        self.uncounted.set(fresh.len() as i64);
        for job in fresh {
            if begun.elapsed() > READ_TIME {
                break;
            }
            match source.job(job.job) {
                // The cached detail is older than the list.
                Ok(detail) if detail.summary.ended_millis.is_none() => continue,
                Ok(detail) => {
                    self.count_attempts(&detail);
                    self.count_preemptions(&detail, &mut counted.requesters);
                }
                Err(error @ SourceError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, job = %job.job, "cannot read a job; the metrics lack its preemptions");
                    self.unread.inc();
                }
            }
            self.count_job(job);
            counted.jobs.insert(job.job);
            self.uncounted.dec();
        }
        Ok(())
    }

    fn count_job(&self, job: &JobSummary) {
        self.jobs
            .get_or_create(&label("end", job.phase.in_words()))
            .inc();
        let sojourn = job
            .ended_millis
            .map(|ended| ended.saturating_sub(job.submitted_millis));
        self.sojourns
            .observe(seconds(sojourn.unwrap_or_default() * 1_000));
    }

    fn count_attempts(&self, detail: &JobDetail) {
        for attempt in &detail.attempts {
            let kind = label("kind", &attempt.attempt.task.kind.to_string());
            // An attempt that was running when its job ended was killed.
            let end = attempt.outcome().unwrap_or("killed");
            self.attempts
                .get_or_create(&vec![kind[0].clone(), ("end", end.into())])
                .inc();
            if let Some(ended) = attempt.ended_micros() {
                let length = ended.saturating_sub(attempt.launched_micros());
                self.attempt_lengths
                    .get_or_create(&kind)
                    .observe(seconds(length));
            }
        }
    }

    fn count_preemptions(&self, detail: &JobDetail, requesters: &mut HashSet<String>) {
        for row in LedgerRow::all_of(detail, now_micros()) {
            let by = requester(&row.answer.by, requesters);
            let end = row.end();
            let primitive = label("primitive", &row.answer.primitive);
            let labels = vec![("by", by.into()), primitive[0].clone(), ("end", end.into())];
            self.preemptions.get_or_create(&labels).inc();
            let whole = |millis: u64| millis as f64 / 1e3;
            self.work_saved
                .get_or_create(&primitive)
                .inc_by(whole(row.answer.work_saved_millis));
            self.work_lost
                .get_or_create(&primitive)
                .inc_by(whole(row.answer.work_lost_millis));
            self.slot_taken
                .get_or_create(&primitive)
                .inc_by(whole(row.slot_millis));
            self.checkpoint_bytes
                .get_or_create(&primitive)
                .inc_by(row.answer.checkpoint_bytes);
            if let Some(micros) = row.free_micros() {
                self.freeing
                    .get_or_create(&primitive)
                    .observe(seconds(micros));
            }
        }
        let resumes = detail
            .resumes
            .iter()
            .map(|one| (one.ordered_micros, one.resumed_micros));
        for (ordered, resumed) in resumes.filter_map(|(ordered, resumed)| Some((ordered, resumed?)))
        {
            self.resuming
                .observe(seconds(resumed.saturating_sub(ordered)));
        }
        let restores = detail
            .restores
            .iter()
            .map(|one| (one.ordered_micros, one.restored_micros));
        for (ordered, restored) in
            restores.filter_map(|(ordered, restored)| Some((ordered, restored?)))
        {
            self.restoring
                .observe(seconds(restored.saturating_sub(ordered)));
        }
    }

    /// Returns the start of the server, in milliseconds since 1970.
    pub fn started_millis(&self) -> u64 {
        self.started_millis
    }

    /// Registers all metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "jobs_ended",
            "Jobs ended since the server started",
            self.jobs.clone(),
        );
        let unread =
            "Ended jobs whose history cannot be opened, so that their preemptions are not counted";
        registry.register("jobs_unread", unread, self.unread.clone());
        let uncounted = "Ended jobs that are not counted yet because reading them takes longer than one response may";
        registry.register("jobs_uncounted", uncounted, self.uncounted.clone());
        let taken = "Preemption requests of jobs ended since the server started";
        registry.register("preemptions", taken, self.preemptions.clone());
        let saved = "Work saved by preemptions of these jobs that a kill would have lost";
        registry.register_with_unit("work_saved", saved, Unit::Seconds, self.work_saved.clone());
        let lost = "Work of these jobs that had to be redone";
        registry.register_with_unit("work_lost", lost, Unit::Seconds, self.work_lost.clone());
        let slot = "Time that preempted work of these jobs had no slot";
        registry.register_with_unit("slot_taken", slot, Unit::Seconds, self.slot_taken.clone());
        let bytes = "Bytes of checkpoints of these jobs";
        registry.register_with_unit(
            "checkpoint",
            bytes,
            Unit::Bytes,
            self.checkpoint_bytes.clone(),
        );
        let attempts = "Attempts of these jobs by outcome";
        registry.register("attempts", attempts, self.attempts.clone());
        let lengths = "Time from launch to end of attempts of these jobs, including suspensions";
        registry.register_with_unit(
            "attempt",
            lengths,
            Unit::Seconds,
            self.attempt_lengths.clone(),
        );
        let freeing = "Time from a preemption request until the slot was free";
        registry.register_with_unit("preemption", freeing, Unit::Seconds, self.freeing.clone());
        let resuming = "Time from the resume order until a suspended attempt ran again";
        registry.register_with_unit("resume", resuming, Unit::Seconds, self.resuming.clone());
        let restoring = "Time from the launch of a restored attempt until it made new progress";
        registry.register_with_unit("restore", restoring, Unit::Seconds, self.restoring.clone());
        let sojourns = "Time from submission to end of jobs";
        registry.register_with_unit(
            "job_sojourn",
            sojourns,
            Unit::Seconds,
            self.sojourns.clone(),
        );
        registry.register_with_unit(
            "http_request",
            "Duration of HTTP requests",
            Unit::Seconds,
            self.requests.clone(),
        );
    }
}

/// Returns the requester as a label. Scheduler names are few, but not limited.
fn requester(by: &str, known: &mut HashSet<String>) -> String {
    if known.len() < REQUESTERS_MAX && !known.contains(by) {
        known.insert(by.to_owned());
    }
    if known.contains(by) {
        by.to_owned()
    } else {
        OTHERS.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use napreduce_answers::samples::{job, preempted};
    use napreduce_engine::{AttemptId, Primitive, Reason, TaskId};
    use napreduce_protocol::{
        JobPhase, LogStream, PreemptionEnd, QueueListing, TaskSummary, WorkerSummary,
    };
    use prometheus_client::encoding::text::encode;

    use super::*;

    const STARTED: u64 = 1_790_000_000_000;

    /// A source of ended jobs, with an optional error.
    #[derive(Debug, Default)]
    struct Ended {
        jobs: Mutex<Vec<JobSummary>>,
        broken: Mutex<Option<SourceError>>,
    }

    impl Ended {
        fn add(&self, number: u32, phase: JobPhase) {
            self.jobs
                .lock()
                .expect("no test panicked")
                .insert(0, job(number, phase, 0, 0));
        }

        fn breaks(&self, error: Option<SourceError>) {
            *self.broken.lock().expect("no test panicked") = error;
        }
    }

    impl PageSource for Ended {
        fn name(&self) -> String {
            "ended jobs".to_owned()
        }

        fn is_live(&self) -> bool {
            true
        }

        fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError> {
            Ok(Arc::new(
                self.jobs.lock().expect("no test panicked").clone(),
            ))
        }

        fn job(&self, id: JobId) -> Result<Arc<JobDetail>, SourceError> {
            if let Some(error) = self.broken.lock().expect("no test panicked").clone() {
                return Err(error);
            }
            let summary = self
                .jobs()?
                .iter()
                .find(|known| known.job == id)
                .cloned()
                .expect("a job");
            let suspended = (0, Primitive::Suspend, Some(PreemptionEnd::Suspended));
            Ok(Arc::new(JobDetail {
                summary,
                ..preempted(&[suspended])
            }))
        }

        fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError> {
            Ok(Arc::default())
        }

        fn queues(&self) -> Result<Arc<QueueListing>, SourceError> {
            Err(SourceError::Absent("queues".to_owned()))
        }

        fn tasks(&self, _: JobId) -> Result<Arc<Vec<TaskSummary>>, SourceError> {
            Ok(Arc::default())
        }

        fn explain(&self, _: JobId, _: Option<TaskId>) -> Result<Vec<Reason>, SourceError> {
            Ok(Vec::new())
        }

        fn log(&self, _: AttemptId, _: LogStream, _: u64, _: u64) -> Result<Vec<u8>, SourceError> {
            Ok(Vec::new())
        }
    }

    fn printed(tally: &Tally) -> String {
        let mut registry = Registry::default();
        let mut text = String::new();
        tally.register(&mut registry);
        encode(&mut text, &registry).expect("text");
        text
    }

    #[test]
    fn ended_job_is_counted_once() {
        let tally = Tally::new(STARTED);
        let source = Ended::default();
        source.add(1, JobPhase::Succeeded);
        for _ in 0..3 {
            tally.count(&source).expect("available");
        }
        source.add(2, JobPhase::Running);
        source.add(3, JobPhase::Killed);
        tally.count(&source).expect("available");
        let text = printed(&tally);
        for line in [
            "jobs_ended_total{end=\"succeeded\"} 1",
            "jobs_ended_total{end=\"killed\"} 1",
            "preemptions_total{by=\"natjam\",primitive=\"suspend\",end=\"suspended\"} 2",
            "work_saved_seconds_total{primitive=\"suspend\"} 0.08",
            "preemption_seconds_count{primitive=\"suspend\"} 2",
            "job_sojourn_seconds_sum 3.0",
            "attempts_total{kind=\"map\",end=\"succeeded\"} 2",
            "attempt_seconds_sum{kind=\"map\"} 3.0",
            "slot_taken_seconds_total{primitive=\"suspend\"} 2.98",
            "checkpoint_bytes_total{primitive=\"suspend\"} 0",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "no {line} in\n{text}"
            );
        }
    }

    #[test]
    fn one_scrape_counts_all_ended_jobs() {
        let tally = Tally::new(STARTED);
        let source = Ended::default();
        for number in 1..=300 {
            source.add(number, JobPhase::Succeeded);
        }
        tally.count(&source).expect("available");
        let text = printed(&tally);
        assert!(
            text.contains("jobs_ended_total{end=\"succeeded\"} 300\n"),
            "{text}"
        );
        assert!(text.contains("jobs_uncounted 0\n"), "{text}");
    }

    #[test]
    fn jobs_ended_before_the_start_are_not_counted() {
        let tally = Tally::new(STARTED + 1_501);
        let source = Ended::default();
        source.add(1, JobPhase::Succeeded);
        tally.count(&source).expect("available");
        assert!(!printed(&tally).contains("jobs_ended_total{"));
        source.add(2, JobPhase::Failed);
        tally.count(&source).expect("available");
        assert!(printed(&tally).contains("jobs_ended_total{end=\"failed\"} 1\n"));
    }

    #[test]
    fn unavailable_job_is_counted_later_and_damaged_one_without_preemptions() {
        let tally = Tally::new(STARTED);
        let source = Ended::default();
        source.add(1, JobPhase::Succeeded);
        source.breaks(Some(SourceError::Unavailable("no coordinator".to_owned())));
        tally.count(&source).expect_err("unavailable");
        assert!(!printed(&tally).contains("jobs_ended_total{"));
        source.breaks(Some(SourceError::Broken("a bad trailer".to_owned())));
        tally.count(&source).expect("available");
        tally.count(&source).expect("available");
        let text = printed(&tally);
        assert!(
            text.contains("jobs_ended_total{end=\"succeeded\"} 1\n"),
            "{text}"
        );
        assert!(
            text.contains("jobs_unread_total 1\n") && !text.contains("preemptions_total{"),
            "{text}"
        );
    }

    #[test]
    fn requester_labels_are_limited() {
        let mut known = HashSet::new();
        let labels: HashSet<String> = (0..100)
            .map(|number| requester(&number.to_string(), &mut known))
            .collect();
        assert_eq!(labels.len(), REQUESTERS_MAX + 1);
        assert_eq!(requester("0", &mut known), "0");
    }
}
