//! Containment of broken workers: tasks avoid workers where they failed, and failing workers are excluded,
//! but no work waits forever. `failures` tests which failures count.

use napreduce_engine::scenarios::check;

#[test]
fn failed_task_retries_on_other_worker() {
    check(
        "worker 1 4+0
         worker 2 1+0
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 retryable: no program
             > launch m0.2 on 2",
    );
}

#[test]
fn broken_free_worker_does_not_attract_retries() {
    check(
        "worker 2 1+0
         job 2 maps 1
             > launch 2:m0.1 on 2
         worker 1 1+0
         job 1 maps 1 attempts 2
             > launch m0.1 on 1
         failed m0.1 retryable: no program
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded; launch m0.2 on 2",
    );
}

#[test]
fn other_tasks_run_where_one_failed() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 3
             > launch m0.1 on 1; launch m1.1 on 2
         failed m0.1 retryable: no program
             > launch m2.1 on 1
         failed m1.1 retryable: no program
             > launch m0.2 on 2",
    );
}

#[test]
fn task_failed_everywhere_runs_anywhere() {
    check(
        "worker 1 1+0
         worker 2 1+0
         worker 3 0+1
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 retryable: no program
             > launch m0.2 on 2
         failed m0.2 retryable: no program
             > launch m0.3 on 1
         failed m0.3 retryable: no program
             > launch m0.4 on 1",
    );
}

/// A task failed on worker 1, which is free, and waits for worker 2, which is busy.
const AVOIDING: &str = "
    worker 2 1+0
    job 2 maps 1
        > launch 2:m0.1 on 2
    worker 1 1+0
    job 1 maps 1 attempts 2
        > launch m0.1 on 1
    failed m0.1 retryable: no program
";

#[test]
fn task_returns_to_failed_worker_after_loss() {
    check(&format!(
        "{AVOIDING}
         lost 2
             > launch m0.2 on 1"
    ));
}

#[test]
fn task_returns_to_failed_worker_after_drain() {
    check(&format!(
        "{AVOIDING}
         drain 2
             > launch m0.2 on 1"
    ));
}

#[test]
fn joining_worker_takes_tasks_that_avoid_others() {
    check(
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         failed m0.1 retryable: no program
             > launch m0.2 on 1
         failed m0.2 retryable: no program
             > launch m0.3 on 1
         worker 2 1+0
         failed m0.3 retryable: no program
             > launch m0.4 on 2",
    );
}

#[test]
fn map_with_unreadable_output_reruns_elsewhere() {
    check(
        "worker 1 1+0
         worker 2 0+1
         worker 3 1+0
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 2 reading m0.1
         started r0.1
         misses r0.1 m0.1: no route
             > launch m0.2 on 3",
    );
}

#[test]
fn loss_and_kill_count_against_nothing() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 2 maps 1
             > launch 2:m0.1 on 1
         job 1 maps 1
             > launch m0.1 on 2
         kill m0.1: why not
             > kill m0.1
         killed m0.1
             > launch m0.2 on 2",
    );
}

/// Three workers; every attempt on the first one fails.
const BROKEN: &str = "
    worker 1 4+0
    worker 2 1+0
    worker 3 1+0
    job 1 maps 6
        > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1; launch m4.1 on 2; launch m5.1 on 3
    hold
    failed m0.1 retryable: no program
    failed m1.1 retryable: no program
    failed m2.1 retryable: no program
";

#[test]
fn failing_worker_is_excluded_temporarily() {
    check(&format!(
        "{BROKEN}
         excluded
         show wakes
         show records
         failed m3.1 task: no program
             > record ended m3.1: no program
             > record excluded 1 until 30000ms
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts there failed, of 4 tasks; see their logs
             > wake at 30000ms
         excluded 1
         release
         job 2 maps 1
             > record accepted 2
         at 30000ms
         wake
             > record launched 2:m0.1 on 1; launch 2:m0.1 on 1
         excluded"
    ));
}

#[test]
fn success_clears_failures_of_worker() {
    check(&format!(
        "{BROKEN}
         started m3.1
         commits m3.1
             > commit m3.1
         done m3.1
         excluded
         job 2 maps 1
         policy launch 2:m0 on 1
             > launch 2:m0.1 on 1
         failed 2:m0.1 task: no program
         excluded"
    ));
}

#[test]
fn one_failing_task_excludes_no_worker() {
    check(
        "worker 1 1+0
         worker 2 0+1
         worker 3 0+1
         job 1 maps 1 attempts 9
             > launch m0.1 on 1
         failed m0.1 task: a bad row
             > launch m0.2 on 1
         failed m0.2 task: a bad row
             > launch m0.3 on 1
         failed m0.3 task: a bad row
             > launch m0.4 on 1
         failed m0.4 task: a bad row
             > launch m0.5 on 1
         excluded",
    );
}

#[test]
fn last_worker_is_never_excluded() {
    check(
        "worker 1 4+0
         job 1 maps 4
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1
         hold
         failed m0.1 task: no
         failed m1.1 task: no
         failed m2.1 task: no
         failed m3.1 task: no
         excluded",
    );
}

#[test]
fn exclusion_counts_only_workers_with_slots() {
    check(
        "worker 1 4+0
         worker 2 0+1
         job 1 maps 4
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1
         hold
         failed m0.1 task: no
         failed m1.1 task: no
         failed m2.1 task: no
         failed m3.1 task: no
         excluded",
    );
}

#[test]
fn at_most_half_of_workers_are_excluded() {
    check(&format!(
        "{BROKEN}
         failed m3.1 task: no program
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts there failed, of 4 tasks; see their logs
         lost 2
         excluded 1
         lost 3
         excluded
         release
         wake
             > launch m0.2 on 1; launch m1.2 on 1; launch m2.2 on 1; launch m3.2 on 1"
    ));
}

#[test]
fn excluded_worker_finishes_attempts_and_drains() {
    check(
        "worker 1 5+0
         worker 2 1+0
         hold
         job 1 maps 5
         policy launch m0 on 1
             > launch m0.1 on 1
         policy launch m1 on 1
             > launch m1.1 on 1
         policy launch m2 on 1
             > launch m2.1 on 1
         policy launch m3 on 1
             > launch m3.1 on 1
         policy launch m4 on 1
             > launch m4.1 on 1
         failed m0.1 task: no
         failed m1.1 task: no
         failed m2.1 task: no
         failed m3.1 task: no
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts there failed, of 4 tasks; see their logs
         started m4.1
         commits m4.1
             > commit m4.1
         drain 1
         excluded
         done m4.1
             > leave 1",
    );
}
