//! The ledger of a job: each request to take a slot of it, with what became of the work.
//!
//! Owns how that follows from requests, continuations and restores. Does not own these (`napreduce-protocol`)
//! nor how they are drawn (`timeline`).

use std::collections::HashMap;

use napreduce_engine::AttemptId;
use napreduce_protocol::{JobDetail, PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary};

/// A request to take a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry<'job> {
    pub preemption: &'job PreemptionSummary,
    /// Nothing, when the slot was not taken, or the job ended first.
    pub sequel: Option<Sequel<'job>>,
}

/// What became of the work after its slot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequel<'job> {
    /// It waits.
    Waits,
    /// Its process went on.
    Resumed(&'job ResumeSummary),
    /// Another attempt went on with it.
    Restored(&'job RestoreSummary),
    /// It has to be done again.
    Lost,
}

impl Sequel<'_> {
    /// In one word.
    pub fn in_words(&self) -> &'static str {
        match self {
            Sequel::Waits => "waiting",
            Sequel::Resumed(_) => "resumed",
            Sequel::Restored(_) => "restored",
            Sequel::Lost => "lost",
        }
    }
}

/// The ledger of a job, in the order of its requests.
pub fn ledger_of(detail: &JobDetail) -> Vec<LedgerEntry<'_>> {
    let books = Books::of(detail);
    let entry = |(place, preemption)| LedgerEntry { preemption, sequel: books.sequel(place, preemption) };
    detail.preemptions.iter().enumerate().map(entry).collect()
}

/// What is known of a job, by attempt.
struct Books<'job> {
    resumes: HashMap<AttemptId, Vec<&'job ResumeSummary>>,
    /// By the attempt whose checkpoint it was; the first attempt that could use it counts, then any.
    restores: HashMap<AttemptId, &'job RestoreSummary>,
    /// Places in the ledger, oldest first.
    preemptions: HashMap<AttemptId, Vec<(usize, &'job PreemptionSummary)>>,
    ended: HashMap<AttemptId, bool>,
    is_over: bool,
}

impl<'job> Books<'job> {
    fn of(detail: &'job JobDetail) -> Books<'job> {
        let mut resumes: HashMap<_, Vec<_>> = HashMap::new();
        for resume in &detail.resumes {
            resumes.entry(resume.attempt).or_default().push(resume);
        }
        let mut restores: HashMap<AttemptId, &RestoreSummary> = HashMap::new();
        for restore in &detail.restores {
            let known = restores.entry(restore.from).or_insert(restore);
            if known.refused.is_some() {
                *known = restore;
            }
        }
        let mut preemptions: HashMap<_, Vec<_>> = HashMap::new();
        for (place, preemption) in detail.preemptions.iter().enumerate() {
            preemptions.entry(preemption.attempt).or_default().push((place, preemption));
        }
        let ended = detail.attempts.iter().map(|known| (known.attempt, known.ended_millis.is_some()));
        let is_over = detail.summary.ended_millis.is_some();
        Books { resumes, restores, preemptions, ended: ended.collect(), is_over }
    }

    fn sequel(&self, place: usize, preemption: &PreemptionSummary) -> Option<Sequel<'job>> {
        match preemption.end? {
            PreemptionEnd::Killed => Some(Sequel::Lost),
            PreemptionEnd::Checkpointed => self.after_checkpoint(preemption.attempt),
            PreemptionEnd::Suspended => self.after_stop(place, preemption),
            PreemptionEnd::Finished | PreemptionEnd::Ended | PreemptionEnd::Withdrawn => None,
        }
    }

    fn after_checkpoint(&self, attempt: AttemptId) -> Option<Sequel<'job>> {
        match self.restores.get(&attempt) {
            Some(restore) if restore.refused.is_some() => Some(Sequel::Lost),
            Some(restore) => Some(Sequel::Restored(restore)),
            None => self.waits(),
        }
    }

    /// A stopped attempt goes on, or is saved or killed where it is.
    fn after_stop(&self, place: usize, stop: &PreemptionSummary) -> Option<Sequel<'job>> {
        let attempt = stop.attempt;
        let freed = stop.freed_micros.unwrap_or(stop.requested_micros);
        let resumes = self.resumes.get(&attempt).into_iter().flatten();
        let resumed =
            resumes.filter(|resume| resume.ordered_micros >= freed).min_by_key(|one| one.ordered_micros);
        let later = self.preemptions.get(&attempt).into_iter().flatten();
        let ends = |end| matches!(end, Some(PreemptionEnd::Checkpointed | PreemptionEnd::Killed));
        let given_up =
            later.copied().find(|(at, known)| *at > place && ends(known.end)).map(|(_, known)| known);
        match (resumed, given_up) {
            (Some(resumed), Some(given_up)) if given_up.freed_micros < Some(resumed.ordered_micros) => {
                self.after_giving_up(given_up)
            }
            (Some(resumed), _) => Some(Sequel::Resumed(resumed)),
            (None, Some(given_up)) => self.after_giving_up(given_up),
            (None, None) if self.ended.get(&attempt) == Some(&true) && !self.is_over => Some(Sequel::Lost),
            (None, None) => self.waits(),
        }
    }

    fn after_giving_up(&self, given_up: &PreemptionSummary) -> Option<Sequel<'job>> {
        match given_up.end {
            Some(PreemptionEnd::Checkpointed) => self.after_checkpoint(given_up.attempt),
            _ => Some(Sequel::Lost),
        }
    }

    fn waits(&self) -> Option<Sequel<'job>> {
        (!self.is_over).then_some(Sequel::Waits)
    }
}
