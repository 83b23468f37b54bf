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

/// Three workers. The tasks that failed on the first one run on the second one.
const BROKEN: &str = "
    worker 1 4+0
    worker 2 4+0
    worker 3 1+0
    hold
    job 1 maps 6
    policy launch m0 on 1
        > launch m0.1 on 1
    policy launch m1 on 1
        > launch m1.1 on 1
    policy launch m2 on 1
        > launch m2.1 on 1
    policy launch m3 on 1
        > launch m3.1 on 1
    failed m0.1 retryable: no program
    failed m1.1 retryable: no program
    failed m2.1 retryable: no program
    failed m3.1 task: no program
    policy launch m0 on 2
        > launch m0.2 on 2
    policy launch m1 on 2
        > launch m1.2 on 2
    policy launch m2 on 2
        > launch m2.2 on 2
    policy launch m3 on 2
        > launch m3.2 on 2
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
    started m3.2
    commits m3.2
        > commit m3.2
";

#[test]
fn worker_is_excluded_when_failed_tasks_succeed_elsewhere() {
    check(&format!(
        "{BROKEN}
         excluded
         show wakes
         show records
         done m3.2
             > record done m3.2
             > record excluded 1 until 30000ms
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts failed there, and their tasks then succeeded on other workers; last: job_0001_m_0003.1: no program
         excluded 1
         drain 2
             > record draining 2; record left 2; leave 2
         drain 3
             > record draining 3; record left 3; leave 3
         excluded"
    ));
}

#[test]
fn exclusion_ends_after_its_span() {
    check(&format!(
        "{BROKEN}
         done m3.2
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts failed there, and their tasks then succeeded on other workers; last: job_0001_m_0003.1: no program
         at 29999ms
         wake
         excluded 1
         at 30000ms
         wake
         excluded"
    ));
}

#[test]
fn jobs_that_fail_everywhere_exclude_no_worker() {
    let jobs = "
        job 1 maps 4
        job 2 maps 4
        job 3 maps 4";
    let mut script = format!("worker 1 4+0\nworker 2 4+0\nworker 3 4+0\nhold\n{jobs}\n");
    for job in 1..=3 {
        for attempt in 1..=4 {
            for map in 0..4 {
                let prefix = if job == 1 {
                    String::new()
                } else {
                    format!("{job}:")
                };
                let task = format!("{prefix}m{map}");
                let worker = (map + attempt) % 3 + 1;
                if attempt == 4 && map > 0 {
                    continue;
                }
                script += &format!(
                    "policy launch {task} on {worker}\n > launch {task}.{attempt} on {worker}\n"
                );
                let ended = if attempt == 4 {
                    format!(
                        "\n > job {job} failed: job_000{job}_m_0000 failed 4 times; last: exit status 3"
                    )
                } else {
                    String::new()
                };
                script +=
                    &format!("failed {task}.{attempt} task: exit status 3{ended}\nexcluded\n");
            }
        }
    }
    script += "job 4 maps 1\nrelease\nwake\n > launch 4:m0.1 on 1\n";
    check(&script);
}

#[test]
fn tasks_of_job_avoid_worker_where_many_failed() {
    check(
        "worker 1 4+0
         worker 2 1+0
         worker 3 1+0
         job 1 maps 20
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1; launch m4.1 on 2; launch m5.1 on 3
         failed m0.1 task: no program
             > launch m6.1 on 1
         failed m1.1 task: no program
             > launch m7.1 on 1
         failed m2.1 task: no program
             > launch m8.1 on 1
         failed m3.1 task: no program
         why m9
             > waiting; maps of job_0001 avoid worker_0001 for another 30.0 s: 4 of them failed there; 4 map tasks of job_0001 come first
         at 30000ms
         wake
             > launch m9.1 on 1",
    );
}

#[test]
fn success_on_worker_clears_its_failures() {
    check(&format!(
        "{BROKEN}
         job 2 maps 1
         policy launch 2:m0 on 1
             > launch 2:m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded
         done m3.2
         excluded"
    ));
}

#[test]
fn success_on_excluded_worker_does_not_end_exclusion() {
    check(&format!(
        "{BROKEN}
         job 2 maps 1
         policy launch 2:m0 on 1
             > launch 2:m0.1 on 1
         done m3.2
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts failed there, and their tasks then succeeded on other workers; last: job_0001_m_0003.1: no program
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded
         excluded 1
         job 3 maps 1
         why 3:m0
             > waiting; worker_0001 is excluded for another 30.0 s: the last 4 attempts failed there, and their tasks then succeeded on other workers; last: job_0001_m_0003.1: no program; jobs that want map slots and come first: job_0001"
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
         worker 2 4+0
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
         failed m0.1 task: no
         failed m1.1 task: no
         failed m2.1 task: no
         failed m3.1 task: no
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
         started m3.2
         commits m3.2
             > commit m3.2
         drain 2
         done m3.2
             > job 1 succeeded; leave 2
         excluded",
    );
}

#[test]
fn at_most_half_of_workers_are_excluded() {
    check(&format!(
        "{BROKEN}
         done m3.2
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts failed there, and their tasks then succeeded on other workers; last: job_0001_m_0003.1: no program
         lost 2
         excluded 1
         lost 3
         excluded
         release
         wake
             > launch m4.1 on 1; launch m5.1 on 1"
    ));
}

#[test]
fn excluded_worker_finishes_attempts_and_drains() {
    check(&format!(
        "{BROKEN}
         job 2 maps 1
         policy launch 2:m0 on 1
             > launch 2:m0.1 on 1
         done m3.2
             > warn worker_0001 is excluded until 30.000000s: the last 4 attempts failed there, and their tasks then succeeded on other workers; last: job_0001_m_0003.1: no program
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         drain 1
         excluded
         done 2:m0.1
             > job 2 succeeded; leave 1"
    ));
}
