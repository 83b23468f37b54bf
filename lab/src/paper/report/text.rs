//! The report for a terminal.
//!
//! Owns how verdicts and findings are said in lines of text. Does not own the verdicts.

use std::fmt::Write;

use super::PaperReport;
use crate::paper::inference::Estimate;
use crate::paper::rows::Executor;
use crate::paper::verdict::{Finding, FindingKind, Judgement, Ruling, Verdict};

impl PaperReport {
    /// All figures with what was found, and how many there are of each verdict.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for judgement in &self.judgements {
            add(&mut text, judgement);
            let entry = self.entry(judgement).filter(|_| judgement.executor == Executor::Live);
            let columns = entry.and_then(|(paper, figure)| self.columns(paper, &judgement.figure, figure));
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
        let _ = writeln!(text, "{}", self.counts());
        text
    }

    /// How many figures and claims there are of each verdict.
    pub fn counts(&self) -> String {
        let claims = || self.judgements.iter().flat_map(|judgement| &judgement.claims);
        let figures = of_each_verdict("figure", self.judgements.iter().map(|judgement| judgement.verdict));
        let judged = of_each_verdict("claim", claims().filter_map(|claim| claim.verdict));
        let not_measured = claims().filter(|claim| claim.verdict.is_none()).count();
        let rest = if not_measured > 0 { format!(", {not_measured} not measured") } else { String::new() };
        format!("{figures}; {judged}{rest}")
    }
}

/// So many of a thing, and how many of them have each verdict.
fn of_each_verdict(thing: &str, verdicts: impl Iterator<Item = Verdict>) -> String {
    let verdicts: Vec<Verdict> = verdicts.collect();
    let of = |verdict| verdicts.iter().filter(|other| **other == verdict).count();
    let counts = Verdict::ALL.map(|verdict| (verdict, of(verdict)));
    let said = counts.iter().filter(|(_, count)| *count > 0);
    let said: Vec<String> = said.map(|(verdict, count)| format!("{count} {}", verdict.in_words())).collect();
    format!("{}: {}", crate::words::counted(verdicts.len(), thing), said.join(", "))
}

fn add(text: &mut String, judgement: &Judgement) {
    let Judgement { paper, figure, title, executor, verdict, because, claims } = judgement;
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
                writeln!(text, "  {:<16} {from}: {}", "not measured", why.as_deref().unwrap_or_default())
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
        (_, Ruling::DoesNotHold) => "NO",
    };
    format!(
        "{outcome:<5} {}: {} (expected {})",
        finding.what,
        found(finding.found.as_ref()),
        finding.expected
    )
}

/// An estimate in few characters.
pub(super) fn found(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "nothing was measured".to_owned(),
        Some(found) if found.is_exact() => format!("{}, n = 1", number(found.mean)),
        Some(found) if found.low == found.high => format!("{}, n = {}", number(found.mean), found.blocks),
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

/// A number with as many digits as mean something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
