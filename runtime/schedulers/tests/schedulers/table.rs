//! The table of policies: names, tables of values, and what follows from these before a policy runs.
//!
//! Owns what holds of every policy. What the values of one mean is tested with it.

use napreduce_engine::{
    Conversion, Converted, KindPreemption, PolicyChoice, PreemptionSettings, Primitive, Span, TaskKind,
};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerError, SchedulerName, SchedulerTables};

#[test]
fn every_policy_has_a_name_that_leads_to_it() {
    for name in SchedulerName::ALL {
        assert_eq!(name.in_words().parse(), Ok(name));
        assert_eq!(serde_json::to_string(&name).expect("text"), format!("{:?}", name.in_words()));
        assert!(SchedulerConfiguration::named(name).build().is_ok(), "{name} at its published values");
    }
    let error = "fare".parse::<SchedulerName>().expect_err("no such policy");
    assert!(error.to_string().starts_with("there is no scheduler \"fare\"; allowed: fifo, "), "{error}");
}

#[test]
fn every_choice_is_read_as_it_was_written() {
    for name in SchedulerName::ALL {
        let choice = SchedulerConfiguration {
            scheduler: name,
            tables: tables(|tables| tables.trigger.rules = "when started(a) do checkpoint(a/r0)".to_owned()),
        };
        let again = SchedulerConfiguration::read(&choice.to_json()).expect("just written");
        assert_eq!((again.name(), again.to_json()), (choice.name(), choice.to_json()));
    }
    let error = SchedulerConfiguration::read(&serde_json::json!({ "scheduler": "fare" })).unwrap_err();
    assert!(error.contains("fare"), "{error}");
}

#[test]
fn tables_are_read_and_refused_by_name() {
    let read =
        |text: &str| serde_json::from_str::<SchedulerConfiguration>(text).map_err(|error| error.to_string());
    let rules = r#"{"scheduler": "trigger", "tables": {"trigger": {"rules": "when tim"}}}"#;
    let error = read(rules).expect("well-formed").build().err().expect("no rule");
    assert_eq!(
        error.to_string().split(';').next(),
        Some("[scheduler.trigger] line 1, column 6: \"tim\" is no condition")
    );
    let nested = r#"{"scheduler": "composed", "tables": {"composed": {"map": "composed"}}}"#;
    assert_eq!(read(nested).expect("well-formed").build().err(), Some(SchedulerError::Nested(TaskKind::Map)));
    let maps = r#"{"scheduler": "fcs", "tables": {"fcs": {"maps": "fcs"}}}"#;
    assert_eq!(read(maps).expect("well-formed").build().err(), Some(SchedulerError::ReducesOnly));
    let unknown = r#"{"scheduler": "fcs", "tables": {"fcs": {"maps": "fare"}}}"#;
    let error = read(unknown).expect("well-formed").build().err().expect("no such policy");
    assert!(
        error.to_string().starts_with("[scheduler.fcs] there is no scheduler \"fare\"; allowed: fifo, "),
        "{error}"
    );
    let part =
        r#"{"scheduler": "composed", "tables": {"composed": {"map": "hfsp"}, "hfsp": {"delta": "0s"}}}"#;
    let error = read(part).expect("well-formed").build().err().expect("no span");
    assert_eq!(error.to_string(), "[scheduler.hfsp] delta is 0s; give a span above");
    let delta = r#"{"scheduler": "hfsp", "tables": {"hfsp": {"delta": "0s"}}}"#;
    let error = read(delta).expect("well-formed").build().err().expect("no span");
    assert_eq!(error.to_string(), "[scheduler.hfsp] delta is 0s; give a span above");
    assert!(read(r#"{"tables": {"fifo": {"ignore": true}}}"#).expect_err("unknown").contains("ignore"));
}

fn tables(change: impl FnOnce(&mut SchedulerTables)) -> SchedulerTables {
    let mut tables = SchedulerTables::default();
    change(&mut tables);
    tables
}

#[test]
fn a_policy_checkpoints_what_its_table_says() {
    let none = PreemptionSettings::default();
    let name = SchedulerConfiguration::named;
    let natjam = Some("[scheduler.natjam] primitive");
    for (configuration, maps, reduces) in [
        (name(SchedulerName::Fifo), None, None),
        (name(SchedulerName::Fair), None, None),
        (name(SchedulerName::Hfsp), None, None),
        (name(SchedulerName::Natjam), None, natjam),
        (name(SchedulerName::Fcs), None, Some("[scheduler.fcs] primitive")),
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
        assert_eq!((of(TaskKind::Map), of(TaskKind::Reduce)), (maps, reduces), "{scheduler}");
    }
}

#[test]
fn rules_checkpoint_the_jobs_they_name() {
    let rules = "when started(a) do checkpoint(a/r0)".to_owned();
    let configuration = SchedulerConfiguration {
        scheduler: SchedulerName::Trigger,
        tables: tables(|tables| tables.trigger.rules = rules),
    };
    let of = |kind, job| configuration.checkpoints(kind, job, &PreemptionSettings::default());
    assert_eq!(of(TaskKind::Reduce, "a"), Some("[scheduler.trigger] rules"));
    assert_eq!((of(TaskKind::Map, "a"), of(TaskKind::Reduce, "b")), (None, None));
}

#[test]
fn the_settings_have_the_last_word() {
    let with = |change: &dyn Fn(&mut PreemptionSettings)| {
        let mut settings = PreemptionSettings::default();
        change(&mut settings);
        let of = |scheduler| {
            SchedulerConfiguration::named(scheduler).checkpoints(TaskKind::Reduce, "job", &settings)
        };
        (of(SchedulerName::Natjam), of(SchedulerName::Hfsp), of(SchedulerName::Fifo))
    };
    let everywhere = Some("[preemption] primitive");
    assert_eq!(
        with(&|settings| settings.primitive = Some(Primitive::Checkpoint.into())),
        (everywhere, everywhere, None)
    );
    assert_eq!(with(&|settings| settings.primitive = Some(Primitive::Kill.into())), (None, None, None));
    let never = KindPreemption { checkpoint: false, ..KindPreemption::default() };
    assert_eq!(with(&|settings| settings.reduce = never), (None, None, None));
    let convert = Conversion { after: Span::from_secs(1), to: Converted::Checkpoint };
    let (natjam, hfsp, fifo) = with(&|settings| settings.convert = Some(convert));
    assert_eq!((natjam.is_some(), hfsp, fifo), (true, Some("[preemption.convert]"), None));
}

#[test]
fn policy_names_what_it_ignores_of_jobs() {
    let urgent = [(5, "a", None), (0, "b", Some(Span::from_secs(9)))];
    let said = |configuration: &str| {
        let read: SchedulerConfiguration = serde_json::from_str(configuration).expect("well-formed");
        read.ignored(urgent.into_iter())
    };
    let named = |name: SchedulerName| said(&format!(r#"{{"scheduler": "{name}"}}"#));
    let priorities = "natjam ignores the priorities of jobs (0 to 5); it goes by queue";
    assert_eq!(
        named(SchedulerName::Natjam),
        [priorities, "natjam ignores the deadlines of jobs; it goes by queue"]
    );
    assert_eq!(
        named(SchedulerName::Fifo),
        [
            "fifo ignores the queues of jobs (a, b); it goes by priority",
            "fifo ignores the deadlines of jobs; it goes by priority"
        ]
    );
    assert_eq!(
        named(SchedulerName::NatjamDeadline),
        [
            "natjam-deadline ignores the priorities of jobs (0 to 5); it goes by deadline",
            "natjam-deadline ignores the queues of jobs (a, b); it goes by deadline"
        ]
    );
    assert_eq!(named(SchedulerName::Hfsp).len(), 3);
    let weighted = r#"{"scheduler": "fair", "tables": {"fair": {"priority-weight": true}}}"#;
    assert_eq!(said(weighted), ["fair ignores the deadlines of jobs; it goes by priority and queue"]);
    let usual = [(0, "default", None); 2];
    for name in SchedulerName::ALL {
        assert_eq!(SchedulerConfiguration::named(name).ignored(usual.into_iter()), [""; 0], "{name}");
    }
}
