//! The variants that are compared: schedulers with their parameters and preemption primitives, and theoretical
//! baselines.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result};
use napreduce_engine::{PreemptionSettings, PrimitiveChoice};
use napreduce_protocol::read_named_text;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};
use napreduce_sim::{Baseline, SimulationSettings};

use super::arguments::Arguments;
use crate::cluster::{ClusterArguments, Configuration};

/// Maximum length of a file of placement rules.
const RULES_BYTES_MAX: u64 = 16 << 20;

/// A policy and the settings of its runs, without seeds.
pub struct Variant {
    /// The name of the policy, and everything else that distinguishes it from other variants.
    pub label: String,
    /// The file of its parameters; `None` for the one of the cluster, or the defaults.
    pub configuration: Option<String>,
    /// The primitive of `--primitive`.
    pub primitive: Option<PrimitiveChoice>,
    pub subject: Subject,
    pub settings: SimulationSettings,
}

pub enum Subject {
    Policy(Box<SchedulerConfiguration>),
    Baseline(Baseline),
}

impl Subject {
    /// Returns the policy, unless this is a baseline.
    pub fn policy(&self) -> Option<&SchedulerConfiguration> {
        match self {
            Subject::Policy(configuration) => Some(configuration),
            Subject::Baseline(_) => None,
        }
    }

    /// Returns the name of the policy or baseline.
    pub fn name(&self) -> &'static str {
        match self {
            Subject::Policy(configuration) => configuration.scheduler.in_words(),
            Subject::Baseline(baseline) => baseline.in_words(),
        }
    }
}

/// The tables of a file.
struct Tables {
    path: Option<String>,
    /// Whether there are several files, so that labels name them.
    is_one_of_several: bool,
    scheduler: SchedulerTables,
    preemption: PreemptionSettings,
}

impl Variant {
    /// Returns every policy with every file and every primitive, and the baselines. Builds each policy once, to
    /// report wrong parameters before anything runs.
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
        let mut all = Vec::new();
        for &scheduler in names {
            for tables in &files {
                for &primitive in &primitives {
                    all.push(tables.variant(scheduler, primitive, arguments, settings)?);
                }
            }
        }
        for &baseline in &arguments.baseline {
            all.push(Variant {
                label: format!("{baseline} (theory)"),
                configuration: None,
                primitive: None,
                subject: Subject::Baseline(baseline),
                settings: settings.clone(),
            });
        }
        // Run duplicates once.
        let mut labels = HashSet::new();
        all.retain(|variant| labels.insert(variant.label.clone()));
        Ok(all)
    }
}

impl Tables {
    fn read(arguments: &Arguments, cluster: &ClusterArguments) -> Result<Vec<Tables>> {
        let rules = arguments.rules.as_deref().map(read_rules).transpose()?;
        let is_one_of_several = arguments.configuration.len() > 1;
        let of = |path, file: Configuration| {
            let mut scheduler = file.scheduler;
            if let Some(rules) = &rules {
                scheduler.trigger.rules.clone_from(rules);
            }
            let preemption = file.preemption.unwrap_or_default();
            Tables {
                path,
                is_one_of_several,
                scheduler,
                preemption,
            }
        };
        match &arguments.configuration[..] {
            [] => Ok(vec![of(None, cluster.configuration()?)]),
            several => several
                .iter()
                .map(|path| {
                    Ok(of(
                        Some(path.display().to_string()),
                        Configuration::read(path)?,
                    ))
                })
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
        if let Some(file) = self.path.as_ref().filter(|_| self.is_one_of_several) {
            label += &format!(" {file}");
        }
        let configuration = SchedulerConfiguration {
            scheduler,
            tables: self.scheduler.clone(),
        };
        configuration
            .build()
            .with_context(|| format!("cannot set up the scheduler {label}"))?;
        if arguments.overheads.progress.is_none() && !settings.reads_progress(&configuration) {
            settings.progress_period = None;
        }
        Ok(Variant {
            label,
            configuration: self.path.clone(),
            primitive,
            subject: Subject::Policy(Box::new(configuration)),
            settings,
        })
    }
}

fn read_rules(path: &Path) -> Result<String> {
    read_named_text(path, RULES_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))
}

/// Returns a label in the form used in file names.
pub fn in_file_name(label: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '.' {
            letter
        } else {
            '-'
        }
    };
    label.chars().map(plain).collect()
}
