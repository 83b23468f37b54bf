//! FIFO: priority, then submit time, then id; within a job what is near, then what is first.
//!
//! Owns the order of giving. What any policy may do is tested beside the engine.

use napreduce_engine::Fifo;
use napreduce_engine::scenarios::{check, check_with};

#[test]
fn the_older_job_is_served_first_and_the_next_gets_what_is_left() {
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
fn priority_comes_before_age_and_age_before_number() {
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
fn priority_may_be_ignored() {
    check_with(
        Fifo { ignore_priority: true },
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
fn a_map_goes_where_its_input_is() {
    check(
        "job 1 maps 3 local 2
         worker 1 1+0
             > launch m0.1 on 1
         worker 2 2+0
             > launch m2.1 on 2; launch m1.1 on 2",
    );
}

#[test]
fn a_job_resumes_its_stopped_work_before_it_starts_more() {
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
fn a_slot_that_nobody_can_use_is_not_offered() {
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
