//! Waiting for what becomes of a command to attempts.
//!
//! Owns the flags of waiting, what is said meanwhile and afterwards, and whether all was done. Does not own
//! when something counts as done (live runtime).

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use napreduce_cluster::ClusterClient;
use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::requests::GetOutcomes;
use napreduce_protocol::{CommandOutcome, TaskCommand, parse_time, printing::print_error, several_lines};

use crate::failure::printed;

const LOOK_FIRST: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(500);
/// Waiting is told when it has lasted so long, and then at this interval.
const TELL_FIRST: Duration = Duration::from_secs(2);
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// Flags of every command to attempts.
#[derive(Debug, Clone, Args)]
pub struct WaitArguments {
    /// Return when it is ordered, not when it is done or refused
    #[arg(long)]
    pub no_wait: bool,

    /// How long to wait for that
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    pub timeout: Duration,
}

/// Attempts that something was ordered for.
#[derive(Debug)]
pub struct Ordered {
    pub job: JobId,
    /// None are named when it was ordered for a whole job: then its live ones are meant.
    pub attempts: Vec<AttemptId>,
}

/// Waits until it is done with each, refused or overtaken, and says so; an error that is said already unless
/// all was done.
pub fn settle(
    ordered: &[Ordered],
    command: TaskCommand,
    wait: &WaitArguments,
    client: &mut ClusterClient,
) -> Result<()> {
    let mut all_done = true;
    let until = Instant::now() + wait.timeout;
    for Ordered { job, attempts } in ordered {
        let outcomes = wait_for(*job, attempts, command, until, client)?;
        for (attempt, outcome) in &outcomes {
            print_error(format_args!(
                "{attempt} {}",
                several_lines(&in_words(command, outcome, wait.timeout))
            ));
        }
        let done = |outcome: &CommandOutcome| match outcome {
            CommandOutcome::Done | CommandOutcome::Queued => true,
            // What ended by itself stands still as well, and of a whole job that is all that is wanted.
            CommandOutcome::Overtaken(_) => attempts.is_empty(),
            CommandOutcome::Pending | CommandOutcome::Refused(_) => false,
        };
        all_done &= outcomes.iter().all(|(_, outcome)| done(outcome));
    }
    if all_done { Ok(()) } else { Err(printed()) }
}

/// The outcomes when none is open any more, or the time is over.
fn wait_for(
    job: JobId,
    attempts: &[AttemptId],
    command: TaskCommand,
    until: Instant,
    client: &mut ClusterClient,
) -> Result<Vec<(AttemptId, CommandOutcome)>> {
    let (began, mut look, mut tell_after) = (Instant::now(), LOOK_FIRST, TELL_FIRST);
    loop {
        let outcomes = client.ask(GetOutcomes { job, attempts: attempts.to_owned(), command })?;
        let open = outcomes.iter().filter(|(_, outcome)| *outcome == CommandOutcome::Pending).count();
        if open == 0 || Instant::now() >= until {
            return Ok(outcomes);
        }
        if began.elapsed() >= tell_after {
            tell_after = began.elapsed() + TELL_AGAIN;
            let left = until.saturating_duration_since(Instant::now());
            let (all, done) = (outcomes.len(), participle(command));
            print_error(format_args!(
                "{job}: {} of {all} attempts are {done}; waiting {left:.0?} more",
                all - open
            ));
        }
        thread::sleep(look.min(until.saturating_duration_since(Instant::now())));
        look = (look * 2).min(LOOK_MAX);
    }
}

fn participle(command: TaskCommand) -> &'static str {
    match command {
        TaskCommand::Suspend => "suspended",
        TaskCommand::Resume => "resumed",
        TaskCommand::Checkpoint => "checkpointed",
        TaskCommand::Kill => "killed",
    }
}

fn in_words(command: TaskCommand, outcome: &CommandOutcome, waited: Duration) -> String {
    let done = participle(command);
    match outcome {
        CommandOutcome::Done if command == TaskCommand::Resume => "goes on".to_owned(),
        CommandOutcome::Done => format!("is {done}"),
        CommandOutcome::Queued => "goes on with the next free slot of its worker".to_owned(),
        CommandOutcome::Refused(why) => format!("is not {done} and goes on: {why}"),
        CommandOutcome::Overtaken(what) => format!("is not {done}: it was {what} first"),
        CommandOutcome::Pending => {
            format!("is not {done} after {waited:?}, and will be as soon as it can; see: nap task list")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_said_as_it_is() {
        let said = |command, outcome| in_words(command, &outcome, Duration::from_secs(60));
        let refused = CommandOutcome::Refused("no memory for it".to_owned());
        for (command, outcome, expected) in [
            (TaskCommand::Suspend, CommandOutcome::Done, "is suspended"),
            (TaskCommand::Resume, CommandOutcome::Done, "goes on"),
            (TaskCommand::Resume, CommandOutcome::Queued, "goes on with the next free slot of its worker"),
            (TaskCommand::Suspend, refused, "is not suspended and goes on: no memory for it"),
            (
                TaskCommand::Checkpoint,
                CommandOutcome::Overtaken("finished".to_owned()),
                "is not checkpointed: it was finished first",
            ),
            (
                TaskCommand::Kill,
                CommandOutcome::Pending,
                "is not killed after 60s, and will be as soon as it can; see: nap task list",
            ),
        ] {
            assert_eq!(said(command, outcome), expected);
        }
    }
}
