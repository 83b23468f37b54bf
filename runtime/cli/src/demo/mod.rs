//! `nap demo`: a small cluster, on which a production job takes a slot from a research job. The figures are
//! those of the cluster, and both outputs are compared with undisturbed runs.

mod interrupt;
mod job;
mod processes;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use napreduce_cluster::{ClusterClient, ClusterDirectory, ClusterPlace, Patience};
use napreduce_engine::{JobId, TaskKind};
use napreduce_protocol::printing::print;
use napreduce_protocol::requests::GetJob;
use napreduce_protocol::{
    JobDetail, JobPhase, PreemptionEnd, PreemptionSummary, ResumeSummary, whole_millis,
};

pub use job::{NAME as JOB_COMMAND, run as run_job};

use crate::format::span;
use crate::screen::Screen;
use interrupt::Interrupt;
use job::{Count, Hold};
use processes::{Up, run_to_end};

/// Interval between looks at a job.
const LOOK: Duration = Duration::from_millis(20);
/// Limit on any answer of the coordinator, which runs on this machine.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Share of the research job's work, in per cent, after which the production job is submitted.
const DONE_FIRST: u32 = 20;
/// Pause at each word.
const PAUSE: Duration = Duration::from_millis(100);
/// The word, one of 140, at which the research job waits until a slot has been taken from it. Usually that has happened by
/// then.
const HOLD_AT: &str = "research-100";

const CONFIGURATION: &str = "\
[coordinator]
scheduler = \"natjam\"
queues = [\"production\", \"research\"]
speculation = false

[scheduler.natjam]
primitive = \"suspend\"
preemptor-interval = \"200ms\"

[up]
workers = 2
map-slots = 1
reduce-slots = 1

[web]
bind = \"127.0.0.1:0\"
";

/// Show a preemption on a small cluster, in about 15 seconds
///
/// Starts a cluster in a temporary directory, submits a slow research job and then a production job that needs
/// its slot, and prints which task is suspended, when and why. Compares both outputs with undisturbed runs. Ends
/// the cluster and removes all files at the end, and on Ctrl-C.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap demo
  nap demo --no-wait          end without waiting for Enter
  nap demo --keep             keep the files: inputs, outputs, cluster directory")]
pub struct Arguments {
    /// Do not wait for Enter before the cluster ends; the default without a terminal
    #[arg(long)]
    no_wait: bool,

    /// Keep the temporary directory and print its path
    #[arg(long)]
    keep: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let interrupt = Interrupt::install()?;
    let folder = tempfile::Builder::new()
        .prefix("nap-demo-")
        .tempdir()
        .context("cannot create a temporary directory; TMPDIR names another place")?;
    let waits = !arguments.no_wait && io::stdin().is_terminal() && io::stdout().is_terminal();
    let shown = show(folder.path(), waits, &interrupt).or_else(|error| interrupt.explain(error));
    if arguments.keep {
        let kept = folder.keep();
        print(format_args!(
            "The cluster has ended. Its files are in {0}; look at the jobs with:\n   nap history serve {0}/cluster\n",
            kept.display()
        ));
        return shown;
    }
    let place = folder.path().to_owned();
    let removed = folder
        .close()
        .with_context(|| format!("cannot remove {}", place.display()));
    if removed.is_ok() {
        print("The cluster has ended and its files are removed.\n");
    }
    shown.and(removed)
}

/// Runs the demonstration in an empty directory. No process of it is left when this returns.
fn show(folder: &Path, waits: bool, interrupt: &Interrupt) -> Result<()> {
    print(
        "A production job takes a slot from a research job, which loses no work.\nCtrl-C ends the demo at any time.\n",
    );
    let research = Count::write(folder, "research", 2, 140)?;
    let production = Count::write(folder, "production", 1, 24)?;

    step(
        1,
        "Start a cluster: a coordinator, and two workers with one reduce slot each.",
    );
    let cluster = folder.join("cluster");
    let up = start(&cluster, interrupt)?;
    figures(format_args!(
        "ready after {}; its page, for one sign-in:",
        span(whole_millis(up.ready_after))
    ));
    figures(&up.page);
    let patience = Patience {
        first: ANSWER_MAX,
        later: ANSWER_MAX,
        absent: ANSWER_MAX,
        answer: ANSWER_MAX,
        silence: ANSWER_MAX,
        tell: false,
    };
    let place = ClusterPlace::Directory(ClusterDirectory::resolve(Some(cluster.clone()))?);
    let mut watch = Watch {
        client: ClusterClient::connect(place, patience)?,
        interrupt,
    };
    let taken_once = folder.join("taken");
    let hold = Hold {
        file: &taken_once,
        at: HOLD_AT,
    };

    step(
        2,
        "Submit a research job: a slow word count, whose two reduces take both slots.",
    );
    let low = submit(&research, Some(&hold), &cluster, interrupt)?;
    let begun = watch.until(low, "both its reduces ran", |job| {
        let reduce = job.summary.progress.reduce;
        (reduce.running == 2 && reduce.percent() >= DONE_FIRST).then(|| job.clone())
    })?;
    let of_reduces = begun
        .attempts
        .iter()
        .filter(|one| one.attempt.task.kind == TaskKind::Reduce);
    let running: Vec<String> = of_reduces
        .map(|one| format!("{} runs on {}", one.attempt, one.worker_name))
        .collect();
    figures(format_args!(
        "{}: {}%",
        running.join(", "),
        begun.summary.progress.reduce.percent()
    ));

    step(
        3,
        "Submit a production job. It needs a slot for its reduce, and none is free.",
    );
    let high = submit(&production, None, &cluster, interrupt)?;
    let nap = watch.until(low, "a task of it was suspended", |job| {
        let is_nap = |one: &&PreemptionSummary| one.end == Some(PreemptionEnd::Suspended);
        job.preemptions.iter().find(is_nap).cloned()
    })?;
    fs::write(&taken_once, "").with_context(|| format!("cannot write {}", taken_once.display()))?;
    figures(format_args!(
        "at {} the scheduler {} preempts {}:\n   {}",
        Screen::of_stdout(false).moment(nap.requested_micros / 1_000),
        nap.by,
        nap.attempt,
        nap.reason
    ));

    step(
        4,
        "The task naps: its process is stopped between two words and keeps its memory.",
    );
    let taken = nap
        .freed_micros
        .unwrap_or(nap.requested_micros)
        .saturating_sub(nap.requested_micros);
    figures(format_args!(
        "{} is suspended after {} of work; its slot was free {} after the request",
        nap.attempt,
        span(nap.active_millis),
        short(taken)
    ));

    step(5, "The production job uses the slot and finishes.");
    let done = watch.until_success(high)?;
    let user = nap
        .used_by
        .map_or_else(|| "its reduce".to_owned(), |attempt| attempt.to_string());
    figures(format_args!(
        "{high} succeeded {} after its submission; {user} used the slot",
        took(&done)
    ));

    step(
        6,
        "The suspended task continues where it stopped, in the same process.",
    );
    let resumed = watch.until(low, "the suspended task continued", |job| {
        let is_back =
            |one: &&ResumeSummary| one.attempt == nap.attempt && one.resumed_micros.is_some();
        job.resumes.iter().find(is_back).cloned()
    })?;
    let back = resumed
        .resumed_micros
        .unwrap_or(resumed.ordered_micros)
        .saturating_sub(resumed.ordered_micros);
    figures(format_args!(
        "{} continues {} after the order, {} after it was suspended",
        resumed.attempt,
        short(back),
        span(resumed.suspended_millis)
    ));

    step(7, "The research job finishes.");
    let done = watch.until_success(low)?;
    let lost: u64 = done
        .preemptions
        .iter()
        .map(|one| one.work_lost_millis)
        .sum();
    let attempts = done
        .attempts
        .iter()
        .filter(|one| one.attempt.task.kind == TaskKind::Reduce)
        .count();
    figures(format_args!(
        "{low} succeeded {} after its submission, with {attempts} attempts of 2 reduces; lost work: {}",
        took(&done),
        span(lost)
    ));

    step(
        8,
        "Run both jobs again, undisturbed, without a cluster, and compare the outputs.",
    );
    for (job, count) in [(low, &research), (high, &production)] {
        compare(job, count, interrupt)?;
    }
    if waits {
        print(format_args!(
            "\nThe page is open until you press Enter: {}\n",
            up.page
        ));
        interrupt.wait_for_enter()?;
    }
    print("\n");
    up.end()
}

fn start(directory: &Path, interrupt: &Interrupt) -> Result<Up> {
    let directory_of_cluster = ClusterDirectory::resolve(Some(directory.to_owned()))?;
    directory_of_cluster.create()?;
    let file = directory.join("napreduce.toml");
    fs::write(&file, CONFIGURATION).with_context(|| format!("cannot write {}", file.display()))?;
    Up::start(directory, interrupt)
}

/// Submits a job by a process of its own, as a job program does, and returns its id.
fn submit(
    count: &Count,
    hold: Option<&Hold<'_>>,
    cluster: &Path,
    interrupt: &Interrupt,
) -> Result<JobId> {
    let mut line = count.line(PAUSE, hold, &count.output);
    line.extend(["--detach".into(), "--queue".into(), count.name.into()]);
    line.extend(["--cluster".into(), cluster.into()]);
    let printed = run_to_end(&line, interrupt)?;
    printed.trim().parse().map_err(|_| {
        anyhow!(
            "the submission of the {} job printed {printed:?}",
            count.name
        )
    })
}

/// Runs a job without a cluster and compares the outputs.
fn compare(job: JobId, count: &Count, interrupt: &Interrupt) -> Result<()> {
    let undisturbed = count.output.with_extension("undisturbed");
    let line = count.line(Duration::ZERO, None, &undisturbed);
    run_to_end(&line, interrupt)?;
    let expected = parts(&undisturbed)?;
    let parts = parts(&count.output)?;
    if parts != expected {
        bail!("the output of {job} differs from that of an undisturbed run; please report it");
    }
    let bytes: usize = parts.iter().map(|(_, content)| content.len()).sum();
    let files = if parts.len() == 1 {
        "part file"
    } else {
        "part files"
    };
    figures(format_args!(
        "{job}: {} {files}, {bytes} bytes, equal",
        parts.len()
    ));
    Ok(())
}

/// Returns the names and contents of the part files of an output.
fn parts(output: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let cannot = || format!("cannot read {}", output.display());
    let mut parts = Vec::new();
    for entry in fs::read_dir(output).with_context(cannot)? {
        let name = PathBuf::from(entry.with_context(cannot)?.file_name());
        if name.as_os_str().as_encoded_bytes().starts_with(b"part-") {
            let content = fs::read(output.join(&name)).with_context(cannot)?;
            parts.push((name, content));
        }
    }
    parts.sort();
    Ok(parts)
}

/// Follows jobs, until they end or a signal arrives.
struct Watch<'a> {
    client: ClusterClient,
    interrupt: &'a Interrupt,
}

impl Watch<'_> {
    /// Returns what `find` finds in the details of a job. Fails if the job ends `before` that.
    fn until<T>(
        &mut self,
        job: JobId,
        before: &str,
        mut find: impl FnMut(&JobDetail) -> Option<T>,
    ) -> Result<T> {
        loop {
            self.interrupt.check()?;
            let detail = self.client.ask(GetJob { job })?;
            if let Some(found) = find(&detail) {
                return Ok(found);
            }
            let phase = detail.summary.phase;
            if phase.has_ended() {
                let reason = detail
                    .summary
                    .reason
                    .map(|reason| format!(": {reason}"))
                    .unwrap_or_default();
                bail!("{job} {} before {before}{reason}", phase.in_words());
            }
            thread::sleep(LOOK);
        }
    }

    fn until_success(&mut self, job: JobId) -> Result<JobDetail> {
        self.until(job, "it succeeded", |job| {
            (job.summary.phase == JobPhase::Succeeded).then(|| job.clone())
        })
    }
}

/// Prints what happens next.
fn step(number: u32, what: &str) {
    print(format_args!("\n{number}. {what}\n"));
}

/// Prints what the cluster has reported.
fn figures(line: impl std::fmt::Display) {
    print(format_args!("   {line}\n"));
}

/// Formats the time from the submission of a job to its end.
fn took(job: &JobDetail) -> String {
    let ended = job
        .summary
        .ended_millis
        .unwrap_or(job.summary.submitted_millis);
    span(ended.saturating_sub(job.summary.submitted_millis))
}

/// Formats a time that is usually a few milliseconds.
fn short(micros: u64) -> String {
    if micros < 1_000_000 {
        format!("{:.1} ms", micros as f64 / 1e3)
    } else {
        span(micros / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Configuration;

    #[test]
    fn configuration_of_the_cluster_is_valid() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("napreduce.toml");
        fs::write(&file, CONFIGURATION).expect("written");
        let read = Configuration::read(&file).expect("it is valid");
        assert_eq!((read.up.workers, read.up.reduce_slots), (Some(2), Some(1)));
    }

    #[test]
    fn parts_of_an_output_are_its_part_files() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["part-r-00001", "part-r-00000", "_SUCCESS"] {
            fs::write(folder.path().join(name), name).expect("written");
        }
        let found = parts(folder.path()).expect("they can be read");
        let expected = ["part-r-00000", "part-r-00001"].map(|name| (name.into(), name.into()));
        assert_eq!(found, expected);
        assert!(parts(&folder.path().join("none")).is_err());
    }

    #[test]
    fn short_times_are_in_milliseconds() {
        assert_eq!(
            (short(1_450).as_str(), short(2_310_000).as_str()),
            ("1.4 ms", "2.3 s")
        );
    }
}
