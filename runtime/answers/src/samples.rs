//! Sample jobs and workers for tests.

use napreduce_engine::{AttemptId, JobId, Primitive, TaskId, TaskKind, WorkerId};
use napreduce_protocol::{
    AttemptFigures, AttemptSummary, CounterValues, HistoryLine, JobDetail, JobPhase, JobProgress,
    JobSummary, PartReport, PhaseProgress, PreemptionEnd, PreemptionSummary, WorkerMemory,
    WorkerPhase, WorkerSummary,
};

/// A text that terminals and pages must neutralize.
pub const EVIL: &str = "a\u{1b}[2J\u{202e}\r<img src=x onerror=alert(1)>";

pub fn summary() -> JobSummary {
    let map = PhaseProgress {
        tasks: 4,
        done: 3,
        running: 1,
        ..PhaseProgress::default()
    };
    JobSummary {
        job: JobId(7),
        name: "wordcount".to_owned(),
        user: "ada".to_owned(),
        queue: "default".to_owned(),
        priority: 0,
        phase: JobPhase::Failed,
        reason: Some("job_0007_m_0003 failed 4 times".to_owned()),
        submitted_millis: 1_790_000_000_000,
        ended_millis: Some(1_790_000_001_500),
        progress: JobProgress {
            map,
            ..JobProgress::default()
        },
        output: "/data/out".into(),
        unrecorded: None,
    }
}

/// A job in a state, with numbers of running and suspended maps.
pub fn job(number: u32, phase: JobPhase, running: u32, suspended: u32) -> JobSummary {
    let map = PhaseProgress {
        tasks: 4,
        running,
        suspended,
        ..PhaseProgress::default()
    };
    let progress = JobProgress {
        map,
        ..JobProgress::default()
    };
    let ended_millis = (!phase.is_active()).then_some(1_790_000_001_500);
    JobSummary {
        job: JobId(number),
        phase,
        progress,
        reason: None,
        ended_millis,
        ..summary()
    }
}

pub fn detail() -> JobDetail {
    let summary = summary();
    let mut counters = CounterValues::default();
    counters.add("MAP_INPUT_RECORDS", 12);
    counters.add("bad rows", 3);
    let task = TaskId {
        job: summary.job,
        kind: TaskKind::Map,
        index: 3,
    };
    let attempt = AttemptSummary {
        attempt: AttemptId { task, number: 1 },
        worker: WorkerId(2),
        worker_name: "left-hand".to_owned(),
        launched_millis: 1_790_000_000_100,
        ended_millis: Some(1_790_000_001_300),
        end: Some("failed: bad row".to_owned()),
        figures: None,
        moments: None,
    };
    let event = |at_millis, text: &str| HistoryLine {
        at_millis,
        text: text.to_owned(),
    };
    JobDetail {
        counters,
        parts: vec![PartReport {
            name: "part-r-00000".to_owned(),
            records: 2,
            bytes: 9,
            digest: 255,
        }],
        attempts: vec![attempt],
        events: vec![
            event(1_790_000_000_000, "submitted"),
            event(1_790_000_001_500, "failed"),
        ],
        ..JobDetail::new(summary)
    }
}

/// A job with one map per request. A request has its time in milliseconds after submission, its primitive and its end.
/// The slot is free 10 ms later, for job 9; 40 ms of work are saved, or lost by a kill.
pub fn preempted(requests: &[(u64, Primitive, Option<PreemptionEnd>)]) -> JobDetail {
    let mut job = detail();
    job.attempts.clear();
    for (index, (at, primitive, end)) in requests.iter().enumerate() {
        let task = TaskId {
            job: job.summary.job,
            kind: TaskKind::Map,
            index: index as u32,
        };
        let attempt = AttemptId { task, number: 1 };
        let requested = (job.summary.submitted_millis + at) * 1_000;
        let wanted = PreemptionSummary::wanted(requested, attempt, WorkerId(1), *primitive);
        let is_lost = *primitive == Primitive::Kill;
        job.attempts.push(AttemptSummary {
            attempt,
            worker: WorkerId(1),
            worker_name: "w1".to_owned(),
            launched_millis: job.summary.submitted_millis,
            ended_millis: job.summary.ended_millis,
            end: Some("succeeded".to_owned()),
            figures: None,
            moments: None,
        });
        job.preemptions.push(PreemptionSummary {
            by: "natjam".to_owned(),
            beneficiary: Some(JobId(9)),
            freed_micros: end.map(|_| requested + 10_000),
            end: *end,
            work_saved_millis: if is_lost { 0 } else { 40 },
            work_lost_millis: if is_lost { 40 } else { 0 },
            ..wanted
        });
    }
    job
}

/// A succeeded job with one short map, whose reduce 2 read far more records than the others and held it up by 9.6 s.
pub fn skewed() -> JobDetail {
    let mut job = detail();
    let begun = job.summary.submitted_millis;
    let map = PhaseProgress {
        tasks: 1,
        done: 1,
        ..PhaseProgress::default()
    };
    let reduce = PhaseProgress {
        tasks: 5,
        done: 5,
        ..PhaseProgress::default()
    };
    (job.summary.phase, job.summary.reason) = (JobPhase::Succeeded, None);
    job.summary.progress = JobProgress {
        map,
        reduce,
        ..JobProgress::default()
    };
    job.summary.ended_millis = Some(begun + 15_000);
    let ran = |kind, index, took, input_records| AttemptSummary {
        attempt: AttemptId {
            task: TaskId {
                job: job.summary.job,
                kind,
                index,
            },
            number: 1,
        },
        ended_millis: Some(begun + 100 + took),
        end: Some("succeeded".to_owned()),
        figures: Some(AttemptFigures {
            input_records,
            ..AttemptFigures::default()
        }),
        ..job.attempts[0].clone()
    };
    let reduces = (0..5).map(|index| {
        let (took, records) = if index == 2 {
            (14_600, 34_000)
        } else {
            (5_000, 1_000)
        };
        ran(TaskKind::Reduce, index, took, records)
    });
    job.attempts = std::iter::once(ran(TaskKind::Map, 0, 0, 9))
        .chain(reduces)
        .collect();
    job
}

/// A worker with two map slots, of which `used` are used, and one reduce slot.
pub fn worker(number: u32, state: WorkerPhase, used: u32) -> WorkerSummary {
    WorkerSummary {
        worker: WorkerId(number),
        name: format!("w{number}"),
        host: "h".to_owned(),
        rack: "r".to_owned(),
        state,
        remarks: Vec::new(),
        failing: None,
        isolation: "none".to_owned(),
        gone_millis: None,
        reason: (state == WorkerPhase::Lost).then(|| "silent\u{1b}[2J".to_owned()),
        map_slots: (2, used),
        reduce_slots: (1, 0),
        silent_millis: 0,
        memory: WorkerMemory::default(),
    }
}
