//! Commits of uploads when processes die or the store is unavailable.

use super::super::place::CLAIM;
use super::*;

#[test]
fn granted_uploads_become_parts_and_others_are_aborted() {
    let stores = MemoryStores::default();
    let claim = take(stores.process(None), FIRST).expect("it is free");
    let manifest = send_parts(&stores);
    assert_eq!(stores.files().len(), 1, "only the claim is seen");
    committed(claim, &manifest).expect("a commit");
    assert_committed(&stores, &[]);
}

#[test]
fn overwrite_removes_listed_files_and_names_of_parts() {
    let stores = MemoryStores::default();
    fill(&stores);
    let claim = take(stores.process(None), AGAIN).expect("it may be overwritten");
    let manifest = send_parts(&stores);
    committed(claim, &manifest).expect("a commit");
    assert_committed(&stores, &FOREIGN);
}

#[test]
fn failed_job_keeps_old_output_and_aborts_uploads() {
    let stores = MemoryStores::default();
    fill(&stores);
    let before = stores.files();
    let claim = take(stores.process(None), AGAIN).expect("it may be overwritten");
    send_parts(&stores);
    claim.discard().expect("it is ours");
    assert_eq!(
        (stores.files(), stores.uploads_left()),
        (before, Vec::new())
    );
}

/// Returns the number of calls that a commit makes, counted from the claim.
fn calls_of_a_commit() -> (usize, usize) {
    let stores = MemoryStores::default();
    fill(&stores);
    let process = stores.process(None);
    let claim = take(process, AGAIN).expect("it may be overwritten");
    let claimed = process.calls();
    let manifest = send_parts(&stores);
    committed(claim, &manifest).expect("a commit");
    (claimed, process.calls())
}

#[test]
fn commit_survives_coordinator_crash_at_any_call() {
    let (claimed, all) = calls_of_a_commit();
    for call in claimed..all {
        let stores = MemoryStores::default();
        fill(&stores);
        let process = stores.process(Some((call, memory::Fault::Last)));
        let claim = take(process, AGAIN).expect("it may be overwritten");
        let mark = claim.mark();
        let manifest = send_parts(&stores);
        committed(claim, &manifest).expect_err("it died");
        assert!(process.is_dead());
        match resume(stores.process(None), mark)
            .unwrap_or_else(|trouble| panic!("{call}: {trouble:?}"))
        {
            Resumed::Claimed(claim) => committed(claim, &manifest).expect("a commit"),
            Resumed::Settled => {}
            Resumed::Gone => panic!("{call}: its output is gone"),
        }
        assert_committed(&stores, &FOREIGN);
    }
}

#[test]
fn commit_survives_an_unreachable_store_at_any_call() {
    let (claimed, all) = calls_of_a_commit();
    for call in claimed..all {
        let stores = MemoryStores::default();
        fill(&stores);
        let process = stores.process(Some((call, memory::Fault::Away)));
        let mut claim = take(process, AGAIN).expect("it may be overwritten");
        let mark = claim.mark();
        let manifest = send_parts(&stores);
        if let Err(trouble) = claim.commit(&manifest) {
            assert!(
                matches!(trouble, Trouble::Passing { .. }),
                "{call}: {trouble:?}"
            );
            drop(claim);
            let Resumed::Claimed(again) = resume(process, mark).expect("it is back") else {
                panic!("{call}")
            };
            claim = again;
            claim.commit(&manifest).expect("a commit");
        }
        // The next run removes the remains.
        if claim.clean_up().is_err() {
            let taken = take(
                stores.process(None),
                Asking {
                    submission: 2,
                    ..AGAIN
                },
            )
            .expect("nobody holds it");
            taken.discard().expect("it is ours");
        }
        assert_committed(&stores, &FOREIGN);
    }
}

#[test]
fn next_run_settles_output_of_killed_program() {
    let (_, all) = calls_of_a_commit();
    let embedded = Asking {
        owner: Owner::Program,
        ..AGAIN
    };
    for call in 0..all {
        let stores = MemoryStores::default();
        fill(&stores);
        let before = stores.files();
        let process = stores.process(Some((call, memory::Fault::Last)));
        if let Ok(claim) = take(process, embedded) {
            let manifest = send_parts(&stores);
            committed(claim, &manifest).expect_err("it died");
        }
        assert!(process.is_dead());
        // The next claim may belong to another program, which releases it.
        let next = Asking {
            submission: 2,
            ..embedded
        };
        let claim =
            take(stores.process(None), next).unwrap_or_else(|error| panic!("{call}: {error}"));
        claim.discard().expect("it is ours");
        match stores.completed() {
            0 => assert_eq!(
                (stores.files(), stores.uploads_left()),
                (before, Vec::new()),
                "{call}"
            ),
            _ => assert_committed(&stores, &FOREIGN),
        }
    }
}

#[test]
fn aborted_upload_of_part_fails_job() {
    let stores = MemoryStores::default();
    let mut claim = take(stores.process(None), FIRST).expect("it is free");
    let manifest = send_parts(&stores);
    stores.drop_upload(manifest.parts[1].upload.as_ref().expect("it was sent"));
    let trouble = claim.commit(&manifest).expect_err("a part is gone");
    let said = trouble.in_words(Path::new(OUT));
    assert!(
        said.contains("s3://b/out/part-r-00001") && said.contains("lifecycle rule"),
        "{said}"
    );
    assert!(!stores.files().contains_key("_SUCCESS"));
}

#[test]
fn old_object_does_not_replace_aborted_upload() {
    let stores = MemoryStores::default();
    stores.set("part-r-00001", PARTS[1].1);
    let mut claim = take(stores.process(None), AGAIN).expect("it may be overwritten");
    let manifest = send_parts(&stores);
    stores.drop_upload(manifest.parts[1].upload.as_ref().expect("it was sent"));
    claim
        .commit(&manifest)
        .expect_err("what is there is as long, and another one");
}

#[test]
fn output_claimed_by_another_run_is_untouched() {
    let stores = MemoryStores::default();
    let mut claim = take(stores.process(None), FIRST).expect("it is free");
    let manifest = send_parts(&stores);
    stores.unset(CLAIM);
    let other = take(
        stores.process(None),
        Asking {
            submission: 2,
            ..FIRST
        },
    )
    .expect("it is free");
    let before = stores.files();
    assert!(matches!(
        claim.commit(&manifest),
        Err(Trouble::Taken { .. })
    ));
    assert!(matches!(claim.discard(), Err(Trouble::Taken { .. })));
    assert_eq!(stores.files(), before);
    other.discard().expect("it is its own");
}
