//! Verdicts on the claims of a figure.

use napreduce_engine::listed;
use serde::Serialize;

use super::inference::{BLOCKS_MAX, BLOCKS_MIN, Estimate, LEVEL, blocks_needed, holm, spearman};
use super::measure::{Block, Measured};
use super::quantity::Quantity;
use super::registry::{Claim, Expectation, Figure, Paper};
use super::rows::Executor;

listed! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Verdict {
        /// All directions hold, and every magnitude is within its margin.
        Holds = "holds",
        /// All directions hold, a magnitude does not.
        DirectionHolds = "direction holds",
        /// All directions hold with a stand-in for an input that is not public.
        Supports = "supports",
        /// An interval is on both sides of a bound; more blocks may help.
        NotResolved = "not resolved",
        /// The whole interval is so near to no effect that more blocks would not help.
        NoEffect = "no effect",
        /// An interval is on the wrong side, with a stand-in for an input that is not public: that refutes no paper.
        DoesNotSupport = "does not support",
        /// An interval is on the wrong side.
        DoesNotHold = "does not hold",
        /// The input or the set-up is not public, or a feature is missing.
        CannotBeTested = "cannot be tested",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    pub what: String,
    pub kind: FindingKind,
    /// Such as `> 1.02`, or `1.19, from 1.1 to 1.3`.
    pub expected: String,
    pub found: Option<Estimate>,
    /// For a direction: the probability of such a distance from its bound by chance, corrected for the number of
    /// expectations.
    pub probability: Option<f64>,
    pub outcome: Ruling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    Direction,
    Magnitude,
    /// A number of the calibration, which is not judged.
    Given,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    Holds,
    NotResolved,
    /// No effect above `EFFECT_MIN`, where one was expected.
    NoEffect,
    DoesNotHold,
}

/// The least effect that matters, as a share.
const EFFECT_MIN: f64 = 0.001;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct JudgedClaim {
    pub says: String,
    /// The section, figure or table of the paper.
    pub from: String,
    /// `None` if it was not measured.
    pub verdict: Option<Verdict>,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judgement {
    pub paper: String,
    pub figure: String,
    pub title: String,
    #[serde(skip_serializing_if = "Executor::is_simulated")]
    pub executor: Executor,
    /// The worst of its claims.
    pub verdict: Verdict,
    /// Why it cannot be tested, the stand-in for its input, or why a claim does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    pub claims: Vec<JudgedClaim>,
}

impl Judgement {
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.claims.iter().flat_map(|claim| &claim.findings)
    }
}

/// Judges each claim of a figure by the runs of an executor, at a level of error such as 0.05. Live runs judge the
/// expectations that clusters can measure.
pub(super) fn judge(id: &str, of: Measured<'_>, level: f64) -> Judgement {
    let Measured {
        paper,
        figure,
        executor,
        ..
    } = of;
    let mut claims = Vec::new();
    let mut open = Vec::new();
    for claim in &figure.claims {
        let expect: Vec<&Expectation> = claim
            .expect
            .iter()
            .filter(|expected| executor.is_simulated() || paper.is_live(figure, expected))
            .collect();
        if executor.is_simulated() || !expect.is_empty() {
            let judged = judge_claim(of, claim, &expect, level);
            if judged.verdict == Some(Verdict::NotResolved) {
                open.push(to_settle(executor, &expect, &judged.findings, level));
            }
            claims.push(judged);
        }
    }
    let worst = claims.iter().filter_map(|claim| claim.verdict).max();
    let verdict = match figure.cannot {
        Some(_) => Verdict::CannotBeTested,
        // Its runs were not made, or not finished.
        None => worst.unwrap_or(Verdict::NotResolved),
    };
    let live = figure
        .because_live
        .as_ref()
        .filter(|_| !executor.is_simulated());
    let why = live
        .or(figure.because.as_ref())
        .filter(|_| verdict != Verdict::Holds);
    let known = figure.cannot.as_ref().or(figure.stand_in.as_ref());
    let open = open.into_iter().max().flatten().map(Needed::in_words);
    let reasons: Vec<String> = known.into_iter().chain(why).cloned().chain(open).collect();
    Judgement {
        paper: paper.name.clone(),
        figure: id.to_owned(),
        title: figure.title.clone(),
        executor,
        verdict,
        because: (!reasons.is_empty()).then(|| reasons.join("; ")),
        claims,
    }
}

/// Several directions of one claim are corrected for their number.
fn judge_claim(
    of: Measured<'_>,
    claim: &Claim,
    expect: &[&Expectation],
    level: f64,
) -> JudgedClaim {
    let estimates: Vec<Option<Estimate>> = expect
        .iter()
        .map(|expected| estimate(of, expected, 1.0 - level))
        .collect();
    let mut probabilities = Vec::new();
    for (expected, found) in expect.iter().zip(&estimates) {
        let probability = |bound: &f64| {
            found
                .as_ref()
                .map_or(1.0, |found| found.probability(*bound))
        };
        probabilities.extend(
            expected
                .above
                .iter()
                .chain(&expected.below)
                .map(probability),
        );
    }
    let mut corrected = holm(&probabilities).into_iter();
    let findings: Vec<Finding> = expect
        .iter()
        .zip(estimates)
        .map(|(&expected, found)| match expected.published {
            Some(published) => magnitude(expected, published, found),
            None => {
                let finding = direction(expected, found, &mut corrected, level);
                unless_without_effect(of, expected, finding)
            }
        })
        .collect();
    let not_measured = match &claim.not_measured {
        Some(why) => Some(why.clone()),
        None if findings
            .iter()
            .all(|finding| finding.kind == FindingKind::Given) =>
        {
            Some("used for calibration".to_owned())
        }
        None if findings.iter().all(|finding| finding.found.is_none()) => {
            Some("its runs are missing".to_owned())
        }
        None => None,
    };
    JudgedClaim {
        says: claim.says.clone(),
        from: claim.from.clone(),
        verdict: not_measured
            .is_none()
            .then(|| verdict_of(of.figure, claim, &findings)),
        not_measured,
        findings,
    }
}

/// The least number of live blocks that can settle every claim of a figure.
pub(super) fn live_blocks(paper: &Paper, figure: &Figure) -> u32 {
    let directions = figure.claims.iter().map(|claim| {
        let live = claim
            .expect
            .iter()
            .filter(|expected| paper.is_live(figure, expected));
        live.flat_map(|expected| expected.above.iter().chain(&expected.below))
            .count()
    });
    blocks_needed(directions.max().unwrap_or(0), LEVEL) as u32
}

/// The blocks that would settle an open claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Needed {
    /// If further blocks are similar.
    About(usize),
    /// Fewer blocks cannot settle this many directions of one claim.
    AtLeast {
        blocks: usize,
        directions: usize,
        there_are: usize,
    },
}

impl Needed {
    fn in_words(self) -> String {
        match self {
            Needed::About(blocks @ ..=BLOCKS_MAX) => format!(
                "about {blocks} blocks in total would settle it if further blocks are similar; add some with --continue"
            ),
            Needed::About(_) => {
                format!("{BLOCKS_MAX} blocks would not settle it if further blocks are similar")
            }
            Needed::AtLeast {
                blocks,
                directions,
                there_are,
            } => format!(
                "{directions} directions of one claim need at least {blocks} live blocks, but there are {there_are}; add some with --continue"
            ),
        }
    }
}

fn to_settle(
    executor: Executor,
    expect: &[&Expectation],
    findings: &[Finding],
    level: f64,
) -> Option<Needed> {
    let bounds = |expected: &&Expectation| expected.above.into_iter().chain(expected.below);
    let directions = expect.iter().flat_map(bounds).count();
    let directed = findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Direction);
    let there_are = directed
        .filter_map(|finding| finding.found.as_ref())
        .map(|found| found.blocks)
        .min()?;
    let blocks = blocks_needed(directions, level);
    if executor == Executor::Live && there_are < blocks {
        return Some(Needed::AtLeast {
            blocks,
            directions,
            there_are,
        });
    }
    let is_open = |finding: &Finding| {
        (finding.kind, finding.outcome) == (FindingKind::Direction, Ruling::NotResolved)
    };
    let open = expect
        .iter()
        .zip(findings)
        .filter(|(_, finding)| is_open(finding));
    let needed = open.flat_map(|(expected, finding)| {
        bounds(expected).filter_map(|bound| {
            let found = finding
                .found
                .as_ref()
                .filter(|found| found.blocks >= BLOCKS_MIN)?;
            Some(
                found
                    .blocks_to_settle(bound, directions, level)
                    .unwrap_or(usize::MAX),
            )
        })
    });
    needed.max().map(Needed::About)
}

fn verdict_of(figure: &Figure, claim: &Claim, findings: &[Finding]) -> Verdict {
    let plain = verdict_of_findings(findings);
    if figure.stand_in.is_none() && claim.stand_in.is_none() {
        return plain;
    }
    match plain {
        Verdict::Holds | Verdict::DirectionHolds => Verdict::Supports,
        Verdict::DoesNotHold | Verdict::NoEffect => Verdict::DoesNotSupport,
        other => other,
    }
}

fn verdict_of_findings(findings: &[Finding]) -> Verdict {
    let of = |kind, outcome| {
        findings
            .iter()
            .any(|found| found.kind == kind && found.outcome == outcome)
    };
    let directed = findings
        .iter()
        .any(|found| found.kind == FindingKind::Direction);
    if of(FindingKind::Direction, Ruling::DoesNotHold) {
        return Verdict::DoesNotHold;
    }
    if of(FindingKind::Direction, Ruling::NoEffect) {
        return Verdict::NoEffect;
    }
    if of(FindingKind::Direction, Ruling::NotResolved)
        || of(FindingKind::Magnitude, Ruling::NotResolved)
    {
        return Verdict::NotResolved;
    }
    match (of(FindingKind::Magnitude, Ruling::DoesNotHold), directed) {
        (true, false) => Verdict::DoesNotHold,
        (true, true) => Verdict::DirectionHolds,
        (false, _) => Verdict::Holds,
    }
}

/// Over the blocks whose runs are complete.
fn estimate(of: Measured<'_>, expected: &Expectation, confidence: f64) -> Option<Estimate> {
    let blocks = of.blocks(expected.quantities().first()?);
    let values: Vec<f64> = blocks.filter_map(|block| value(expected, block)).collect();
    if of.executor == Executor::Live {
        return Estimate::of_median(&values, confidence);
    }
    if of.paper.is_deterministic(of.figure, &expected.quantities()) {
        return Estimate::exact(*values.first()?);
    }
    // A ratio of 0 has no logarithm.
    let ratio = if expected.is_ratio() {
        Estimate::of_ratios(&values, confidence)
    } else {
        None
    };
    ratio.or_else(|| Estimate::of(&values, confidence))
}

/// The value of an expectation in one block.
fn value(expected: &Expectation, block: Block<'_>) -> Option<f64> {
    let all = |quantities: &[Quantity]| -> Option<Vec<f64>> {
        quantities
            .iter()
            .map(|quantity| block.value(quantity))
            .collect()
    };
    let ratio = |[over, under]: &[Quantity; 2]| Some(block.value(over)? / block.value(under)?);
    let ratios =
        |pairs: &[[Quantity; 2]]| -> Option<Vec<f64>> { pairs.iter().map(ratio).collect() };
    if let Some(pair) = &expected.ratio {
        return ratio(pair);
    }
    if let Some(pairs) = &expected.mean_ratio {
        let ratios = ratios(pairs)?;
        return Some(ratios.iter().sum::<f64>() / ratios.len() as f64);
    }
    if let Some(pairs) = &expected.least_ratio {
        return ratios(pairs)?.into_iter().min_by(f64::total_cmp);
    }
    if let Some([over, under]) = &expected.spread_ratio {
        return Some(spread(&all(over)?) / spread(&all(under)?));
    }
    if let Some([first, second, third]) = &expected.curvature {
        return Some(block.value(third)? - 2.0 * block.value(second)? + block.value(first)?);
    }
    if let Some([first, second]) = &expected.difference {
        return Some(block.value(first)? - block.value(second)?);
    }
    // Equal values have no trend.
    let trend = |values: Vec<f64>| spearman(&values).unwrap_or(0.0);
    if let Some(ranked) = &expected.rank {
        return all(ranked).map(trend);
    }
    if let Some(pairs) = &expected.rank_ratio {
        return ratios(pairs).map(trend);
    }
    block.value(expected.value.as_ref()?)
}

fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most / values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Replaces the outcome of a direction that does not hold, or is not resolved, where an effect was expected and the whole
/// interval is within [`EFFECT_MIN`] of none: more blocks would settle the side, but not that there is an effect.
fn unless_without_effect(of: Measured<'_>, expected: &Expectation, finding: Finding) -> Finding {
    let Some(found) = finding.found.as_ref().filter(|found| found.is_enough()) else {
        return finding;
    };
    if finding.outcome == Ruling::Holds || !expected.claims_any_effect() {
        return finding;
    }
    let least = EFFECT_MIN * effect_scale(of, expected);
    let none = expected.no_effect();
    let is_none = (found.low - none).abs() <= least && (found.high - none).abs() <= least;
    let outcome = if is_none {
        Ruling::NoEffect
    } else {
        finding.outcome
    };
    Finding { outcome, ..finding }
}

/// The number of which an effect is a share: 1 for a ratio; for a difference the larger mean of both quantities.
fn effect_scale(of: Measured<'_>, expected: &Expectation) -> f64 {
    if expected.is_ratio() {
        return 1.0;
    }
    let mut scale = 0.0_f64;
    for quantity in expected.difference.iter().flatten() {
        let values = of.values(quantity);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        scale = scale.max(mean.abs());
    }
    scale
}

fn direction(
    expected: &Expectation,
    found: Option<Estimate>,
    probabilities: &mut impl Iterator<Item = f64>,
    level: f64,
) -> Finding {
    let mut outcome = Ruling::Holds;
    let mut greatest = 0.0_f64;
    for (bound, above) in [(expected.above, true), (expected.below, false)] {
        let Some(bound) = bound else { continue };
        let probability = probabilities.next().unwrap_or(1.0);
        greatest = greatest.max(probability);
        let right = found
            .as_ref()
            .is_some_and(|found| (found.mean > bound) == above && found.mean != bound);
        outcome = match (probability <= level, right, outcome) {
            (true, false, _) | (_, _, Ruling::DoesNotHold) => Ruling::DoesNotHold,
            (false, ..) => Ruling::NotResolved,
            (true, true, so_far) => so_far,
        };
    }
    let digits = |value: f64| (value * 1000.0).round() / 1000.0;
    let mut words = match (expected.above.map(digits), expected.below.map(digits)) {
        (Some(above), Some(below)) => format!("{above} to {below}"),
        (Some(above), None) => format!("> {above}"),
        (None, Some(below)) => format!("< {below}"),
        (None, None) => String::new(),
    };
    if let Some(word) = expected.word {
        words += &format!(", {}", word.in_words());
    }
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
    let enough = found.as_ref().filter(|found| found.is_enough());
    let [least, most] = expected.accepted(published);
    let near = enough.map(|found| (least..=most).contains(&found.mean));
    let digits = |value: f64| (value * 1000.0).round() / 1000.0;
    let words = if least == most {
        published.to_string()
    } else {
        format!("{published}, from {} to {}", digits(least), digits(most))
    };
    let outcome = match near {
        Some(true) => Ruling::Holds,
        Some(false) => Ruling::DoesNotHold,
        None => Ruling::NotResolved,
    };
    let kind = if expected.given {
        FindingKind::Given
    } else {
        FindingKind::Magnitude
    };
    Finding {
        what: expected.what.clone(),
        kind,
        expected: words,
        found,
        probability: None,
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::super::registry::read;
    use super::super::rows::{MeasuredRun, RunKey, RunRow, Runs};
    use super::*;

    const ENTRY: &str = r#"
paper = "A paper"
[campaign.c]
about = "two runs"
workload = "natjam-xl-s"
[campaign.c.variant.a]
scheduler = "fifo"
[campaign.c.variant.b]
scheduler = "fifo"
[figure.1]
title = "One"
# stand-in
[[figure.1.claim]]
says = "a is shorter"
from = "section 1"
expect = [{ what = "a over b", ratio = ["a: makespan", "b: makespan"], below = 1.0 }]
"#;

    /// Returns the verdict on an entry if b takes 100 s, and a this many times as long in each block.
    fn verdict(entry: &str, ratios: &[f64]) -> Verdict {
        let paper = read("some", entry).expect("an entry");
        let mut runs = Runs::default();
        for (block, ratio) in (0..).zip(ratios) {
            for (variant, makespan) in [("a", 100.0 * ratio), ("b", 100.0)] {
                let key = RunKey {
                    paper: "some".to_owned(),
                    campaign: "c".to_owned(),
                    variant: variant.to_owned(),
                    block,
                    executor: Executor::Simulated,
                };
                let run = RunRow {
                    key,
                    seed: 1,
                    configuration: String::new(),
                    makespan,
                    missed: 0,
                    met: 0,
                    unfinished: 0,
                    events: 1,
                    paged_out: 0,
                    local_share: 1.0,
                    live: None,
                };
                runs.add(MeasuredRun {
                    run,
                    jobs: Vec::new(),
                });
            }
        }
        let figure = &paper.figures["1"];
        let measured = Measured {
            paper: &paper,
            figure,
            runs: &runs,
            executor: Executor::Simulated,
        };
        judge("1", measured, LEVEL).verdict
    }

    /// Thirty ratios around a mean.
    fn around(mean: f64, spread: f64) -> Vec<f64> {
        (0..30)
            .map(|block| {
                if block % 2 == 0 {
                    mean - spread
                } else {
                    mean + spread
                }
            })
            .collect()
    }

    #[test]
    fn interval_within_a_thousandth_of_no_effect_is_no_effect() {
        for (mean, spread, expected) in [
            (1.0, 0.0005, Verdict::NoEffect),
            (1.0, 0.0, Verdict::NoEffect),
            (0.9999, 0.001, Verdict::NoEffect),
            // On the wrong side, but not by a thousandth.
            (1.0005, 0.0002, Verdict::NoEffect),
            (1.0, 0.05, Verdict::NotResolved),
            (1.002, 0.0002, Verdict::DoesNotHold),
            (0.9995, 0.0002, Verdict::Holds),
        ] {
            assert_eq!(
                verdict(ENTRY, &around(mean, spread)),
                expected,
                "{mean} +- {spread}"
            );
        }
        assert_eq!(
            verdict(ENTRY, &[1.0; 3]),
            Verdict::NotResolved,
            "three blocks are too few"
        );
    }

    #[test]
    fn difference_is_without_effect_relative_to_its_quantities() {
        let difference = ENTRY
            .replace("ratio = ", "difference = ")
            .replace("below = 1.0", "below = 0.0");
        assert_eq!(
            verdict(&difference, &around(1.0, 0.0005)),
            Verdict::NoEffect,
            "0.05 of 100 s"
        );
        assert_eq!(
            verdict(&difference, &around(1.0, 0.05)),
            Verdict::NotResolved
        );
    }

    #[test]
    fn bound_of_the_paper_is_not_a_claim_of_any_effect() {
        let bound = ENTRY.replace("below = 1.0", "below = 1.02, bound = \"section 1\"");
        assert_eq!(verdict(&bound, &around(1.02, 0.0005)), Verdict::NotResolved);
        assert_eq!(verdict(&bound, &around(1.0, 0.0005)), Verdict::Holds);
    }

    #[test]
    fn stand_in_supports_or_does_not_and_refutes_nothing() {
        let figure = ENTRY.replace("# stand-in", "stand-in = \"another trace\"");
        let claim = ENTRY.replace("says =", "stand-in = \"our grid\"\nsays =");
        for entry in [figure, claim] {
            for (mean, spread, expected) in [
                (0.9, 0.01, Verdict::Supports),
                (1.0, 0.05, Verdict::NotResolved),
                (1.0, 0.0005, Verdict::DoesNotSupport),
                (1.1, 0.01, Verdict::DoesNotSupport),
            ] {
                assert_eq!(
                    verdict(&entry, &around(mean, spread)),
                    expected,
                    "{mean} +- {spread}"
                );
            }
        }
    }
}
