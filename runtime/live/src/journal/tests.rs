//! The journal over restarts, cuts and damage.
//!
//! Owns the tests of whole directories; frames are tested beside their code.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{EngineRules, FsyncPolicy, Header, JOURNAL_VERSION, Journal, JournalError, Recovered};

fn header(journal: u64) -> Header {
    let (version, epoch_micros) = (JOURNAL_VERSION, journal * 1_000);
    Header { version, journal, epoch_micros, rules: EngineRules::default() }
}

fn open(directory: &Path) -> Result<(Journal, Recovered), JournalError> {
    Journal::open(directory, header(7), FsyncPolicy::Never)
}

fn entries(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| format!("{{{text}}}").into_bytes()).collect()
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("napreduce-journal-").tempdir().expect("a temporary folder")
}

fn files(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).expect("listed").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn with_entries(directory: &Path, texts: &[&str]) -> PathBuf {
    let (mut journal, _) = open(directory).expect("opened");
    journal.append(&entries(texts)).expect("appended");
    directory.join("journal-00000001.log")
}

#[test]
fn what_was_appended_is_there_after_a_restart() {
    let folder = folder();
    with_entries(folder.path(), &["one", "two"]);
    let (mut journal, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.entries, entries(&["one", "two"]));
    assert!(recovered.snapshot.is_none() && recovered.remarks.is_empty());
    journal.append(&entries(&["three"])).expect("appended");
    let (journal, recovered) = Journal::open(folder.path(), header(99), FsyncPolicy::Always).expect("opened");
    assert_eq!(recovered.entries, entries(&["one", "two", "three"]));
    assert_eq!(
        (journal.header().journal, journal.header().epoch_micros),
        (7, 7_000),
        "the first one's identity"
    );
}

#[test]
fn a_snapshot_takes_the_place_of_what_was_before() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.append(&entries(&["one"])).expect("appended");
    journal.compact(b"{all}", EngineRules::default()).expect("compacted");
    journal.append(&entries(&["two"])).expect("appended");
    let (_, recovered) = open(folder.path()).expect("opened");
    assert_eq!(recovered.snapshot.as_deref(), Some(&b"{all}"[..]));
    assert_eq!(recovered.entries, entries(&["two"]));
    assert_eq!(files(folder.path()), ["journal-00000002.log", "snapshot-00000002.json"]);
}

#[test]
fn a_compaction_that_was_cut_short_at_any_step_loses_nothing() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.append(&entries(&["one"])).expect("appended");
    let before = fs::read(folder.path().join("journal-00000001.log")).expect("read");
    // Died while writing the snapshot.
    fs::write(folder.path().join("snapshot-00000002.unfinished"), b"half").expect("written");
    assert_eq!(open(folder.path()).expect("opened").1.entries, entries(&["one"]));
    assert_eq!(files(folder.path()), ["journal-00000001.log"]);
    // Died before the new journal was begun, or before the old one was removed.
    journal.compact(b"{all}", EngineRules::default()).expect("compacted");
    fs::remove_file(folder.path().join("journal-00000002.log")).expect("removed");
    fs::write(folder.path().join("journal-00000001.log"), before).expect("written");
    let (_, recovered) = open(folder.path()).expect("opened");
    assert_eq!((recovered.snapshot.as_deref(), recovered.entries.len()), (Some(&b"{all}"[..]), 0));
    assert!(recovered.remarks.is_empty(), "{recovered:?}");
    assert_eq!(files(folder.path()), ["journal-00000002.log", "snapshot-00000002.json"]);
}

#[test]
fn a_torn_tail_is_cut_and_named_at_whatever_byte() {
    let whole = {
        let folder = folder();
        fs::read(with_entries(folder.path(), &["one", "two"])).expect("read")
    };
    let last = whole.len() - entries(&["two"])[0].len() - 8;
    for length in last + 1..whole.len() {
        let folder = folder();
        let path = folder.path().join("journal-00000001.log");
        fs::write(&path, &whole[..length]).expect("written");
        let (mut journal, recovered) = open(folder.path()).expect("opened");
        assert_eq!(recovered.entries, entries(&["one"]));
        let remark = &recovered.remarks[0];
        assert!(remark.contains(&path.display().to_string()), "{remark}");
        assert!(remark.contains(&format!("cut {} bytes at byte {last}", length - last)), "{remark}");
        journal.append(&entries(&["three"])).expect("appended");
        assert_eq!(open(folder.path()).expect("opened").1.entries, entries(&["one", "three"]));
    }
}

#[test]
fn damage_in_the_middle_is_refused_with_its_place() {
    let folder = folder();
    let path = with_entries(folder.path(), &["one", "two"]);
    let mut bytes = fs::read(&path).expect("read");
    let last = bytes.len() - entries(&["two"])[0].len() - 8;
    bytes[last - 1] ^= 1;
    fs::write(&path, bytes).expect("written");
    let error = open(folder.path()).expect_err("damaged").to_string();
    let first = last - entries(&["one"])[0].len() - 8;
    assert!(error.contains(&format!("{} is damaged at byte {first}", path.display())), "{error}");
}

#[test]
fn a_damaged_snapshot_is_refused() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.compact(b"{everything}", EngineRules::default()).expect("compacted");
    let path = folder.path().join("snapshot-00000002.json");
    let mut bytes = fs::read(&path).expect("read");
    *bytes.last_mut().expect("not empty") ^= 1;
    fs::write(&path, bytes).expect("written");
    let error = open(folder.path()).expect_err("damaged").to_string();
    assert!(error.contains("snapshot-00000002.json is damaged"), "{error}");
}

#[test]
fn a_missing_snapshot_is_refused_with_a_way_out() {
    let folder = folder();
    let (mut journal, _) = open(folder.path()).expect("opened");
    journal.append(&entries(&["one"])).expect("appended");
    for _ in 0..2 {
        journal.compact(b"{all}", EngineRules::default()).expect("compacted");
    }
    journal.append(&entries(&["two"])).expect("appended");
    fs::remove_file(folder.path().join("snapshot-00000003.json")).expect("removed");
    let check = || {
        let error = open(folder.path()).expect_err("the snapshot is missing").to_string();
        assert!(error.contains("snapshot-00000003.json is missing"), "{error}");
        assert!(error.contains(&format!("move {} away", folder.path().display())), "{error}");
    };
    check();
    // An older one is not what the journal goes on from.
    fs::write(folder.path().join("snapshot-00000002.json"), b"anything").expect("written");
    check();
    assert_eq!(
        files(folder.path()),
        ["journal-00000003.log", "snapshot-00000002.json"],
        "nothing is touched"
    );
}

#[test]
fn an_empty_or_removed_journal_is_said() {
    let emptied = |path: &Path| fs::write(path, b"").expect("written");
    let removed = |path: &Path| fs::remove_file(path).expect("removed");
    for (how, damage) in [("empty", &emptied as &dyn Fn(&Path)), ("missing", &removed)] {
        let folder = folder();
        let first = with_entries(folder.path(), &["one"]);
        if how == "empty" {
            damage(&first);
            let (mut journal, recovered) = open(folder.path()).expect("opened");
            assert!(
                recovered.begun && recovered.remarks[0].contains("was empty, and is begun anew"),
                "{recovered:?}"
            );
            journal.append(&entries(&["one"])).expect("appended");
        }
        let (mut journal, recovered) = open(folder.path()).expect("opened");
        assert!(!recovered.begun && recovered.remarks.is_empty(), "{recovered:?}");
        journal.compact(b"{all}", EngineRules::default()).expect("compacted");
        journal.append(&entries(&["two"])).expect("appended");
        damage(&folder.path().join("journal-00000002.log"));
        let (_, recovered) = open(folder.path()).expect("opened");
        assert!(!recovered.begun && recovered.snapshot.is_some());
        let expected =
            format!("journal-00000002.log is {how}: what has happened since the last snapshot is forgotten");
        assert!(recovered.remarks[0].contains(&expected), "{recovered:?}");
        assert_eq!(open(folder.path()).expect("opened").1.remarks, [""; 0], "once");
    }
}

#[test]
fn another_version_is_refused() {
    let folder = folder();
    let path = with_entries(folder.path(), &[]);
    let mut bytes = Vec::new();
    super::frame::push(&mut bytes, br#"{"version":9,"news":true}"#).expect("short");
    fs::write(path, bytes).expect("written");
    let error = open(folder.path()).expect_err("another version").to_string();
    assert!(error.contains("has version 9, and this program writes 3; let the jobs end with"), "{error}");
}

#[test]
fn a_journal_that_was_not_even_begun_is_begun_again() {
    let folder = folder();
    fs::write(folder.path().join("journal-00000001.log"), b"\x20\0\0").expect("written");
    let (_, recovered) = open(folder.path()).expect("opened");
    assert!(recovered.entries.is_empty() && recovered.begun);
}
