//! What was measured: a row for each run, and one for each job of each run. They are all that verdicts and plots
//! are made of, so that what is judged again is judged from the same rows. While runs are made they are written
//! to `raw.jsonl`; in the end they are packed into `runs.jsonl.xz`, a line for each run with the columns of its
//! jobs, which `xz -dc` and `jq` read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use lzma_rust2::{XzOptions, XzReader, XzWriter};
use napreduce_engine::listed;
use serde::{Deserialize, Serialize};

use crate::error::cannot;

/// The rows of runs that are being made, or were when somebody ended them.
pub(super) const RAW: &str = "raw.jsonl";

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "kebab-case")]
enum Line {
    Run(RunRow),
    Job(JobRow),
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
    pub(super) fn open(folder: &Path, raw: fn(&Path) -> Result<Runs>) -> Result<Runs> {
        let (path, packed) = (folder.join(RAW), folder.join(PACKED));
        if !packed.exists() {
            return raw(&path);
        }
        let mut runs = read_packed(&packed)?;
        if path.exists() {
            runs.extend(raw(&path)?);
        }
        Ok(runs)
    }

    /// Packs the rows of a report into one small file, which takes the place of those that were written as
    /// runs ended.
    pub(super) fn pack(&self, folder: &Path) -> Result<()> {
        let (raw, path) = (folder.join(RAW), folder.join(PACKED));
        write_packed(self, &path).map_err(cannot("write", &path))?;
        fs::remove_file(&raw).map_err(cannot("remove", &raw))
    }

    /// As `read`, for whoever adds rows to the file: a last line that was cut short is cut off.
    pub(super) fn read_whole(path: &Path) -> Result<Runs> {
        let runs = Runs::read(path)?;
        let cut = || -> io::Result<()> {
            let bytes = fs::read(path)?;
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            match whole == bytes.len() {
                true => Ok(()),
                false => File::options().write(true).open(path)?.set_len(whole as u64),
            }
        };
        cut().map_err(cannot("cut", path))?;
        Ok(runs)
    }

    /// What a file of rows has.
    pub fn read(path: &Path) -> Result<Runs> {
        let unreadable = cannot("read", path);
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
                    bail!("{}, line {}: {error}", path.display(), number + 1);
                }
            }
        }
        Ok(runs)
    }
}

impl MeasuredRun {
    /// Writes its rows, its own last.
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

/// Beside the report.
pub(in crate::paper) const PACKED: &str = "runs.jsonl.xz";
/// How hard is tried to make it small, as the programs of xz count it by default.
const PRESET: u32 = 6;
/// Longer lines are no runs: a damaged file must not take all memory.
const LINE_BYTES_MAX: u64 = 1 << 30;

#[derive(Serialize, Deserialize)]
struct PackedRun {
    #[serde(flatten)]
    run: RunRow,
    jobs: JobColumns,
}

/// The jobs of a run, a value of each in every column. Numbers are a text with spaces in between, and `-` for
/// none: numbers of JSON may come back as their neighbours.
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
    /// Of these a run may have none at all.
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
        let optional = |of: fn(&JobRow) -> Option<f64>| match jobs.iter().any(|job| of(job).is_some()) {
            true => in_text(jobs.iter().map(of)),
            false => String::new(),
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

    /// The jobs of this run; nothing when a column has more or fewer values than others, or something else
    /// than numbers.
    fn into_jobs(self, run: &RunRow) -> Option<Vec<JobRow>> {
        let count = self.job.len();
        let numbers = |text: &str| -> Option<Vec<f64>> { of_text(text, count)?.into_iter().collect() };
        let optional =
            |text: &str| if text.is_empty() { Some(vec![None; count]) } else { of_text(text, count) };
        let (submitted, started) = (numbers(&self.submitted)?, numbers(&self.started)?);
        let (ended, alone) = (numbers(&self.ended)?, numbers(&self.alone)?);
        let (wasted, deadline) = (numbers(&self.wasted)?, optional(&self.deadline)?);
        let (reduce_wait, idle_share) = (optional(&self.reduce_wait)?, optional(&self.idle_share)?);
        let simulated = optional(&self.simulated)?;
        if (self.class.len(), self.preemptions.len()) != (count, count) {
            return None;
        }
        let job = |(row, (job, class)): (usize, (String, String))| JobRow {
            key: run.key.clone(),
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
        Some(self.job.into_iter().zip(self.class).enumerate().map(job).collect())
    }
}

fn in_text(values: impl Iterator<Item = Option<f64>>) -> String {
    let words = values.map(|value| value.map_or_else(|| "-".to_owned(), |value| value.to_string()));
    words.collect::<Vec<_>>().join(" ")
}

/// So many values; nothing when there are not.
fn of_text(text: &str, count: usize) -> Option<Vec<Option<f64>>> {
    let value = |word: &str| match word {
        "-" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let values: Option<Vec<Option<f64>>> = text.split_ascii_whitespace().map(value).collect();
    values.filter(|values| values.len() == count)
}

/// Writes all runs. It has its name when it is whole.
pub(super) fn write_packed(runs: &Runs, path: &Path) -> io::Result<()> {
    let mut ordered: Vec<&MeasuredRun> = runs.iter().collect();
    // What the variants of a block have in common is the nearer.
    ordered.sort_by_key(|run| {
        let key = &run.run.key;
        (&key.paper, &key.campaign, key.executor, key.block, &key.variant)
    });
    let unfinished = path.with_extension("unfinished");
    let written = || -> io::Result<()> {
        let file = BufWriter::new(File::create(&unfinished)?);
        let mut out = XzWriter::new(file, XzOptions::with_preset(PRESET))?;
        for MeasuredRun { run, jobs } in ordered {
            let line = PackedRun { run: run.clone(), jobs: JobColumns::of(jobs) };
            let mut text = serde_json::to_vec(&line)?;
            text.push(b'\n');
            out.write_all(&text)?;
        }
        let file = out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        fs::rename(&unfinished, path)
    };
    written().inspect_err(|_| {
        // Half of it is of no use to anybody.
        let _ = fs::remove_file(&unfinished);
    })
}

pub(super) fn read_packed(path: &Path) -> Result<Runs> {
    let unreadable = cannot("read", path);
    let file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut lines = BufReader::new(XzReader::new(file, false));
    let mut runs = Runs::default();
    for line in 1.. {
        let malformed = |what: String| anyhow!("{}, line {line}: {what}", path.display());
        let mut text = Vec::new();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
        if read.map_err(|error| malformed(error.to_string()))? == 0 {
            break;
        }
        let PackedRun { run, jobs } =
            serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
        let jobs = jobs.into_jobs(&run);
        let jobs =
            jobs.ok_or_else(|| malformed("its columns are not numbers, equally many in each".to_owned()))?;
        runs.add(MeasuredRun { run, jobs });
    }
    Ok(runs)
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
                key: key(0, "one"),
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
        let (paper, campaign) = ("natjam".to_owned(), "xl-s".to_owned());
        RunKey { paper, campaign, variant: variant.to_owned(), block, executor: Executor::Simulated }
    }

    fn run(block: u32, variant: &str, jobs: Vec<JobRow>) -> MeasuredRun {
        let key = key(block, variant);
        let jobs = jobs.into_iter().map(|job| JobRow { key: key.clone(), ..job }).collect();
        let run = RunRow {
            key,
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

    fn written(runs: &Runs) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(PACKED);
        write_packed(runs, &path).expect("written");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1, "nothing else is left there");
        (folder, path)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        #[test]
        fn runs_are_read_as_they_were(jobs in vec(vec(any_job(), 0..9), 0..9)) {
            let mut runs = Runs::default();
            for (number, jobs) in jobs.into_iter().enumerate() {
                runs.add(run(number as u32 / 2, ["one", "two"][number % 2], jobs));
            }
            let (_folder, path) = written(&runs);
            prop_assert_eq!(read_packed(&path).expect("readable"), runs);
        }
    }

    #[test]
    fn a_file_that_is_cut_or_changed_is_named() {
        let mut runs = Runs::default();
        (0..40).for_each(|block| runs.add(run(block, "one", Vec::new())));
        let (_folder, path) = written(&runs);
        let whole = fs::read(&path).expect("a file");
        for length in (0..whole.len()).step_by(7) {
            fs::write(&path, &whole[..length]).expect("cut");
            let error = read_packed(&path).expect_err("it is cut").to_string();
            assert!(error.contains(PACKED), "{error}");
        }
        for place in (0..whole.len()).step_by(5) {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            fs::write(&path, changed).expect("changed");
            assert!(
                read_packed(&path).is_err_and(|error| error.to_string().contains(PACKED)),
                "byte {place}"
            );
        }
    }
}
