//! The preemption ledger: the fate of work whose slot was taken.

use napreduce_engine::{AttemptId, JobId, Primitive, TaskId, TaskKind, WorkerId};
use napreduce_history::{Sequel, ledger_of};
use napreduce_protocol::{
    AttemptSummary, JobDetail, JobPhase, JobProgress, JobSummary, PreemptionEnd, PreemptionSummary,
    RestoreSummary, ResumeSummary,
};

/// A job with one map task.
struct Life(JobDetail);

fn attempt(number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(7),
            kind: TaskKind::Map,
            index: 0,
        },
        number,
    }
}

impl Life {
    fn new() -> Life {
        let summary = JobSummary {
            job: JobId(7),
            name: "words".to_owned(),
            user: "ada".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase: JobPhase::Running,
            reason: None,
            submitted_millis: 0,
            ended_millis: None,
            progress: JobProgress::default(),
            output: "out".into(),
            unrecorded: None,
        };
        Life(JobDetail::new(summary)).launched(1)
    }

    fn launched(mut self, number: u32) -> Life {
        self.0.attempts.push(AttemptSummary {
            attempt: attempt(number),
            worker: WorkerId(1),
            worker_name: "left".to_owned(),
            launched_millis: 0,
            ended_millis: None,
            end: None,
            figures: None,
            moments: None,
        });
        self
    }

    fn taken(mut self, number: u32, at_micros: u64, end: Option<PreemptionEnd>) -> Life {
        let wanted =
            PreemptionSummary::wanted(at_micros, attempt(number), WorkerId(1), Primitive::Suspend);
        let freed_micros = end.map(|_| at_micros);
        self.0.preemptions.push(PreemptionSummary {
            freed_micros,
            end,
            ..wanted
        });
        self
    }

    fn resumed(mut self, ordered_micros: u64) -> Life {
        self.0.resumes.push(ResumeSummary {
            attempt: attempt(1),
            worker: WorkerId(1),
            ordered_micros,
            resumed_micros: None,
            worker_micros: None,
            suspended_millis: 0,
            swapped_bytes: 0,
            swapped_in_bytes: 0,
        });
        self
    }

    fn restored(mut self, number: u32, refused: Option<&str>) -> Life {
        self.0.restores.push(RestoreSummary {
            attempt: attempt(number),
            from: attempt(1),
            worker: WorkerId(2),
            from_worker: Some(WorkerId(1)),
            ordered_micros: 900,
            restored_micros: None,
            worker_micros: None,
            work_saved_millis: 0,
            refused: refused.map(str::to_owned),
        });
        self
    }

    fn attempt_ended(mut self) -> Life {
        self.0.attempts[0].ended_millis = Some(1);
        self
    }

    fn job_ended(mut self) -> Life {
        self.0.summary.ended_millis = Some(1);
        self
    }

    /// The outcome of each request in words; `-` for none.
    fn sequels(&self) -> Vec<&'static str> {
        ledger_of(&self.0)
            .iter()
            .map(|entry| entry.sequel.as_ref().map_or("-", Sequel::in_words))
            .collect()
    }
}

const SUSPENDED: Option<PreemptionEnd> = Some(PreemptionEnd::Suspended);
const CHECKPOINTED: Option<PreemptionEnd> = Some(PreemptionEnd::Checkpointed);
const KILLED: Option<PreemptionEnd> = Some(PreemptionEnd::Killed);

#[test]
fn slot_not_taken_has_no_sequel() {
    use PreemptionEnd::{Ended, Finished, Withdrawn};
    for end in [None, Some(Finished), Some(Ended), Some(Withdrawn)] {
        assert_eq!(Life::new().taken(1, 10, end).sequels(), ["-"], "{end:?}");
    }
}

#[test]
fn suspended_work_waits_resumes_or_is_lost() {
    let stopped = || Life::new().taken(1, 10, SUSPENDED);
    assert_eq!(stopped().sequels(), ["waiting"]);
    assert_eq!(stopped().resumed(10).sequels(), ["resumed"]);
    assert_eq!(stopped().attempt_ended().sequels(), ["lost"]);
    assert_eq!(
        stopped().attempt_ended().job_ended().sequels(),
        ["-"],
        "the job ended first"
    );
}

#[test]
fn each_suspension_has_its_own_resume() {
    let twice = Life::new()
        .taken(1, 10, SUSPENDED)
        .resumed(20)
        .taken(1, 30, SUSPENDED);
    assert_eq!(twice.sequels(), ["resumed", "waiting"]);
    assert_eq!(twice.resumed(40).sequels(), ["resumed", "resumed"]);
}

#[test]
fn converted_suspension_shares_the_sequel() {
    let converted = |end| Life::new().taken(1, 10, SUSPENDED).taken(1, 20, end);
    assert_eq!(converted(KILLED).sequels(), ["lost", "lost"]);
    assert_eq!(converted(CHECKPOINTED).sequels(), ["waiting", "waiting"]);
    assert_eq!(
        converted(CHECKPOINTED).restored(2, None).sequels(),
        ["restored", "restored"]
    );
}

#[test]
fn later_kill_does_not_change_a_resumed_suspension() {
    let life = Life::new()
        .taken(1, 10, SUSPENDED)
        .resumed(20)
        .taken(1, 30, KILLED);
    assert_eq!(life.sequels(), ["resumed", "lost"]);
}

#[test]
fn checkpointed_work_waits_is_restored_or_lost() {
    let saved = || Life::new().taken(1, 10, CHECKPOINTED).attempt_ended();
    assert_eq!(saved().sequels(), ["waiting"]);
    assert_eq!(saved().restored(2, None).sequels(), ["restored"]);
    assert_eq!(saved().restored(2, Some("damaged")).sequels(), ["lost"]);
    assert_eq!(
        saved()
            .restored(2, Some("damaged"))
            .restored(3, None)
            .sequels(),
        ["restored"]
    );
    assert_eq!(saved().job_ended().sequels(), ["-"]);
}

#[test]
fn killed_work_is_lost_even_after_the_job() {
    assert_eq!(
        Life::new().taken(1, 10, KILLED).job_ended().sequels(),
        ["lost"]
    );
}
