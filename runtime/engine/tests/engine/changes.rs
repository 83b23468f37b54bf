//! Jobs that operators hold, release or reprioritize, and workers that they drain and undrain. The tests of
//! the policies cover queues.

use napreduce_engine::scenarios::check;

#[test]
fn held_job_finishes_running_attempts_only() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 2
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         hold 1: its input is late
             > record held 1
         whyjob 1
             > held; it is held: its input is late
             > 0 of 2 map tasks are done; 1 running, 0 suspended, 1 waiting
         hold 1: once more
             > warn job_0001 cannot be held: already held; ignored
         commits m0.1
             > record granted m0.1; commit m0.1
         done m0.1
             > record done m0.1
         continue 1: it is there
             > record released 1; record launched m1.1 on 1; launch m1.1 on 1",
    );
}

#[test]
fn held_job_can_be_suspended_but_not_reverse() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         started m0.1
         hold 1: later
         pause 1: now
             > suspend m0.1
         suspended m0.1
         hold 1: no
             > warn job_0001 cannot be held: already suspended, which is stricter than a hold; ignored
         continue 1: go on
             > resume m0.1",
    );
}

#[test]
fn unreachable_storage_does_not_replace_the_hold_of_an_operator() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 2
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         hold 1: its input is late
             > record held 1
         unreachable 1: no response
             > warn job_0001 cannot be suspended: already held; ignored
         whyjob 1
             > held; it is held: its input is late
             > 0 of 2 map tasks are done; 1 running, 0 suspended, 1 waiting",
    );
}

#[test]
fn job_of_unreachable_storage_cannot_be_held() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         started m0.1
         unreachable 1: no response
             > suspend m0.1
         suspended m0.1
         hold 1: its input is late
             > warn job_0001 cannot be held: already suspended, which is stricter than a hold; ignored
         continue 1: it responds
             > resume m0.1",
    );
}

#[test]
fn changed_priority_reorders_job() {
    check(
        "worker 1 1+0
         job 1 maps 2
             > launch m0.1 on 1
         job 2 maps 1
         change 2 priority 5: ada waits for it
         started m0.1
         commits m0.1
             > commit m0.1
         done m0.1
             > launch 2:m0.1 on 1
         change 2 priority 5: again
             > warn job_0002 cannot have priority 5: it has priority 5 already; ignored
         change 9 priority 5
             > warn job_0009 cannot have priority 5: no such job; ignored",
    );
}

#[test]
fn draining_worker_can_be_undrained() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 2
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         drain 1
             > record draining 1
         undrain 1
             > record undrained 1
         commits m0.1
             > record granted m0.1; commit m0.1
         done m0.1
             > record done m0.1; record launched m1.1 on 1; launch m1.1 on 1
         undrain 1
             > warn worker_0001: worker is Up and cannot take UndrainRequested; ignored
         undrain 9
             > warn worker_0009: worker is Unknown and cannot take UndrainRequested; ignored
         tally illegal_events 2",
    );
}

#[test]
fn left_worker_cannot_be_undrained() {
    check(
        "worker 1 1+0
         drain 1
             > leave 1
         undrain 1
             > warn worker_0001: worker is Lost and cannot take UndrainRequested; ignored",
    );
}
