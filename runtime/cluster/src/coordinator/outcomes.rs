//! Outcomes of operators' commands: when a command counts as done, refused or superseded.

use napreduce_engine::{AttemptId, AttemptState, Primitive};
use napreduce_history::PreemptionBook;
use napreduce_protocol::requests::GetOutcomes;
use napreduce_protocol::{
    CommandOutcome, JobDetail, PreemptionEnd, PreemptionSummary, TaskCommand,
};

use super::ClusterCoordinator;
use super::requests::{HandleLater, Reply};

impl HandleLater for GetOutcomes {
    fn handle_later(
        self,
        coordinator: &mut ClusterCoordinator,
        reply: Reply<Vec<(AttemptId, CommandOutcome)>>,
    ) {
        if let Some(outcomes) = coordinator.outcomes(&self) {
            return reply.send(Ok(outcomes));
        }
        // The job ended first, which satisfies a kill.
        match coordinator.find(self.job) {
            Some(detail) => reply.send(Ok(outcomes_of_ended(&detail, &self))),
            None => coordinator.read_ended(self.job, reply, move |ended| {
                Ok(outcomes_of_ended(&ended.detail, &self))
            }),
        }
    }
}

impl ClusterCoordinator {
    /// Returns the outcomes for the given attempts of a running job, or for all live attempts if the command
    /// was for the whole job; `None` if the job's tasks are over.
    fn outcomes(&self, asked: &GetOutcomes) -> Option<Vec<(AttemptId, CommandOutcome)>> {
        let view = self.local.state().view();
        let job = view.job(asked.job)?;
        let book = &self.local.state().jobs().get(&asked.job)?.book;
        let mut attempts = asked.attempts.clone();
        if attempts.is_empty() {
            attempts = job.attempts().collect();
        }
        let mut outcomes = Vec::new();
        for attempt in attempts {
            let state = view
                .attempt(attempt)
                .map(|known| (known.state(), known.gets_next_slot()));
            let outcome = match self.refused_with_job(asked, attempt, book) {
                Some(refused) => refused,
                None => outcome(state, book, attempt, asked.command),
            };
            outcomes.push((attempt, outcome));
        }
        Some(outcomes)
    }

    /// Returns the refusal of an attempt that is not suspended with its job, for example because its worker keeps as
    /// many as it may: it gets no request and finishes.
    fn refused_with_job(
        &self,
        asked: &GetOutcomes,
        attempt: AttemptId,
        book: &PreemptionBook,
    ) -> Option<CommandOutcome> {
        if asked.command != TaskCommand::Suspend || !asked.attempts.is_empty() {
            return None;
        }
        let state = self.local.state();
        if state.view().attempt(attempt)?.state().is_stopped() {
            return None;
        }
        if let Some(last) = last_preemption(&book.preemptions, attempt)
            && last.end.is_none()
        {
            return None;
        }
        let refusal = state
            .engine()
            .can_preempt(attempt, Primitive::Suspend)
            .err()?;
        Some(CommandOutcome::Refused(refusal.to_string()))
    }
}

/// Returns the outcomes for attempts of a job whose tasks are over.
fn outcomes_of_ended(detail: &JobDetail, asked: &GetOutcomes) -> Vec<(AttemptId, CommandOutcome)> {
    let mut outcomes = Vec::new();
    for attempt in &asked.attempts {
        let outcome = match asked.command {
            TaskCommand::Resume => CommandOutcome::Done,
            command => match last_end(&detail.preemptions, *attempt, command) {
                Some(outcome) => outcome,
                None => outcome_of_gone(command),
            },
        };
        outcomes.push((*attempt, outcome));
    }
    outcomes
}

/// Returns a command's outcome. `state` is the state of a live attempt and whether it gets the next slot.
fn outcome(
    state: Option<(AttemptState, bool)>,
    book: &PreemptionBook,
    attempt: AttemptId,
    command: TaskCommand,
) -> CommandOutcome {
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
        // Only the attempt's last request counts.
        (TaskCommand::Suspend | TaskCommand::Checkpoint, Some(_)) => {
            last_end(&book.preemptions, attempt, command).unwrap_or(CommandOutcome::Pending)
        }
        (TaskCommand::Suspend | TaskCommand::Checkpoint | TaskCommand::Kill, None) => {
            last_end(&book.preemptions, attempt, command)
                .unwrap_or_else(|| outcome_of_gone(command))
        }
    }
}

fn last_preemption(
    preemptions: &[PreemptionSummary],
    attempt: AttemptId,
) -> Option<&PreemptionSummary> {
    preemptions
        .iter()
        .rev()
        .find(|preemption| preemption.attempt == attempt)
}

/// Returns the outcome that the end of an attempt's last request means for a command; `None` while it is open.
fn last_end(
    preemptions: &[PreemptionSummary],
    attempt: AttemptId,
    command: TaskCommand,
) -> Option<CommandOutcome> {
    let last = last_preemption(preemptions, attempt)?;
    Some(match (command, last.end?) {
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
fn outcome_of_gone(command: TaskCommand) -> CommandOutcome {
    match command {
        TaskCommand::Kill => CommandOutcome::Done,
        _ => CommandOutcome::Overtaken(PreemptionEnd::Ended.in_words().to_owned()),
    }
}
