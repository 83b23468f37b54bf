//! Failed attempts: which failures count, how often a task is retried, and the reason of the job's failure.
//! `lost_outputs` tests failures because of missing inputs.

use napreduce_engine::scenarios::check;

#[test]
fn failed_attempt_is_retried() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         failed m0.1 task: a bad row
             > record ended m0.1: a bad row
             > record launched m0.2 on 1; launch m0.2 on 1",
    );
}

#[test]
fn repeated_failure_fails_job_with_last_reason() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         failed m0.1 task: a bad row
             > launch m0.2 on 1
         failed m0.2 task: a bad row
             > launch m0.3 on 1
         failed m0.3 task: a bad row
             > launch m0.4 on 1
         failed m0.4 task: a bad row
             > job 1 failed: job_0001_m_0000 failed 4 times; last: a bad row",
    );
}

#[test]
fn failure_reasons_are_grouped() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 task: no memory
             > launch m0.2 on 1
         failed m0.2 retryable: no process
             > launch m0.3 on 1
         failed m0.3 task: no memory
             > launch m0.4 on 1
         failed m0.4 task: a bad row
             > job 1 failed: job_0001_m_0000 failed 4 times; last: a bad row; before: no memory (2 times), no process (1 time)",
    );
}

#[test]
fn failures_count_per_task() {
    check(
        "worker 1 2+0
         job 1 maps 2 attempts 2
             > launch m0.1 on 1; launch m1.1 on 1
         failed m0.1 task: a bad row
             > launch m0.2 on 1
         failed m1.1 task: a bad row
             > launch m1.2 on 1",
    );
}

#[test]
fn fatal_failure_ends_job_immediately() {
    check(
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         failed m0.1 fatal: the disk is full
             > kill m1.1
         killed m1.1
             > job 1 failed: job_0001_m_0000 is not retried: the disk is full",
    );
}

#[test]
fn unordered_kill_counts_as_failure() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 2
             > launch m0.1 on 1
         killed m0.1
             > launch m0.2 on 1
         started m0.2
         killed m0.2
             > job 1 failed: job_0001_m_0000 failed 2 times; last: host: it was killed without an order",
    );
}

#[test]
fn checkpoint_before_start_counts_as_failure() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1
             > launch m0.1 on 1
         checkpointed m0.1
             > job 1 failed: job_0001_m_0000 failed 1 time; last: host: it reported a checkpoint before it had started",
    );
}

#[test]
fn illegal_reports_change_nothing() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         progress m0.1 1/2
             > warn job_0001_m_0000.1: attempt is Launching and cannot take Progressed; ignored
         started m0.1
         started m0.1
             > warn job_0001_m_0000.1: attempt is Running and cannot take Started; ignored
         suspended m0.1
             > warn job_0001_m_0000.1: attempt is Running and cannot take Suspended; ignored
         tally illegal_reports 3",
    );
}

#[test]
fn stale_reports_are_dropped_and_counted() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 task: a bad row
             > launch m0.2 on 1
         done m0.1
         failed m0.1 fatal: again
         tally stale_reports 2",
    );
}

#[test]
fn reports_about_attempts_of_other_workers_are_dropped() {
    check(
        "worker 1 1+0
         worker 2 0+0
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1@2
         tally stale_reports 1
         done m0.1
         tally stale_reports 1",
    );
}
