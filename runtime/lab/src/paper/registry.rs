//! The figures of the papers, as the files in `papers/` have them.
//!
//! Owns the form of an entry and its checks: a quantity that names no variant is refused before anything runs. Does not own
//! what an entry comes to (`verdict`).

use std::collections::BTreeMap;

use napreduce_core::{Primitive, Span};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};
use napreduce_sim::WorkloadFile;
use serde::Deserialize;

use super::quantity::{Quantity, VariantName};

/// The papers, and their files.
const FILES: [(&str, &str); 5] = [
    ("os", include_str!("../../papers/os.toml")),
    ("natjam", include_str!("../../papers/natjam.toml")),
    ("fcs", include_str!("../../papers/fcs.toml")),
    ("hfsp", include_str!("../../papers/hfsp.toml")),
    ("yarn", include_str!("../../papers/yarn.toml")),
];

/// One paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Paper {
    #[serde(skip)]
    pub name: String,
    /// Its title and year.
    #[serde(rename = "paper")]
    pub title: String,
    #[serde(default)]
    pub calibration: Vec<Calibration>,
    #[serde(rename = "campaign", default)]
    pub campaigns: BTreeMap<String, Campaign>,
    #[serde(rename = "figure")]
    pub figures: BTreeMap<String, Figure>,
}

/// What was fitted, and with which published numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Calibration {
    pub what: String,
    pub with: String,
}

/// Runs that figures share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Campaign {
    pub about: String,
    /// A published mix, or a file beside the entries.
    pub workload: String,
    #[serde(default = "thirty")]
    pub blocks: u32,
    pub nodes: Option<u32>,
    #[serde(default, with = "napreduce_core::time::text_or_never")]
    pub until: Option<Span>,
    #[serde(rename = "variant")]
    pub variants: BTreeMap<String, Variant>,
}

/// One way to run the jobs of a campaign.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    pub scheduler: SchedulerName,
    pub primitive: Option<Primitive>,
    /// The table of the scheduler.
    pub settings: Option<toml::Table>,
    /// Tables of others that it refers to.
    #[serde(default)]
    pub tables: toml::Table,
    pub suspended_max: Option<napreduce_core::SuspendedMax>,
    /// Only these jobs, by class or name; all of them without.
    #[serde(default)]
    pub jobs: Vec<String>,
    pub nodes: Option<u32>,
    /// What `${name}` in the workload stands for.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

/// A figure, a table, or a result in the text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    pub title: String,
    pub claim: String,
    /// Why it cannot be tested.
    pub cannot: Option<String>,
    /// What stands in for an input that is not public.
    pub stand_in: Option<String>,
    /// Why a magnitude differs.
    pub because: Option<String>,
    /// The campaign whose variants need not be named with it.
    pub campaign: Option<String>,
    #[serde(default)]
    pub expect: Vec<Expectation>,
    pub plot: Option<Plot>,
}

/// What must be so.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expectation {
    pub what: String,
    pub value: Option<Quantity>,
    pub ratio: Option<[Quantity; 2]>,
    pub difference: Option<[Quantity; 2]>,
    pub rank: Option<Vec<Quantity>>,
    pub above: Option<f64>,
    pub below: Option<f64>,
    pub published: Option<f64>,
    pub source: Option<Source>,
    /// It was calibrated with, and judges nothing.
    #[serde(default)]
    pub given: bool,
    /// Ours over what was published.
    pub within: Option<[f64; 2]>,
    pub within_absolute: Option<f64>,
}

/// Where a published number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Text,
    Table,
    /// Worked out of others.
    Derived,
}

/// How it is drawn.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plot {
    pub kind: PlotKind,
    pub x: String,
    pub y: String,
    pub series: Vec<Series>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    Bars,
    Curves,
    Ecdf,
    Table,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Series {
    pub name: String,
    #[serde(default)]
    pub points: Vec<Point>,
    /// Of a distribution: the jobs' measure, whose statistic is not used.
    pub jobs: Option<Quantity>,
}

/// A label or a number, a quantity, and what was published.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Point {
    Published(Place, Quantity, f64),
    Ours(Place, Quantity),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Place {
    At(f64),
    Named(String),
}

/// A file of the registry cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("papers/{paper}.toml: {what}")]
pub struct RegistryError {
    pub paper: String,
    pub what: String,
}

fn thirty() -> u32 {
    30
}

/// All papers, checked.
///
/// # Errors
/// Never with the files of a release: they are tested.
pub fn papers() -> Result<Vec<Paper>, RegistryError> {
    FILES.iter().map(|(name, text)| read(name, text)).collect()
}

/// One paper from its text.
///
/// # Errors
/// When it is malformed, or a quantity names what is not there.
pub fn read(name: &str, text: &str) -> Result<Paper, RegistryError> {
    let refuse = |what: String| RegistryError { paper: name.to_owned(), what };
    let mut paper: Paper = toml::from_str(text).map_err(|error| refuse(error.to_string()))?;
    paper.name = name.to_owned();
    for (id, figure) in &paper.figures {
        paper.check(figure).map_err(|what| refuse(format!("figure {id}: {what}")))?;
    }
    for (id, campaign) in &paper.campaigns {
        for (variant, way) in &campaign.variants {
            let refuse = |what: String| refuse(format!("campaign {id}, variant {variant}: {what}"));
            campaign.file(way).map_err(refuse)?;
            way.configuration().map_err(refuse)?;
        }
    }
    Ok(paper)
}

impl Paper {
    fn check(&self, figure: &Figure) -> Result<(), String> {
        if figure.cannot.is_none() && figure.expect.is_empty() {
            return Err("it expects nothing; say what, or why it cannot be tested".to_owned());
        }
        if let Some(named) = figure.campaign.as_ref().filter(|named| !self.campaigns.contains_key(*named)) {
            return Err(format!("there is no campaign {named:?}"));
        }
        for expectation in &figure.expect {
            expectation.check().map_err(|what| format!("{:?}: {what}", expectation.what))?;
        }
        for quantity in figure.quantities() {
            for name in quantity.variants() {
                let found = self.having(figure, name).count();
                if found != 1 {
                    let (quantity, variant) = (quantity.to_string(), &name.variant);
                    return Err(format!(
                        "{quantity:?}: {found} campaigns have a variant {variant}; name one that does"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The campaign and the variant that a name in a figure means.
    pub(super) fn resolve<'a>(&'a self, figure: &'a Figure, name: &'a VariantName) -> (&'a str, &'a str) {
        (self.having(figure, name).next().unwrap_or_default(), &name.variant)
    }

    /// The campaigns that a name in a figure may mean; one, in a registry that was read.
    fn having<'a>(&'a self, figure: &'a Figure, name: &'a VariantName) -> impl Iterator<Item = &'a str> {
        let named = name.campaign.as_ref().or(figure.campaign.as_ref());
        self.campaigns
            .iter()
            .filter(move |(id, campaign)| {
                named.is_none_or(|named| *id == named) && campaign.variants.contains_key(&name.variant)
            })
            .map(|(id, _)| id.as_str())
    }

    /// The variants that a figure needs, by campaign.
    pub(super) fn needed(&self, figure: &Figure) -> Vec<(String, String)> {
        let mut needed: Vec<(String, String)> = figure
            .quantities()
            .into_iter()
            .flat_map(Quantity::variants)
            .map(|name| self.resolve(figure, name))
            .map(|(campaign, variant)| (campaign.to_owned(), variant.to_owned()))
            .collect();
        needed.sort();
        needed.dedup();
        needed
    }

    /// How many runs a figure takes in each block.
    pub fn runs_of(&self, figure: &Figure) -> usize {
        self.needed(figure).len()
    }

    /// Ids in the order in which people count: 3, 10, t2.
    pub fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.figures.keys().map(String::as_str).collect();
        let key = |id: &str| {
            let digits = id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len());
            let end = id[digits..].find(|c: char| !c.is_ascii_digit()).map_or(id.len(), |at| digits + at);
            (id[..digits].to_owned(), id[digits..end].parse::<u32>().unwrap_or(0), id[end..].to_owned())
        };
        ids.sort_by_key(|id| key(id));
        ids
    }

    /// Has another policy in the place of one, everywhere: what depends on it must then fail.
    pub fn swap_policy(&mut self, from: SchedulerName, to: SchedulerName) {
        let variants = self.campaigns.values_mut().flat_map(|campaign| campaign.variants.values_mut());
        for variant in variants.filter(|variant| variant.scheduler == from) {
            (variant.scheduler, variant.settings) = (to, None);
        }
    }
}

impl Figure {
    pub(super) fn quantities(&self) -> Vec<&Quantity> {
        let mut all: Vec<&Quantity> = self.expect.iter().flat_map(Expectation::quantities).collect();
        for series in self.plot.iter().flat_map(|plot| &plot.series) {
            all.extend(series.points.iter().map(Point::quantity));
            all.extend(&series.jobs);
        }
        all
    }
}

impl Figure {
    /// Every number that is called published.
    pub fn published(&self) -> Vec<f64> {
        let points = self.plot.iter().flat_map(|plot| &plot.series).flat_map(|series| &series.points);
        self.expect
            .iter()
            .filter_map(|expected| expected.published)
            .chain(points.filter_map(Point::published))
            .collect()
    }
}

impl Point {
    pub(super) fn quantity(&self) -> &Quantity {
        match self {
            Point::Published(_, quantity, _) | Point::Ours(_, quantity) => quantity,
        }
    }

    pub(super) fn place(&self) -> &Place {
        match self {
            Point::Published(place, ..) | Point::Ours(place, _) => place,
        }
    }

    pub(super) fn published(&self) -> Option<f64> {
        match self {
            Point::Published(.., published) => Some(*published),
            Point::Ours(..) => None,
        }
    }
}

impl Expectation {
    fn check(&self) -> Result<(), String> {
        let forms =
            [self.value.is_some(), self.ratio.is_some(), self.difference.is_some(), self.rank.is_some()];
        if forms.iter().filter(|given| **given).count() != 1 {
            return Err("give one of value, ratio, difference and rank".to_owned());
        }
        let direction = self.above.is_some() || self.below.is_some();
        match self.published {
            Some(_) if direction => {
                Err("give a direction (above, below) or a magnitude (published)".to_owned())
            }
            Some(_) if self.source.is_none() => Err("say the source of what was published".to_owned()),
            None if !direction => Err("give above or below, or what was published".to_owned()),
            _ => Ok(()),
        }
    }

    pub(super) fn quantities(&self) -> Vec<&Quantity> {
        let mut all: Vec<&Quantity> = self.value.iter().collect();
        all.extend(self.ratio.iter().chain(&self.difference).flatten());
        all.extend(self.rank.iter().flatten());
        all
    }
}

impl Campaign {
    /// The workload file of a variant.
    pub(super) fn text(&self, variant: &Variant) -> Result<String, String> {
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
    pub(super) fn file(&self, variant: &Variant) -> Result<WorkloadFile, String> {
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
    let beside = super::workloads::BESIDE.iter().find(|(file, _)| format!("workloads/{file}.toml") == name);
    beside.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("there is no workload {name:?}"))
}

impl Variant {
    /// The policy with its table.
    pub(super) fn configuration(&self) -> Result<SchedulerConfiguration, String> {
        let mut tables = self.tables.clone();
        if let Some(settings) = &self.settings {
            tables.insert(self.scheduler.to_string(), settings.clone().into());
        }
        let tables: SchedulerTables =
            tables.try_into().map_err(|error: toml::de::Error| error.to_string())?;
        let configuration = SchedulerConfiguration { scheduler: self.scheduler, tables };
        configuration.build().map_err(|error| error.to_string())?;
        Ok(configuration)
    }

    /// As a configuration file of `nap sim` has it.
    pub(super) fn configuration_text(&self) -> Result<String, String> {
        let mut tables = self.tables.clone();
        if let Some(settings) = &self.settings {
            tables.insert(self.scheduler.to_string(), settings.clone().into());
        }
        let mut preemption = toml::Table::new();
        if let Some(primitive) = self.primitive {
            preemption.insert("primitive".to_owned(), primitive.to_string().into());
        }
        if let Some(most) = self.suspended_max {
            preemption.insert("suspended-max".to_owned(), most.to_string().into());
        }
        let coordinator =
            toml::Table::from_iter([("scheduler".to_owned(), self.scheduler.to_string().into())]);
        let all = [("coordinator", coordinator), ("preemption", preemption), ("scheduler", tables)];
        let all = all.into_iter().filter(|(_, table)| !table.is_empty());
        let file = toml::Table::from_iter(all.map(|(name, table)| (name.to_owned(), table.into())));
        toml::to_string(&file).map_err(|error| error.to_string())
    }
}
