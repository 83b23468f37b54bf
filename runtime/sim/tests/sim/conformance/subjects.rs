//! The policies under test, with published values and with preempting configurations, and their properties.

use napreduce_engine::Scheduler;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};

/// A policy and its properties.
pub struct Subject {
    pub name: &'static str,
    configuration: &'static str,
    /// Leaves no usable slot free.
    pub work_conserving: bool,
    /// May kill attempts.
    pub kills: bool,
    /// Re-examines the cluster periodically.
    pub periodic: bool,
}

impl Subject {
    /// Builds the policy.
    pub fn policy(&self) -> Box<dyn Scheduler> {
        let configuration: SchedulerConfiguration = serde_json::from_str(self.configuration)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        configuration
            .build()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

const QUEUES: &str = r#"[
    {"name": "production", "guaranteed-percent": 50}, {"name": "research", "guaranteed-percent": 30},
    {"name": "default", "guaranteed-percent": 20}]"#;

/// Returns all policies, with published and other values.
pub fn subjects() -> Vec<Subject> {
    let subject = |name, configuration: String| Subject {
        name,
        configuration: configuration.leak(),
        work_conserving: true,
        kills: false,
        periodic: false,
    };
    let table = |name, scheduler: &str, table: &str| {
        subject(
            name,
            format!(r#"{{"scheduler": "{scheduler}", "tables": {{"{scheduler}": {table}}}}}"#),
        )
    };
    let capacity =
        |rest: &str| format!(r#"{{"queue": {QUEUES}, "default-queue": "default", {rest}}}"#);
    let mut all: Vec<Subject> = SchedulerName::ALL
        .into_iter()
        .map(|name| subject(name.in_words(), format!(r#"{{"scheduler": "{name}"}}"#)))
        .collect();
    for subject in &mut all {
        subject.periodic = !matches!(subject.name, "fifo" | "trigger" | "composed");
        // FCS lets a preempted reduce wait for its worker; Fair lets a map wait for its data.
        subject.work_conserving = !matches!(subject.name, "fcs" | "hfsp");
    }
    let eager = |subject: Subject| Subject {
        periodic: true,
        ..subject
    };
    let fair = |primitive: &str| {
        format!(
            r#"{{"preemption": true, "primitive": "{primitive}", "kill-wait": "3s", "utilization-gate": 0,
                 "root": {{"fair-share-timeout": "2s", "fair-share-threshold": 1}}}}"#
        )
    };
    all.push(eager(table("fair that suspends", "fair", &fair("suspend"))));
    all.push(Subject {
        kills: true,
        ..eager(table("fair that kills", "fair", &fair("kill")))
    });
    all.push(Subject {
        work_conserving: false,
        ..table(
            "capacity, hard cap",
            "capacity",
            &capacity(r#""mode": "hard-cap""#),
        )
    });
    all.push(table(
        "capacity, soft cap",
        "capacity",
        &capacity(r#""mode": "soft-cap""#),
    ));
    let monitor = r#""mode": "preemptive", "monitor": {"total-per-round": 0.5, "natural-termination-factor": 1,
        "max-wait-before-kill": "5s", "dead-zone": 0, "primitive": "checkpoint"}"#;
    all.push(eager(table(
        "capacity that checkpoints",
        "capacity",
        &capacity(monitor),
    )));
    let maps_too =
        |primitive: &str| format!(r#"{{"preempt-maps": true, "primitive": "{primitive}"}}"#);
    all.push(eager(table(
        "natjam that checkpoints maps too",
        "natjam",
        &maps_too("checkpoint"),
    )));
    all.push(eager(table(
        "natjam that suspends",
        "natjam",
        &maps_too("suspend"),
    )));
    all.push(Subject {
        kills: true,
        ..eager(table("natjam that kills", "natjam", &maps_too("kill")))
    });
    all.push(eager(table(
        "natjam-deadline by laxity",
        "natjam-deadline",
        r#"{"eviction": "MLF"}"#,
    )));
    let hfsp =
        |primitive: &str| format!(r#"{{"primitive": "{primitive}", "delay": {{"declines": 0}}}}"#);
    all.push(eager(table("hfsp that suspends", "hfsp", &hfsp("suspend"))));
    all.push(eager(table("hfsp that waits", "hfsp", &hfsp("wait"))));
    all.push(Subject {
        kills: true,
        ..eager(table("hfsp that kills", "hfsp", &hfsp("kill")))
    });
    let fcs = table(
        "fcs that suspends",
        "fcs",
        r#"{"primitive": "suspend", "service-min": "1s"}"#,
    );
    all.push(eager(Subject {
        work_conserving: false,
        ..fcs
    }));
    all
}
