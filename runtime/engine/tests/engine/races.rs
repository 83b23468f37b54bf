//! What crosses an order on its way: the task finishes, fails or stops while it is being preempted.
//!
//! Owns the rows of the attempt table in which a report and an order meet, seen through the engine.

use napreduce_engine::scenarios::check;

#[test]
fn an_attempt_that_has_not_said_hello_is_stopped_after_it_did() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         policy suspend m0.1
         started m0.1
             > suspend m0.1
         suspended m0.1
             > resume m0.1
         policy checkpoint m0.1
         resumed m0.1
             > checkpoint m0.1",
    );
}

#[test]
fn a_grace_is_over_even_before_the_hello() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         policy suspend m0.1 grace 10ms
         at 10ms
         wake
             > kill m0.1
         started m0.1
         killed m0.1
             > launch m0.2 on 1",
    );
}

#[test]
fn it_may_be_done_while_it_is_stopped_saved_or_killed() {
    for (primitive, order) in [("suspend", "suspend"), ("checkpoint", "checkpoint"), ("kill", "kill")] {
        check(&format!(
            "worker 1 1+0
             job 1 maps 2 reduces 1
                 > launch m0.1 on 1
             started m0.1
             policy {primitive} m0.1
                 > {order} m0.1
             done m0.1
                 > launch m1.1 on 1
             tally requests_satisfied 1"
        ));
    }
}

#[test]
fn it_may_fail_while_it_is_stopped_or_saved_and_that_counts() {
    for primitive in ["suspend", "checkpoint"] {
        check(&format!(
            "worker 1 1+0
             job 1 maps 1 attempts 1
                 > launch m0.1 on 1
             started m0.1
             policy {primitive} m0.1
                 > {primitive} m0.1
             failed m0.1 task: a bad row
                 > job 1 failed: job_0001_m_0000 failed 1 time; last: a bad row"
        ));
    }
}

#[test]
fn a_failure_while_it_is_killed_is_the_kill() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1
             > launch m0.1 on 1
         started m0.1
         policy kill m0.1
             > kill m0.1
         failed m0.1 fatal: broken pipe
             > launch m0.2 on 1",
    );
}

#[test]
fn a_checkpoint_may_cross_the_kill_and_is_kept() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         policy checkpoint m0.1 grace 5ms
             > checkpoint m0.1
         at 5ms
         wake
             > kill m0.1
         checkpointed m0.1
             > launch m0.2 on 1 from m0.1",
    );
}

#[test]
fn a_stop_may_cross_the_kill_and_the_slot_is_free_only_after_it() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy suspend m0.1 grace 5ms for 2
             > suspend m0.1
         at 5ms
         wake
             > kill m0.1
         suspended m0.1
         killed m0.1
             > launch 2:m0.1 on 1",
    );
}
