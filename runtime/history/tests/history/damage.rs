//! Recordings that are cut or changed: rows that were written, or words that say what is wrong.
//!
//! Owns every truncation and every flipped bit of a small file. Whole files that are lost are `heads`'
//! business.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use napreduce_history::{RecordingError, RecordingReader, RecordingWriter, Row};
use napreduce_protocol::{AttemptSummary, HistoryLine, JobDetail, PreemptionSummary};
use proptest::collection::vec;
use proptest::prelude::*;

use super::samples::job;

fn small() -> (JobDetail, Vec<u8>) {
    let mut detail = job(5, 4_000).detail;
    detail.attempts.truncate(12);
    detail.events.truncate(3);
    detail.preemptions.truncate(2);
    assert_eq!((detail.events.len(), detail.preemptions.len()), (3, 2), "the seed gives some");
    let mut recording = RecordingWriter::begin(Vec::new()).expect("begun");
    recording.add(&detail.attempts[..6]).expect("added");
    recording.add(&detail.events).expect("added");
    recording.add(&detail.attempts[6..]).expect("added");
    recording.add(&detail.preemptions).expect("added");
    (detail, recording.finish().expect("finished"))
}

/// Reads everything; whether all of it is there.
fn check(detail: &JobDetail, bytes: &[u8], what: &str) -> bool {
    let mut recording = match RecordingReader::new(Cursor::new(bytes)) {
        Ok(recording) => recording,
        Err(RecordingError::NotARecording | RecordingError::Version(_)) => return false,
        Err(error) => panic!("{what}: {error}"),
    };
    let attempts: Vec<AttemptSummary> = recording.all();
    let halves = [&[][..], &detail.attempts[..6], &detail.attempts[6..], &detail.attempts];
    assert!(halves.contains(&&attempts[..]), "{what}: attempts that nobody wrote: {attempts:?}");
    let events: Vec<HistoryLine> = recording.all();
    assert!(events.is_empty() || events == detail.events, "{what}: {events:?}");
    let preemptions: Vec<PreemptionSummary> = recording.all();
    assert!(preemptions.is_empty() || preemptions == detail.preemptions, "{what}: {preemptions:?}");
    let whole = attempts.len() == 12
        && events.len() == detail.events.len()
        && preemptions.len() == detail.preemptions.len();
    assert!(whole || !recording.remarks().is_empty(), "{what}: nothing is said of what lacks");
    let window = recording.window::<AttemptSummary>(0..=u64::MAX, usize::MAX);
    assert_eq!((window, recording.page(0, usize::MAX)), (attempts.clone(), attempts), "{what}");
    whole
}

#[test]
fn a_cut_file_gives_what_is_whole_and_says_so() {
    let (detail, bytes) = small();
    assert!(check(&detail, &bytes, "whole"));
    let mut wholes = 0;
    for length in 0..bytes.len() {
        wholes += usize::from(check(&detail, &bytes[..length], &format!("cut at {length}")));
    }
    assert!(wholes > 16, "without its trailer every row is there");
}

#[test]
fn a_flipped_bit_gives_what_was_written_or_a_remark() {
    let (detail, bytes) = small();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            check(&detail, &damaged, &format!("bit {bit} of byte {place}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// As by somebody who computes checksums: what it gives is anything, but it gives it without harm.
    #[test]
    fn damage_with_right_checksums_does_no_harm(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let (_, mut bytes) = small();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let Ok(mut recording) = RecordingReader::new(Cursor::new(with_right_checksums(bytes))) else {
            return Ok(());
        };
        let count = recording.all::<AttemptSummary>().len();
        prop_assert_eq!(recording.page::<AttemptSummary>(0, usize::MAX).len(), count);
        prop_assert!(recording.all::<HistoryLine>().len() + recording.all::<PreemptionSummary>().len() < 100_000);
    }
}

/// The frames, by their lengths, as the form says: length, kind, checksum, payload.
fn with_right_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 12;
    while let Some(header) = bytes.get(at..at + 10) {
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let begins = crc32c::crc32c(&header[..6]);
        let Some(payload) = bytes.get(at + 10..at + 10 + length) else { break };
        let checksum = crc32c::crc32c_append(begins, payload);
        bytes[at + 6..at + 10].copy_from_slice(&checksum.to_le_bytes());
        at += 10 + length;
    }
    bytes
}

#[test]
fn what_is_no_recording_is_refused_with_words() {
    let open =
        |bytes: &[u8]| RecordingReader::new(Cursor::new(bytes.to_vec())).expect_err("refused").to_string();
    assert!(open(b"").contains("not a recording"));
    assert!(open(b"{\"version\":1}   ").contains("does not begin with NAPTREC1"));
    assert_eq!(open(b"NAPTREC1\x09\0\0\0"), "it has version 9, and this program reads 1");
}

/// Writes rows of one kind under the number of another.
struct Disguised(HistoryLine);

impl Row for Disguised {
    const KIND: u16 = 1;
    const NAME: &'static str = "disguised";
    fn times(&self) -> Option<(u64, u64)> {
        None
    }
    fn text_bytes(&self) -> usize {
        0
    }
    fn write(rows: &[Disguised], columns: &mut napreduce_history::ColumnsWriter) {
        columns.texts("job", rows.iter().map(|row| Some(row.0.text.as_str())));
    }
    fn read(_: &napreduce_history::Columns) -> Result<Vec<Disguised>, String> {
        Ok(Vec::new())
    }
}

#[test]
fn a_column_of_another_type_or_a_key_that_lacks_is_said() {
    let read = |rows: &[Disguised]| {
        let mut recording = RecordingWriter::begin(Vec::new()).expect("begun");
        recording.add(rows).expect("added");
        let bytes = recording.finish().expect("finished");
        let mut recording = RecordingReader::new(Cursor::new(bytes)).expect("a recording");
        assert_eq!(recording.all::<AttemptSummary>(), []);
        recording.remarks().join("; ")
    };
    let line = HistoryLine { at_millis: 0, text: "seven".to_owned() };
    let said = read(&[Disguised(line)]);
    assert!(said.contains("column job has the type text, not numbers"), "{said}");
}

/// Counts how often a file is read.
struct Counted {
    file: File,
    reads: u64,
}

impl Read for &mut Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        self.file.read(bytes)
    }
}

impl Seek for &mut Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn recording_with_a_hole_is_read_in_few_steps() {
    let (detail, mut bytes) = small();
    // As 400 million damaged frames of four bytes would look.
    bytes.truncate(bytes.len() - 16);
    let four_bytes = [4, 0, 0, 0, 9, 9, 1, 1, 1, 1, 0, 0, 0, 0];
    for tail in [Vec::new(), four_bytes.repeat(100_000)] {
        let mut file = tempfile::tempfile().expect("a file");
        io::Write::write_all(&mut file, &[&bytes[..], &tail].concat()).expect("written");
        file.set_len(6 << 30).expect("a hole");
        let mut counted = Counted { file, reads: 0 };
        let mut recording = RecordingReader::new(&mut counted).expect("what is whole");
        assert_eq!(recording.all::<AttemptSummary>(), detail.attempts);
        assert!(recording.remarks().iter().any(|remark| remark.contains("no valid trailer")));
        assert!(counted.reads < 1_000, "{} reads", counted.reads);
    }
}
