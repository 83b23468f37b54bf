//! Reservations: a freed slot belongs to its beneficiary until it is used, no longer wanted, or expired.

use napreduce_engine::scenarios::check;

/// One slot: job 1 runs in it and has more tasks, job 2 is the beneficiary, and job 3 has a higher priority
/// than both.
const CONTEST: &str = "
    worker 1 1+0
    job 1 maps 2
        > launch m0.1 on 1
    job 2 maps 1
    job 3 maps 1 priority 9
    started m0.1
";

fn contest(then: &str) {
    check(&format!("{CONTEST}\n{then}"));
}

#[test]
fn freed_slot_goes_to_beneficiary() {
    contest(
        "policy kill m0.1 for 2
             > kill m0.1
         killed m0.1
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn taker_of_freed_slot_is_recorded() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         show records
         policy suspend m0.1 for 2
             > record wanted suspend m0.1; suspend m0.1
         suspended m0.1
             > record suspended m0.1; record launched 2:m0.1 on 1; record slot of m0.1 to 2:m0.1; launch 2:m0.1 on 1
         started 2:m0.1
         policy suspend 2:m0.1 for 1
             > record wanted suspend 2:m0.1; suspend 2:m0.1
         suspended 2:m0.1
             > record suspended 2:m0.1; record slot of 2:m0.1 to m0.1; resume m0.1",
    );
}

#[test]
fn slot_without_beneficiary_goes_by_order() {
    contest(
        "policy kill m0.1
             > kill m0.1
         killed m0.1
             > launch 3:m0.1 on 1",
    );
}

#[test]
fn ended_beneficiary_gets_nothing() {
    contest(
        "policy suspend m0.1 for 2
             > suspend m0.1
         stop 2: enough
             > job 2 killed: enough
         suspended m0.1
             > launch 3:m0.1 on 1",
    );
}

#[test]
fn unordered_request_ends_with_beneficiary() {
    contest(
        "policy kill m0.1 grace 10ms for 2
         stop 2: enough
             > job 2 killed: enough
         tally requests_cancelled 1
         at 10ms
         wake",
    );
}

#[test]
fn served_beneficiary_gets_nothing() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy suspend m0.1 for 2
             > suspend m0.1
         policy suspend m0.1 for 2
         worker 2 2+0
             > launch m1.1 on 2; launch 2:m0.1 on 2
         suspended m0.1
             > resume m0.1",
    );
}

#[test]
fn expired_reservation_goes_by_order() {
    check(
        "lenient
         show wakes
         worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy kill m0.1 grace 10ms for 2
             > wake at 10ms
         at 5ms
         hold
         commits m0.1
             > commit m0.1
         done m0.1
             > job 1 succeeded
         job 3 maps 1 priority 9
         at 10ms
         wake
             > wake at 415ms
         policy launch 3:m0 on 1
             > warn ignored Launch { task: TaskId { job: JobId(3), kind: Map, index: 0 }, worker: WorkerId(1), from: Fresh } of the scheduler: worker_0001 has no map slot for job_0003: 1 free and 1 of them reserved
             > wake at 415ms
         at 415ms
         release
         wake
             > launch 3:m0.1 on 1",
    );
}

#[test]
fn reservation_ends_with_job() {
    check(
        "worker 1 1+0
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy kill m0.1 for 2
             > kill m0.1
         hold
         killed m0.1
         job 3 maps 1
         release
         stop 2: enough
             > job 2 killed: enough; launch m0.2 on 1",
    );
}

#[test]
fn unused_slot_is_not_freed_again_for_the_same_job() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         job 2 maps 1
         hold
         policy suspend m0.1 for 2
             > suspend m0.1
         suspended m0.1
         at 400ms
         wake
         tally slots_unused 1
         policy resume m0.1
             > resume m0.1
         resumed m0.1
         policy suspend m0.1 for 2
         tally requests_useless 1
         job 3 maps 1
         policy suspend m0.1 for 3
             > suspend m0.1
         release
         suspended m0.1
             > launch 3:m0.1 on 1
         tally slots_unused 1",
    );
}

#[test]
fn slot_is_not_freed_where_task_of_beneficiary_failed() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         worker 2 1+0
         hold
         failed m0.1 retryable: a bad disk
         job 2 maps 2
         policy launch 2:m0 on 1
             > launch 2:m0.1 on 1
         policy launch 2:m1 on 2
             > launch 2:m1.1 on 2
         started 2:m0.1
         started 2:m1.1
         policy suspend 2:m0.1 for 1
         tally requests_useless 1
         policy suspend 2:m1.1 for 1
             > suspend 2:m1.1
         policy suspend 2:m0.1 for 1
         tally requests_useless 2
         release
         suspended 2:m1.1
             > launch m0.2 on 2",
    );
}
