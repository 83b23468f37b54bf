//! `nap-world`: runs simulated clusters.

use std::num::NonZero;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::Parser;
use napreduce_protocol::printing::{finish, print, print_error};
use napreduce_world::{Echo, RunReport, RunSettings, entropy, run};

/// Run a simulated cluster from a seed
///
/// Prints a line for each event. With --runs, runs several seeds, each twice in a process of its own, and prints only
/// what is wrong.
#[derive(Debug, Parser)]
#[command(name = "nap-world")]
struct Arguments {
    /// Seed of the run, or of the first one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop at the event of this number
    #[arg(long)]
    until: Option<u64>,
    /// Number of seeds to run
    #[arg(long, conflicts_with = "until")]
    runs: Option<u64>,
    /// Number of processes at a time (default: one per processor)
    #[arg(long, requires = "runs")]
    jobs: Option<NonZero<usize>>,
    /// Print only the last line
    #[arg(long)]
    quiet: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let status = match arguments.runs {
        Some(runs) => run_seeds(arguments.seed, runs, arguments.jobs),
        None => run_seed(&arguments),
    };
    finish("nap-world", status)
}

/// Runs one seed in this process.
fn run_seed(arguments: &Arguments) -> ExitCode {
    entropy::begin(arguments.seed);
    let settings = RunSettings {
        seed: arguments.seed,
        echo: if arguments.quiet {
            Echo::Silent
        } else {
            Echo::Lines
        },
        until: arguments.until,
    };
    // A thread of its own, whose hash tables get their first keys from the seed.
    let ran = thread::spawn(move || run(settings)).join();
    let report = match ran {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => {
            print_error(format_args!("nap-world: {error}"));
            return ExitCode::from(2);
        }
        Err(_) => {
            print_error(format_args!("nap-world: seed {}: panicked", arguments.seed));
            return ExitCode::from(2);
        }
    };
    let RunReport {
        events,
        hash,
        violations,
    } = report;
    print(format_args!(
        "seed {}: {events} events, hash {hash:016x}\n",
        arguments.seed
    ));
    for violation in &violations {
        print(format_args!("violation: {violation}\n"));
    }
    if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs each of these seeds twice, each time in a process of its own: libraries keep state for the life of a process.
fn run_seeds(first: u64, runs: u64, jobs: Option<NonZero<usize>>) -> ExitCode {
    let jobs = match jobs {
        Some(jobs) => jobs.get(),
        None => thread::available_parallelism().map_or(1, NonZero::get),
    };
    let end = first.saturating_add(runs);
    let next = AtomicU64::new(first);
    let failed = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    if let Err(what) = run_twice(seed) {
                        failed.fetch_add(1, Ordering::Relaxed);
                        print(format_args!(
                            "seed {seed}: {what}\n  repeat it with: nap-world --seed {seed}\n"
                        ));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    print(format_args!("{runs} seeds, {failed} failed\n"));
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs a seed twice.
///
/// # Errors
/// Fails with what is wrong: a violation, or a difference between the two runs.
fn run_twice(seed: u64) -> Result<(), String> {
    let first = run_apart(seed)?;
    let second = run_apart(seed)?;
    if first == second {
        Ok(())
    } else {
        Err(format!("not repeatable: {first} and {second}"))
    }
}

/// Runs a seed in another process; returns its last line.
fn run_apart(seed: u64) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let ran = Command::new(program)
        .args(["--quiet", "--seed", &seed.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    if ran.status.success() {
        Ok(text)
    } else {
        let errors = String::from_utf8_lossy(&ran.stderr);
        Err(format!("{text}\n{}", errors.trim()))
    }
}
