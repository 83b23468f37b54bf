//! The report as one HTML page that needs nothing else.
//!
//! Owns its form. Figures stand in it as they were drawn.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::PaperReport;
use super::figures::name;
use super::text::found;
use crate::paper::verdict::{Finding, FindingKind, Judgement, Ruling, Verdict};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b1f23;background:#fff}\
h1{font-size:1.6rem}h2{margin-top:2.5rem;border-bottom:1px solid #d0d7de}h3{margin-bottom:.2rem}\
table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{border-bottom:1px solid #d8dee4;padding:.25rem .6rem;text-align:left;vertical-align:top}\
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}.v{font-weight:600;border-radius:.3rem;padding:.05rem .45rem;font-size:.85rem}\
.holds{background:#dafbe1;color:#116329}.direction-holds{background:#eaf5d3;color:#44530b}.not-resolved{background:#fff8c5;color:#7d4e00}\
.does-not-hold{background:#ffebe9;color:#a40e26}.cannot-be-tested{background:#eaeef2;color:#57606a}svg{max-width:100%;height:auto}\
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}svg{background:#fff}}";

impl PaperReport {
    /// The page; figures are read from their folder.
    pub(super) fn page(&self, figures: &Path) -> String {
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <title>Figures found again</title><style>{STYLE}</style></head><body>\n<h1>Figures found again</h1>\n<p>{}.</p>\n",
            escape(&self.counts())
        );
        if self.selection.looks > 1 {
            page.push_str(
                "<p>Blocks were added after verdicts had been seen, so intervals are of 97.5 %.</p>\n",
            );
        }
        for paper in &self.papers {
            let mut judged =
                self.judgements.iter().filter(|judgement| judgement.paper == paper.name).peekable();
            if judged.peek().is_none() {
                continue;
            }
            // Writing to a string cannot fail.
            let _ = writeln!(page, "<h2>{}</h2>", escape(&paper.title));
            if !paper.calibration.is_empty() {
                page.push_str("<table><tr><th>calibrated</th><th>with</th></tr>");
                for calibration in &paper.calibration {
                    let (what, with) = (escape(&calibration.what), escape(&calibration.with));
                    let _ = write!(page, "<tr><td>{what}</td><td>{with}</td></tr>");
                }
                page.push_str("</table>\n");
            }
            for judgement in judged {
                add(&mut page, judgement, figures);
            }
        }
        let agreement = self.agreement();
        if !agreement.is_empty() {
            page.push_str("<h2>Live over simulated, at the live scale</h2>\n<ul>");
            agreement.iter().for_each(|line| {
                let _ = write!(page, "<li>{}</li>", escape(line));
            });
            page.push_str("</ul>\n");
        }
        page.push_str("</body></html>\n");
        page
    }
}

fn add(page: &mut String, judgement: &Judgement, figures: &Path) {
    let Judgement { paper, figure, title, executor, verdict, because, claims } = judgement;
    let scale = executor.suffix(", ");
    let _ = writeln!(
        page,
        "<h3 id=\"{paper}-{figure}-{}\">{paper} {figure}{scale}: {} {}</h3>",
        executor.in_words(),
        escape(title),
        badge(*verdict)
    );
    if let Some(because) = because {
        let _ = writeln!(page, "<p><em>{}</em></p>", escape(because));
    }
    page.push_str("<table><tr><th></th><th>claim and expectations</th><th>found</th><th>expected</th></tr>");
    for claim in claims {
        let verdict = claim.verdict.map_or_else(|| "not measured".to_owned(), badge);
        let (says, from) = (escape(&claim.says), escape(&claim.from));
        let why = claim.not_measured.as_ref().map(|why| format!(": {}", escape(why))).unwrap_or_default();
        let _ = write!(
            page,
            "<tr><td>{verdict}</td><td colspan=\"3\"><strong>{says}</strong> ({from}){why}</td></tr>"
        );
        claim.findings.iter().for_each(|finding| row(page, finding));
    }
    page.push_str("</table>\n");
    // A figure without a plot has none.
    if let Ok(svg) = fs::read_to_string(figures.join(name(paper, figure, *executor))) {
        let from = svg.find("<svg").unwrap_or(0);
        page.push_str(&svg[from..]);
        page.push('\n');
    }
}

fn badge(verdict: Verdict) -> String {
    let words = verdict.in_words();
    format!("<span class=\"v {}\">{words}</span>", words.replace(' ', "-"))
}

fn row(page: &mut String, finding: &Finding) {
    let (class, word) = match (finding.kind, finding.outcome) {
        (FindingKind::Given, _) => ("cannot-be-tested", "given"),
        (_, Ruling::Holds) => ("holds", "yes"),
        (_, Ruling::NotResolved) => ("not-resolved", "not resolved"),
        (_, Ruling::DoesNotHold) => ("does-not-hold", "no"),
    };
    let (what, expected) = (escape(&finding.what), escape(&finding.expected));
    let found = escape(&found(finding.found.as_ref()));
    let _ = write!(
        page,
        "<tr><td><span class=\"v {class}\">{word}</span></td><td>{what}</td><td class=\"n\">{found}</td><td class=\"n\">{expected}</td></tr>"
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
