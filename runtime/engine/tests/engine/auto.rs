//! Automatic choice of the primitive by cost: estimates, explanations, and the conversion of suspended work.

use napreduce_engine::scenarios::{InOrder, check_settings};
use napreduce_engine::{
    AutoSettings, CostRule, EngineSettings, KindPreemption, PreemptionLimits, PreemptionSettings,
    PrimitiveChoice, Span, SuspendedMax,
};

/// Distinguishable costs: 2 and 3 ms for a suspend, 10 and 20 ms for a checkpoint, and one byte of paging per
/// millisecond.
fn auto() -> PreemptionSettings {
    let millis = Span::from_millis;
    let auto = AutoSettings {
        suspend: millis(2),
        resume: millis(3),
        checkpoint: millis(10),
        restore: millis(20),
        launch: millis(1),
        page_bandwidth: 1_000,
    };
    PreemptionSettings {
        primitive: Some(PrimitiveChoice::Auto),
        auto,
        ..PreemptionSettings::default()
    }
}

fn check(preemption: PreemptionSettings, script: &str) {
    let settings = EngineSettings {
        strict: true,
        preemption,
        ..EngineSettings::default()
    };
    check_settings(InOrder, settings, script);
}

const NO_SUSPEND: KindPreemption = KindPreemption {
    suspend: false,
    checkpoint: true,
    otherwise: napreduce_engine::Instead::Kill,
};
const NOTHING: KindPreemption = KindPreemption {
    suspend: false,
    checkpoint: false,
    otherwise: napreduce_engine::Instead::Kill,
};

/// An attempt that has worked for 40 ms and reported this progress, and a request of the policy on behalf of
/// another job.
fn victim(done: &str) -> String {
    format!(
        "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         job 2 maps 1
             > record accepted 2
         started m0.1
         at 40ms
         {done}
         policy kill m0.1 for 2
             > "
    )
}

#[test]
fn auto_uses_cheapest_possible_primitive() {
    let all = auto();
    let saved = PreemptionSettings {
        map: NO_SUSPEND,
        ..auto()
    };
    let neither = PreemptionSettings {
        map: NOTHING,
        ..auto()
    };
    let full = PreemptionSettings {
        suspended_max: SuspendedMax::AtMost(0),
        ..auto()
    };
    let suspended = PreemptionLimits {
        suspends_max: Some(0),
        ..PreemptionLimits::default()
    };
    let often = PreemptionSettings {
        limits: suspended,
        ..auto()
    };
    let early = "progress m0.1 1/2";
    let late = "progress m0.1 4/5";
    let nearly = "progress m0.1 40/41";
    let cases: [(PreemptionSettings, &str, &str); 9] = [
        (all, early, "record wanted suspend m0.1; suspend m0.1"),
        // The attempt ends in 1 ms, before any other primitive would free the slot.
        (all, nearly, "record wanted wait m0.1"),
        // The policy does not wait for an attempt without a progress report.
        (saved, "", "record wanted checkpoint m0.1; checkpoint m0.1"),
        (
            saved,
            early,
            "record wanted checkpoint m0.1; checkpoint m0.1",
        ),
        (saved, late, "record wanted wait m0.1"),
        // The kill loses 40 ms of work and the wait takes 40 ms, but the kill also has to launch an attempt.
        (neither, early, "record wanted wait m0.1"),
        (
            neither,
            "progress m0.1 1/3",
            "record wanted kill m0.1; kill m0.1",
        ),
        (
            full,
            early,
            "record wanted checkpoint m0.1; checkpoint m0.1",
        ),
        (
            often,
            early,
            "record wanted checkpoint m0.1; checkpoint m0.1",
        ),
    ];
    for (settings, done, follows) in cases {
        check(settings, &(victim(done) + follows));
    }
}

#[test]
fn refused_suspend_uses_cheapest_other_primitive() {
    let refused = "suspend m0.1
         refused m0.1: no memory
             > record refused m0.1 so";
    let saved = format!("{refused} checkpoint; record wanted checkpoint m0.1; checkpoint m0.1");
    let killed = format!("{refused} kill; record wanted kill m0.1; kill m0.1");
    let no_checkpoint = KindPreemption {
        suspend: true,
        checkpoint: false,
        ..NO_SUSPEND
    };
    check(
        auto(),
        &(victim("progress m0.1 1/2") + "record wanted suspend m0.1; " + &saved),
    );
    let settings = PreemptionSettings {
        map: no_checkpoint,
        ..auto()
    };
    check(
        settings,
        &(victim("progress m0.1 1/3") + "record wanted suspend m0.1; " + &killed),
    );
}

#[test]
fn measured_costs_replace_configured_ones() {
    check(
        auto(),
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 2
         started m0.1
         at 100ms
         progress m0.1 1/9
         policy wait m0.1 for 2
             > suspend m0.1
         at 200ms
         suspended m0.1
             > launch 2:m0.1 on 1
         why m0
             > suspended
             > job_0001_m_0000.1 is suspended and waits for a slot on worker_0001, launched 0.2 s ago, 11 % done in 0.2 s of work
             > suspended 0.0 s ago by the scheduler for job_0002: the script says so (no map was suspended yet; this one measures the cost)
             > it continues in the next map slot of worker_0001 that the scheduler gives job_0001
         started 2:m0.1
         at 300ms
         progress 2:m0.1 1/9
         policy wait 2:m0.1 for 1
             > checkpoint 2:m0.1",
    );
}

#[test]
fn attempt_without_memory_is_checkpointed_not_paged() {
    let wanted = |memory: u32, follows: &str| {
        check(
            auto(),
            &format!(
                "worker 1 1+0
                 memory 1 {memory}
                 job 1 maps 1 memory 400
                     > launch m0.1 on 1
                 job 2 maps 1 memory 400
                 started m0.1
                 at 900ms
                 progress m0.1 1/9
                 policy suspend m0.1 for 2
                     > {follows} m0.1"
            ),
        );
    };
    wanted(800, "suspend");
    // Paging out 12 bytes and in again takes 24 ms; with 13 bytes a checkpoint is cheaper.
    wanted(788, "suspend");
    wanted(787, "checkpoint");
}

#[test]
fn suspended_attempt_moves_after_waiting_for_cost_of_move() {
    check(
        auto(),
        "show wakes
         worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         at 50ms
         policy suspend m0.1 for 2
             > suspend m0.1
         suspended m0.1
             > launch 2:m0.1 on 1; wake at 80ms
         started 2:m0.1
         worker 2 1+0
         at 80ms
         wake
             > checkpoint m0.1
         checkpointed m0.1
             > launch m0.2 on 2 from m0.1",
    );
}

#[test]
fn memory_shortage_checkpoints_longest_suspended_first() {
    check(
        auto(),
        "worker 1 1+1
         memory 1 2000
         job 1 maps 1 memory 300
             > launch m0.1 on 1
         job 2 reduces 1 memory 400
             > launch 2:r0.1 on 1
         job 3 maps 1 memory 500
         job 4 reduces 1 memory 500
         started m0.1
         started 2:r0.1
         at 900ms
         policy suspend m0.1 for 3
             > suspend m0.1
         suspended m0.1
             > launch 3:m0.1 on 1
         started 3:m0.1
         at 901ms
         policy suspend 2:r0.1 for 4
             > suspend 2:r0.1
         suspended 2:r0.1
             > launch 4:r0.1 on 1
         started 4:r0.1
         memory 1 1690
         memory 1 1500
             > checkpoint m0.1
         memory 1 1300
             > checkpoint 2:r0.1",
    );
}

#[test]
fn untried_primitive_is_tried_once() {
    check(
        auto(),
        "worker 1 3+0
         job 1 maps 3
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
         job 2 maps 3
         started m0.1
         started m1.1
         started m2.1
         at 900ms
         policy wait m0.1 for 2
             > suspend m0.1
         policy wait m1.1 for 2
             > checkpoint m1.1
         at 950ms
         checkpointed m1.1
             > launch 2:m0.1 on 1
         suspended m0.1
             > launch 2:m1.1 on 1
         policy wait m2.1 for 2
             > suspend m2.1",
    );
}

#[test]
fn overrun_wait_is_decided_again() {
    // The estimate was one millisecond. The wait ends after a quarter of that plus half a second.
    let overruns = "record wanted wait m0.1
         at 541ms
         wake
         at 542ms
         wake
             > record wanted suspend m0.1; suspend m0.1";
    check(auto(), &(victim("progress m0.1 40/41") + overruns));
    let cost = CostRule {
        suspend: Span::from_millis(5),
        resume: Span::from_millis(5),
        ..CostRule::default()
    };
    let ruled = PreemptionSettings {
        cost: Some(cost),
        ..PreemptionSettings::default()
    };
    let script = victim("progress m0.1 40/41").replace("policy kill", "policy suspend") + overruns;
    check(ruled, &script);
}

#[test]
fn wait_is_decided_again_ever_more_rarely_while_nothing_is_cheaper() {
    let neither = PreemptionSettings {
        map: NOTHING,
        ..auto()
    };
    check(
        neither,
        "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         job 2 maps 1
             > record accepted 2
         started m0.1
         at 99000ms
         progress m0.1 99/100
         policy suspend m0.1 for 2
             > record wanted wait m0.1
         at 100700ms
         wake
         at 100800ms
         wake
             > record wanted wait m0.1
         at 103500ms
         wake
         at 103600ms
         wake
             > record wanted wait m0.1
         at 107500ms
         wake
         at 107700ms
         wake
             > record wanted wait m0.1
         whyjob 2
             > waiting; 0 of 1 map tasks are done; 0 running, 0 suspended, 1 waiting
             > job_0002 waits for job_0001_m_0000.1 to finish (about 1.1s left) instead of suspending it: the script says so (cheapest of wait 1s, kill 1m 39s); waited for 4.1s, and 2.8s were expected (cheapest of wait 4.1s, kill 1m 48s)
             > no map slot is free: job_0001 holds 1",
    );
}

#[test]
fn chosen_wait_is_explained() {
    let explained = "record wanted wait m0.1
         why m0
             > running
             > job_0001_m_0000.1 runs on worker_0001, launched 0.0 s ago, 97 % done in 0.0 s of work
             > it is being preempted for job_0002 (wait, about 1ms left): the script says so (cheapest of wait 1ms, suspend 5ms, checkpoint 30ms, kill 40ms)
         whyjob 2
             > waiting; 0 of 1 map tasks are done; 0 running, 0 suspended, 1 waiting
             > job_0002 waits for job_0001_m_0000.1 to finish (about 1ms left) instead of killing it: the script says so (cheapest of wait 1ms, suspend 5ms, checkpoint 30ms, kill 40ms)
             > no map slot is free: job_0001 holds 1";
    check(auto(), &(victim("progress m0.1 40/41") + explained));
}

#[test]
fn wait_after_a_refused_suspend_counts_what_was_waited_before() {
    let no_checkpoint = KindPreemption {
        suspend: true,
        checkpoint: false,
        ..NO_SUSPEND
    };
    let settings = PreemptionSettings {
        map: no_checkpoint,
        ..auto()
    };
    let script = "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         job 2 maps 1
             > record accepted 2
         started m0.1
         at 9900ms
         progress m0.1 990/991
         policy suspend m0.1 for 2
             > record wanted suspend m0.1; suspend m0.1
         refused m0.1: no memory
             > record refused m0.1 so wait; record wanted wait m0.1
         at 10500ms
         wake
             > record wanted suspend m0.1; suspend m0.1
         refused m0.1: no memory
             > record refused m0.1 so wait; record wanted wait m0.1
         at 11700ms
         wake
         at 11800ms
         wake
             > record wanted suspend m0.1; suspend m0.1";
    check(settings, script);
}
