//! Runs the jobs inside this process, without a cluster.

use napreduce::testing::{JobTest, assert_preemption_safe};

use {{crate_name}}::{links, ranks, round};

const LINKS: &str = "a b\na c\nb c\nc a\n";

/// Runs the first job.
fn pages() -> Vec<u8> {
    let output = JobTest::new(links).input(LINKS).for_next_job().run();
    output.parts.concat()
}

#[test]
fn ranks_follow_the_links() {
    let first = JobTest::new(round).input(pages()).for_next_job().run();
    let test = JobTest::new(ranks).input(first.parts.concat());
    assert_eq!(test.run().text(), "c\t1.425\na\t1.0\nb\t0.575\n");
}

/// Suspends and checkpoints each job before every record; the output must stay the same.
#[test]
fn preemption_does_not_change_the_output() {
    assert_preemption_safe(links, LINKS);
    assert_preemption_safe(round, pages());
    assert_preemption_safe(ranks, pages());
}
