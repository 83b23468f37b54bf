//! How a cluster was over time: a file for each day (UTC) in `history/cluster`, such as `2026-11-26.jsonl.gz`.
//!
//! Owns which days there are, and that what is written outlives the process that wrote it. Each look at the
//! cluster is a gzip member of its own; when a day is over, and when another process goes on with one, its file is
//! written anew with few members. The file of the present day has no end line.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use napreduce_protocol::{ClusterSample, ClusterWindow};

use crate::files::error::HistoryError;
use crate::files::recording::{RECORDING, RecordedRows, RecordingError, RecordingWriter};

const FOLDER: &str = "cluster";
const UNFINISHED: &str = ".unfinished";
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;
/// So many days are kept, today included.
const DAYS_KEPT: u64 = 31;
/// Samples of a window at most that are read: those of a day with ten queues.
const SAMPLES_READ_MAX: usize = 200_000;

/// Writes them.
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
    /// Those of the history in this directory; nothing is made before there is something to keep.
    pub(crate) fn beneath(history: &Path) -> ClusterDays {
        ClusterDays { folder: history.join(FOLDER), open: None }
    }

    /// Keeps what was seen. It is in the file when this returns, though not on the disk.
    pub(crate) fn note(&mut self, sample: &ClusterSample) -> Result<(), HistoryError> {
        let day = sample.at_millis / DAY_MILLIS;
        if let Some(over) = self.open.take_if(|open| open.day != day) {
            drop(over.writer);
            gather(&over.path, |writer| Ok(writer.finish()?.flush()?))?;
            remove_before(&self.folder, (day + 1).saturating_sub(DAYS_KEPT));
        }
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(OpenDay::begin(&self.folder, day)?),
        };
        open.add(sample).map_err(|error| HistoryError::new(&open.path, error))
    }
}

impl OpenDay {
    fn begin(folder: &Path, day: u64) -> Result<OpenDay, HistoryError> {
        fs::create_dir_all(folder).map_err(|error| HistoryError::new(folder, error.into()))?;
        let path = folder.join(name_of(day));
        let writer = gather(&path, Ok)?;
        Ok(OpenDay { day, path, writer })
    }

    fn add(&mut self, sample: &ClusterSample) -> Result<(), RecordingError> {
        self.writer.add("queue", &sample.queues)?;
        self.writer.add("worker", &sample.workers)?;
        self.writer.flush()
    }
}

/// Writes a file anew with what can be read of it, in few frames, and has `end` end it, unless more comes.
fn gather<T>(
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
            // There is none, or it is none of ours: of a day, what comes now is better than nothing.
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
        // On a full disk it would take room from everything else.
        let _ = fs::remove_file(&unfinished);
        HistoryError::new(path, error)
    })
}

/// Removes the days before one; what cannot be removed now is removed when the next one begins.
fn remove_before(folder: &Path, first: u64) {
    for (day, path) in days_in(folder) {
        if day < first {
            let _ = fs::remove_file(path);
        }
    }
}

/// The days that there are, by time.
fn days_in(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |entry: fs::DirEntry| Some((day_of(entry.file_name().to_str()?)?, entry.path()));
    let mut days: Vec<_> = entries.filter_map(named).collect();
    days.sort();
    days
}

/// How the cluster was whose directory this is, or that of its coordinator, or a copy of its history, between
/// two moments in milliseconds since 1970.
pub fn read_cluster(directory: &Path, from_millis: u64, until_millis: u64) -> ClusterWindow {
    let places = ["coordinator/history", "history", ""].map(|place| directory.join(place).join(FOLDER));
    let days = places.iter().map(|folder| days_in(folder)).find(|days| !days.is_empty()).unwrap_or_default();
    let (first, last) = (from_millis / DAY_MILLIS, until_millis / DAY_MILLIS);
    let mut window = ClusterWindow::default();
    for (day, path) in days.into_iter().filter(|(day, _)| (first..=last).contains(day)) {
        match RecordedRows::open(&path) {
            Ok(day) => {
                let before = day.queues.iter().map(|one| one.at_millis).rfind(|at| *at < from_millis);
                let from = before.unwrap_or(from_millis);
                let queues =
                    day.queues.into_iter().filter(|one| (from..=until_millis).contains(&one.at_millis));
                window.queues.extend(queues.take(SAMPLES_READ_MAX));
                let times = from_millis..=until_millis;
                let workers = day.workers.into_iter().filter(|one| times.contains(&one.at_millis));
                window.workers.extend(workers.take(SAMPLES_READ_MAX));
            }
            // It was removed meanwhile.
            Err(RecordingError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => window.remarks.push(format!("{day}: {error}", day = name_of(day))),
        }
    }
    window.queues.sort_by_key(|one| one.at_millis);
    // A coordinator that was started again says again what became of those that are gone.
    window.workers.sort_by_key(|one| (one.at_millis, one.worker));
    window.workers.dedup();
    window
}

/// Of a day, counted from 1970-01-01.
fn name_of(day: u64) -> String {
    let millis = i64::try_from(day.saturating_mul(DAY_MILLIS)).unwrap_or(i64::MAX);
    let moment = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    format!("{}{RECORDING}", moment.to_zoned(TimeZone::UTC).date())
}

/// The day of a file; other spellings are no names of ours.
fn day_of(name: &str) -> Option<u64> {
    let date: Date = name.strip_suffix(RECORDING)?.parse().ok()?;
    let millis = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond();
    let day = u64::try_from(millis).ok()? / DAY_MILLIS;
    (name_of(day) == name).then_some(day)
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
        let slots = QueueSlots { guaranteed_permille: Some(1_500), maximum: None, used, wanted: 7 };
        QueueSample { at_millis, queue: "etl.daily".to_owned(), kind: TaskKind::Reduce, slots }
    }

    fn worker(at_millis: u64, state: WorkerPhase) -> WorkerSample {
        let (name, host) = ("left-hand".to_owned(), "ada".to_owned());
        let reason = (state == WorkerPhase::Lost).then(|| "silent".to_owned());
        let (map_slots, reduce_slots) = (2, 1);
        WorkerSample { at_millis, worker: WorkerId(3), name, host, state, reason, map_slots, reduce_slots }
    }

    fn sample(at_millis: u64, used: u64) -> ClusterSample {
        ClusterSample { at_millis, queues: vec![queue(at_millis, used)], workers: Vec::new() }
    }

    fn used(window: &ClusterWindow) -> Vec<u64> {
        window.queues.iter().map(|one| one.slots.used).collect()
    }

    #[test]
    fn a_day_is_a_date_and_back() {
        assert_eq!(name_of(DAY), "2026-11-26.jsonl.gz");
        assert_eq!(name_of(0), "1970-01-01.jsonl.gz");
        for day in [0, 58, 59, 60, 365, 11_016, DAY, 47_541] {
            assert_eq!(day_of(&name_of(day)), Some(day));
        }
        for other in
            ["2026-11-26", "2026-11-26.json", "26-11-26.jsonl.gz", "2026-02-30.jsonl.gz", "job_0001.jsonl.gz"]
        {
            assert_eq!(day_of(other), None, "{other}");
        }
    }

    #[test]
    fn what_was_noted_is_there_at_once_and_after_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut days = ClusterDays::beneath(folder.path());
        days.note(&sample(NOON, 1)).expect("kept");
        let lost = ClusterSample {
            at_millis: NOON + 10,
            queues: Vec::new(),
            workers: vec![worker(NOON + 10, WorkerPhase::Lost)],
        };
        days.note(&lost).expect("kept");
        let read = |from, until| read_cluster(folder.path(), from, until);
        assert_eq!(read(NOON, NOON).queues, [queue(NOON, 1)]);
        // The process was killed: nobody has closed anything.
        std::mem::forget(days);
        let mut days = ClusterDays::beneath(folder.path());
        days.note(&sample(NOON + 20, 2)).expect("kept");
        let all = read(NOON - 5, NOON + 50);
        assert_eq!((used(&all), all.workers.clone()), (vec![1, 2], lost.workers));
        assert!(all.remarks.is_empty(), "{:?}", all.remarks);
        // What was so before a window is so at its begin.
        assert_eq!(used(&read(NOON + 15, NOON + 16)), [1]);
        assert_eq!(used(&read(NOON + 21, NOON + 99)), [2]);
        assert!(used(&read(NOON - 9, NOON - 1)).is_empty());
    }

    #[test]
    fn each_day_has_a_file_and_the_oldest_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut days = ClusterDays::beneath(folder.path());
        for day in 0..40 {
            days.note(&sample(NOON + day * DAY_MILLIS, day)).expect("kept");
            days.note(&sample(NOON + day * DAY_MILLIS + 1, day)).expect("kept");
        }
        let there = days_in(&folder.path().join(FOLDER));
        assert_eq!(there.first().map(|(day, _)| *day), Some(DAY + 9));
        assert_eq!(there.len() as u64, DAYS_KEPT);
        let whole = RecordedRows::open(&there[0].1).expect("a recording");
        assert!(whole.remarks.is_empty(), "a day that is over has an end line: {:?}", whole.remarks);
        let window = read_cluster(folder.path(), NOON + 38 * DAY_MILLIS, NOON + 39 * DAY_MILLIS);
        assert_eq!(used(&window), [38, 38, 39]);
    }

    #[test]
    fn a_file_that_was_cut_gives_what_is_whole_and_is_gone_on_with() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut days = ClusterDays::beneath(folder.path());
        for at in 0..5 {
            days.note(&sample(NOON + at, at)).expect("kept");
        }
        drop(days);
        let path = folder.path().join(FOLDER).join(name_of(DAY));
        let length = fs::metadata(&path).expect("a file").len();
        File::options().write(true).open(&path).expect("opened").set_len(length - 3).expect("cut");
        let mut days = ClusterDays::beneath(folder.path());
        days.note(&sample(NOON + 9, 9)).expect("kept");
        assert_eq!(used(&read_cluster(folder.path(), NOON, NOON + 99)), [0, 1, 2, 3, 9]);
        fs::write(&path, "nothing of ours").expect("written");
        let window = read_cluster(folder.path(), NOON, NOON + 99);
        assert!(window.remarks[0].starts_with("2026-11-26.jsonl.gz: it is not a recording"), "{window:?}");
    }
}
