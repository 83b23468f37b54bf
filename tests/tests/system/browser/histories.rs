//! Generated histories of jobs that never ran.

use std::path::Path;

use napreduce_engine::{AttemptId, JobId, Primitive, TaskId, TaskKind, WorkerId};
use napreduce_history::{EndedJob, History, HistoryLimits, HistoryStore};
use napreduce_protocol::{
    AttemptSummary, HistoryLine, JobDetail, JobEnd, JobPhase, JobProgress, JobSummary,
    PhaseProgress, PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary,
};

const BASE: u64 = 1_790_000_000_000;
const EVIL: &str = "<img src=x onerror=alert(1)>";

fn attempt(index: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index,
        },
        number: 1,
    }
}

fn ended(name: &str, tasks: u32, took: u64) -> JobDetail {
    let map = PhaseProgress {
        tasks,
        done: tasks,
        ..PhaseProgress::default()
    };
    JobDetail {
        events: vec![HistoryLine {
            at_millis: BASE,
            text: name.to_owned(),
        }],
        ..JobDetail::new(JobSummary {
            job: JobId(1),
            name: name.to_owned(),
            user: name.to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase: JobPhase::Killed,
            reason: Some(name.to_owned()),
            submitted_millis: BASE,
            ended_millis: Some(BASE + took),
            progress: JobProgress {
                map,
                ..JobProgress::default()
            },
            output: "/data/out".into(),
            unrecorded: None,
        })
    }
}

fn keep(directory: &Path, details: impl IntoIterator<Item = JobDetail>) {
    std::fs::create_dir_all(directory).expect("a folder");
    let limits = HistoryLimits {
        jobs_max: 1_000,
        bytes_max: u64::MAX,
    };
    let (history, remarks) = History::open(directory, limits).expect("a history");
    assert!(remarks.is_empty(), "{remarks:?}");
    for detail in details {
        let end = JobEnd::Killed {
            job: detail.summary.job,
            reason: detail.summary.name.clone(),
        };
        let job = EndedJob {
            token: 1,
            end,
            detail,
            cluster: None,
            logs: Vec::new(),
        };
        history.add(&job).expect("it is written");
    }
}

/// A job whose every text contains HTML markup, and which was suspended.
pub fn hostile(directory: &Path) {
    let mut job = ended(EVIL, 1, 9_000);
    job.counters.add(EVIL, 1);
    job.attempts.push(AttemptSummary {
        attempt: attempt(0),
        worker: WorkerId(1),
        worker_name: EVIL.to_owned(),
        launched_millis: BASE,
        ended_millis: Some(BASE + 8_000),
        end: Some(EVIL.to_owned()),
        figures: None,
        moments: None,
    });
    let micros = |millis: u64| (BASE + millis) * 1_000;
    let wanted =
        PreemptionSummary::wanted(micros(1_000), attempt(0), WorkerId(1), Primitive::Suspend);
    job.preemptions.push(PreemptionSummary {
        by: EVIL.to_owned(),
        reason: EVIL.to_owned(),
        freed_micros: Some(micros(1_002)),
        end: Some(PreemptionEnd::Suspended),
        resident_bytes: 310 << 20,
        ..wanted
    });
    job.resumes.push(ResumeSummary {
        attempt: attempt(0),
        worker: WorkerId(1),
        ordered_micros: micros(5_000),
        resumed_micros: Some(micros(5_001)),
        worker_micros: None,
        suspended_millis: 3_998,
        swapped_bytes: 0,
        swapped_in_bytes: 0,
    });
    keep(directory, [job]);
}

/// Jobs 2 to `last`, small ones.
pub fn small(directory: &Path, last: u32) {
    let job = |number| {
        let mut job = ended("small", 1, 1_000);
        job.summary.job = JobId(number);
        job
    };
    keep(directory, (2..=last).map(job));
}

/// A job with this many maps, one after another on this many slots.
pub fn large(directory: &Path, maps: u32, slots: u32) {
    let mut job = ended("large", maps, 60_000_000);
    let length = |index: u32| 500 + u64::from(index.wrapping_mul(2_654_435_761) % 1_000);
    let mut free = vec![BASE; slots as usize];
    for index in 0..maps {
        let slot = (index % slots) as usize;
        let until = free[slot] + length(index);
        job.attempts.push(AttemptSummary {
            attempt: attempt(index),
            worker: WorkerId(slot as u32 / 4 + 1),
            worker_name: format!("worker-{}", slot / 4 + 1),
            launched_millis: free[slot],
            ended_millis: Some(until),
            end: Some("succeeded".to_owned()),
            figures: None,
            moments: None,
        });
        free[slot] = until;
    }
    let last = free.into_iter().max().expect("slots");
    job.summary.ended_millis = Some(last);
    keep(directory, [job]);
}

/// A large job that lost its slots 3,480 times, and sixty newer jobs of another queue that each lost one;
/// with a given end time.
pub fn preempted(directory: &Path, tasks: u32, ended_millis: u64) {
    for number in 1..=61 {
        let (tasks, taken) = if number == 1 { (tasks, 3_480) } else { (1, 1) };
        let mut job = ended("preempted", tasks, 0);
        let begun = ended_millis - 9_000;
        let end = ended_millis;
        job.summary.job = JobId(number);
        job.summary.queue = if number == 1 {
            "research"
        } else {
            "production"
        }
        .to_owned();
        (job.summary.submitted_millis, job.summary.ended_millis) = (begun, Some(end));
        let of_job = |index| {
            let id = attempt(index);
            AttemptId {
                task: TaskId {
                    job: JobId(number),
                    ..id.task
                },
                ..id
            }
        };
        job.attempts.extend((0..tasks).map(|index| AttemptSummary {
            attempt: of_job(index),
            worker: WorkerId(index % 100 + 1),
            worker_name: format!("machine-{}", index % 100),
            launched_millis: begun + 1_000,
            ended_millis: Some(end - 1_000),
            end: Some("succeeded".to_owned()),
            figures: None,
            moments: None,
        }));
        job.preemptions.extend((0..taken).map(|index| {
            let requested = (begun + 2_000) * 1_000 + u64::from(index);
            let victim = of_job(index % tasks);
            PreemptionSummary {
                by: "natjam".to_owned(),
                freed_micros: Some(requested + 1_000),
                end: Some(PreemptionEnd::Suspended),
                work_saved_millis: 1_000,
                ..PreemptionSummary::wanted(requested, victim, WorkerId(1), Primitive::Suspend)
            }
        }));
        keep(directory, [job]);
    }
}

/// Two maps. Attempt `.1` of the first was checkpointed, and `.2` restored it, according to a clock that is
/// slightly behind. For the second, `.2` was faster than `.1`, which was killed and is the last in the list.
pub fn causes(directory: &Path) {
    let mut job = ended("causes", 2, 9_000);
    let micros = |millis: u64| (BASE + millis) * 1_000;
    let mut add = |index: u32, number: u32, launched: u64, end: u64, words: &str| {
        let attempt = AttemptId {
            number,
            ..attempt(index)
        };
        job.attempts.push(AttemptSummary {
            attempt,
            worker: WorkerId(10 * (index + 1) + number),
            worker_name: format!("machine-{}", 10 * (index + 1) + number),
            launched_millis: BASE + launched,
            ended_millis: Some(BASE + end),
            end: Some(words.to_owned()),
            figures: None,
            moments: None,
        });
        attempt
    };
    let first = add(0, 1, 100, 3_001, "checkpointed");
    let second = add(0, 2, 3_000, 8_000, "succeeded");
    add(1, 2, 2_000, 5_000, "succeeded");
    add(1, 1, 100, 5_000, "killed: another attempt was quicker");
    job.preemptions.push(PreemptionSummary {
        by: "natjam".to_owned(),
        freed_micros: Some(micros(3_000) + 400),
        end: Some(PreemptionEnd::Checkpointed),
        ..PreemptionSummary::wanted(micros(2_990), first, WorkerId(11), Primitive::Checkpoint)
    });
    job.restores.push(RestoreSummary {
        attempt: second,
        from: first,
        worker: WorkerId(12),
        from_worker: Some(WorkerId(11)),
        ordered_micros: micros(3_000),
        restored_micros: Some(micros(3_100)),
        worker_micros: None,
        work_saved_millis: 2_800,
        refused: None,
    });
    keep(directory, [job]);
}

/// A job with this many concurrent maps; the last one was killed and retried.
pub fn tall(directory: &Path, maps: u32) {
    let mut job = ended("tall", maps, 9_000);
    for index in 0..maps {
        job.attempts.push(AttemptSummary {
            attempt: attempt(index),
            worker: WorkerId(index + 1),
            worker_name: format!("machine-{index}"),
            launched_millis: BASE + 100,
            ended_millis: Some(BASE + 8_000),
            end: Some("killed".to_owned()),
            figures: None,
            moments: None,
        });
    }
    let requested = (BASE + 7_000) * 1_000;
    job.preemptions.push(PreemptionSummary {
        freed_micros: Some(requested + 1_000),
        end: Some(PreemptionEnd::Suspended),
        ..PreemptionSummary::wanted(
            requested,
            attempt(maps - 1),
            WorkerId(maps),
            Primitive::Suspend,
        )
    });
    keep(directory, [job]);
}
