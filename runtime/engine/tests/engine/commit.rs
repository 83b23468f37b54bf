//! Commit grants: one attempt of a task holds the grant at a time, and preemption waits for it.

use napreduce_engine::scenarios::check;

#[test]
fn commit_grant_ends_with_attempt() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > commit m0.1
         commits m0.1
         failed m0.1 retryable: the folder vanished
             > launch m0.2 on 1
         started m0.2
         commits m0.2
             > commit m0.2
         done m0.2
             > job 1 succeeded",
    );
}

#[test]
fn done_without_grant_fails() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1
             > launch m0.1 on 1
         started m0.1
         done m0.1
             > job 1 failed: job_0001_m_0000 failed 1 time; last: host: it finished without a commit grant",
    );
}

#[test]
fn map_feeding_reduces_gets_no_grant() {
    check(
        "worker 1 1+0
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > warn job_0001_m_0000.1 asked to commit, but its output goes to reduces; ignored
         done m0.1",
    );
}

#[test]
fn reduce_gets_no_grant_before_all_maps() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1 slowstart 0
             > launch m0.1 on 1; launch r0.1 on 1
         started r0.1
         commits r0.1
             > warn job_0001_r_0000.1 asked to commit, but some of its maps never finished; ignored
         done m0.1
             > tell r0.1 of m0.1
         commits r0.1
             > commit r0.1",
    );
}

#[test]
fn killed_attempt_gets_no_grant() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         stop 1: enough
             > kill m0.1
         commits m0.1
         killed m0.1
             > job 1 killed: enough",
    );
}

#[test]
fn suspend_waits_for_commit() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > commit m0.1
         policy suspend m0.1
         policy kill m0.1
         done m0.1
             > launch m1.1 on 1
         tally requests_satisfied 1",
    );
}

#[test]
fn kill_waits_for_commit_beyond_grace() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         policy checkpoint m0.1 grace 5ms
             > checkpoint m0.1
         commits m0.1
             > commit m0.1
         at 50ms
         wake
         done m0.1
             > job 1 succeeded",
    );
}

#[test]
fn commit_requested_while_stopping_is_granted_after_resume() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy suspend m0.1 for 2
             > suspend m0.1
         commits m0.1
         suspended m0.1
             > launch 2:m0.1 on 1
         commits m0.1
         failed 2:m0.1 fatal: no
             > job 2 failed: job_0002_m_0000 is not retried: no
             > resume m0.1
         resumed m0.1
             > commit m0.1
         done m0.1
             > job 1 succeeded",
    );
}

#[test]
fn commit_requested_while_stopping_precedes_next_suspend() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         policy suspend m0.1
             > suspend m0.1
         commits m0.1
         suspended m0.1
             > resume m0.1
         policy suspend m0.1
         resumed m0.1
             > commit m0.1",
    );
}
