//! The operator's binary of napreduce: arguments in, tables and progress out.
//!
//! Owns exit statuses: 0 done, 1 it failed or a figure is not what it should be, 2 wrong usage, 69 no
//! coordinator, 128 and the signal's number when interrupted. What the commands do belongs to the crates
//! behind them.

mod cluster;
mod coordinator;
mod explaining;
mod failure;
mod format;
mod hadoop;
mod ids;
mod job;
mod lab;
mod log;
mod parent;
mod settling;
mod sim;
mod streaming;
mod task;
mod up;
mod worker;

use std::ffi::OsStr;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use napreduce_live::several_lines;

use cluster::ClusterArguments;
use failure::{Failure, in_words, status};

/// Operate and examine napreduce.
#[derive(Debug, Parser)]
#[command(name = "nap", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    cluster: ClusterArguments,
}

const EXAMPLES: &str = "\
Examples:
  nap up --workers 3                     a cluster on this machine; Ctrl-C ends it
  nap job list                           its jobs
  nap job wait last                      progress of the job submitted last
  nap worker list --format json          its workers, for programs
  nap streaming --input logs --output out --mapper 'cut -f 2' --reducer 'uniq -c'     any program as mapper and reducer
  nap sim --workload fcs-map-heavy --scheduler fcs,fair      schedulers compared in simulated time
  nap lab speed                          wordcount and terasort of 1 GiB against what is installed

Settings: flag, else environment (NAPREDUCE_...), else napreduce.toml in the cluster directory, else default.
Exit status: 0 done, 1 failed, 2 wrong usage, 69 no coordinator answers (or none that nap can talk to)";

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Arguments),
    Coordinator(coordinator::Arguments),
    Worker(worker::Arguments),
    Job(job::Arguments),
    Task(task::Arguments),
    Streaming(streaming::Arguments),
    Hadoop(hadoop::Arguments),
    Sim(Box<sim::Arguments>),
    Lab(lab::Arguments),
}

fn main() -> ExitCode {
    // Workers call this same binary for the tasks of jobs whose mappers and reducers are commands.
    if napreduce_live::task_process_requested() {
        return napreduce::streaming::main(napreduce::Program::new());
    }
    // Its options are those of job programs, of which some are called as those here and mean something else.
    let mut line = std::env::args_os().skip(1);
    match line.next() {
        Some(command) if command == "streaming" => return streaming::run(line),
        Some(command) if command == "hadoop" => return hadoop::run(line),
        _ => {}
    }
    let matches = without_empty_variables(Arguments::command()).get_matches();
    let Arguments { command, cluster } =
        Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(&command, &cluster) {
        Ok(status) => status,
        Err(error) => {
            if !matches!(error.downcast_ref(), Some(Failure::Said)) {
                eprintln!("nap: {}", several_lines(&in_words(&error)));
            }
            ExitCode::from(status(&error))
        }
    }
}

fn run(command: &Command, cluster: &ClusterArguments) -> Result<ExitCode> {
    match command {
        Command::Up(arguments) => up::run(arguments, cluster),
        Command::Coordinator(arguments) => coordinator::run(arguments, cluster),
        Command::Worker(arguments) => worker::run(arguments, cluster),
        Command::Job(arguments) => job::run(arguments, cluster),
        Command::Task(arguments) => task::run(arguments, cluster),
        Command::Streaming(_) => return Ok(streaming::misplaced()),
        Command::Hadoop(_) => return Ok(hadoop::misplaced()),
        Command::Sim(arguments) => sim::run(arguments, cluster),
        Command::Lab(arguments) => return Ok(lab::run(arguments)),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// A variable that is set to nothing is as one that is not set.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let says_nothing = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|argument| match argument.get_env().is_some_and(says_nothing) {
        true => argument.env(None),
        false => argument,
    });
    command.mut_subcommands(without_empty_variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_makes_sense() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_worker_without_a_command_is_a_daemon() {
        let parse = |line: &[&str]| Arguments::try_parse_from(line).map(|parsed| parsed.command);
        for line in [
            &["nap", "worker"][..],
            &["nap", "worker", "--map-slots", "3"],
            &["nap", "worker", "list", "--wait", "3", "--format", "json"],
            &["nap", "--dir", "d", "worker", "drain", "1", "--hand-back"],
            &["nap", "worker", "list", "--dir", "d"],
        ] {
            assert!(matches!(parse(line), Ok(Command::Worker(_))), "{line:?}");
        }
        for line in [
            &["nap", "worker", "--map-slots", "3", "list"][..],
            &["nap", "worker", "drain"],
            &["nap", "job", "status"],
            &["nap", "job", "kill", "seven"],
            &["nap", "task", "kill", "job_0007"],
            &["nap", "up", "--workers", "0"],
            &["nap", "coordinator", "--scheduler", "fare"],
            &["nap", "coordinator", "--liveness", "soon"],
        ] {
            assert_eq!(parse(line).expect_err("it is wrong").exit_code(), 2, "{line:?}");
        }
    }
}
