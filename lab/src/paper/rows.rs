//! The measured runs: a row for each run, with the columns of its jobs. Verdicts and plots depend only on them, so a
//! later judgement starts from the same rows. A run is one line of JSON, written to `raw.jsonl` when it ends; at
//! the end all lines are compressed into `runs.jsonl.xz`, which `xz -dc` and `jq` read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Result, anyhow};
use lzma_rust2::{XzOptions, XzReader, XzWriter};
use napreduce_engine::listed;
use serde::{Deserialize, Serialize};

use crate::error::cannot;

/// The lines of runs while they are made, and after an interrupted experiment.
pub(super) const RAW: &str = "raw.jsonl";
/// All lines of a report.
pub(super) const PACKED: &str = "runs.jsonl.xz";
/// The default of the xz programs.
const PRESET: u32 = 6;
/// A longer line is not a run: a damaged file must not take all memory.
const LINE_BYTES_MAX: u64 = 1 << 30;

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
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Executor {
        /// The simulator, at the paper's scale.
        #[default]
        Simulated = "simulated",
        /// The simulator, at the scale of the campaign's live recipe.
        Rehearsed = "rehearsed",
        /// A cluster of this machine, at the scale of the campaign's recipe.
        Live = "live",
    }
}

impl Executor {
    pub(super) fn is_simulated(&self) -> bool {
        *self == Executor::Simulated
    }

    /// Suffix of the name of a figure at another scale than the paper's.
    pub(super) fn suffix(self, before: &str) -> String {
        if self.is_simulated() {
            String::new()
        } else {
            format!("{before}{}", self.in_words())
        }
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
    /// Jobs that missed their deadline; jobs that met it.
    pub missed: u64,
    pub met: u64,
    /// Jobs that failed or did not end.
    pub unfinished: u64,
    pub events: u64,
    /// Bytes of suspended attempts that were paged out.
    pub paged_out: u64,
    /// The share of maps on machines with their input; 1 without preferences.
    pub local_share: f64,
    /// For a live run, which has no events, paged bytes and local maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveRow>,
}

/// The conditions of a live run, whose times are multiplied by the time scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveRow {
    pub time_scale: f64,
    pub task_scale: f64,
    pub workers: u32,
    /// Delay of the latest submission, in seconds at the live scale.
    pub late: f64,
    /// Whether every job was submitted in order and in time; other runs are not judged.
    pub counts: bool,
    /// Whether every output equals that of the undisturbed job.
    pub identical: bool,
    /// The load average at the end.
    pub load: Option<f64>,
}

/// A job of a run. Times in seconds since the run began.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    pub job: String,
    pub class: String,
    pub submitted: f64,
    /// When its first attempt started to work.
    pub started: f64,
    pub ended: f64,
    /// Its time alone.
    pub alone: f64,
    pub deadline: Option<f64>,
    /// Mean time of its reduces without a slot after its last map; `None` without reduces.
    pub reduce_wait: Option<f64>,
    /// The share of its reduces' slot time before its last map.
    pub idle_share: Option<f64>,
    pub preemptions: u64,
    /// Slot seconds of lost work.
    pub wasted: f64,
    /// For a live run: its sojourn in the simulated plan.
    pub simulated: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRun {
    pub run: RunRow,
    /// By name.
    pub jobs: Vec<JobRow>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs(BTreeMap<RunKey, MeasuredRun>);

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
        let of_it = self.0.keys().filter(|key| {
            key.paper == paper && key.campaign == campaign && key.executor == executor
        });
        let mut blocks: Vec<u32> = of_it.map(|key| key.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    /// All runs of a report: compressed ones, and later ones.
    pub(super) fn read(folder: &Path) -> Result<Runs> {
        let raw = folder.join(RAW);
        let packed = folder.join(PACKED);
        let mut runs = Runs::default();
        if packed.exists() {
            let file = BufReader::new(File::open(&packed).map_err(cannot("read", &packed))?);
            runs.read_lines(BufReader::new(XzReader::new(file, false)), &packed)?;
        }
        if raw.exists() || !packed.exists() {
            let file = File::open(&raw).map_err(cannot("read", &raw))?;
            runs.read_lines(BufReader::new(file), &raw)?;
        }
        Ok(runs)
    }

    /// Adds the runs of a file. An incomplete last line of a raw file is left out.
    fn read_lines(&mut self, mut lines: impl BufRead, path: &Path) -> Result<()> {
        let mut text = Vec::new();
        for line in 1.. {
            let malformed = |what: String| anyhow!("{}, line {line}: {what}", path.display());
            text.clear();
            let read = lines
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut text);
            read.map_err(|error| malformed(error.to_string()))?;
            let is_cut = path.ends_with(RAW) && !text.ends_with(b"\n");
            if text.is_empty() || is_cut {
                break;
            }
            let run =
                serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
            let run = MeasuredRun::of_line(run);
            self.add(run.ok_or_else(|| {
                malformed("its columns differ in length, or are not numbers".to_owned())
            })?);
        }
        Ok(())
    }

    /// Compresses the runs of a report into one file, which replaces the raw one.
    pub(super) fn pack(&self, folder: &Path) -> Result<()> {
        let raw = folder.join(RAW);
        let path = folder.join(PACKED);
        self.write_packed(&path).map_err(cannot("write", &path))?;
        if raw.exists() {
            fs::remove_file(&raw).map_err(cannot("remove", &raw))?;
        }
        Ok(())
    }

    /// Rename the file when it is complete.
    fn write_packed(&self, path: &Path) -> io::Result<()> {
        let mut ordered: Vec<&MeasuredRun> = self.iter().collect();
        // The variants of a block are similar and compress well next to each other.
        ordered.sort_by_key(|run| {
            let key = &run.run.key;
            (
                &key.paper,
                &key.campaign,
                key.executor,
                key.block,
                &key.variant,
            )
        });
        let unfinished = path.with_extension("unfinished");
        let written = || -> io::Result<()> {
            let file = BufWriter::new(File::create(&unfinished)?);
            let mut out = XzWriter::new(file, XzOptions::with_preset(PRESET))?;
            ordered.iter().try_for_each(|run| run.write(&mut out))?;
            let file = out
                .finish()?
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?;
            file.sync_data()?;
            fs::rename(&unfinished, path)
        };
        written().inspect_err(|_| {
            // An incomplete file is useless; it may also have filled the disk.
            let _ = fs::remove_file(&unfinished);
        })
    }
}

impl MeasuredRun {
    /// Whether a run has the same results as another, whatever the text of its configuration.
    pub fn has_equal_results(&self, other: &MeasuredRun) -> bool {
        let configuration = other.run.configuration.clone();
        let run = RunRow {
            configuration,
            ..self.run.clone()
        };
        run == other.run && self.jobs == other.jobs
    }

    pub fn write(&self, file: &mut impl Write) -> io::Result<()> {
        let line = RunLine {
            run: self.run.clone(),
            jobs: JobColumns::of(&self.jobs),
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        file.write_all(&text)
    }

    fn of_line(RunLine { run, jobs }: RunLine) -> Option<MeasuredRun> {
        Some(MeasuredRun {
            run,
            jobs: jobs.into_jobs()?,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct RunLine {
    #[serde(flatten)]
    run: RunRow,
    jobs: JobColumns,
}

/// The jobs of a run by columns. Numbers are one text with spaces in between, and `-` for none, which compresses well.
#[derive(Serialize, Deserialize)]
struct JobColumns {
    job: Vec<String>,
    class: Vec<String>,
    submitted: String,
    started: String,
    ended: String,
    alone: String,
    preemptions: Vec<u64>,
    wasted: String,
    /// Empty where no job has a value; so are the following.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    deadline: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reduce_wait: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    idle_share: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    simulated: String,
}

impl JobColumns {
    fn of(jobs: &[JobRow]) -> JobColumns {
        let numbers = |of: fn(&JobRow) -> f64| in_text(jobs.iter().map(|job| Some(of(job))));
        let optional = |of: fn(&JobRow) -> Option<f64>| {
            if jobs.iter().any(|job| of(job).is_some()) {
                in_text(jobs.iter().map(of))
            } else {
                String::new()
            }
        };
        JobColumns {
            job: jobs.iter().map(|job| job.job.clone()).collect(),
            class: jobs.iter().map(|job| job.class.clone()).collect(),
            submitted: numbers(|job| job.submitted),
            started: numbers(|job| job.started),
            ended: numbers(|job| job.ended),
            alone: numbers(|job| job.alone),
            preemptions: jobs.iter().map(|job| job.preemptions).collect(),
            wasted: numbers(|job| job.wasted),
            deadline: optional(|job| job.deadline),
            reduce_wait: optional(|job| job.reduce_wait),
            idle_share: optional(|job| job.idle_share),
            simulated: optional(|job| job.simulated),
        }
    }

    /// `None` when columns differ in length or have anything but numbers.
    fn into_jobs(self) -> Option<Vec<JobRow>> {
        let count = self.job.len();
        let numbers =
            |text: &str| -> Option<Vec<f64>> { of_text(text, count)?.into_iter().collect() };
        let optional = |text: &str| {
            if text.is_empty() {
                Some(vec![None; count])
            } else {
                of_text(text, count)
            }
        };
        let submitted = numbers(&self.submitted)?;
        let started = numbers(&self.started)?;
        let ended = numbers(&self.ended)?;
        let alone = numbers(&self.alone)?;
        let wasted = numbers(&self.wasted)?;
        let deadline = optional(&self.deadline)?;
        let reduce_wait = optional(&self.reduce_wait)?;
        let idle_share = optional(&self.idle_share)?;
        let simulated = optional(&self.simulated)?;
        if (self.class.len(), self.preemptions.len()) != (count, count) {
            return None;
        }
        let job = |(row, (job, class)): (usize, (String, String))| JobRow {
            job,
            class,
            submitted: submitted[row],
            started: started[row],
            ended: ended[row],
            alone: alone[row],
            deadline: deadline[row],
            reduce_wait: reduce_wait[row],
            idle_share: idle_share[row],
            preemptions: self.preemptions[row],
            wasted: wasted[row],
            simulated: simulated[row],
        };
        Some(
            self.job
                .into_iter()
                .zip(self.class)
                .enumerate()
                .map(job)
                .collect(),
        )
    }
}

fn in_text(values: impl Iterator<Item = Option<f64>>) -> String {
    let words = values.map(|value| value.map_or_else(|| "-".to_owned(), |value| value.to_string()));
    words.collect::<Vec<_>>().join(" ")
}

/// The values of a column, if there are `count`.
fn of_text(text: &str, count: usize) -> Option<Vec<Option<f64>>> {
    let value = |word: &str| match word {
        "-" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let values: Option<Vec<Option<f64>>> = text.split_ascii_whitespace().map(value).collect();
    values.filter(|values| values.len() == count)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn any_job()(job in ".{0,9}", class in "[a-c]", numbers: [u32; 5], deadline in option::of(0..9_u32),
            idle_share in option::of(0.0..1.0), preemptions: u64) -> JobRow {
            let seconds = |micros: u32| f64::from(micros) / 1e6;
            JobRow {
                job,
                class,
                submitted: seconds(numbers[0]),
                started: seconds(numbers[1]),
                ended: seconds(numbers[2]),
                alone: seconds(numbers[3]),
                deadline: deadline.map(f64::from),
                reduce_wait: idle_share.map(|share| share * 90.0),
                idle_share,
                preemptions,
                wasted: seconds(numbers[4]),
                simulated: None,
            }
        }
    }

    fn key(block: u32, variant: &str) -> RunKey {
        let paper = "natjam".to_owned();
        let campaign = "xl-s".to_owned();
        RunKey {
            paper,
            campaign,
            variant: variant.to_owned(),
            block,
            executor: Executor::Simulated,
        }
    }

    fn run(block: u32, variant: &str, jobs: Vec<JobRow>) -> MeasuredRun {
        let run = RunRow {
            key: key(block, variant),
            seed: 7,
            configuration: "80237d3ddc4fbf29".to_owned(),
            makespan: 90.25,
            missed: 0,
            met: 3,
            unfinished: 0,
            events: 9,
            paged_out: 0,
            local_share: 1.0,
            live: None,
        };
        MeasuredRun { run, jobs }
    }

    fn packed(runs: &Runs) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        runs.pack(folder.path()).expect("written");
        assert_eq!(
            fs::read_dir(folder.path()).expect("listed").count(),
            1,
            "no other file is left"
        );
        folder
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        #[test]
        fn runs_survive_packing(jobs in vec(vec(any_job(), 0..9), 0..9)) {
            let mut runs = Runs::default();
            for (number, jobs) in jobs.into_iter().enumerate() {
                runs.add(run(number as u32 / 2, ["one", "two"][number % 2], jobs));
            }
            prop_assert_eq!(Runs::read(packed(&runs).path()).expect("readable"), runs);
        }
    }

    #[test]
    fn damaged_file_is_named() {
        let mut runs = Runs::default();
        (0..40).for_each(|block| runs.add(run(block, "one", Vec::new())));
        let folder = packed(&runs);
        let path = folder.path().join(PACKED);
        let whole = fs::read(&path).expect("a file");
        for length in (0..whole.len()).step_by(7) {
            fs::write(&path, &whole[..length]).expect("cut");
            let error = Runs::read(folder.path())
                .expect_err("it is cut")
                .to_string();
            assert!(error.contains(PACKED), "{error}");
        }
        for place in (0..whole.len()).step_by(5) {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            fs::write(&path, changed).expect("changed");
            assert!(
                Runs::read(folder.path()).is_err_and(|error| error.to_string().contains(PACKED)),
                "byte {place}"
            );
        }
    }
}
