//! Jobs and rows for tests: realistic ones from a seed, arbitrary ones from proptest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use napreduce_engine::{AttemptId, JobId, Primitive, TaskId, TaskKind, WorkerId};
use napreduce_history::{
    EndedJob, History, HistoryLimits, HistoryStore, KeptLog, RecordedCluster, WorkerGroup,
};
use napreduce_protocol::{
    AttemptFigures, AttemptMoments, AttemptSummary, HistoryLine, JobDetail, JobEnd, JobPhase,
    JobPlan, JobProgress, JobReport, JobSettings, JobSummary, PartReport, PreemptionEnd,
    PreemptionSummary, RestoreSummary, ResumeSummary,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tempfile::TempDir;

pub const NO_LIMITS: HistoryLimits = HistoryLimits {
    jobs_max: usize::MAX,
    bytes_max: u64::MAX,
};

/// A temporary history directory.
pub struct Scene(TempDir);

impl Scene {
    pub fn new() -> Scene {
        Scene(
            tempfile::Builder::new()
                .prefix("napreduce-history-")
                .tempdir()
                .expect("a folder"),
        )
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn directory(&self) -> &Path {
        self.0.path()
    }

    /// Opens the history and checks that there are no remarks.
    #[track_caller]
    pub fn open(&self) -> History {
        let (history, remarks) = self.open_with(NO_LIMITS);
        assert_eq!(remarks, [""; 0]);
        history
    }

    pub fn open_with(&self, limits: HistoryLimits) -> (History, Vec<String>) {
        History::open(self.directory(), limits).expect("a history")
    }

    /// The names of the files, sorted, without the index.
    pub fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.directory())
            .expect("listed")
            .map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> = names
            .map(|entry| entry.file_name().into_string().expect("text"))
            .collect();
        names.retain(|name| name != "index.jsonl");
        names.sort();
        names
    }
}

/// Lists the jobs, newest first.
pub fn listed(history: &History) -> Vec<u32> {
    history
        .summaries(usize::MAX, &|_| false)
        .iter()
        .map(|summary| summary.job.0)
        .collect()
}

pub fn attempt(job: u32, kind: TaskKind, index: u32, number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(job),
            kind,
            index,
        },
        number,
    }
}

/// A succeeded job with `attempts` attempts on 40 workers, some of them failed or preempted.
pub fn job(id: u32, attempts: u32) -> EndedJob {
    let mut random = Pcg64Mcg::seed_from_u64(u64::from(id));
    let submitted_millis = 1_795_000_000_000 + u64::from(id) * 60_000;
    let mut now = submitted_millis;
    let reduces = attempts / 10;
    let mut detail = JobDetail {
        events: vec![HistoryLine {
            at_millis: now,
            text: "submitted".to_owned(),
        }],
        ..JobDetail::new(summary(id, submitted_millis))
    };
    for place in 0..attempts {
        let (kind, index) = match place.checked_sub(attempts - reduces) {
            Some(index) => (TaskKind::Reduce, index),
            None => (TaskKind::Map, place),
        };
        let id = attempt(id, kind, index, 1);
        now += random.random_range(0..30);
        let took = 4_000 + random.random_range(0..9_000u64).pow(2) / 9_000;
        let worker = random.random_range(1..=40);
        let end = match random.random_range(0..100) {
            0 => {
                format!(
                    "failed on worker-{worker:02}: cannot read line {} of part 7",
                    random.random::<u16>()
                )
            }
            1 => "checkpointed".to_owned(),
            _ => "succeeded".to_owned(),
        };
        if end == "checkpointed" {
            detail.preemptions.push(preemption(id, worker, now));
            detail.events.push(HistoryLine {
                at_millis: now,
                text: format!("{id} is suspended"),
            });
        }
        detail.attempts.push(AttemptSummary {
            attempt: id,
            worker: WorkerId(worker),
            worker_name: format!("worker-{worker:02}.rack-3"),
            launched_millis: now,
            ended_millis: Some(now + took),
            figures: (end == "succeeded").then(|| figures(now)),
            end: Some(end),
            moments: Some(AttemptMoments {
                launched: now * 1_000 + 123,
                started: Some(now * 1_000 + 2_456),
                ended: Some((now + took) * 1_000 + 789),
            }),
        });
        if kind == TaskKind::Reduce {
            let name = format!("part-r-{index:05}");
            let records = random.random_range(0..90_000);
            let bytes = random.random_range(0..9_000_000);
            detail.parts.push(PartReport {
                name,
                records,
                bytes,
                digest: random.random(),
            });
        }
    }
    detail
        .counters
        .add("TOTAL_LAUNCHED_MAPS", u64::from(attempts - reduces));
    detail.counters.add("mine", 7);
    detail.summary.ended_millis = Some(now + 20_000);
    let wall = Duration::from_millis(now + 20_000 - submitted_millis);
    succeeded(detail, wall)
}

fn figures(now: u64) -> AttemptFigures {
    AttemptFigures {
        input_bytes: 64 << 20,
        output_bytes: now % 9_000_000,
        input_records: 700_000 + now % 999,
        output_records: now % 90_000,
        processor_millis: 3_000 + now % 4_000,
        ..AttemptFigures::default()
    }
}

/// Completes a succeeded job.
pub fn succeeded(mut detail: JobDetail, wall: Duration) -> EndedJob {
    let JobSummary {
        job,
        ref name,
        ref output,
        ..
    } = detail.summary;
    let end = JobEnd::Succeeded(JobReport {
        job,
        name: name.clone(),
        counters: detail.counters.clone(),
        wall,
        parts: detail.parts.clone(),
        output: output.clone(),
    });
    detail.settings = Some(JobSettings::from_plan(&JobPlan::new("word-count", "out")));
    let token = u128::MAX - u128::from(job.0);
    let failed = |one: &&AttemptSummary| {
        one.end
            .as_deref()
            .is_some_and(|end| end.starts_with("failed"))
    };
    let printed = |one: &AttemptSummary| KeptLog {
        attempt: one.attempt,
        stderr: format!("thread 'main' panicked\nin {}\n", one.attempt).into(),
    };
    let logs = detail.attempts.iter().filter(failed).map(printed).collect();
    detail.scheduler = Some(cluster().in_force());
    EndedJob {
        token,
        end,
        detail,
        cluster: Some(cluster()),
        logs,
    }
}

/// 40 workers of two kinds, under a policy with changed values.
fn cluster() -> RecordedCluster {
    let group = |workers, map_slots| WorkerGroup {
        workers,
        map_slots,
        reduce_slots: 2,
    };
    RecordedCluster {
        scheduler: "hfsp".to_owned(),
        tables: Some(serde_json::json!({ "hfsp": { "sample-maps": 5 } })),
        preemption: serde_json::json!({ "primitive": "suspend" }),
        workers: vec![group(30, 4), group(10, 8)],
    }
}

/// The same job, failed for this reason.
pub fn failed(mut job: EndedJob, reason: &str) -> EndedJob {
    job.detail.summary.phase = JobPhase::Failed;
    job.detail.summary.reason = Some(reason.to_owned());
    job.detail.parts.clear();
    job.end = JobEnd::Failed {
        job: job.detail.summary.job,
        reason: reason.to_owned(),
        failure: None,
    };
    job
}

fn summary(id: u32, submitted_millis: u64) -> JobSummary {
    JobSummary {
        job: JobId(id),
        name: "word count of the library".to_owned(),
        user: "ada".to_owned(),
        queue: "default".to_owned(),
        priority: 0,
        phase: JobPhase::Succeeded,
        reason: None,
        submitted_millis,
        ended_millis: None,
        progress: JobProgress::default(),
        output: PathBuf::from(format!("/data/library/words/{id}")),
        unrecorded: None,
    }
}

fn preemption(attempt: AttemptId, worker: u32, at_millis: u64) -> PreemptionSummary {
    let requested = at_millis * 1_000 + 17;
    let wanted =
        PreemptionSummary::wanted(requested, attempt, WorkerId(worker), Primitive::Checkpoint);
    PreemptionSummary {
        by: "hfsp".to_owned(),
        reason: format!("job_0009 is smaller than {}", attempt.task.job),
        beneficiary: Some(JobId(9)),
        ordered_micros: Some(requested + 210),
        freed_micros: Some(requested + 90_411),
        end: Some(PreemptionEnd::Checkpointed),
        worker_micros: Some(90_001),
        work_saved_millis: 3_071,
        ..wanted
    }
}

prop_compose! {
    fn any_attempt()(job: u32, map: bool, index: u32, number: u32) -> AttemptId {
        attempt(job, if map { TaskKind::Map } else { TaskKind::Reduce }, index, number)
    }
}

prop_compose! {
    fn any_moments()(launched: u64, started: Option<u64>, ended: Option<u64>) -> AttemptMoments {
        AttemptMoments { launched, started, ended }
    }
}

prop_compose! {
    fn any_attempt_summary()(
        attempt in any_attempt(), worker: u32, worker_name in ".{0,9}", launched_millis: u64,
        ended_millis: Option<u64>, end in option::of(".{0,20}"), figures in option::of(any_figures()),
        moments in option::of(any_moments()),
    ) -> AttemptSummary {
        let worker = WorkerId(worker);
        AttemptSummary { attempt, worker, worker_name, launched_millis, ended_millis, end, figures, moments }
    }
}

fn any_primitive() -> impl Strategy<Value = Primitive> {
    let all = vec![
        Primitive::Wait,
        Primitive::Kill,
        Primitive::Suspend,
        Primitive::Checkpoint,
    ];
    prop::sample::select(all)
}

fn any_end() -> impl Strategy<Value = Option<PreemptionEnd>> {
    use PreemptionEnd::{Checkpointed, Ended, Finished, Killed, Suspended, Withdrawn};
    option::of(prop::sample::select(vec![
        Suspended,
        Checkpointed,
        Killed,
        Finished,
        Ended,
        Withdrawn,
    ]))
}

prop_compose! {
    fn any_preemption()(
        attempt in any_attempt(), worker: u32, primitive in any_primitive(), asked in any_primitive(),
        by in ".{0,5}", reason in ".{0,30}", beneficiary: Option<u32>, end in any_end(),
        used_by in option::of(any_attempt()), times: [Option<u64>; 5], requested_micros: u64, numbers: [u64; 7],
    ) -> PreemptionSummary {
        PreemptionSummary {
            attempt, worker: WorkerId(worker), primitive, asked, by, reason,
            beneficiary: beneficiary.map(JobId), requested_micros, end,
            ordered_micros: times[0], freed_micros: times[1], worker_micros: times[2],
            unused: used_by.is_none().then(|| "declined".to_owned()),
            suspended_millis: times[3], used_micros: times[4], used_by, active_millis: numbers[0], resident_bytes: numbers[1],
            swapped_bytes: numbers[2], swapped_out_bytes: numbers[3], checkpoint_bytes: numbers[4],
            work_saved_millis: numbers[5], work_lost_millis: numbers[6],
        }
    }
}

prop_compose! {
    fn any_resume()(attempt in any_attempt(), worker: u32, times: [Option<u64>; 2], numbers: [u64; 4]) -> ResumeSummary {
        ResumeSummary {
            attempt, worker: WorkerId(worker), ordered_micros: numbers[0], resumed_micros: times[0],
            worker_micros: times[1], suspended_millis: numbers[1], swapped_bytes: numbers[2],
            swapped_in_bytes: numbers[3],
        }
    }
}

prop_compose! {
    fn any_restore()(
        attempt in any_attempt(), from in any_attempt(), worker: u32, from_worker: Option<u32>,
        times: [Option<u64>; 2], ordered_micros: u64, work_saved_millis: u64, refused in option::of(".{0,9}"),
    ) -> RestoreSummary {
        RestoreSummary {
            attempt, from, worker: WorkerId(worker), from_worker: from_worker.map(WorkerId), ordered_micros,
            restored_micros: times[0], worker_micros: times[1], work_saved_millis, refused,
        }
    }
}

prop_compose! {
    fn any_event()(at_millis: u64, text in ".{0,40}") -> HistoryLine {
        HistoryLine { at_millis, text }
    }
}

prop_compose! {
    fn any_figures()(numbers: [u64; 8]) -> AttemptFigures {
        AttemptFigures {
            input_bytes: numbers[0], output_bytes: numbers[1], input_records: numbers[2], output_records: numbers[3],
            shuffle_millis: numbers[4], processor_millis: numbers[5], spilled_records: numbers[6],
            peak_memory_bytes: numbers[7],
        }
    }
}

prop_compose! {
    fn any_log()(attempt in any_attempt(), stderr in ".{0,40}") -> KeptLog {
        KeptLog { attempt, stderr: stderr.into() }
    }
}

prop_compose! {
    /// A job with arbitrary rows.
    pub fn any_job()(
        attempts in vec(any_attempt_summary(), 0..40), preemptions in vec(any_preemption(), 0..10),
        resumes in vec(any_resume(), 0..10), restores in vec(any_restore(), 0..10),
        events in vec(any_event(), 0..10), logs in vec(any_log(), 0..5), token: u128, reason in option::of(".{0,20}"),
    ) -> EndedJob {
        let whole = job(3, 20);
        let detail = JobDetail { attempts, events, preemptions, resumes, restores, ..whole.detail };
        let job = EndedJob { token, ..succeeded(detail, Duration::from_nanos(1_234_567_891)) };
        let job = EndedJob { token, logs, ..job };
        match reason {
            Some(reason) => failed(job, &reason),
            None => job,
        }
    }
}
