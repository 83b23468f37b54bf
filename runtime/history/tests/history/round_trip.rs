//! Round trips of jobs.

use napreduce_history::HistoryStore;
use napreduce_protocol::HistoryLine;
use proptest::prelude::*;

use super::samples::{Scene, any_job, job};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_job_round_trips(job in any_job()) {
        let scene = Scene::new();
        let history = scene.open();
        prop_assert_eq!(history.add(&job).expect("written"), [""; 0]);
        let read = history.read(job.detail.summary.job).expect("present").expect("readable");
        prop_assert_eq!(&read, &job);
    }
}

#[test]
fn job_with_many_members_round_trips() {
    let scene = Scene::new();
    let history = scene.open();
    let mut large = job(1, 10_000);
    let text = "é\n".repeat(3 << 20);
    large.detail.events.push(HistoryLine { at_millis: 5, text });
    history.add(&large).expect("written");
    assert_eq!(
        history
            .read(large.detail.summary.job)
            .expect("present")
            .expect("readable"),
        large
    );
}

#[test]
fn oversized_row_is_dropped_and_counted() {
    let scene = Scene::new();
    let history = scene.open();
    let mut long = job(1, 5);
    let events = long.detail.events.len();
    long.detail.events.push(HistoryLine {
        at_millis: 5,
        text: "x".repeat(40 << 20),
    });
    history.add(&long).expect("written");
    let read = history
        .read(long.detail.summary.job)
        .expect("present")
        .expect("readable")
        .detail;
    assert_eq!((read.attempts.len(), read.events.len()), (5, events + 1));
    let last = &read.events[events].text;
    assert_eq!(
        *last,
        format!(
            "job_0001.jsonl.gz: 1 of {} events cannot be shown",
            events + 1
        )
    );
}
