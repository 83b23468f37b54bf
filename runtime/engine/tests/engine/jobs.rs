//! Jobs of every shape from submission to their end, and every way to stop one.

use napreduce_engine::scenarios::check;

#[test]
fn job_with_maps_and_reduces_completes() {
    check(
        "worker 1 2+1
         job 1 maps 2 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         done m1.1
         done m0.1
             > launch r0.1 on 1 reading m0.1 m1.1
         started r0.1
         progress r0.1 5/10
         commits r0.1
             > commit r0.1
         done r0.1
             > job 1 succeeded",
    );
}

#[test]
fn record_precedes_dependent_order() {
    check(
        "show records
         worker 1 1+1
         job 1 maps 1 reduces 1
             > record accepted 1
             > record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         done m0.1
             > record done m0.1
             > record launched r0.1 on 1; launch r0.1 on 1 reading m0.1
         started r0.1
         commits r0.1
             > record granted r0.1; commit r0.1
         done r0.1
             > record done r0.1
             > record decided 1 succeeded
             > record ended 1 succeeded; job 1 succeeded",
    );
}

#[test]
fn map_only_job_commits_maps() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > commit m0.1
         done m0.1
             > launch m1.1 on 1
         started m1.1
         commits m1.1
             > commit m1.1
         done m1.1
             > job 1 succeeded",
    );
}

#[test]
fn job_without_maps_writes_parts() {
    check(
        "worker 1 1+2
         job 1 maps 0 reduces 2
             > launch r0.1 on 1; launch r1.1 on 1
         started r0.1
         commits r0.1
             > commit r0.1
         done r0.1
         started r1.1
         commits r1.1
             > commit r1.1
         done r1.1
             > job 1 succeeded",
    );
}

#[test]
fn job_without_tasks_completes_immediately() {
    check(
        "job 1 maps 0 reduces 0
             > job 1 succeeded",
    );
}

#[test]
fn killed_job_ends_with_last_attempt() {
    check(
        "worker 1 3+0
         job 1 maps 4 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
         started m0.1
         stop 1: ada changed her mind
             > kill m0.1; kill m1.1; kill m2.1
         killed m0.1
         started m1.1
         failed m1.1 fatal: the socket closed
         stop 1: bob did, too
         done m2.1
             > job 1 killed: ada changed her mind
         stop 1: much too late",
    );
}

#[test]
fn killed_job_without_attempts_ends_immediately() {
    check(
        "job 1 maps 1
         stop 1: ada changed her mind
             > job 1 killed: ada changed her mind",
    );
}

#[test]
fn slots_of_killed_job_are_free_after_processes_end() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         stop 1: ada changed her mind
             > kill m0.1
         progress m0.1 1/2
         killed m0.1
             > job 1 killed: ada changed her mind
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn illegal_job_events_are_ignored_with_warning() {
    check(
        "job 1 maps 1
         job 1 maps 2
             > warn job_0001 was already submitted; use a new job number; ignored
         stop 2: who
             > warn job_0002 cannot be killed: no such job; ignored
         tally illegal_events 2",
    );
}

#[test]
fn invalid_job_fails_with_reason() {
    check(
        "job 1 maps 1 attempts 0
             > job 1 failed: job_0001 cannot run: attempts_max must be at least 1
         job 2 maps 1 slowstart 1001
             > job 2 failed: job_0002 cannot run: invalid slowstart_permille 1001 (limit 1000)",
    );
}
