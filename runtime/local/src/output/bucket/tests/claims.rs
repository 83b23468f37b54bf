//! Claims of an output in an object store: granted and refused.

use super::super::super::backend::OutputBackend;
use super::super::super::holder::life_of;
use super::super::super::record::ClaimRecord;
use super::super::super::trouble::ClaimError;
use super::super::obstacles::look;
use super::super::place::CLAIM;
use super::*;

/// A claim by another host.
fn claim_of_elsewhere(stores: &MemoryStores, owner: Owner) {
    let claim = take(stores.process(None), Asking { owner, ..FIRST }).expect("it is free");
    let mut text: serde_json::Value =
        serde_json::from_str(&stores.files()[CLAIM]).expect("a claim is JSON");
    std::mem::forget(claim);
    text["holder"]["host"] = "elsewhere".into();
    text["holder"]["boot"] = "another".into();
    let text = text.to_string();
    let record = ClaimRecord::parse(text.as_bytes(), Path::new(CLAIM)).expect("a claim");
    let life = life_of(&World::real().process, &record.holder, record.token).expect("a life");
    assert_eq!(life, crate::process::Life::Unknown, "{text}");
    stores.set(CLAIM, &text);
}

fn refused(stores: &MemoryStores, asking: Asking) -> JobError {
    take(stores.process(None), asking).expect_err("it is not free")
}

#[test]
fn second_claim_is_refused_and_released_claim_leaves_nothing() {
    let stores = MemoryStores::default();
    let claim = take(stores.process(None), FIRST).expect("it is free");
    for asking in [
        FIRST,
        AGAIN,
        Asking {
            submission: 2,
            ..AGAIN
        },
    ] {
        assert!(matches!(
            refused(&stores, asking),
            JobError::OutputInUse { .. }
        ));
    }
    let looked = look(&bucket(stores.process(None)), true);
    assert!(matches!(looked, Err(ClaimError::InUse)), "{looked:?}");
    claim.discard().expect("it is ours");
    assert_eq!(stores.files(), BTreeMap::new());
    drop(take(stores.process(None), FIRST).expect("it is free again"));
}

#[test]
fn existing_output_is_refused_without_a_write() {
    let stores = MemoryStores::default();
    fill(&stores);
    let before = stores.files();
    assert!(matches!(
        refused(&stores, FIRST),
        JobError::OutputExists { .. }
    ));
    let looked = look(&bucket(stores.process(None)), false);
    assert!(matches!(looked, Err(ClaimError::Exists)), "{looked:?}");
    look(&bucket(stores.process(None)), true).expect("it may be overwritten");
    assert_eq!(stores.files(), before);
    let claim = take(stores.process(None), AGAIN).expect("it may be overwritten");
    claim.discard().expect("it is ours");
    assert_eq!(stores.files(), before, "an older output stays as it is");
}

#[test]
fn work_of_another_program_is_kept() {
    let stores = MemoryStores::default();
    stores.set("_temporary/0/task/part-r-00000", "of another program");
    let upload = stores.upload_of("s3://b/out/photo.raw", "somebody else's");
    stores.upload_of("s3://b/out-of-others/part-r-00000", "somebody else's");
    assert!(matches!(
        refused(&stores, FIRST),
        JobError::OutputUnfinished { .. }
    ));
    let claim = take(stores.process(None), AGAIN).expect("it may be overwritten");
    let manifest = send_parts(&stores);
    committed(claim, &manifest).expect("a commit");
    assert_eq!(
        stores.files()["_temporary/0/task/part-r-00000"],
        "of another program"
    );
    assert_eq!(stores.uploads_left().len(), 2, "{upload:?}");
}

/// A coordinator that was restarted has not resumed the claims of its jobs yet.
#[test]
fn claim_of_another_job_of_the_coordinator_is_in_use() {
    let stores = MemoryStores::default();
    let claim = take(stores.process(None), FIRST).expect("a free output");
    let others = [claim.mark().token];
    drop(claim);
    let other = Asking {
        submission: 2,
        ..AGAIN
    };
    let request = ClaimRequest {
        others: &others,
        ..request(other)
    };
    let refused = BucketClaim::take(bucket(stores.process(None)), &request);
    assert!(
        matches!(refused, Err(JobError::OutputInUse { .. })),
        "{refused:?}"
    );
    let claim = take(stores.process(None), other).expect("its holder is dead");
    claim.discard().expect("it is ours");
}

#[test]
fn claim_of_other_host_expires_with_its_lease() {
    for owner in [Owner::Program, Owner::Cluster] {
        let stores = MemoryStores::default();
        claim_of_elsewhere(&stores, owner);
        stores.upload("part-r-00000", "of the dead");
        let other = Asking {
            submission: 2,
            ..AGAIN
        };
        assert!(matches!(
            refused(&stores, other),
            JobError::OutputInUse { .. }
        ));
        stores.pass(61);
        if owner == Owner::Cluster {
            let careful = Asking {
                submission: 2,
                ..FIRST
            };
            assert!(matches!(
                refused(&stores, careful),
                JobError::OutputUnfinished { .. }
            ));
        }
        let claim = take(stores.process(None), other).expect("nobody renews it");
        assert_eq!(stores.uploads_left(), Vec::<String>::new());
        claim.discard().expect("it is ours");
        assert_eq!(stores.files(), BTreeMap::new());
    }
}

#[test]
fn only_the_holder_renews_its_lease() {
    let stores = MemoryStores::default();
    let claim = take(stores.process(None), FIRST).expect("it is free");
    let token = claim.mark().token;
    let renew = || bucket(stores.process(None)).renew(Path::new(OUT), token);
    let before = (stores.version(CLAIM), stores.files());
    renew().expect("it is ours");
    assert_eq!(stores.files(), before.1);
    assert_ne!(stores.version(CLAIM), before.0);
    claim.discard().expect("it is ours");
    renew().expect_err("it was given back");
    let other = take(
        stores.process(None),
        Asking {
            submission: 2,
            ..FIRST
        },
    )
    .expect("it is free");
    let before = stores.version(CLAIM);
    assert!(matches!(renew(), Err(Trouble::Taken { .. })));
    assert_eq!(stores.version(CLAIM), before);
    drop(other);
}

#[test]
fn embedded_job_has_local_work_until_claim_ends() {
    let stores = MemoryStores::default();
    let embedded = Asking {
        owner: Owner::Program,
        ..FIRST
    };
    let claim = take(stores.process(None), embedded).expect("it is free");
    let work = claim.paths().local_work();
    assert!(work.join("shuffle").is_dir());
    claim.discard().expect("it is ours");
    assert!(!work.exists());
}
