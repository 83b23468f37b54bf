//! Tests of the outcomes of operators' commands.

use super::preemption::running;

#[test]
fn outcome_is_pending_until_verified() {
    running(
        "suspend m0.1: ada asked
         ask outcomes suspend m0.1       > m0.1 pending
                                         > suspend m0.1
         suspended m0.1 after 100ms
         ask outcomes suspend m0.1       > m0.1 done
                                         > launch m1.1 on w
         started m1.1
         resume m0.1: ada asked
         ask outcomes resume m0.1        > m0.1 queued
         done m1.1                       > resume m0.1
         resumed m0.1 after 50ms
         ask outcomes resume m0.1        > m0.1 done",
    );
}

#[test]
fn late_refusal_of_suspend_has_reason() {
    running(
        "suspend m0.1: ada asked
         ask outcomes suspend m0.1       > m0.1 pending
                                         > suspend m0.1
         refused m0.1: memory is short
         ask outcomes suspend m0.1       > m0.1 refused: ...memory is short...
         suspend m0.1: ada asked
         ask outcomes suspend m0.1       > m0.1 pending
                                         > suspend m0.1
         refused m0.1: still short
         ask outcomes suspend m0.1       > m0.1 refused: ...still short...",
    );
}

#[test]
fn completed_task_and_kill_have_distinct_outcomes() {
    running(
        "suspend m0.1: ada asked         > suspend m0.1
         done m0.1
         ask outcomes suspend m0.1       > m0.1 overtaken: finished
                                         > launch m1.1 on w
         started m1.1
         checkpoint m1.1: ada asked      > checkpoint m1.1
         checkpointed m1.1 after 10ms
         ask outcomes checkpoint m1.1    > m1.1 done
                                         > launch m1.2 on w from m1.1
         started m1.2
         kill m1.2: ada asked
         ask outcomes kill m1.2          > m1.2 pending
                                         > kill m1.2
         killed m1.2
         ask outcomes kill m1.2          > m1.2 done",
    );
}

#[test]
fn job_is_suspended_with_its_last_attempt() {
    running(
        "suspend 1: at night
         ask outcomes suspend 1          > m0.1 pending
                                         > suspend m0.1
         suspended m0.1 after 100ms
         ask outcomes suspend 1          > m0.1 done",
    );
}
