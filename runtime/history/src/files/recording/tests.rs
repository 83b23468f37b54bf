//! Frames made by hand, with right checksums: what they claim is checked before it is allocated or believed.
//!
//! Owns lies about lengths, rows and order. Damage that checksums find is tested from outside.

use std::io::Cursor;

use napreduce_protocol::HistoryLine;

use super::trailer::{self, RecordedFrame};
use super::*;

/// A frame around a payload as it is.
fn frame_of(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short");
    let begins = [&length.to_le_bytes()[..], &kind.to_le_bytes()].concat();
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&begins), payload);
    [&begins[..], &checksum.to_le_bytes(), payload].concat()
}

/// A payload that says how long its columns are.
fn payload(raw: u32, columns: &[u8]) -> Vec<u8> {
    [&raw.to_le_bytes()[..], &lz4_flex::block::compress(columns)].concat()
}

/// Columns with this description.
fn columns(description: &str, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(description.len()).expect("it is short");
    [&length.to_le_bytes()[..], description.as_bytes(), bytes].concat()
}

fn whole(columns: &[u8]) -> Vec<u8> {
    frame_of(HistoryLine::KIND, &payload(u32::try_from(columns.len()).expect("it is short"), columns))
}

/// A file of frames, with a trailer that says this of them.
fn file(frames: &[Vec<u8>], said: &[RecordedFrame]) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &RECORDING_VERSION.to_le_bytes(), &frames.concat()].concat();
    let offset = bytes.len() as u64;
    frame::write(&mut bytes, TRAILER, trailer::write(said)).expect("written");
    [&bytes[..], &offset.to_le_bytes(), &MAGIC_END].concat()
}

/// What is said of a file with this one frame, of which the trailer says that it has so many rows of events.
fn said_of(frame: Vec<u8>, rows: u64) -> String {
    let said = RecordedFrame { kind: HistoryLine::KIND, offset: PREAMBLE_BYTES, rows, times: None };
    let bytes = file(&[frame], &[said]);
    let mut recording = RecordingReader::new(Cursor::new(bytes)).expect("a recording");
    assert_eq!(recording.all::<HistoryLine>(), []);
    recording.remarks().join("; ")
}

#[track_caller]
fn check_said(frame: Vec<u8>, rows: u64, expected: &str) {
    let said = said_of(frame, rows);
    assert!(said.contains(expected), "{said}");
}

const EVENT: &str = r#"{"rows":1,"columns":[{"name":"at_millis","type":"difference","bytes":1}]}"#;

#[test]
fn lengths_that_lie_are_refused() {
    let good = columns(EVENT, &[8]);
    let length = u32::try_from(good.len()).expect("it is short");
    check_said(frame_of(HistoryLine::KIND, &payload(60 << 20, &good)), 1, "more than it can have");
    check_said(frame_of(HistoryLine::KIND, &payload(u32::MAX, &good)), 1, "more than it can have");
    check_said(frame_of(HistoryLine::KIND, &payload(length + 1, &good)), 1, "and says");
    check_said(frame_of(HistoryLine::KIND, &payload(length - 1, &good)), 1, "damaged");
    check_said(frame_of(HistoryLine::KIND, b"abc"), 1, "it is cut");
    let mut long = whole(&good);
    long[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    check_said(long, 1, "its length is wrong");
}

#[test]
fn descriptions_that_lie_are_refused() {
    let described = |description: &str, bytes: &[u8]| whole(&columns(description, bytes));
    check_said(described("{", &[]), 1, "its description makes no sense");
    check_said(whole(&[255, 255, 255, 255, 1]), 1, "its description is cut");
    check_said(
        described(&EVENT.replace("\"rows\":1", "\"rows\":99999"), &[8]),
        99_999,
        "more than the 16384",
    );
    check_said(
        described(&EVENT.replace("\"bytes\":1", "\"bytes\":9"), &[8]),
        1,
        "its column at_millis is cut",
    );
    let most = EVENT.replace("\"bytes\":1", "\"bytes\":18446744073709551615");
    check_said(described(&most, &[8]), 1, "its column at_millis is cut");
    check_said(described(EVENT, &[0x80]), 1, "too few or too many bytes");
    check_said(
        described(&EVENT.replace("\"bytes\":1", "\"bytes\":2"), &[8, 8]),
        1,
        "too few or too many bytes",
    );
    check_said(described(&EVENT.replace("at_millis", "else"), &[8]), 1, "its rows lack at_millis");
    let text = EVENT.replace("}]", r#"},{"name":"text","type":"text","bytes":2}]"#);
    check_said(described(&text, &[8, 9, b'a']), 1, "its column text has too few");
    check_said(described(&text, &[8, 1, 0xff]), 1, "invalid utf-8");
    check_said(described(EVENT, &[8]), 2, "the trailer says something else of it");
}

#[test]
fn a_trailer_that_lies_is_not_believed() {
    let good = whole(&columns(EVENT, &[8]));
    let said = |offset, rows| RecordedFrame { kind: HistoryLine::KIND, offset, rows, times: None };
    let read = |said: &[RecordedFrame]| {
        let mut recording =
            RecordingReader::new(Cursor::new(file(std::slice::from_ref(&good), said))).expect("a recording");
        (recording.all::<HistoryLine>().len(), recording.remarks().join("; "))
    };
    assert_eq!(read(&[said(PREAMBLE_BYTES, 1)]), (1, String::new()));
    let (rows, remark) = read(&[said(u64::MAX, 1)]);
    assert!(rows == 0 && remark.contains("it is cut"), "{remark}");
    let (rows, remark) = read(&[said(PREAMBLE_BYTES, u64::MAX)]);
    assert!(rows == 0 && remark.contains("too many at once"), "{remark}");
    let (rows, remark) = read(&[said(PREAMBLE_BYTES, 1), said(PREAMBLE_BYTES, 1)]);
    assert!(rows == 1 && remark.contains("no valid trailer"), "a frame is read once: {remark}");
}
