//! The table of policies: names, configurations, and properties that hold before a policy runs.

use napreduce_engine::{
    Conversion, Converted, KindPreemption, PolicyChoice, PreemptionSettings, Primitive, Span,
    TaskKind,
};
use napreduce_schedulers::{
    SchedulerConfiguration, SchedulerError, SchedulerName, SchedulerTables,
};

#[test]
fn every_policy_name_parses_and_builds() {
    for name in SchedulerName::ALL {
        assert_eq!(name.in_words().parse(), Ok(name));
        assert_eq!(
            serde_json::to_string(&name).expect("text"),
            format!("{:?}", name.in_words())
        );
        assert!(
            SchedulerConfiguration::named(name).build().is_ok(),
            "{name} with published values"
        );
    }
    let error = "fare".parse::<SchedulerName>().expect_err("no such policy");
    assert!(
        error
            .to_string()
            .starts_with("there is no scheduler \"fare\"; allowed: fifo, "),
        "{error}"
    );
}

#[test]
fn policy_choice_survives_serialization() {
    for name in SchedulerName::ALL {
        let choice = SchedulerConfiguration {
            scheduler: name,
            tables: tables(|tables| {
                tables.trigger.rules = "when started(a) do checkpoint(a/r0)".to_owned()
            }),
        };
        let again = SchedulerConfiguration::read(&choice.to_json()).expect("just written");
        assert_eq!(
            (again.name(), again.to_json()),
            (choice.name(), choice.to_json())
        );
    }
    let error =
        SchedulerConfiguration::read(&serde_json::json!({ "scheduler": "fare" })).unwrap_err();
    assert!(error.contains("fare"), "{error}");
}

#[test]
fn table_errors_name_the_table() {
    let read = |text: &str| {
        serde_json::from_str::<SchedulerConfiguration>(text).map_err(|error| error.to_string())
    };
    let rules = r#"{"scheduler": "trigger", "tables": {"trigger": {"rules": "when tim"}}}"#;
    let error = read(rules)
        .expect("well-formed")
        .build()
        .err()
        .expect("no rule");
    assert_eq!(
        error.to_string().split(';').next(),
        Some("[scheduler.trigger] line 1, column 6: unknown condition \"tim\"")
    );
    let nested = r#"{"scheduler": "composed", "tables": {"composed": {"map": "composed"}}}"#;
    assert_eq!(
        read(nested).expect("well-formed").build().err(),
        Some(SchedulerError::Nested(TaskKind::Map))
    );
    let maps = r#"{"scheduler": "fcs", "tables": {"fcs": {"maps": "fcs"}}}"#;
    assert_eq!(
        read(maps).expect("well-formed").build().err(),
        Some(SchedulerError::ReducesOnly)
    );
    let unknown = r#"{"scheduler": "fcs", "tables": {"fcs": {"maps": "fare"}}}"#;
    let error = read(unknown)
        .expect("well-formed")
        .build()
        .err()
        .expect("no such policy");
    assert!(
        error
            .to_string()
            .starts_with("[scheduler.fcs] there is no scheduler \"fare\"; allowed: fifo, "),
        "{error}"
    );
    let part = r#"{"scheduler": "composed", "tables": {"composed": {"map": "hfsp"}, "hfsp": {"delta": "0s"}}}"#;
    let error = read(part)
        .expect("well-formed")
        .build()
        .err()
        .expect("the span is invalid");
    assert_eq!(
        error.to_string(),
        "[scheduler.hfsp] delta must be positive; give a span such as 60s"
    );
    let delta = r#"{"scheduler": "hfsp", "tables": {"hfsp": {"delta": "0s"}}}"#;
    let error = read(delta)
        .expect("well-formed")
        .build()
        .err()
        .expect("the span is invalid");
    assert_eq!(
        error.to_string(),
        "[scheduler.hfsp] delta must be positive; give a span such as 60s"
    );
    assert!(
        read(r#"{"tables": {"fifo": {"ignore": true}}}"#)
            .expect_err("unknown")
            .contains("ignore")
    );
}

fn tables(change: impl FnOnce(&mut SchedulerTables)) -> SchedulerTables {
    let mut tables = SchedulerTables::default();
    change(&mut tables);
    tables
}

#[test]
fn checkpoint_source_follows_policy_table() {
    let none = PreemptionSettings::default();
    let name = SchedulerConfiguration::named;
    let natjam = Some("[scheduler.natjam] primitive");
    for (configuration, maps, reduces) in [
        (name(SchedulerName::Fifo), None, None),
        (name(SchedulerName::Fair), None, None),
        (name(SchedulerName::Hfsp), None, None),
        (name(SchedulerName::Natjam), None, natjam),
        (
            name(SchedulerName::Fcs),
            None,
            Some("[scheduler.fcs] primitive"),
        ),
        (
            SchedulerConfiguration {
                scheduler: SchedulerName::Natjam,
                tables: tables(|tables| tables.natjam.preempt_maps = true),
            },
            natjam,
            natjam,
        ),
        (
            SchedulerConfiguration {
                scheduler: SchedulerName::Composed,
                tables: tables(|tables| tables.composed.reduce = "natjam".to_owned()),
            },
            None,
            natjam,
        ),
    ] {
        let of = |kind| configuration.checkpoints(kind, "job", &none);
        let scheduler = configuration.scheduler;
        assert_eq!(
            (of(TaskKind::Map), of(TaskKind::Reduce)),
            (maps, reduces),
            "{scheduler}"
        );
    }
}

#[test]
fn checkpoint_source_follows_trigger_targets() {
    let rules = "when started(a) do checkpoint(a/r0)".to_owned();
    let configuration = SchedulerConfiguration {
        scheduler: SchedulerName::Trigger,
        tables: tables(|tables| tables.trigger.rules = rules),
    };
    let of = |kind, job| configuration.checkpoints(kind, job, &PreemptionSettings::default());
    assert_eq!(of(TaskKind::Reduce, "a"), Some("[scheduler.trigger] rules"));
    assert_eq!(
        (of(TaskKind::Map, "a"), of(TaskKind::Reduce, "b")),
        (None, None)
    );
}

#[test]
fn preemption_settings_override_policies() {
    let with = |change: &dyn Fn(&mut PreemptionSettings)| {
        let mut settings = PreemptionSettings::default();
        change(&mut settings);
        let of = |scheduler| {
            SchedulerConfiguration::named(scheduler).checkpoints(TaskKind::Reduce, "job", &settings)
        };
        (
            of(SchedulerName::Natjam),
            of(SchedulerName::Hfsp),
            of(SchedulerName::Fifo),
        )
    };
    let everywhere = Some("[preemption] primitive");
    assert_eq!(
        with(&|settings| settings.primitive = Some(Primitive::Checkpoint.into())),
        (everywhere, everywhere, None)
    );
    assert_eq!(
        with(&|settings| settings.primitive = Some(Primitive::Kill.into())),
        (None, None, None)
    );
    let never = KindPreemption {
        checkpoint: false,
        ..KindPreemption::default()
    };
    assert_eq!(
        with(&|settings| settings.reduce = never),
        (None, None, None)
    );
    let convert = Conversion {
        after: Span::from_secs(1),
        to: Converted::Checkpoint,
    };
    let (natjam, hfsp, fifo) = with(&|settings| settings.convert = Some(convert));
    assert_eq!(
        (natjam.is_some(), hfsp, fifo),
        (true, Some("[preemption.convert]"), None)
    );
}

#[test]
fn policy_reports_ignored_attributes() {
    let urgent = [(5, "a", None), (0, "b", Some(Span::from_secs(9)))];
    let ignored = |configuration: &str| {
        let read: SchedulerConfiguration =
            serde_json::from_str(configuration).expect("well-formed");
        read.ignored(urgent.into_iter())
    };
    let named = |name: SchedulerName| ignored(&format!(r#"{{"scheduler": "{name}"}}"#));
    let priorities = "natjam ignores the priorities of jobs (0 to 5); it uses queue";
    assert_eq!(
        named(SchedulerName::Natjam),
        [
            priorities,
            "natjam ignores the deadlines of jobs; it uses queue"
        ]
    );
    assert_eq!(
        named(SchedulerName::Fifo),
        [
            "fifo ignores the queues of jobs (a, b); it uses priority",
            "fifo ignores the deadlines of jobs; it uses priority"
        ]
    );
    assert_eq!(
        named(SchedulerName::NatjamDeadline),
        [
            "natjam-deadline ignores the priorities of jobs (0 to 5); it uses deadline",
            "natjam-deadline ignores the queues of jobs (a, b); it uses deadline"
        ]
    );
    assert_eq!(named(SchedulerName::Hfsp).len(), 3);
    let weighted = r#"{"scheduler": "fair", "tables": {"fair": {"priority-weight": true}}}"#;
    assert_eq!(
        ignored(weighted),
        ["fair ignores the deadlines of jobs; it uses priority and queue"]
    );
    let usual = [(0, "default", None); 2];
    for name in SchedulerName::ALL {
        assert_eq!(
            SchedulerConfiguration::named(name).ignored(usual.into_iter()),
            [""; 0],
            "{name}"
        );
    }
}
