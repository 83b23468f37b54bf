//! Every call of claim, commit and discard fails in each possible way, or is the last one before a kill.

use super::super::storage::script::{DiskScript, Fault};
use super::*;

const FAULTS: [Fault; 6] = [
    Fault::Refused(libc::EIO),
    Fault::Refused(libc::ENOSPC),
    Fault::Refused(libc::EACCES),
    Fault::Refused(libc::ESTALE),
    Fault::Denied,
    Fault::Last,
];

/// The end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Commit,
    Discard,
    /// The coordinator restarts before the commit; faults occur only after that.
    CommitAgain,
}

/// A job from its claim to its end, with the initial state of the directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) filled: bool,
    pub(super) end: End,
}

pub(super) const CASES: [Case; 6] = [
    Case {
        filled: false,
        end: End::Commit,
    },
    Case {
        filled: true,
        end: End::Commit,
    },
    Case {
        filled: false,
        end: End::Discard,
    },
    Case {
        filled: true,
        end: End::Discard,
    },
    Case {
        filled: false,
        end: End::CommitAgain,
    },
    Case {
        filled: true,
        end: End::CommitAgain,
    },
];

/// The outcome of a job; `None` if its process was killed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Committed,
    Discarded,
    Refused(String),
    Failed(String),
    Killed,
}

/// The number of tries after transient errors: one more than the number of faults.
const TRIES: usize = 2;

impl Case {
    pub(super) fn place(self) -> Place {
        let place = Place::new();
        if self.filled {
            place.fill();
        }
        place
    }

    pub(super) fn asking(self) -> Asking {
        if self.filled { AGAIN } else { FIRST }
    }

    /// Runs the job on a disk; calls `written` after its parts are written.
    pub(super) fn run(
        self,
        place: &Place,
        disk: &Disk,
        script: &DiskScript,
        written: impl FnOnce(),
    ) -> (Ended, Option<ClaimMark>) {
        let real = place.disk();
        let claiming = if self.end == End::CommitAgain {
            &real
        } else {
            disk
        };
        let claim = match place.take(claiming, self.asking()) {
            Ok(claim) => claim,
            Err(_) if script.is_dead() => return (Ended::Killed, None),
            Err(error) => return (Ended::Refused(error.to_string()), None),
        };
        let mark = claim.mark();
        let manifest = write_parts(&claim);
        written();
        let mut claim = Some(claim).filter(|_| self.end != End::CommitAgain);
        let mut last = String::new();
        for _ in 0..=TRIES {
            let resumed = match claim.take() {
                Some(claim) => Ok(Resumed::Claimed(claim)),
                None => place.resume(disk, mark),
            };
            let tried = resumed.and_then(|resumed| self.settle(resumed, &manifest));
            if script.is_dead() {
                return (Ended::Killed, Some(mark));
            }
            match tried {
                Ok(ended) => return (ended, Some(mark)),
                Err(Trouble::Passing { what, .. }) => last = what,
                Err(Trouble::Taken { .. }) if self.end == End::Discard => {
                    return (Ended::Discarded, Some(mark));
                }
                Err(trouble) => return (Ended::Failed(trouble.in_words(&place.out())), Some(mark)),
            }
        }
        (Ended::Failed(format!("held for ever: {last}")), Some(mark))
    }

    fn settle(
        self,
        resumed: Resumed<DirectoryClaim>,
        manifest: &Manifest,
    ) -> Result<Ended, Trouble> {
        match (self.end, resumed) {
            (End::Discard, Resumed::Claimed(claim)) => claim.discard().map(|()| Ended::Discarded),
            (End::Discard, Resumed::Gone) => Ok(Ended::Discarded),
            (_, Resumed::Claimed(mut claim)) => {
                claim.commit(manifest)?;
                // A failed cleanup is only a warning.
                let _ = claim.clean_up();
                Ok(Ended::Committed)
            }
            (_, Resumed::Settled) => Ok(Ended::Committed),
            (_, Resumed::Gone) => Ok(Ended::Failed("all of it was removed".to_owned())),
        }
    }
}

/// Returns the visible files of an output, without work in progress.
pub(super) fn visible(place: &Place) -> BTreeMap<String, String> {
    let mut files = place.files().unwrap_or_default();
    files.retain(|name, _| !name.starts_with("_temporary"));
    files
}

/// Checks that the output is complete if it has `_SUCCESS`, and that foreign files are unchanged.
pub(super) fn assert_whole_or_absent(place: &Place, before: &BTreeMap<String, String>, case: &str) {
    let now = visible(place);
    for name in ["notes.txt", "part-time-staff.csv"] {
        assert_eq!(
            now.get(name),
            before.get(name),
            "{case}: {name} is nobody's business"
        );
    }
    match now.get("_SUCCESS") {
        None => {}
        Some(success) if Some(success) == before.get("_SUCCESS") => {
            assert_eq!(&now, before, "{case}: the old output is not whole");
        }
        Some(success) => {
            assert!(success.contains("\"job_0007\""), "{case}: {success}");
            assert_new(place, before, case);
        }
    }
}

/// Checks that the directory contains exactly the new output and the foreign files.
pub(super) fn assert_new(place: &Place, before: &BTreeMap<String, String>, case: &str) {
    let mut expected: BTreeMap<String, String> = PARTS
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    for name in ["notes.txt", "part-time-staff.csv"] {
        expected.extend(before.get(name).map(|text| (name.to_owned(), text.clone())));
    }
    let mut now = visible(place);
    assert!(now.remove("_SUCCESS").is_some(), "{case}: no _SUCCESS");
    assert_eq!(now, expected, "{case}: the new output is not whole");
}

/// Checks that the next coordinator recovers the job.
pub(super) fn assert_recovers(
    place: &Place,
    run: Case,
    mark: Option<ClaimMark>,
    before: &BTreeMap<String, String>,
    case: &str,
) {
    let disk = place.disk();
    let Some(mark) = mark else {
        // The client submits the job again.
        let claim = place
            .take(&disk, run.asking())
            .unwrap_or_else(|error| panic!("{case}: {error}"));
        let manifest = write_parts(&claim);
        committed(claim, &manifest);
        return assert_new(place, before, case);
    };
    if run.end == End::Discard && !place.out().exists() {
        return assert!(
            before.is_empty(),
            "{case}: the output directory was there before"
        );
    }
    let resumed = match place.resume(&disk, mark) {
        // The work is already set aside; the old output is in place.
        Err(Trouble::Taken { .. }) if run.end == End::Discard => Resumed::Gone,
        // After a power failure the restored directory is a different, empty one.
        Err(Trouble::Passing { away: true, .. }) if run.end == End::Discard => Resumed::Gone,
        resumed => resumed.unwrap_or_else(|trouble| panic!("{case}: {trouble:?}")),
    };
    let manifest = match &resumed {
        // The journal contains the parts.
        Resumed::Claimed(claim) => known_parts(claim),
        _ => Manifest {
            job: JOB,
            name: String::new(),
            counters: CounterValues::default(),
            parts: Vec::new(),
        },
    };
    let ended = run
        .settle(resumed, &manifest)
        .unwrap_or_else(|trouble| panic!("{case}: {trouble:?}"));
    match ended {
        Ended::Committed => assert_new(place, before, case),
        Ended::Discarded => assert_eq!(&visible(place), before, "{case}"),
        other => panic!("{case}: {other:?}"),
    }
}

/// Returns the manifest as read from a journal.
fn known_parts(claim: &DirectoryClaim) -> Manifest {
    let parts =
        [(attempt(0, 2), PARTS[0].1), (attempt(1, 1), PARTS[1].1)].map(|(attempt, text)| {
            let name = claim.paths().part_name(attempt.task);
            let report = PartReport {
                name,
                records: 1,
                bytes: text.len() as u64,
                digest: 1,
            };
            CommittedPart {
                attempt,
                output: None,
                report,
                upload: None,
            }
        });
    let name = "a test".to_owned();
    let counters = CounterValues::default();
    Manifest {
        job: JOB,
        name,
        counters,
        parts: parts.to_vec(),
    }
}

/// Checks that another job can write a new output over the remains, and that only its output is left, at the
/// latest after retrying for a second. Locked remains are left to the process that removes them, and a
/// process that another test is starting holds a copy of every lock until it calls `exec`.
pub(super) fn assert_rerun(place: &Place, before: &BTreeMap<String, String>, case: &str) {
    let asking = Asking {
        submission: 99,
        ..AGAIN
    };
    let rerun = || {
        let claim = place
            .take(&place.disk(), asking)
            .unwrap_or_else(|error| panic!("{case}: rerun: {error}"));
        let manifest = write_parts(&claim);
        committed(claim, &manifest);
        assert_new(place, before, case);
        let left: Vec<_> = place
            .names()
            .into_iter()
            .filter(|name| name.starts_with("_temporary"))
            .collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    };
    let is_of_the_dead = |left: &Vec<String>| left.iter().all(|name| name.ends_with(".old"));
    patiently(rerun, is_of_the_dead).unwrap_or_else(|left| panic!("{case}: {left:?}"));
}

fn check(run: Case, fault: (usize, Fault), recover: bool) {
    let case = format!("{run:?}, {fault:?}");
    let place = run.place();
    let before = visible(&place);
    let (disk, script) = DiskScript::disk(&place.out(), Some(fault));
    let (ended, mark) = run.run(&place, &disk, &script, || {});
    assert_whole_or_absent(&place, &before, &case);
    match &ended {
        Ended::Committed => assert_new(&place, &before, &case),
        Ended::Discarded | Ended::Refused(_) => {
            assert_eq!(visible(&place), before, "{case}: {ended:?}")
        }
        Ended::Failed(why) => panic!("{case}: one fault that passes fails no job: {why}"),
        Ended::Killed if recover => assert_recovers(&place, run, mark, &before, &case),
        Ended::Killed => {}
    }
    assert_rerun(&place, &before, &case);
}

#[test]
fn fault_at_any_call_leaves_old_new_or_no_output() {
    for run in CASES {
        let (disk, script) = {
            let place = run.place();
            let (disk, script) = DiskScript::disk(&place.out(), None);
            let (ended, _) = run.run(&place, &disk, &script, || {});
            assert!(
                matches!(ended, Ended::Committed | Ended::Discarded),
                "{ended:?}"
            );
            (disk, script)
        };
        drop(disk);
        let calls = script.calls();
        assert!(calls > 10, "{run:?}: the calls go through the script");
        for index in 0..calls {
            for fault in FAULTS {
                check(run, (index, fault), true);
                if fault == Fault::Last {
                    check(run, (index, fault), false);
                }
            }
        }
    }
}
