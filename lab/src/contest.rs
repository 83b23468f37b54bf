//! Contests: programs do the same work on the same input in turn, round after round, each measured as a whole process
//! in an empty folder. Outputs are checked outside of the measured time. A program that fails or is wrong drops out. A
//! ratio is a program's time over ours in the same round: 2.0 means that it takes twice as long.

use std::path::{Path, PathBuf};

use anyhow::Result;
use napreduce_protocol::ByteSize;
use serde::Serialize;

use crate::input;
use crate::machine::load_average;
use crate::outputs::peak_task_bytes;
use crate::process::{CommandLine, Interrupt, Sampling, Usage, run};
use crate::report::{dash, seconds};
use crate::session::Session;
use crate::statistics::{Interval, Summary, median, median_interval, ratio_text};
use crate::workspace::{WorkFolder, remove};

/// One way to do the work of a contest.
pub trait Program {
    /// The command of a run in the empty `folder`. It writes its output to `folder/out`.
    fn command(&self, folder: &Path) -> Result<CommandLine>;

    /// Fails when the output is wrong.
    fn check(&self, output: &Path, interrupt: &Interrupt) -> Result<()>;
}

/// A program of a contest, with its runs so far.
pub struct Contender<'a> {
    pub report: ContenderReport,
    program: Box<dyn Program + 'a>,
}

impl<'a> Contender<'a> {
    pub fn new(name: &str, version: String, program: impl Program + 'a) -> Contender<'a> {
        let report = ContenderReport {
            name: name.to_owned(),
            version,
            ..ContenderReport::default()
        };
        Contender {
            report,
            program: Box::new(program),
        }
    }

    pub fn ours(program: impl Program + 'a) -> Contender<'a> {
        Contender::new("napreduce", our_version(), program)
    }
}

pub fn our_version() -> String {
    format!("napreduce {}", env!("CARGO_PKG_VERSION"))
}

pub struct Contest<'a> {
    /// The prefix of every line about it, such as `terasort 1GiB`.
    pub title: String,
    /// The prefix of the folder names of its runs.
    pub job: &'static str,
    /// A file or a folder, which is read into the page cache before each run.
    pub input: PathBuf,
    /// Ours first.
    pub contenders: Vec<Contender<'a>>,
}

/// Settings shared by all contests of an experiment.
pub struct Arena<'a> {
    pub work: &'a WorkFolder,
    pub session: &'a Session,
    /// Measured rounds.
    pub rounds: u32,
    pub sampling: Sampling,
}

impl Arena<'_> {
    /// One run of every contender that has not dropped out. Round 0 warms up.
    pub fn round(&self, contest: &mut Contest<'_>, round: u32) -> Result<()> {
        for (place, contender) in contest.contenders.iter_mut().enumerate() {
            if contender.report.failure.is_some() {
                continue;
            }
            // A path of Hadoop allows few characters.
            let plain = |letter: char| {
                if letter.is_ascii_alphanumeric() {
                    letter
                } else {
                    '-'
                }
            };
            let name: String = contender.report.name.chars().map(plain).collect();
            let folder = self.work.fresh(&format!("run-{}-{name}", contest.job))?;
            input::warm(&contest.input, &self.session.interrupt)?;
            self.work.settle()?;
            let outcome = self.run(contender, &folder, place == 0);
            // An interrupt ends the experiment; the program did not fail.
            self.session.interrupt.check()?;
            let line = match outcome {
                Ok(timing) => {
                    let line = format!("{:.3} s, output right", timing.usage.wall_seconds);
                    if round == 0 {
                        contender.report.warm_up = Some(timing);
                    } else {
                        contender.report.runs.push(timing);
                    }
                    line
                }
                Err(error) => {
                    contender.report.failure = Some(error.to_string());
                    format!("out: {error}")
                }
            };
            let stage = if round == 0 {
                "warm-up".to_owned()
            } else {
                format!("{round}/{}", self.rounds)
            };
            self.session.log(format!(
                "{} {stage} {}: {line}",
                contest.title, contender.report.name
            ));
            if !self.session.work.keep {
                remove(&folder)?;
            }
        }
        Ok(())
    }

    fn run(&self, contender: &mut Contender<'_>, folder: &Path, is_ours: bool) -> Result<Timing> {
        let command = contender.program.command(folder)?;
        contender.report.command = command.typed();
        let load_before = load_average();
        let usage = run(&command, folder, self.sampling, &self.session.interrupt)?;
        let output = folder.join("out");
        contender.program.check(&output, &self.session.interrupt)?;
        let counts = is_ours && self.sampling == Sampling::Tree;
        let task_peak_bytes = if counts {
            peak_task_bytes(&output)?
        } else {
            None
        };
        Ok(Timing {
            usage,
            task_peak_bytes,
            load_before,
        })
    }
}

/// One run that ended well with the right output.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    #[serde(flatten)]
    pub usage: Usage,
    /// The largest anonymous memory of any task by the job's own counters; ours only.
    pub task_peak_bytes: Option<u64>,
    /// The machine's load average just before the start.
    pub load_before: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ContenderReport {
    pub name: String,
    pub version: String,
    /// The command of its last run.
    pub command: String,
    /// Why it dropped out; the statistics are absent then.
    pub failure: Option<String>,
    /// Wall time of each measured run.
    pub seconds: Vec<f64>,
    pub wall_seconds: Option<Summary>,
    /// Its time over ours, in each round.
    pub ratios: Vec<f64>,
    /// The median of the ratios.
    pub ratio: Option<f64>,
    /// Bootstrap interval (95 %) of that median.
    pub ratio_interval: Option<Interval>,
    /// Median processor seconds, user and system together.
    pub processor_seconds: Option<f64>,
    /// Largest anonymous memory of all its processes together, over all runs.
    pub tree_peak_bytes: Option<ByteSize>,
    /// Largest anonymous memory of any one task; ours only.
    pub task_peak_bytes: Option<ByteSize>,
    /// The run before the measured ones.
    pub warm_up: Option<Timing>,
    pub runs: Vec<Timing>,
}

impl Contest<'_> {
    pub fn reports(self) -> Vec<ContenderReport> {
        let ours = self
            .contenders
            .first()
            .filter(|ours| ours.report.failure.is_none());
        let ours = ours.map_or_else(Vec::new, |ours| wall_times(&ours.report.runs));
        let reports = self.contenders.into_iter().enumerate();
        reports
            .map(|(place, contender)| contender.report.concluded(place == 0, &ours))
            .collect()
    }
}

fn wall_times(runs: &[Timing]) -> Vec<f64> {
    runs.iter().map(|run| run.usage.wall_seconds).collect()
}

impl ContenderReport {
    fn concluded(self, is_ours: bool, ours: &[f64]) -> ContenderReport {
        let whole = self.failure.is_none();
        let seconds = wall_times(&self.runs);
        let ratios: Vec<f64> = seconds
            .iter()
            .zip(ours)
            .map(|(theirs, ours)| theirs / ours)
            .collect();
        let processor: Vec<f64> = self
            .runs
            .iter()
            .map(|run| run.usage.user_seconds + run.usage.system_seconds)
            .collect();
        let all = || self.warm_up.iter().chain(&self.runs);
        let tree = all()
            .filter_map(|run| Some(run.usage.memory?.tree_bytes))
            .max();
        // The counter is exact. Samples stand in for a job that does not count.
        let counted = all().filter_map(|run| run.task_peak_bytes).max();
        let sampled = all()
            .filter_map(|run| Some(run.usage.memory?.descendant_bytes))
            .max();
        let task = if is_ours { counted.max(sampled) } else { None };
        ContenderReport {
            wall_seconds: Summary::of(&seconds).filter(|_| whole),
            ratio: median(&ratios).filter(|_| whole),
            ratio_interval: median_interval(&ratios).filter(|_| whole),
            processor_seconds: median(&processor).filter(|_| whole),
            tree_peak_bytes: tree.map(ByteSize::new),
            task_peak_bytes: task.map(ByteSize::new),
            seconds,
            ratios,
            ..self
        }
    }

    /// The cells of a table: median, range, ratio. `None` when it dropped out.
    pub fn cells(&self) -> Option<[String; 3]> {
        let wall = self.wall_seconds.as_ref()?;
        Some([
            seconds(wall.median),
            format!("{} .. {}", seconds(wall.min), seconds(wall.max)),
            self.ratio
                .map_or_else(dash, |ratio| ratio_text(ratio, self.ratio_interval, 2)),
        ])
    }
}

/// The version of each contender once, in order.
pub fn versions<'r>(contenders: impl Iterator<Item = &'r ContenderReport>) -> String {
    let mut versions: Vec<&str> = Vec::new();
    for contender in contenders {
        if !versions.contains(&contender.version.as_str()) {
            versions.push(&contender.version);
        }
    }
    versions.join(", ")
}

/// A line for each contender that dropped out of the contest of a title.
pub fn failures(title: impl std::fmt::Display, contenders: &[ContenderReport]) -> Vec<String> {
    let failed = |contender: &ContenderReport| {
        Some(format!(
            "failed: {title} {}: {}",
            contender.name,
            contender.failure.as_ref()?
        ))
    };
    contenders.iter().filter_map(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(seconds: &[f64]) -> ContenderReport {
        let run = |wall_seconds: &f64| Timing {
            usage: Usage {
                wall_seconds: *wall_seconds,
                user_seconds: 1.0,
                system_seconds: 0.5,
                memory: None,
            },
            task_peak_bytes: None,
            load_before: None,
        };
        ContenderReport {
            runs: seconds.iter().map(run).collect(),
            ..ContenderReport::default()
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let peer = report(&[2.0, 30.0, 3.0]).concluded(false, &[1.0, 10.0, 2.0]);
        assert_eq!((peer.ratios, peer.ratio), (vec![2.0, 3.0, 1.5], Some(2.0)));
        assert_eq!(
            (peer.seconds, peer.processor_seconds),
            (vec![2.0, 30.0, 3.0], Some(1.5))
        );
    }

    #[test]
    fn contender_that_dropped_out_has_no_statistics() {
        let out = ContenderReport {
            failure: Some("gone".to_owned()),
            ..report(&[2.0])
        };
        let out = out.concluded(false, &[1.0, 1.0]);
        assert_eq!(
            (out.ratio, out.wall_seconds.is_none(), out.cells()),
            (None, true, None)
        );
        assert_eq!(failures("wordcount", &[out]), ["failed: wordcount : gone"]);
    }
}
