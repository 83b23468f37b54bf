//! Conditional writes of a small file: one of several concurrent writers succeeds.

use std::sync::Barrier;

use napreduce_connectors::stores::stores_of;
use napreduce_protocol::{ObjectStores, PutCondition};

use super::server::Files;

const RACERS: usize = 4;
const ROUNDS: usize = 8;

fn hdfs() -> &'static dyn ObjectStores {
    stores_of("hdfs://".as_ref())
}

/// Returns the results of concurrent writers.
fn race<T: Send>(act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(RACERS);
    std::thread::scope(|scope| {
        let start = |racer| {
            let barrier = &barrier;
            let act = &act;
            scope.spawn(move || {
                barrier.wait();
                act(racer)
            })
        };
        let racers: Vec<_> = (0..RACERS).map(start).collect();
        racers
            .into_iter()
            .map(|racer| racer.join().expect("no racer panics"))
            .collect()
    })
}

fn put(claim: &str, racer: usize, condition: PutCondition<'_>) -> Option<String> {
    hdfs()
        .put(claim, racer.to_string().as_bytes(), condition)
        .expect("the NameNode answers")
}

#[test]
fn concurrent_creators_one_succeeds() {
    let Some(files) = Files::create("races") else {
        return;
    };
    let claim = files.uri_at("out/_temporary/claim.json");
    for _ in 0..ROUNDS {
        let made = race(|racer| put(&claim, racer, PutCondition::Absent));
        let winner = made.iter().position(Option::is_some).expect("somebody");
        assert_eq!(made.iter().flatten().count(), 1, "{made:?}");
        let (said, entry) = hdfs().get(&claim).expect("an answer").expect("a claim");
        assert_eq!(
            (said, Some(entry.version.clone())),
            (format!("{winner}").into_bytes(), made[winner].clone())
        );
        let made = race(|racer| put(&claim, racer, PutCondition::Version(&entry.version)));
        assert_eq!(made.iter().flatten().count(), 1, "{made:?}");
        let listed = hdfs().list(&files.uri_at("out")).expect("an answer");
        let names: Vec<&str> = listed.iter().map(|entry| entry.object.as_str()).collect();
        assert_eq!(names, [&claim], "nothing else is told of");
        hdfs().remove(&claim).expect("an answer");
        assert_eq!(hdfs().get(&claim).expect("an answer"), None);
        assert_eq!(
            put(&claim, 0, PutCondition::Version(&entry.version)),
            None,
            "it is gone"
        );
        assert_eq!(files.keys(), ["out/"], "nothing is left");
    }
}

#[test]
fn concurrent_swaps_lose_no_update() {
    let Some(files) = Files::create("sums") else {
        return;
    };
    let claim = files.uri_at("out/_temporary/claim.json");
    hdfs()
        .put(&claim, b"0", PutCondition::Absent)
        .expect("an answer")
        .expect("there is none");
    let added: Vec<u64> = race(|_| {
        let mut added = 0;
        while added < ROUNDS as u64 {
            let (said, entry) = hdfs().get(&claim).expect("an answer").expect("it is there");
            let sum: u64 = String::from_utf8(said)
                .expect("text")
                .parse()
                .expect("a number");
            let condition = PutCondition::Version(&entry.version);
            let put = hdfs().put(&claim, (sum + 1).to_string().as_bytes(), condition);
            added += u64::from(put.expect("an answer").is_some());
        }
        added
    });
    let (said, _) = hdfs().get(&claim).expect("an answer").expect("it is there");
    assert_eq!(
        String::from_utf8(said).expect("text"),
        added.iter().sum::<u64>().to_string()
    );
    let left = files.keys();
    let versions = left
        .iter()
        .filter(|key| key.starts_with("out/_temporary/napreduce/claim.json/"));
    assert_eq!(
        versions.count(),
        3,
        "the directory, a mark and a version: {left:?}"
    );
}

#[test]
fn leftovers_of_killed_writers_do_not_block() {
    let Some(files) = Files::create("dead") else {
        return;
    };
    let claim = files.uri_at("out/_temporary/claim.json");
    // A claimant died before it made a claim.
    files.put("out/_temporary/napreduce/writing/7/7", "dead");
    let first = hdfs()
        .put(&claim, b"one", PutCondition::Absent)
        .expect("an answer")
        .expect("there is none");
    // One claimant died after writing a version, and one after activating it.
    files.put("out/_temporary/napreduce/claim.json/8", "dead");
    let second = hdfs()
        .put(&claim, b"two", PutCondition::Version(&first))
        .expect("an answer");
    files.put(
        &format!("out/_temporary/napreduce/claim.json/{first}"),
        "one",
    );
    let (said, entry) = hdfs().get(&claim).expect("an answer").expect("it is there");
    assert_eq!((said, Some(entry.version)), (b"two".to_vec(), second));
    assert_eq!(
        hdfs()
            .put(&claim, b"three", PutCondition::Version(&first))
            .expect("an answer"),
        None
    );
    hdfs().remove(&claim).expect("an answer");
    assert_eq!(files.keys(), ["out/"], "nothing is left");
}
