//! The folder of a report:
//!
//! ```text
//! report.txt                for people
//! verdicts.json             for programs; the same rows give the same bytes
//! figures/natjam-5.svg      each figure, with published numbers
//! runs.jsonl.xz             all runs; source of the files above
//! report.json               the selected figures, and how often they were judged
//! variants/                 the workload and the configuration of every variant
//! environment.json          machine, program, commit, command, time
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use napreduce_sim::metrics::ecdf;
use napreduce_sim::plot::{
    Curve, Estimate as Mark, PlotError, Series as Steps, bars, curves, differences,
};
use serde::{Deserialize, Serialize};

use super::inference::LEVEL;
use super::runs::runs_live;
use super::verdict::judge;
use crate::error::cannot;
use crate::machine::Machine;
use crate::paper::inference::Estimate;
use crate::paper::measure::Measured;
use crate::paper::quantity::Quantity;
use crate::paper::registry::{Figure, Label, Paper, Plot, PlotKind, Point, Series};
use crate::paper::rows::{Executor, MeasuredRun, Runs};
use crate::paper::tally::Tally;
use crate::paper::verdict::{Finding, FindingKind, Judgement, Ruling, Verdict};
use crate::pictures::pictures;
use crate::replay::{Agreement, BAND};
use crate::report::{dash, table};
use crate::statistics;
use crate::workspace::write;

const SELECTION: &str = "report.json";
const ENVIRONMENT: &str = "environment.json";

#[derive(Debug)]
pub struct PaperReport {
    papers: Vec<Paper>,
    selection: Selection,
    pub runs: Runs,
    pub judgements: Vec<Judgement>,
    /// The programs that made the runs.
    pub origins: Vec<Origin>,
}

/// The program that made the runs of a report.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Origin {
    /// The name of its folder.
    #[serde(skip)]
    pub report: String,
    pub version: String,
    pub commit: Option<String>,
}

impl Origin {
    pub(super) fn read(folder: &Path) -> Result<Origin> {
        let path = folder.join(ENVIRONMENT);
        let text = fs::read_to_string(&path).map_err(cannot("read", &path))?;
        let origin: Origin = serde_json::from_str(&text)
            .with_context(|| format!("{}: is it the folder of a report?", path.display()))?;
        let name = folder
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Ok(Origin {
            report: name.unwrap_or_default(),
            ..origin
        })
    }
}

/// The selected figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Selection {
    /// Papers and their figures.
    pub figures: Vec<(String, String)>,
    /// How often growing rows were judged, which lowers the level.
    pub looks: u32,
    #[serde(default = "simulated")]
    pub executors: Vec<Executor>,
}

fn simulated() -> Vec<Executor> {
    vec![Executor::Simulated]
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Environment {
    pub machine: Machine,
    pub version: &'static str,
    /// Commit of the working folder; `+` if files differ from it.
    pub commit: Option<String>,
    pub command: Vec<String>,
    pub seconds: f64,
}

impl Selection {
    /// The level of error of a verdict.
    pub(super) fn level(&self) -> f64 {
        if self.looks > 1 { LEVEL / 2.0 } else { LEVEL }
    }

    /// Adds executors.
    pub(super) fn run_by(&mut self, executors: Vec<Executor>) {
        let new = executors
            .into_iter()
            .filter(|executor| !self.executors.contains(executor));
        let new: Vec<Executor> = new.collect();
        self.executors.extend(new);
    }

    pub(super) fn of<'a>(&'a self, paper: &'a str) -> impl Iterator<Item = &'a str> {
        self.figures
            .iter()
            .filter(move |(name, _)| name == paper)
            .map(|(_, figure)| figure.as_str())
    }

    pub(super) fn read(folder: &Path) -> Result<Selection> {
        let path = folder.join(SELECTION);
        let text = fs::read_to_string(&path).map_err(cannot("read", &path))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{}: is it the folder of a report?", path.display()))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        write(&folder.join(SELECTION), json(self))
    }
}

impl PaperReport {
    /// Judges the figures of a selection.
    pub fn new(papers: Vec<Paper>, selection: Selection, runs: Runs) -> Result<PaperReport> {
        let mut judgements = Vec::new();
        for (name, id) in &selection.figures {
            let paper = papers.iter().find(|paper| paper.name == *name);
            let found = paper.and_then(|paper| Some((paper, paper.figures.get(id)?)));
            let Some((paper, figure)) = found else {
                bail!("the report has figure {id} of {name}, which is not in the registry");
            };
            for &executor in &selection.executors {
                // A figure that cannot be tested is listed once.
                if executor.is_simulated() || runs_live(paper, figure) {
                    let measured = Measured {
                        paper,
                        figure,
                        runs: &runs,
                        executor,
                    };
                    judgements.push(judge(id, measured, selection.level()));
                }
            }
        }
        Ok(PaperReport {
            papers,
            selection,
            runs,
            judgements,
            origins: Vec::new(),
        })
    }

    /// Adds the judgements and runs of another report.
    pub fn add(&mut self, other: PaperReport) {
        self.selection.looks = self.selection.looks.max(other.selection.looks);
        self.selection.figures.extend(other.selection.figures);
        self.selection.run_by(other.selection.executors);
        self.runs.extend(other.runs);
        self.judgements.extend(other.judgements);
        self.origins.extend(other.origins);
    }

    pub fn read(papers: Vec<Paper>, folder: &Path) -> Result<PaperReport> {
        let selection = Selection::read(folder)?;
        let mut report = PaperReport::new(papers, selection, Runs::read(folder)?)?;
        // An interrupted report has none.
        if folder.join(ENVIRONMENT).exists() {
            report.origins.push(Origin::read(folder)?);
        }
        Ok(report)
    }

    /// Writes everything but the rows.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let figures = folder.join("figures");
        make(&figures)?;
        self.selection.write(folder)?;
        write(&folder.join("verdicts.json"), self.verdicts())?;
        write(&folder.join("report.txt"), self.text())?;
        for judgement in &self.judgements {
            if let Some((paper, figure)) = self.entry(judgement) {
                let executor = judgement.executor;
                draw(
                    &figures,
                    &judgement.figure,
                    Measured {
                        paper,
                        figure,
                        runs: &self.runs,
                        executor,
                    },
                )?;
            }
        }
        self.write_variants(&folder.join("variants"))
    }

    pub fn verdicts(&self) -> String {
        json(&self.judgements)
    }

    fn write_variants(&self, folder: &Path) -> Result<()> {
        make(folder)?;
        let keys = self.runs.iter().map(|run| &run.run.key);
        let variants: BTreeSet<_> = keys
            .map(|key| (&key.paper, &key.campaign, &key.variant))
            .collect();
        for (paper, campaign, variant) in variants {
            let name = format!("{paper}.{campaign}.{variant}");
            let paper = self.papers.iter().find(|known| known.name == *paper);
            let Some(campaign) = paper.and_then(|paper| paper.campaigns.get(campaign)) else {
                continue;
            };
            let Some(variant) = campaign.variants.get(variant) else {
                continue;
            };
            if let (Ok(workload), Ok(configuration)) =
                (campaign.text(variant), variant.configuration_text())
            {
                write(&folder.join(format!("{name}.workload.toml")), workload)?;
                write(
                    &folder.join(format!("{name}.configuration.toml")),
                    configuration,
                )?;
            }
        }
        Ok(())
    }

    fn entry(&self, judgement: &Judgement) -> Option<(&Paper, &Figure)> {
        let paper = self
            .papers
            .iter()
            .find(|paper| paper.name == judgement.paper)?;
        Some((paper, paper.figures.get(&judgement.figure)?))
    }

    /// Whether every output of live runs was right.
    pub fn identical(&self) -> bool {
        self.runs
            .iter()
            .filter_map(|run| run.run.live.as_ref())
            .all(|live| live.identical)
    }

    /// Figures with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.judgements
            .iter()
            .filter(|judgement| judgement.verdict == verdict)
            .count()
    }
}

impl Environment {
    pub fn describe(seconds: f64) -> Environment {
        Environment {
            machine: Machine::describe(),
            version: env!("CARGO_PKG_VERSION"),
            commit: commit(),
            command: std::env::args().skip(1).collect(),
            seconds,
        }
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        write(&folder.join(ENVIRONMENT), json(self))
    }
}

/// The commit of the working folder; `None` without git or a repository.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let ended = std::process::Command::new("git")
            .args(arguments)
            .output()
            .ok()?;
        ended.status.success().then_some(ended.stdout)
    };
    let head = String::from_utf8(git(&["rev-parse", "HEAD"])?).ok()?;
    let is_changed = git(&["diff", "--quiet", "HEAD"]).is_none();
    let mark = if is_changed { "+" } else { "" };
    Some(format!("{}{mark}", head.trim()))
}

pub(super) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(cannot("make", folder))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data can be written as JSON") + "\n"
}

impl PaperReport {
    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for judgement in &self.judgements {
            add(&mut text, judgement);
            let entry = self
                .entry(judgement)
                .filter(|_| judgement.executor == Executor::Live);
            let columns =
                entry.and_then(|(paper, figure)| self.columns(paper, &judgement.figure, figure));
            if let Some(columns) = columns {
                text.push_str(&columns);
                text.push('\n');
            }
        }
        let agreement = self.agreement();
        if !agreement.is_empty() {
            text.push_str("Live over simulated, at the live scale:\n");
            for line in agreement {
                let _ = writeln!(text, "  {line}");
            }
            text.push('\n');
        }
        if self.selection.looks > 1 {
            text.push_str(
                "Blocks were added after verdicts had been seen, so intervals are of 97.5 %.\n",
            );
        }
        let _ = writeln!(text, "{}", self.counts());
        text
    }

    fn tally(&self) -> Tally {
        Tally::new(&self.papers, &self.judgements)
    }

    /// The numbers of figures and claims by verdict, a line for papers and our own questions, simulated and live.
    pub fn counts(&self) -> String {
        self.tally().text()
    }

    /// The numbers of figures as a table in Markdown.
    pub fn figures_table(&self) -> String {
        self.tally().figures()
    }

    /// The numbers of claims as a table in Markdown.
    pub fn claims_table(&self) -> String {
        self.tally().claims()
    }

    /// The programs that made the runs as a table in Markdown.
    fn origins_table(&self) -> String {
        let mut text = "| report | version | commit |\n|---|---|---|\n".to_owned();
        for Origin {
            report,
            version,
            commit,
        } in &self.origins
        {
            // A prefix is enough; a mark of changed files is kept.
            let commit = commit.as_deref().unwrap_or("unknown");
            let mark = if commit.ends_with('+') {
                " with changes"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "| {report} | {version} | {}{mark} |",
                &commit[..commit.len().min(10)]
            );
        }
        text
    }
}

fn add(text: &mut String, judgement: &Judgement) {
    let Judgement {
        paper,
        figure,
        title,
        executor,
        verdict,
        because,
        claims,
    } = judgement;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{paper} {figure}{}  {}  {title}",
        executor.suffix(" "),
        verdict.in_words().to_uppercase()
    );
    if let Some(because) = because {
        let _ = writeln!(text, "  {because}");
    }
    for claim in claims {
        let from = format!("{} ({})", claim.says, claim.from);
        let _ = match (claim.verdict, &claim.not_measured) {
            (Some(verdict), _) => writeln!(text, "  {:<16} {from}", verdict.in_words()),
            (None, why) => {
                writeln!(
                    text,
                    "  {:<16} {from}: {}",
                    "not measured",
                    why.as_deref().unwrap_or_default()
                )
            }
        };
        for finding in &claim.findings {
            let _ = writeln!(text, "    {}", line(finding));
        }
    }
    text.push('\n');
}

fn line(finding: &Finding) -> String {
    let outcome = match (finding.kind, finding.outcome) {
        (FindingKind::Given, _) => "given",
        (_, Ruling::Holds) => "yes",
        (_, Ruling::NotResolved) => "?",
        (_, Ruling::NoEffect) => "NONE",
        (_, Ruling::DoesNotHold) => "NO",
    };
    let none = if finding.outcome == Ruling::NoEffect {
        ": no effect above 0.1 %"
    } else {
        ""
    };
    format!(
        "{outcome:<5} {}: {} (expected {}){none}",
        finding.what,
        found(finding.found.as_ref()),
        finding.expected
    )
}

pub(super) fn found(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "nothing was measured".to_owned(),
        Some(found) if found.is_exact() => format!("{}, n = 1", number(found.mean)),
        Some(found) if found.low == found.high => {
            format!("{}, n = {}", number(found.mean), found.blocks)
        }
        Some(found) => {
            format!(
                "{} [{}, {}], n = {}",
                number(found.mean),
                number(found.low),
                number(found.high),
                found.blocks
            )
        }
    }
}

/// A number with about four significant digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

impl PaperReport {
    /// The page of the docs, which names the command that wrote it.
    pub fn markdown(&self, command: &str) -> String {
        let mut text = format!(
            "# Results compared with the papers\n\nWritten by `{command}`; do not edit. [figures.md](figures.md) \
             explains the method and the verdicts. `lab/papers` has every entry, and the same command prints every \
             claim.\n\nRows marked *live* ran on clusters of one machine, at the scale of the figure's entry; the \
             others were simulated. Brackets are 95 % intervals over n blocks; n = 1 where nothing depends on the \
             seed.\n\n{}\n{}\nThe runs were made by these programs:\n\n{}",
            self.figures_table(),
            self.claims_table(),
            self.origins_table(),
        );
        for paper in &self.papers {
            let mut judged: Vec<&Judgement> = self
                .judgements
                .iter()
                .filter(|judgement| judgement.paper == paper.name)
                .collect();
            let ids = paper.ids();
            judged.sort_by_key(|judgement| ids.iter().position(|id| **id == judgement.figure));
            if !judged.is_empty() {
                add_section(&mut text, paper, &judged);
            }
        }
        add_agreement(&mut text, &self.agreements());
        text
    }
}

/// Adds a table with the range of ratios of each paper, and the ratios outside the expected range.
fn add_agreement(text: &mut String, agreements: &Agreements<'_>) {
    if agreements.is_empty() {
        return;
    }
    let [least, most] = BAND;
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n## Live over simulated, at the live scale\n\n\
         Ratios of mean sojourns. Expected: {least} to {most}. `report.txt` has the times of every variant.\n\n\
         | paper | variants | ratios | outside |\n|---|---|---|---|\n"
    );
    let papers: BTreeSet<&str> = agreements.keys().map(|(paper, ..)| *paper).collect();
    for paper in papers {
        let of_paper = || agreements.iter().filter(|((of, ..), _)| *of == paper);
        let ratios = || of_paper().map(|(_, agreement)| agreement.all.ratio);
        let outside: Vec<String> = of_paper()
            .filter_map(|((_, campaign, variant), agreement)| {
                Some(format!("{campaign} {variant}: {}", agreement.outside()?))
            })
            .collect();
        let low = ratios().fold(f64::INFINITY, f64::min);
        let high = ratios().fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "| {paper} | {} | {low:.3} to {high:.3} | {} |",
            ratios().count(),
            cell(&outside.join("; "))
        );
    }
}

fn add_section(text: &mut String, paper: &Paper, judged: &[&Judgement]) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## {} (`{}`)\n\n", paper.title, paper.name);
    if !paper.calibration.is_empty() {
        let _ = write!(text, "| calibrated | with |\n|---|---|\n");
        for calibration in &paper.calibration {
            let _ = writeln!(
                text,
                "| {} | {} |",
                cell(&calibration.what),
                cell(&calibration.with)
            );
        }
        text.push('\n');
    }
    let _ = write!(
        text,
        "| figure | | verdict | claims that hold | reason |\n|---|---|---|---|---|\n"
    );
    let mut failing = String::new();
    for judgement in judged {
        let id = format!("{}{}", judgement.figure, judgement.executor.suffix(", "));
        let verdicts: Vec<Verdict> = judgement
            .claims
            .iter()
            .filter_map(|claim| claim.verdict)
            .collect();
        let holds = |verdict: &&Verdict| matches!(verdict, Verdict::Holds | Verdict::Supports);
        let held = verdicts.iter().filter(holds).count();
        let _ = writeln!(
            text,
            "| **{id}** | {} | {} | {held} of {} | {} |",
            cell(&judgement.title),
            judgement.verdict.in_words(),
            verdicts.len(),
            cell(judgement.because.as_deref().unwrap_or_default())
        );
        for claim in &judgement.claims {
            let findings: Vec<String> = claim
                .findings
                .iter()
                .filter(|finding| fails(finding))
                .map(found_cell)
                .collect();
            if let Some(verdict) = claim.verdict.filter(|_| !findings.is_empty()) {
                let says = cell(&format!("{} ({})", claim.says, claim.from));
                let _ = writeln!(
                    failing,
                    "| {id} | {says} | {} | {} |",
                    verdict.in_words(),
                    findings.join("<br>")
                );
            }
        }
    }
    if !failing.is_empty() {
        let _ = write!(
            text,
            "\n| figure | claim | verdict | not as expected |\n|---|---|---|---|\n{failing}"
        );
    }
}

fn fails(finding: &Finding) -> bool {
    finding.kind != FindingKind::Given && finding.outcome != Ruling::Holds
}

fn found_cell(finding: &Finding) -> String {
    let none = if finding.outcome == Ruling::NoEffect {
        ": no effect above 0.1 %"
    } else {
        ""
    };
    cell(&format!(
        "{}: {} (expected {}){none}",
        finding.what,
        found(finding.found.as_ref()),
        finding.expected
    ))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('\n', " ")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Pairs of live and simulated sojourns by class, for each paper, campaign and variant.
type Compared<'a> = BTreeMap<(&'a str, &'a str, &'a str), BTreeMap<String, Vec<(f64, f64)>>>;

/// Live and simulated mean sojourns, for each paper, campaign and variant.
type Agreements<'a> = BTreeMap<(&'a str, &'a str, &'a str), Agreement>;

impl PaperReport {
    /// A line for each live variant: its mean sojourn over that of the simulated plan, at the live scale.
    pub fn agreement(&self) -> Vec<String> {
        let line = |((paper, campaign, variant), agreement): (&(&str, &str, &str), &Agreement)| {
            format!("{paper} {campaign} {variant}: {}", agreement.line())
        };
        self.agreements().iter().map(line).collect()
    }

    fn agreements(&self) -> Agreements<'_> {
        let mut compared = Compared::new();
        for MeasuredRun { run, jobs } in self.runs.iter() {
            if !run.live.as_ref().is_some_and(|live| live.counts) {
                continue;
            }
            let key = (
                run.key.paper.as_str(),
                run.key.campaign.as_str(),
                run.key.variant.as_str(),
            );
            let classes = compared.entry(key).or_default();
            for job in jobs {
                if let Some(simulated) = job.simulated {
                    let pair = (job.ended - job.submitted, simulated);
                    classes.entry(job.class.clone()).or_default().push(pair);
                }
            }
        }
        let agreements = compared.into_iter().filter_map(|(key, classes)| {
            let agreement = Agreement::of_pairs(&classes)?;
            Some((key, agreement))
        });
        agreements.collect()
    }

    /// A table of published, simulated and live numbers of a figure's plot, if there are both kinds of runs.
    pub(super) fn columns(&self, paper: &Paper, id: &str, figure: &Figure) -> Option<String> {
        let both = [Executor::Simulated, Executor::Live];
        if !both
            .iter()
            .all(|executor| self.selection.executors.contains(executor))
        {
            return None;
        }
        let mut rows = Vec::new();
        for series in figure.plot.iter().flat_map(|plot| &plot.series) {
            for point in &series.points {
                let found = both.map(|executor| {
                    middle(
                        Measured {
                            paper,
                            figure,
                            runs: &self.runs,
                            executor,
                        },
                        point.quantity(),
                    )
                });
                if found[1].is_none() {
                    continue;
                }
                let at = point.place().in_words();
                let shown = |value: Option<f64>| value.map_or_else(dash, number);
                rows.push(vec![
                    format!("{} at {at}", series.name),
                    shown(point.published()),
                    shown(found[0]),
                    shown(found[1]),
                ]);
            }
        }
        if rows.is_empty() {
            return None;
        }
        let mut text = String::new();
        let head = format!("{} {id}", paper.name);
        for line in table(&[head.as_str()], &["published", "simulated", "live"], rows).lines() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {line}");
        }
        Some(text)
    }
}

/// The mean over simulated blocks, the median over live ones.
fn middle(of: Measured<'_>, quantity: &Quantity) -> Option<f64> {
    let values = of.values(quantity);
    match of.executor {
        Executor::Live => statistics::median(&values),
        _ if values.is_empty() => None,
        _ => Some(values.iter().sum::<f64>() / values.len() as f64),
    }
}

pub(super) fn name(paper: &str, id: &str, executor: Executor) -> String {
    format!("{paper}-{id}{}.svg", executor.suffix("-"))
}

/// Draws the plot of a figure, if it has data, into `PAPER-ID.svg`, `PAPER-ID-live.svg` and the like, and as pictures.
fn draw(folder: &Path, id: &str, of: Measured<'_>) -> Result<(), PlotError> {
    let Measured {
        paper,
        figure,
        executor,
        ..
    } = of;
    let Some(plot) = &figure.plot else {
        return Ok(());
    };
    let path = folder.join(name(&paper.name, id, executor));
    let title = format!(
        "{} {id}{}: {}",
        paper.name,
        executor.suffix(", "),
        figure.title
    );
    match plot.kind {
        PlotKind::Ecdf => {
            let series: Vec<Steps> = plot
                .series
                .iter()
                .filter_map(|series| distribution(of, series))
                .collect();
            if series.is_empty() {
                return Ok(());
            }
            differences(&path, &title, &plot.x, &series)?;
        }
        PlotKind::Curves => {
            let curve = |series: &Series| Curve {
                name: series.name.clone(),
                points: series
                    .points
                    .iter()
                    .filter_map(|point| Some((at(point.place())?, mark(of, point)?)))
                    .collect(),
            };
            let all: Vec<Curve> = plot
                .series
                .iter()
                .map(curve)
                .filter(|curve| !curve.points.is_empty())
                .collect();
            if all.is_empty() {
                return Ok(());
            }
            curves(&path, &title, (&plot.x, &plot.y), &all)?;
        }
        PlotKind::Bars | PlotKind::Table => {
            if !grouped_bars(of, &path, &title, plot)? {
                return Ok(());
            }
        }
    }
    pictures(&path)
}

fn mark(of: Measured<'_>, point: &Point) -> Option<Mark> {
    let values = of.values(point.quantity());
    let found = match of.executor {
        Executor::Live => Estimate::of_median(&values, 0.95)?,
        _ if of.paper.is_deterministic(of.figure, &[point.quantity()]) => {
            Estimate::exact(*values.first()?)?
        }
        _ => Estimate::of(&values, 0.95)?,
    };
    Some(Mark {
        middle: found.mean,
        low: found.low,
        high: found.high,
        published: point.published(),
    })
}

fn distribution(of: Measured<'_>, series: &Series) -> Option<Steps> {
    let jobs = series.jobs.as_ref()?;
    let values: Vec<f64> = of
        .blocks(jobs)
        .filter_map(|block| block.each(jobs))
        .flatten()
        .collect();
    (!values.is_empty()).then(|| Steps {
        name: series.name.clone(),
        points: ecdf(values.into_iter()),
    })
}

/// Returns whether the plot has data.
fn grouped_bars(
    of: Measured<'_>,
    path: &Path,
    title: &str,
    plot: &Plot,
) -> Result<bool, PlotError> {
    let mut groups: Vec<(String, Vec<Option<Mark>>)> = Vec::new();
    for (number, series) in plot.series.iter().enumerate() {
        for point in &series.points {
            let name = point.place().in_words();
            let known = groups.iter().position(|(group, _)| *group == name);
            let at = known.unwrap_or_else(|| {
                groups.push((name, vec![None; plot.series.len()]));
                groups.len() - 1
            });
            groups[at].1[number] = mark(of, point);
        }
    }
    if groups
        .iter()
        .all(|(_, marks)| marks.iter().all(Option::is_none))
    {
        return Ok(false);
    }
    let names: Vec<&str> = plot
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    bars(path, title, (&plot.x, &plot.y), &names, &groups)?;
    Ok(true)
}

fn at(place: &Label) -> Option<f64> {
    match place {
        Label::At(at) => Some(*at),
        Label::Named(name) => name.parse().ok(),
    }
}
