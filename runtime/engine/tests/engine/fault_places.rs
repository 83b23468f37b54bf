//! Places of faults: a fault of one host excuses the task and never ends a job.

use napreduce_engine::EngineSettings;
use napreduce_engine::scenarios::InOrder;

use napreduce_engine::scenarios::{check, check_settings};

#[test]
fn full_local_disk_moves_task_uncounted() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 1 attempts 1
             > launch m0.1 on 1
         failed m0.1 retryable at local-disk: no space left
             > launch m0.2 on 2",
    );
}

#[test]
fn shortage_on_every_host_is_retried_uncounted() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1
             > launch m0.1 on 1
         failed m0.1 excused at shared-storage: not mounted
             > launch m0.2 on 1",
    );
}

#[test]
fn worker_without_disk_gets_no_attempts() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         failed m0.1 retryable at local-disk: no space left
             > record ended m0.1: local disk: no space left
         why m0
             > waiting; the task is not retried on worker_0001 for another 5.0 s: local disk: no space left
         short 1: 3 MiB are free
             > record short 1: 3 MiB are free
         at 6000ms
         wake
         why m0
             > waiting; worker_0001 receives no tasks until its shortage is over: 3 MiB are free; no worker takes new attempts
         short 1
             > record short 1: nothing; record launched m0.2 on 1; launch m0.2 on 1",
    );
}

#[test]
fn full_disk_of_one_host_never_fails_job() {
    check(
        "worker 1 1+0 on ada
         worker 2 1+0 on ada
         worker 3 1+0 on bob
         job 1 maps 1 attempts 2
             > launch m0.1 on 1
         failed m0.1 retryable at local-disk: full
             > launch m0.2 on 2
         failed m0.2 retryable at local-disk: full
             > launch m0.3 on 3
         failed m0.3 retryable at local-disk: full
             > job 1 failed: job_0001_m_0000 is not retried: it failed 3 times for lack of a resource of the host, on ada, bob; the last: local disk: full",
    );
}

#[test]
fn task_larger_than_disk_of_only_worker_fails_job_with_both_sizes() {
    check(
        "worker 1 1+0 on ada
         job 1 maps 1 attempts 4
             > launch m0.1 on 1
         show wakes
         failed m0.1 retryable at local-disk needing 300/120: full
             > wake at 5000ms
         at 5000ms
         wake
             > launch m0.2 on 1
         failed m0.2 retryable at local-disk needing 310/100: full
             > wake at 15000ms
         at 15000ms
         wake
             > launch m0.3 on 1
         failed m0.3 retryable at local-disk: full
             > wake at 35000ms
         at 35000ms
         wake
             > launch m0.4 on 1
         failed m0.4 retryable at local-disk needing 290/110: full
             > job 1 failed: job_0001_m_0000 is not retried: it failed 4 times for lack of a resource of the host, on ada; the last: local disk: full; it needs about 310 MiB of the worker's disk, and the largest worker has 120 MiB; free space there, add a worker with a larger disk, or make splits smaller (--split-size)",
    );
}

#[test]
fn shortage_of_one_job_leaves_worker_to_others() {
    for place in ["local-disk", "local-limit"] {
        check(&format!(
            "worker 1 1+1
             job 1 maps 1 reduces 1
                 > launch m0.1 on 1
             failed m0.1 retryable at {place}: too little
             why m0
                 > waiting; the task is not retried on worker_0001 for another 5.0 s: {words}: too little
             job 2 maps 1
                 > launch 2:m0.1 on 1
             excluded",
            words = place.replace('-', " ")
        ));
    }
}

#[test]
fn pause_of_task_ends_with_its_job() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 retryable at local-disk: full
         stop 1: no longer wanted
             > job 1 killed: no longer wanted
         show wakes
         job 2 maps 1
             > launch 2:m0.1 on 1
         at 5000ms
         wake",
    );
}

#[test]
fn pause_of_task_ends_when_worker_has_room_again() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         short 1: 3 MiB are free
         failed m0.1 retryable at local-disk: full
         at 100ms
         short 1
             > launch m0.2 on 1",
    );
}

#[test]
fn job_whose_tasks_all_lack_disk_tries_each_worker_a_few_times() {
    check(
        "worker 1 1+0
         job 1 maps 100
             > launch m0.1 on 1
         failed m0.1 retryable at local-disk: full
             > launch m1.1 on 1
         failed m1.1 retryable at local-disk: full
             > launch m2.1 on 1
         failed m2.1 retryable at local-disk: full
             > launch m3.1 on 1
         failed m3.1 retryable at local-disk: full
         why m50
             > waiting; maps of job_0001 avoid worker_0001 for another 5.0 s: 4 of them failed there; 50 map tasks of job_0001 come first
         at 5000ms
         wake
             > launch m0.2 on 1",
    );
}

#[test]
fn shortage_counts_against_worker_when_tasks_succeed_elsewhere() {
    check(
        "worker 1 4+0
         worker 2 4+0
         worker 3 1+0
         hold
         job 1 maps 4
         policy launch m0 on 1
             > launch m0.1 on 1
         policy launch m1 on 1
             > launch m1.1 on 1
         policy launch m2 on 1
             > launch m2.1 on 1
         policy launch m3 on 1
             > launch m3.1 on 1
         failed m0.1 retryable at local-limit: too many open files
         failed m1.1 retryable at local-limit: too many open files
         failed m2.1 retryable at local-limit: too many open files
         failed m3.1 retryable at local-limit: too many open files
         excluded
         release
         wake
             > launch m0.2 on 2; launch m1.2 on 2; launch m2.2 on 2; launch m3.2 on 2
         started m0.2
         commits m0.2
             > commit m0.2
         done m0.2
         started m1.2
         commits m1.2
             > commit m1.2
         done m1.2
         started m2.2
         commits m2.2
             > commit m2.2
         done m2.2
         excluded
         started m3.2
         commits m3.2
             > commit m3.2
         done m3.2
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts failed there, and their tasks then succeeded on other workers; last: job_0001_m_0003.1: local limit: too many open files
             > job 1 succeeded
         excluded 1",
    );
}

#[test]
fn full_disk_of_only_host_fails_job() {
    let settings = EngineSettings {
        one_host: true,
        strict: true,
        ..EngineSettings::default()
    };
    check_settings(
        InOrder,
        settings,
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 retryable at local-disk: no space left
             > job 1 failed: job_0001_m_0000 is not retried: local disk: no space left",
    );
}

#[test]
fn repeated_host_limit_doubles_pause_of_task() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 3
             > launch m0.1 on 1
         show wakes
         failed m0.1 retryable at local-limit: too many open files
             > wake at 5000ms
         at 5000ms
         wake
             > launch m0.2 on 1
         failed m0.2 retryable at local-limit: too many open files
             > wake at 15000ms
         at 15000ms
         wake
             > launch m0.3 on 1
         started m0.3
         commits m0.3
             > commit m0.3
         done m0.3
             > job 1 succeeded",
    );
}

#[test]
fn stopped_process_killed_for_memory_is_no_failure() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1
             > launch m0.1 on 1
         started m0.1
         policy checkpoint m0.1
             > checkpoint m0.1
         checkpointed m0.1
             > launch m0.2 on 1 from m0.1
         failed m0.2 retryable at host-memory: killed while it was suspended
             > launch m0.3 on 1 from m0.1
         failed m0.3 retryable at host-memory: killed while it was suspended
             > launch m0.4 on 1 from m0.1",
    );
}

#[test]
fn program_error_is_retried_on_second_host() {
    check(
        "worker 1 1+0 on ada
         worker 2 1+0 on bob
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 fatal at program-file: no such command
             > launch m0.2 on 2
         failed m0.2 fatal at program-file: no such command
             > job 1 failed: job_0001_m_0000 is not retried: program file: no such command",
    );
    check(
        "worker 1 2+0 on ada
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 fatal at program-file: no such command
             > job 1 failed: job_0001_m_0000 is not retried: program file: no such command",
    );
}

#[test]
fn full_output_counts_against_job() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 1
             > launch m0.1 on 1
         failed m0.1 fatal at shared-storage: cannot write OUT: no space left
             > job 1 failed: job_0001_m_0000 is not retried: shared storage: cannot write OUT: no space left",
    );
}
