//! Truncated, changed and foreign recordings: readers get original rows or a remark.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use napreduce_history::{HistoryStore, RecordedRows, RecordingWriter};
use napreduce_protocol::JobDetail;
use proptest::collection::vec;
use proptest::prelude::*;

use super::samples::{Scene, job};

/// Builds a recording of four members: attempts, events, attempts, preemptions.
fn small() -> (JobDetail, Vec<u8>) {
    let mut detail = job(5, 4_000).detail;
    detail.attempts.truncate(12);
    detail.events.truncate(3);
    detail.preemptions.truncate(2);
    assert_eq!(
        (detail.events.len(), detail.preemptions.len()),
        (3, 2),
        "the seed must give these"
    );
    let mut recording = RecordingWriter::new(Vec::new());
    recording
        .add("attempt", &detail.attempts[..6])
        .expect("added");
    recording.flush().expect("flushed");
    recording.add("event", &detail.events).expect("added");
    recording.flush().expect("flushed");
    recording
        .add("attempt", &detail.attempts[6..])
        .expect("added");
    recording.flush().expect("flushed");
    recording
        .add("preemption", &detail.preemptions)
        .expect("added");
    (detail, recording.finish().expect("finished"))
}

/// Checks that all rows read are original; returns whether they are complete.
fn check(detail: &JobDetail, bytes: &[u8], what: &str) -> bool {
    let Ok(rows) = RecordedRows::parse(bytes) else {
        return false;
    };
    let halves = [
        &[][..],
        &detail.attempts[..6],
        &detail.attempts[6..],
        &detail.attempts,
    ];
    assert!(
        halves.contains(&&rows.attempts[..]),
        "{what}: invented attempts: {:?}",
        rows.attempts
    );
    assert!(
        rows.events.is_empty() || rows.events == detail.events,
        "{what}: {:?}",
        rows.events
    );
    let preemptions = &rows.preemptions;
    assert!(
        preemptions.is_empty() || *preemptions == detail.preemptions,
        "{what}: {preemptions:?}"
    );
    let whole = rows.attempts.len() == 12 && !rows.events.is_empty() && !preemptions.is_empty();
    assert!(
        whole || !rows.remarks.is_empty(),
        "{what}: rows are lost without a remark"
    );
    whole
}

#[test]
fn truncated_file_gives_whole_members_and_a_remark() {
    let (detail, bytes) = small();
    assert!(check(&detail, &bytes, "whole"));
    for length in 0..bytes.len() {
        assert!(!check(
            &detail,
            &bytes[..length],
            &format!("cut at {length}")
        ));
    }
}

#[test]
fn flipped_bit_gives_original_rows_or_a_remark() {
    let (detail, bytes) = small();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << bit;
            check(&detail, &damaged, &format!("bit {bit} of byte {place}"));
        }
    }
}

#[test]
fn damaged_member_costs_no_other_rows() {
    let (detail, bytes) = small();
    let starts: Vec<usize> = (0..bytes.len() - 2)
        .filter(|at| bytes[*at..].starts_with(&[0x1f, 0x8b, 8]))
        .collect();
    let mut damaged = bytes.clone();
    damaged[starts[1]..starts[2]].fill(0xff);
    let rows = RecordedRows::parse(&damaged).expect("a recording");
    assert_eq!((rows.attempts, rows.events.len()), (detail.attempts, 0));
    assert_eq!(rows.preemptions, detail.preemptions);
    let place = format!("dropped rows: damaged gzip data at byte {}", starts[1]);
    assert!(
        rows.remarks.len() == 1 && rows.remarks[0].starts_with(&place),
        "{:?}",
        rows.remarks
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Changed text under valid gzip checksums is harmless.
    #[test]
    fn changed_text_is_harmless(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let (_, bytes) = small();
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut text).expect("gzip");
        for (place, byte) in changes {
            let place = place.index(text.len());
            text[place] = byte;
        }
        if let Ok(rows) = RecordedRows::parse(&gzip(&text)) {
            prop_assert!(rows.attempts.len() <= 12 && rows.events.len() <= 3 && rows.preemptions.len() <= 2);
        }
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::fast());
    member.write_all(text).expect("written");
    member.finish().expect("finished")
}

const HEADER: &str = "{\"recording\":{\"version\":2}}\n";
const EVENT: &str = "{\"event\":{\"at_millis\":4,\"text\":\"a\"}}\n";

fn events_and_remarks(text: &str) -> (usize, String) {
    let rows = RecordedRows::parse(&gzip(text.as_bytes())).expect("a recording");
    (rows.events.len(), rows.remarks.join("; "))
}

#[test]
fn unknown_kinds_and_fields_are_skipped() {
    let later = "{\"weather\":[1]}\n{\"event\":{\"at_millis\":5,\"text\":\"b\",\"mood\":1}}\n";
    let text = format!("{HEADER}{EVENT}{later}{{\"end\":{{\"rows\":3}}}}\n");
    assert_eq!(events_and_remarks(&text), (2, String::new()));
}

#[test]
fn rows_without_a_field_are_reported() {
    let text =
        format!("{HEADER}{EVENT}{{\"event\":{{\"at_millis\":5}}}}\n{{\"end\":{{\"rows\":2}}}}\n");
    let (events, remarks) = events_and_remarks(&text);
    assert!(
        events == 1 && remarks.contains("row 2: missing field `text`"),
        "{remarks}"
    );
}

#[test]
fn rows_lost_between_whole_members_are_reported() {
    let found = events_and_remarks(&format!("{HEADER}{EVENT}{{\"end\":{{\"rows\":7}}}}\n"));
    assert_eq!(found, (1, "1 of 7 rows".to_owned()));
    let (events, remarks) = events_and_remarks(&format!("{HEADER}{EVENT}"));
    assert!(events == 1 && remarks.contains("no end line"), "{remarks}");
}

#[test]
fn other_files_and_versions_are_rejected() {
    let error = |bytes: &[u8]| {
        RecordedRows::parse(bytes)
            .expect_err("rejected")
            .to_string()
    };
    assert!(error(b"").contains("not a recording"));
    assert!(error(HEADER.as_bytes()).contains("not a recording"));
    assert!(error(&gzip(EVENT.as_bytes())).contains("not a recording"));
    assert_eq!(
        error(&gzip(b"{\"recording\":{\"version\":9}}")),
        "version 9; this program reads version 2"
    );
}

#[test]
fn member_above_the_size_limit_is_dropped() {
    let members = [
        gzip(HEADER.as_bytes()),
        gzip(&vec![b' '; (64 << 20) + 1]),
        gzip(EVENT.as_bytes()),
    ];
    let rows = RecordedRows::parse(&members.concat()).expect("a recording");
    assert_eq!(rows.events.len(), 1);
    assert!(
        rows.remarks[0].contains("more than 67108864 bytes of text"),
        "{:?}",
        rows.remarks
    );
}

#[test]
fn sparse_recording_is_rejected_before_it_takes_memory() {
    let scene = Scene::new();
    let history = scene.open();
    history.add(&job(1, 5)).expect("written");
    let file = fs::File::options()
        .write(true)
        .open(scene.path("job_0001.jsonl.gz"))
        .expect("a file");
    file.set_len(6 << 30).expect("a hole");
    let read = history
        .read(job(1, 5).detail.summary.job)
        .expect("there")
        .expect("its head is whole");
    assert!(
        read.detail.events[0]
            .text
            .contains("it has more than 268435456 bytes"),
        "{:?}",
        read.detail.events
    );
}
