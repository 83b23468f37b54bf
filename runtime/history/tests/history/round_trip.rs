//! What is written is read: whole jobs, pages and windows of their rows.
//!
//! Owns the comparison with the rows themselves. Damage is another file's.

use std::io::Cursor;
use std::ops::RangeInclusive;

use napreduce_history::{FRAME_ROWS_MAX, HistoryStore, RecordingReader, RecordingWriter, Row};
use napreduce_protocol::{AttemptSummary, HistoryLine};
use proptest::prelude::*;

use super::samples::{Scene, any_job, job};

fn recorded<T: Row>(rows: &[T]) -> RecordingReader<Cursor<Vec<u8>>> {
    let mut recording = RecordingWriter::begin(Vec::new()).expect("begun");
    recording.add(rows).expect("added");
    RecordingReader::new(Cursor::new(recording.finish().expect("finished"))).expect("a recording")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_job_is_read_as_it_was(job in any_job()) {
        let scene = Scene::new();
        let history = scene.open();
        prop_assert_eq!(history.add(&job).expect("written"), [""; 0]);
        let read = history.read(job.detail.summary.job).expect("there").expect("readable");
        prop_assert_eq!(&read, &job);
    }

    #[test]
    fn a_page_and_a_window_are_those_of_all_rows(
        all in any_job(), skip in 0..50usize, count in 0..50usize, first: u64, last: u64,
    ) {
        let rows = all.detail.attempts;
        let mut recording = recorded(&rows);
        let page: Vec<AttemptSummary> = recording.page(skip as u64, count);
        prop_assert_eq!(page, rows.iter().skip(skip).take(count).cloned().collect::<Vec<_>>());
        let times = first.min(last)..=first.max(last);
        let window: Vec<AttemptSummary> = recording.window(times.clone(), usize::MAX);
        prop_assert_eq!(window, touching(&rows, &times));
    }
}

fn touching(rows: &[AttemptSummary], times: &RangeInclusive<u64>) -> Vec<AttemptSummary> {
    let touches = |row: &&AttemptSummary| {
        let (first, last) = row.times().expect("attempts have times");
        first <= *times.end() && *times.start() <= last
    };
    rows.iter().filter(touches).cloned().collect()
}

#[test]
fn pages_and_windows_go_over_the_borders_of_frames() {
    let rows = job(1, 40_000).detail.attempts;
    let mut recording = recorded(&rows);
    assert_eq!(recording.frames().len(), rows.len().div_ceil(FRAME_ROWS_MAX));
    for skip in [0, 1, 16_383, 16_384, 16_385, 39_999, 40_000, u64::MAX] {
        for count in [1, 2, 20_000, usize::MAX] {
            let from = usize::try_from(skip).expect("it fits").min(rows.len());
            let expected = &rows[from..from.saturating_add(count).min(rows.len())];
            assert_eq!(recording.page::<AttemptSummary>(skip, count), expected);
        }
    }
    let micros = |row: usize| rows[row].launched_millis * 1_000;
    for times in [micros(10)..=micros(20), micros(16_000)..=micros(17_000), 0..=u64::MAX] {
        assert_eq!(recording.window::<AttemptSummary>(times.clone(), usize::MAX), touching(&rows, &times));
    }
    assert_eq!(recording.window::<AttemptSummary>(0..=micros(0) - 1, 9), []);
    assert_eq!(recording.remarks(), [""; 0]);
}

/// A page of a long list is read from the frames that have it, and nothing of the others.
#[test]
fn other_frames_are_not_read_for_a_page() {
    let rows = job(1, 40_000).detail.attempts;
    let mut recording = RecordingWriter::begin(Vec::new()).expect("begun");
    recording.add(&rows).expect("added");
    let mut bytes = recording.finish().expect("finished");
    let frames = RecordingReader::new(Cursor::new(&bytes)).expect("a recording").frames().to_vec();
    let first = usize::try_from(frames[0].offset).expect("it fits");
    let second = usize::try_from(frames[1].offset).expect("it fits");
    bytes[first..second].fill(0xff);
    let mut recording = RecordingReader::new(Cursor::new(&bytes)).expect("a recording");
    assert_eq!(recording.page::<AttemptSummary>(16_384, 30_000), &rows[16_384..]);
    assert_eq!(recording.remarks(), [""; 0]);
}

#[test]
fn long_texts_make_frames_of_few_rows() {
    let text = |place: u64| HistoryLine { at_millis: place, text: format!("{place}").repeat(300_000) };
    let rows: Vec<HistoryLine> = (10..20).map(text).collect();
    let mut recording = recorded(&rows);
    assert_eq!(recording.frames().len(), 10);
    assert_eq!(recording.all::<HistoryLine>(), rows);
    let longest = [HistoryLine { at_millis: 0, text: "é".repeat(9 << 20) }];
    assert_eq!(recorded(&longest).all::<HistoryLine>()[0].text.len(), 16 << 20, "it is cut");
}

/// A reader of today beside columns and kinds of tomorrow.
#[test]
fn unknown_kinds_and_columns_are_left_out_and_missing_ones_are_empty() {
    #[derive(Debug, PartialEq)]
    struct Later(u64);
    impl Row for Later {
        const KIND: u16 = 5;
        const NAME: &'static str = "later events";
        fn times(&self) -> Option<(u64, u64)> {
            None
        }
        fn text_bytes(&self) -> usize {
            0
        }
        fn write(rows: &[Later], columns: &mut napreduce_history::ColumnsWriter) {
            columns.texts("weather", rows.iter().map(|_| Some("fair")));
            columns.differences("at_millis", rows.iter().map(|row| Some(row.0)));
        }
        fn read(columns: &napreduce_history::Columns) -> Result<Vec<Later>, String> {
            Ok(columns.all_numbers("at_millis")?.into_iter().map(Later).collect())
        }
    }
    struct Unknown;
    impl Row for Unknown {
        const KIND: u16 = 999;
        const NAME: &'static str = "unknown";
        fn times(&self) -> Option<(u64, u64)> {
            None
        }
        fn text_bytes(&self) -> usize {
            0
        }
        fn write(_: &[Unknown], _: &mut napreduce_history::ColumnsWriter) {}
        fn read(_: &napreduce_history::Columns) -> Result<Vec<Unknown>, String> {
            Ok(Vec::new())
        }
    }
    let mut recording = RecordingWriter::begin(Vec::new()).expect("begun");
    recording.add(&[Unknown, Unknown]).expect("added");
    recording.add(&[Later(4), Later(5)]).expect("added");
    let bytes = recording.finish().expect("finished");
    let mut recording = RecordingReader::new(Cursor::new(bytes)).expect("a recording");
    let line = |at_millis| HistoryLine { at_millis, text: String::new() };
    assert_eq!(recording.all::<HistoryLine>(), [line(4), line(5)]);
    assert_eq!(recording.all::<Later>(), [Later(4), Later(5)]);
    assert_eq!(recording.remarks(), [""; 0]);
}
