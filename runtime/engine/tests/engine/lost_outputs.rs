//! Lost map outputs: only the lost map runs again, the failure counts against it, and the retries are
//! bounded.

use napreduce_engine::scenarios::check;

#[test]
fn damaged_output_reruns_only_its_map() {
    check(
        "show records
         worker 1 2+1
         job 1 maps 2 reduces 1 attempts 2
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
             > record launched m1.1 on 1; launch m1.1 on 1
         done m0.1
             > record done m0.1
         done m1.1
             > record done m1.1; record launched r0.1 on 1; launch r0.1 on 1 reading m0.1 m1.1
         started r0.1
         failed r0.1 retryable losing m1.1: a block is damaged
             > record ended r0.1: peer: a block is damaged; record lost m1
             > record launched m1.2 on 1; launch m1.2 on 1
         done m1.2
             > record done m1.2; record launched r0.2 on 1; launch r0.2 on 1 reading m0.1 m1.2",
    );
}

#[test]
fn lost_inputs_never_count_against_reduce() {
    check(
        "worker 1 2+2
         job 1 maps 2 reduces 2 attempts 2
             > launch m0.1 on 1; launch m1.1 on 1
         done m0.1
         done m1.1
             > launch r0.1 on 1 reading m0.1 m1.1; launch r1.1 on 1 reading m0.1 m1.1
         failed r0.1 retryable losing m0.1: damaged
             > launch m0.2 on 1
         failed r1.1 retryable losing m0.1: damaged
         done m0.2
             > launch r0.2 on 1 reading m0.2 m1.1; launch r1.2 on 1 reading m0.2 m1.1
         failed r0.2 retryable losing m1.1: damaged
             > launch m1.2 on 1
         done m1.2
             > launch r0.3 on 1 reading m0.2 m1.2
         failed r1.2 task: a bad row
             > launch r1.3 on 1 reading m0.2 m1.2",
    );
}

#[test]
fn repeatedly_damaged_output_fails_job() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1 attempts 2
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1
         failed r0.1 retryable losing m0.1: damaged
             > launch m0.2 on 1
         done m0.2
             > launch r0.2 on 1 reading m0.2
         failed r0.2 retryable losing m0.2: damaged
             > job 1 failed: job_0001_m_0000 failed 2 times; last: job_0001_r_0000.2 could not read its output: damaged; before: job_0001_r_0000.1 could not read its output: damaged (1 time)",
    );
}

#[test]
fn unknown_output_excuses_no_failure() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1 attempts 2
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1
         failed r0.1 retryable losing m0.7 m9.1 2:m0.1 r0.1: damaged
             > launch r0.2 on 1 reading m0.1
         failed r0.2 retryable losing m0.7: damaged
             > job 1 failed: job_0001_r_0000 failed 2 times; last: peer: damaged",
    );
}

#[test]
fn task_failure_counts_despite_lost_output() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1 attempts 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1
         failed r0.1 task losing m0.1: a bad row
             > job 1 failed: job_0001_m_0000 failed 1 time; last: job_0001_r_0000.1 could not read its output: a bad row",
    );
}

#[test]
fn other_reduces_continue_during_rerun() {
    check(
        "worker 1 1+2
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 1 reading m0.1
         started r0.1
         failed r1.1 retryable losing m0.1: damaged
             > launch m0.2 on 1
         commits r0.1
             > commit r0.1
         done r0.1
         done m0.2
             > launch r1.2 on 1 reading m0.2",
    );
}

#[test]
fn rerun_map_is_killed_after_last_reduce() {
    check(
        "worker 1 1+0
         worker 2 0+1
         worker 3 1+0
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 2 reading m0.1
         started r0.1
         lost 1
             > launch m0.2 on 3
         commits r0.1
             > commit r0.1
         done r0.1
             > kill m0.2
         killed m0.2
             > job 1 succeeded",
    );
}

#[test]
fn running_reduce_receives_replaced_output() {
    check(
        "show records
         worker 1 1+1
         job 1 maps 2 reduces 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         done m0.1
             > record done m0.1; record launched m1.1 on 1; launch m1.1 on 1
         done m1.1
             > record done m1.1; record launched r0.1 on 1; launch r0.1 on 1 reading m0.1 m1.1
         started r0.1
         misses r0.1 m1.1: no route
             > record lost m1; record launched m1.2 on 1; launch m1.2 on 1
         done m1.2
             > record done m1.2; tell r0.1 of m1.2
         commits r0.1
             > record granted r0.1; commit r0.1
         done r0.1
             > record done r0.1; record decided 1 succeeded; record ended 1 succeeded; job 1 succeeded",
    );
}

#[test]
fn existing_replacement_is_sent_immediately() {
    check(
        "worker 1 1+2
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 1 reading m0.1
         started r0.1
         started r1.1
         misses r0.1 m0.1: no route
             > launch m0.2 on 1
         done m0.2
             > tell r0.1 of m0.2
         misses r1.1 m0.1 m0.1: no route
             > tell r1.1 of m0.2",
    );
}

#[test]
fn repeatedly_missed_output_fails_job() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1 attempts 2
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1
         started r0.1
         misses r0.1 m0.1: no route
             > launch m0.2 on 1
         done m0.2
             > tell r0.1 of m0.2
         misses r0.1 m0.2: no route
             > kill r0.1
         killed r0.1
             > job 1 failed: job_0001_m_0000 failed 2 times; last: job_0001_r_0000.1 could not read its output: no route",
    );
}

#[test]
fn reduce_cannot_miss_unknown_output() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1
         misses r0.1 m0.1: too early
             > warn job_0001_r_0000.1: attempt is Launching and cannot take InputsLost; ignored
         started r0.1
         misses r0.1 m0.2 m7.1 2:m0.1 r0.1: nonsense
             > warn job_0001_r_0000.1 reported lost inputs that it does not have; ignored
         tally illegal_reports 2",
    );
}

#[test]
fn missed_inputs_of_killed_attempt_are_ignored() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1
         started r0.1
         policy kill r0.1
             > kill r0.1
         misses r0.1 m0.1: no route
         killed r0.1
             > launch r0.2 on 1 reading m0.1",
    );
}
