//! Scenarios of FIFO: priority, submit time, id; within a job, local tasks first.

use napreduce_engine::Fifo;
use napreduce_engine::scenarios::{check, check_with};

#[test]
fn older_job_is_served_first() {
    check(
        "worker 1 3+0
         job 2 maps 2
             > launch 2:m0.1 on 1; launch 2:m1.1 on 1
         at 1ms
         job 1 maps 2
             > launch m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > launch m1.1 on 1",
    );
}

#[test]
fn priority_precedes_age_precedes_id() {
    check(
        "job 3 maps 1
         at 1ms
         job 2 maps 1
         job 1 maps 1
         job 4 maps 1 priority 1
         worker 1 4+0
             > launch 4:m0.1 on 1; launch 3:m0.1 on 1; launch m0.1 on 1; launch 2:m0.1 on 1",
    );
}

#[test]
fn priority_can_be_ignored() {
    check_with(
        Fifo {
            ignore_priority: true,
        },
        "job 3 maps 1
         at 1ms
         job 2 maps 1
         job 1 maps 1
         job 4 maps 1 priority 1
         worker 1 4+0
             > launch 3:m0.1 on 1; launch m0.1 on 1; launch 2:m0.1 on 1; launch 4:m0.1 on 1",
    );
}

#[test]
fn map_runs_where_its_input_is() {
    check(
        "job 1 maps 3 local 2
         worker 1 1+0
             > launch m0.1 on 1
         worker 2 2+0
             > launch m2.1 on 2; launch m1.1 on 2",
    );
}

#[test]
fn job_resumes_before_it_starts_tasks() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy suspend m0.1 for 2
             > suspend m0.1
         suspended m0.1
             > launch 2:m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded; resume m0.1",
    );
}

#[test]
fn unusable_slot_is_not_offered() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         job 2 maps 2
             > launch 2:m0.1 on 2
         policy suspend m0.1 for 2
             > suspend m0.1
         suspended m0.1
             > launch 2:m1.1 on 1
         tally slots_declined 0
         declined 2:
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
         tally slots_declined 0
         job 3 maps 1
             > launch 3:m0.1 on 2
         declined 2:",
    );
}
