//! The operator's program of napreduce: reads arguments, prints tables and progress.
//!
//! Exit statuses: 0 done, 1 failed or a figure out of its bounds, 2 wrong usage, 69 no coordinator, 128 plus the
//! signal's number when interrupted.

mod cluster;
mod completions;
mod coordinator;
mod demo;
#[cfg(test)]
mod documented;
mod down;
mod explaining;
mod failure;
mod format;
mod frames;
mod history;
mod ids;
mod job;
mod journal;
mod lab;
mod listing;
mod log;
mod manual;
mod moments;
mod new;
mod parent;
mod preemption;
mod queue;
mod screen;
mod settling;
mod signals;
mod sim;
mod status;
mod streaming;
mod task;
mod top;
mod up;
mod web;
mod whole_file;
mod worker;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use napreduce_protocol::{
    printing::{finish, printed},
    protocol_versions,
};

use cluster::{ClusterArguments, without_empty_variables};

/// The name of the program.
const NAME: &str = "nap";

/// Run, operate and examine napreduce clusters
#[derive(Debug, Parser)]
#[command(name = "nap", version = version(), arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    cluster: ClusterArguments,
}

const EXAMPLES: &str = "\
Examples:
  nap new words                   a crate with a job, its tests and data
  nap demo                        see a preemption on a small cluster
  nap up --workers 3              run a cluster here until Ctrl-C
  nap down                        end the cluster of nap up
  nap status                      workers, slots, jobs, and why jobs wait
  nap top                         the same full-screen, with keys
  nap job list                    running jobs, then ended ones
  nap job wait last               follow the job submitted last
  nap job explain last            why it makes no progress
  nap worker list --format json   workers, for programs
  nap web link                    a link to the dashboard
  nap streaming --input logs --output out --mapper cat --reducer 'uniq -c'
  nap frames --program wordcount.py books --output counts
  nap sim --workload fcs-map-heavy --scheduler fcs,fair

Settings: flag, else environment (NAPREDUCE_...), else napreduce.toml in the
cluster directory, else default.

Exit status: 0 done, 1 failed, 2 wrong usage, 69 no coordinator answers or its
version differs.";

#[derive(Debug, Subcommand)]
enum Command {
    New(new::Arguments),
    Demo(demo::Arguments),
    Up(up::Arguments),
    Down(down::Arguments),
    Coordinator(coordinator::Arguments),
    Worker(Box<worker::Arguments>),
    Status(status::Arguments),
    Top(top::Arguments),
    Web(web::Arguments),
    History(history::Arguments),
    Job(job::Arguments),
    Preemption(preemption::Arguments),
    Queue(queue::Arguments),
    Journal(journal::Arguments),
    Task(task::Arguments),
    Streaming(streaming::Arguments),
    Frames(frames::Arguments),
    Sim(Box<sim::Arguments>),
    Lab(lab::Arguments),
    Completions(completions::Arguments),
    Man(manual::Arguments),
}

/// Runs the command line of this process and returns its exit status.
pub fn main() -> ExitCode {
    // A coordinator commits outputs to object stores.
    napreduce::program::know_stores();
    // Workers run this binary for the tasks of streaming and frames jobs and of the demo.
    if napreduce::program::task_requested() {
        let program = napreduce::streaming::add_to(napreduce::Program::new());
        return napreduce::streaming::frames::main(program);
    }
    if completions::answered(Arguments::command) {
        return ExitCode::SUCCESS;
    }
    // These take the options of job programs, some of which have the names of options of `nap`.
    let mut line = std::env::args_os().skip(1);
    match line.next() {
        Some(command) if command == "streaming" => return streaming::run(line),
        Some(command) if command == "frames" => return frames::run(line),
        Some(command) if command == demo::JOB_COMMAND => return demo::run_job(line),
        _ => {}
    }
    let matches = without_empty_variables(Arguments::command()).try_get_matches();
    // Help and usage errors are rare; only they need the usage of every command.
    let matches = matches.or_else(|_| {
        with_plain_usage(without_empty_variables(Arguments::command())).try_get_matches()
    });
    let parsed = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    let status = match parsed.map(|Arguments { command, cluster }| run(&command, &cluster)) {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => {
            failure::print(&error);
            ExitCode::from(failure::status(&error))
        }
        Err(refused) => print_refusal(&refused),
    };
    finish(NAME, status)
}

/// Sets the usage of every command to its own arguments. Otherwise a usage error lists each option that has a value
/// as required, also one from an environment variable: `nap job kill --dir <DIR> <JOB>...`.
fn with_plain_usage(mut command: clap::Command) -> clap::Command {
    command.build();
    with_own_usage(command)
}

fn with_own_usage(mut command: clap::Command) -> clap::Command {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    command
        .override_usage(usage)
        .mut_subcommands(with_own_usage)
}

fn version() -> String {
    format!("{} ({})", env!("CARGO_PKG_VERSION"), protocol_versions())
}

/// Prints help, a version or a usage error; returns its exit status.
fn print_refusal(refused: &clap::Error) -> ExitCode {
    let result = refused.print();
    if !refused.use_stderr() {
        printed(result);
    }
    ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(1))
}

fn run(command: &Command, cluster: &ClusterArguments) -> Result<ExitCode> {
    match command {
        Command::New(arguments) => new::run(arguments),
        Command::Demo(arguments) => demo::run(arguments),
        Command::Up(arguments) => up::run(arguments, cluster),
        Command::Down(arguments) => down::run(arguments, cluster),
        Command::Coordinator(arguments) => coordinator::run(arguments, cluster),
        Command::Worker(arguments) => worker::run(arguments, cluster),
        Command::Status(arguments) => status::run(arguments, cluster),
        Command::Top(_) => top::run(cluster),
        Command::Web(arguments) => web::run(arguments, cluster),
        Command::History(arguments) => history::run(arguments),
        Command::Job(arguments) => job::run(arguments, cluster),
        Command::Preemption(arguments) => preemption::run(arguments, cluster),
        Command::Queue(arguments) => queue::run(arguments, cluster),
        Command::Journal(arguments) => journal::run(arguments, cluster),
        Command::Task(arguments) => task::run(arguments, cluster),
        Command::Streaming(_) => return Ok(streaming::misplaced("streaming")),
        Command::Frames(_) => return Ok(streaming::misplaced("frames")),
        Command::Sim(arguments) => sim::run(arguments, cluster),
        Command::Lab(arguments) => return Ok(lab::run(arguments)),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => manual::write_manual(arguments, Arguments::command()),
    }
    .map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        Arguments::command().debug_assert();
    }

    /// Adds the names of all subcommands, as typed.
    fn names(command: &clap::Command, before: &str, all: &mut Vec<String>) {
        for below in command.get_subcommands() {
            let name = format!("{before} {}", below.get_name());
            names(below, &name, all);
            all.push(name);
        }
    }

    #[test]
    fn completions_and_manual_cover_every_command() {
        let mut all = Vec::new();
        names(&Arguments::command(), "nap", &mut all);
        assert!(all.len() > 40, "{all:?}");
        let folder = tempfile::tempdir().expect("a folder");
        let parse = |line: &[&str]| {
            Arguments::try_parse_from(line)
                .expect("it makes sense")
                .command
        };
        let directory = folder.path().display().to_string();
        let Command::Man(manual) = parse(&["nap", "man", &directory]) else {
            panic!("it is the manual")
        };
        manual::write_manual(&manual, Arguments::command()).expect("written");
        for name in &all {
            let page = folder.path().join(format!("{}.1", name.replace(' ', "-")));
            assert!(page.is_file(), "{name} has no page");
        }
        let mut command = Arguments::command();
        for name in &all {
            let (before, word) = name.rsplit_once(' ').expect("two words");
            let words: Vec<OsString> = before.split(' ').chain([""]).map(OsString::from).collect();
            let at = words.len() - 1;
            let candidates = clap_complete::engine::complete(&mut command, words, at, None);
            let candidates = candidates.expect("candidates");
            assert!(
                candidates.iter().any(|known| known.get_value() == word),
                "{name}: {candidates:?}"
            );
        }
    }

    #[test]
    fn usage_of_an_error_lists_only_what_is_required() {
        let usage = |line: &[&str]| {
            let command = with_plain_usage(Arguments::command());
            let error = command
                .try_get_matches_from(line)
                .expect_err("it is wrong")
                .to_string();
            error
                .lines()
                .find(|line| line.starts_with("Usage: "))
                .expect("usage")
                .to_owned()
        };
        // An option after the command has the same effect on the usage as one from the environment.
        for (line, expected) in [
            (
                &["nap", "job", "kill", "--dir", "d"][..],
                "Usage: nap job kill [OPTIONS] <JOB>...",
            ),
            (
                &["nap", "task", "suspend", "--reason", "r"],
                "Usage: nap task suspend [OPTIONS] <TASK>...",
            ),
            (
                &["nap", "history", "export", "--dir", "d"],
                "Usage: nap history export [OPTIONS] --output <DIR> <PATH> [JOB]...",
            ),
            (
                &["nap", "worker", "drain", "--dir", "d"],
                "Usage: nap worker drain [OPTIONS] <WORKER>...",
            ),
            (&["nap", "jo"], "Usage: nap [OPTIONS] <COMMAND>"),
        ] {
            assert_eq!(usage(line), expected);
        }
    }

    #[test]
    fn dashboard_address_has_one_name_in_all_commands() {
        for line in [
            &["nap", "up", "--web", "127.0.0.1:0"][..],
            &["nap", "web", "serve", "--web", "127.0.0.1:0"],
            &["nap", "web", "serve", "--bind", "127.0.0.1:0"],
            &["nap", "history", "serve", "runs", "--web", "127.0.0.1:0"],
            &["nap", "history", "serve", "runs", "--bind", "127.0.0.1:0"],
        ] {
            Arguments::try_parse_from(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        }
    }

    #[test]
    fn systemd_units_start_valid_commands() {
        let units = [
            include_str!("../systemd/nap-coordinator.service"),
            include_str!("../systemd/nap-worker.service"),
        ];
        for (unit, name) in units.into_iter().zip(["coordinator", "worker"]) {
            let start = unit
                .lines()
                .find_map(|line| line.strip_prefix("ExecStart="))
                .expect("it starts something");
            let mut words = start.split_whitespace();
            assert_eq!(words.next(), Some("/usr/local/bin/nap"), "{start}");
            let parsed = Arguments::try_parse_from(std::iter::once("nap").chain(words));
            let command = parsed
                .unwrap_or_else(|error| panic!("{start}: {error}"))
                .command;
            let fits = match name {
                "coordinator" => matches!(command, Command::Coordinator(_)),
                _ => matches!(command, Command::Worker(_)),
            };
            assert!(fits, "{start}");
        }
    }

    #[test]
    fn kubernetes_manifests_start_valid_commands() {
        let manifests = [
            include_str!("../kubernetes/coordinator.yaml"),
            include_str!("../kubernetes/workers.yaml"),
        ];
        for (manifest, name) in manifests.into_iter().zip(["coordinator", "worker"]) {
            let line = manifest
                .lines()
                .find_map(|line| line.trim().strip_prefix("args: "));
            let line: Vec<String> =
                serde_json::from_str(line.expect("it starts something")).expect("words");
            let line = std::iter::once("nap").chain(line.iter().map(String::as_str));
            let command = Arguments::try_parse_from(line)
                .unwrap_or_else(|error| panic!("{error}"))
                .command;
            let fits = match name {
                "coordinator" => matches!(command, Command::Coordinator(_)),
                _ => matches!(command, Command::Worker(_)),
            };
            assert!(fits, "{name}");
        }
        let seconds = |before: &str, after: &str| -> u64 {
            let rest = manifests[1].split_once(before).expect("it is set").1;
            rest.split_once(after)
                .expect("it ends")
                .0
                .trim()
                .parse()
                .expect("a number")
        };
        let grace = seconds("\"--grace\", \"", "s\"");
        let until_killed = seconds("terminationGracePeriodSeconds:", "\n");
        assert!(
            grace < until_killed,
            "a grace of {grace} s, and killed after {until_killed} s"
        );
    }

    #[test]
    fn worker_without_subcommand_runs_daemon() {
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
            &["nap", "worker", "--on-terminate", "stay"],
            &["nap", "job", "status"],
            &["nap", "job", "kill", "job_0"],
            &["nap", "task", "kill", "job_0007"],
            &["nap", "up", "--workers", "0"],
            &["nap", "coordinator", "--scheduler", "fare"],
            &["nap", "coordinator", "--liveness", "soon"],
        ] {
            assert_eq!(
                parse(line).expect_err("it is wrong").exit_code(),
                2,
                "{line:?}"
            );
        }
    }
}
