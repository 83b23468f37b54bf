//! The cost of starting: a tiny job from start to exit, and one more map task. Memory is not sampled, which would
//! disturb the short times.

use anyhow::Result;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::check::Truth;
use crate::machine::Machine;
use crate::process::{Sampling, run};
use crate::program::{BenchmarkJob, Resources};
use crate::report::{Report, dash, seconds, table};
use crate::session::Session;
use crate::statistics::{Interval, Summary, known_percentile, median_interval};
use crate::workspace::{WorkFolder, write};

/// Map tasks of the large job beyond the first.
const MORE_TASKS: u32 = 400;
/// Runs of the large job.
const MORE_TASKS_RUNS: u32 = 5;
/// The input of each map task.
const TINY_TEXT: &str = "to nap or not to nap\n";

#[derive(Clone, Debug, Args)]
pub struct StartSettings {
    /// Measured runs of the tiny job, after one that warms up
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: u32,
    #[command(flatten)]
    pub resources: Resources,
}

#[derive(Clone, Debug, Serialize)]
pub struct StartReport {
    pub experiment: &'static str,
    pub machine: Machine,
    #[serde(flatten)]
    pub resources: Resources,
    /// Runs of the tiny job.
    pub command: String,
    /// Wall seconds of each run of the tiny job.
    pub tiny_seconds: Vec<f64>,
    pub tiny: Option<Summary>,
    pub tiny_p99_seconds: Option<f64>,
    /// Map tasks of the large job beyond the first.
    pub more_tasks: u32,
    /// Wall seconds of the tiny job, and of the large job right after it.
    pub pairs_seconds: Vec<(f64, f64)>,
    /// Median seconds of one more map task.
    pub task_seconds: Option<f64>,
    /// Bootstrap interval (95 %).
    pub task_interval: Option<Interval>,
}

pub fn start(settings: &StartSettings, session: &Session) -> Result<StartReport> {
    let binary = BenchmarkJob::Wordcount.binary(&session.binaries)?;
    let work = WorkFolder::make(&session.work, napreduce_protocol::ByteSize::new(0))?;
    let one = Job::prepare(&work, "one", 1, session)?;
    let many = Job::prepare(&work, "many", 1 + MORE_TASKS, session)?;
    let once = |job: &Job| job.run(&work, &binary, settings.resources, session);
    once(&one)?;
    let mut tiny_seconds = Vec::new();
    for _ in 0..settings.runs {
        tiny_seconds.push(once(&one)?);
    }
    session.log(format!("tiny job: {} runs done", settings.runs));
    let mut pairs_seconds = Vec::new();
    for round in 1..=MORE_TASKS_RUNS {
        pairs_seconds.push((once(&one)?, once(&many)?));
        session.log(format!(
            "{} map tasks more: {round}/{MORE_TASKS_RUNS}",
            MORE_TASKS
        ));
    }
    let per_task: Vec<f64> = pairs_seconds
        .iter()
        .map(|(one, many)| (many - one) / f64::from(MORE_TASKS))
        .collect();
    Ok(StartReport {
        experiment: "start",
        machine: Machine::describe(),
        resources: settings.resources,
        command: one.command(&work, &binary, settings.resources).typed(),
        tiny: Summary::of(&tiny_seconds),
        tiny_p99_seconds: known_percentile(&tiny_seconds, 99.0),
        tiny_seconds,
        more_tasks: MORE_TASKS,
        pairs_seconds,
        task_seconds: crate::statistics::median(&per_task),
        task_interval: median_interval(&per_task),
    })
}

/// A job with a map task for each line of its input. Several tiny files would be one split.
struct Job {
    input: PathBuf,
    truth: Truth,
}

impl Job {
    fn prepare(work: &WorkFolder, name: &str, tasks: u32, session: &Session) -> Result<Job> {
        let input = work.path().join(format!("{name}.txt"));
        write(&input, TINY_TEXT.repeat(tasks as usize))?;
        let truth = Truth::of(BenchmarkJob::Wordcount, &input, &session.interrupt)?;
        Ok(Job { input, truth })
    }

    fn command(
        &self,
        work: &WorkFolder,
        binary: &Path,
        resources: Resources,
    ) -> crate::process::CommandLine {
        let output = work.path().join("run").join("out");
        let command = BenchmarkJob::Wordcount.command(binary, &self.input, &output, resources);
        command.flag("--split-size", TINY_TEXT.len().to_string())
    }

    /// Runs once, checks the output and returns wall seconds.
    fn run(
        &self,
        work: &WorkFolder,
        binary: &Path,
        resources: Resources,
        session: &Session,
    ) -> Result<f64> {
        let folder = work.fresh("run")?;
        let usage = run(
            &self.command(work, binary, resources),
            &folder,
            Sampling::Off,
            &session.interrupt,
        )?;
        self.truth.verify(&folder.join("out"), &session.interrupt)?;
        Ok(usage.wall_seconds)
    }
}

impl Report for StartReport {
    fn table(&self) -> String {
        let shown = |value: Option<f64>| value.map_or_else(dash, seconds);
        let range =
            |low: Option<f64>, high: Option<f64>| format!("{} .. {}", shown(low), shown(high));
        let tiny = self.tiny.as_ref();
        let rows = vec![
            vec![
                "tiny job, start to exit".to_owned(),
                self.tiny_seconds.len().to_string(),
                shown(tiny.map(|summary| summary.median)),
                range(
                    tiny.map(|summary| summary.min),
                    tiny.map(|summary| summary.max),
                ),
                shown(self.tiny_p99_seconds),
            ],
            vec![
                format!("one more map task, of {}", self.more_tasks),
                self.pairs_seconds.len().to_string(),
                shown(self.task_seconds),
                range(
                    self.task_interval.map(|at| at.low),
                    self.task_interval.map(|at| at.high),
                ),
                "-".to_owned(),
            ],
        ];
        format!(
            "{}\n{} slots, {} task memory\n\n{}\n",
            self.machine.line(),
            self.resources.slots,
            self.resources.task_memory,
            table(&["what"], &["runs", "median", "range", "p99"], rows),
        )
    }
}
