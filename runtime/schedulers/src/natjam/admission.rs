//! Deadline admission: an upper bound on the finish time of each job, from the work that precedes it.
//!
//! While a job waits for slots of a kind, all slots work for jobs that precede it, for the job itself, or on
//! earlier tasks that are not preempted. Its last task therefore starts once that work, divided among the
//! slots, is done, and ends one task length later (R. Graham, Bounds on Multiprocessing Timing Anomalies,
//! 1969). Reduces follow maps.

use std::fmt;

use serde::{Deserialize, Serialize};

use napreduce_engine::{ByKind, JobId, Span, TaskKind, Time};

/// The handling of a job that may miss its deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadlineAdmission {
    /// No check.
    #[default]
    Off,
    /// The job is accepted with a warning.
    Warn,
    /// The job is rejected at submission.
    Refuse,
}

/// The remaining tasks of a job for one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DueWork {
    /// Total run time in sequence.
    pub total: Span,
    /// Full length of the longest task.
    pub longest: Span,
}

impl DueWork {
    fn combine(self, more: DueWork) -> DueWork {
        let total = Span(self.total.0.saturating_add(more.total.0));
        DueWork {
            total,
            longest: self.longest.max(more.longest),
        }
    }
}

/// A job with a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueJob {
    pub job: JobId,
    pub deadline: Time,
    /// Remaining work.
    pub work: ByKind<DueWork>,
    /// Time for which its running attempts may still hold their slots, in sequence.
    pub held: ByKind<Span>,
}

/// The slots of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DueSlots {
    pub count: u32,
    /// As [`DueJob::held`], for jobs without a deadline.
    pub held: Span,
    /// Time until all slots are preempted from less urgent jobs; `None` if they are not preempted.
    pub taking: Option<Span>,
}

/// The reason why a job is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lateness {
    /// The job itself would be late.
    Own { before: usize, by: Span },
    /// The job would make another one late.
    Other { job: JobId, by: Span },
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lateness::Own { before, by } => {
                let others = match before {
                    0 => "its tasks alone".to_owned(),
                    1 => "its tasks and those of 1 job with an earlier deadline".to_owned(),
                    more => format!("its tasks and those of {more} jobs with earlier deadlines"),
                };
                write!(f, "{others} may take {by} longer than its deadline allows")
            }
            Lateness::Other { job, by } => {
                write!(f, "{job}, whose deadline is later, may then be {by} late")
            }
        }
    }
}

/// Returns an upper bound on the duration of tasks that precede all others; `less` is the time held by less
/// urgent jobs.
fn stage(kind: TaskKind, work: DueWork, less: Span, slots: DueSlots) -> Span {
    if work.total == Span(0) {
        return Span(0);
    }
    // Without slots it never ends.
    let Some(others) = slots.count.checked_sub(1) else {
        return Span(u64::MAX);
    };
    let (kept, taking) = match slots.taking {
        // Less urgent jobs may have started reduces while the maps ran.
        Some(taking) if less > Span(0) || kind == TaskKind::Reduce => (Span(0), taking),
        Some(_) => (Span(0), Span(0)),
        None => (less, Span(0)),
    };
    let all = u128::from(work.total.0) + u128::from(kept.0);
    let all = all + u128::from(others) * u128::from(work.longest.0);
    let divided = u64::try_from(all.div_ceil(u128::from(slots.count))).unwrap_or(u64::MAX);
    Span(divided.saturating_add(taking.0))
}

/// Returns the latest finish time of work that precedes all others.
fn ends(now: Time, work: &ByKind<DueWork>, less: &ByKind<Span>, slots: &ByKind<DueSlots>) -> Time {
    let stages = TaskKind::ALL
        .into_iter()
        .map(|kind| stage(kind, work[kind], less[kind], slots[kind]));
    Time(stages.fold(now.0, |end, stage| end.saturating_add(stage.0)))
}

/// Checks whether the job at index `place` and the admitted jobs can meet their deadlines. `jobs` must be in
/// service order.
///
/// # Errors
/// Reports the job that would be late.
pub fn admit(
    now: Time,
    jobs: &[DueJob],
    place: usize,
    slots: &ByKind<DueSlots>,
) -> Result<(), Lateness> {
    let mut with = ByKind::<DueWork>::default();
    let mut without = ByKind::<DueWork>::default();
    let mut less = ByKind {
        map: slots.map.held,
        reduce: slots.reduce.held,
    };
    for due in jobs {
        less.map = Span(less.map.0.saturating_add(due.held.map.0));
        less.reduce = Span(less.reduce.0.saturating_add(due.held.reduce.0));
    }
    for (at, due) in jobs.iter().enumerate() {
        for kind in TaskKind::ALL {
            less[kind] = Span(less[kind].0.saturating_sub(due.held[kind].0));
            with[kind] = with[kind].combine(due.work[kind]);
            if at != place {
                without[kind] = without[kind].combine(due.work[kind]);
            }
        }
        let end = ends(now, &with, &less, slots);
        if at < place || end <= due.deadline {
            continue;
        }
        if at == place {
            return Err(Lateness::Own {
                before: place,
                by: end.since(due.deadline),
            });
        }
        // A job that is late regardless does not block admission.
        if ends(now, &without, &less, slots) <= due.deadline {
            return Err(Lateness::Other {
                job: due.job,
                by: end.since(due.deadline),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(tasks: u64, each: u64) -> ByKind<DueWork> {
        let work = DueWork {
            total: Span::from_secs(tasks * each),
            longest: Span::from_secs(each),
        };
        ByKind {
            map: work,
            reduce: DueWork::default(),
        }
    }

    fn due(job: u32, deadline: u64, work: ByKind<DueWork>) -> DueJob {
        let held = ByKind::default();
        DueJob {
            job: JobId(job),
            deadline: Time(deadline * 1_000_000),
            work,
            held,
        }
    }

    fn slots(count: u32, taking: Option<Span>) -> ByKind<DueSlots> {
        let each = DueSlots {
            count,
            held: Span(0),
            taking,
        };
        ByKind {
            map: each,
            reduce: each,
        }
    }

    #[test]
    fn one_slot_bound_is_sum_of_work() {
        let one = slots(1, None);
        let jobs = [
            due(1, 10, maps(1, 10)),
            due(2, 15, maps(1, 5)),
            due(3, 100, maps(1, 1)),
        ];
        for place in 0..3 {
            assert_eq!(admit(Time(0), &jobs, place, &one), Ok(()));
        }
        let own = [due(1, 10, maps(1, 10)), due(2, 14, maps(1, 5))];
        assert_eq!(
            admit(Time(0), &own, 1, &one),
            Err(Lateness::Own {
                before: 1,
                by: Span::from_secs(1)
            })
        );
        assert_eq!(
            admit(Time(0), &own, 0, &one),
            Err(Lateness::Other {
                job: JobId(2),
                by: Span::from_secs(1)
            }),
            "job 2 was admitted first"
        );
    }

    #[test]
    fn job_late_regardless_does_not_block_admission() {
        let jobs = [due(1, 10, maps(1, 5)), due(2, 12, maps(1, 20))];
        assert_eq!(admit(Time(0), &jobs, 0, &slots(1, None)), Ok(()));
    }

    #[test]
    fn several_slots_bound_adds_last_task() {
        // Five tasks of 10 s on two slots: (50 + 10) / 2.
        let jobs = |deadline| [due(1, deadline, maps(5, 10))];
        assert_eq!(admit(Time(0), &jobs(30), 0, &slots(2, None)), Ok(()));
        assert!(admit(Time(0), &jobs(29), 0, &slots(2, None)).is_err());
    }

    #[test]
    fn bound_adds_reduces_after_maps() {
        let work = ByKind {
            map: maps(2, 10).map,
            reduce: maps(1, 7).map,
        };
        assert_eq!(
            admit(Time(0), &[due(1, 27, work)], 0, &slots(1, None)),
            Ok(())
        );
        assert!(admit(Time(0), &[due(1, 26, work)], 0, &slots(1, None)).is_err());
    }

    #[test]
    fn bound_counts_held_slots_unless_preempted() {
        let held = ByKind {
            map: Span::from_secs(8),
            reduce: Span(0),
        };
        let jobs = |deadline| {
            [
                due(1, deadline, maps(1, 10)),
                DueJob {
                    held,
                    ..due(2, 90, maps(1, 20))
                },
            ]
        };
        let taken = slots(1, Some(Span::from_secs(1)));
        assert_eq!(admit(Time(0), &jobs(18), 0, &slots(1, None)), Ok(()));
        assert!(admit(Time(0), &jobs(17), 0, &slots(1, None)).is_err());
        assert_eq!(admit(Time(0), &jobs(11), 0, &taken), Ok(()));
        assert!(admit(Time(0), &jobs(10), 0, &taken).is_err());
    }

    #[test]
    fn zero_slots_admit_only_empty_jobs() {
        assert!(admit(Time(0), &[due(1, 1 << 40, maps(1, 1))], 0, &slots(0, None)).is_err());
        assert_eq!(
            admit(Time(0), &[due(1, 1, maps(0, 0))], 0, &slots(0, None)),
            Ok(())
        );
    }
}
