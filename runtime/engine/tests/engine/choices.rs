//! The engine's choices for a policy: fallbacks to possible primitives, releases by task eviction, and
//! reservations. `preemption` tests the life cycle of a request.

use napreduce_engine::scenarios::InOrder;
use napreduce_engine::{
    CostRule, EngineSettings, Instead, KindPreemption, PreemptionSettings, Primitive, Span,
    SuspendedMax,
};

use napreduce_engine::scenarios::{check, check_settings};

fn check_preemption(preemption: PreemptionSettings, script: &str) {
    let settings = EngineSettings {
        strict: true,
        preemption,
        ..EngineSettings::default()
    };
    check_settings(InOrder, settings, script);
}

#[test]
fn unsaved_attempt_falls_back_without_grace() {
    let cannot = |otherwise| PreemptionSettings {
        map: KindPreemption {
            suspend: false,
            checkpoint: false,
            otherwise,
        },
        ..PreemptionSettings::default()
    };
    let begin = "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         policy checkpoint m0.1 grace 9ms
             > ";
    check_preemption(
        cannot(Instead::Kill),
        &format!("{begin}record wanted kill m0.1; kill m0.1"),
    );
    check_preemption(
        cannot(Instead::Wait),
        &format!("{begin}record wanted wait m0.1\nat 20ms\nwake\ntally requests_forced 0"),
    );
}

#[test]
fn job_without_save_is_not_checkpointed() {
    let otherwise = KindPreemption {
        otherwise: Instead::Wait,
        ..KindPreemption::default()
    };
    check_preemption(
        PreemptionSettings {
            map: otherwise,
            ..PreemptionSettings::default()
        },
        "show records
         worker 1 2+0
         job 1 maps 1 unsaved maps
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         policy checkpoint m0.1
             > record wanted wait m0.1
         job 2 maps 1 unsaved reduces
             > record accepted 2; record launched 2:m0.1 on 1; launch 2:m0.1 on 1
         started 2:m0.1
         policy checkpoint 2:m0.1
             > record wanted checkpoint 2:m0.1; checkpoint 2:m0.1",
    );
}

#[test]
fn suspended_max_limits_worker() {
    keeping(
        SuspendedMax::AtMost(1),
        "worker 1 2+0
         hold
         job 1 maps 2
         policy launch m0 on 1
             > launch m0.1 on 1
         policy launch m1 on 1
             > launch m1.1 on 1
         started m0.1
         started m1.1
         policy suspend m0.1
             > suspend m0.1
         policy suspend m1.1
         why m1
             > running
             > job_0001_m_0001.1 runs on worker_0001, launched 0.0 s ago; it is being preempted (wait): the script says so (wait instead of suspend: worker_0001 keeps 1 suspended attempts (suspended-max))
         suspended m0.1
         tally requests_satisfied 1",
    );
}

fn keeping(suspended_max: SuspendedMax, script: &str) {
    check_preemption(
        PreemptionSettings {
            suspended_max,
            ..PreemptionSettings::default()
        },
        script,
    );
}

/// This many attempts of job 1 run on one worker; slots that they free stay empty.
fn at_work(count: u32) -> String {
    let launched: Vec<String> = (0..count)
        .map(|index| format!("launch m{index}.1 on 1"))
        .collect();
    let started: Vec<String> = (0..count)
        .map(|index| format!("started m{index}.1"))
        .collect();
    let launched = launched.join("; ");
    let started = started.join("\n");
    format!("worker 1 {count}+0\njob 1 maps {count}\n> {launched}\nhold\n{started}")
}

#[test]
fn suspended_max_defaults_to_two() {
    let begin = at_work(4);
    let two = format!(
        "{begin}
         policy suspend m0.1
             > suspend m0.1
         policy suspend m1.1
             > suspend m1.1
         policy suspend m2.1"
    );
    check_preemption(PreemptionSettings::default(), &two);
    keeping(SuspendedMax::Unlimited, &format!("{two}\n> suspend m2.1"));
    keeping(
        SuspendedMax::AtMost(0),
        &format!("{begin}\npolicy suspend m0.1"),
    );
}

#[test]
fn paused_job_on_full_worker_finishes_attempt() {
    let script = format!(
        "{}
         pause 1: lunch
             > suspend m0.1; suspend m1.1
         suspended m0.1
         suspended m1.1
         release
         commits m2.1
             > commit m2.1
         done m2.1
         continue 1: back
             > resume m0.1; resume m1.1",
        at_work(3)
    );
    check_preemption(PreemptionSettings::default(), &script);
}

#[test]
fn full_worker_accepts_again_at_half() {
    keeping(
        SuspendedMax::AtMost(4),
        &format!(
            "{}
             show records
             operator suspend m0.1: a
                 > record held m0.1; record wanted suspend m0.1; suspend m0.1
             operator suspend m1.1: b
                 > record held m1.1; record wanted suspend m1.1; suspend m1.1
             operator suspend m2.1: c
                 > record held m2.1; record wanted suspend m2.1; suspend m2.1
             policy suspend m3.1
                 > record wanted suspend m3.1; suspend m3.1
             suspended m0.1
                 > record suspended m0.1
             suspended m1.1
                 > record suspended m1.1
             suspended m2.1
                 > record suspended m2.1
             operator suspend m4.1: d
                 > warn job_0001_m_0004.1 cannot be preempted by suspend: worker_0001 keeps 4 suspended attempts (suspended-max); checkpoint or kill it; ignored
             operator resume m0.1: back
                 > record released m0.1; resume m0.1
             operator suspend m4.1: e
                 > warn job_0001_m_0004.1 cannot be preempted by suspend: worker_0001 kept 4 suspended attempts (suspended-max) and takes another one when 2 are left; checkpoint or kill it; ignored
             policy suspend m4.1
                 > record wanted wait m4.1
             failed m3.1 task: it is out of memory
                 > record ended m3.1: it is out of memory
             policy suspend m5.1
                 > record wanted suspend m5.1; suspend m5.1",
            at_work(6)
        ),
    );
}

#[test]
fn earlier_request_meets_full_worker() {
    let begin = "
         worker 1 3+0
         job 1 maps 3
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
         hold
         policy suspend m0.1
         policy suspend m1.1
         operator suspend m2.1: please
         started m0.1
             > suspend m0.1
         show records";
    keeping(
        SuspendedMax::AtMost(1),
        &format!(
            "{begin}
             started m1.1
                 > record refused m1.1 so wait; record wanted wait m1.1
             started m2.1
                 > record refused m2.1
                 > warn job_0001_m_0002.1 cannot be suspended and continues: worker_0001 keeps 1 suspended attempts (suspended-max)
             why m2
                 > running
                 > job_0001_m_0002.1 runs on worker_0001, launched 0.0 s ago"
        ),
    );
    let kill = PreemptionSettings {
        suspended_max: SuspendedMax::AtMost(1),
        when_full: Instead::Kill,
        ..PreemptionSettings::default()
    };
    let killed = "record refused m1.1 so kill; record wanted kill m1.1; kill m1.1";
    check_preemption(kill, &format!("{begin}\nstarted m1.1\n> {killed}"));
}

#[test]
fn cost_rule_compares_saved_work_with_cost() {
    let suspend = Span::from_millis(10);
    let resume = Span::from_millis(20);
    let cost = CostRule {
        suspend,
        resume,
        ..CostRule::default()
    };
    let rule = PreemptionSettings {
        cost: Some(cost),
        ..PreemptionSettings::default()
    };
    let begin = "show records
         worker 1 1+0
         job 1 maps 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         at ";
    let ask = "\npolicy suspend m0.1\n> record wanted ";
    check_preemption(rule, &format!("{begin}29ms{ask}kill m0.1; kill m0.1"));
    check_preemption(rule, &format!("{begin}30ms{ask}suspend m0.1; suspend m0.1"));
    check_preemption(
        rule,
        &format!("{begin}30ms\nprogress m0.1 9/10{ask}wait m0.1"),
    );
}

#[test]
fn eviction_and_primitive_are_independent() {
    let always = PreemptionSettings {
        primitive: Some(Primitive::Suspend.into()),
        ..PreemptionSettings::default()
    };
    check_preemption(
        always,
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         policy kill m0.1
             > suspend m0.1",
    );
}

#[test]
fn release_follows_task_eviction() {
    let release = |eviction: &str, expected: &str| {
        check(&format!(
            "worker 1 3+0
             job 1 maps 3
                 > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
             started m0.1
             started m1.1
             started m2.1
             at 10ms
             progress m0.1 50/100
             progress m1.1 80/100
             progress m2.1 20/100
             policy release 1 count 1 {eviction}
                 > kill {expected}
             policy release 1 count 5 youngest
                 > {}",
            if expected == "m1.1" {
                "kill m2.1; kill m0.1"
            } else {
                "kill m1.1; kill m0.1"
            }
        ));
    };
    release("shortest", "m1.1");
    release("longest", "m2.1");
    release("least", "m2.1");
    release("youngest", "m2.1");
}

#[test]
fn reserved_slot_is_kept_until_expiry() {
    check(
        "worker 1 1+0
         hold
         job 1 maps 1
         job 2 maps 1
         policy reserve 1 for 2 until 20ms
         policy reserve 1 for 2 until 30ms
         release
         wake
             > launch 2:m0.1 on 1",
    );
    check(
        "worker 1 1+0
         hold
         job 1 maps 1
         job 2 maps 1
         policy reserve 1 for 2 until 20ms
         at 20ms
         release
         wake
             > launch m0.1 on 1",
    );
}
