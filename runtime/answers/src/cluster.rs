//! The status of a cluster: slots, current jobs, and why jobs wait.

use napreduce_engine::{JobId, Reason, ReasonCode};
use napreduce_protocol::{JobPhase, JobSummary, PhaseProgress, WorkerPhase, WorkerSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::JobAnswer;
use super::warnings::WarningAnswer;

/// The most waiting jobs that are explained; each is a request to the coordinator.
const EXPLAINED_MAX: usize = 20;

/// The status of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct StatusAnswer {
    pub workers: WorkerCounts,
    pub map: SlotsInUse,
    pub reduce: SlotsInUse,
    pub jobs: JobCounts,
    /// Tasks whose work is in checkpoints.
    pub checkpointed: u64,
    /// Jobs that have not ended, newest first.
    pub current: Vec<CurrentJob>,
    /// Problems that need attention.
    pub warnings: Vec<WarningAnswer>,
}

/// Number of workers in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct WorkerCounts {
    pub up: usize,
    pub excluded: usize,
    pub draining: usize,
    pub leaving: usize,
    pub lost: usize,
}

impl From<&[WorkerSummary]> for WorkerCounts {
    fn from(workers: &[WorkerSummary]) -> WorkerCounts {
        WorkerCounts {
            up: in_phase(workers, WorkerPhase::Up),
            excluded: in_phase(workers, WorkerPhase::Excluded),
            draining: in_phase(workers, WorkerPhase::Draining),
            leaving: in_phase(workers, WorkerPhase::Leaving),
            lost: in_phase(workers, WorkerPhase::Lost),
        }
    }
}

/// Number of jobs in each state. Ended jobs count while the history keeps them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct JobCounts {
    pub waiting: usize,
    pub running: usize,
    pub held: usize,
    pub suspended: usize,
    pub stopping: usize,
    pub succeeded: usize,
    pub failed: usize,
    pub killed: usize,
}

impl From<&[JobSummary]> for JobCounts {
    fn from(jobs: &[JobSummary]) -> JobCounts {
        let count = |phase| jobs.iter().filter(|job| job.phase == phase).count();
        JobCounts {
            waiting: count(JobPhase::Waiting),
            running: count(JobPhase::Running),
            held: count(JobPhase::Held),
            suspended: count(JobPhase::Suspended),
            stopping: count(JobPhase::Stopping),
            succeeded: count(JobPhase::Succeeded),
            failed: count(JobPhase::Failed),
            killed: count(JobPhase::Killed),
        }
    }
}

/// Slots for one kind of task on all present workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlotsInUse {
    pub slots: u64,
    pub used: u64,
    /// Suspended attempts, which hold no slot.
    pub suspended: u64,
}

/// A job that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CurrentJob {
    #[serde(flatten)]
    pub job: JobAnswer,
    /// The first reason why it waits, for the first waiting jobs; for a running job, that an operator suspended
    /// part of it.
    pub why: Option<String>,
    /// The code of that reason, as in explanations.
    pub code: Option<&'static str>,
}

impl StatusAnswer {
    /// Combines the lists of workers and jobs; `explain` returns why a job waits.
    ///
    /// # Errors
    /// The first error of `explain`.
    pub fn of<E>(
        workers: &[WorkerSummary],
        jobs: &[JobSummary],
        mut explain: impl FnMut(JobId) -> Result<Vec<Reason>, E>,
    ) -> Result<StatusAnswer, E> {
        let mut current = Vec::new();
        let mut explained = 0;
        let mut unended: Vec<&JobSummary> =
            jobs.iter().filter(|job| !job.phase.has_ended()).collect();
        unended.sort_by_key(|job| place_of(job.phase));
        for job in &unended {
            let is_waiting = !matches!(job.phase, JobPhase::Running | JobPhase::Stopping);
            let mut telling = None;
            let has_suspended = job.progress.map.suspended + job.progress.reduce.suspended > 0;
            if (is_waiting || has_suspended) && explained < EXPLAINED_MAX {
                explained += 1;
                // Attempts of a running job that an operator suspended are resumed by nobody else.
                let tells = |reason: &Reason| {
                    if is_waiting {
                        reason.code.is_why()
                    } else {
                        reason.code == ReasonCode::HeldByOperator
                    }
                };
                telling = explain(job.job)?.into_iter().find(tells);
            }
            let code = telling.as_ref().map(|reason| reason.code.in_words());
            let why = telling.map(|reason| reason.text);
            current.push(CurrentJob {
                job: (*job).into(),
                why,
                code,
            });
        }
        let sum =
            |of: &dyn Fn(&JobSummary) -> u32| unended.iter().map(|job| u64::from(of(job))).sum();
        let both = |job: &JobSummary, of: fn(&PhaseProgress) -> u32| {
            of(&job.progress.map) + of(&job.progress.reduce)
        };
        let mut warnings = WarningAnswer::of_workers(workers);
        warnings.extend(WarningAnswer::of_history(jobs));
        Ok(StatusAnswer {
            workers: workers.into(),
            map: slots(
                workers,
                |worker| worker.map_slots,
                sum(&|job| job.progress.map.suspended),
            ),
            reduce: slots(
                workers,
                |worker| worker.reduce_slots,
                sum(&|job| job.progress.reduce.suspended),
            ),
            jobs: jobs.into(),
            checkpointed: sum(&|job| both(job, |phase| phase.checkpointed)),
            current,
            warnings,
        })
    }
}

fn in_phase(workers: &[WorkerSummary], phase: WorkerPhase) -> usize {
    workers
        .iter()
        .filter(|worker| worker.state == phase)
        .count()
}

/// Sums slots and used slots of the present workers.
fn slots(
    workers: &[WorkerSummary],
    of: fn(&WorkerSummary) -> (u32, u32),
    suspended: u64,
) -> SlotsInUse {
    let there = workers
        .iter()
        .filter(|worker| !matches!(worker.state, WorkerPhase::Lost | WorkerPhase::Left));
    let empty = SlotsInUse {
        suspended,
        ..SlotsInUse::default()
    };
    there.map(of).fold(empty, |all, (slots, used)| SlotsInUse {
        slots: all.slots + u64::from(slots),
        used: all.used + u64::from(used),
        suspended,
    })
}

/// Returns the place of a phase in the list of current jobs: those that hold slots come first.
fn place_of(phase: JobPhase) -> u8 {
    match phase {
        JobPhase::Running => 0,
        JobPhase::Stopping => 1,
        JobPhase::Suspended => 2,
        JobPhase::Held => 3,
        JobPhase::Waiting => 4,
        JobPhase::Succeeded | JobPhase::Failed | JobPhase::Killed => 5,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::{json, to_value};

    use super::super::samples::{job, worker};
    use super::*;

    fn status(jobs: &[JobSummary]) -> StatusAnswer {
        let workers = [
            worker(1, WorkerPhase::Up, 2),
            worker(2, WorkerPhase::Lost, 1),
        ];
        let counts = "0 of 4 map tasks are done; 0 running, 0 suspended, 4 waiting";
        let reasons = |job| {
            vec![
                Reason::new(ReasonCode::State, format!("{job} is active")),
                Reason::new(ReasonCode::Progress, counts),
                Reason::new(ReasonCode::AllSlotsTaken, format!("{job} waits for a slot")),
            ]
        };
        let explain = |job| Ok::<_, Infallible>(reasons(job));
        StatusAnswer::of(&workers, jobs, explain).expect("all is explained")
    }

    #[test]
    fn status_counts_workers_slots_and_jobs() {
        let jobs = [
            job(9, JobPhase::Waiting, 0, 1),
            job(8, JobPhase::Running, 2, 0),
            job(7, JobPhase::Succeeded, 0, 0),
            job(6, JobPhase::Killed, 0, 0),
        ];
        let status = to_value(status(&jobs)).expect("JSON");
        assert_eq!(
            status["workers"],
            json!({ "up": 1, "excluded": 0, "draining": 0, "leaving": 0, "lost": 1 })
        );
        assert_eq!(
            status["map"],
            json!({ "slots": 2, "used": 2, "suspended": 1 })
        );
        assert_eq!(
            status["jobs"],
            json!({
                "waiting": 1, "running": 1, "held": 0, "suspended": 0, "stopping": 0,
                "succeeded": 1, "failed": 0, "killed": 1
            })
        );
        assert_eq!(
            (&status["current"][0]["state"], &status["current"][0]["why"]),
            (&json!("running"), &json!(null))
        );
        assert_eq!(status["current"][1]["why"], "job_0009 waits for a slot");
        assert_eq!(status["current"][1]["code"], "all-slots-taken");
        assert_eq!(status["warnings"][0]["reason"], "silent\u{1b}[2J");
    }

    #[test]
    fn jobs_that_hold_slots_come_before_waiting_ones() {
        let phases = [
            (9, JobPhase::Waiting),
            (8, JobPhase::Running),
            (7, JobPhase::Held),
            (6, JobPhase::Waiting),
            (5, JobPhase::Suspended),
            (4, JobPhase::Stopping),
            (3, JobPhase::Running),
        ];
        let status = status(&phases.map(|(number, phase)| job(number, phase, 0, 0)));
        let order: Vec<&str> = status
            .current
            .iter()
            .map(|current| &*current.job.job)
            .collect();
        let expected = [8, 3, 4, 5, 7, 9, 6].map(|number| format!("job_{number:04}"));
        assert_eq!(order, expected);
    }

    #[test]
    fn only_the_first_waiting_jobs_are_explained() {
        let jobs: Vec<JobSummary> = (1..=50)
            .map(|number| job(number, JobPhase::Waiting, 0, 0))
            .collect();
        let status = status(&jobs);
        assert_eq!(status.jobs.waiting, 50);
        let explained: Vec<bool> = status
            .current
            .iter()
            .map(|current| current.why.is_some())
            .collect();
        assert_eq!(
            explained,
            [vec![true; EXPLAINED_MAX], vec![false; 50 - EXPLAINED_MAX]].concat()
        );
    }

    #[test]
    fn failed_explanation_is_returned() {
        let failed = StatusAnswer::of(&[], &[job(1, JobPhase::Waiting, 0, 0)], |_| {
            Err("unavailable")
        });
        assert_eq!(failed, Err("unavailable"));
        assert_eq!(
            StatusAnswer::of(&[], &[], |_| Err(())),
            Ok(StatusAnswer::default())
        );
    }
}
