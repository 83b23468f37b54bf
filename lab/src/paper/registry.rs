//! The figures of the papers, read from `papers/*.toml`: campaigns of runs that figures share, claims with their
//! expectations, plots, and live recipes. An entry with an invalid name or bound is an error before anything runs.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use include_dir::{Dir, File, include_dir};
use napreduce_engine::{PrimitiveChoice, Slots, Span, SuspendedMax, Time, listed};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};
use napreduce_sim::{ClusterShape, SimulatedJob, WorkloadFile};
use serde::Deserialize;

use super::quantity::{Quantity, VariantName};
use crate::replay::Scale;

const FILES: [(&str, &str); 6] = [
    ("os", include_str!("../../papers/os.toml")),
    ("natjam", include_str!("../../papers/natjam.toml")),
    ("fcs", include_str!("../../papers/fcs.toml")),
    ("hfsp", include_str!("../../papers/hfsp.toml")),
    ("yarn", include_str!("../../papers/yarn.toml")),
    ("auto", include_str!("../../papers/auto.toml")),
];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Paper {
    #[serde(skip)]
    pub name: String,
    /// Its title and year.
    #[serde(rename = "paper")]
    pub title: String,
    /// Whether its questions are of no paper, but our own.
    #[serde(default)]
    pub own: bool,
    #[serde(default)]
    pub calibration: Vec<Calibration>,
    #[serde(rename = "campaign", default)]
    pub campaigns: BTreeMap<String, Campaign>,
    #[serde(rename = "figure")]
    pub figures: BTreeMap<String, Figure>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Calibration {
    pub what: String,
    pub with: String,
}

pub fn papers() -> Result<Vec<Paper>> {
    FILES.iter().map(|(name, text)| read(name, text)).collect()
}

pub fn read(name: &str, text: &str) -> Result<Paper> {
    let refuse = |what: String| anyhow!("papers/{name}.toml: {what}");
    let mut paper: Paper = toml::from_str(text).map_err(|error| refuse(error.to_string()))?;
    paper.name = name.to_owned();
    for expectation in paper
        .figures
        .values_mut()
        .flat_map(Figure::expectations_mut)
    {
        expectation
            .apply_word()
            .map_err(|what| refuse(format!("{:?}: {what}", expectation.what)))?;
    }
    for (id, figure) in &paper.figures {
        paper
            .check(figure)
            .map_err(|what| refuse(format!("figure {id}: {what}")))?;
    }
    for (id, campaign) in &paper.campaigns {
        for (variant, way) in &campaign.variants {
            let refuse = |what: String| refuse(format!("campaign {id}, variant {variant}: {what}"));
            campaign.file(way).map_err(refuse)?;
            way.configuration().map_err(refuse)?;
        }
        if let Some(live) = &campaign.live {
            live.check(&campaign.variants)
                .map_err(|what| refuse(format!("campaign {id}, {what}")))?;
        }
    }
    Ok(paper)
}

impl Paper {
    fn check(&self, figure: &Figure) -> Result<(), String> {
        if figure.claims.is_empty() {
            return Err("it has no claim".to_owned());
        }
        if let Some(named) = figure
            .campaign
            .as_ref()
            .filter(|named| !self.campaigns.contains_key(*named))
        {
            return Err(format!("unknown campaign {named:?}"));
        }
        for claim in &figure.claims {
            claim
                .check()
                .map_err(|what| format!("{:?}: {what}", claim.says))?;
        }
        for expectation in figure.expectations() {
            expectation
                .check()
                .map_err(|what| format!("{:?}: {what}", expectation.what))?;
        }
        for quantity in figure.quantities() {
            for name in quantity.variants() {
                let found = self.having(figure, name).count();
                if found != 1 {
                    let quantity = quantity.to_string();
                    let variant = &name.variant;
                    return Err(format!(
                        "{quantity:?}: {found} campaigns have a variant {variant}; name one that does"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The campaign and the variant of a name in a figure.
    pub(in crate::paper) fn resolve<'a>(
        &'a self,
        figure: &'a Figure,
        name: &'a VariantName,
    ) -> (&'a str, &'a str) {
        (
            self.having(figure, name).next().unwrap_or_default(),
            &name.variant,
        )
    }

    /// The campaigns that have the variant of a name; exactly one in a valid registry.
    fn having<'a>(
        &'a self,
        figure: &'a Figure,
        name: &'a VariantName,
    ) -> impl Iterator<Item = &'a str> {
        let named = name.campaign.as_ref().or(figure.campaign.as_ref());
        self.campaigns
            .iter()
            .filter(move |(id, campaign)| {
                named.is_none_or(|named| *id == named)
                    && campaign.variants.contains_key(&name.variant)
            })
            .map(|(id, _)| id.as_str())
    }

    /// The variants that a figure needs, by campaign.
    pub(in crate::paper) fn needed(&self, figure: &Figure) -> Vec<(String, String)> {
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

    /// Whether live runs can judge an expectation.
    pub(in crate::paper) fn is_live(&self, figure: &Figure, expected: &Expectation) -> bool {
        expected.quantities().into_iter().all(|quantity| {
            quantity.is_live()
                && quantity.variants().into_iter().all(|name| {
                    let (campaign, variant) = self.resolve(figure, name);
                    let campaign = self.campaigns.get(campaign);
                    campaign
                        .and_then(|campaign| campaign.live.as_ref())
                        .is_some_and(|live| live.has(variant))
                })
        })
    }

    /// Whether the runs of these quantities do not depend on the seed.
    pub(in crate::paper) fn is_deterministic(&self, figure: &Figure, of: &[&Quantity]) -> bool {
        of.iter()
            .flat_map(|quantity| quantity.variants())
            .all(|name| {
                let campaign = self.campaigns.get(self.resolve(figure, name).0);
                campaign.is_some_and(|campaign| campaign.deterministic)
            })
    }

    /// The number of runs of a figure in each block.
    pub fn runs_of(&self, figure: &Figure) -> usize {
        self.needed(figure).len()
    }

    /// Ids in natural order: 3, 10, t2.
    pub fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.figures.keys().map(String::as_str).collect();
        let key = |id: &str| {
            let digits = id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len());
            let end = id[digits..]
                .find(|c: char| !c.is_ascii_digit())
                .map_or(id.len(), |at| digits + at);
            (
                id[..digits].to_owned(),
                id[digits..end].parse::<u32>().unwrap_or(0),
                id[end..].to_owned(),
            )
        };
        ids.sort_by_key(|id| key(id));
        ids
    }

    /// The scheduler of a variant, if the campaign has it.
    pub fn scheduler_of(&self, campaign: &str, variant: &str) -> Option<SchedulerName> {
        Some(
            self.campaigns
                .get(campaign)?
                .variants
                .get(variant)?
                .scheduler,
        )
    }

    /// Replaces a policy everywhere, for the test that claims fail without it.
    pub fn swap_policy(&mut self, from: SchedulerName, to: SchedulerName) {
        let variants = self
            .campaigns
            .values_mut()
            .flat_map(|campaign| campaign.variants.values_mut());
        for variant in variants.filter(|variant| variant.scheduler == from) {
            (variant.scheduler, variant.settings) = (to, None);
        }
    }
}

/// Workloads other than the published mixes. The head of each file lists published and own values.
static WORKLOADS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/papers/workloads");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Campaign {
    pub about: String,
    /// A published mix, or a file in `papers/workloads`.
    pub workload: String,
    #[serde(default = "thirty")]
    pub blocks: u32,
    /// A simulation does not depend on the seed and is made once.
    #[serde(default)]
    pub deterministic: bool,
    pub nodes: Option<u32>,
    #[serde(default, with = "napreduce_engine::time::text_or_never")]
    pub until: Option<Span>,
    #[serde(default)]
    pub alone: Alone,
    pub live: Option<LiveRecipe>,
    #[serde(rename = "variant")]
    pub variants: BTreeMap<String, Variant>,
}

/// The source of a job's time alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alone {
    /// A list schedule of its tasks, without heartbeats.
    #[default]
    Scheduled,
    /// A simulation of the job alone, with all overheads.
    Simulated,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    pub scheduler: SchedulerName,
    pub primitive: Option<PrimitiveChoice>,
    pub settings: Option<toml::Table>,
    /// Tables of other schedulers that it refers to.
    #[serde(default)]
    pub tables: toml::Table,
    pub suspended_max: Option<SuspendedMax>,
    /// Classes or names of jobs; empty for all.
    #[serde(default)]
    pub jobs: Vec<String>,
    pub nodes: Option<u32>,
    /// Values of `${name}` in the workload.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

fn thirty() -> u32 {
    30
}

impl Campaign {
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

    pub(in crate::paper) fn file(&self, variant: &Variant) -> Result<WorkloadFile, String> {
        let text = self.text(variant)?;
        let file = WorkloadFile::read(&self.workload, &text).map_err(|error| error.to_string())?;
        if let Some(wanted) = variant
            .jobs
            .iter()
            .find(|wanted| !file.jobs.iter().any(|job| is_of(job, wanted)))
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
    if let Some(known) = napreduce_sim::PUBLISHED
        .iter()
        .find(|known| known.name == name)
    {
        return Ok(known.text.to_owned());
    }
    let file = name
        .strip_prefix("workloads/")
        .and_then(|file| WORKLOADS.get_file(file));
    file.and_then(File::contents_utf8)
        .map(str::to_owned)
        .ok_or_else(|| format!("unknown workload {name:?}"))
}

impl Variant {
    fn all_tables(&self) -> toml::Table {
        let mut tables = self.tables.clone();
        if let Some(settings) = &self.settings {
            tables.insert(self.scheduler.to_string(), settings.clone().into());
        }
        tables
    }

    pub(in crate::paper) fn configuration(&self) -> Result<SchedulerConfiguration, String> {
        let tables: SchedulerTables = self
            .all_tables()
            .try_into()
            .map_err(|error: toml::de::Error| error.to_string())?;
        let configuration = SchedulerConfiguration {
            scheduler: self.scheduler,
            tables,
        };
        configuration.build().map_err(|error| error.to_string())?;
        Ok(configuration)
    }

    /// A configuration file for `nap sim`.
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
        let all = [
            ("coordinator", coordinator),
            ("preemption", preemption),
            ("scheduler", self.all_tables()),
        ];
        let all = all.into_iter().filter(|(_, table)| !table.is_empty());
        let file = toml::Table::from_iter(all.map(|(name, table)| (name.to_owned(), table.into())));
        toml::to_string(&file).map_err(|error| error.to_string())
    }
}

/// A figure, a table, or a result in the text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    pub title: String,
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// Why it cannot be tested.
    pub cannot: Option<String>,
    /// The stand-in for an input that is not public.
    pub stand_in: Option<String>,
    /// Why a magnitude differs.
    pub because: Option<String>,
    /// Why a magnitude differs live, if for another reason.
    pub because_live: Option<String>,
    /// The campaign of variants that are named without one.
    pub campaign: Option<String>,
    pub plot: Option<Plot>,
}

/// One sentence of a paper in our words, with the expectations that judge it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    pub says: String,
    /// The section, figure or table of the paper.
    pub from: String,
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Why it has no expectations.
    pub not_measured: Option<String>,
    /// What of ours stands for something that the paper does not give, such as the grid of a mean.
    pub stand_in: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expectation {
    pub what: String,
    pub value: Option<Quantity>,
    pub ratio: Option<[Quantity; 2]>,
    pub difference: Option<[Quantity; 2]>,
    pub rank: Option<Vec<Quantity>>,
    /// The mean of several ratios.
    pub mean_ratio: Option<Vec<[Quantity; 2]>>,
    /// The least of several ratios.
    pub least_ratio: Option<Vec<[Quantity; 2]>>,
    /// Spearman's coefficient of several ratios against their order.
    pub rank_ratio: Option<Vec<[Quantity; 2]>>,
    /// Largest over smallest of the first quantities, over the same of the second.
    pub spread_ratio: Option<[Vec<Quantity>; 2]>,
    /// The second difference of three quantities.
    pub curvature: Option<[Quantity; 3]>,
    pub above: Option<f64>,
    pub below: Option<f64>,
    pub published: Option<f64>,
    pub source: Option<Source>,
    /// The place in the paper of a bound other than "any effect", or its derivation.
    pub bound: Option<String>,
    /// The word of the claim for the size of the effect, which decides the bounds; `above` or `below` is "any effect".
    pub word: Option<Word>,
    /// A number of the calibration, which is not judged.
    #[serde(default)]
    pub given: bool,
    /// Ours over what was published.
    pub within: Option<[f64; 2]>,
    pub within_absolute: Option<f64>,
}

listed! {
    /// A word for the size of an effect.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Word {
        Slightly = "slightly",
        Considerably = "considerably",
        Much = "much",
        Far = "far",
    }
}

/// The largest effect that is called slight, and the least that is called considerable, much or far. HFSP's section 4.2
/// calls 9 s of about 60 s slight.
const SLIGHT_MAX: f64 = 1.15;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Text,
    Table,
    /// Computed from other published numbers.
    Derived,
}

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
    /// For a distribution: the measure of the jobs, whose statistic is not used.
    pub jobs: Option<Quantity>,
}

/// A label or a number, a quantity, and the published number.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Point {
    Published(Label, Quantity, f64),
    Ours(Label, Quantity),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Label {
    At(f64),
    Named(String),
}

impl Label {
    pub(in crate::paper) fn in_words(&self) -> String {
        match self {
            Label::At(at) => at.to_string(),
            Label::Named(name) => name.clone(),
        }
    }
}

impl Figure {
    pub(in crate::paper) fn expectations(&self) -> impl Iterator<Item = &Expectation> {
        self.claims.iter().flat_map(|claim| &claim.expect)
    }

    fn expectations_mut(&mut self) -> impl Iterator<Item = &mut Expectation> {
        self.claims.iter_mut().flat_map(|claim| &mut claim.expect)
    }

    pub(in crate::paper) fn quantities(&self) -> Vec<&Quantity> {
        let mut all: Vec<&Quantity> = self
            .expectations()
            .flat_map(Expectation::quantities)
            .collect();
        for series in self.plot.iter().flat_map(|plot| &plot.series) {
            all.extend(series.points.iter().map(Point::quantity));
            all.extend(&series.jobs);
        }
        all
    }

    /// Every number of the paper in the entry: published numbers, and bounds other than "any effect".
    pub fn published(&self) -> Vec<f64> {
        let points = self
            .plot
            .iter()
            .flat_map(|plot| &plot.series)
            .flat_map(|series| &series.points);
        self.expectations()
            .flat_map(|expected| {
                expected
                    .published
                    .into_iter()
                    .chain(expected.foreign_bounds())
            })
            .chain(points.filter_map(Point::published))
            .collect()
    }
}

impl Claim {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.from.trim().is_empty() {
            return Err("name the section, figure or table of the paper".to_owned());
        }
        match (self.expect.is_empty(), &self.not_measured) {
            (true, None) => {
                return Err(
                    "no expectation; give expect, or the reason with not-measured".to_owned(),
                );
            }
            (false, Some(_)) => return Err("give expect or not-measured, not both".to_owned()),
            _ => {}
        }
        self.check_words()
    }

    /// Fails if the claim has a word for the size of an effect, and all of its ratios only ask for any effect.
    fn check_words(&self) -> Result<(), String> {
        let said = |word: &Word| {
            self.says
                .split_whitespace()
                .any(|one| one == word.in_words())
        };
        let Some(word) = Word::ALL.into_iter().find(said) else {
            return Ok(());
        };
        let ratios = || self.expect.iter().filter(|expected| expected.is_ratio());
        if ratios().count() > 0 && ratios().all(Expectation::claims_any_effect) {
            return Err(format!(
                "it claims an effect of a size; give word = \"{}\"",
                word.in_words()
            ));
        }
        Ok(())
    }
}

impl Point {
    pub(in crate::paper) fn quantity(&self) -> &Quantity {
        match self {
            Point::Published(_, quantity, _) | Point::Ours(_, quantity) => quantity,
        }
    }

    pub(in crate::paper) fn place(&self) -> &Label {
        match self {
            Point::Published(place, ..) | Point::Ours(place, _) => place,
        }
    }

    pub(in crate::paper) fn published(&self) -> Option<f64> {
        match self {
            Point::Published(.., published) => Some(*published),
            Point::Ours(..) => None,
        }
    }
}

/// The margin of ours over published, unless an entry has its own.
const WITHIN: [f64; 2] = [0.8, 1.25];

impl Expectation {
    pub(super) fn check(&self) -> Result<(), String> {
        let forms = [
            self.value.is_some(),
            self.difference.is_some(),
            self.rank.is_some(),
            self.rank_ratio.is_some(),
            self.curvature.is_some(),
            self.is_ratio(),
        ];
        if forms.iter().filter(|given| **given).count() != 1 {
            return Err("give one form, such as value, ratio, difference or rank".to_owned());
        }
        let direction = self.above.is_some() || self.below.is_some();
        match self.published {
            Some(_) if direction => {
                return Err("give a direction (above, below) or a magnitude (published)".to_owned());
            }
            Some(_) if self.source.is_none() => {
                return Err("name the source of the published number".to_owned());
            }
            None if !direction => return Err("give above, below or published".to_owned()),
            _ => {}
        }
        if self.bound.is_some() || self.given {
            return Ok(());
        }
        if let Some(bound) = self.foreign_bounds().next() {
            return Err(format!(
                "name with `bound` the place of {bound} in the paper"
            ));
        }
        if let Some(published) = self.published {
            let (effect, [least, most]) = (
                (published - self.no_effect()).abs(),
                self.accepted(published),
            );
            if least < most && (published - least).max(most - published) >= effect {
                return Err(format!(
                    "its margin is as large as the effect, {effect:.3}, or larger"
                ));
            }
        }
        Ok(())
    }

    /// Sets the bounds that the word of the claim means.
    fn apply_word(&mut self) -> Result<(), String> {
        let Some(word) = self.word else { return Ok(()) };
        if !self.is_ratio() {
            return Err("a word sets the bounds of ratios only".to_owned());
        }
        let more = SLIGHT_MAX;
        let less = 1.0 / SLIGHT_MAX;
        let is_slight = word == Word::Slightly;
        match (self.above, self.below) {
            (Some(1.0), None) if is_slight => self.below = Some(more),
            (None, Some(1.0)) if is_slight => self.above = Some(less),
            (Some(1.0), None) => self.above = Some(more),
            (None, Some(1.0)) => self.below = Some(less),
            _ => return Err("with a word, give above = 1.0 or below = 1.0".to_owned()),
        }
        Ok(())
    }

    /// Whether it is a direction that any effect fulfils, however small.
    pub(in crate::paper) fn claims_any_effect(&self) -> bool {
        let none = Some(self.no_effect());
        self.published.is_none()
            && matches!((self.above, self.below), (Some(_), None) | (None, Some(_)))
            && (self.above == none || self.below == none)
    }

    /// The value without an effect.
    pub(in crate::paper) fn no_effect(&self) -> f64 {
        if self.is_ratio() { 1.0 } else { 0.0 }
    }

    pub(in crate::paper) fn is_ratio(&self) -> bool {
        self.ratio.is_some()
            || self.mean_ratio.is_some()
            || self.least_ratio.is_some()
            || self.spread_ratio.is_some()
    }

    /// Bounds other than "any effect".
    fn foreign_bounds(&self) -> impl Iterator<Item = f64> {
        let none = self.no_effect();
        let is_of_word = self.word.is_some();
        self.above
            .into_iter()
            .chain(self.below)
            .filter(move |bound| *bound != none && !is_of_word)
    }

    /// The accepted range for a published number: by default 0.8 to 1.25 of it, and for a ratio at most half of the
    /// effect away.
    pub(in crate::paper) fn accepted(&self, published: f64) -> [f64; 2] {
        if let Some(most) = self.within_absolute {
            return [published - most, published + most];
        }
        let [least, most] = self.within.unwrap_or(WITHIN).map(|times| published * times);
        if self.within.is_some() || !self.is_ratio() {
            return [least.min(most), least.max(most)];
        }
        let half = (published - self.no_effect()).abs() / 2.0;
        [least.max(published - half), most.min(published + half)]
    }

    pub(in crate::paper) fn quantities(&self) -> Vec<&Quantity> {
        let mut all: Vec<&Quantity> = self.value.iter().collect();
        all.extend(self.ratio.iter().chain(&self.difference).flatten());
        all.extend(self.rank.iter().flatten());
        let ratios = self
            .mean_ratio
            .iter()
            .chain(&self.least_ratio)
            .chain(&self.rank_ratio);
        all.extend(ratios.flatten().flatten());
        all.extend(self.spread_ratio.iter().flatten().flatten());
        all.extend(self.curvature.iter().flatten());
        all
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LiveRecipe {
    /// Divisor of times.
    pub time_scale: f64,
    /// Divisor of tasks, slots and bytes.
    #[serde(default = "one")]
    pub task_scale: f64,
    /// Workers for the machines of the campaign; proportionally fewer for a variant with fewer machines.
    pub workers: Option<u32>,
    /// Slots of each worker, instead of those of the scaled campaign.
    pub slots: Option<Slots>,
    /// Empty for all.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Runs one of this many jobs of each class and divides the gaps by the same number, so that the cluster is as
    /// busy.
    #[serde(default = "one_of_one")]
    pub one_of: u32,
}

fn one() -> f64 {
    1.0
}
fn one_of_one() -> u32 {
    1
}

impl LiveRecipe {
    pub(in crate::paper) fn scale(&self) -> Result<Scale, String> {
        Scale::new(self.time_scale, self.task_scale).map_err(|error| error.to_string())
    }

    pub(in crate::paper) fn has(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|name| name == variant)
    }

    /// The jobs that run, before scaling.
    pub(in crate::paper) fn jobs(&self, jobs: Vec<SimulatedJob>) -> Vec<SimulatedJob> {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let mut kept = Vec::new();
        for mut job in jobs {
            let number = seen.entry(job.class.to_string()).or_default();
            if number.is_multiple_of(self.one_of.max(1)) {
                job.submit = Time(job.submit.0 / u64::from(self.one_of.max(1)));
                kept.push(job);
            }
            *number += 1;
        }
        kept
    }

    /// The live cluster for a variant of `shape`, where the campaign has `usual` machines.
    pub(in crate::paper) fn cluster(
        &self,
        shape: ClusterShape,
        usual: u32,
    ) -> Result<ClusterShape, String> {
        let share = f64::from(shape.machines) / f64::from(usual.max(1));
        let workers = self
            .workers
            .map(|workers| ((f64::from(workers) * share).round() as u32).max(1));
        let scaled = self.scale()?.cluster(shape, workers);
        Ok(self.slots.map_or(scaled, |slots| {
            ClusterShape::with_slots(scaled.machines, slots.map, slots.reduce)
        }))
    }

    pub(in crate::paper) fn check(
        &self,
        variants: &BTreeMap<String, Variant>,
    ) -> Result<(), String> {
        self.scale()?;
        if self.one_of == 0 || self.workers == Some(0) {
            return Err("live: one-of and workers are at least 1".to_owned());
        }
        match self
            .variants
            .iter()
            .find(|name| !variants.contains_key(*name))
        {
            Some(name) => Err(format!("live: unknown variant {name:?}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::Span;

    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let expected: Expectation = toml::from_str(text).expect("an expectation");
        expected.check()
    }

    const RATIO: &str = "what = \"a\"\nratio = [\"a: makespan\", \"b: makespan\"]\n";

    #[test]
    fn bound_without_a_place_in_the_paper_is_an_error() {
        assert_eq!(check(&format!("{RATIO}below = 1.0")), Ok(()));
        let error = check(&format!("{RATIO}below = 1.02")).expect_err("a bound of ours");
        assert!(error.contains("1.02"), "{error}");
        assert_eq!(
            check(&format!("{RATIO}below = 1.02\nbound = \"section 1\"")),
            Ok(())
        );
        let value = "what = \"a\"\nvalue = \"a: makespan\"\n";
        assert!(
            check(&format!("{value}above = 1.0")).is_err(),
            "no effect of a number is 0"
        );
        assert_eq!(check(&format!("{value}above = 0.0")), Ok(()));
    }

    #[test]
    fn word_of_the_claim_decides_the_bound() {
        let bounds = |rest: &str| {
            let mut expected: Expectation =
                toml::from_str(&format!("{RATIO}{rest}")).expect("an expectation");
            expected
                .apply_word()
                .map(|()| (expected.above, expected.below))
        };
        assert_eq!(bounds("below = 1.0"), Ok((None, Some(1.0))));
        assert_eq!(
            bounds("below = 1.0\nword = \"considerably\""),
            Ok((None, Some(1.0 / 1.15)))
        );
        assert_eq!(
            bounds("above = 1.0\nword = \"much\""),
            Ok((Some(1.15), None))
        );
        assert_eq!(
            bounds("above = 1.0\nword = \"slightly\""),
            Ok((Some(1.0), Some(1.15)))
        );
        assert!(
            bounds("below = 0.9\nword = \"far\"").is_err(),
            "two sources of a bound"
        );
        let claim = |expect: &str| {
            let text = format!(
                "says = \"it is considerably sooner\"\nfrom = \"section 1\"\nexpect = [{{ what = \"a\", {expect} }}]"
            );
            let mut claim: Claim = toml::from_str(&text).expect("a claim");
            for expected in &mut claim.expect {
                expected.apply_word()?;
            }
            claim.check()
        };
        let ratio = "ratio = [\"a: makespan\", \"b: makespan\"], below = 1.0";
        let error = claim(ratio).expect_err("any effect is not considerable");
        assert!(error.contains("word = \"considerably\""), "{error}");
        assert_eq!(claim(&format!("{ratio}, word = \"considerably\"")), Ok(()));
    }

    #[test]
    fn margin_as_large_as_the_effect_is_refused() {
        let published = format!("{RATIO}source = \"text\"\npublished = ");
        let error =
            check(&format!("{published}1.02\nwithin-absolute = 0.1")).expect_err("too wide");
        assert!(error.contains("0.020"), "{error}");
        assert!(check(&format!("{published}1.02\nwithin = [0.9, 1.1]")).is_err());
        assert_eq!(
            check(&format!("{published}1.02\nwithin-absolute = 0.01")),
            Ok(())
        );
        assert_eq!(check(&format!("{published}1.02")), Ok(()));
    }

    #[test]
    fn margin_is_half_of_a_small_effect_and_a_fifth_of_a_large_one() {
        let accepted = |published: f64| {
            let expected: Expectation =
                toml::from_str(&format!("{RATIO}below = 1.0")).expect("a ratio");
            expected
                .accepted(published)
                .map(|bound| (bound * 1000.0).round() / 1000.0)
        };
        assert_eq!(accepted(1.02), [1.01, 1.03]);
        assert_eq!(accepted(0.5), [0.4, 0.625]);
    }

    #[test]
    fn claim_without_a_judge_is_refused() {
        let check = |text: &str| toml::from_str::<Claim>(text).expect("a claim").check();
        let claim = "says = \"a\"\nfrom = \"section 1\"\n";
        assert!(check(claim).expect_err("no judge").contains("not-measured"));
        assert_eq!(check(&format!("{claim}not-measured = \"why\"")), Ok(()));
        assert!(
            check("says = \"a\"\nfrom = \"\"\nnot-measured = \"why\"").is_err(),
            "no place"
        );
    }

    fn recipe(text: &str) -> LiveRecipe {
        toml::from_str(text).expect("a recipe")
    }

    #[test]
    fn one_of_three_jobs_is_submitted_three_times_as_early() {
        let job = |class: &str, number: u64| {
            let mut job = SimulatedJob::new(format!("{class}-{number}"), Time(number * 30))
                .with_maps(1, Span(1));
            job.class = class.into();
            job
        };
        let jobs: Vec<_> = (0..4)
            .map(|number| job("a", number))
            .chain([job("b", 9)])
            .collect();
        let kept = recipe("time-scale = 2\none-of = 3").jobs(jobs);
        let found: Vec<_> = kept.iter().map(|job| (&*job.name, job.submit.0)).collect();
        assert_eq!(found, [("a-0", 0), ("a-3", 30), ("b-9", 90)]);
    }

    #[test]
    fn variant_with_fewer_machines_has_fewer_workers() {
        let recipe = recipe("time-scale = 300\ntask-scale = 10\nworkers = 5");
        let shape = ClusterShape::with_slots;
        assert_eq!(recipe.cluster(shape(100, 4, 2), 100), Ok(shape(5, 8, 4)));
        assert_eq!(recipe.cluster(shape(20, 4, 2), 100), Ok(shape(1, 8, 4)));
        assert!(recipe.has("any"));
    }

    #[test]
    fn containers_become_slots_of_two_kinds() {
        let containers = ClusterShape {
            containers: Some(8),
            ..ClusterShape::with_slots(6, 0, 0)
        };
        let of = |text: &str| recipe(text).cluster(containers, 6).expect("a cluster");
        assert_eq!(
            of("time-scale = 20\nworkers = 2"),
            ClusterShape::with_slots(2, 6, 18)
        );
        let slots = "slots = { map = 6, reduce = 24 }";
        assert_eq!(
            of(&format!("time-scale = 20\nworkers = 2\n{slots}")),
            ClusterShape::with_slots(2, 6, 24)
        );
    }

    #[test]
    fn invalid_recipes_are_errors() {
        let none = BTreeMap::new();
        let check = |text: &str| recipe(text).check(&none);
        assert_eq!(check("time-scale = 2"), Ok(()));
        assert!(
            check("time-scale = 0")
                .expect_err("no scale")
                .contains("--time-scale")
        );
        assert!(
            check("time-scale = 2\nvariants = [\"x\"]")
                .expect_err("no variant")
                .contains("\"x\"")
        );
        assert!(
            check("time-scale = 2\none-of = 0")
                .expect_err("no job")
                .contains("at least 1")
        );
    }
}
