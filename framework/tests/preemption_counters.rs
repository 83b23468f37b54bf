//! User counters belong to the process; the test kit restores them. The test needs a process of its own.

use napreduce::testing::JobTest;
use napreduce::{Emit, Job, counter};

#[test]
fn counters_outside_test_are_kept() {
    counter!("of a test").add(5);
    let test = JobTest::new(|| {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, ()>| {
                counter!("lines").add(1);
                out.emit(line, ());
            })
            .reduce(|line, copies, out| out.emit(line, copies.count()))
    });
    let test = test.input("a\nb\na\n").reduces(2);
    test.assert_preemption_safe();
    let output = test.run();
    assert_eq!(
        (
            output.counters.get("of a test"),
            output.counters.get("lines")
        ),
        (0, 3)
    );
    assert_eq!(
        (counter!("of a test").get(), counter!("lines").get()),
        (5, 0)
    );
    assert_eq!(output.parts.len(), 2);
}
