//! Owns the files of a report: the figures as SVG, PDF and PNG, the tables as text, everything as JSON, and one page for a
//! browser that holds it all and needs nothing else. Which figures there are belongs to the report.

use std::fs;
use std::path::Path;

use napreduce_sim::plot::{Curve, Estimate, bars, curves, pictures};

use super::report::{Figure, PreemptReport, of_median};
use super::{JobWeight, Strategy};
use crate::error::LabError;
use crate::statistics::Summary;
use crate::workspace::{WorkError, write as write_file};

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}\
pre{background:#f6f6f6;padding:1em;overflow:auto}svg{max-width:100%;height:auto}.wrong{color:#b00;font-weight:bold}";

/// Writes all of it into `folder`.
pub fn write(report: &PreemptReport, folder: &Path) -> Result<(), LabError> {
    let json = serde_json::to_string_pretty(report).map_err(|error| WorkError::Use {
        action: "write",
        path: folder.join("report.json"),
        source: error.into(),
    })?;
    write_file(&folder.join("report.json"), json + "\n")?;
    write_file(&folder.join("report.txt"), report.table())?;
    let figures = draw(report, folder)?;
    write_file(&folder.join("report.html"), html(report, &figures))?;
    Ok(())
}

/// A figure: what is said under it, and the drawing itself.
struct Drawing {
    caption: String,
    svg: String,
}

fn draw(report: &PreemptReport, folder: &Path) -> Result<Vec<Drawing>, LabError> {
    let mut figures = Vec::new();
    let mut keep = |name: &str, caption: String| -> Result<(), LabError> {
        let path = folder.join(name);
        pictures(&path)?;
        let svg = fs::read_to_string(&path).map_err(WorkError::using("read", &path))?;
        figures.push(Drawing { caption, svg });
        Ok(())
    };
    for (weight, _) in &report.alone_seconds {
        let kinds: [(&str, &str, Figure); 2] = [
            ("sojourn", "Sojourn time of the high job", |cell| &cell.sojourn),
            ("makespan", "Makespan of both jobs", |cell| &cell.makespan),
        ];
        for (kind, title, seconds) in kinds {
            let name = format!("{weight}-{kind}.svg");
            let caption = format!("{title}, {weight} tasks: medians{}", report.certainty());
            let curves_of = curves_of(report, *weight, seconds);
            curves(
                &folder.join(&name),
                &caption,
                ("progress of the low job when the high one comes, %", "seconds"),
                &curves_of,
            )?;
            keep(&name, caption)?;
        }
    }
    if !report.ways.is_empty() {
        let groups: Vec<(String, Vec<Option<Estimate>>)> = report
            .ways
            .iter()
            .map(|way| {
                (way.way.to_string(), vec![Some(estimate(&way.production)), Some(estimate(&way.research))])
            })
            .collect();
        let caption = format!("A production job beside a research job: medians{}", report.certainty());
        bars(&folder.join("ways.svg"), &caption, ("way", "seconds"), &["production", "research"], &groups)?;
        keep("ways.svg", caption)?;
    }
    Ok(figures)
}

fn curves_of(report: &PreemptReport, weight: JobWeight, seconds: Figure) -> Vec<Curve> {
    let curve = |strategy: &Strategy| {
        let own = report.cells.iter().filter(|cell| (cell.weight, cell.primitive) == (weight, *strategy));
        let points: Vec<_> = own.map(|cell| (f64::from(cell.percent), estimate(seconds(cell)))).collect();
        (!points.is_empty()).then(|| Curve { name: strategy.to_string(), points })
    };
    Strategy::ALL.iter().filter_map(curve).collect()
}

fn estimate(summary: &Summary) -> Estimate {
    let interval = of_median(summary);
    Estimate { middle: summary.median, low: interval.low, high: interval.high, published: None }
}

fn html(report: &PreemptReport, figures: &[Drawing]) -> String {
    let class = if report.outputs_right() { "" } else { " class=\"wrong\"" };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Preemption compared</title>\
         <style>{STYLE}</style></head><body>\n<h1>Wait, kill, suspend and checkpoint compared</h1>\n\
         <p>{}<br>{}</p>\n<p{class}>{}</p>\n",
        escaped(&report.machine.line()),
        escaped(&report.about()),
        escaped(&report.conclusion()),
    );
    for Drawing { caption, svg } in figures {
        // A drawing inside a page has no declaration of its own.
        let drawing = svg.find("<svg").map_or("", |at| &svg[at..]);
        page.push_str(&format!("<figure>{drawing}<figcaption>{}</figcaption></figure>\n", escaped(caption)));
    }
    for (title, table) in report.tables() {
        page.push_str(&format!("<h2>{}</h2>\n<pre>{}</pre>\n", escaped(&title), escaped(&table)));
    }
    page.push_str("<h2>Every run</h2>\n<details><summary>as JSON, one a line</summary><pre>");
    let lines = report.runs.iter().map(serde_json::to_string);
    for line in lines.chain(report.way_runs.iter().map(serde_json::to_string)).flatten() {
        page.push_str(&escaped(&line));
        page.push('\n');
    }
    page.push_str("</pre></details>\n</body></html>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::report::canned;
    use super::*;

    #[test]
    fn one_page_holds_figures_tables_and_every_run_and_needs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        write(&canned::report(), folder.path()).unwrap();
        let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
        assert_eq!(page.matches("<svg").count(), 5);
        assert!(page.contains("hard-cap") && page.contains("byte-identical") && page.contains("two-jobs"));
        for outside in ["src=", "href=", "@import", "<?xml"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for name in
            ["light-sojourn.svg", "hungry-makespan.svg", "ways.svg", "ways.pdf", "report.json", "report.txt"]
        {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
    }

    #[test]
    fn a_report_without_runs_is_a_page_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = canned::report();
        report.runs.clear();
        report.way_runs.clear();
        report.alone_seconds.clear();
        report.conclude();
        write(&report, folder.path()).unwrap();
        assert!(folder.path().join("report.html").is_file());
    }

    #[test]
    fn a_wrong_output_is_seen_on_the_page() {
        let mut report = canned::report();
        report.runs[0].identical = false;
        assert!(html(&report, &[]).contains("class=\"wrong\""));
        assert_eq!(escaped("<a & b>"), "&lt;a &amp; b&gt;");
    }
}
