//! `nap task`: commands about single tasks.

use anyhow::Result;
use clap::{Args, Subcommand};
use napreduce_cluster::ClusterClient;
use napreduce_engine::WorkerId;
use napreduce_protocol::requests::{CommandTask, Explain, ListTasks};
use napreduce_protocol::{LiveAttempt, TaskCommand, TaskPhase, TaskSummary, printing::print_error};

use napreduce_answers::{TaskAnswer, TaskExplanation};
use napreduce_web::clock::now_millis;

use crate::cluster::ClusterArguments;
use crate::explaining::explanations;
use crate::failure::Failures;
use crate::format::{FormatArguments, or_dash, span};
use crate::ids::{JobSelector, TaskName, TaskSelector, find_tasks};
use crate::job::of_each;
use crate::listing::{Compare, Listed, ListingArguments, print_total};
use crate::screen::{Column, Fit, Screen};
use crate::settling::{CommandTarget, WaitArguments, settle};

/// List, suspend, resume, checkpoint, kill and explain tasks
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap task list                         tasks with live attempts
  nap task list last                    all tasks of the last job
  nap task list 7 --state suspended     suspended tasks of job 7
  nap task suspend job_0007_r_0000      keep its memory, free its slot
  nap task resume job_0007_r_0000       continue in the next free slot
  nap task checkpoint job_0007_r_0000   save its work, continue on any worker
  nap task kill job_0007_m_0003         run it again; not counted as a failure
  nap task explain job_0007_r_0000      why it does not run

TASK is job_0007_m_0003 for all live attempts of a task, job_0007_m_0003.1 for
one attempt, last_m_0003 for a task of the last job, or NAME_m_0003 for a task
of the only unfinished job of a name.

The commands wait for the result. Exit status: 0 done, or queued for a free
slot; 1 refused, overtaken by another event, or not done within --timeout;
2 not possible for this task.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// List tasks of jobs, or all tasks with live attempts
    List {
        /// Jobs: job_0007, 7, 3-7, last, all, or the name of one job
        #[arg(value_name = "JOB")]
        jobs: Vec<JobSelector>,

        #[command(flatten)]
        listing: ListingArguments<TaskSummary>,

        #[command(flatten)]
        format: FormatArguments,
    },
    /// Stop running attempts until `resume`: they keep their memory and free their slots
    Suspend(CommandArguments),
    /// Continue suspended attempts, each in the next free slot of its worker
    Resume(CommandArguments),
    /// Save the work of attempts and end them; their tasks continue on any worker
    Checkpoint(CommandArguments),
    /// Kill attempts, whose work is lost; their tasks run again
    Kill(CommandArguments),
    /// Print why tasks do not run
    Explain {
        /// job_0007_m_0003, last_m_0003, or NAME_m_0003
        #[arg(value_name = "TASK", required = true)]
        tasks: Vec<TaskName>,

        #[command(flatten)]
        format: FormatArguments,
    },
}

#[derive(Debug, Clone, Args)]
struct CommandArguments {
    /// job_0007_m_0003, or job_0007_m_0003.1 for one attempt; last_m_0003 of the last job, NAME_m_0003
    /// of the job of a name
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskName>,

    /// Reason, shown in the history of the job [default: requested by nap task ...]
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    wait: WaitArguments,
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let mut client = cluster.connect()?;
    match &arguments.command {
        Command::List {
            jobs,
            listing,
            format,
        } => {
            let (mut tasks, failures) = if jobs.is_empty() {
                (client.ask(ListTasks { job: None })?, Failures::default())
            } else {
                let (tasks, failures) = of_each(jobs, &mut client, |client, job| {
                    Ok(client.ask(ListTasks { job: Some(job) })?)
                })?;
                (tasks.concat(), failures)
            };
            let total = listing.select(&mut tasks);
            format.print(
                |screen| text(&tasks, now_millis(), screen),
                || tasks.iter().map(TaskAnswer::from).collect::<Vec<_>>(),
            )?;
            print_total::<TaskSummary>(tasks.len(), total);
            failures.finish()
        }
        Command::Suspend(commanded) => command(commanded, TaskCommand::Suspend, &mut client),
        Command::Resume(commanded) => command(commanded, TaskCommand::Resume, &mut client),
        Command::Checkpoint(commanded) => command(commanded, TaskCommand::Checkpoint, &mut client),
        Command::Kill(commanded) => command(commanded, TaskCommand::Kill, &mut client),
        Command::Explain { tasks, format } => {
            let mut failures = Failures::default();
            let mut explained = Vec::new();
            for TaskSelector { task, .. } in find_tasks(tasks, &mut client)? {
                let reasons = failures.check(client.ask(Explain {
                    job: task.job,
                    task: Some(task),
                }))?;
                explained.extend(reasons.map(|reasons| TaskExplanation::of(task, &reasons)));
            }
            if explained.is_empty() {
                return failures.finish();
            }
            let lines = |one: &TaskExplanation| (one.task.clone(), one.lines.clone());
            format.print(|_| explanations(explained.iter().map(lines)), || &explained)?;
            failures.finish()
        }
    }
}

/// Applies the command to each task in order, waits, and prints the outcomes. A refusal stops neither the
/// other commands nor the wait.
fn command(
    commanded: &CommandArguments,
    command: TaskCommand,
    client: &mut ClusterClient,
) -> Result<()> {
    let default = || format!("requested by nap task {}", command.in_words());
    let reason = commanded.reason.clone().unwrap_or_else(default);
    let mut ordered = Vec::new();
    let mut failures = Failures::default();
    for TaskSelector { task, attempt } in find_tasks(&commanded.tasks, client)? {
        let request = CommandTask {
            task,
            attempt,
            command,
            reason: reason.clone(),
        };
        let attempts = failures.check(client.ask(request))?;
        ordered.extend(attempts.map(|attempts| CommandTarget {
            job: task.job,
            attempts,
        }));
    }
    if commanded.wait.no_wait {
        for attempt in ordered.iter().flat_map(|ordered| &ordered.attempts) {
            print_error(format_args!("{attempt} {}", in_words(command)));
        }
    } else {
        failures.check(settle(&ordered, command, &commanded.wait, client))?;
    }
    failures.finish()
}

impl Listed for TaskSummary {
    const KIND: &'static str = "task";
    const STATES: &'static [&'static str] = &TaskPhase::WORDS;
    const SORTED: &'static [(&'static str, Compare<TaskSummary>)] = &[
        ("task", |one, other| one.task.cmp(&other.task)),
        ("state", |one, other| {
            one.state.in_words().cmp(other.state.in_words())
        }),
        ("tries", |one, other| one.attempts.cmp(&other.attempts)),
        ("worker", |one, other| worker(one).cmp(&worker(other))),
        ("took", |one, other| launched(other).cmp(&launched(one))),
        ("done", |one, other| done(one).cmp(&done(other))),
    ];

    fn is_in(&self, state: &str) -> bool {
        self.state.in_words() == state
    }
}

fn worker(task: &TaskSummary) -> Option<WorkerId> {
    task.live.first().map(|live| live.worker)
}

/// Returns the launch of the oldest live attempt; tasks without one sort before those with one.
fn launched(task: &TaskSummary) -> u64 {
    task.live
        .iter()
        .map(|live| live.launched_millis)
        .min()
        .unwrap_or(u64::MAX)
}

/// Returns the per cent of the attempt that has done most.
fn done(task: &TaskSummary) -> Option<u64> {
    task.live.iter().filter_map(percent).max()
}

fn in_words(command: TaskCommand) -> &'static str {
    match command {
        TaskCommand::Suspend => "is being suspended",
        TaskCommand::Resume => "continues in the next free slot of its worker",
        TaskCommand::Checkpoint => "is being checkpointed",
        TaskCommand::Kill => "is being killed",
    }
}

/// A live attempt, or a task without one.
struct Row<'a> {
    task: &'a TaskSummary,
    live: Option<&'a LiveAttempt>,
    now_millis: u64,
}

impl Row<'_> {
    fn of_live(&self, text: impl FnOnce(&LiveAttempt) -> String) -> String {
        or_dash(self.live.map(text))
    }
}

/// Formats a row for each live attempt, and for each task without one. Attempts took the time since their launch.
fn text(tasks: &[TaskSummary], now_millis: u64, screen: &Screen) -> String {
    let columns: [Column<Row>; 9] = [
        Column::new("TASK", Fit::Whole, |row, _| row.task.task.to_string()),
        Column::new("STATE", Fit::Whole, |row, _| row.task.state.to_string()),
        Column::new("TRIES", Fit::Drop(3), |row, _| {
            row.task.attempts.to_string()
        }),
        Column::new("ATTEMPT", Fit::Drop(1), |row, _| {
            row.of_live(|live| live.attempt.to_string())
        }),
        Column::new("WORKER", Fit::Whole, |row, _| {
            row.of_live(|live| live.worker.to_string())
        }),
        Column::new("DOING", Fit::Drop(2), |row, _| {
            row.of_live(|live| live.state.to_string())
        }),
        Column::new("TOOK", Fit::Whole, |row, _| {
            row.of_live(|live| span(row.now_millis.saturating_sub(live.launched_millis)))
        }),
        Column::new("DONE", Fit::Whole, |row, _| {
            or_dash(
                row.live
                    .and_then(percent)
                    .map(|percent| format!("{percent}%")),
            )
        }),
        Column::new("WHY", Fit::Below, |row, _| {
            row.live
                .and_then(|live| live.reason.clone())
                .or(row.task.reason.clone())
                .unwrap_or_default()
        }),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for task in tasks {
        rows.extend(task.live.iter().map(|live| Row {
            task,
            live: Some(live),
            now_millis,
        }));
        rows.extend(task.live.is_empty().then_some(Row {
            task,
            live: None,
            now_millis,
        }));
    }
    screen.list(&columns, &rows)
}

fn percent(live: &LiveAttempt) -> Option<u64> {
    let percent = u128::from(live.bytes_done) * 100
        / u128::from((live.bytes_total > 0).then_some(live.bytes_total)?);
    u64::try_from(percent.min(100)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::{AttemptId, AttemptState, JobId, TaskId, TaskKind};

    const NOW: u64 = 1_790_000_065_000;

    #[test]
    fn tasks_are_sorted_by_the_time_since_their_launch() {
        let [waiting, running] = tasks();
        let mut longer = running.clone();
        longer.live[0].launched_millis -= 1;
        let mut all = vec![longer.clone(), waiting.clone(), running.clone()];
        let (_, compare) = TaskSummary::SORTED
            .iter()
            .find(|(column, _)| *column == "took")
            .expect("a column");
        all.sort_by(compare);
        assert_eq!(all, [waiting, running, longer]);
    }

    fn tasks() -> [TaskSummary; 2] {
        let task = |index| TaskId {
            job: JobId(7),
            kind: TaskKind::Map,
            index,
        };
        let live = LiveAttempt {
            attempt: AttemptId {
                task: task(1),
                number: 2,
            },
            worker: WorkerId(1),
            state: AttemptState::Running,
            launched_millis: 1_790_000_000_000,
            reason: None,
            bytes_done: 50,
            bytes_total: 200,
        };
        let waiting = TaskSummary {
            task: task(0),
            state: TaskPhase::Waiting,
            reason: None,
            attempts: 0,
            live: Vec::new(),
        };
        let state = TaskPhase::Running;
        let reason = None;
        let running = TaskSummary {
            task: task(1),
            state,
            reason,
            attempts: 2,
            live: vec![live],
        };
        [waiting, running]
    }

    #[test]
    fn tasks_are_listed_with_their_live_attempts() {
        assert_eq!(
            text(&tasks(), NOW, &Screen::plain()),
            "TASK             STATE    TRIES  ATTEMPT            WORKER       DOING    TOOK       DONE  WHY\n\
             job_0007_m_0000  waiting  0      -                  -            -        -          -\n\
             job_0007_m_0001  running  2      job_0007_m_0001.2  worker_0001  running  1 min 5 s  25%\n"
        );
    }

    #[test]
    fn task_list_fits_80_columns() {
        let mut tasks = tasks();
        tasks[1].state = TaskPhase::Suspended;
        tasks[1].live[0].state = AttemptState::Suspended;
        tasks[1].reason =
            Some("suspended by nap job suspend, and resumed when a slot is free".to_owned());
        let text = text(&tasks, NOW, &Screen::of(80));
        assert!(
            text.starts_with(
                "TASK             STATE      ATTEMPT            WORKER       TOOK       DONE\n"
            ),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(
            text.ends_with(
                "25%\n  suspended by nap job suspend, and resumed when a slot is free\n"
            ),
            "{text}"
        );
    }
}
