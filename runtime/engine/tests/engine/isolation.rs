//! Tasks that crash their workers: they run alone after the second crash, and fail if they cause more.

use napreduce_engine::scenarios::check;

/// The tasks of the first job crash their workers; the second job shares a worker with them once.
const TWO_DEATHS: &str = "
    worker 1 2+0 on ada
    worker 2 2+0 on bob
    job 1 maps 1
        > launch m0.1 on 1
    job 2 maps 1
        > launch 2:m0.1 on 2
    lost 1 crashed
        > launch m0.2 on 2
    worker 3 2+0 on ada
    show records
    lost 2 crashed
        > record ended m0.2: worker_0002 was lost; record ended 2:m0.1: worker_0002 was lost
        > record alone m0: 2 workers died while it ran there; record launched m0.3 on 3; launch m0.3 on 3
";

#[test]
fn crashing_job_fails_and_others_continue() {
    check(
        &format!(
            "{TWO_DEATHS}
             worker 4 2+0 on bob
                 > launch 2:m0.2 on 4
             lost 3 crashed
             why m0
                 > waiting
                 > it must run alone because 3 workers died while it ran; it starts when worker_0004, which is reserved for such tasks, is free
                 > worker_0004 is reserved for a task that must run alone because workers died while it ran
                 > no worker takes new attempts
             started 2:m0.2
             commits 2:m0.2
                 > commit 2:m0.2
             done 2:m0.2
                 > job 2 succeeded; launch m0.4 on 4
             lost 4 crashed
             worker 5 1+0 on ada
                 > launch m0.5 on 5
             lost 5 crashed
                 > job 1 failed: job_0001_m_0000 is not retried: each of 3 workers died while it ran there alone, and 2 before: the task is assumed to be the cause"
        )
        .replace("    show records\n", "")
        .replace(
            "> record ended m0.2: worker_0002 was lost; record ended 2:m0.1: worker_0002 was lost\n        > record alone m0: 2 workers died while it ran there; record launched m0.3 on 3; launch m0.3 on 3",
            "> launch m0.3 on 3",
        ),
    );
}

#[test]
fn task_at_two_crashes_runs_alone() {
    check(TWO_DEATHS);
}

#[test]
fn task_completed_alone_is_cleared() {
    check(&format!(
        "{TWO_DEATHS}
         started m0.3
         commits m0.3
             > record granted m0.3; commit m0.3
         done m0.3
             > record done m0.3; record decided 1 succeeded; record ended 1 succeeded; job 1 succeeded
             > record launched 2:m0.2 on 3; launch 2:m0.2 on 3"
    ));
}

#[test]
fn silent_worker_isolates_no_task() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         lost 1
         worker 2 1+0
             > launch m0.2 on 2
         lost 2
         worker 3 2+0
             > launch m0.3 on 3
         lost 3
         worker 4 2+0
             > launch m0.4 on 4
         job 2 maps 1
             > launch 2:m0.1 on 4",
    );
}

#[test]
fn crashes_of_one_host_fail_no_job() {
    check(
        "worker 1 1+0 on ada
         job 1 maps 1
             > launch m0.1 on 1
         lost 1 crashed
         worker 2 1+0 on ada
             > launch m0.2 on 2
         lost 2 crashed
         worker 3 1+0 on ada
             > launch m0.3 on 3
         lost 3 crashed
         worker 4 1+0 on ada
             > launch m0.4 on 4
         worker 9 1+0 on bob
         lost 4 crashed
             > launch m0.5 on 9
         worker 5 1+0 on ada
         started m0.5
         commits m0.5
             > commit m0.5
         done m0.5
             > job 1 succeeded",
    );
}
