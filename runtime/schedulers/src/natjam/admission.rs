//! Whether jobs can be done by their deadlines: a bound on when each ends, from the work that goes before it.
//!
//! Owns the bound, over plain numbers. Does not own where lengths come from nor what follows (`deadline`).
//!
//! While a job waits for slots of a kind, all of them are at work for jobs that go before it, for itself, or
//! for what they were at when it came and that is not taken from them. So its last task begins when that is
//! done, divided among the slots, and it ends a task later (R. Graham, Bounds on Multiprocessing Timing
//! Anomalies, 1969). Maps come first, then reduces.

use std::fmt;

use serde::{Deserialize, Serialize};

use napreduce_engine::{ByKind, JobId, Span, TaskKind, Time};

/// What becomes of a job that may not be done by its deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadlineAdmission {
    /// Nobody looks.
    #[default]
    Off,
    /// It is taken, and what is said of it says so.
    Warn,
    /// It is refused when it is submitted.
    Refuse,
}

/// The tasks of a kind that a job has yet to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DueWork {
    /// All of it, one after the other.
    pub total: Span,
    /// The longest task, from its beginning.
    pub longest: Span,
}

impl DueWork {
    fn and(self, more: DueWork) -> DueWork {
        let total = Span(self.total.0.saturating_add(more.total.0));
        DueWork { total, longest: self.longest.max(more.longest) }
    }
}

/// A job with a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueJob {
    pub job: JobId,
    pub deadline: Time,
    /// What it has yet to do.
    pub work: ByKind<DueWork>,
    /// What its attempts that hold slots may yet hold them, one after the other.
    pub held: ByKind<Span>,
}

/// What the work is divided among.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DueSlots {
    pub count: u32,
    /// As `DueJob::held`, of jobs without a deadline.
    pub held: Span,
    /// How long it takes until all of them are taken from less urgent jobs; without, these keep what
    /// they hold.
    pub taking: Option<Span>,
}

/// Why a job is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lateness {
    /// It would itself be late.
    Own { before: usize, by: Span },
    /// Another one would be, which is not without it.
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

/// How long tasks of a kind take at most, which go before all others; `less` is what less urgent jobs hold.
fn stage(kind: TaskKind, work: DueWork, less: Span, slots: DueSlots) -> Span {
    if work.total == Span(0) {
        return Span(0);
    }
    // Without a slot it never ends.
    let Some(others) = slots.count.checked_sub(1) else { return Span(u64::MAX) };
    let (kept, taking) = match slots.taking {
        // Less urgent jobs may have begun to reduce while the maps ran.
        Some(taking) if less > Span(0) || kind == TaskKind::Reduce => (Span(0), taking),
        Some(_) => (Span(0), Span(0)),
        None => (less, Span(0)),
    };
    let all = u128::from(work.total.0) + u128::from(kept.0);
    let all = all + u128::from(others) * u128::from(work.longest.0);
    let divided = u64::try_from(all.div_ceil(u128::from(slots.count))).unwrap_or(u64::MAX);
    Span(divided.saturating_add(taking.0))
}

/// When work that goes before all other has ended at the latest.
fn ends(now: Time, work: &ByKind<DueWork>, less: &ByKind<Span>, slots: &ByKind<DueSlots>) -> Time {
    let stages = TaskKind::ALL.into_iter().map(|kind| stage(kind, work[kind], less[kind], slots[kind]));
    Time(stages.fold(now.0, |end, stage| end.saturating_add(stage.0)))
}

/// Whether a job can be done by its deadline beside those that were admitted, and these by theirs still. All
/// of them are in the order in which they are served; `place` is where the new one comes.
///
/// # Errors
/// Says who would be late.
pub fn admit(now: Time, jobs: &[DueJob], place: usize, slots: &ByKind<DueSlots>) -> Result<(), Lateness> {
    let (mut with, mut without) = (ByKind::<DueWork>::default(), ByKind::<DueWork>::default());
    let mut less = ByKind { map: slots.map.held, reduce: slots.reduce.held };
    for due in jobs {
        less.map = Span(less.map.0.saturating_add(due.held.map.0));
        less.reduce = Span(less.reduce.0.saturating_add(due.held.reduce.0));
    }
    for (at, due) in jobs.iter().enumerate() {
        for kind in TaskKind::ALL {
            less[kind] = Span(less[kind].0.saturating_sub(due.held[kind].0));
            with[kind] = with[kind].and(due.work[kind]);
            if at != place {
                without[kind] = without[kind].and(due.work[kind]);
            }
        }
        let end = ends(now, &with, &less, slots);
        if at < place || end <= due.deadline {
            continue;
        }
        if at == place {
            return Err(Lateness::Own { before: place, by: end.since(due.deadline) });
        }
        // One that is late in any case keeps nobody away.
        if ends(now, &without, &less, slots) <= due.deadline {
            return Err(Lateness::Other { job: due.job, by: end.since(due.deadline) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(tasks: u64, each: u64) -> ByKind<DueWork> {
        let work = DueWork { total: Span::from_secs(tasks * each), longest: Span::from_secs(each) };
        ByKind { map: work, reduce: DueWork::default() }
    }

    fn due(job: u32, deadline: u64, work: ByKind<DueWork>) -> DueJob {
        let held = ByKind::default();
        DueJob { job: JobId(job), deadline: Time(deadline * 1_000_000), work, held }
    }

    fn slots(count: u32, taking: Option<Span>) -> ByKind<DueSlots> {
        let each = DueSlots { count, held: Span(0), taking };
        ByKind { map: each, reduce: each }
    }

    #[test]
    fn on_one_slot_it_is_the_sum_of_the_work_by_each_deadline() {
        let one = slots(1, None);
        let jobs = [due(1, 10, maps(1, 10)), due(2, 15, maps(1, 5)), due(3, 100, maps(1, 1))];
        for place in 0..3 {
            assert_eq!(admit(Time(0), &jobs, place, &one), Ok(()));
        }
        let own = [due(1, 10, maps(1, 10)), due(2, 14, maps(1, 5))];
        assert_eq!(admit(Time(0), &own, 1, &one), Err(Lateness::Own { before: 1, by: Span::from_secs(1) }));
        assert_eq!(
            admit(Time(0), &own, 0, &one),
            Err(Lateness::Other { job: JobId(2), by: Span::from_secs(1) }),
            "the later deadline was admitted first"
        );
    }

    #[test]
    fn one_that_is_late_in_any_case_keeps_nobody_away() {
        let jobs = [due(1, 10, maps(1, 5)), due(2, 12, maps(1, 20))];
        assert_eq!(admit(Time(0), &jobs, 0, &slots(1, None)), Ok(()));
    }

    #[test]
    fn on_several_slots_the_last_task_begins_when_the_others_are_done() {
        // Five of 10 s on two slots: (50 + 10) / 2.
        let jobs = |deadline| [due(1, deadline, maps(5, 10))];
        assert_eq!(admit(Time(0), &jobs(30), 0, &slots(2, None)), Ok(()));
        assert!(admit(Time(0), &jobs(29), 0, &slots(2, None)).is_err());
    }

    #[test]
    fn reduces_come_after_maps() {
        let work = ByKind { map: maps(2, 10).map, reduce: maps(1, 7).map };
        assert_eq!(admit(Time(0), &[due(1, 27, work)], 0, &slots(1, None)), Ok(()));
        assert!(admit(Time(0), &[due(1, 26, work)], 0, &slots(1, None)).is_err());
    }

    #[test]
    fn what_less_urgent_jobs_hold_counts_unless_it_is_taken() {
        let held = ByKind { map: Span::from_secs(8), reduce: Span(0) };
        let jobs = |deadline| [due(1, deadline, maps(1, 10)), DueJob { held, ..due(2, 90, maps(1, 20)) }];
        let taken = slots(1, Some(Span::from_secs(1)));
        assert_eq!(admit(Time(0), &jobs(18), 0, &slots(1, None)), Ok(()));
        assert!(admit(Time(0), &jobs(17), 0, &slots(1, None)).is_err());
        assert_eq!(admit(Time(0), &jobs(11), 0, &taken), Ok(()));
        assert!(admit(Time(0), &jobs(10), 0, &taken).is_err());
    }

    #[test]
    fn without_slots_nothing_ends_but_what_has_nothing_to_do() {
        assert!(admit(Time(0), &[due(1, 1 << 40, maps(1, 1))], 0, &slots(0, None)).is_err());
        assert_eq!(admit(Time(0), &[due(1, 1, maps(0, 0))], 0, &slots(0, None)), Ok(()));
    }
}
