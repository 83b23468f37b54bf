//! Commits: which files are moved, which are replaced, and which stay unchanged.

use std::os::unix::fs::symlink;

use super::super::intent::roll_forward;
use super::super::layout::SUCCESS;
use super::super::storage::script::Done;
use super::*;

#[test]
fn part_of_the_successful_attempt_is_committed() {
    let place = Place::new();
    let claim = place
        .take(&Disk::default(), FIRST)
        .expect("a free directory");
    let manifest = write_parts(&claim);
    committed(claim, &manifest);
    place.assert_committed();
}

#[test]
fn overwrite_removes_listed_files_and_names_of_parts() {
    let place = Place::new();
    place.fill();
    let claim = place
        .take(&Disk::default(), AGAIN)
        .expect("it may be overwritten");
    let manifest = write_parts(&claim);
    committed(claim, &manifest);
    let names = [
        "_SUCCESS",
        "notes.txt",
        "part-r-00000",
        "part-r-00001",
        "part-time-staff.csv",
    ];
    assert_eq!(place.names(), names);
    let files = place.files().expect("an output directory");
    assert_eq!(
        (files["part-r-00000"].as_str(), files["notes.txt"].as_str()),
        ("first", "foreign")
    );
}

#[test]
fn manifest_with_outside_paths_removes_nothing() {
    let place = Place::new();
    place.fill();
    let victim = place.folder.path().join("victim");
    fs::write(&victim, "mine").expect("written");
    let lists = r#"{"parts": [{"name": "../../victim"}, {"name": ".."}, {"name": "notes.txt/x"}]}"#;
    fs::write(place.file("_SUCCESS"), lists).expect("written");
    let claim = place
        .take(&Disk::default(), AGAIN)
        .expect("it may be overwritten");
    let manifest = write_parts(&claim);
    committed(claim, &manifest);
    assert!(victim.exists() && place.file("notes.txt").exists());
}

#[test]
fn directory_named_like_a_part_is_kept() {
    let place = Place::new();
    place.fill();
    let directory = place.file("part-r-00007");
    fs::create_dir_all(directory.join("within")).expect("made");
    let claim = place
        .take(&Disk::default(), AGAIN)
        .expect("it may be overwritten");
    let manifest = write_parts(&claim);
    committed(claim, &manifest);
    assert!(directory.join("within").exists() && place.file("_SUCCESS").exists());
}

#[test]
fn failed_cleanup_deletes_nothing() {
    let place = Place::new();
    place.fill();
    let mut claim = place
        .take(&Disk::default(), AGAIN)
        .expect("it may be overwritten");
    let manifest = write_parts(&claim);
    claim.commit(&manifest).expect("a commit");
    // A directory blocks the rename at the beginning of the cleanup.
    let name = super::super::layout::retired(1);
    fs::write(place.file(name.to_str().expect("text")), "in the way").expect("written");
    let trouble = claim.clean_up().expect_err("something is in the way");
    assert!(
        trouble.in_words(&place.out()).contains("_temporary"),
        "{trouble:?}"
    );
    let files = place.files().expect("an output directory");
    assert!(
        PARTS.iter().all(|(name, text)| files[*name] == *text) && files.contains_key("_SUCCESS")
    );
    assert_eq!(files["part-time-staff.csv"], "foreign");
}

#[test]
fn planted_link_is_not_followed() {
    let place = Place::new();
    place.fill();
    let victim = place.folder.path().join("victim");
    fs::write(&victim, "mine").expect("written");
    for name in ["_SUCCESS.unfinished", "part-r-00001"] {
        symlink(&victim, place.file(name)).expect("a link");
    }
    let claim = place
        .take(&Disk::default(), AGAIN)
        .expect("it may be overwritten");
    let manifest = write_parts(&claim);
    committed(claim, &manifest);
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "mine");
    assert_eq!(
        fs::read_to_string(place.file("part-r-00001")).expect("a file"),
        "second"
    );
    assert!(!place.file("_SUCCESS.unfinished").exists());
}

#[test]
fn linked_work_directory_is_refused() {
    let place = Place::new();
    fs::create_dir_all(place.out()).expect("made");
    fs::create_dir_all(place.folder.path().join("victim/deep")).expect("made");
    symlink("../../victim", place.file("_temporary")).expect("a link");
    let refused = place
        .take(&Disk::default(), AGAIN)
        .expect_err("a link is no work");
    assert_eq!(refused.exit_status(), 2, "{refused}");
    assert!(place.folder.path().join("victim/deep").exists());
}

#[test]
fn old_part_in_place_is_not_counted_as_moved() {
    let place = Place::new();
    place.fill();
    let mut claim = place
        .take(&Disk::default(), AGAIN)
        .expect("it may be overwritten");
    let manifest = write_parts(&claim);
    fs::remove_file(claim.paths().promoted(attempt(0, 2))).expect("removed");
    let before = place.files();
    let trouble = claim.commit(&manifest).expect_err("a part is missing");
    let words = trouble.in_words(&place.out());
    assert!(
        words.starts_with("cannot find a part of 5 bytes") && words.contains("part-r-00000.2"),
        "{words}"
    );
    assert_eq!(place.files(), before, "the old output is as it was");
}

#[test]
fn part_of_another_length_is_reported_before_the_commit() {
    let place = Place::new();
    place.fill();
    let mut claim = place
        .take(&Disk::default(), AGAIN)
        .expect("it may be overwritten");
    let manifest = write_parts(&claim);
    fs::write(claim.paths().promoted(attempt(0, 2)), "firs").expect("written");
    let before = place.files();
    let trouble = claim.commit(&manifest).expect_err("a part is too short");
    let words = trouble.in_words(&place.out());
    assert!(words.contains("part-r-00000.2"), "{words}");
    assert_eq!(place.files(), before, "the old output is as it was");
}

/// A power loss must not take back a part that the intent names, even if its task has not synced the directory.
#[test]
fn names_of_parts_are_synced_before_the_intent_is_recorded() {
    let place = Place::new();
    let (disk, script) = DiskScript::disk(&place.out(), None);
    let mut claim = place.take(&disk, FIRST).expect("a free directory");
    let manifest = write_parts(&claim);
    let before = script.done().len();
    claim.commit(&manifest).expect("a commit");
    let done = script.done();
    let committed = place.out().join(claim.paths().committed());
    let intent = place.out().join(claim.paths().intent());
    let synced = done[before..]
        .iter()
        .position(|done| *done == Done::SyncDirectory(committed.clone()));
    let recorded = done[before..]
        .iter()
        .position(|done| matches!(done, Done::Rename(_, to) if *to == intent));
    assert!(synced.is_some() && synced < recorded, "{done:#?}");
}

#[test]
fn missing_or_changed_moved_part_is_reported() {
    for text in [None, Some("changed")] {
        let place = Place::new();
        let mut claim = place
            .take(&Disk::default(), FIRST)
            .expect("a free directory");
        let mark = claim.mark();
        let manifest = write_parts(&claim);
        claim.commit(&manifest).expect("a commit");
        // As if it had died before _SUCCESS.
        let staged = place.out().join(claim.paths().staged_success());
        fs::rename(place.file("_SUCCESS"), staged).expect("moved");
        match text {
            Some(text) => fs::write(place.file("part-r-00000"), text).expect("written"),
            None => fs::remove_file(place.file("part-r-00000")).expect("removed"),
        }
        drop(claim);
        let trouble = place
            .resumed(mark)
            .commit(&manifest)
            .expect_err("a part is missing");
        let words = trouble.in_words(&place.out());
        assert!(
            words.starts_with("cannot find a part of 5 bytes") && words.contains("part-r-00000"),
            "{words}"
        );
        assert!(!place.file("_SUCCESS").exists());
    }
}

#[test]
fn directory_in_place_of_part_is_reported_first() {
    for name in ["part-r-00001", "_SUCCESS"] {
        let place = Place::new();
        place.fill();
        let mut claim = place
            .take(&Disk::default(), AGAIN)
            .expect("it may be overwritten");
        let manifest = write_parts(&claim);
        let _ = fs::remove_file(place.file(name));
        fs::create_dir(place.file(name)).expect("made");
        let before = place.files();
        let trouble = claim
            .commit(&manifest)
            .expect_err("a directory is in the way");
        assert!(trouble.in_words(&place.out()).contains(name), "{trouble:?}");
        assert_eq!(place.files(), before);
    }
}

#[test]
fn commit_without_claim_changes_nothing() {
    let place = Place::new();
    let mut claim = place
        .take(&Disk::default(), FIRST)
        .expect("a free directory");
    let manifest = write_parts(&claim);
    fs::rename(place.file("_temporary"), place.file("elsewhere")).expect("moved");
    fs::write(place.file("part-r-00000"), "of somebody").expect("written");
    fs::write(
        place.file("_SUCCESS"),
        r#"{"job": "job_0009", "claim": "00000000000000aa"}"#,
    )
    .expect("written");
    let before = place.files();
    let Err(Trouble::Taken { by }) = claim.commit(&manifest) else {
        panic!("it is taken")
    };
    assert_eq!(by, "job_0009 (claim 00000000000000aa)");
    let paths = claim.paths().clone();
    let trouble = roll_forward(claim.storage(), &paths, claim.mark().token)
        .expect_err("nothing can be moved");
    assert!(matches!(trouble, Trouble::Taken { .. }), "{trouble:?}");
    assert_eq!(place.files(), before);
    assert!(place.file(SUCCESS).exists());
}

#[test]
fn commit_refuses_to_replace_input_linked_meanwhile() {
    for linked in ["part-r-00000", "part-r-00009"] {
        let place = Place::new();
        let input = place.folder.path().join("input");
        fs::write(&input, "read by the job").expect("written");
        let place = place.reading(input.clone());
        place.fill();
        let mut claim = place
            .take(&Disk::default(), AGAIN)
            .expect("it may be overwritten");
        let manifest = write_parts(&claim);
        let _ = fs::remove_file(place.file(linked));
        fs::hard_link(&input, place.file(linked)).expect("linked");
        let before = place.files();
        let trouble = claim.commit(&manifest).expect_err("the job reads it");
        let words = trouble.in_words(&place.out());
        assert!(
            words.contains(linked) && words.contains("which the job reads"),
            "{words}"
        );
        assert_eq!(place.files(), before);
    }
}

#[test]
fn commit_without_overwrite_keeps_files_that_appeared() {
    for name in ["part-r-00001", "part-r-00009", "_SUCCESS"] {
        let place = Place::new();
        let mut claim = place
            .take(&Disk::default(), FIRST)
            .expect("a free directory");
        let manifest = write_parts(&claim);
        fs::write(place.file(name), "of another program").expect("written");
        let before = place.files();
        let trouble = claim
            .commit(&manifest)
            .expect_err("it is not to be overwritten");
        let words = trouble.in_words(&place.out());
        assert!(
            words.contains(name) && words.contains("appeared while the job ran"),
            "{words}"
        );
        assert_eq!(place.files(), before);
    }
}

#[test]
fn commit_replaces_success_that_is_no_regular_file() {
    for kind in ["link to a file", "link to nothing", "pipe"] {
        let place = Place::new();
        place.fill();
        let victim = place.folder.path().join("victim");
        fs::write(&victim, "stays").expect("written");
        fs::remove_file(place.file(SUCCESS)).expect("removed");
        match kind {
            "link to a file" => symlink(&victim, place.file(SUCCESS)).expect("linked"),
            "link to nothing" => symlink("nowhere", place.file(SUCCESS)).expect("linked"),
            _ => rustix::fs::mknodat(
                rustix::fs::CWD,
                place.file(SUCCESS),
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            )
            .expect("a pipe"),
        }
        let mut claim = place
            .take(&Disk::default(), AGAIN)
            .expect("it may be overwritten");
        let manifest = write_parts(&claim);
        claim
            .commit(&manifest)
            .unwrap_or_else(|trouble| panic!("{kind}: {trouble:?}"));
        claim.clean_up().expect("removed");
        assert!(
            fs::symlink_metadata(place.file(SUCCESS))
                .expect("there")
                .is_file(),
            "{kind}"
        );
        assert_eq!(fs::read_to_string(&victim).expect("read"), "stays");
    }
}
