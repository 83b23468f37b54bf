//! The preemption ledger of a job: each request to take a slot, and what became of the work.

use std::collections::HashMap;

use napreduce_engine::AttemptId;
use napreduce_protocol::{
    JobDetail, PreemptionEnd, PreemptionSummary, RestoreSummary, ResumeSummary,
};

/// A request to take a slot, with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry<'job> {
    pub preemption: &'job PreemptionSummary,
    /// `None` if the slot was not taken, or the job ended first.
    pub sequel: Option<Sequel<'job>>,
}

/// The fate of the work after its slot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequel<'job> {
    /// It waits for a slot.
    Waits,
    /// Its process was resumed.
    Resumed(&'job ResumeSummary),
    /// Another attempt restored its checkpoint.
    Restored(&'job RestoreSummary),
    /// It has to be redone.
    Lost,
}

impl Sequel<'_> {
    /// Returns the outcome as one word.
    pub fn in_words(&self) -> &'static str {
        match self {
            Sequel::Waits => "waiting",
            Sequel::Resumed(_) => "resumed",
            Sequel::Restored(_) => "restored",
            Sequel::Lost => "lost",
        }
    }
}

/// Computes the ledger of a job, in the order of its requests.
pub fn ledger_of(detail: &JobDetail) -> Vec<LedgerEntry<'_>> {
    let index = LedgerIndex::new(detail);
    let entry = |(place, preemption)| LedgerEntry {
        preemption,
        sequel: index.sequel(place, preemption),
    };
    detail.preemptions.iter().enumerate().map(entry).collect()
}

/// The records of a job by attempt.
struct LedgerIndex<'job> {
    resumes: HashMap<AttemptId, Vec<&'job ResumeSummary>>,
    /// By the attempt that wrote the checkpoint. The first successful restore counts, otherwise the last one.
    restores: HashMap<AttemptId, &'job RestoreSummary>,
    /// Each with its position in the ledger, oldest first.
    preemptions: HashMap<AttemptId, Vec<(usize, &'job PreemptionSummary)>>,
    ended: HashMap<AttemptId, bool>,
    is_over: bool,
}

impl<'job> LedgerIndex<'job> {
    fn new(detail: &'job JobDetail) -> LedgerIndex<'job> {
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
            preemptions
                .entry(preemption.attempt)
                .or_default()
                .push((place, preemption));
        }
        let ended = detail
            .attempts
            .iter()
            .map(|known| (known.attempt, known.ended_millis.is_some()));
        let is_over = detail.summary.ended_millis.is_some();
        LedgerIndex {
            resumes,
            restores,
            preemptions,
            ended: ended.collect(),
            is_over,
        }
    }

    fn sequel(&self, place: usize, preemption: &PreemptionSummary) -> Option<Sequel<'job>> {
        match preemption.end? {
            PreemptionEnd::Killed => Some(Sequel::Lost),
            PreemptionEnd::Checkpointed => self.after_checkpoint(preemption.attempt),
            PreemptionEnd::Suspended => self.after_suspension(place, preemption),
            PreemptionEnd::Finished | PreemptionEnd::Ended | PreemptionEnd::Withdrawn => None,
        }
    }

    fn after_checkpoint(&self, attempt: AttemptId) -> Option<Sequel<'job>> {
        match self.restores.get(&attempt) {
            Some(restore) if restore.refused.is_some() => Some(Sequel::Lost),
            Some(restore) => Some(Sequel::Restored(restore)),
            None => self.waiting(),
        }
    }

    /// A suspended attempt is resumed, or its work is checkpointed or killed in place.
    fn after_suspension(&self, place: usize, stop: &PreemptionSummary) -> Option<Sequel<'job>> {
        let attempt = stop.attempt;
        let freed = stop.freed_micros.unwrap_or(stop.requested_micros);
        let resumes = self.resumes.get(&attempt).into_iter().flatten();
        let resumed = resumes
            .filter(|resume| resume.ordered_micros >= freed)
            .min_by_key(|one| one.ordered_micros);
        let later = self.preemptions.get(&attempt).into_iter().flatten();
        let ends = |end| {
            matches!(
                end,
                Some(PreemptionEnd::Checkpointed | PreemptionEnd::Killed)
            )
        };
        let converted = later
            .copied()
            .find(|(at, known)| *at > place && ends(known.end))
            .map(|(_, known)| known);
        match (resumed, converted) {
            (Some(resumed), Some(converted))
                if converted.freed_micros < Some(resumed.ordered_micros) =>
            {
                self.after_conversion(converted)
            }
            (Some(resumed), _) => Some(Sequel::Resumed(resumed)),
            (None, Some(converted)) => self.after_conversion(converted),
            (None, None) if self.ended.get(&attempt) == Some(&true) && !self.is_over => {
                Some(Sequel::Lost)
            }
            (None, None) => self.waiting(),
        }
    }

    fn after_conversion(&self, converted: &PreemptionSummary) -> Option<Sequel<'job>> {
        match converted.end {
            Some(PreemptionEnd::Checkpointed) => self.after_checkpoint(converted.attempt),
            _ => Some(Sequel::Lost),
        }
    }

    fn waiting(&self) -> Option<Sequel<'job>> {
        (!self.is_over).then_some(Sequel::Waits)
    }
}
