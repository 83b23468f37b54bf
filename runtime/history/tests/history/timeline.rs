//! Stints, naps and traces derived from given job histories.

use std::collections::HashMap;
use std::path::PathBuf;

use napreduce_engine::{AttemptId, JobId, Primitive, TaskId, TaskKind, WorkerId};
use napreduce_history::{StintEnd, Timeline, write_trace};
use napreduce_protocol::{
    AttemptMoments, AttemptSummary, HistoryLine, JobDetail, JobPhase, JobProgress, JobSummary,
    PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary,
};
use serde_json::Value;

/// Times below are milliseconds after this one.
const BEGAN: u64 = 1_790_000_000_000;
const NOW: u64 = (BEGAN + 90_000) * 1_000;

struct History(JobDetail);

impl History {
    fn new() -> History {
        History(JobDetail {
            events: vec![HistoryLine {
                at_millis: BEGAN,
                text: "submitted".to_owned(),
            }],
            ..JobDetail::new(JobSummary {
                job: JobId(7),
                name: "<b>count</b>\n".to_owned(),
                user: "ada".to_owned(),
                queue: "default".to_owned(),
                priority: 0,
                phase: JobPhase::Running,
                reason: None,
                submitted_millis: BEGAN,
                ended_millis: None,
                progress: JobProgress::default(),
                output: PathBuf::new(),
                unrecorded: None,
            })
        })
    }

    fn ran(mut self, number: u32, worker: u32, from: u64, until: Option<(u64, &str)>) -> History {
        self.0.attempts.push(AttemptSummary {
            attempt: attempt(number),
            worker: WorkerId(worker),
            worker_name: format!("host-{worker}"),
            launched_millis: BEGAN + from,
            ended_millis: until.map(|(until, _)| BEGAN + until),
            end: until.map(|(_, end)| end.to_owned()),
            figures: None,
            moments: None,
        });
        self
    }

    fn taken(mut self, number: u32, worker: u32, at: u64, end: PreemptionEnd) -> History {
        let wanted = PreemptionSummary::wanted(
            (BEGAN + at) * 1_000,
            attempt(number),
            WorkerId(worker),
            Primitive::Suspend,
        );
        self.0.preemptions.push(PreemptionSummary {
            freed_micros: Some((BEGAN + at) * 1_000),
            end: Some(end),
            by: "natjam".to_owned(),
            reason: "job 9 is due".to_owned(),
            beneficiary: Some(JobId(9)),
            resident_bytes: 1 << 20,
            ..wanted
        });
        self
    }

    fn resumed(mut self, number: u32, worker: u32, at: u64) -> History {
        self.0.resumes.push(ResumeSummary {
            attempt: attempt(number),
            worker: WorkerId(worker),
            ordered_micros: (BEGAN + at) * 1_000,
            resumed_micros: Some((BEGAN + at) * 1_000),
            worker_micros: None,
            suspended_millis: 0,
            swapped_bytes: 0,
            swapped_in_bytes: 0,
        });
        self
    }

    fn restored(mut self, number: u32, from: u32, worker: u32, at: u64) -> History {
        self.0.restores.push(RestoreSummary {
            attempt: attempt(number),
            from: attempt(from),
            worker: WorkerId(worker),
            from_worker: None,
            ordered_micros: (BEGAN + at) * 1_000,
            restored_micros: None,
            worker_micros: None,
            work_saved_millis: 0,
            refused: None,
        });
        self
    }

    /// Checks the stints and naps in words.
    fn check(&self, stints: &[&str], naps: &[&str]) {
        let timeline = Timeline::new(&self.0, NOW);
        let at = |micros: u64| micros / 1_000 - BEGAN;
        let found: Vec<String> = timeline
            .stints
            .iter()
            .map(|stint| {
                let end = match stint.end {
                    StintEnd::Open => "open",
                    StintEnd::Suspended => "suspended",
                    StintEnd::Checkpointed => "checkpointed",
                    StintEnd::Killed => "killed",
                    StintEnd::Ended => stint.end_text.unwrap_or("ended"),
                };
                let restored = stint.restore.map_or_else(String::new, |restore| {
                    format!(" from {}", restore.from.number)
                });
                let from = at(stint.from_micros);
                let until = at(stint.until_micros);
                format!(
                    "{} on {} {from}..{until} {end}{restored}",
                    stint.attempt.number, stint.worker.0
                )
            })
            .collect();
        assert_eq!(found, stints);
        let found: Vec<String> = timeline
            .naps
            .iter()
            .map(|nap| {
                let kind = if nap.is_suspended() {
                    "suspended"
                } else {
                    "checkpointed"
                };
                format!(
                    "{} on {} {}..{} {kind}",
                    nap.attempt.number,
                    nap.worker.0,
                    at(nap.from_micros),
                    at(nap.until_micros)
                )
            })
            .collect();
        assert_eq!(found, naps);
    }
}

fn attempt(number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(7),
            kind: TaskKind::Reduce,
            index: 1,
        },
        number,
    }
}

#[test]
fn start_belongs_to_the_first_stint_with_exact_times() {
    let mut history = History::new()
        .ran(1, 1, 0, Some((9_000, "succeeded")))
        .taken(1, 1, 2_000, PreemptionEnd::Suspended)
        .resumed(1, 1, 5_000);
    let micros = |millis: u64, rest: u64| (BEGAN + millis) * 1_000 + rest;
    let launched = micros(0, 123);
    let started = Some(micros(40, 7));
    let ended = Some(micros(9_000, 456));
    history.0.attempts[0].moments = Some(AttemptMoments {
        launched,
        started,
        ended,
    });
    let timeline = Timeline::new(&history.0, NOW);
    let stints: Vec<_> = timeline
        .stints
        .iter()
        .map(|stint| (stint.from_micros, stint.started_micros, stint.until_micros))
        .collect();
    assert_eq!(
        stints,
        [
            (launched, started, micros(2_000, 0)),
            (micros(5_000, 0), None, micros(9_000, 456))
        ]
    );
}

#[test]
fn attempt_without_preemption_is_one_stint() {
    let job = History::new()
        .ran(1, 1, 10, Some((40, "failed: bad row")))
        .ran(2, 2, 50, None);
    job.check(
        &["1 on 1 10..40 failed: bad row", "2 on 2 50..90000 open"],
        &[],
    );
}

#[test]
fn suspended_attempt_naps_until_resumed() {
    let job = History::new()
        .ran(1, 1, 10, Some((90, "succeeded")))
        .taken(1, 1, 20, PreemptionEnd::Suspended)
        .resumed(1, 1, 35)
        .taken(1, 1, 50, PreemptionEnd::Withdrawn)
        .taken(1, 1, 60, PreemptionEnd::Suspended)
        .resumed(1, 1, 70);
    job.check(
        &[
            "1 on 1 10..20 suspended",
            "1 on 1 35..60 suspended",
            "1 on 1 70..90 succeeded",
        ],
        &["1 on 1 20..35 suspended", "1 on 1 60..70 suspended"],
    );
    let suspended = History::new()
        .ran(1, 1, 10, None)
        .taken(1, 1, 20, PreemptionEnd::Suspended);
    suspended.check(
        &["1 on 1 10..20 suspended"],
        &["1 on 1 20..90000 suspended"],
    );
    let lost =
        History::new()
            .ran(1, 1, 10, Some((80, "lost")))
            .taken(1, 1, 20, PreemptionEnd::Suspended);
    lost.check(&["1 on 1 10..20 suspended"], &["1 on 1 20..80 suspended"]);
}

#[test]
fn checkpointed_work_naps_until_restored() {
    let job = History::new()
        .ran(1, 1, 10, Some((21, "checkpointed")))
        .taken(1, 1, 20, PreemptionEnd::Checkpointed)
        .ran(2, 2, 45, Some((60, "succeeded")))
        .restored(2, 1, 2, 45);
    job.check(
        &[
            "1 on 1 10..20 checkpointed",
            "2 on 2 45..60 succeeded from 1",
        ],
        &["1 on 1 20..45 checkpointed"],
    );
}

#[test]
fn converted_suspension_holds_no_slot() {
    let saved = History::new()
        .ran(1, 1, 10, Some((31, "checkpointed")))
        .taken(1, 1, 20, PreemptionEnd::Suspended)
        .taken(1, 1, 30, PreemptionEnd::Checkpointed)
        .ran(2, 2, 45, None)
        .restored(2, 1, 2, 45);
    saved.check(
        &["1 on 1 10..20 suspended", "2 on 2 45..90000 open from 1"],
        &["1 on 1 20..30 suspended", "1 on 1 30..45 checkpointed"],
    );
    let killed = History::new()
        .ran(1, 1, 10, Some((31, "killed")))
        .taken(1, 1, 20, PreemptionEnd::Suspended)
        .taken(1, 1, 30, PreemptionEnd::Killed);
    killed.check(&["1 on 1 10..20 suspended"], &["1 on 1 20..30 suspended"]);
}

#[test]
fn trace_slots_do_not_overlap_and_naps_end() {
    let job = History::new()
        .ran(1, 1, 10, Some((31, "checkpointed")))
        .ran(2, 1, 31, Some((80, "succeeded")))
        .taken(1, 1, 20, PreemptionEnd::Suspended)
        .resumed(1, 1, 22)
        .taken(1, 1, 31, PreemptionEnd::Checkpointed)
        .restored(2, 1, 1, 31);
    let mut bytes = Vec::new();
    let figures = write_trace(std::slice::from_ref(&job.0), NOW, &mut bytes).expect("written");
    assert_eq!((figures.stints, figures.naps), (3, 2));
    let trace: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(trace["otherData"]["base_micros"], BEGAN * 1_000);
    let events = trace["traceEvents"].as_array().expect("an array");
    let of = |kind: &str| {
        events
            .iter()
            .filter(|event| event["ph"] == kind)
            .collect::<Vec<_>>()
    };
    let mut threads: HashMap<(u64, u64), Vec<(u64, u64)>> = HashMap::new();
    for bar in of("X") {
        let number = |name: &str| {
            bar[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name} of {bar}"))
        };
        threads
            .entry((number("pid"), number("tid")))
            .or_default()
            .push((number("ts"), number("dur")));
    }
    // The job, and the one slot that suffices.
    assert_eq!(threads.len(), 2, "{threads:?}");
    for bars in threads.values_mut() {
        bars.sort_unstable();
        assert!(
            bars.windows(2)
                .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0),
            "{bars:?}"
        );
    }
    let naps = of("b");
    assert_eq!(
        naps.iter()
            .map(|nap| nap["name"].as_str())
            .collect::<Vec<_>>(),
        [Some("suspended"), Some("checkpointed")]
    );
    assert_eq!(naps[0]["args"]["by"], "natjam");
    assert_eq!(naps[0]["args"]["beneficiary"], "job_0009");
    assert_eq!(of("e").len(), naps.len());
    let held: Vec<_> = of("C")
        .iter()
        .map(|event| event["args"]["bytes"].as_u64())
        .collect();
    assert_eq!(held, [Some(1 << 20), Some(0)]);
    let named: Vec<_> = of("M")
        .iter()
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    assert_eq!(
        named,
        [
            "jobs",
            "job_0007 <b>count</b>\n",
            "worker_0001 host-1",
            "reduce slot 1"
        ]
    );
    assert_eq!(of("i")[0]["args"]["text"], "submitted");
}
