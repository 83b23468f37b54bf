//! Duplicates of stragglers, with the default settings: 5 s of work, three finished tasks, twice their
//! median.

use napreduce_engine::scenarios::check;

/// Four maps of a map-only job; three took 2 s, and the last one is 10% done. Both workers have a free slot.
const SLOW: &str = "speculating
    worker 1 3+0
    worker 2 2+0
    job 1 maps 4 attempts 2
        > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 2; launch m3.1 on 1
    started m0.1
    started m1.1
    started m2.1
    started m3.1
    at 2000ms
    commits m0.1
        > commit m0.1
    commits m1.1
        > commit m1.1
    commits m2.1
        > commit m2.1
    done m0.1
    done m1.1
    done m2.1
    progress m3.1 10/100
";

fn slow(then: &str) {
    check(&format!("{SLOW}\n{then}"));
}

/// The last map has a duplicate on worker 2, since the rest of it would take another 45 s.
fn doubled(then: &str) {
    slow(&format!(
        "at 3000ms
         wake
         at 5000ms
         wake
             > launch m3.2 on 2
         started m3.2
         {then}"
    ));
}

#[test]
fn first_finished_duplicate_counts() {
    doubled(
        "show records
         commits m3.2
             > record granted m3.2; commit m3.2
         done m3.2
             > record done m3.2; kill m3.1; record decided 1 succeeded
         killed m3.1
             > record ended m3.1: killed: job_0001_m_0003.2 did the task first
             > record ended 1 succeeded; job 1 succeeded",
    );
}

/// Its output is committed only after the duplicate has ended, so the kill comes in time.
#[test]
fn job_that_waits_for_a_duplicate_can_be_killed() {
    doubled(
        "show records
         commits m3.2
             > record granted m3.2; commit m3.2
         done m3.2
             > record done m3.2; kill m3.1; record decided 1 succeeded
         stop 1: ada changed her mind
             > record decided 1 killed: ada changed her mind
         stop 1: ada is impatient
         killed m3.1
             > record ended m3.1: killed: job_0001_m_0003.2 did the task first
             > record ended 1 killed: ada changed her mind; job 1 killed: ada changed her mind
         tally illegal_events 0",
    );
}

#[test]
fn original_can_finish_before_duplicate() {
    doubled(
        "commits m3.1
             > commit m3.1
         done m3.1
             > kill m3.2
         done m3.2
             > job 1 succeeded
         tally illegal_reports 0",
    );
}

#[test]
fn one_of_two_duplicates_commits() {
    doubled(
        "commits m3.1
             > commit m3.1
         commits m3.2
         commits m3.2
         done m3.1
             > kill m3.2
         killed m3.2
             > job 1 succeeded",
    );
}

#[test]
fn failed_committer_passes_grant_to_duplicate() {
    doubled(
        "commits m3.1
             > commit m3.1
         commits m3.2
         failed m3.1 retryable: the folder vanished
             > commit m3.2
         done m3.2
             > job 1 succeeded",
    );
}

#[test]
fn lost_committer_passes_grant_to_duplicate() {
    doubled(
        "commits m3.1
             > commit m3.1
         commits m3.2
         lost 1
             > commit m3.2
         done m3.2
             > job 1 succeeded",
    );
}

#[test]
fn launch_record_names_duplicate() {
    slow(
        "show records
         at 5000ms
         wake
             > record launched m3.2 on 2 as duplicate of m3.1; launch m3.2 on 2",
    );
}

#[test]
fn failed_duplicate_counts_and_is_not_replaced() {
    doubled(
        "failed m3.2 task: no memory
         at 9000ms
         wake
         failed m3.1 task: no memory
             > job 1 failed: job_0001_m_0003 failed 2 times; last: no memory",
    );
}

#[test]
fn duplicate_continues_without_original() {
    doubled(
        "lost 1
         commits m3.2
             > commit m3.2
         done m3.2
             > job 1 succeeded",
    );
}

#[test]
fn task_is_retried_when_both_attempts_are_gone() {
    doubled(
        "kill m3.1: why not
             > kill m3.1
         kill m3.2: why not
             > kill m3.2
         killed m3.2
         killed m3.1
             > launch m3.3 on 1",
    );
}

#[test]
fn stopped_job_ends_with_both_attempts() {
    doubled(
        "stop 1: enough
             > kill m3.1; kill m3.2
         killed m3.1
         killed m3.2
             > job 1 killed: enough",
    );
}

#[test]
fn wanted_slot_gets_no_duplicate() {
    slow(
        "hold
         job 2 maps 1
         at 5000ms
         wake
         at 9000ms
         wake
         release
         wake
             > launch 2:m0.1 on 1
         at 11000ms
         wake
             > launch m3.2 on 2",
    );
}

#[test]
fn duplicate_runs_on_other_worker() {
    slow(
        "lost 2
         at 9000ms
         wake
         worker 3 1+0
         at 10000ms
         wake
             > launch m3.2 on 3",
    );
}

#[test]
fn duplicate_avoids_failed_and_draining_workers() {
    slow(
        "failed m3.1 retryable: no program
             > launch m3.2 on 2
         started m3.2
         at 20000ms
         wake
         worker 3 1+0
         drain 3
             > leave 3
         at 30000ms
         wake
         worker 4 1+0
         at 31000ms
         wake
             > launch m3.3 on 4",
    );
}

#[test]
fn nearly_done_attempt_gets_no_duplicate() {
    slow(
        "at 5000ms
         progress m3.1 90/100
         wake
         at 5500ms
         wake",
    );
}

#[test]
fn attempt_without_progress_gets_duplicate_after_three_medians() {
    slow(
        "progress m3.1 0/0
         at 5500ms
         wake
         at 6500ms
         wake
             > launch m3.2 on 2",
    );
}

#[test]
fn suspended_attempt_is_no_straggler() {
    slow(
        "hold
         policy suspend m3.1
             > suspend m3.1
         at 9000ms
         wake
         suspended m3.1
         at 19000ms
         wake
         release
         wake
             > resume m3.1
         resumed m3.1
         active m3.1 9000ms
         at 19100ms
         wake
         at 21000ms
         wake
             > launch m3.2 on 2",
    );
}

#[test]
fn committing_or_preempted_attempt_gets_no_duplicate() {
    slow(
        "policy wait m3.1
         at 9000ms
         wake
         policy cancel m3.1
         commits m3.1
             > commit m3.1
         at 12000ms
         wake",
    );
}

#[test]
fn resume_of_duplicate_leaves_original_suspended() {
    doubled(
        "operator suspend m3.1: wait
             > suspend m3.1
         suspended m3.1
         operator suspend m3.2: wait
             > suspend m3.2
         suspended m3.2
         operator resume m3.2: go on
             > resume m3.2
         resumed m3.2",
    );
}

#[test]
fn too_few_finished_tasks_give_no_median() {
    check(
        "speculating
         show wakes
         worker 1 3+0
         worker 2 3+0
         job 1 maps 5
             > launch m0.1 on 1; launch m1.1 on 2; launch m2.1 on 1; launch m3.1 on 2; launch m4.1 on 1
         started m0.1
         started m4.1
         commits m0.1
             > commit m0.1
         done m0.1
             > wake at 1000ms
         at 20000ms
         wake
             > wake at 21000ms",
    );
}

#[test]
fn no_candidates_set_no_wake_up() {
    check(
        "speculating
         show wakes
         worker 1 1+0
         job 1 maps 3
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > commit m0.1
         done m0.1
             > launch m1.1 on 1
         started m1.1
         at 9000ms
         wake
         commits m1.1
             > commit m1.1
         done m1.1
             > launch m2.1 on 1",
    );
}

#[test]
fn first_of_two_map_outputs_is_read() {
    check(
        "speculating
         worker 1 2+0
         worker 2 1+1
         job 1 maps 2 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         at 1000ms
         done m0.1
         at 6000ms
         wake
             > launch m1.2 on 2
         started m1.2
         done m1.2
             > kill m1.1; launch r0.1 on 2 reading m0.1 m1.2
         done m1.1
         started r0.1
         lost 2
             > launch m1.3 on 1",
    );
}

#[test]
fn reduce_waiting_for_maps_is_no_straggler() {
    check(
        "speculating
         worker 1 2+2
         worker 2 0+2
         job 1 maps 2 reduces 2 slowstart 0
             > launch m0.1 on 1; launch m1.1 on 1; launch r0.1 on 1; launch r1.1 on 2
         started m0.1
         started m1.1
         started r0.1
         started r1.1
         done m0.1
             > tell r0.1 of m0.1; tell r1.1 of m0.1
         done m1.1
             > tell r0.1 of m1.1; tell r1.1 of m1.1
         at 1000ms
         commits r0.1
             > commit r0.1
         done r0.1
         lacks r1.1 m0.1: no such output
             > launch m0.2 on 1
         started m0.2
         at 20000ms
         wake
         done m0.2
             > tell r1.1 of m0.2
         at 21000ms
         wake
             > launch r1.2 on 1 reading m0.2 m1.1",
    );
}
