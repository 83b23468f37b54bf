//! The life cycle of a preemption request: created, ordered, satisfied, forced or cancelled. `races` tests
//! reports that cross an order.

use napreduce_engine::scenarios::check;

/// One slot: job 1 runs in it, and job 2 waits for it.
const CONTEST: &str = "
    worker 1 1+0
    job 1 maps 1
        > launch m0.1 on 1
    job 2 maps 1
    started m0.1
";

fn contest(then: &str) {
    check(&format!("{CONTEST}\n{then}"));
}

#[test]
fn suspend_frees_slot_when_verified() {
    contest(
        "policy suspend m0.1 for 2
             > suspend m0.1
         progress m0.1 1/2
         suspended m0.1
             > launch 2:m0.1 on 1
         failed 2:m0.1 fatal: no
             > job 2 failed: job_0002_m_0000 is not retried: no
             > resume m0.1
         resumed m0.1
         commits m0.1
             > commit m0.1
         done m0.1
             > job 1 succeeded
         tally requests_satisfied 1",
    );
}

#[test]
fn checkpoint_ends_attempt_and_next_restores() {
    contest(
        "show records
         policy checkpoint m0.1 for 2
             > record wanted checkpoint m0.1; checkpoint m0.1
         checkpointed m0.1
             > record checkpointed m0.1; record launched 2:m0.1 on 1; record slot of m0.1 to 2:m0.1; launch 2:m0.1 on 1
         failed 2:m0.1 fatal: no
             > record ended 2:m0.1: no
             > record decided 2 failed: job_0002_m_0000 is not retried: no
             > record ended 2 failed: job_0002_m_0000 is not retried: no
             > job 2 failed: job_0002_m_0000 is not retried: no
             > record launched m0.2 on 1; launch m0.2 on 1 from m0.1",
    );
}

#[test]
fn failure_after_restore_discards_checkpoint() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         policy checkpoint m0.1
             > checkpoint m0.1
         checkpointed m0.1
             > launch m0.2 on 1 from m0.1
         started m0.2
         failed m0.2 task: the checkpoint is torn
             > launch m0.3 on 1",
    );
}

#[test]
fn kill_after_restore_keeps_checkpoint() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         policy checkpoint m0.1
             > checkpoint m0.1
         checkpointed m0.1
             > launch m0.2 on 1 from m0.1
         policy kill m0.2
             > kill m0.2
         killed m0.2
             > launch m0.3 on 1 from m0.1",
    );
}

#[test]
fn kill_is_no_failure() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 1 attempts 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         policy kill m0.1
             > record wanted kill m0.1; kill m0.1
         killed m0.1
             > record ended m0.1: preempted: the script says so
             > record launched m0.2 on 1; launch m0.2 on 1",
    );
}

#[test]
fn wait_only_reserves_slot() {
    contest(
        "job 3 maps 1 priority 9
         policy wait m0.1 for 2
         commits m0.1
             > commit m0.1
         done m0.1
             > job 1 succeeded; launch 2:m0.1 on 1
         tally requests_satisfied 1",
    );
}

#[test]
fn repeated_request_has_no_effect() {
    contest(
        "show wakes
         policy suspend m0.1 grace 10ms for 2
             > suspend m0.1; wake at 10ms
         at 5ms
         policy suspend m0.1 grace 10ms for 2
             > wake at 10ms
         policy kill m0.1
             > wake at 10ms
         at 10ms
         wake
             > kill m0.1
         killed m0.1
             > launch 2:m0.1 on 1
         tally requests_forced 1",
    );
}

#[test]
fn suspend_becomes_kill_after_grace() {
    contest(
        "policy suspend m0.1 grace 10ms for 2
             > suspend m0.1
         at 10ms
         wake
             > kill m0.1
         tally requests_forced 0
         killed m0.1
             > launch 2:m0.1 on 1
         tally requests_forced 1",
    );
}

#[test]
fn kill_waits_for_grace() {
    contest(
        "policy kill m0.1 grace 10ms for 2
         at 9ms
         wake
         at 10ms
         wake
             > kill m0.1
         killed m0.1
             > launch 2:m0.1 on 1
         tally requests_satisfied 1",
    );
}

#[test]
fn killed_suspended_attempt_frees_no_slot() {
    contest(
        "policy suspend m0.1 for 2
             > suspend m0.1
         suspended m0.1
             > launch 2:m0.1 on 1
         policy kill m0.1
             > kill m0.1
         killed m0.1
         done 2:m0.1
             > launch m0.2 on 1",
    );
}

#[test]
fn unordered_request_is_cancelled_without_trace() {
    contest(
        "show wakes
         policy kill m0.1 grace 10ms
             > wake at 10ms
         policy cancel m0.1
         at 10ms
         wake
         commits m0.1
             > commit m0.1
         tally requests_cancelled 1",
    );
}

#[test]
fn ordered_request_is_cancelled_without_beneficiary() {
    contest(
        "policy suspend m0.1 grace 10ms for 2
             > suspend m0.1
         policy cancel m0.1
         at 20ms
         wake
         suspended m0.1
             > resume m0.1",
    );
}

#[test]
fn request_after_cancel_joins_pending_order() {
    contest(
        "policy suspend m0.1
             > suspend m0.1
         policy cancel m0.1
         policy suspend m0.1 for 2
         suspended m0.1
             > launch 2:m0.1 on 1
         tally requests_satisfied 1",
    );
}

#[test]
fn impossible_action_is_refused_with_reason() {
    check(
        "lenient
         worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         policy launch m1 on 1
             > warn ignored Launch { task: TaskId { job: JobId(1), kind: Map, index: 1 }, worker: WorkerId(1), from: Fresh } of the scheduler: worker_0001 has no map slot for job_0001: 0 free and 0 of them reserved
         policy resume m0.1
             > warn ignored Resume { attempt: AttemptId { task: TaskId { job: JobId(1), kind: Map, index: 0 }, number: 1 } } of the scheduler: job_0001_m_0000.1 is Launching and its job Active
         policy cancel m0.1
             > warn ignored Cancel { attempt: AttemptId { task: TaskId { job: JobId(1), kind: Map, index: 0 }, number: 1 } } of the scheduler: there is no request to preempt job_0001_m_0000.1
         policy decline
             > warn ignored Decline { reason: \"not now\" } of the scheduler: no slot was offered
         tally illegal_actions 4",
    );
}

#[test]
fn resume_needs_free_slot() {
    check(
        "lenient
         worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy suspend m0.1 for 2
             > suspend m0.1
         suspended m0.1
             > launch 2:m0.1 on 1
         policy resume m0.1
             > warn ignored Resume { attempt: AttemptId { task: TaskId { job: JobId(1), kind: Map, index: 0 }, number: 1 } } of the scheduler: worker_0001 has no map slot for job_0001: 0 free and 0 of them reserved",
    );
}

#[test]
#[should_panic(expected = "illegal action Cancel")]
fn strict_settings_panic_on_illegal_action() {
    check("policy cancel m0.1");
}

#[test]
fn policy_can_request_wake_up() {
    check(
        "show wakes
         policy wake 30ms
             > wake at 30ms
         policy wake 20ms
             > wake at 20ms
         at 20ms
         wake
             > wake at 30ms
         at 30ms
         wake
         policy wake 60ms
             > wake at 60ms
         policy wake 40ms
             > wake at 40ms
         at 50ms
         job 1 maps 1
             > wake at 60ms",
    );
}

#[test]
fn active_time_excludes_suspension() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         at 5ms
         started m0.1
         at 8ms
         active m0.1 3ms
         policy suspend m0.1 for 2
             > suspend m0.1
         at 9ms
         suspended m0.1
             > launch 2:m0.1 on 1
         at 20ms
         active m0.1 4ms
         failed 2:m0.1 fatal: no
             > job 2 failed: job_0002_m_0000 is not retried: no
             > resume m0.1
         at 30ms
         resumed m0.1
         at 32ms
         active m0.1 6ms",
    );
}

#[test]
fn preemption_for_own_job_is_refused() {
    check(
        "lenient
         worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         started m0.1
         policy kill m0.1 for 1
             > warn ignored Preempt(Preempt { attempt: AttemptId { task: TaskId { job: JobId(1), kind: Map, index: 0 }, number: 1 }, primitive: Kill, grace: None, reason: \"the script says so\", beneficiary: Some(JobId(1)) }) of the scheduler: cannot preempt job_0001_m_0000.1 for its own job
         tally requests_refused 1
         tally illegal_actions 1",
    );
}

#[test]
fn past_wake_up_is_put_off() {
    check(
        "lenient
         show wakes
         at 50ms
         policy wake 50ms
             > warn the scheduler requested a wake-up at 0.050000s, which is not in the future; delayed by 100ms; wake at 150ms
         tally wakes_put_off 1",
    );
}

/// One slot: job 1 runs in it, job 2 waits for it, and the policy has requested it for job 2.
fn wanted(request: &str, then: &str) {
    check(&format!(
        "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         job 2 maps 1
             > record accepted 2
         started m0.1
         policy {request} m0.1 grace 10ms for 2
             > record wanted {request} m0.1
         {then}"
    ));
}

#[test]
fn request_is_withdrawn_when_beneficiary_gets_other_slot() {
    for request in ["wait", "kill"] {
        wanted(
            request,
            "worker 2 1+0
                 > record launched 2:m0.1 on 2; launch 2:m0.1 on 2; record withdrawn m0.1: job_0002 needs no more slots
             tally requests_cancelled 1
             at 10ms
             wake
             commits m0.1
                 > record granted m0.1; commit m0.1",
        );
    }
}

#[test]
fn request_is_withdrawn_when_beneficiary_is_killed() {
    for request in ["wait", "kill"] {
        wanted(
            request,
            "stop 2: enough
                 > record decided 2 killed: enough; record withdrawn m0.1: job_0002 is over
                 > record ended 2 killed: enough; job 2 killed: enough
             tally requests_cancelled 1",
        );
    }
}

#[test]
fn request_is_withdrawn_when_beneficiary_is_paused() {
    wanted(
        "kill",
        "hold 2: at night
             > record held 2; record withdrawn m0.1: job_0002 is paused
         at 10ms
         wake",
    );
}

#[test]
fn request_is_withdrawn_when_its_worker_drains() {
    wanted(
        "kill",
        "drain 1
             > record withdrawn m0.1: worker_0001 takes no attempts any more; record draining 1
         at 10ms
         wake",
    );
}

#[test]
fn latest_surplus_request_is_withdrawn_first() {
    check(
        "show records
         worker 1 2+0
         job 1 maps 2
             > record accepted 1
             > record launched m0.1 on 1; launch m0.1 on 1; record launched m1.1 on 1; launch m1.1 on 1
         job 2 maps 2
             > record accepted 2
         started m0.1
         started m1.1
         policy wait m1.1 for 2
             > record wanted wait m1.1
         at 1ms
         policy wait m0.1 for 2
             > record wanted wait m0.1
         worker 2 1+0
             > record launched 2:m0.1 on 2; launch 2:m0.1 on 2; record withdrawn m0.1: job_0002 needs no more slots
         commits m1.1
             > record granted m1.1; commit m1.1
         done m1.1
             > record done m1.1; record launched 2:m1.1 on 1; record slot of m1.1 to 2:m1.1; launch 2:m1.1 on 1",
    );
}

#[test]
fn slot_of_ordered_request_is_unused_when_beneficiary_is_over() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         job 2 maps 1
             > record accepted 2
         started m0.1
         policy suspend m0.1 for 2
             > record wanted suspend m0.1; suspend m0.1
         stop 2: enough
             > record decided 2 killed: enough; record ended 2 killed: enough; job 2 killed: enough
         suspended m0.1
             > record suspended m0.1; resume m0.1; record slot of m0.1 unused by job_0002
         tally slots_unused 1",
    );
}
