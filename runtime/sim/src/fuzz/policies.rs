//! Random configuration files with the tables of all policies and of preemption. Trigger rules are excluded,
//! since they can wait forever by design.

use std::iter::repeat_n;

use napreduce_engine::Primitive;
use napreduce_schedulers::SchedulerName;

use super::draw::Draw;
use super::jobs::QUEUES;

const EVICTIONS: [&str; 5] = [
    "shortest-remaining",
    "longest-remaining",
    "random",
    "youngest",
    "least-progress",
];

/// Returns a policy; preempting and composed ones are more frequent.
pub(super) fn name(draw: &mut Draw) -> SchedulerName {
    let times = |name: SchedulerName| match name {
        SchedulerName::Fair | SchedulerName::Composed => 3,
        SchedulerName::Capacity | SchedulerName::NatjamDeadline => 2,
        SchedulerName::Trigger => 0,
        _ => 1,
    };
    let all = SchedulerName::ALL
        .into_iter()
        .flat_map(|name| repeat_n(name, times(name)));
    draw.of(&all.collect::<Vec<_>>())
}

/// Returns the policies that can assign slots of either kind.
fn parts() -> Vec<&'static str> {
    let alone = [
        SchedulerName::Fcs,
        SchedulerName::Trigger,
        SchedulerName::Composed,
    ];
    let parts = SchedulerName::ALL
        .into_iter()
        .filter(|name| !alone.contains(name));
    parts.map(SchedulerName::in_words).collect()
}

/// Returns a configuration file with the tables of all policies.
pub(super) fn file(draw: &mut Draw) -> String {
    let tables = [
        preemption,
        fair,
        capacity,
        natjam,
        natjam_deadline,
        hfsp,
        fcs,
        composed,
    ];
    tables.map(|table| table(draw)).concat()
}

fn span(draw: &mut Draw, key: &str, all: &[&str]) -> String {
    let value = draw.of(all);
    draw.perhaps(key, format!("\"{value}\""))
}

fn delay(draw: &mut Draw) -> String {
    let declines = draw.of(&[0, 0, 3, 40]);
    let more = draw.of(&[0, 0, 5]);
    let beat = draw.of(&["0s", "200ms", "3s"]);
    format!("delay = {{ declines = {declines}, rack-declines = {more}, heartbeat = \"{beat}\" }}\n")
}

fn preemption(draw: &mut Draw) -> String {
    let mut text = "[preemption]\n".to_owned();
    if draw.chance(40) {
        text += &draw.word(
            "primitive",
            &["wait", "kill", "suspend", "checkpoint", "auto"],
        );
    }
    let most = draw.of(&["0", "1", "2", "5", "\"unlimited\""]);
    text += &draw.perhaps("suspended-max", most);
    text += &draw.word("when-full", &["wait", "kill"]);
    if draw.chance(30) {
        text += &draw.word("escalate", &["kill", "never"]);
    }
    if draw.chance(30) {
        let most = draw.of(&[0, 1, 3, 30]);
        text += &format!("preemptions-without-progress-max = {most}\n");
    }
    if draw.chance(30) {
        let measured = draw.chance(50);
        let kill_fresh = draw.chance(50);
        text += &format!(
            "cost = {{ suspend = \"1s\", resume = \"2s\", measured = {measured}, kill-fresh = {kill_fresh} }}\n"
        );
    }
    if draw.chance(30) {
        let least = draw.of(&["0s", "1s", "10s"]);
        let most = draw.of(&["suspends-max", "preemptions-max"]);
        let times = draw.number(0, 5);
        text += &format!("limits = {{ minimum-run = \"{least}\", {most} = {times} }}\n");
    }
    if draw.chance(40) {
        let after = draw.of(&["0s", "2s", "30s"]);
        let to = draw.of(&["checkpoint", "kill"]);
        text += &format!("convert = {{ after = \"{after}\", to = \"{to}\" }}\n");
    }
    for kind in ["map", "reduce"] {
        if draw.chance(25) {
            let suspend = draw.chance(50);
            let checkpoint = draw.chance(50);
            let otherwise = draw.of(&["wait", "kill"]);
            text += &format!(
                "[preemption.{kind}]\nsuspend = {suspend}\ncheckpoint = {checkpoint}\notherwise = \"{otherwise}\"\n"
            );
        }
    }
    text
}

fn fair(draw: &mut Draw) -> String {
    let mut text = "\n[scheduler.fair]\npreemption = true\n".to_owned();
    text += &draw.word("primitive", &Primitive::WORDS);
    let gate = draw.of(&["0", "0.5", "0.8"]);
    text += &draw.perhaps("utilization-gate", gate);
    text += &span(draw, "kill-wait", &["0s", "1s", "15s"]);
    text += &span(draw, "recheck-delay", &["0s", "1s", "10s"]);
    text += &span(draw, "update-interval", &["1ms", "100ms", "500ms", "5s"]);
    text += &span(draw, "heartbeat", &["0s", "200ms", "3s"]);
    for switch in ["size-based-weight", "priority-weight", "cap-by-demand"] {
        text += &draw.perhaps(switch, true);
    }
    text += &delay(draw);
    text += "[scheduler.fair.root]\n";
    text += &patience(draw);
    for queue in QUEUES {
        if draw.chance(70) {
            text += &format!("[scheduler.fair.root.pools.{queue}]\n{}", pool(draw));
        }
    }
    text
}

fn patience(draw: &mut Draw) -> String {
    let spans = ["0s", "1s", "5s", "never"];
    let mut text =
        span(draw, "fair-share-timeout", &spans) + &span(draw, "min-share-timeout", &spans);
    let part = draw.of(&["0.1", "0.5", "1"]);
    text += &draw.perhaps("fair-share-threshold", part);
    text
}

fn pool(draw: &mut Draw) -> String {
    let weight = draw.of(&["0", "0.5", "1", "3"]);
    let mut text = draw.perhaps("weight", weight);
    for kind in ["maps", "reduces"] {
        let least = draw.of(&[0, 1, 2, 4, 8, 20]);
        text += &draw.perhaps(&format!("min-{kind}"), least);
        let most = least + draw.of(&[0, 1, 5]);
        if draw.chance(25) {
            text += &format!("max-{kind} = {}\n", most.max(1));
        }
    }
    text += &draw.word("order", &["fair", "fair", "fifo"]);
    let preemptable = draw.chance(70);
    text += &draw.perhaps("allow-preemption-from", preemptable);
    text + &patience(draw)
}

fn capacity(draw: &mut Draw) -> String {
    let mut text = "\n[scheduler.capacity]\ndefault-queue = \"default\"\n".to_owned();
    let hard_cap = draw.chance(20);
    text += if hard_cap {
        "mode = \"hard-cap\"\n"
    } else {
        draw.of(&[
            "mode = \"soft-cap\"\n",
            "mode = \"preemptive\"\n",
            "mode = \"preemptive\"\n",
        ])
    };
    text += &delay(draw);
    text += "[scheduler.capacity.monitor]\n";
    text += &draw.word("primitive", &Primitive::WORDS);
    text += &span(draw, "interval", &["100ms", "1s", "3s"]);
    text += &span(draw, "max-wait-before-kill", &["0s", "1s", "15s"]);
    for (key, values) in [
        ("total-per-round", ["0.1", "0.5", "1"]),
        ("dead-zone", ["0", "0.1", "1"]),
        ("natural-termination-factor", ["0.2", "0.5", "1"]),
        ("intra-queue-minimum-threshold", ["0", "0.5", "1"]),
        ("intra-queue-max-allowable-limit", ["0.2", "0.5", "1"]),
    ] {
        let value = draw.of(&values);
        text += &draw.perhaps(key, value);
    }
    let least = draw.number(0, 3);
    text += &draw.perhaps("least-slots", least);
    text += &draw.perhaps("intra-queue", true);
    text += &draw.word("intra-queue-order", &["user-limit-first", "priority-first"]);
    text += &draw.perhaps("balance-beyond-guaranteed", true);
    text += &span(draw, "balance-max-wait-before-kill", &["0s", "5s", "300s"]);
    // With a hard cap, a queue without a guarantee gets no slots.
    let first = if hard_cap {
        30
    } else {
        draw.of(&[0, 10, 30, 50])
    };
    let second = if hard_cap { 20 } else { draw.of(&[0, 20, 50]) };
    for (queue, share) in QUEUES
        .into_iter()
        .zip([first, second, 100 - first - second])
    {
        text += &format!(
            "[[scheduler.capacity.queue]]\nname = \"{queue}\"\nguaranteed-percent = {share}\n"
        );
        let priority = draw.of(&[-1, 0, 1]);
        text += &draw.perhaps("priority", priority);
        if draw.chance(15) {
            text += "preemption-disabled = true\n";
        }
        let limit = draw.of(&[25, 50, 100]);
        text += &draw.perhaps("user-limit-percent", limit);
        text += &draw.word("app-order", &["fifo", "fair"]);
    }
    text
}

fn natjam(draw: &mut Draw) -> String {
    let mut text = "\n[scheduler.natjam]\n".to_owned();
    text += &draw.word("primitive", &Primitive::WORDS);
    text += &draw.word(
        "job-eviction",
        &["most-resources", "least-resources", "probabilistic"],
    );
    text += &draw.word("task-eviction", &EVICTIONS);
    text += &draw.perhaps("preempt-maps", true);
    text += &span(draw, "preemptor-interval", &["10ms", "1s", "5s"]);
    text += &span(draw, "kill-timeout", &["0s", "1s", "12s"]);
    text += &span(draw, "expired-time", &["0s", "2s"]);
    text + &delay(draw)
}

fn natjam_deadline(draw: &mut Draw) -> String {
    let mut text = "\n[scheduler.natjam-deadline]\n".to_owned();
    let by_laxity = draw.chance(50);
    text += if by_laxity {
        "eviction = \"MLF\"\n"
    } else {
        "eviction = \"MDF\"\n"
    };
    if by_laxity {
        text += &span(draw, "laxity-margin", &["0s", "1s", "30s"]);
    }
    text += &draw.word("primitive", &Primitive::WORDS);
    text += &draw.word("task-eviction", &EVICTIONS);
    text += &draw.perhaps("preempt-maps", true);
    text += &span(draw, "interval", &["10ms", "1s", "5s"]);
    let most = draw.of(&[1, 2, 10]);
    text += &draw.perhaps("per-run", most);
    text += &span(draw, "kill-timeout", &["0s", "1s", "12s", "never"]);
    text + &delay(draw)
}

fn hfsp(draw: &mut Draw) -> String {
    let mut text = "\n[scheduler.hfsp]\n".to_owned();
    text += &draw.word("primitive", &Primitive::WORDS);
    text += &draw.word("order", &["projected-finish", "remaining-size"]);
    text += &draw.word("late", &["fifo", "share"]);
    let maps = draw.number(1, 5);
    let reduces = draw.number(1, 5);
    text += &draw.perhaps("sample-maps", maps);
    text += &draw.perhaps("sample-reduces", reduces);
    text += &span(draw, "delta", &["1s", "3s", "60s"]);
    text += &span(draw, "assumed-task-time", &["1s", "60s"]);
    text += &span(draw, "grace", &["0s", "1s", "never"]);
    text += &span(draw, "update-interval", &["10ms", "1s", "5s"]);
    let low = draw.number(0, 2);
    let high = draw.number(3, 5);
    text += &draw.perhaps("suspended-low", low);
    text += &draw.perhaps("suspended-high", high);
    text += &delay(draw);
    if draw.chance(30) {
        text += "size-error = { distribution = \"uniform\", alpha = 0.5 }\n";
    }
    text
}

fn fcs(draw: &mut Draw) -> String {
    let mut text = "\n[scheduler.fcs]\n".to_owned();
    text += &draw.word("maps", &parts());
    text += &draw.word("primitive", &Primitive::WORDS);
    let bound = draw.of(&["0.5", "1", "5"]);
    let progress = draw.of(&["0.3", "0.7", "1"]);
    text += &draw.perhaps("slackness-bound", bound);
    text += &draw.perhaps("progress-max", progress);
    text += &span(draw, "service-min", &["0s", "1s", "10s"]);
    let declines = draw.of(&[0, 3, 60]);
    text += &draw.perhaps("declines", declines);
    text += &span(draw, "heartbeat", &["1s", "3s"]);
    text + &span(draw, "grace", &["0s", "1s", "never"])
}

fn composed(draw: &mut Draw) -> String {
    let mut text = "\n[scheduler.composed]\n".to_owned();
    text += &draw.word("map", &parts());
    let with_fcs = [parts(), vec!["fcs"]].concat();
    text += &draw.word("reduce", &with_fcs);
    text + &draw.perhaps("monitor", true)
}
