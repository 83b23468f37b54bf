//! Claims of a directory: by living and dead processes, other hosts, and repeated submissions.

use super::super::backend::OutputBackend;
use super::super::layout::{claim_in, retired, staged};
use super::super::record::ClaimRecord;
use super::super::trouble::ClaimError;
use super::*;

/// A submission other than [`FIRST`].
const OTHER: Asking = Asking {
    submission: 9,
    ..FIRST
};
const OTHER_AGAIN: Asking = Asking {
    submission: 9,
    ..AGAIN
};

impl Place {
    fn record_file(&self) -> PathBuf {
        self.out().join(claim_in(Path::new("_temporary")))
    }

    fn record(&self) -> serde_json::Value {
        let text = fs::read(self.record_file()).expect("a claim");
        ClaimRecord::parse(&text, &self.record_file()).expect("one that can be read");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Changes a field of the recorded holder, as if another process held the claim.
    fn write_holder(&self, field: &str, value: serde_json::Value) {
        let mut record = self.record();
        record["holder"][field] = value;
        fs::write(self.record_file(), record.to_string()).expect("written");
    }
}

#[test]
fn claim_file_names_its_holder() {
    let place = Place::new();
    let claim = place
        .take(&Disk::default(), FIRST)
        .expect("a free directory");
    let record = place.record();
    assert_eq!(
        (record["version"].clone(), record["step"].clone()),
        (1.into(), "claimed".into())
    );
    assert_eq!(record["job"], "job_0007");
    assert_eq!(record["token"], claim.mark().token.to_string());
    assert_eq!(record["holder"]["process"], std::process::id());
    assert_eq!(record["made"], 2);
    claim.discard().expect("removed");
    assert!(
        !place.folder.path().join("some").exists(),
        "what it made is gone"
    );
}

#[test]
fn held_claim_is_not_taken() {
    let place = Place::new();
    let claim = place
        .take(&Disk::default(), FIRST)
        .expect("a free directory");
    for asking in [FIRST, AGAIN, OTHER, OTHER_AGAIN] {
        let refused = place.take(&Disk::default(), asking);
        assert!(
            matches!(refused, Err(JobError::OutputInUse { .. })),
            "{refused:?}"
        );
    }
    let refused = place.resume(&Disk::default(), claim.mark());
    assert!(
        matches!(refused, Err(Trouble::Passing { away: false, .. })),
        "{refused:?}"
    );
    claim.verify().expect("it is still its own");
}

#[test]
fn stopped_holder_keeps_claim_without_lock() {
    let place = Place::new();
    drop(
        place
            .take(&Disk::default(), FIRST)
            .expect("a free directory"),
    );
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("sleep is there");
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).expect("its own child");
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it lives");
    let started: u64 = stat
        .rsplit(')')
        .next()
        .expect("fields")
        .split_whitespace()
        .nth(19)
        .expect("a start")
        .parse()
        .expect("a number");
    place.write_holder("process", child.id().into());
    place.write_holder("started", started.into());
    let refused = place.take(&Disk::default(), OTHER_AGAIN);
    child
        .kill()
        .and_then(|()| child.wait())
        .expect("its own child");
    assert!(
        matches!(refused, Err(JobError::OutputInUse { .. })),
        "{refused:?}"
    );
    place
        .take(&Disk::default(), OTHER_AGAIN)
        .expect("its holder is dead");
}

#[test]
fn lease_decides_between_hosts() {
    let place = Place::new();
    drop(
        place
            .take(&Disk::default(), FIRST)
            .expect("a free directory"),
    );
    place.write_holder("boot", "another".into());
    let refused = place.take(&Disk::default(), OTHER_AGAIN);
    assert!(
        matches!(refused, Err(JobError::OutputInUse { .. })),
        "{refused:?}"
    );
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    let file = fs::File::options()
        .write(true)
        .open(place.record_file())
        .expect("a file");
    file.set_modified(old).expect("its own file");
    place
        .take(&Disk::default(), OTHER_AGAIN)
        .expect("the lease is over");
}

#[test]
fn only_the_holder_renews_its_lease() {
    let place = Place::new();
    let claim = place
        .take(&Disk::default(), FIRST)
        .expect("a free directory");
    let token = claim.mark().token;
    let renew = || Disk::default().renew(&place.out(), token);
    let age = || {
        let modified = fs::metadata(place.record_file())
            .and_then(|found| found.modified())
            .expect("a file");
        modified.elapsed().unwrap_or_default().as_secs()
    };
    let put_back = || {
        let file = fs::File::options()
            .write(true)
            .open(place.record_file())
            .expect("a file");
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(100))
            .expect("set");
    };
    put_back();
    renew().expect("renewed");
    assert!(age() < 50);
    drop(claim);
    place
        .take(&Disk::default(), OTHER_AGAIN)
        .expect("its holder is gone");
    put_back();
    renew().expect("nothing to do");
    assert!(age() >= 100, "the lease of another is not renewed");
}

#[test]
fn resumed_job_leaves_output_taken_by_another_run() {
    for over in [false, true] {
        let place = Place::new();
        let claim = place
            .take(&Disk::default(), FIRST)
            .expect("a free directory");
        let mark = claim.mark();
        drop(claim);
        let other = place
            .take(&Disk::default(), OTHER_AGAIN)
            .expect("its holder is gone");
        if over {
            let manifest = write_parts(&other);
            committed(other, &manifest);
        }
        let before = place.files();
        let Err(Trouble::Taken { by }) = place.resume(&Disk::default(), mark) else {
            panic!("it is taken")
        };
        assert!(by.contains("job_0007"), "{by}");
        assert_eq!(place.files(), before);
    }
}

#[test]
fn unreachable_storage_is_not_recreated() {
    let place = Place::new();
    let claim = place
        .take(&Disk::default(), FIRST)
        .expect("a free directory");
    let mark = claim.mark();
    let manifest = write_parts(&claim);
    drop(claim);
    let some = place.folder.path().join("some");
    let away = place.folder.path().join("away");
    fs::rename(&some, &away).expect("moved");
    let held = place.resume(&Disk::default(), mark);
    assert!(
        matches!(held, Err(Trouble::Passing { away: true, .. })),
        "{held:?}"
    );
    assert!(!some.exists(), "nothing is made in its place");
    // A mount point without its file system is an empty directory.
    fs::create_dir_all(place.out()).expect("made");
    let held = place.resume(&Disk::default(), mark);
    assert!(
        matches!(held, Err(Trouble::Passing { away: true, .. })),
        "{held:?}"
    );
    assert_eq!(place.names(), [""; 0]);
    fs::remove_dir_all(&some)
        .and_then(|()| fs::rename(&away, &some))
        .expect("it is back");
    committed(place.resumed(mark), &manifest);
    place.assert_committed();
}

#[test]
fn only_remains_of_dead_programs_are_undone() {
    for (owner, undone) in [(Owner::Program, true), (Owner::Cluster, false)] {
        let place = Place::new();
        drop(
            place
                .take(&Disk::default(), Asking { owner, ..FIRST })
                .expect("a free directory"),
        );
        let taken = place.take(&Disk::default(), OTHER);
        match taken {
            Ok(claim) if undone => {
                claim.discard().expect("removed");
                assert!(
                    !place.folder.path().join("some").exists(),
                    "with what the dead one had made"
                );
            }
            Err(JobError::OutputUnfinished { .. }) if !undone => {}
            other => panic!("{owner:?}: {other:?}"),
        }
    }
}

/// A coordinator that was restarted has not resumed the claims of its jobs yet.
#[test]
fn claim_of_another_job_of_the_coordinator_is_in_use() {
    let place = Place::new();
    let claim = place
        .take(&Disk::default(), FIRST)
        .expect("a free directory");
    let mark = claim.mark();
    let manifest = write_parts(&claim);
    drop(claim);
    let out = place.out();
    let others = [mark.token];
    let request = ClaimRequest {
        others: &others,
        ..place.request(&out, OTHER_AGAIN)
    };
    let refused = DirectoryClaim::take(&Disk::default(), &request).expect_err("it is in use");
    assert!(matches!(refused, JobError::OutputInUse { .. }), "{refused}");
    committed(place.resumed(mark), &manifest);
    place.assert_committed();
}

#[test]
fn commit_of_dead_program_is_finished() {
    for overwrite in [false, true] {
        let place = Place::new();
        let asking = Asking {
            owner: Owner::Program,
            ..FIRST
        };
        let mut claim = place
            .take(&Disk::default(), asking)
            .expect("a free directory");
        let manifest = write_parts(&claim);
        claim.commit(&manifest).expect("a commit");
        // As if it had died before its last part and _SUCCESS.
        let paths = claim.paths();
        fs::rename(
            place.file("_SUCCESS"),
            place.out().join(paths.staged_success()),
        )
        .expect("moved");
        fs::rename(place.file("part-r-00001"), paths.promoted(attempt(1, 1))).expect("moved");
        drop(claim);
        let taken = place.take(&Disk::default(), Asking { overwrite, ..OTHER });
        match taken {
            Ok(claim) if overwrite => claim.discard().expect("removed"),
            Err(JobError::OutputExists { .. }) if !overwrite => {}
            other => panic!("{other:?}"),
        }
        place.assert_committed();
    }
}

/// Files that a coordinator may leave next to `_temporary` if it is killed while it claims or ends.
#[test]
fn remains_of_incomplete_claim_do_not_block() {
    for (name, inside) in [
        (staged(1), "x"),
        (staged(1), "job_0007-7/committed"),
        (retired(1), "job_0007-7/shuffle"),
    ] {
        for asking in [FIRST, OTHER] {
            let place = Place::new();
            fs::create_dir_all(place.out().join(&name).join(inside)).expect("made");
            // The writer was killed in the middle.
            fs::write(place.out().join(&name).join("claim.json"), "{").expect("written");
            let claim = place.take(&Disk::default(), asking).expect("a claim");
            assert_eq!(place.names(), ["_temporary"]);
            claim.discard().expect("removed");
            assert_eq!(place.names(), [""; 0]);
        }
    }
}

#[test]
fn repeated_submission_takes_over_its_claim() {
    let place = Place::new();
    drop(
        place
            .take(&Disk::default(), FIRST)
            .expect("a free directory"),
    );
    let refused = place.take(&Disk::default(), OTHER);
    assert!(
        matches!(refused, Err(JobError::OutputUnfinished { .. })),
        "{refused:?}"
    );
    let claim = place.take(&Disk::default(), FIRST).expect("its own");
    assert_eq!(place.names(), ["_temporary"]);
    claim.discard().expect("removed");
}

#[test]
fn foreign_temporary_directory_is_kept() {
    let place = Place::new();
    let names = ["_temporary.bak", "_temporary.old", "_temporary_7"];
    names
        .iter()
        .for_each(|name| fs::create_dir_all(place.file(name)).expect("made"));
    let refused = place.take(&Disk::default(), FIRST);
    assert!(
        matches!(refused, Err(JobError::OutputExists { .. })),
        "{refused:?}"
    );
    place
        .take(&Disk::default(), AGAIN)
        .expect("a claim")
        .discard()
        .expect("removed");
    assert_eq!(place.names(), names);
}

#[test]
fn later_of_two_racing_claims_removes_nothing() {
    let place = Place::new();
    let first = place
        .take(&Disk::default(), FIRST)
        .expect("a free directory");
    // This process checked before the first one claimed the directory.
    let mut record = place.record();
    record["submission"] = format!("{:032x}", 2).into();
    let record = ClaimRecord::parse(record.to_string().as_bytes(), Path::new("")).expect("a claim");
    let refused = super::super::claim::put_in_place(first.storage(), first.paths(), &record);
    assert!(matches!(refused, Err(ClaimError::InUse)), "{refused:?}");
    first.verify().expect("it is still its own");
}
