//! What is compared: policies, each with its tables and its way to take slots back, and baselines of theory.
//!
//! Owns which combinations of the flags there are, and what each is called. Does not own the policies.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use napreduce_engine::{PreemptionSettings, PrimitiveChoice};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};
use napreduce_sim::{Baseline, SimulationSettings};

use super::arguments::Arguments;
use crate::cluster::{ClusterArguments, Configuration};

/// A policy with everything that its runs have in common but the seed.
pub struct Variant {
    /// What it is called among others: the policy, and what else not all have.
    pub label: String,
    pub subject: Subject,
    pub settings: SimulationSettings,
}

/// Who gives slots.
pub enum Subject {
    Policy(Box<SchedulerConfiguration>),
    Baseline(Baseline),
}

impl Subject {
    /// The policy, if it is one.
    pub fn policy(&self) -> Option<&SchedulerConfiguration> {
        match self {
            Subject::Policy(configuration) => Some(configuration),
            Subject::Baseline(_) => None,
        }
    }

    /// Its name without tables.
    pub fn name(&self) -> &'static str {
        match self {
            Subject::Policy(configuration) => configuration.scheduler.in_words(),
            Subject::Baseline(baseline) => baseline.in_words(),
        }
    }
}

/// The tables of a file.
struct Tables {
    /// What the file is called, where there are several.
    label: Option<String>,
    scheduler: SchedulerTables,
    preemption: PreemptionSettings,
}

impl Variant {
    /// Every policy with every file and every primitive, and the baselines; each policy is built once, so
    /// that a wrong value is told before anything runs.
    pub fn all(
        names: &[SchedulerName],
        arguments: &Arguments,
        cluster: &ClusterArguments,
        settings: &SimulationSettings,
    ) -> Result<Vec<Variant>> {
        let primitives: Vec<Option<PrimitiveChoice>> = match &arguments.primitive[..] {
            [] => vec![None],
            some => some.iter().map(|name| name.choice()).collect(),
        };
        let files = Tables::read(arguments, cluster)?;
        let (mut all, add) = (Vec::<Variant>::new(), |all: &mut Vec<Variant>, one: Variant| {
            // What is named twice is run once.
            if all.iter().all(|other| other.label != one.label) {
                all.push(one);
            }
        });
        for &scheduler in names {
            for tables in &files {
                for &primitive in &primitives {
                    add(&mut all, tables.variant(scheduler, primitive, arguments, settings)?);
                }
            }
        }
        for &baseline in &arguments.baseline {
            let (label, subject) = (format!("{baseline} (theory)"), Subject::Baseline(baseline));
            add(&mut all, Variant { label, subject, settings: settings.clone() });
        }
        Ok(all)
    }
}

impl Tables {
    fn read(arguments: &Arguments, cluster: &ClusterArguments) -> Result<Vec<Tables>> {
        let rules = arguments.rules.as_deref().map(read_rules).transpose()?;
        let of = |label, file: Configuration| {
            let mut scheduler = file.scheduler;
            if let Some(rules) = &rules {
                scheduler.trigger.rules.clone_from(rules);
            }
            Tables { label, scheduler, preemption: file.preemption.unwrap_or_default() }
        };
        match &arguments.configuration[..] {
            [] => Ok(vec![of(None, cluster.configuration()?)]),
            [one] => Ok(vec![of(None, Configuration::read(one)?)]),
            several => several
                .iter()
                .map(|path| Ok(of(Some(path.display().to_string()), Configuration::read(path)?)))
                .collect(),
        }
    }

    fn variant(
        &self,
        scheduler: SchedulerName,
        primitive: Option<PrimitiveChoice>,
        arguments: &Arguments,
        settings: &SimulationSettings,
    ) -> Result<Variant> {
        let mut settings = settings.clone();
        settings.engine.preemption = self.preemption;
        if let Some(primitive) = primitive {
            settings.engine.preemption.primitive = Some(primitive);
        }
        if let Some(most) = arguments.suspended_max {
            settings.engine.preemption.suspended_max = most;
        }
        let mut label = scheduler.to_string();
        if let Some(primitive) = primitive.filter(|_| arguments.primitive.len() > 1) {
            label += &format!(" {primitive}");
        }
        if let Some(file) = &self.label {
            label += &format!(" {file}");
        }
        let configuration = SchedulerConfiguration { scheduler, tables: self.scheduler.clone() };
        configuration.build().with_context(|| format!("{label} cannot be set up"))?;
        Ok(Variant { label, subject: Subject::Policy(Box::new(configuration)), settings })
    }
}

fn read_rules(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A label as a part of the name of a file.
pub fn in_file_name(label: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    label.chars().map(plain).collect()
}
