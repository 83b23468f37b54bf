//! Runs that figures share, as an entry has them: a workload, and the ways in which it is run.
//!
//! Owns the form, and what it comes to for the simulator. Does not own the runs.

use std::collections::BTreeMap;

use include_dir::{Dir, File, include_dir};
use napreduce_engine::{PrimitiveChoice, Span, SuspendedMax};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};
use napreduce_sim::WorkloadFile;
use serde::Deserialize;

use super::recipe::LiveRecipe;

/// What figures need and is no published mix by itself; the head of each file says what is published and what
/// is ours.
static WORKLOADS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/papers/workloads");

/// Runs that figures share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Campaign {
    pub about: String,
    /// A published mix, or a file beside the entries.
    pub workload: String,
    #[serde(default = "thirty")]
    pub blocks: u32,
    /// Nothing in it depends on the seed: a simulation is made once and says n = 1.
    #[serde(default)]
    pub deterministic: bool,
    pub nodes: Option<u32>,
    #[serde(default, with = "napreduce_engine::time::text_or_never")]
    pub until: Option<Span>,
    #[serde(default)]
    pub alone: Alone,
    /// How it runs on this machine, if it does.
    pub live: Option<LiveRecipe>,
    #[serde(rename = "variant")]
    pub variants: BTreeMap<String, Variant>,
}

/// How the time that a job takes alone is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alone {
    /// A list schedule of its tasks, without heartbeats.
    #[default]
    Scheduled,
    /// It is simulated alone, with all that takes time there.
    Simulated,
}

/// One way to run the jobs of a campaign.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    pub scheduler: SchedulerName,
    pub primitive: Option<PrimitiveChoice>,
    /// The table of the scheduler.
    pub settings: Option<toml::Table>,
    /// Tables of others that it refers to.
    #[serde(default)]
    pub tables: toml::Table,
    pub suspended_max: Option<SuspendedMax>,
    /// Only these jobs, by class or name; all of them without.
    #[serde(default)]
    pub jobs: Vec<String>,
    pub nodes: Option<u32>,
    /// What `${name}` in the workload stands for.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

fn thirty() -> u32 {
    30
}

impl Campaign {
    /// The workload file of a variant.
    pub(in crate::paper) fn text(&self, variant: &Variant) -> Result<String, String> {
        let mut text = workload_text(&self.workload)?;
        for (name, value) in &variant.values {
            let mark = format!("${{{name}}}");
            if !text.contains(&mark) {
                return Err(format!("{} has no {mark}", self.workload));
            }
            text = text.replace(&mark, value);
        }
        Ok(text)
    }

    /// The jobs of a variant, and the cluster they are meant for.
    pub(in crate::paper) fn file(&self, variant: &Variant) -> Result<WorkloadFile, String> {
        let text = self.text(variant)?;
        let file = WorkloadFile::read(&self.workload, &text).map_err(|error| error.to_string())?;
        if let Some(wanted) =
            variant.jobs.iter().find(|wanted| !file.jobs.iter().any(|job| is_of(job, wanted)))
        {
            return Err(format!("{} has no job {wanted:?}", self.workload));
        }
        match file.cluster {
            Some(_) => Ok(file),
            None => Err(format!("{} names no cluster", self.workload)),
        }
    }
}

fn is_of(job: &napreduce_sim::JobEntry, wanted: &str) -> bool {
    job.name == wanted || job.class.as_deref() == Some(wanted)
}

fn workload_text(name: &str) -> Result<String, String> {
    if let Some(known) = napreduce_sim::PUBLISHED.iter().find(|known| known.name == name) {
        return Ok(known.text.to_owned());
    }
    let beside = name.strip_prefix("workloads/").and_then(|file| WORKLOADS.get_file(file));
    beside
        .and_then(File::contents_utf8)
        .map(str::to_owned)
        .ok_or_else(|| format!("there is no workload {name:?}"))
}

impl Variant {
    fn all_tables(&self) -> toml::Table {
        let mut tables = self.tables.clone();
        if let Some(settings) = &self.settings {
            tables.insert(self.scheduler.to_string(), settings.clone().into());
        }
        tables
    }

    /// The policy with its table.
    pub(in crate::paper) fn configuration(&self) -> Result<SchedulerConfiguration, String> {
        let tables: SchedulerTables =
            self.all_tables().try_into().map_err(|error: toml::de::Error| error.to_string())?;
        let configuration = SchedulerConfiguration { scheduler: self.scheduler, tables };
        configuration.build().map_err(|error| error.to_string())?;
        Ok(configuration)
    }

    /// As a configuration file of `nap sim` has it.
    pub(in crate::paper) fn configuration_text(&self) -> Result<String, String> {
        let mut preemption = toml::Table::new();
        if let Some(primitive) = self.primitive {
            preemption.insert("primitive".to_owned(), primitive.to_string().into());
        }
        if let Some(most) = self.suspended_max {
            preemption.insert("suspended-max".to_owned(), most.to_string().into());
        }
        let coordinator =
            toml::Table::from_iter([("scheduler".to_owned(), self.scheduler.to_string().into())]);
        let all =
            [("coordinator", coordinator), ("preemption", preemption), ("scheduler", self.all_tables())];
        let all = all.into_iter().filter(|(_, table)| !table.is_empty());
        let file = toml::Table::from_iter(all.map(|(name, table)| (name.to_owned(), table.into())));
        toml::to_string(&file).map_err(|error| error.to_string())
    }
}
