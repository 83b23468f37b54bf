//! Every configuration example in the scheduler pages builds a policy.

use std::fs;
use std::path::Path;

use napreduce_engine::PreemptionSettings;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};
use serde::Deserialize;

/// The scheduler tables of a configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    coordinator: Coordinator,
    scheduler: SchedulerTables,
    preemption: PreemptionSettings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Coordinator {
    scheduler: SchedulerName,
}

#[test]
fn experiment_configurations_build() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/configurations");
    let files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(files.len() >= 9, "{} files", files.len());
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let file: File =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let scheduler = file.coordinator.scheduler;
        let tables = file.scheduler;
        let built = SchedulerConfiguration { scheduler, tables }.build();
        assert!(built.is_ok(), "{}: {:?}", path.display(), built.err());
    }
}

#[test]
fn page_examples_build() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = fs::read_dir(folder.join("schedulers"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut named = Vec::new();
    for page in pages.chain([folder.join("schedulers.md")]) {
        let text = fs::read_to_string(&page).unwrap();
        for example in text.split("```toml\n").skip(1) {
            let example = example.split("```").next().unwrap();
            let file: File = toml::from_str(example)
                .unwrap_or_else(|error| panic!("{}: {error}\n{example}", page.display()));
            let scheduler = file.coordinator.scheduler;
            let tables = file.scheduler;
            let built = SchedulerConfiguration { scheduler, tables }.build();
            assert!(
                built.is_ok(),
                "{}: {:?}\n{example}",
                page.display(),
                built.err()
            );
            named.push(scheduler);
        }
    }
    let tables = serde_json::to_value(SchedulerTables::default()).unwrap();
    for scheduler in SchedulerName::ALL {
        let is_simple = tables[scheduler.in_words()].as_object().unwrap().len() < 2;
        assert!(
            is_simple || named.contains(&scheduler),
            "no page has an example of {scheduler}"
        );
    }
}
