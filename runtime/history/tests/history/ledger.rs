//! What became of work whose slot was taken, against lives told one step after the other.
//!
//! Owns the cases of `ledger_of`. Does not own stints and naps (`timeline`).

use napreduce_engine::{AttemptId, JobId, Primitive, TaskId, TaskKind, WorkerId};
use napreduce_history::{Sequel, ledger_of};
use napreduce_protocol::{
    AttemptSummary, JobDetail, JobPhase, JobProgress, JobSummary, PreemptionEnd, PreemptionSummary,
    RestoreSummary, ResumeSummary,
};

/// A job with one map, whose attempts have numbers.
struct Life(JobDetail);

fn attempt(number: u32) -> AttemptId {
    AttemptId { task: TaskId { job: JobId(7), kind: TaskKind::Map, index: 0 }, number }
}

impl Life {
    fn of_a_job() -> Life {
        let summary = JobSummary {
            job: JobId(7),
            name: "words".to_owned(),
            user: "ada".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase: JobPhase::Active,
            reason: None,
            submitted_millis: 0,
            ended_millis: None,
            progress: JobProgress::default(),
            output: "out".into(),
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
        let wanted = PreemptionSummary::wanted(at_micros, attempt(number), WorkerId(1), Primitive::Suspend);
        let freed_micros = end.map(|_| at_micros);
        self.0.preemptions.push(PreemptionSummary { freed_micros, end, ..wanted });
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

    fn lost(mut self) -> Life {
        self.0.attempts[0].ended_millis = Some(1);
        self
    }

    fn over(mut self) -> Life {
        self.0.summary.ended_millis = Some(1);
        self
    }

    /// What became of each request, in words; `-` where nothing is to be said.
    fn sequels(&self) -> Vec<&'static str> {
        ledger_of(&self.0).iter().map(|entry| entry.sequel.as_ref().map_or("-", Sequel::in_words)).collect()
    }
}

const SUSPENDED: Option<PreemptionEnd> = Some(PreemptionEnd::Suspended);
const CHECKPOINTED: Option<PreemptionEnd> = Some(PreemptionEnd::Checkpointed);
const KILLED: Option<PreemptionEnd> = Some(PreemptionEnd::Killed);

#[test]
fn a_slot_that_was_not_taken_has_no_sequel() {
    use PreemptionEnd::{Ended, Finished, Withdrawn};
    for end in [None, Some(Finished), Some(Ended), Some(Withdrawn)] {
        assert_eq!(Life::of_a_job().taken(1, 10, end).sequels(), ["-"], "{end:?}");
    }
}

#[test]
fn stopped_work_waits_goes_on_or_is_lost() {
    let stopped = || Life::of_a_job().taken(1, 10, SUSPENDED);
    assert_eq!(stopped().sequels(), ["waiting"]);
    assert_eq!(stopped().resumed(10).sequels(), ["resumed"]);
    assert_eq!(stopped().lost().sequels(), ["lost"]);
    assert_eq!(stopped().lost().over().sequels(), ["-"], "the job ended first");
}

#[test]
fn each_stop_has_a_resume_of_its_own() {
    let twice = Life::of_a_job().taken(1, 10, SUSPENDED).resumed(20).taken(1, 30, SUSPENDED);
    assert_eq!(twice.sequels(), ["resumed", "waiting"]);
    assert_eq!(twice.resumed(40).sequels(), ["resumed", "resumed"]);
}

#[test]
fn stopped_work_that_is_given_up_shares_what_becomes_of_it() {
    let given_up = |end| Life::of_a_job().taken(1, 10, SUSPENDED).taken(1, 20, end);
    assert_eq!(given_up(KILLED).sequels(), ["lost", "lost"]);
    assert_eq!(given_up(CHECKPOINTED).sequels(), ["waiting", "waiting"]);
    assert_eq!(given_up(CHECKPOINTED).restored(2, None).sequels(), ["restored", "restored"]);
}

#[test]
fn a_later_stop_says_nothing_of_one_that_went_on() {
    let life = Life::of_a_job().taken(1, 10, SUSPENDED).resumed(20).taken(1, 30, KILLED);
    assert_eq!(life.sequels(), ["resumed", "lost"]);
}

#[test]
fn saved_work_waits_goes_on_elsewhere_or_is_refused() {
    let saved = || Life::of_a_job().taken(1, 10, CHECKPOINTED).lost();
    assert_eq!(saved().sequels(), ["waiting"]);
    assert_eq!(saved().restored(2, None).sequels(), ["restored"]);
    assert_eq!(saved().restored(2, Some("damaged")).sequels(), ["lost"]);
    assert_eq!(saved().restored(2, Some("damaged")).restored(3, None).sequels(), ["restored"]);
    assert_eq!(saved().over().sequels(), ["-"]);
}

#[test]
fn killed_work_is_lost_even_when_the_job_is_over() {
    assert_eq!(Life::of_a_job().taken(1, 10, KILLED).over().sequels(), ["lost"]);
}
