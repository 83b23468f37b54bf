//! The stateful examples are preemption-safe.

#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../src/bin/balance.rs"]
mod balance;
#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../src/bin/sessions.rs"]
mod sessions;

use napreduce::testing::JobTest;

#[test]
fn sessions_are_preemption_safe() {
    let visits = "ann,0\nbob,100\nann,900\nann,5000\nann,2400\nbob,9000\nann,5001\nbob,9999\n";
    let test = JobTest::new(sessions::sessions)
        .input(visits)
        .split_size(20);
    assert_eq!(
        test.run().text(),
        "ann\t0\t2400\t3\nann\t5000\t1\t2\nbob\t100\t0\t1\nbob\t9000\t999\t2\n"
    );
    test.assert_preemption_safe();
}

#[test]
fn balance_is_preemption_safe() {
    let payments = "2,-30\n1,100\n4,7\n2,5\n";
    let test = JobTest::new(balance::balance).input(payments).split_size(6);
    assert_eq!(test.run().text(), "1\t100\n2\t75\n4\t82\n");
    test.assert_preemption_safe();
}
