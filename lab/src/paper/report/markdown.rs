//! The page of the docs: one table for each paper.
//!
//! Owns its form. It is written by a command and never by hand.

use std::fmt::Write;

use super::PaperReport;
use super::text::found;
use crate::paper::registry::Paper;
use crate::paper::verdict::{Finding, FindingKind, Judgement, Ruling};

impl PaperReport {
    /// The page, made by the command that is named in it.
    pub fn markdown(&self, command: &str) -> String {
        let mut text = format!(
            "# What the papers found, found again\n\nThis page is written by `{command}`, never by hand. Every figure and table with \
             results of five papers makes claims that can fail, and each of them has a verdict of its own; that of a figure is the worst of them. Ratios and differences are taken within blocks of equal jobs, with 95 % \
             intervals over blocks that differ in their seed; several claims of one figure are corrected for their number (Holm). \
             *Holds*: every direction does, and every published number is met within its margin. *Direction holds*: a number is not. \
             Where nothing depends on the seed, one run is made (n = 1). What was calibrated with a published number judges nothing. Rows that say *live* are of clusters of one machine, at the \
             scale of the figure's entry. [figures.md](figures.md) says how the command \
             works, `lab/papers` has every entry.\n\n{}.\n",
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
    let mut not_measured: Vec<String> = Vec::new();
    for judgement in judged {
        let id = format!("{}{}", judgement.figure, judgement.executor.suffix(", "));
        let (title, because) =
            (cell(&judgement.title), cell(judgement.because.as_deref().unwrap_or_default()));
        let _ =
            writeln!(text, "| **{id}** | **{title}** | **{}** | {because} |", judgement.verdict.in_words());
        for claim in &judgement.claims {
            let says = cell(&format!("{} ({})", claim.says, claim.from));
            match claim.verdict {
                Some(verdict) => {
                    let lines: Vec<String> =
                        claim.findings.iter().map(|finding| cell(&line(finding))).collect();
                    let _ =
                        writeln!(text, "| {id} | {says} | {} | {} |", verdict.in_words(), lines.join("<br>"));
                }
                None => {
                    let why = claim.not_measured.as_deref().unwrap_or_default();
                    not_measured.push(format!("- {id}: {says}: {}", cell(why)));
                }
            }
        }
    }
    if !not_measured.is_empty() {
        let _ = write!(text, "\nNot measured:\n\n{}\n", not_measured.join("\n"));
    }
}

fn line(finding: &Finding) -> String {
    let mark = match (finding.kind, finding.outcome) {
        (FindingKind::Given, _) => "given: ",
        (_, Ruling::Holds) => "",
        (_, Ruling::NotResolved) => "**not resolved:** ",
        (_, Ruling::DoesNotHold) => "**no:** ",
    };
    format!("{mark}{}: {} (expected {})", finding.what, found(finding.found.as_ref()), finding.expected)
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ").replace('<', "&lt;").replace('>', "&gt;")
}
