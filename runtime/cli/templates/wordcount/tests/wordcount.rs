//! Runs the job inside this process, without a cluster.

use napreduce::testing::{JobTest, assert_preemption_safe};

use {{crate_name}}::wordcount;

const TEXT: &str = "to be or\nnot to be\n";

#[test]
fn words_are_counted() {
    let output = JobTest::new(wordcount).input(TEXT).run();
    assert_eq!(output.text(), "be\t2\nnot\t1\nor\t1\nto\t2\n");
}

/// Suspends and checkpoints the job before every record; the output must stay the same.
#[test]
fn preemption_does_not_change_the_output() {
    assert_preemption_safe(wordcount, TEXT);
}
