//! Runs the job inside this process, without a cluster.

use napreduce::testing::JobTest;

use {{crate_name}}::join;

const USERS: &str = "1,ann\n2,bob\n";
const ORDERS: &str = "2,30\n1,12\n3,99\n2,5\n";

#[test]
fn orders_get_the_name_of_their_user() {
    let test = JobTest::new(join)
        .input_named("users", USERS)
        .input_named("orders", ORDERS);
    let output = test.run();
    assert_eq!(output.text(), "1\tann\t12\n2\tbob\t30\n2\tbob\t5\n");
    assert_eq!(output.counters.get("orders without a user"), 1);
}

/// Suspends and checkpoints the job before every record; the output must stay the same.
#[test]
fn preemption_does_not_change_the_output() {
    JobTest::new(join)
        .input_named("users", USERS)
        .input_named("orders", ORDERS)
        .assert_preemption_safe();
}
