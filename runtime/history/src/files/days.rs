//! Samples of the cluster over time: one recording per UTC day in `history/cluster`, such as
//! `2026-11-26.jsonl.gz`.
//!
//! Each sample is written as its own gzip member, so that it survives the process. A day's file is rewritten with
//! fewer members when the day ends or another process continues it. Today's file has no end line.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use napreduce_protocol::{ClusterSample, ClusterWindow, IoResult};

use crate::files::recording::{
    FORMER_RECORDING, HistoryError, RECORDING, RecordedRows, RecordingError, RecordingWriter,
};

const FOLDER: &str = "cluster";
const UNFINISHED: &str = ".unfinished";
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;
/// Number of days kept, including today.
const DAYS_KEPT: u64 = 31;
/// The most samples read for one window: a day with ten queues.
const SAMPLES_READ_MAX: usize = 200_000;

/// The writer of daily files.
#[derive(Debug)]
pub(crate) struct ClusterDays {
    folder: PathBuf,
    open: Option<OpenDay>,
}

#[derive(Debug)]
struct OpenDay {
    day: u64,
    path: PathBuf,
    writer: RecordingWriter<BufWriter<File>>,
}

impl ClusterDays {
    /// Opens the daily files of a history directory. Creates nothing until the first sample.
    pub(crate) fn beneath(history: &Path) -> ClusterDays {
        ClusterDays {
            folder: history.join(FOLDER),
            open: None,
        }
    }

    /// Appends a sample. When this returns, readers see it; it may not be on disk yet.
    pub(crate) fn add(&mut self, sample: &ClusterSample) -> Result<(), HistoryError> {
        let day = sample.at_millis / DAY_MILLIS;
        if let Some(ended) = self.open.take_if(|open| open.day != day) {
            drop(ended.writer);
            compact(&ended.path, |writer| Ok(writer.finish()?.flush()?))?;
            remove_before(&self.folder, (day + 1).saturating_sub(DAYS_KEPT));
        }
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(OpenDay::begin(&self.folder, day)?),
        };
        open.add(sample)
            .map_err(|error| HistoryError::new(&open.path, error))
    }
}

impl OpenDay {
    fn begin(folder: &Path, day: u64) -> Result<OpenDay, HistoryError> {
        // Not the directory above: someone may have removed it.
        let made = fs::create_dir(folder).unless_there();
        made.map_err(|error| HistoryError::new(folder, error.into()))?;
        let path = folder.join(name_of(day));
        let writer = compact(&path, Ok)?;
        Ok(OpenDay { day, path, writer })
    }

    fn add(&mut self, sample: &ClusterSample) -> Result<(), RecordingError> {
        self.writer.add("queue", &sample.queues)?;
        self.writer.add("worker", &sample.workers)?;
        self.writer.flush()
    }
}

/// Rewrites the readable rows of a file with few members; `end` finishes it or continues writing.
fn compact<T>(
    path: &Path,
    end: impl FnOnce(RecordingWriter<BufWriter<File>>) -> Result<T, RecordingError>,
) -> Result<T, HistoryError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let write = || {
        let before = match RecordedRows::open(path) {
            Ok(before) => before,
            Err(RecordingError::Io(error)) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error.into());
            }
            // The file is missing or damaged: new samples are better than none.
            Err(_) => RecordedRows::default(),
        };
        let mut writer = RecordingWriter::new(BufWriter::new(File::create(&unfinished)?));
        writer.add_all(&before)?;
        writer.flush()?;
        let ended = end(writer)?;
        fs::rename(&unfinished, path)?;
        Ok(ended)
    };
    write().map_err(|error| {
        // On a full disk the leftover would take space from other files.
        let _ = fs::remove_file(&unfinished);
        HistoryError::new(path, error)
    })
}

/// Removes the days before `first`. Failed removals are repeated when the next day starts.
fn remove_before(folder: &Path, first: u64) {
    for (day, path) in days_in(folder) {
        if day < first {
            let _ = fs::remove_file(path);
        }
    }
}

/// Lists the days in a folder, oldest first.
fn days_in(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |entry: fs::DirEntry| Some((day_of(entry.file_name().to_str()?)?, entry.path()));
    let mut days: Vec<_> = entries.filter_map(named).collect();
    days.sort();
    days
}

/// Reads the samples between two times, in milliseconds since 1970. `directory` belongs to a cluster or its
/// coordinator, or is a copy of a history.
pub fn read_cluster(directory: &Path, from_millis: u64, until_millis: u64) -> ClusterWindow {
    let places =
        ["coordinator/history", "history", ""].map(|place| directory.join(place).join(FOLDER));
    let days = places
        .iter()
        .map(|folder| days_in(folder))
        .find(|days| !days.is_empty())
        .unwrap_or_default();
    let first = from_millis / DAY_MILLIS;
    let last = until_millis / DAY_MILLIS;
    let mut window = ClusterWindow::default();
    for (day, path) in days {
        if !(first..=last).contains(&day) {
            continue;
        }
        match RecordedRows::open(&path) {
            Ok(day) => {
                let before = day
                    .queues
                    .iter()
                    .map(|one| one.at_millis)
                    .rfind(|at| *at < from_millis);
                let from = before.unwrap_or(from_millis);
                let queues = day
                    .queues
                    .into_iter()
                    .filter(|one| (from..=until_millis).contains(&one.at_millis));
                window.queues.extend(queues.take(SAMPLES_READ_MAX));
                let times = from_millis..=until_millis;
                let workers = day
                    .workers
                    .into_iter()
                    .filter(|one| times.contains(&one.at_millis));
                window.workers.extend(workers.take(SAMPLES_READ_MAX));
            }
            // The file was removed meanwhile.
            Err(RecordingError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let name = path.file_name().unwrap_or_default().display();
                window.remarks.push(format!("{name}: {error}"));
            }
        }
    }
    window.queues.sort_by_key(|one| one.at_millis);
    // A restarted coordinator reports lost workers again.
    window
        .workers
        .sort_by_key(|one| (one.at_millis, one.worker));
    window.workers.dedup();
    window
}

/// Returns the file name of a day, counted from 1970-01-01.
fn name_of(day: u64) -> String {
    format!("{}{RECORDING}", date_of(day))
}

fn date_of(day: u64) -> Date {
    let millis = i64::try_from(day.saturating_mul(DAY_MILLIS)).unwrap_or(i64::MAX);
    let moment = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    moment.to_zoned(TimeZone::UTC).date()
}

/// Parses the name of a day's file, also of a former version; `None` unless it is exactly that name.
fn day_of(name: &str) -> Option<u64> {
    let text = name
        .strip_suffix(RECORDING)
        .or_else(|| name.strip_suffix(FORMER_RECORDING))?;
    let date: Date = text.parse().ok()?;
    let millis = date
        .to_zoned(TimeZone::UTC)
        .ok()?
        .timestamp()
        .as_millisecond();
    let day = u64::try_from(millis).ok()? / DAY_MILLIS;
    (date_of(day).to_string() == text).then_some(day)
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{TaskKind, WorkerId};
    use napreduce_protocol::{QueueSample, QueueSlots, WorkerPhase, WorkerSample};

    use super::*;

    /// 2026-11-26.
    const DAY: u64 = 20_783;
    const NOON: u64 = DAY * DAY_MILLIS + DAY_MILLIS / 2;

    fn queue(at_millis: u64, used: u64) -> QueueSample {
        let slots = QueueSlots {
            guaranteed_permille: Some(1_500),
            maximum: None,
            used,
            wanted: 7,
        };
        QueueSample {
            at_millis,
            queue: "etl.daily".to_owned(),
            kind: TaskKind::Reduce,
            slots,
        }
    }

    fn worker(at_millis: u64, state: WorkerPhase) -> WorkerSample {
        let name = "left-hand".to_owned();
        let host = "ada".to_owned();
        let reason = (state == WorkerPhase::Lost).then(|| "silent".to_owned());
        let map_slots = 2;
        let reduce_slots = 1;
        WorkerSample {
            at_millis,
            worker: WorkerId(3),
            name,
            host,
            state,
            reason,
            map_slots,
            reduce_slots,
        }
    }

    fn sample(at_millis: u64, used: u64) -> ClusterSample {
        ClusterSample {
            at_millis,
            queues: vec![queue(at_millis, used)],
            workers: Vec::new(),
        }
    }

    fn used(window: &ClusterWindow) -> Vec<u64> {
        window.queues.iter().map(|one| one.slots.used).collect()
    }

    #[test]
    fn day_name_round_trips() {
        assert_eq!(name_of(DAY), "2026-11-26.jsonl.gz");
        assert_eq!(name_of(0), "1970-01-01.jsonl.gz");
        for day in [0, 58, 59, 60, 365, 11_016, DAY, 47_541] {
            assert_eq!(day_of(&name_of(day)), Some(day));
        }
        for other in [
            "2026-11-26",
            "2026-11-26.json",
            "26-11-26.jsonl.gz",
            "2026-02-30.jsonl.gz",
            "job_0001.jsonl.gz",
        ] {
            assert_eq!(day_of(other), None, "{other}");
        }
    }

    #[test]
    fn samples_are_readable_at_once_and_after_a_kill() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut days = ClusterDays::beneath(folder.path());
        days.add(&sample(NOON, 1)).expect("added");
        let lost = ClusterSample {
            at_millis: NOON + 10,
            queues: Vec::new(),
            workers: vec![worker(NOON + 10, WorkerPhase::Lost)],
        };
        days.add(&lost).expect("added");
        let read = |from, until| read_cluster(folder.path(), from, until);
        assert_eq!(read(NOON, NOON).queues, [queue(NOON, 1)]);
        // As if the process was killed: nothing is closed.
        std::mem::forget(days);
        let mut days = ClusterDays::beneath(folder.path());
        days.add(&sample(NOON + 20, 2)).expect("added");
        let all = read(NOON - 5, NOON + 50);
        assert_eq!(
            (used(&all), all.workers.clone()),
            (vec![1, 2], lost.workers)
        );
        assert!(all.remarks.is_empty(), "{:?}", all.remarks);
        // A window starts with the last sample before it.
        assert_eq!(used(&read(NOON + 15, NOON + 16)), [1]);
        assert_eq!(used(&read(NOON + 21, NOON + 99)), [2]);
        assert!(used(&read(NOON - 9, NOON - 1)).is_empty());
    }

    #[test]
    fn days_have_one_file_each_and_the_oldest_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut days = ClusterDays::beneath(folder.path());
        for day in 0..40 {
            days.add(&sample(NOON + day * DAY_MILLIS, day))
                .expect("added");
            days.add(&sample(NOON + day * DAY_MILLIS + 1, day))
                .expect("added");
        }
        let there = days_in(&folder.path().join(FOLDER));
        assert_eq!(there.first().map(|(day, _)| *day), Some(DAY + 9));
        assert_eq!(there.len() as u64, DAYS_KEPT);
        let whole = RecordedRows::open(&there[0].1).expect("a recording");
        assert!(
            whole.remarks.is_empty(),
            "an ended day has an end line: {:?}",
            whole.remarks
        );
        let window = read_cluster(
            folder.path(),
            NOON + 38 * DAY_MILLIS,
            NOON + 39 * DAY_MILLIS,
        );
        assert_eq!(used(&window), [38, 38, 39]);
    }

    #[test]
    fn former_day_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut days = ClusterDays::beneath(folder.path());
        days.add(&sample(NOON, 1)).expect("added");
        let former = folder.path().join(FOLDER).join("2026-11-26.napt");
        fs::write(&former, b"NAPTREC1\x01\0\0\0").expect("written");
        let window = read_cluster(folder.path(), NOON, NOON + 99);
        assert_eq!(used(&window), [1]);
        assert_eq!(
            window.remarks,
            [
                "2026-11-26.napt: written before napreduce 0.3.0; convert it with the command \
              `nap history convert` of napreduce 0.3"
            ]
        );
        days.add(&sample(NOON + 40 * DAY_MILLIS, 2)).expect("added");
        assert!(!former.exists(), "a former day is removed with its day");
    }

    #[test]
    fn truncated_day_keeps_whole_members_and_is_continued() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut days = ClusterDays::beneath(folder.path());
        for at in 0..5 {
            days.add(&sample(NOON + at, at)).expect("added");
        }
        drop(days);
        let path = folder.path().join(FOLDER).join(name_of(DAY));
        let length = fs::metadata(&path).expect("a file").len();
        File::options()
            .write(true)
            .open(&path)
            .expect("opened")
            .set_len(length - 3)
            .expect("cut");
        let mut days = ClusterDays::beneath(folder.path());
        days.add(&sample(NOON + 9, 9)).expect("added");
        assert_eq!(
            used(&read_cluster(folder.path(), NOON, NOON + 99)),
            [0, 1, 2, 3, 9]
        );
        fs::write(&path, "foreign data").expect("written");
        let window = read_cluster(folder.path(), NOON, NOON + 99);
        assert!(
            window.remarks[0].starts_with("2026-11-26.jsonl.gz: not a recording"),
            "{window:?}"
        );
    }
}
