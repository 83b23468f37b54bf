//! Explanations of why a task does not run.

use napreduce_engine::scenarios::check;

#[test]
fn no_worker_or_slot_is_explained() {
    check(
        "job 1 maps 1 reduces 1 slowstart 0
         why m0
             > waiting; no worker is up; start one
         worker 1 0+1
             > launch r0.1 on 1
         why m0
             > waiting; no worker has map slots
         drain 1
         why m0
             > waiting; worker_0001 is draining; no worker takes new attempts",
    );
}

#[test]
fn jobs_and_tasks_before_are_explained() {
    check(
        "worker 1 2+0
         job 1 maps 3
             > launch m0.1 on 1; launch m1.1 on 1
         job 2 maps 2
         why 2:m1
             > waiting; no map slot is free: job_0001 holds 2
             > jobs that want map slots and come first: job_0001; 1 map tasks of job_0002 come first",
    );
}

#[test]
fn waiting_reduce_is_explained() {
    check(
        "worker 1 2+1
         job 1 maps 3 reduces 1 slowstart 500
             > launch m0.1 on 1; launch m1.1 on 1
         done m0.1
             > launch m2.1 on 1
         why r0
             > waiting; it waits for maps: 2 of 3 must be done (slow-start), 1 are
         done m1.1
             > launch r0.1 on 1 reading m0.1 m1.1
         at 1500ms
         started r0.1
         why r0
             > running; job_0001_r_0000.1 runs on worker_0001, launched 1.5 s ago; it waits for the outputs of 1 maps
         failed r0.1 retryable losing m0.1: damaged
             > launch m0.2 on 1
         why r0
             > waiting; it waits for 1 lost map outputs, which are being recomputed",
    );
}

#[test]
fn avoided_worker_is_explained() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 2 maps 1
             > launch 2:m0.1 on 1
         job 1 maps 1
             > launch m0.1 on 2
         failed m0.1 task: a bad row
         why m0
             > waiting; worker_0002 has a free map slot, but the task failed there and another worker can run it
             > it failed 1 of at most 4 times, on worker_0002; last: a bad row",
    );
}

#[test]
fn reserved_and_declined_slots_are_explained() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         hold
         policy checkpoint m0.1 for 2
             > checkpoint m0.1
         why m0
             > running; job_0001_m_0000.1 is saving its work on worker_0001, launched 0.0 s ago; it is being preempted for job_0002 (checkpoint): the script says so
         why 2:m0
             > waiting; no map slot is free: job_0001 holds 1
             > jobs that want map slots and come first: job_0001
             > job_0001_m_0000.1 is being preempted for job_0002 (checkpoint, requested 0.0 s ago)
         checkpointed m0.1
         why m1
             > waiting; a free map slot of worker_0001 is kept for job_0002 for another 0.4 s
             > 1 map tasks of job_0001 come first
         at 500ms
         wake
         policy decline
         why m0
             > waiting; the scheduler left a map slot of worker_0001 empty: not now",
    );
}

#[test]
fn worker_that_a_job_avoids_is_explained() {
    check(
        "worker 1 4+0
         worker 2 1+0
         job 1 maps 5
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1; launch m4.1 on 2
         hold
         failed m0.1 task: no
         failed m1.1 task: no
         failed m2.1 task: no
         failed m3.1 task: no
         at 1000ms
         wake
         why m0
             > waiting; maps of job_0001 avoid worker_0001 for another 29.0 s: 4 of them failed there
             > it failed 1 of at most 4 times, on worker_0001; last: no",
    );
}

#[test]
fn states_of_attempts_are_explained() {
    check(
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         why m0
             > running; job_0001_m_0000.1 is starting on worker_0001, launched 0.0 s ago
         started m0.1
         started m1.1
         progress m0.1 1/4
         at 2000ms
         wake
         why m0
             > running; job_0001_m_0000.1 runs on worker_0001, launched 2.0 s ago, 25 % done in 2.0 s of work
         hold
         policy suspend m0.1
             > suspend m0.1
         suspended m0.1
         why m0
             > suspended; job_0001_m_0000.1 is suspended and waits for a slot on worker_0001, launched 2.0 s ago, 25 % done in 2.0 s of work; suspended 0.0 s ago by the scheduler: the script says so; it continues in the next map slot of worker_0001 that the scheduler gives job_0001
         commits m1.1
             > commit m1.1
         why m1
             > running; job_0001_m_0001.1 commits its output on worker_0001, launched 2.0 s ago
         done m1.1
         why m1
             > succeeded; completed by job_0001_m_0001.1 on worker_0001 in 2.0 s
         kill m0.1: ada wants it
             > kill m0.1
         why m0
             > running; job_0001_m_0000.1 is being killed on worker_0001, launched 2.0 s ago, 25 % done in 2.0 s of work; ada wants it",
    );
}

#[test]
fn job_progress_is_explained() {
    check(
        "worker 1 1+1
         job 1 maps 2 reduces 1
             > launch m0.1 on 1
         whyjob 1
             > running; 0 of 2 map tasks are done; 1 running, 0 suspended, 1 waiting
             > no map slot is free: job_0001 holds 1
             > 0 of 1 reduce tasks are done; 0 running, 0 suspended, 1 waiting
             > it waits for maps: 2 of 2 must be done (slow-start), 0 are
         stop 1: enough
             > kill m0.1
         whyjob 1
             > stopping; job_0001 is ending, since it is killed: enough; 1 attempts are being killed
             > 0 of 2 map tasks are done; 1 running, 0 suspended, 1 waiting
             > 0 of 1 reduce tasks are done; 0 running, 0 suspended, 1 waiting
         killed m0.1
             > job 1 killed: enough
         whyjob 1
             > ended; job_0001 has ended; see its history
         why 7:m0
             > unknown; there is no job_0007",
    );
}

#[test]
fn unknown_task_is_explained() {
    check(
        "job 1 maps 1
         why m5
             > unknown; job_0001 has 1 map tasks",
    );
}

#[test]
fn suspension_by_policy_is_explained() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         job 2 maps 1
         policy suspend m0.1 for 2
             > suspend m0.1
         suspended m0.1
             > launch 2:m0.1 on 1
         at 3000ms
         wake
         whyjob 1
             > suspended; 0 of 1 map tasks are done; 0 running, 1 suspended, 0 waiting
             > job_0001_m_0000.1 on worker_0001 is suspended: suspended 3.0 s ago by the scheduler for job_0002: the script says so; it continues in the next map slot of worker_0001 that the scheduler gives job_0001
         operator suspend m0.1: ada needs the machine
         whyjob 1
             > suspended; 0 of 1 map tasks are done; 0 running, 1 suspended, 0 waiting
             > job_0001_m_0000.1 on worker_0001 is suspended: suspended 3.0 s ago by an operator for job_0002: ada needs the machine; it continues when an operator resumes it
         whyjob 2
             > running; 0 of 1 map tasks are done; 1 running, 0 suspended, 0 waiting",
    );
}
