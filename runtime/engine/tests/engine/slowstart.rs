//! Reduces that start before all maps are done, and what they are told later.
//!
//! Owns when a reduce may start, and that it hears of every output exactly when it is ready.

use napreduce_engine::scenarios::check;

#[test]
fn reduces_become_eligible_when_enough_maps_are_done() {
    check(
        "worker 1 4+2
         job 1 maps 4 reduces 2 slowstart 500
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1
         done m3.1
         done m1.1
             > launch r0.1 on 1 reading m1.1 m3.1; launch r1.1 on 1 reading m1.1 m3.1
         done m0.1
             > tell r0.1 of m0.1; tell r1.1 of m0.1
         done m2.1
             > tell r0.1 of m2.1; tell r1.1 of m2.1",
    );
}

#[test]
fn with_zero_reduces_start_with_the_job() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1 slowstart 0
             > launch m0.1 on 1; launch r0.1 on 1
         done m0.1
             > tell r0.1 of m0.1",
    );
}

#[test]
fn a_share_that_is_not_whole_is_rounded_up() {
    check(
        "worker 1 3+1
         job 1 maps 3 reduces 1 slowstart 334
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
         done m0.1
         done m1.1
             > launch r0.1 on 1 reading m0.1 m1.1",
    );
}

#[test]
fn an_early_reduce_is_told_of_the_output_that_replaces_a_lost_one() {
    check(
        "worker 1 1+0
         worker 2 1+1
         job 1 maps 2 reduces 1 slowstart 500
             > launch m0.1 on 1; launch m1.1 on 2
         done m0.1
             > launch r0.1 on 2 reading m0.1
         started r0.1
         lost 1
         done m1.1
             > tell r0.1 of m1.1; launch m0.2 on 2
         done m0.2
             > tell r0.1 of m0.2",
    );
}

#[test]
fn while_an_output_is_lost_no_reduce_starts() {
    check(
        "worker 1 1+0
         worker 2 1+1
         job 1 maps 3 reduces 1 slowstart 300
             > launch m0.1 on 1; launch m1.1 on 2
         done m0.1
             > launch m2.1 on 1; launch r0.1 on 2 reading m0.1
         done m1.1
             > tell r0.1 of m1.1
         lost 1
             > launch m0.2 on 2
         failed r0.1 retryable losing m0.1: no route
         done m0.2
             > launch m2.2 on 2; launch r0.2 on 2 reading m0.2 m1.1",
    );
}

#[test]
fn a_reduce_that_is_being_killed_is_told_nothing() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1 slowstart 0
             > launch m0.1 on 1; launch r0.1 on 1
         policy kill r0.1
             > kill r0.1
         done m0.1
         killed r0.1
             > launch r0.2 on 1 reading m0.1",
    );
}
