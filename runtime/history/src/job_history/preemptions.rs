//! The preemptions of one job: requests, resumes and restores, with the costs that workers account for. Plain
//! data, which a coordinator's snapshot contains.

use napreduce_engine::{AttemptId, Primitive, TaskId, WorkerId};
use napreduce_protocol::{
    Counter, CounterValues, Preempted, PreemptionAccount, PreemptionEnd, PreemptionSummary,
    RestoreSummary, ResumeSummary,
};
use serde::{Deserialize, Serialize};

/// The requester of preemptions that no scheduler asked for.
pub const OPERATOR: &str = "operator";

/// The most preemptions listed in the explanation of a task.
const LINES_MAX: usize = 5;

/// Every preemption of a job, oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PreemptionBook {
    pub preemptions: Vec<PreemptionSummary>,
    pub resumes: Vec<ResumeSummary>,
    pub restores: Vec<RestoreSummary>,
    /// The outcome of the job is decided.
    over: bool,
}

impl PreemptionBook {
    /// Records a request; an earlier unanswered request for the same attempt counts as withdrawn.
    pub fn requested(&mut self, preemption: PreemptionSummary) {
        self.withdrawn(preemption.attempt, "a later request replaced it");
        self.preemptions.push(preemption);
    }

    /// Records the order to the worker; the first of several counts.
    pub fn ordered(&mut self, at_micros: u64, attempt: AttemptId) {
        if let Some(open) = self.open(attempt) {
            open.ordered_micros.get_or_insert(at_micros);
        }
    }

    /// Records that the attempt keeps its slot.
    pub fn withdrawn(&mut self, attempt: AttemptId, why: &str) {
        if let Some(open) = self.open(attempt) {
            open.end = Some(PreemptionEnd::Withdrawn);
            open.reason = format!("{} (but {why})", open.reason);
        }
    }

    /// Records that the attempt is suspended.
    pub fn suspended(&mut self, at_micros: u64, attempt: AttemptId) {
        if let Some(open) = self.open(attempt) {
            open.freed_micros = Some(at_micros);
            open.end = Some(PreemptionEnd::Suspended);
        }
    }

    /// Records which attempt used the freed slot.
    pub fn used(&mut self, at_micros: u64, attempt: AttemptId, by: AttemptId) {
        let freed = |known: &&mut PreemptionSummary| {
            known.attempt == attempt && known.freed_micros.is_some()
        };
        if let Some(known) = self.preemptions.iter_mut().rev().find(freed) {
            known.used_by = Some(by);
            known.used_micros = Some(at_micros);
        }
    }

    /// Records that the beneficiary did not use the freed slot: the preemption saved nothing.
    pub fn unused(&mut self, attempt: AttemptId, reason: &str) {
        let freed = |known: &&mut PreemptionSummary| {
            known.attempt == attempt && known.freed_micros.is_some()
        };
        if let Some(known) = self.preemptions.iter_mut().rev().find(freed)
            && known.used_by.is_none()
        {
            known.unused = Some(reason.to_owned());
            known.work_saved_millis = 0;
        }
    }

    /// Records the end of the attempt.
    pub fn ended(&mut self, at_micros: u64, attempt: AttemptId, end: PreemptionEnd) {
        let mut accounted = matches!(end, PreemptionEnd::Finished | PreemptionEnd::Checkpointed);
        let is_over = self.over;
        if let Some(open) = self.open(attempt) {
            accounted |= end == PreemptionEnd::Killed;
            // A kill because the job is over, or while the attempt may finish, does not take the slot.
            let is_preempted = !is_over && open.primitive != Primitive::Wait;
            let end = if end == PreemptionEnd::Killed && !is_preempted {
                PreemptionEnd::Ended
            } else {
                end
            };
            open.freed_micros = Some(at_micros);
            open.end = Some(end);
        }
        let lost = !accounted && !self.over;
        if let Some(stop) = self.open_suspension(attempt) {
            let freed = stop.freed_micros.unwrap_or(at_micros);
            stop.suspended_millis = Some(at_micros.saturating_sub(freed) / 1_000);
            // Without an account, as after the loss of its worker, the suspended work is lost.
            stop.work_lost_millis = if lost { stop.active_millis } else { 0 };
            if lost {
                self.revoke_saved(attempt);
            }
        }
    }

    /// Records that work saved by suspensions of an attempt was lost after all, so that no work counts as both.
    fn revoke_saved(&mut self, attempt: AttemptId) {
        for known in self
            .preemptions
            .iter_mut()
            .filter(|known| known.attempt == attempt)
        {
            known.work_saved_millis = 0;
        }
    }

    /// Records that the outcome of the job is decided: unfinished work no longer counts as lost.
    pub fn decided(&mut self) {
        self.over = true;
    }

    /// Records a worker's account, which precedes its report.
    pub fn accounted(&mut self, at_micros: u64, attempt: AttemptId, account: &PreemptionAccount) {
        // Memory is swapped in while the attempt runs, so later accounts add to the same resume.
        if let Some(resume) = self
            .resumes
            .iter_mut()
            .rev()
            .find(|resume| resume.attempt == attempt)
        {
            resume.swapped_in_bytes += account.swapped_in_bytes;
        }
        match &account.what {
            Preempted::Suspended | Preempted::Checkpointed | Preempted::Killed => {
                self.slot_accounted(attempt, account);
            }
            Preempted::Resumed => self.resume_accounted(attempt, account),
            Preempted::Restored => {
                if let Some(restore) = self.restore_of(attempt) {
                    restore.restored_micros = Some(at_micros);
                    restore.worker_micros = Some(account.micros);
                }
            }
            Preempted::RestoreRefused(reason) => {
                if let Some(restore) = self.restore_of(attempt) {
                    restore.refused = Some(reason.clone());
                }
            }
            Preempted::Ended => {}
        }
    }

    fn slot_accounted(&mut self, attempt: AttemptId, account: &PreemptionAccount) {
        let killed = account.what == Preempted::Killed;
        let mut active_millis = account.active_millis;
        if let Some(stop) = self.open_suspension(attempt) {
            stop.swapped_bytes = stop.swapped_bytes.max(account.swapped_bytes);
            if killed {
                // A suspended attempt has done nothing since.
                active_millis = stop.active_millis;
            }
        }
        // The work up to an earlier suspension was counted there.
        let of_attempt = self
            .preemptions
            .iter()
            .filter(|known| known.attempt == attempt);
        let counted: u64 = of_attempt.map(|known| known.work_saved_millis).sum();
        let is_over = self.over;
        let Some(open) = self.open(attempt) else {
            return;
        };
        open.worker_micros = Some(account.micros);
        open.active_millis = active_millis;
        open.resident_bytes = account.resident_bytes;
        open.swapped_bytes = account.swapped_bytes;
        open.swapped_out_bytes = account.swapped_out_bytes;
        open.checkpoint_bytes = account.checkpoint_bytes;
        if killed {
            if !is_over && open.primitive != Primitive::Wait {
                open.work_lost_millis = active_millis;
                self.revoke_saved(attempt);
            }
        } else {
            open.work_saved_millis = active_millis.saturating_sub(counted);
        }
    }

    fn resume_accounted(&mut self, attempt: AttemptId, account: &PreemptionAccount) {
        let of_attempt = |known: &&PreemptionSummary| known.attempt == attempt;
        let before: u64 = self
            .preemptions
            .iter()
            .filter(of_attempt)
            .filter_map(|known| known.suspended_millis)
            .sum();
        if let Some(resume) = self.open_resume(attempt) {
            resume.worker_micros = Some(account.micros);
            resume.suspended_millis = account.suspended_millis.saturating_sub(before);
            resume.swapped_bytes = account.swapped_bytes;
        }
        if let Some(stop) = self.open_suspension(attempt) {
            stop.swapped_bytes = stop.swapped_bytes.max(account.swapped_bytes);
            stop.swapped_out_bytes += account.swapped_out_bytes;
        }
    }

    /// Records the order to resume a suspended attempt.
    pub fn resume_ordered(&mut self, at_micros: u64, attempt: AttemptId, worker: WorkerId) {
        self.resumes.push(ResumeSummary {
            attempt,
            worker,
            ordered_micros: at_micros,
            resumed_micros: None,
            worker_micros: None,
            suspended_millis: 0,
            swapped_bytes: 0,
            swapped_in_bytes: 0,
        });
    }

    /// Records that the attempt runs again.
    pub fn resumed(&mut self, at_micros: u64, attempt: AttemptId) {
        let Some(resume) = self.open_resume(attempt) else {
            return;
        };
        resume.resumed_micros = Some(at_micros);
        let measured = resume.suspended_millis;
        if let Some(stop) = self.open_suspension(attempt) {
            let waited = at_micros.saturating_sub(stop.freed_micros.unwrap_or(at_micros)) / 1_000;
            stop.suspended_millis = Some(if measured > 0 { measured } else { waited });
        }
    }

    /// Records the launch of an attempt from an earlier one's checkpoint.
    pub fn restore_ordered(
        &mut self,
        at_micros: u64,
        attempt: AttemptId,
        from: AttemptId,
        worker: WorkerId,
    ) {
        let before = self
            .restores
            .iter()
            .rev()
            .find(|restore| restore.attempt == from);
        let before = before
            .filter(|restore| restore.refused.is_none())
            .map_or(0, |restore| restore.work_saved_millis);
        let saved = self.checkpoint_of(from);
        let from_worker = saved.map(|saved| saved.worker);
        let work_saved_millis = saved.map_or(0, |saved| before + saved.active_millis);
        self.restores.push(RestoreSummary {
            attempt,
            from,
            worker,
            from_worker,
            ordered_micros: at_micros,
            restored_micros: None,
            worker_micros: None,
            work_saved_millis,
            refused: None,
        });
    }

    fn open(&mut self, attempt: AttemptId) -> Option<&mut PreemptionSummary> {
        // Search backwards: the newest requests are the likeliest to be open.
        let open = |known: &&mut PreemptionSummary| known.attempt == attempt && known.end.is_none();
        self.preemptions.iter_mut().rev().find(open)
    }

    /// Returns the attempt's suspension that was not resumed yet.
    fn open_suspension(&mut self, attempt: AttemptId) -> Option<&mut PreemptionSummary> {
        let stops = |known: &&mut PreemptionSummary| {
            known.attempt == attempt
                && known.end == Some(PreemptionEnd::Suspended)
                && known.suspended_millis.is_none()
        };
        self.preemptions.iter_mut().rev().find(stops)
    }

    fn open_resume(&mut self, attempt: AttemptId) -> Option<&mut ResumeSummary> {
        let open = |resume: &&mut ResumeSummary| {
            resume.attempt == attempt && resume.resumed_micros.is_none()
        };
        self.resumes.iter_mut().rev().find(open)
    }

    fn restore_of(&mut self, attempt: AttemptId) -> Option<&mut RestoreSummary> {
        self.restores
            .iter_mut()
            .rev()
            .find(|restore| restore.attempt == attempt)
    }

    fn checkpoint_of(&self, attempt: AttemptId) -> Option<&PreemptionSummary> {
        let saved = |known: &&PreemptionSummary| {
            known.attempt == attempt && known.end == Some(PreemptionEnd::Checkpointed)
        };
        self.preemptions.iter().rev().find(saved)
    }

    /// Whether a checkpoint was ever written.
    pub fn has_checkpoints(&self) -> bool {
        self.preemptions
            .iter()
            .any(|known| known.end == Some(PreemptionEnd::Checkpointed))
    }

    /// Returns why an attempt was or is being preempted, and for which job.
    pub fn why(&self, attempt: AttemptId) -> Option<String> {
        let last = self
            .preemptions
            .iter()
            .rev()
            .find(|known| known.attempt == attempt)?;
        let applies = !matches!(last.end, Some(PreemptionEnd::Withdrawn));
        applies.then(|| in_words(last))
    }

    /// Returns why this attempt was checkpointed.
    pub fn why_checkpointed(&self, attempt: AttemptId) -> Option<String> {
        self.checkpoint_of(attempt).map(in_words)
    }

    /// Returns a line for each of a task's last preemptions, for its explanation.
    pub fn lines(&self, task: TaskId) -> Vec<String> {
        let of_task: Vec<_> = self
            .preemptions
            .iter()
            .filter(|known| known.attempt.task == task)
            .collect();
        let last = of_task.len().saturating_sub(LINES_MAX);
        let line = |known: &&PreemptionSummary| {
            let became = known.end.map_or("is being preempted", |end| match end {
                PreemptionEnd::Suspended => "was suspended",
                PreemptionEnd::Checkpointed => "was checkpointed",
                PreemptionEnd::Killed => "was killed",
                PreemptionEnd::Finished => "finished before its preemption",
                PreemptionEnd::Ended => "ended before its preemption",
                PreemptionEnd::Withdrawn => "kept its slot, the preemption was withdrawn",
            });
            format!("{} {became}, {}", known.attempt, in_words(known))
        };
        of_task[last..].iter().map(line).collect()
    }

    /// Returns the job counters of its preemptions.
    pub fn counters(&self) -> CounterValues {
        let mut counters = CounterValues::default();
        let mut add = |counter: Counter, amount: u64| counters.add(counter.in_words(), amount);
        for known in &self.preemptions {
            match known.end {
                Some(PreemptionEnd::Suspended) => {
                    add(Counter::Suspends, 1);
                }
                Some(PreemptionEnd::Checkpointed) => {
                    add(Counter::Checkpoints, 1);
                    add(Counter::CheckpointBytes, known.checkpoint_bytes);
                    add(
                        Counter::CheckpointMillis,
                        known.worker_micros.unwrap_or(0).div_ceil(1_000),
                    );
                }
                _ => {}
            }
            add(Counter::SwappedOutBytes, known.swapped_out_bytes);
            add(
                Counter::SuspendedMillis,
                known.suspended_millis.unwrap_or(0),
            );
            add(Counter::WorkSavedMillis, known.work_saved_millis);
            add(Counter::WorkLostMillis, known.work_lost_millis);
        }
        for resume in self
            .resumes
            .iter()
            .filter(|resume| resume.resumed_micros.is_some())
        {
            add(Counter::Resumes, 1);
            add(Counter::SwappedInBytes, resume.swapped_in_bytes);
        }
        for restore in &self.restores {
            match restore.refused {
                None => add(
                    Counter::CheckpointRestores,
                    u64::from(restore.restored_micros.is_some()),
                ),
                Some(_) => add(Counter::WorkLostMillis, restore.work_saved_millis),
            }
        }
        counters
    }
}

fn in_words(known: &PreemptionSummary) -> String {
    let whom = known
        .beneficiary
        .map_or_else(String::new, |job| format!(" for {job}"));
    let vain = known
        .unused
        .as_ref()
        .map_or_else(String::new, |why| format!("; the slot was not used: {why}"));
    format!(
        "{} by {}{whom}: {}{vain}",
        known.primitive, known.by, known.reason
    )
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, TaskKind};

    use super::*;

    fn attempt(number: u32) -> AttemptId {
        AttemptId {
            task: TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index: 0,
            },
            number,
        }
    }

    /// Preempts an attempt after this much work since its launch.
    fn preempt(book: &mut PreemptionBook, of: AttemptId, primitive: Primitive, active_millis: u64) {
        let (what, end) = match primitive {
            Primitive::Suspend => (Preempted::Suspended, PreemptionEnd::Suspended),
            Primitive::Checkpoint => (Preempted::Checkpointed, PreemptionEnd::Checkpointed),
            Primitive::Wait | Primitive::Kill => (Preempted::Killed, PreemptionEnd::Killed),
        };
        book.requested(PreemptionSummary::wanted(0, of, WorkerId(1), primitive));
        let account = PreemptionAccount {
            what,
            micros: 1,
            active_millis,
            suspended_millis: 0,
            resident_bytes: 0,
            swapped_bytes: 0,
            swapped_out_bytes: 0,
            swapped_in_bytes: 0,
            checkpoint_bytes: 0,
            notes: Vec::new(),
        };
        book.accounted(1, of, &account);
        if end == PreemptionEnd::Suspended {
            book.suspended(1, of);
        } else {
            book.ended(1, of, end);
        }
    }

    fn resume(book: &mut PreemptionBook, of: AttemptId) {
        book.resume_ordered(2, of, WorkerId(1));
        book.resumed(2, of);
    }

    /// Returns the sums of the work saved and lost.
    fn work(book: &PreemptionBook) -> (u64, u64) {
        let saved = book
            .preemptions
            .iter()
            .map(|known| known.work_saved_millis)
            .sum();
        let lost = book
            .preemptions
            .iter()
            .map(|known| known.work_lost_millis)
            .sum();
        (saved, lost)
    }

    #[test]
    fn work_saved_by_several_suspends_is_counted_once() {
        let mut book = PreemptionBook::default();
        for active in [3_000, 8_000, 8_000, 13_000] {
            preempt(&mut book, attempt(1), Primitive::Suspend, active);
            resume(&mut book, attempt(1));
        }
        let saved: Vec<u64> = book
            .preemptions
            .iter()
            .map(|known| known.work_saved_millis)
            .collect();
        assert_eq!(saved, [3_000, 5_000, 0, 5_000]);
        preempt(&mut book, attempt(1), Primitive::Checkpoint, 15_000);
        preempt(&mut book, attempt(2), Primitive::Suspend, 4_000);
        assert_eq!(work(&book), (19_000, 0));
    }

    #[test]
    fn work_that_a_later_kill_loses_was_not_saved() {
        let mut book = PreemptionBook::default();
        preempt(&mut book, attempt(1), Primitive::Suspend, 3_000);
        resume(&mut book, attempt(1));
        preempt(&mut book, attempt(1), Primitive::Kill, 8_000);
        preempt(&mut book, attempt(2), Primitive::Kill, 2_000);
        assert_eq!(work(&book), (0, 10_000));
    }

    #[test]
    fn work_that_a_lost_worker_held_suspended_was_not_saved() {
        let mut book = PreemptionBook::default();
        preempt(&mut book, attempt(1), Primitive::Suspend, 3_000);
        resume(&mut book, attempt(1));
        preempt(&mut book, attempt(1), Primitive::Suspend, 8_000);
        book.ended(3, attempt(1), PreemptionEnd::Ended);
        assert_eq!(work(&book), (0, 8_000));
    }

    #[test]
    fn suspended_attempt_that_is_killed_lost_its_work_once() {
        let mut book = PreemptionBook::default();
        preempt(&mut book, attempt(1), Primitive::Suspend, 3_000);
        preempt(&mut book, attempt(1), Primitive::Kill, 3_000);
        assert_eq!(work(&book), (0, 3_000));
    }

    #[test]
    fn withdrawn_request_is_closed_with_its_reason() {
        let mut book = PreemptionBook::default();
        book.requested(PreemptionSummary::wanted(
            0,
            attempt(1),
            WorkerId(1),
            Primitive::Wait,
        ));
        book.withdrawn(attempt(1), "job_0002 is over");
        book.ended(1, attempt(1), PreemptionEnd::Finished);
        assert_eq!(book.preemptions[0].end, Some(PreemptionEnd::Withdrawn));
        assert_eq!(book.preemptions[0].reason, " (but job_0002 is over)");
        assert_eq!(book.preemptions[0].freed_micros, None);
    }

    #[test]
    fn kill_of_an_attempt_that_may_finish_is_not_a_preemption() {
        let mut book = PreemptionBook::default();
        preempt(&mut book, attempt(1), Primitive::Wait, 3_000);
        assert_eq!(book.preemptions[0].end, Some(PreemptionEnd::Ended));
        assert_eq!(work(&book), (0, 0));
    }

    #[test]
    fn kill_after_the_end_of_the_job_is_not_a_preemption() {
        let mut book = PreemptionBook::default();
        book.decided();
        preempt(&mut book, attempt(1), Primitive::Kill, 3_000);
        assert_eq!(book.preemptions[0].end, Some(PreemptionEnd::Ended));
        assert_eq!(work(&book), (0, 0));
    }
}
