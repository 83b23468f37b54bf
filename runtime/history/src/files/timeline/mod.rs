//! The life of every attempt: stints, in which it holds a slot, and naps, in which its saved work waits. Both are
//! derived from the history of a job alone.

mod lanes;

use std::collections::HashMap;

use napreduce_engine::{AttemptId, WorkerId};
use napreduce_protocol::{
    AttemptSummary, JobDetail, PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary,
};

pub use lanes::{Lane, assign_lanes};

/// Launches and ends in recordings of earlier versions are truncated to milliseconds.
const MILLI_MICROS: u64 = 1_000;

/// A period in which an attempt holds a slot. Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stint<'job> {
    pub attempt: AttemptId,
    pub worker: WorkerId,
    pub from_micros: u64,
    /// When the process started to work, in the first stint of an attempt.
    pub started_micros: Option<u64>,
    /// At least `from_micros`; now if the stint is open.
    pub until_micros: u64,
    pub end: StintEnd,
    /// The request that ended the stint.
    pub preemption: Option<&'job PreemptionSummary>,
    /// How the attempt ended, if this is its last stint.
    pub end_text: Option<&'job str>,
    /// The checkpoint that the attempt started from.
    pub restore: Option<&'job RestoreSummary>,
}

impl Stint<'_> {
    /// Whether it is the last one of an attempt that completed its task.
    pub fn has_succeeded(&self) -> bool {
        self.end_text == Some(AttemptSummary::SUCCEEDED)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StintEnd {
    /// Not ended yet.
    Open,
    /// The process was stopped.
    Suspended,
    /// The work was saved and the process ended.
    Checkpointed,
    /// The process was killed for another one.
    Killed,
    /// The attempt succeeded, failed or was lost.
    Ended,
}

/// A period in which the work of an attempt waits without a slot. Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nap<'job> {
    /// The attempt that lost its slot.
    pub attempt: AttemptId,
    /// The worker with its memory or checkpoint.
    pub worker: WorkerId,
    pub from_micros: u64,
    /// At least `from_micros`; now if the nap is open.
    pub until_micros: u64,
    pub preemption: &'job PreemptionSummary,
}

impl Nap<'_> {
    /// Whether the memory stays on the worker.
    pub fn is_suspended(&self) -> bool {
        self.preemption.end == Some(PreemptionEnd::Suspended)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline<'job> {
    pub stints: Vec<Stint<'job>>,
    pub naps: Vec<Nap<'job>>,
}

impl<'job> Timeline<'job> {
    /// Derives the timeline of a job. Open stints and naps extend to `now_micros`.
    pub fn new(detail: &'job JobDetail, now_micros: u64) -> Timeline<'job> {
        let mut preemptions: HashMap<AttemptId, Vec<&PreemptionSummary>> = HashMap::new();
        for preemption in &detail.preemptions {
            preemptions
                .entry(preemption.attempt)
                .or_default()
                .push(preemption);
        }
        let mut resumes: HashMap<AttemptId, Vec<&ResumeSummary>> = HashMap::new();
        for resume in &detail.resumes {
            resumes.entry(resume.attempt).or_default().push(resume);
        }
        let restores: HashMap<AttemptId, &RestoreSummary> = detail
            .restores
            .iter()
            .map(|restore| (restore.attempt, restore))
            .collect();
        let continued: HashMap<AttemptId, u64> = detail
            .restores
            .iter()
            .map(|restore| (restore.from, restore.ordered_micros))
            .collect();
        let job_ended = detail
            .summary
            .ended_millis
            .map_or(now_micros, |ended| ended * MILLI_MICROS);
        let mut timeline = Timeline::default();
        for attempt in &detail.attempts {
            let track = AttemptTrack {
                attempt,
                restore: restores.get(&attempt.attempt).copied(),
                preemptions: preemptions.remove(&attempt.attempt).unwrap_or_default(),
                resumes: resumes.remove(&attempt.attempt).unwrap_or_default(),
                continued: continued
                    .get(&attempt.attempt)
                    .copied()
                    .unwrap_or(job_ended),
                now_micros,
            };
            track.draw(&mut timeline);
        }
        timeline
    }
}

/// The records of one attempt.
struct AttemptTrack<'job> {
    attempt: &'job AttemptSummary,
    restore: Option<&'job RestoreSummary>,
    /// Oldest first, like the resumes.
    preemptions: Vec<&'job PreemptionSummary>,
    resumes: Vec<&'job ResumeSummary>,
    /// When another attempt restored its checkpoint, or the job ended.
    continued: u64,
    now_micros: u64,
}

impl<'job> AttemptTrack<'job> {
    fn draw(&self, timeline: &mut Timeline<'job>) {
        let mut from = match self.restore {
            Some(restore) => restore.ordered_micros,
            None => self.attempt.launched_micros(),
        };
        let ended = self.attempt.ended_micros();
        // Suspended work may be checkpointed or killed before it gets a slot again.
        let mut holds_slot = true;
        let mut stopped = self
            .preemptions
            .iter()
            .filter_map(|preemption| Some((*preemption, stopped(preemption)?)));
        let mut next = stopped.next();
        while let Some((preemption, (freed, end))) = next {
            next = stopped.next();
            let freed = freed.max(from);
            if holds_slot {
                let is_last = end != StintEnd::Suspended;
                timeline.stints.push(self.stint(
                    from,
                    freed,
                    Ending {
                        end,
                        preemption: Some(preemption),
                        is_last,
                    },
                ));
            }
            let (until, resumed) = match end {
                StintEnd::Suspended => {
                    let resumed = self.resumes.iter().map(|resume| resume.ordered_micros);
                    let resumed = resumed.filter(|ordered| *ordered >= freed).min();
                    let changed = next.map(|(_, (freed, _))| freed);
                    (
                        resumed
                            .into_iter()
                            .chain(changed)
                            .min()
                            .or(ended)
                            .unwrap_or(self.now_micros),
                        resumed,
                    )
                }
                _ => (self.continued, None),
            };
            if end != StintEnd::Killed {
                let attempt = self.attempt.attempt;
                let worker = preemption.worker;
                let until_micros = until.max(freed);
                timeline.naps.push(Nap {
                    attempt,
                    worker,
                    from_micros: freed,
                    until_micros,
                    preemption,
                });
            }
            holds_slot = resumed.is_some_and(|resumed| resumed <= until);
            from = until.max(freed);
        }
        if !holds_slot {
            return;
        }
        let (until, end) = match ended {
            Some(ended) => (ended, StintEnd::Ended),
            None => (self.now_micros, StintEnd::Open),
        };
        let ending = Ending {
            end,
            preemption: None,
            is_last: true,
        };
        timeline
            .stints
            .push(self.stint(from, until.max(from), ending));
    }

    fn stint(&self, from_micros: u64, until_micros: u64, ending: Ending<'job>) -> Stint<'job> {
        Stint {
            attempt: self.attempt.attempt,
            worker: self.attempt.worker,
            from_micros,
            started_micros: self
                .attempt
                .started_micros()
                .filter(|started| (from_micros..=until_micros).contains(started)),
            until_micros,
            end: ending.end,
            preemption: ending.preemption,
            end_text: self.attempt.end.as_deref().filter(|_| ending.is_last),
            restore: self.restore,
        }
    }
}

/// How a stint ends, and whether it is the attempt's last one.
struct Ending<'job> {
    end: StintEnd,
    preemption: Option<&'job PreemptionSummary>,
    is_last: bool,
}

/// Returns when and how a request stopped its attempt; `None` if it was withdrawn or came too late.
fn stopped(preemption: &PreemptionSummary) -> Option<(u64, StintEnd)> {
    let end = match preemption.end? {
        PreemptionEnd::Suspended => StintEnd::Suspended,
        PreemptionEnd::Checkpointed => StintEnd::Checkpointed,
        PreemptionEnd::Killed => StintEnd::Killed,
        PreemptionEnd::Finished | PreemptionEnd::Ended | PreemptionEnd::Withdrawn => return None,
    };
    Some((preemption.freed_micros?, end))
}
