//! Reports that cross an order: the task finishes, fails or stops while it is preempted.

use napreduce_engine::scenarios::check;

#[test]
fn launching_attempt_is_suspended_after_start() {
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
fn grace_ends_before_start() {
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
fn done_can_cross_order() {
    for (primitive, order) in [
        ("suspend", "suspend"),
        ("checkpoint", "checkpoint"),
        ("kill", "kill"),
    ] {
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
fn failure_can_cross_order_and_counts() {
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
fn failure_during_kill_is_the_kill() {
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
fn checkpoint_can_cross_kill_and_is_kept() {
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
fn stop_can_cross_kill_without_freeing_slot() {
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
