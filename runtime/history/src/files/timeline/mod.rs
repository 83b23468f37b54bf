//! The life of every attempt: stints, in which it holds a slot, and naps, in which its work waits.
//!
//! Owns how both follow from what the history of a job holds, and nothing more than that. Does not own which
//! slot a stint is drawn on (`lanes`) nor any form in files (`trace`).

mod lanes;

use std::collections::HashMap;

use napreduce_engine::{AttemptId, WorkerId};
use napreduce_protocol::{
    AttemptSummary, JobDetail, PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary,
};

pub use lanes::{Lane, assign_lanes};

/// Of what earlier versions have recorded, launches and ends are known to a millisecond, and cut off.
const MILLI_MICROS: u64 = 1_000;

/// A stretch of time in which one attempt holds a slot. Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stint<'job> {
    pub attempt: AttemptId,
    pub worker: WorkerId,
    pub from_micros: u64,
    /// When its process began to work, in the first one of an attempt; before that it was being started.
    pub started_micros: Option<u64>,
    /// At least `from_micros`; now, for one that goes on.
    pub until_micros: u64,
    pub end: StintEnd,
    /// The request that ended it, if one did.
    pub preemption: Option<&'job PreemptionSummary>,
    /// How the attempt ended, for people, if this is its last one.
    pub said: Option<&'job str>,
    /// The checkpoint that it began from.
    pub restore: Option<&'job RestoreSummary>,
}

/// How a stint ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StintEnd {
    /// It has not.
    Open,
    /// Its process is stopped.
    Suspended,
    /// Its work is saved, and its process is gone.
    Checkpointed,
    /// Its process was killed for another one.
    Killed,
    /// By itself: it is done, has failed or was lost.
    Ended,
}

/// A stretch between two stints of a task, or after the last one. Times likewise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nap<'job> {
    /// The attempt that gave up its slot.
    pub attempt: AttemptId,
    /// Where its memory or its checkpoint was left.
    pub worker: WorkerId,
    pub from_micros: u64,
    /// Likewise.
    pub until_micros: u64,
    pub preemption: &'job PreemptionSummary,
}

impl Nap<'_> {
    /// Whether its memory stays on the worker.
    pub fn is_suspended(&self) -> bool {
        self.preemption.end == Some(PreemptionEnd::Suspended)
    }
}

/// The stints and naps of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline<'job> {
    pub stints: Vec<Stint<'job>>,
    pub naps: Vec<Nap<'job>>,
}

impl<'job> Timeline<'job> {
    /// What is known of a job. What has not ended goes on until `now_micros`.
    pub fn of(detail: &'job JobDetail, now_micros: u64) -> Timeline<'job> {
        let mut preemptions: HashMap<AttemptId, Vec<&PreemptionSummary>> = HashMap::new();
        for preemption in &detail.preemptions {
            preemptions.entry(preemption.attempt).or_default().push(preemption);
        }
        let mut resumes: HashMap<AttemptId, Vec<&ResumeSummary>> = HashMap::new();
        for resume in &detail.resumes {
            resumes.entry(resume.attempt).or_default().push(resume);
        }
        let restores: HashMap<AttemptId, &RestoreSummary> =
            detail.restores.iter().map(|restore| (restore.attempt, restore)).collect();
        let continued: HashMap<AttemptId, u64> =
            detail.restores.iter().map(|restore| (restore.from, restore.ordered_micros)).collect();
        let job_ended = detail.summary.ended_millis.map_or(now_micros, |ended| ended * MILLI_MICROS);
        let mut timeline = Timeline::default();
        for attempt in &detail.attempts {
            let track = AttemptTrack {
                attempt,
                restore: restores.get(&attempt.attempt).copied(),
                preemptions: preemptions.remove(&attempt.attempt).unwrap_or_default(),
                resumes: resumes.remove(&attempt.attempt).unwrap_or_default(),
                continued: continued.get(&attempt.attempt).copied().unwrap_or(job_ended),
                now_micros,
            };
            track.draw(&mut timeline);
        }
        timeline
    }
}

/// What is known of one attempt.
struct AttemptTrack<'job> {
    attempt: &'job AttemptSummary,
    restore: Option<&'job RestoreSummary>,
    /// Oldest first, as are resumes.
    preemptions: Vec<&'job PreemptionSummary>,
    resumes: Vec<&'job ResumeSummary>,
    /// When another attempt went on from its checkpoint, or the job ended.
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
        // Suspended work whose attempt gets no slot again may be saved or killed where it is.
        let mut holds_slot = true;
        let mut stopped =
            self.preemptions.iter().filter_map(|preemption| Some((*preemption, stopped(preemption)?)));
        let mut next = stopped.next();
        while let Some((preemption, (freed, end))) = next {
            next = stopped.next();
            let freed = freed.max(from);
            if holds_slot {
                let is_last = end != StintEnd::Suspended;
                timeline.stints.push(self.stint((from, freed), (end, Some(preemption)), is_last));
            }
            let (until, resumed) = match end {
                StintEnd::Suspended => {
                    let resumed = self.resumes.iter().map(|resume| resume.ordered_micros);
                    let resumed = resumed.filter(|ordered| *ordered >= freed).min();
                    let changed = next.map(|(_, (freed, _))| freed);
                    (resumed.into_iter().chain(changed).min().or(ended).unwrap_or(self.now_micros), resumed)
                }
                _ => (self.continued, None),
            };
            if end != StintEnd::Killed {
                let (attempt, worker) = (self.attempt.attempt, preemption.worker);
                let until_micros = until.max(freed);
                timeline.naps.push(Nap { attempt, worker, from_micros: freed, until_micros, preemption });
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
        timeline.stints.push(self.stint((from, until.max(from)), (end, None), true));
    }

    fn stint(
        &self,
        (from_micros, until_micros): (u64, u64),
        (end, preemption): (StintEnd, Option<&'job PreemptionSummary>),
        is_last: bool,
    ) -> Stint<'job> {
        Stint {
            attempt: self.attempt.attempt,
            worker: self.attempt.worker,
            from_micros,
            started_micros: self
                .attempt
                .started_micros()
                .filter(|started| (from_micros..=until_micros).contains(started)),
            until_micros,
            end,
            preemption,
            said: self.attempt.end.as_deref().filter(|_| is_last),
            restore: self.restore,
        }
    }
}

/// When and how a request stopped its attempt. One that was withdrawn, or came too late, did not.
fn stopped(preemption: &PreemptionSummary) -> Option<(u64, StintEnd)> {
    let end = match preemption.end? {
        PreemptionEnd::Suspended => StintEnd::Suspended,
        PreemptionEnd::Checkpointed => StintEnd::Checkpointed,
        PreemptionEnd::Killed => StintEnd::Killed,
        PreemptionEnd::Finished | PreemptionEnd::Ended | PreemptionEnd::Withdrawn => return None,
    };
    Some((preemption.freed_micros?, end))
}
