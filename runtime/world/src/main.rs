//! `nap-world`: runs simulated clusters.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::num::NonZero;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use napreduce_protocol::lock;
use napreduce_protocol::printing::{finish, print, print_error};
use napreduce_world::shrinking::{kind_of, shrink};
use napreduce_world::{
    AfterViolation, Echo, Plan, RunReport, RunSettings, Situation, entropy, remove_run_directories,
    run,
};

/// What begins the line of a violation.
const VIOLATION: &str = "violation: ";
/// What begins the line of a situation.
const REACHED: &str = "reached: ";
/// How often progress is shown on a terminal.
const BETWEEN_PROGRESS: Duration = Duration::from_secs(1);
const EXAMPLES: &str = "\
Examples:
  nap-world --seed 7                   Print what happens in a run
  nap-world --seed 7 --until 250       Stop at an event, for a debugger
  nap-world --runs 2000                Run 2,000 seeds, each twice
  nap-world --runs 10000 --once        Look for failures only
  nap-world --seed 7 --only job-1,fault-3
                                       Run a part, as a failing run prints it";

/// Run a simulated cluster from a seed
///
/// Prints a line for each event. With --runs, runs several seeds, each twice in a process of its own. Prints what is
/// wrong, the smallest part of the first failing run that fails in the same way, and which situations were reached.
#[derive(Debug, Parser)]
#[command(name = "nap-world", after_help = EXAMPLES)]
struct Arguments {
    /// Seed of the run, or of the first one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep only these parts of the run, such as fault-3,job-2
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    only: Option<Vec<String>>,
    /// Leave out these parts of the run
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    without: Vec<String>,
    /// Print the parts of the run instead of running it
    #[arg(long, conflicts_with = "runs")]
    parts: bool,
    /// Stop at the event of this number
    #[arg(long)]
    until: Option<u64>,
    /// Number of seeds to run
    #[arg(long, conflicts_with_all = ["until", "only", "without"])]
    runs: Option<u64>,
    /// Number of processes at a time (default: one per processor)
    #[arg(long, requires = "runs")]
    jobs: Option<NonZero<usize>>,
    /// Run each seed only once
    #[arg(long, requires = "runs")]
    once: bool,
    /// Stop at the first seed that fails, and do not make its run smaller
    #[arg(long, requires = "runs")]
    first: bool,
    /// Print only violations and the situations that were reached, and end at a violation
    #[arg(long)]
    quiet: bool,
    /// Real seconds after which a run with --quiet or --runs counts as hanging
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u64,
    /// Report a violation if the run has all these parts, to test how failing runs are made smaller
    #[arg(long, value_name = "PARTS", value_delimiter = ',', hide = true)]
    planted: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let status = match arguments.runs {
        Some(runs) => run_seeds(&arguments, runs),
        None => run_seed(&arguments),
    };
    finish("nap-world", status)
}

/// Runs one seed in this process.
fn run_seed(arguments: &Arguments) -> ExitCode {
    let mut plan = Plan::draw(arguments.seed);
    plan.keep(|part| {
        let is_kept = match &arguments.only {
            Some(only) => only.iter().any(|kept| kept == part),
            None => true,
        };
        is_kept && !arguments.without.iter().any(|left| left == part)
    });
    let parts = plan.parts();
    if arguments.parts {
        print(format_args!("{}\n", parts.join(",")));
        return ExitCode::SUCCESS;
    }
    let has_planted =
        !arguments.planted.is_empty() && arguments.planted.iter().all(|part| parts.contains(part));
    let echo = if arguments.quiet {
        Echo::Silent
    } else {
        Echo::Lines
    };
    let after_violation = if arguments.quiet {
        AfterViolation::End
    } else {
        AfterViolation::GoOn
    };
    let settings = RunSettings {
        plan,
        echo,
        after_violation,
        until: arguments.until,
    };
    entropy::begin(arguments.seed);
    let (report_to, reported) = channel();
    // A thread of its own, whose hash tables get their first keys from the seed.
    thread::spawn(move || {
        let _ = report_to.send(run(settings));
    });
    let waited = if arguments.quiet {
        reported.recv_timeout(Duration::from_secs(arguments.limit))
    } else {
        reported.recv().map_err(RecvTimeoutError::from)
    };
    let seed = arguments.seed;
    let report = match waited {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => {
            print_error(format_args!("nap-world: {error}"));
            return ExitCode::from(2);
        }
        Err(RecvTimeoutError::Disconnected) => {
            print_error(format_args!("nap-world: seed {seed}: panicked"));
            return ExitCode::from(2);
        }
        Err(RecvTimeoutError::Timeout) => {
            let limit = arguments.limit;
            print_error(format_args!(
                "nap-world: seed {seed}: hangs: did not end within {limit} s of real time"
            ));
            remove_run_directories();
            return ExitCode::from(2);
        }
    };
    let RunReport {
        events,
        hash,
        mut violations,
        situations,
    } = report;
    if has_planted {
        violations.push("planted".to_owned());
    }
    print(format_args!(
        "seed {seed}: {events} events, hash {hash:016x}\n"
    ));
    for (situation, count) in situations {
        if arguments.quiet {
            print(format_args!("{REACHED}{count} {situation}\n"));
        }
    }
    for violation in &violations {
        print(format_args!("{VIOLATION}{violation}\n"));
    }
    if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What came of the seeds so far.
#[derive(Default)]
struct Outcome {
    /// The seeds that were begun.
    begun: u64,
    failed: u64,
    /// The first seed that failed.
    first_failed: Option<u64>,
    situations: BTreeMap<String, u64>,
    /// When progress was last shown.
    shown: Option<Instant>,
}

impl Outcome {
    /// Shows on a terminal how many seeds were begun, once a second.
    fn show_progress(&mut self, runs: Option<u64>) {
        if !stderr().is_terminal() {
            return;
        }
        let now = Instant::now();
        if let Some(shown) = self.shown
            && now < shown + BETWEEN_PROGRESS
        {
            return;
        }
        self.shown = Some(now);
        let begun = self.begun;
        let failed = self.failed;
        let runs = runs.unwrap_or(begun);
        let _ = write!(stderr(), "\r{begun} of {runs} seeds, {failed} failed");
    }
}

/// Runs seeds, each in processes of its own: libraries keep state for the life of a process.
fn run_seeds(arguments: &Arguments, runs: u64) -> ExitCode {
    let jobs = match arguments.jobs {
        Some(jobs) => jobs.get(),
        None => thread::available_parallelism().map_or(1, NonZero::get),
    };
    let outcome = Mutex::new(Outcome::default());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(seed) = next_seed(arguments, runs, &outcome) {
                    run_seed_apart(arguments, seed, &outcome);
                }
            });
        }
    });
    let outcome = outcome.into_inner().unwrap_or_default();
    if outcome.shown.is_some() {
        print_error("");
    }
    if let Some(seed) = outcome.first_failed
        && !arguments.first
    {
        print_smaller(arguments, seed);
    }
    for situation in Situation::ALL {
        let count = outcome.situations.get(situation.in_words());
        match count {
            None => print(format_args!("never reached: {situation}\n")),
            Some(count) => print(format_args!("{count:>8} times: {situation}\n")),
        }
    }
    let Outcome { begun, failed, .. } = outcome;
    print(format_args!("{begun} seeds, {failed} failed\n"));
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns the next seed to run, if any.
fn next_seed(arguments: &Arguments, runs: u64, outcome: &Mutex<Outcome>) -> Option<u64> {
    let mut outcome = lock(outcome);
    if outcome.begun == runs || arguments.first && outcome.failed > 0 {
        return None;
    }
    outcome.begun += 1;
    arguments.seed.checked_add(outcome.begun - 1)
}

/// Runs a seed and prints what is wrong.
fn run_seed_apart(arguments: &Arguments, seed: u64, outcome: &Mutex<Outcome>) {
    let apart = Apart { seed, arguments };
    let judged = apart.judge(arguments.once);
    let mut outcome = lock(outcome);
    outcome.show_progress(arguments.runs);
    match judged {
        Ok(situations) => {
            for (situation, count) in situations {
                *outcome.situations.entry(situation).or_default() += count;
            }
        }
        Err(what) => {
            outcome.failed += 1;
            outcome.first_failed.get_or_insert(seed);
            print(format_args!(
                "seed {seed}: {what}\n  repeat it with: nap-world --seed {seed}\n"
            ));
        }
    }
}

/// Prints the command that repeats the smallest part of a failing run that fails in the same way.
fn print_smaller(arguments: &Arguments, seed: u64) {
    let apart = Apart { seed, arguments };
    if let Some(parts) = apart.make_smaller() {
        print(format_args!(
            "a smaller run fails in the same way: nap-world --seed {seed} --only '{}'\n",
            parts.join(",")
        ));
    }
}

/// A seed that is run in processes of its own.
struct Apart<'a> {
    seed: u64,
    arguments: &'a Arguments,
}

impl Apart<'_> {
    /// Runs the seed twice, or once; returns how often it reached each situation.
    ///
    /// # Errors
    /// Fails with what is wrong: violations, or a difference between the two runs.
    fn judge(&self, once: bool) -> Result<Vec<(String, u64)>, String> {
        let first = self.run(None)?;
        if !once {
            let second = self.run(None)?;
            if first != second {
                return Err(format!("not repeatable: {first} and {second}"));
            }
        }
        let mut situations = Vec::new();
        for line in first.lines() {
            if let Some(reached) = line.strip_prefix(REACHED)
                && let Some((count, situation)) = reached.split_once(' ')
            {
                situations.push((situation.to_owned(), count.parse().unwrap_or(0)));
            }
        }
        Ok(situations)
    }

    /// Returns the parts of the failing run with which it still fails in the same way. `None` if the failure has no
    /// violation, or does not come again.
    fn make_smaller(&self) -> Option<Vec<String>> {
        let whole = self.run(None).err()?;
        let wanted = kinds_of(&whole).into_iter().next()?;
        let parts = Plan::draw(self.seed).parts();
        Some(shrink(parts, |parts| match self.run(Some(parts)) {
            Ok(_) => false,
            Err(what) => kinds_of(&what).contains(&wanted),
        }))
    }

    /// Runs the seed, with only these parts if given; returns what the process printed.
    ///
    /// # Errors
    /// Fails with what is wrong.
    fn run(&self, only: Option<&[String]>) -> Result<String, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["--quiet", "--seed", &self.seed.to_string()]);
        command.args(["--limit", &self.arguments.limit.to_string()]);
        if let Some(only) = only {
            command.args(["--only", &only.join(",")]);
        }
        if !self.arguments.planted.is_empty() {
            command.args(["--planted", &self.arguments.planted.join(",")]);
        }
        let ran = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&ran.stdout);
        if ran.status.success() {
            return Ok(text.trim().to_owned());
        }
        let mut what = Vec::new();
        for line in text.lines() {
            if !line.starts_with(REACHED) {
                what.push(line);
            }
        }
        let errors = String::from_utf8_lossy(&ran.stderr);
        what.extend(errors.lines());
        Err(what.join("\n"))
    }
}

/// Returns the kinds of the violations that a process printed.
fn kinds_of(printed: &str) -> Vec<String> {
    let mut kinds = Vec::new();
    for line in printed.lines() {
        if let Some(violation) = line.strip_prefix(VIOLATION) {
            kinds.push(kind_of(violation));
        }
    }
    kinds
}
