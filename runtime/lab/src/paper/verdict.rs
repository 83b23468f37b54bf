//! What is said of a figure.
//!
//! Owns the five verdicts and how expectations lead to them. Does not own the numbers (`measure`,
//! `inference`).

use napreduce_core::listed;
use serde::Serialize;

use super::inference::{BLOCKS_MAX, BLOCKS_MIN, Estimate, LEVEL, blocks_needed, holm, spearman};
use super::measure::{Block, Measured};
use super::registry::{Expectation, Figure, Paper};
use super::rows::{Executor, Runs};

/// Ours over what was published, where an entry says nothing else.
const WITHIN: [f64; 2] = [0.8, 1.25];

listed! {
    /// What is said of a figure.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Verdict {
        /// All directions hold, and every magnitude is within its margin.
        Holds = "holds",
        /// All directions hold, a magnitude does not.
        DirectionHolds = "direction holds",
        /// An interval has both sides; more blocks may help.
        NotResolved = "not resolved",
        /// An interval lies on the wrong side.
        DoesNotHold = "does not hold",
        /// Input or set-up is not public, or a feature is missing.
        CannotBeTested = "cannot be tested",
    }
}

/// What is said of one expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    pub what: String,
    /// `direction`, `magnitude`, or `given`: it was calibrated with and judges nothing.
    pub kind: FindingKind,
    /// What must be so, as `> 1.02` or `0.8 to 1.25 of 1.19`.
    pub expected: String,
    pub found: Option<Estimate>,
    /// Of a direction: how probable such a distance from its bound is by chance, corrected for the
    /// number of expectations.
    pub probability: Option<f64>,
    pub outcome: Ruling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    Direction,
    Magnitude,
    Given,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    Holds,
    NotResolved,
    DoesNotHold,
}

/// A figure with all that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judgement {
    pub paper: String,
    pub figure: String,
    pub title: String,
    pub claim: String,
    /// What made the runs.
    #[serde(skip_serializing_if = "Executor::is_simulated")]
    pub executor: Executor,
    pub verdict: Verdict,
    /// Why it cannot be tested, what stands in for its input, or why a magnitude differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    pub findings: Vec<Finding>,
}

/// Judges a figure by what an executor measured, at a level of error such as 0.05. At the live scale, by what
/// can be measured live.
pub fn judge(
    (paper, id, figure): (&Paper, &str, &Figure),
    runs: &Runs,
    executor: Executor,
    level: f64,
) -> Judgement {
    let of = Measured { paper, figure, runs, executor };
    let expect: Vec<&Expectation> = figure
        .expect
        .iter()
        .filter(|expected| executor.is_simulated() || paper.is_live(figure, expected))
        .collect();
    let estimates: Vec<Option<Estimate>> =
        expect.iter().map(|expected| estimate(of, expected, 1.0 - level)).collect();
    let mut probabilities = Vec::new();
    for (expected, found) in expect.iter().zip(&estimates) {
        let probability = |bound: &f64| found.as_ref().map_or(1.0, |found| found.probability(*bound));
        probabilities.extend(expected.above.iter().chain(&expected.below).map(probability));
    }
    let mut corrected = holm(&probabilities).into_iter();
    let claims = probabilities.len();
    let findings: Vec<Finding> = expect
        .iter()
        .zip(estimates)
        .map(|(&expected, found)| match expected.published {
            Some(published) => magnitude(expected, published, found),
            None => direction(expected, found, &mut corrected, level),
        })
        .collect();
    let few = match executor {
        Executor::Live => too_few(&findings, claims, level),
        _ => None,
    };
    let live = figure.because_live.as_ref().filter(|_| !executor.is_simulated());
    let known = figure.cannot.as_ref().or(figure.stand_in.as_ref()).or(live).or(figure.because.as_ref());
    let verdict = verdict_of(figure, &findings);
    let open = to_settle(&expect, &findings, claims, level).filter(|_| verdict == Verdict::NotResolved);
    let because = few.or_else(|| {
        let said: Vec<String> = known.cloned().into_iter().chain(open).collect();
        (!said.is_empty()).then(|| said.join("; "))
    });
    Judgement {
        paper: paper.name.clone(),
        figure: id.to_owned(),
        title: figure.title.clone(),
        claim: figure.claim.clone(),
        executor,
        verdict,
        because,
        findings,
    }
}

/// How many blocks a figure needs live to be sure of all its directions, each on one side in every block.
pub(super) fn live_blocks(paper: &Paper, figure: &Figure) -> u32 {
    let live = figure.expect.iter().filter(|expected| paper.is_live(figure, expected));
    let claims = live.flat_map(|expected| expected.above.iter().chain(&expected.below)).count();
    blocks_needed(claims, LEVEL) as u32
}

/// So many claims at once are never sure with so few blocks, whatever is measured.
fn too_few(findings: &[Finding], claims: usize, level: f64) -> Option<String> {
    let directions = findings.iter().filter(|found| found.kind == FindingKind::Direction);
    let blocks = directions.filter_map(|finding| finding.found.as_ref()).map(|found| found.blocks).min()?;
    let needed = blocks_needed(claims, level);
    (blocks < needed).then(|| {
        format!("{claims} directions at once need {needed} live blocks to be sure of, and there are {blocks}: add some with --continue")
    })
}

/// How many blocks would settle the directions that are open.
fn to_settle(expect: &[&Expectation], findings: &[Finding], claims: usize, level: f64) -> Option<String> {
    let is_open =
        |finding: &Finding| (finding.kind, finding.outcome) == (FindingKind::Direction, Ruling::NotResolved);
    let open = expect.iter().zip(findings).filter(|(_, finding)| is_open(finding));
    let needed = open.flat_map(|(expected, finding)| {
        let bounds = expected.above.iter().chain(&expected.below);
        bounds.filter_map(|bound| {
            let found = finding.found.as_ref().filter(|found| found.blocks >= BLOCKS_MIN)?;
            Some(found.blocks_to_settle(*bound, claims, level).unwrap_or(usize::MAX))
        })
    });
    Some(match needed.max()? {
        blocks @ ..=BLOCKS_MAX => {
            format!(
                "about {blocks} blocks in all would settle it, if those to come fall as these did: add some with --continue"
            )
        }
        _ => format!("{BLOCKS_MAX} blocks would not settle it, if those to come fall as these did"),
    })
}

fn verdict_of(figure: &Figure, findings: &[Finding]) -> Verdict {
    if figure.cannot.is_some() {
        return Verdict::CannotBeTested;
    }
    let of = |kind, outcome| findings.iter().any(|found| found.kind == kind && found.outcome == outcome);
    let directed = findings.iter().any(|found| found.kind == FindingKind::Direction);
    if of(FindingKind::Direction, Ruling::DoesNotHold) {
        return Verdict::DoesNotHold;
    }
    if of(FindingKind::Direction, Ruling::NotResolved) || of(FindingKind::Magnitude, Ruling::NotResolved) {
        return Verdict::NotResolved;
    }
    match (
        of(FindingKind::Magnitude, Ruling::DoesNotHold),
        of(FindingKind::Magnitude, Ruling::Holds) || directed,
    ) {
        (true, _) if directed => Verdict::DirectionHolds,
        (true, _) => Verdict::DoesNotHold,
        // All was calibrated with.
        (false, false) => Verdict::NotResolved,
        (false, true) if figure.stand_in.is_some() => Verdict::DirectionHolds,
        (false, true) => Verdict::Holds,
    }
}

/// Of each block of which all runs are there.
fn estimate(of: Measured<'_>, expected: &Expectation, confidence: f64) -> Option<Estimate> {
    let blocks = of.blocks(expected.quantities().first()?);
    let values: Vec<f64> = blocks.filter_map(|block| value(expected, block)).collect();
    match expected.ratio {
        _ if of.executor == Executor::Live => Estimate::of_median(&values, confidence),
        Some(_) => Estimate::of_ratios(&values, confidence),
        None => Estimate::of(&values, confidence),
    }
}

/// What an expectation is about, in one block.
fn value(expected: &Expectation, block: Block<'_>) -> Option<f64> {
    if let Some([over, under]) = &expected.ratio {
        return Some(block.value(over)? / block.value(under)?);
    }
    if let Some([first, second]) = &expected.difference {
        return Some(block.value(first)? - block.value(second)?);
    }
    if let Some(ranked) = &expected.rank {
        let values: Vec<f64> = ranked.iter().map(|quantity| block.value(quantity)).collect::<Option<_>>()?;
        // Where all are the same there is no trend.
        return Some(spearman(&values).unwrap_or(0.0));
    }
    block.value(expected.value.as_ref()?)
}

fn direction(
    expected: &Expectation,
    found: Option<Estimate>,
    probabilities: &mut impl Iterator<Item = f64>,
    level: f64,
) -> Finding {
    let (mut outcome, mut greatest) = (Ruling::Holds, 0.0_f64);
    for (bound, above) in [(expected.above, true), (expected.below, false)] {
        let Some(bound) = bound else { continue };
        let probability = probabilities.next().unwrap_or(1.0);
        greatest = greatest.max(probability);
        let right = found.as_ref().is_some_and(|found| (found.mean > bound) == above && found.mean != bound);
        outcome = match (probability <= level, right, outcome) {
            (true, false, _) | (_, _, Ruling::DoesNotHold) => Ruling::DoesNotHold,
            (false, ..) => Ruling::NotResolved,
            (true, true, so_far) => so_far,
        };
    }
    let words = match (expected.above, expected.below) {
        (Some(above), Some(below)) => format!("{above} to {below}"),
        (Some(above), None) => format!("> {above}"),
        (None, Some(below)) => format!("< {below}"),
        (None, None) => String::new(),
    };
    Finding {
        what: expected.what.clone(),
        kind: FindingKind::Direction,
        expected: words,
        found,
        probability: Some(greatest),
        outcome,
    }
}

fn magnitude(expected: &Expectation, published: f64, found: Option<Estimate>) -> Finding {
    let enough = found.as_ref().filter(|found| found.blocks >= BLOCKS_MIN);
    let (words, near) = match expected.within_absolute {
        Some(most) => {
            let near = enough.map(|found| (found.mean - published).abs() <= most);
            (format!("{published} within {most}"), near)
        }
        None => {
            let [least, most] = expected.within.unwrap_or(WITHIN);
            let near = enough.map(|found| (least..=most).contains(&(found.mean / published)));
            (format!("{least} to {most} of {published}"), near)
        }
    };
    let outcome = match near {
        Some(true) => Ruling::Holds,
        Some(false) => Ruling::DoesNotHold,
        None => Ruling::NotResolved,
    };
    let kind = if expected.given { FindingKind::Given } else { FindingKind::Magnitude };
    Finding { what: expected.what.clone(), kind, expected: words, found, probability: None, outcome }
}
