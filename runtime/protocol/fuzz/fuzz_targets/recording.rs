//! Fuzzes recordings of ended jobs: any bytes are refused with words, or their rows are read. Begin with real
//! ones (`DIR/coordinator/history/job_*.napt`): their checksums are put right after each mutation.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use napreduce_history::{RecordingReader, Row};
use napreduce_protocol::{
    AttemptSummary, HistoryLine, PartReport, PreemptionSummary, RestoreSummary, ResumeSummary,
};

const PREAMBLE_BYTES: usize = 12;
const HEADER_BYTES: usize = 10;

fuzz_target!(|bytes: &[u8]| {
    for recording in [bytes.to_vec(), with_right_checksums(bytes)] {
        let Ok(mut recording) = RecordingReader::new(Cursor::new(recording)) else { continue };
        read::<AttemptSummary>(&mut recording);
        read::<PreemptionSummary>(&mut recording);
        read::<ResumeSummary>(&mut recording);
        read::<RestoreSummary>(&mut recording);
        read::<HistoryLine>(&mut recording);
        read::<PartReport>(&mut recording);
    }
});

/// A frame at a time, as a page does.
fn read<T: Row>(recording: &mut RecordingReader<Cursor<Vec<u8>>>) {
    for frame in recording.frames().to_vec() {
        let _ = recording.read::<T>(&frame);
    }
    let _ = recording.page::<T>(1, 5);
    let _ = recording.window::<T>(1_000..=2_000, 5);
}

/// The frames, by their lengths: length, kind, checksum, payload.
fn with_right_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut recording = bytes.to_vec();
    let mut at = PREAMBLE_BYTES;
    while let Some(header) = recording.get(at..at.saturating_add(HEADER_BYTES)) {
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let begins = crc32c::crc32c(&header[..6]);
        let Some(payload) = recording.get(at + HEADER_BYTES..at + HEADER_BYTES + length) else { break };
        let checksum = crc32c::crc32c_append(begins, payload);
        recording[at + 6..at + HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        at += HEADER_BYTES + length;
    }
    recording
}
