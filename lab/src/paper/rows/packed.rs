//! The rows of a report whose runs are over, in a few bytes: `runs.jsonl.xz`, a line for each run with the
//! columns of its jobs.
//!
//! Owns that form, in which what the variants of a block have in common stands side by side. `xz -dc` and
//! `jq` read it. Does not own the rows, nor the file to which they are written while runs are made.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use lzma_rust2::{XzOptions, XzReader, XzWriter};
use serde::{Deserialize, Serialize};

use super::{JobRow, MeasuredRun, RunRow, Runs, RunsError};

/// Beside the report.
pub(in crate::paper) const PACKED: &str = "runs.jsonl.xz";
/// How hard is tried to make it small, as the programs of xz count it by default.
const PRESET: u32 = 6;
/// Longer lines are no runs: a damaged file must not take all memory.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// A line.
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
///
/// # Errors
/// When it cannot be written.
pub(super) fn write(runs: &Runs, path: &Path) -> io::Result<()> {
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

/// Reads what was written.
///
/// # Errors
/// When it cannot be read, or is damaged.
pub(super) fn read(path: &Path) -> Result<Runs, RunsError> {
    let unreadable = |source| RunsError::Io { path: path.to_owned(), source };
    let file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut lines = BufReader::new(XzReader::new(file, false));
    let mut runs = Runs::default();
    for line in 1.. {
        let malformed = |what: String| RunsError::Malformed { path: path.to_owned(), line, what };
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
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::super::{Executor, RunKey};

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
        write(runs, &path).expect("written");
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
            prop_assert_eq!(read(&path).expect("readable"), runs);
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
            let error = read(&path).expect_err("it is cut").to_string();
            assert!(error.contains(PACKED), "{error}");
        }
        for place in (0..whole.len()).step_by(5) {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            fs::write(&path, changed).expect("changed");
            assert!(read(&path).is_err_and(|error| error.to_string().contains(PACKED)), "byte {place}");
        }
    }
}
