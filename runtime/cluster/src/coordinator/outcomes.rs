//! Outcomes of operators' commands: when a command counts as done, refused or superseded.

use napreduce_engine::{AttemptId, AttemptState, Primitive};
use napreduce_history::PreemptionBook;
use napreduce_protocol::requests::GetOutcomes;
use napreduce_protocol::{
    CommandOutcome, JobDetail, PreemptionEnd, PreemptionSummary, TaskCommand,
};

use super::ClusterCoordinator;
use super::requests::Refusal;

impl ClusterCoordinator {
    /// Returns the outcomes for the given attempts of a job, or for all live attempts if the command was for
    /// the whole job.
    pub(super) fn outcomes(
        &self,
        asked: &GetOutcomes,
    ) -> Result<Vec<(AttemptId, CommandOutcome)>, Refusal> {
        let &GetOutcomes {
            job,
            ref attempts,
            command,
        } = asked;
        let view = self.local.state().view();
        let (Some(known), Some(kept)) = (view.job(job), self.local.state().jobs().get(&job)) else {
            // The job ended first, which satisfies a kill.
            return Ok(outcomes_of_ended(&*self.find(job)?, asked));
        };
        let live: Vec<AttemptId> = known.attempts().collect();
        let wanted = if attempts.is_empty() { &live } else { attempts };
        let outcome = |attempt: &AttemptId| {
            let state = view
                .attempt(*attempt)
                .map(|attempt| (attempt.state(), attempt.gets_next_slot()));
            let refused = self.refused_with_job(asked, *attempt, &kept.book);
            (
                *attempt,
                refused.unwrap_or_else(|| outcome(state, &kept.book, *attempt, command)),
            )
        };
        Ok(wanted.iter().map(outcome).collect())
    }

    /// Returns the refusal of an attempt that is not suspended with its job, for example because its worker keeps as
    /// many as it may: it gets no request and finishes.
    fn refused_with_job(
        &self,
        asked: &GetOutcomes,
        attempt: AttemptId,
        book: &PreemptionBook,
    ) -> Option<CommandOutcome> {
        let is_for_job = asked.command == TaskCommand::Suspend && asked.attempts.is_empty();
        let state = self.local.state().view().attempt(attempt)?.state();
        let last = book
            .preemptions
            .iter()
            .rev()
            .find(|known| known.attempt == attempt);
        if !is_for_job || state.is_stopped() || last.is_some_and(|last| last.end.is_none()) {
            return None;
        }
        let why = self
            .local
            .state()
            .engine()
            .can_preempt(attempt, Primitive::Suspend)
            .err()?;
        Some(CommandOutcome::Refused(why.to_string()))
    }
}

/// Outcomes for attempts of a job whose tasks are over.
pub(super) fn outcomes_of_ended(
    detail: &JobDetail,
    asked: &GetOutcomes,
) -> Vec<(AttemptId, CommandOutcome)> {
    let command = asked.command;
    let ended = |attempt: &AttemptId| {
        if command == TaskCommand::Resume {
            return (*attempt, CommandOutcome::Done);
        }
        let last = detail
            .preemptions
            .iter()
            .rev()
            .find(|known| known.attempt == *attempt);
        (
            *attempt,
            last.and_then(|last| ended_as(last, command))
                .unwrap_or_else(|| gone(command)),
        )
    };
    asked.attempts.iter().map(ended).collect()
}

/// Returns a command's outcome. `state` is the state of a live attempt and whether it gets the next slot.
fn outcome(
    state: Option<(AttemptState, bool)>,
    book: &PreemptionBook,
    attempt: AttemptId,
    command: TaskCommand,
) -> CommandOutcome {
    let last = book
        .preemptions
        .iter()
        .rev()
        .find(|known| known.attempt == attempt);
    match (command, state) {
        (TaskCommand::Resume, Some((AttemptState::Suspended, true))) => CommandOutcome::Queued,
        (TaskCommand::Resume, Some((AttemptState::Suspended, false))) => {
            CommandOutcome::Overtaken("suspended again".to_owned())
        }
        (TaskCommand::Resume, Some((AttemptState::Resuming, _))) => CommandOutcome::Pending,
        (TaskCommand::Resume, Some(_)) => CommandOutcome::Done,
        (TaskCommand::Suspend, Some((AttemptState::Suspended, _))) => CommandOutcome::Done,
        // It must finish a record or a group in a slot first.
        (TaskCommand::Checkpoint, Some((AttemptState::Suspended, true))) => CommandOutcome::Queued,
        (TaskCommand::Kill, Some(_)) => CommandOutcome::Pending,
        // The attempt has resumed and ended since, or its task is no longer suspended.
        (TaskCommand::Resume, None) => CommandOutcome::Done,
        (_, None) => last
            .and_then(|last| ended_as(last, command))
            .unwrap_or_else(|| gone(command)),
        (_, Some(_)) => {
            // Only the attempt's last request counts.
            last.and_then(|last| ended_as(last, command))
                .unwrap_or(CommandOutcome::Pending)
        }
    }
}

/// Maps the end of a request to a command's outcome; `None` while it is open.
fn ended_as(last: &PreemptionSummary, command: TaskCommand) -> Option<CommandOutcome> {
    let end = last.end?;
    Some(match (command, end) {
        (TaskCommand::Suspend, PreemptionEnd::Suspended)
        | (TaskCommand::Checkpoint, PreemptionEnd::Checkpointed)
        | (
            TaskCommand::Kill,
            PreemptionEnd::Killed | PreemptionEnd::Finished | PreemptionEnd::Ended,
        ) => CommandOutcome::Done,
        (_, PreemptionEnd::Withdrawn) => CommandOutcome::Refused(last.reason.clone()),
        (_, end) => CommandOutcome::Overtaken(end.in_words().to_owned()),
    })
}

/// Returns the outcome for an attempt that is no longer live.
fn gone(command: TaskCommand) -> CommandOutcome {
    match command {
        TaskCommand::Kill => CommandOutcome::Done,
        _ => CommandOutcome::Overtaken(PreemptionEnd::Ended.in_words().to_owned()),
    }
}
