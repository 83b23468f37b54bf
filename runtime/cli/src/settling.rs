//! Waits for the outcomes of commands to attempts and prints them.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use napreduce_cluster::ClusterClient;
use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::requests::GetOutcomes;
use napreduce_protocol::{
    Backoff, CommandOutcome, TaskCommand, parse_time, printing::print_error, several_lines,
};

use crate::failure::printed;

/// Pauses between looks at the outcomes.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));
/// Progress is printed after the first time, then at the interval of the second.
const PRINT_FIRST: Duration = Duration::from_secs(2);
const PRINT_AGAIN: Duration = Duration::from_secs(10);

/// Flags of every command to attempts.
#[derive(Debug, Clone, Args)]
pub struct WaitArguments {
    /// Do not wait for the outcome
    #[arg(long)]
    pub no_wait: bool,

    /// How long to wait for the outcome
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "60s")]
    pub timeout: Duration,
}

/// Attempts that received a command.
#[derive(Debug)]
pub struct CommandTarget {
    pub job: JobId,
    /// Empty for a command to a whole job, which means its live attempts.
    pub attempts: Vec<AttemptId>,
}

/// Waits for the outcome of each attempt and prints it. Fails, after printing, unless all are done.
pub fn settle(
    ordered: &[CommandTarget],
    command: TaskCommand,
    wait: &WaitArguments,
    client: &mut ClusterClient,
) -> Result<()> {
    let mut all_done = true;
    let until = Instant::now() + wait.timeout;
    for target in ordered {
        let outcomes = wait_for(target, command, until, client)?;
        for (attempt, outcome) in &outcomes {
            print_error(format_args!(
                "{attempt} {}",
                several_lines(&in_words(command, outcome, wait.timeout))
            ));
        }
        let done = |outcome: &CommandOutcome| match outcome {
            CommandOutcome::Done | CommandOutcome::Queued => true,
            // For a whole job, attempts that ended on their own are fine.
            CommandOutcome::Overtaken(_) => target.attempts.is_empty(),
            CommandOutcome::Pending | CommandOutcome::Refused(_) => false,
        };
        all_done &= outcomes.iter().all(|(_, outcome)| done(outcome));
    }
    if all_done { Ok(()) } else { Err(printed()) }
}

/// Returns the outcomes when none is pending, or at the deadline.
fn wait_for(
    target: &CommandTarget,
    command: TaskCommand,
    until: Instant,
    client: &mut ClusterClient,
) -> Result<Vec<(AttemptId, CommandOutcome)>> {
    let CommandTarget { job, attempts } = target;
    let began = Instant::now();
    let mut backoff = BACKOFF;
    let mut print_after = PRINT_FIRST;
    loop {
        let outcomes = client.ask(GetOutcomes {
            job: *job,
            attempts: attempts.clone(),
            command,
        })?;
        let open = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == CommandOutcome::Pending)
            .count();
        if open == 0 || Instant::now() >= until {
            return Ok(outcomes);
        }
        if began.elapsed() >= print_after {
            print_after = began.elapsed() + PRINT_AGAIN;
            let left = until.saturating_duration_since(Instant::now());
            let all = outcomes.len();
            let done = participle(command);
            print_error(format_args!(
                "{job}: {} of {all} attempts are {done}; waiting {left:.0?} more",
                all - open
            ));
        }
        let left = until.saturating_duration_since(Instant::now());
        thread::sleep(backoff.next_pause().min(left));
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
        CommandOutcome::Done if command == TaskCommand::Resume => "continues".to_owned(),
        CommandOutcome::Done => format!("is {done}"),
        CommandOutcome::Queued if command == TaskCommand::Checkpoint => {
            "finishes its record or group in the next free slot of its worker, and is checkpointed then"
                .to_owned()
        }
        CommandOutcome::Queued => "continues in the next free slot of its worker".to_owned(),
        CommandOutcome::Refused(why) => format!("is not {done}, it continues: {why}"),
        CommandOutcome::Overtaken(what) => format!("is not {done}: it was {what} first"),
        CommandOutcome::Pending => {
            format!("is not {done} after {waited:?}; the command stays in force, see: nap task list")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_in_words_covers_every_outcome() {
        let text = |command, outcome| in_words(command, &outcome, Duration::from_secs(60));
        let refused = CommandOutcome::Refused("no memory for it".to_owned());
        for (command, outcome, expected) in [
            (TaskCommand::Suspend, CommandOutcome::Done, "is suspended"),
            (TaskCommand::Resume, CommandOutcome::Done, "continues"),
            (
                TaskCommand::Resume,
                CommandOutcome::Queued,
                "continues in the next free slot of its worker",
            ),
            (
                TaskCommand::Suspend,
                refused,
                "is not suspended, it continues: no memory for it",
            ),
            (
                TaskCommand::Checkpoint,
                CommandOutcome::Overtaken("finished".to_owned()),
                "is not checkpointed: it was finished first",
            ),
            (
                TaskCommand::Kill,
                CommandOutcome::Pending,
                "is not killed after 60s; the command stays in force, see: nap task list",
            ),
        ] {
            assert_eq!(text(command, outcome), expected);
        }
    }
}
