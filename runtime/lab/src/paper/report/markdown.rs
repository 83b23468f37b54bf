//! The page of the docs: one table for each paper.
//!
//! Owns its form. It is written by a command and never by hand.

use std::fmt::Write;

use super::PaperReport;
use super::text::found;
use crate::paper::registry::Paper;
use crate::paper::verdict::{FindingKind, Judgement, Ruling, Verdict};

impl PaperReport {
    /// The page, made by the command that is named in it.
    pub fn markdown(&self, command: &str) -> String {
        let mut text = format!(
            "# What the papers found, found again\n\nThis page is written by `{command}`, never by hand. Every figure and table with \
             results of five papers is a claim that can fail: ratios and differences are taken within blocks of equal jobs, with 95 % \
             intervals over blocks that differ in their seed; several claims of one figure are corrected for their number (Holm). \
             *Holds*: every direction does, and every published number is met within its margin. *Direction holds*: a number is not. \
             What was calibrated with a published number judges nothing. Rows that say *live* are of clusters of one machine, at the \
             scale of the figure's entry. [figures.md](figures.md) says how the command \
             works, `runtime/lab/papers` has every entry.\n\n{}.\n",
            self.counts()
        );
        for paper in &self.papers {
            let mut judged: Vec<&Judgement> =
                self.judgements.iter().filter(|judgement| judgement.paper == paper.name).collect();
            let ids = paper.ids();
            judged.sort_by_key(|judgement| ids.iter().position(|id| **id == judgement.figure));
            if !judged.is_empty() {
                add(&mut text, paper, &judged);
            }
        }
        let agreement = self.agreement();
        if !agreement.is_empty() {
            text.push_str("\n## Live over simulated, at the live scale\n\n");
            agreement.iter().for_each(|line| text.push_str(&format!("- {}\n", cell(line))));
        }
        text
    }
}

fn add(text: &mut String, paper: &Paper, judged: &[&Judgement]) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## {} (`{}`)\n\n", paper.title, paper.name);
    if !paper.calibration.is_empty() {
        let _ = write!(text, "| calibrated | with |\n|---|---|\n");
        for calibration in &paper.calibration {
            let _ = writeln!(text, "| {} | {} |", cell(&calibration.what), cell(&calibration.with));
        }
        text.push('\n');
    }
    let _ = write!(text, "| figure | claim | verdict | found |\n|---|---|---|---|\n");
    for judgement in judged {
        let verdict = judgement.verdict.in_words();
        let mut lines: Vec<String> = Vec::new();
        if judgement.verdict != Verdict::CannotBeTested {
            lines.extend(judgement.findings.iter().map(|finding| {
                let mark = match (finding.kind, finding.outcome) {
                    (FindingKind::Given, _) => "given: ",
                    (_, Ruling::Holds) => "",
                    (_, Ruling::NotResolved) => "**not resolved:** ",
                    (_, Ruling::DoesNotHold) => "**no:** ",
                };
                let (what, expected) = (&finding.what, &finding.expected);
                format!("{mark}{what}: {} (expected {expected})", found(finding.found.as_ref()))
            }));
        }
        lines.extend(judgement.because.clone());
        let lines: Vec<String> = lines.iter().map(|line| cell(line)).collect();
        let (id, claim) = (&judgement.figure, cell(&judgement.claim));
        let _ = writeln!(
            text,
            "| {id}{}: {} | {claim} | {verdict} | {} |",
            judgement.executor.suffix(", "),
            cell(&judgement.title),
            lines.join("<br>")
        );
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ").replace('<', "&lt;").replace('>', "&gt;")
}
