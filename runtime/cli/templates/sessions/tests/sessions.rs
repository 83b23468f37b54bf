//! Runs the job inside this process, without a cluster.

use napreduce::testing::{JobTest, assert_preemption_safe};

use {{crate_name}}::sessions;

const VISITS: &str = "ann,0\nbob,100\nann,900\nann,5000\nann,2400\n";

#[test]
fn a_long_pause_ends_a_session() {
    let output = JobTest::new(sessions).input(VISITS).run();
    let expected = "ann\t0\t2400\t3\nann\t5000\t0\t1\nbob\t100\t0\t1\n";
    assert_eq!(output.text(), expected);
}

/// Suspends and checkpoints the job before every record and visit; the output must stay the same.
#[test]
fn preemption_does_not_change_the_output() {
    assert_preemption_safe(sessions, VISITS);
}
