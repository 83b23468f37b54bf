//! The journal after restarts, truncation and damage.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_local::world::disk::RealDisk;
use tempfile::TempDir;

use super::frame::CHAINED_HEAD_BYTES;
use super::{EngineRules, FsyncPolicy, Header, JOURNAL_VERSION, Journal, JournalError, Recovered};

fn header(journal: u64) -> Header {
    let version = JOURNAL_VERSION;
    let epoch_micros = journal * 1_000;
    Header {
        version,
        journal,
        epoch_micros,
        follows: None,
        rules: EngineRules::default(),
    }
}

fn open(directory: &Path) -> Result<(Journal, Recovered), JournalError> {
    Journal::open(Arc::new(RealDisk), directory, header(7), FsyncPolicy::Never)
}

fn entries(texts: &[&str]) -> Vec<Vec<u8>> {
    texts
        .iter()
        .map(|text| format!("{{{text}}}").into_bytes())
        .collect()
}

fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("napreduce-journal-")
        .tempdir()
        .expect("a temporary folder")
}

fn files(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory)
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn with_entries(directory: &Path, texts: &[&str]) -> PathBuf {
    let (mut journal, _) = open(directory).expect("opened");
    journal.append(&entries(texts)).expect("appended");
    directory.join("journal-00000001.log")
}

fn content(recovered: Recovered) -> String {
    recovered
        .snapshot
        .expect("a snapshot")
        .decode()
        .expect("what was written")
}

#[test]
fn appended_entries_survive_restart() {
    let folder = folder();
    with_entries(folder.path(), &["one", "two"]);
    let (mut journal, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.entries, entries(&["one", "two"]));
    assert!(recovered.snapshot.is_none() && recovered.remarks.is_empty());
    journal.append(&entries(&["three"])).expect("appended");
    drop(journal);
    let (journal, recovered) = Journal::open(
        Arc::new(RealDisk),
        folder.path(),
        header(99),
        FsyncPolicy::Always,
    )
    .expect("opened");
    assert_eq!(recovered.entries, entries(&["one", "two", "three"]));
    assert_eq!(
        (journal.header().journal, journal.header().epoch_micros),
        (7, 7_000),
        "the first one's identity"
    );
}

/// As if the lock file of the cluster directory had been removed.
#[test]
fn second_writer_is_refused_and_changes_nothing() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    let refused = |name: &str| {
        let before = files(folder.path());
        let own = format!(
            "{name} is in use by another coordinator (process {}); end that",
            std::process::id()
        );
        let error = open(folder.path()).expect_err("in use").to_string();
        assert!(error.contains(&own), "{error}");
        let error = Journal::check_unlocked(&RealDisk, folder.path())
            .expect_err("in use")
            .to_string();
        assert!(error.contains(&own), "{error}");
        assert_eq!(files(folder.path()), before);
    };
    refused("journal-00000001.log");
    journal.append(&entries(&["one"])).expect("appended");
    let compaction = journal.begin_compaction().expect("begun");
    refused("journal-00000002.log");
    journal.append(&entries(&["two"])).expect("appended");
    compaction.write(&"one").expect("written");
    journal
        .compact(&"one, two", EngineRules::default())
        .expect("compacted");
    refused("journal-00000003.log");
    journal.append(&entries(&["three"])).expect("appended");
    drop(journal);
    Journal::check_unlocked(&RealDisk, folder.path()).expect("free");
    let (_, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.entries, entries(&["three"]));
}

#[test]
fn snapshot_replaces_earlier_entries() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.append(&entries(&["one"])).expect("appended");
    journal
        .compact(&"all", EngineRules::default())
        .expect("compacted");
    journal.append(&entries(&["two"])).expect("appended");
    drop(journal);
    let (_, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.entries, entries(&["two"]));
    assert_eq!(content(recovered), "all");
    assert_eq!(
        files(folder.path()),
        ["journal-00000002.log", "snapshot-00000002.json"]
    );
}

#[test]
fn interrupted_compaction_loses_nothing() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.append(&entries(&["one"])).expect("appended");
    let before = fs::read(folder.path().join("journal-00000001.log")).expect("read");
    // Killed while writing the snapshot.
    fs::write(folder.path().join("snapshot-00000002.unfinished"), b"half").expect("written");
    drop(journal);
    let (mut journal, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.entries, entries(&["one"]));
    assert_eq!(files(folder.path()), ["journal-00000001.log"]);
    // Killed before the new journal was begun, or before the old one was removed.
    journal
        .compact(&"all", EngineRules::default())
        .expect("compacted");
    drop(journal);
    fs::remove_file(folder.path().join("journal-00000002.log")).expect("removed");
    fs::write(folder.path().join("journal-00000001.log"), before).expect("written");
    let (_, recovered) = open(folder.path()).expect("opened");
    assert!(
        recovered.entries.is_empty() && recovered.remarks.is_empty(),
        "{recovered:?}"
    );
    assert_eq!(content(recovered), "all");
    assert_eq!(
        files(folder.path()),
        ["journal-00000002.log", "snapshot-00000002.json"]
    );
}

/// The files that a coordinator leaves when it is killed between two steps of a background snapshot.
#[test]
fn background_snapshot_loses_nothing() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.append(&entries(&["one"])).expect("appended");
    let first = journal.begin_compaction().expect("begun");
    let reopened = |expected: &[&str], files_left: &[&str]| {
        let (journal, recovered) = open(folder.path()).expect("opened");
        assert_eq!(recovered.entries, entries(expected));
        assert!(
            recovered.remarks.is_empty() && !recovered.begun,
            "{recovered:?}"
        );
        let (_, read) = Journal::read(&RealDisk, folder.path())
            .expect("read")
            .expect("a journal");
        assert_eq!(read.entries, recovered.entries);
        assert_eq!(files(folder.path()), files_left);
        (journal, recovered)
    };
    drop(journal);
    let (mut journal, _) = reopened(&["one"], &["journal-00000001.log", "journal-00000002.log"]);
    journal.append(&entries(&["two"])).expect("appended");
    let second = journal.begin_compaction().expect("begun");
    journal.append(&entries(&["three"])).expect("appended");
    drop(journal);
    let three = [
        "journal-00000001.log",
        "journal-00000002.log",
        "journal-00000003.log",
    ];
    reopened(&["one", "two", "three"], &three);
    // Killed while the next file was begun.
    fs::write(folder.path().join("journal-00000004.log"), b"\x20\0\0").expect("written");
    let four = [&three[..], &["journal-00000004.log"]].concat();
    let (mut journal, _) = reopened(&["one", "two", "three"], &four);
    journal.append(&entries(&["four"])).expect("appended");
    drop(journal);
    first.write(&"one").expect("written");
    let after = [
        "journal-00000002.log",
        "journal-00000003.log",
        "journal-00000004.log",
    ];
    let (_, recovered) = reopened(
        &["two", "three", "four"],
        &[&after[..], &["snapshot-00000002.json"]].concat(),
    );
    assert_eq!(content(recovered), "one");
    second.write(&"one, two").expect("written");
    let left = [
        "journal-00000003.log",
        "journal-00000004.log",
        "snapshot-00000003.json",
    ];
    let (_, recovered) = reopened(&["three", "four"], &left);
    assert_eq!(content(recovered), "one, two");
}

#[test]
fn only_last_file_may_be_torn() {
    for (how, expected) in [
        ("torn", "but a later file continues it"),
        ("empty", "the file is empty, but a later"),
    ] {
        let folder = folder();
        let path = with_entries(folder.path(), &["one", "two"]);
        let (mut journal, _) = open(folder.path()).expect("opened");
        journal.begin_compaction().expect("begun");
        journal.append(&entries(&["three"])).expect("appended");
        drop(journal);
        let bytes = fs::read(&path).expect("read");
        let kept = if how == "torn" { bytes.len() - 1 } else { 0 };
        fs::write(&path, &bytes[..kept]).expect("written");
        let error = open(folder.path()).expect_err("damaged").to_string();
        assert!(
            error.contains("journal-00000001.log is damaged") && error.contains(expected),
            "{error}"
        );
    }
    let folder = folder();
    let path = with_entries(folder.path(), &["one"]);
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.begin_compaction().expect("begun");
    fs::remove_file(path).expect("removed");
    let error = open(folder.path()).expect_err("a gap").to_string();
    assert!(
        error.contains("snapshot-00000002.json is missing"),
        "{error}"
    );
}

/// A snapshot of several segments, truncated and changed at many positions.
#[test]
fn snapshot_is_read_as_written_or_refused() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    let long: Vec<String> = (0..200_000)
        .map(|number| format!("entry {number}"))
        .collect();
    journal
        .compact(&long, EngineRules::default())
        .expect("compacted");
    drop(journal);
    let path = folder.path().join("snapshot-00000002.json");
    let whole = fs::read(&path).expect("read");
    assert!(whole.len() > 2 << 20, "several segments");
    let decoded = || -> Result<Vec<String>, JournalError> {
        open(folder.path())
            .and_then(|(_, recovered)| recovered.snapshot.expect("a snapshot").decode())
    };
    assert_eq!(decoded().expect("whole"), long);
    let segment = 1 << 20;
    for at in [
        0,
        7,
        20,
        500,
        segment - 1,
        segment,
        segment + 200,
        whole.len() - 2,
    ] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        for damaged in [&whole[..at], &flipped] {
            fs::write(&path, damaged).expect("written");
            let error = decoded().expect_err("damaged").to_string();
            assert!(
                error.contains("snapshot-00000002.json is damaged at byte"),
                "{at}: {error}"
            );
        }
    }
    fs::write(&path, [&whole[..], b"x"].concat()).expect("written");
    assert!(
        decoded()
            .expect_err("longer")
            .to_string()
            .contains("data follows its content")
    );
}

#[test]
fn snapshot_of_earlier_program_is_refused() {
    let folder = folder();
    let mut bytes = Vec::new();
    super::frame::push(&mut bytes, br#"{"version":6,"journal":7}"#).expect("short");
    fs::write(folder.path().join("snapshot-00000002.msgpack"), bytes).expect("written");
    let error = open(folder.path())
        .expect_err("another version")
        .to_string();
    assert!(
        error.contains("snapshot-00000002.msgpack has version 6"),
        "{error}"
    );
    assert_eq!(files(folder.path()), ["snapshot-00000002.msgpack"]);
}

#[test]
fn torn_tail_is_cut_at_any_byte() {
    let whole = {
        let folder = folder();
        fs::read(with_entries(folder.path(), &["one", "two"])).expect("read")
    };
    let last = whole.len() - entries(&["two"])[0].len() - CHAINED_HEAD_BYTES;
    for length in last + 1..whole.len() {
        let folder = folder();
        let path = folder.path().join("journal-00000001.log");
        fs::write(&path, &whole[..length]).expect("written");
        let (mut journal, recovered) = open(folder.path()).expect("opened");
        assert_eq!(recovered.entries, entries(&["one"]));
        let remark = &recovered.remarks[0];
        assert!(remark.contains(&path.display().to_string()), "{remark}");
        let left_out = format!(
            "dropped its last {} bytes, from byte {last} on",
            length - last
        );
        assert!(remark.contains(&left_out), "{remark}");
        journal.append(&entries(&["three"])).expect("appended");
        drop(journal);
        assert_eq!(
            open(folder.path()).expect("opened").1.entries,
            entries(&["one", "three"])
        );
    }
}

#[test]
fn damage_in_middle_is_refused_with_offset() {
    let folder = folder();
    let path = with_entries(folder.path(), &["one", "two"]);
    let mut bytes = fs::read(&path).expect("read");
    let last = bytes.len() - entries(&["two"])[0].len() - CHAINED_HEAD_BYTES;
    bytes[last - 1] ^= 1;
    fs::write(&path, bytes).expect("written");
    let error = open(folder.path()).expect_err("damaged").to_string();
    let first = last - entries(&["one"])[0].len() - CHAINED_HEAD_BYTES;
    assert!(
        error.contains(&format!("{} is damaged at byte {first}", path.display())),
        "{error}"
    );
}

#[test]
fn damaged_snapshot_is_refused() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal
        .compact(&"everything", EngineRules::default())
        .expect("compacted");
    drop(journal);
    let path = folder.path().join("snapshot-00000002.json");
    let mut bytes = fs::read(&path).expect("read");
    *bytes.last_mut().expect("not empty") ^= 1;
    fs::write(&path, bytes).expect("written");
    let (_, recovered) = open(folder.path()).expect("its header is whole");
    let error = recovered
        .snapshot
        .expect("a snapshot")
        .decode::<String>()
        .expect_err("damaged")
        .to_string();
    assert!(
        error.contains("snapshot-00000002.json is damaged"),
        "{error}"
    );
}

#[test]
fn missing_snapshot_is_refused_with_remedy() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.append(&entries(&["one"])).expect("appended");
    for _ in 0..2 {
        journal
            .compact(&"all", EngineRules::default())
            .expect("compacted");
    }
    journal.append(&entries(&["two"])).expect("appended");
    fs::remove_file(folder.path().join("snapshot-00000003.json")).expect("removed");
    let check = || {
        let error = open(folder.path())
            .expect_err("the snapshot is missing")
            .to_string();
        assert!(
            error.contains("snapshot-00000003.json is missing"),
            "{error}"
        );
        assert!(
            error.contains("see `nap journal check` and `nap journal repair`"),
            "{error}"
        );
    };
    check();
    // The journal does not continue from an older snapshot.
    fs::write(folder.path().join("snapshot-00000002.json"), b"anything").expect("written");
    check();
    assert_eq!(
        files(folder.path()),
        ["journal-00000003.log", "snapshot-00000002.json"],
        "nothing is touched"
    );
}

#[test]
fn empty_or_removed_journal_is_reported() {
    let emptied = |path: &Path| fs::write(path, b"").expect("written");
    let removed = |path: &Path| fs::remove_file(path).expect("removed");
    for (how, damage) in [("empty", &emptied as &dyn Fn(&Path)), ("missing", &removed)] {
        let folder = folder();
        let first = with_entries(folder.path(), &["one"]);
        if how == "empty" {
            damage(&first);
            let (mut journal, recovered) = open(folder.path()).expect("opened");
            assert!(
                recovered.begun && recovered.remarks[0].contains("is empty: its jobs are lost"),
                "{recovered:?}"
            );
            journal.append(&entries(&["one"])).expect("appended");
            drop(journal);
        }
        let (mut journal, recovered) = open(folder.path()).expect("opened");
        assert!(
            !recovered.begun && recovered.remarks.is_empty(),
            "{recovered:?}"
        );
        journal
            .compact(&"all", EngineRules::default())
            .expect("compacted");
        journal.append(&entries(&["two"])).expect("appended");
        drop(journal);
        damage(&folder.path().join("journal-00000002.log"));
        let (_, recovered) = open(folder.path()).expect("opened");
        assert!(!recovered.begun && recovered.snapshot.is_some());
        let expected =
            format!("journal-00000002.log is {how}: events since the last snapshot are lost");
        assert!(recovered.remarks[0].contains(&expected), "{recovered:?}");
        assert_eq!(
            open(folder.path()).expect("opened").1.remarks,
            [""; 0],
            "once"
        );
    }
}

#[test]
fn missing_repeated_or_moved_entry_is_refused() {
    let folder = folder();
    let path = with_entries(folder.path(), &["one", "two", "three"]);
    let whole = fs::read(&path).expect("read");
    let frame_bytes = |entry: &str| CHAINED_HEAD_BYTES + entries(&[entry])[0].len();
    let third = whole.len() - frame_bytes("three");
    let second = third - frame_bytes("two");
    let [before, two, three] = [&whole[..second], &whole[second..third], &whole[third..]];
    for changed in [
        [before, three, &[]].concat(),
        [before, two, two].concat(),
        [before, three, two].concat(),
    ] {
        fs::write(&path, changed).expect("written");
        let error = open(folder.path()).expect_err("damaged").to_string();
        assert!(
            error.contains("entries are missing, repeated or in another order"),
            "{error}"
        );
    }
}

#[test]
fn journal_of_other_version_is_refused() {
    let folder = folder();
    let path = with_entries(folder.path(), &[]);
    let mut bytes = Vec::new();
    super::frame::push(&mut bytes, br#"{"version":12,"news":true}"#).expect("short");
    fs::write(path, bytes).expect("written");
    let error = open(folder.path())
        .expect_err("another version")
        .to_string();
    assert!(
        error.contains(
            "has version 12, but this program reads versions 10 to 11; finish its jobs with"
        ),
        "{error}"
    );
}

/// A journal of version 10: its frames have no settled lengths.
fn version_10(texts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Header {
        version: 10,
        ..header(7)
    };
    let text = serde_json::to_vec(&header).expect("JSON");
    let mut previous = super::frame::push(&mut bytes, &text).expect("short");
    for entry in entries(texts) {
        let mut sum = crc32c::crc32c(&previous.to_le_bytes());
        sum = crc32c::crc32c_append(sum, &entry);
        let length = u32::try_from(entry.len()).expect("short");
        for number in [length, previous, sum] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&entry);
        previous = sum;
    }
    bytes
}

#[test]
fn journal_of_version_10_is_continued_in_next_file() {
    let folder = folder();
    let first = folder.path().join("journal-00000001.log");
    let whole = version_10(&["one", "two"]);
    let mut torn = whole.clone();
    torn.extend_from_slice(&[9, 0, 0]);
    fs::write(&first, torn).expect("written");
    let (mut journal, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.entries, entries(&["one", "two"]));
    assert!(
        recovered.remarks[0].contains("dropped its last 3 bytes"),
        "{recovered:?}"
    );
    assert_eq!(journal.header().version, JOURNAL_VERSION);
    journal.append(&entries(&["three"])).expect("appended");
    drop(journal);
    assert_eq!(fs::read(&first).expect("read"), whole);
    let (_, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.entries, entries(&["one", "two", "three"]));
    assert_eq!(
        files(folder.path()),
        ["journal-00000001.log", "journal-00000002.log"]
    );
    let damage = whole.len() - 40;
    let mut damaged = whole;
    damaged[damage] ^= 1;
    fs::write(&first, damaged).expect("written");
    let error = open(folder.path()).expect_err("damaged").to_string();
    assert!(
        error.contains("journal-00000001.log is damaged at byte"),
        "{error}"
    );
}

/// An operator may keep copies beside the journal.
#[test]
fn files_of_other_names_are_left_alone() {
    let folder = folder();
    with_entries(folder.path(), &["one"]);
    for name in [
        "snapshot-00000002.json.bak",
        "snapshot-old",
        "journal-00000001.log~",
    ] {
        fs::write(folder.path().join(name), b"anything").expect("written");
    }
    let (mut journal, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.entries, entries(&["one"]));
    journal
        .compact(&"all", EngineRules::default())
        .expect("compacted");
    assert_eq!(
        files(folder.path()),
        [
            "journal-00000001.log~",
            "journal-00000002.log",
            "snapshot-00000002.json",
            "snapshot-00000002.json.bak",
            "snapshot-old"
        ]
    );
}

#[test]
fn unfinished_first_file_is_replaced() {
    let folder = folder();
    fs::write(folder.path().join("journal-00000001.log"), b"\x20\0\0").expect("written");
    let (_, recovered) = open(folder.path()).expect("opened");
    assert!(recovered.entries.is_empty() && recovered.begun);
}
