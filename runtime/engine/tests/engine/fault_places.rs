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
             > record short 1 until 5000ms: local disk: no space left
         why m0
             > waiting; worker_0001 receives no tasks for another 5.0 s: local disk: no space left; no worker takes new attempts
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
             > job 1 failed: job_0001_m_0000 is not retried: on each of 2 hosts; the last: local disk: full",
    );
}

#[test]
fn full_disk_of_only_host_fails_job() {
    let settings = EngineSettings { one_host: true, strict: true, ..EngineSettings::default() };
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
fn repeated_host_limit_doubles_pause_of_worker() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1
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
