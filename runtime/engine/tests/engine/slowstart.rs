//! Reduces that start before all maps are done, and the inputs that they receive later.

use napreduce_engine::scenarios::check;

#[test]
fn reduces_start_after_slowstart_share() {
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
fn slowstart_zero_starts_reduces_with_job() {
    check(
        "worker 1 1+1
         job 1 maps 1 reduces 1 slowstart 0
             > launch m0.1 on 1; launch r0.1 on 1
         done m0.1
             > tell r0.1 of m0.1",
    );
}

#[test]
fn slowstart_share_is_rounded_up() {
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
fn early_reduce_receives_replaced_output() {
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
fn lost_output_blocks_reduces() {
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
fn killed_reduce_receives_no_inputs() {
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
