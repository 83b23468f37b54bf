//! What was measured: a row for each run, and one for each job of each run.
//!
//! Owns their form in `raw.jsonl`, to which they are written as runs end, and that both this and the packed
//! file are read: they are all that verdicts and plots are made of, so that what is judged again from a
//! report is judged from the same rows. Does not own how runs are made.

mod packed;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use napreduce_engine::listed;
use serde::{Deserialize, Serialize};

pub(super) use self::packed::PACKED;

/// The rows of runs that are being made, or were when somebody ended them.
pub(super) const RAW: &str = "raw.jsonl";

/// Which run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey {
    pub paper: String,
    pub campaign: String,
    pub variant: String,
    pub block: u32,
    #[serde(default, skip_serializing_if = "Executor::is_simulated")]
    pub executor: Executor,
}

listed! {
    /// What made a run.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Executor {
        /// The simulator, at the paper's scale.
        #[default]
        Simulated = "simulated",
        /// The simulator, at the scale of the campaign's recipe: what a cluster would show.
        Rehearsed = "rehearsed",
        /// A cluster of this machine, at the scale of the campaign's recipe.
        Live = "live",
    }
}

impl Executor {
    pub(super) fn is_simulated(&self) -> bool {
        *self == Executor::Simulated
    }

    /// What is said behind the name of a figure, where it is not the paper's scale.
    pub(super) fn suffix(self, before: &str) -> String {
        if self.is_simulated() { String::new() } else { format!("{before}{}", self.in_words()) }
    }
}

/// A run as a whole. Times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    #[serde(flatten)]
    pub key: RunKey,
    pub seed: u64,
    /// xxh3 of the workload and the configuration, in hexadecimal.
    pub configuration: String,
    /// From the first submission to the last end.
    pub makespan: f64,
    /// Jobs that were not done when they should have been, and those that were.
    pub missed: u64,
    pub met: u64,
    /// Jobs that failed, or had not ended.
    pub unfinished: u64,
    pub events: u64,
    /// Bytes of suspended attempts that were paged out for others.
    pub paged_out: u64,
    /// Of maps, at machines that hold their input; 1 where that makes no difference.
    pub local_share: f64,
    /// Of a live run: events, paged bytes and local maps are not measured then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveRow>,
}

/// How a live run was made. Its times are told at the paper's scale: multiplied by that of times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveRow {
    pub time_scale: f64,
    pub task_scale: f64,
    pub workers: u32,
    /// How late the latest submission was, in seconds at the live scale.
    pub late: f64,
    /// Whether that was soon enough: if not, nothing is judged by it.
    pub counts: bool,
    /// Whether every output was that of the same job undisturbed.
    pub identical: bool,
    /// The load average of the machine as it ended.
    pub load: Option<f64>,
}

/// A job of a run. Times in seconds since the run began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    #[serde(flatten)]
    pub key: RunKey,
    pub job: String,
    pub class: String,
    pub submitted: f64,
    /// When an attempt of it first worked.
    pub started: f64,
    pub ended: f64,
    /// How long it would have taken alone.
    pub alone: f64,
    /// When it should have been done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<f64>,
    /// Of its reduces, the mean time without a slot after its last map; none without reduces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce_wait: Option<f64>,
    /// Of the slot time of its reduces, what they waited for maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<f64>,
    pub preemptions: u64,
    /// Slot seconds of work that were lost.
    pub wasted: f64,
    /// Of a live run: its sojourn in the simulator at the live scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<f64>,
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "kebab-case")]
enum Line {
    Run(RunRow),
    Job(JobRow),
}

/// A run with its jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRun {
    pub run: RunRow,
    /// By name.
    pub jobs: Vec<JobRow>,
}

/// All runs of a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs(BTreeMap<RunKey, MeasuredRun>);

/// The rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    #[error("cannot read or write {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}, line {line}: {what}")]
    Malformed { path: PathBuf, line: usize, what: String },
}

impl Runs {
    pub fn add(&mut self, run: MeasuredRun) {
        self.0.insert(run.run.key.clone(), run);
    }

    pub(super) fn extend(&mut self, other: Runs) {
        self.0.extend(other.0);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &MeasuredRun> {
        self.0.values()
    }

    pub(super) fn get(&self, key: &RunKey) -> Option<&MeasuredRun> {
        self.0.get(key)
    }

    /// The blocks of a campaign of which there is any run of an executor, ascending.
    pub(super) fn blocks(&self, paper: &str, campaign: &str, executor: Executor) -> Vec<u32> {
        let of_it = self
            .0
            .keys()
            .filter(|key| key.paper == paper && key.campaign == campaign && key.executor == executor);
        let mut blocks: Vec<u32> = of_it.map(|key| key.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    /// All that a report has: what was packed, and what was written after that, which `raw` reads.
    ///
    /// # Errors
    /// When it has neither, or one of them cannot be read.
    pub(super) fn open(folder: &Path, raw: fn(&Path) -> Result<Runs, RunsError>) -> Result<Runs, RunsError> {
        let (path, packed) = (folder.join(RAW), folder.join(PACKED));
        if !packed.exists() {
            return raw(&path);
        }
        let mut runs = packed::read(&packed)?;
        if path.exists() {
            runs.extend(raw(&path)?);
        }
        Ok(runs)
    }

    /// Packs the rows of a report into one small file, which takes the place of those that were written as
    /// runs ended.
    ///
    /// # Errors
    /// When it cannot be written; the rows are where they were then.
    pub(super) fn pack(&self, folder: &Path) -> Result<(), RunsError> {
        let (raw, path) = (folder.join(RAW), folder.join(PACKED));
        packed::write(self, &path).map_err(|source| RunsError::Io { path, source })?;
        std::fs::remove_file(&raw).map_err(|source| RunsError::Io { path: raw, source })
    }

    /// As `read`, for whoever adds rows to the file: a last line that was cut short is cut off.
    ///
    /// # Errors
    /// As `read`, and when the file cannot be cut.
    pub(super) fn read_whole(path: &Path) -> Result<Runs, RunsError> {
        let runs = Runs::read(path)?;
        let cut = || -> io::Result<()> {
            let bytes = std::fs::read(path)?;
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            match whole == bytes.len() {
                true => Ok(()),
                false => File::options().write(true).open(path)?.set_len(whole as u64),
            }
        };
        cut().map_err(|source| RunsError::Io { path: path.to_owned(), source })?;
        Ok(runs)
    }

    /// What a file of rows has.
    ///
    /// # Errors
    /// When it cannot be read, or a line is no row. A last line that was cut short is passed over
    /// with its run.
    pub fn read(path: &Path) -> Result<Runs, RunsError> {
        let unreadable = |source| RunsError::Io { path: path.to_owned(), source };
        let file = BufReader::new(File::open(path).map_err(unreadable)?);
        let lines: Vec<String> = file.lines().collect::<Result<_, _>>().map_err(unreadable)?;
        let (mut runs, mut jobs) = (Runs::default(), BTreeMap::<RunKey, Vec<JobRow>>::new());
        for (number, line) in lines.iter().enumerate() {
            match serde_json::from_str(line) {
                // A run's own row is the last of it, so that one that was cut short is none.
                Ok(Line::Run(run)) => {
                    let jobs = jobs.remove(&run.key).unwrap_or_default();
                    runs.add(MeasuredRun { run, jobs });
                }
                Ok(Line::Job(job)) => jobs.entry(job.key.clone()).or_default().push(job),
                Err(_) if number + 1 == lines.len() => {}
                Err(error) => {
                    let (path, line) = (path.to_owned(), number + 1);
                    return Err(RunsError::Malformed { path, line, what: error.to_string() });
                }
            }
        }
        Ok(runs)
    }
}

impl MeasuredRun {
    /// Writes its rows, its own last.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, file: &mut impl Write) -> io::Result<()> {
        let mut text = Vec::new();
        for job in &self.jobs {
            serde_json::to_writer(&mut text, &Line::Job(job.clone()))?;
            text.push(b'\n');
        }
        serde_json::to_writer(&mut text, &Line::Run(self.run.clone()))?;
        text.push(b'\n');
        file.write_all(&text)
    }
}
