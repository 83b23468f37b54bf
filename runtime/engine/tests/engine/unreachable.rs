//! Unreachable outputs: a worker that one host cannot reach is not lost. `lost_outputs` tests absent and
//! damaged outputs.

use napreduce_engine::scenarios::check;

/// A reduce on bob cannot read from ada.
const ONE_HOST: &str = "
    worker 1 1+0 on ada
    worker 2 0+1 on bob
    worker 3 0+1 on eve
    job 1 maps 1 reduces 1 attempts 1
        > launch m0.1 on 1
    done m0.1
        > launch r0.1 on 2 reading m0.1
    started r0.1
    misses r0.1 m0.1: no route
        > tell r0.1 of m0.1
    misses r0.1 m0.1: no route
        > kill r0.1
    killed r0.1
        > launch r0.2 on 3 reading m0.1
    started r0.2
";

#[test]
fn unreachable_host_fails_no_job() {
    check(&format!(
        "{ONE_HOST}
         commits r0.2
             > commit r0.2
         done r0.2
             > job 1 succeeded"
    ));
}

#[test]
fn output_unreachable_from_two_hosts_is_lost() {
    check(&ONE_HOST.replace("attempts 1", "attempts 2").replace(
        "started r0.2",
        "started r0.2
         misses r0.2 m0.1: no route
             > launch m0.2 on 1
         done m0.2
             > tell r0.2 of m0.2",
    ));
}

#[test]
fn workers_of_one_host_count_once() {
    check(
        "worker 1 1+0 on ada
         worker 2 0+1 on bob
         worker 3 0+1 on bob
         worker 4 0+1 on eve
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 2 reading m0.1; launch r1.1 on 3 reading m0.1
         started r0.1
         started r1.1
         misses r0.1 m0.1: no route
             > tell r0.1 of m0.1
         misses r1.1 m0.1: no route
             > tell r1.1 of m0.1
         misses r1.1 m0.1: no route
             > kill r1.1",
    );
}

#[test]
fn output_is_lost_without_other_hosts() {
    check(
        "worker 1 1+0 on ada
         worker 2 0+1 on bob
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 2 reading m0.1
         started r0.1
         misses r0.1 m0.1: no route
             > launch m0.2 on 1",
    );
}

#[test]
fn reduce_moves_to_worker_with_output() {
    check(
        "worker 1 1+1 on ada
         worker 2 1+2 on bob
         job 1 maps 2 reduces 1
             > launch m0.1 on 1; launch m1.1 on 2
         done m0.1
         done m1.1
             > launch r0.1 on 2 reading m0.1 m1.1
         started r0.1
         misses r0.1 m0.1: no route
             > tell r0.1 of m0.1
         misses r0.1 m0.1: no route
             > kill r0.1
         killed r0.1
             > launch r0.2 on 1 reading m0.1 m1.1
         started r0.2
         misses r0.2 m1.1: no route
             > tell r0.2 of m1.1",
    );
}

#[test]
fn absent_output_is_lost_at_first_report() {
    check(
        "worker 1 1+0 on ada
         worker 2 0+1 on bob
         worker 3 0+1 on eve
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 2 reading m0.1
         started r0.1
         lacks r0.1 m0.1: no such output
             > launch m0.2 on 1",
    );
}

#[test]
fn explain_names_unreachable_hosts() {
    check(
        "worker 1 1+0 on ada
         worker 2 0+1 on bob
         worker 3 0+1 on eve
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 2 reading m0.1
         started r0.1
         misses r0.1 m0.1: no route
             > tell r0.1 of m0.1
         hold
         kill r0.1: look
             > kill r0.1
         killed r0.1
         why r0
             > waiting; bob could not read map outputs from worker_0001",
    );
}
